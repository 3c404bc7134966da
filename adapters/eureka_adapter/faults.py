"""Faults: exceptions that say whose they are."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator
from typing import Any

LONGEST_MESSAGE = 4000


class Fault(Exception):
    """An error with its owner; the subclasses name the owner."""

    whose = "environment"

    def __init__(self, message: str, hint: str = "", line: int | None = None) -> None:
        """`line`: in reward.py."""
        super().__init__(message)
        self.hint, self.line = hint, line
        self.training: str | None = None


class EnvironmentFault(Fault):
    """A fault of the simulator, of its adapter or of the task's fitness."""


class TrainerFault(Fault):
    """A fault of the training algorithm."""

    whose = "trainer"


class RewardFault(Fault):
    """A fault of the reward; it ends its training alone."""

    whose = "reward"


@contextlib.contextmanager
def blame(whose: str) -> Iterator[None]:
    """Report an exception inside as a fault of `"environment"` or `"trainer"`. The innermost
    such block decides."""
    try:
        yield
    except Exception as error:
        if not hasattr(error, "eureka_whose"):
            error.eureka_whose = whose  # type: ignore[attr-defined]
        raise


def described(error: BaseException) -> dict[str, Any]:
    """Fields of a `fault` event."""
    if isinstance(error, Fault):
        fields: dict[str, Any] = {
            "whose": error.whose,
            "message": str(error),
            "hint": error.hint or None,
        }
        fields.update(line=error.line, training=error.training)
    else:
        frames = traceback.extract_tb(error.__traceback__)
        where = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
        whose = getattr(error, "eureka_whose", "environment")
        fields = {"whose": whose, "message": f"{type(error).__name__}: {error}{where}"}
    fields["message"] = fields["message"][:LONGEST_MESSAGE]
    return {name: value for name, value in fields.items() if value is not None}
