"""A clock that jumps: Python imports this at its start where PYTHONPATH has this folder."""

from __future__ import annotations

import os
import time
from pathlib import Path

_file = Path(os.environ.get("SOAK_CLOCK", ""))  # a worker has no such variable
_true_time = time.time


def _time() -> float:
    try:
        return _true_time() + float(_file.read_text())
    except (OSError, ValueError):
        return _true_time()


time.time = _time
