"""The GPUs that torch finds, for the driver, which imports no torch."""

from __future__ import annotations

import os

import torch

from eureka_agent.errors import EurekaError
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.worker.messages import Gpus


def find_gpus() -> Gpus:
    """How many there are, or why there is none. They are counted without being used: a process that used one may not fork."""
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


def device_types(environment_class: type[VecTask]) -> tuple[str, ...]:
    """Types of torch devices that an environment says it runs on: `device_types` of its class; the CPU where it says nothing."""
    return tuple(getattr(environment_class, "device_types", ("cpu",)))


def check_device(device: str) -> None:
    """Raise EurekaError for a device that this process cannot use."""
    gpus = find_gpus()
    kind, _, number = device.partition(":")
    if kind == "cuda" and int(number or 0) >= gpus.count:
        found = gpus.missing or f"torch finds {gpus.count}"
        raise EurekaError(f"the worker was to run on {device!r}: {found}", "see what `eureka doctor` says of devices")
