"""The GPUs that torch finds, for the driver, which imports no torch, and their compiled kernels."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save

from eureka_agent.errors import EurekaError
from eureka_agent.invocation import command
from eureka_agent.protocol.events import Gpus
from eureka_agent.simulation.vec_task import VecTask


def find_gpus() -> Gpus:
    """Count GPUs, or say why there is none. Starts no CUDA: a process that used it may not fork."""
    if torch.version.cuda is None:
        return Gpus(missing=f"torch {torch.__version__} is built without CUDA")
    if count := torch.cuda.device_count():
        return Gpus(count=count)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    missing = "no NVIDIA GPU or driver answers"
    return Gpus(missing=missing if visible is None else f"CUDA_VISIBLE_DEVICES is {visible!r}")


def gpus_for(environment_class: type[VecTask]) -> Gpus:
    """Find GPUs for an environment; `missing` names modules that it needs on a GPU and lacks."""
    gpus = find_gpus()
    lacking = _missing_modules(environment_class)
    if not (gpus.count and lacking and "cuda" in _declared_types(environment_class)):
        return gpus
    verb = "is" if len(lacking) == 1 else "are"
    missing = f"on a GPU it needs {' and '.join(lacking)}, which {verb} not installed"
    return gpus.model_copy(update={"missing": missing})


def device_types(environment_class: type[VecTask]) -> tuple[str, ...]:
    """Types of torch devices for an environment; no GPU where modules for it are missing."""
    lacking = _missing_modules(environment_class)
    declared = _declared_types(environment_class)
    return tuple(kind for kind in declared if kind != "cuda" or not lacking)


def _declared_types(environment_class: type[VecTask]) -> tuple[str, ...]:
    return tuple(getattr(environment_class, "device_types", ("cpu",)))


def _missing_modules(environment_class: type[VecTask]) -> list[str]:
    """Missing `gpu_modules`, found without import: one that starts CUDA would forbid forks."""
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


def pack_kernels(folder: Path) -> bytes:
    """All files below a folder as safetensors: bytes (uint8) by path. A missing folder is empty."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return save(
        {
            path.relative_to(folder).as_posix(): np.frombuffer(path.read_bytes(), np.uint8)
            for path in files
        }
    )
