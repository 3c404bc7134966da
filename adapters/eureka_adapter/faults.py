"""Faults: exceptions that say whose they are."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator
from typing import Any

LONGEST_MESSAGE = 4000


class Fault(Exception):
    """A fault of the environment: of the simulator, its adapter or the task's fitness."""

    whose = "environment"

    def __init__(
        self, message: str, hint: str = "", line: int | None = None, training: str | None = None
    ) -> None:
        """`line`: in reward.py. `training`: id of the one that it ends alone."""
        super().__init__(message)
        self.fields = {"message": message, "hint": hint, "line": line, "training": training}


class RewardFault(Fault):
    """A fault of the reward."""

    whose = "reward"


@contextlib.contextmanager
def blame(whose: str) -> Iterator[None]:
    """Report an exception inside as a fault of `"environment"` or `"trainer"`. The innermost of
    several such blocks decides."""
    try:
        yield
    except Exception as error:
        if not hasattr(error, "whose"):
            error.whose = whose  # type: ignore[attr-defined]
        raise


def described(error: Exception) -> dict[str, Any]:
    """Fields of a `fault` event."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    message = f"{type(error).__name__}: {error} ({last.filename}, line {last.lineno})"
    fields: dict[str, Any] = error.fields if isinstance(error, Fault) else {"message": message}
    known = {name: value for name, value in fields.items() if value}
    whose = getattr(error, "whose", "environment")
    return {"whose": whose, **known, "message": fields["message"][:LONGEST_MESSAGE]}
