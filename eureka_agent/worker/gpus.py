"""The GPUs that torch finds, for the driver, which imports no torch."""

from __future__ import annotations

import importlib.util
import os

import torch

from eureka_agent.errors import EurekaError
from eureka_agent.invocation import command
from eureka_agent.protocol.messages import Gpus
from eureka_agent.simulation.vec_task import VecTask


def find_gpus() -> Gpus:
    """How many there are, or why there is none. They are counted without being used: a process that
    used one may not fork."""
    if torch.version.cuda is None:
        return Gpus(missing=f"torch {torch.__version__} is built without CUDA")
    count = torch.cuda.device_count()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return Gpus(
        count=count,
        missing=""
        if count
        else "no NVIDIA GPU or driver answers"
        if visible is None
        else f"CUDA_VISIBLE_DEVICES is {visible!r}",
    )


def gpus_for(environment_class: type[VecTask]) -> Gpus:
    """The GPUs that there are; where this environment would run on them but for a module that is
    not installed, `missing` says so."""
    gpus = find_gpus()
    lacking = _missing_modules(environment_class)
    if not (gpus.count and lacking and "cuda" in _said(environment_class)):
        return gpus
    verb = "is" if len(lacking) == 1 else "are"
    return gpus.model_copy(
        update={"missing": f"on a GPU it needs {' and '.join(lacking)}, which {verb} not installed"}
    )


def device_types(environment_class: type[VecTask]) -> tuple[str, ...]:
    """Types of torch devices that an environment runs on here: those that it says, but no GPU where
    modules for that are missing."""
    lacking = _missing_modules(environment_class)
    return tuple(kind for kind in _said(environment_class) if kind != "cuda" or not lacking)


def _said(environment_class: type[VecTask]) -> tuple[str, ...]:
    """`device_types` of the class; the CPU where it says nothing."""
    return tuple(getattr(environment_class, "device_types", ("cpu",)))


def _missing_modules(environment_class: type[VecTask]) -> list[str]:
    """Those of `gpu_modules` that are not there. They are not imported: what starts CUDA may not
    fork, and dry runs are forks."""
    return [
        name
        for name in getattr(environment_class, "gpu_modules", ())
        if importlib.util.find_spec(name) is None
    ]


def check_device(device: str) -> None:
    """Raise EurekaError for a device that this process cannot use."""
    gpus = find_gpus()
    kind, _, number = device.partition(":")
    if kind == "cuda" and int(number or 0) >= gpus.count:
        found = gpus.missing or f"torch finds {gpus.count}"
        raise EurekaError(
            f"the worker was to run on {device!r}: {found}",
            f"see what `{command('doctor')}` says of devices",
        )
