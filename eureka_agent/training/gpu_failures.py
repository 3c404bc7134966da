"""Recognition of a GPU that fails, in errors of torch and warp."""

from __future__ import annotations

import re

import torch

from eureka_agent.training.memory import is_out_of_memory

_WORDS = re.compile(r"\bcuda error\b", re.IGNORECASE)
_ASSERTION = "device-side assert"
"""An index out of bounds in somebody's code, on a sound device."""


def is_gpu_failure(error: BaseException) -> bool:
    """True for an error of the device or its driver, after which the process cannot use it."""
    text = str(error)
    if is_out_of_memory(error) or _ASSERTION in text:
        return False
    return isinstance(error, torch.AcceleratorError) or _WORDS.search(text) is not None
