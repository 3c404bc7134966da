"""A lack of memory, or a GPU that fails, told by the errors of Python, numpy, torch and warp."""

from __future__ import annotations

import re

import torch

_NO_MEMORY = re.compile(
    r"can(?:'t|not) allocate memory|not enough memory|out of memory|unable to"
    r" allocate|MemoryError|bad_alloc",
    re.IGNORECASE,
)
_AMOUNT = re.compile(
    r"(?:tried to|unable to) allocate (\d+(?:\.\d+)?) (bytes|[KMGT]iB)", re.IGNORECASE
)
MEMORY_HINT = (
    "lower --hidden-sizes, --num-envs, --horizon or --slots, or use a machine with more memory"
)
_NO_GPU = re.compile(r"\bcuda error\b", re.IGNORECASE)
_ASSERTION = "device-side assert"
"""An index out of bounds in somebody's code, on a sound device."""


def is_out_of_memory(error: BaseException | str) -> bool:
    """True for an error, or its message, that reports a lack of memory on system or device."""
    return isinstance(error, MemoryError) or _NO_MEMORY.search(str(error)) is not None


def does_not_fit(what: str, error: BaseException) -> str:
    """Message for a lack of memory, with the size of the allocation if the error names it."""
    found = _AMOUNT.search(str(error))
    if found is None:
        return f"{what} does not fit into memory"
    amount, unit = float(found[1]), found[2]
    asked = f"{amount / 2**30:.3g} GiB" if unit == "bytes" else f"{found[1]} {unit}"
    return f"{what} does not fit into memory: {asked} were asked for in one piece"


def is_gpu_failure(error: BaseException) -> bool:
    """True for an error of the device or its driver, after which the process cannot use it."""
    text = str(error)
    if is_out_of_memory(error) or _ASSERTION in text:
        return False
    return isinstance(error, torch.AcceleratorError) or _NO_GPU.search(text) is not None
