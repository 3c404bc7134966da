"""Compiled kernels for a GPU on their way between a worker's cache folder and the driver's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from safetensors.numpy import save

KERNELS_FOLDER = "kernels"
"""Folder in a worker's scratch folder in which it keeps them."""


def pack_kernels(folder: Path) -> bytes:
    """All files below a folder as a safetensors file: bytes (uint8) by path. A folder that is not
    there is an empty one."""
    files = sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else []
    return save(
        {
            path.relative_to(folder).as_posix(): np.frombuffer(path.read_bytes(), np.uint8)
            for path in files
        }
    )
