"""Faults of a batch file, all of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eureka_agent.errors import EurekaError
from eureka_agent.wording import plural

Place = tuple[str | int, ...]
"""Keys and numbers that lead to a value of the file."""


@dataclass(frozen=True)
class Fault:
    """One mistake in a batch file."""

    place: Place
    message: str
    hint: str = ""
    line: int | None = None

    @property
    def key(self) -> str:
        """The place in the form `groups.walkers.matrix.env[1]`."""
        return "".join(
            f"[{part}]" if isinstance(part, int) else f"{'.' if number else ''}{part}"
            for number, part in enumerate(self.place)
        )

    def __str__(self) -> str:
        where = f"line {self.line}, " if self.line is not None else ""
        key = f"{self.key}: " if self.place else ""
        return f"{where}{key}{self.message}" + (f" ({self.hint})" if self.hint else "")


class BatchFileError(EurekaError):
    """A batch file with mistakes."""

    def __init__(self, file: str, faults: Sequence[Fault]) -> None:
        """`faults`: at least one."""
        self.faults = sorted(faults, key=lambda fault: fault.line or 0)
        if len(faults) == 1:
            message, hint = f"{file!r}, {faults[0]}", ""
        else:
            listed = "".join(f"\n  {fault}" for fault in self.faults)
            message, hint = f"{file!r} has {plural(len(faults), 'mistake')}:{listed}", ""
        super().__init__(message, hint or "mend the file and give the same command again")
