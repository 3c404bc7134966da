"""A clock that jumps: Python imports this at its start where PYTHONPATH has this folder."""

from __future__ import annotations

import datetime
import os
import time
from pathlib import Path

_file = Path(os.environ.get("SOAK_CLOCK", ""))  # a worker has no such variable
_true_time = time.time
_true_datetime = datetime.datetime


def _time() -> float:
    try:
        return _true_time() + float(_file.read_text())
    except (OSError, ValueError):
        return _true_time()


class _AlsoTrue(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _true_datetime)  # those that C code makes


class _Datetime(_true_datetime, metaclass=_AlsoTrue):
    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> _Datetime:
        return cls.fromtimestamp(_time(), tz)


time.time = _time
datetime.datetime = _Datetime  # type: ignore[misc]
