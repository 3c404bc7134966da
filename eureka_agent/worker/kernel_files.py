"""A GPU's compiled kernels, from a worker's cache folder to the driver."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from safetensors.numpy import save

KERNELS_FOLDER = "kernels"
"""Name of their folder in a worker's scratch folder."""


def pack_kernels(folder: Path) -> bytes:
    """All files below a folder as safetensors: bytes (uint8) by path. A missing folder is empty."""
    files = sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else []
    return save(
        {
            path.relative_to(folder).as_posix(): np.frombuffer(path.read_bytes(), np.uint8)
            for path in files
        }
    )
