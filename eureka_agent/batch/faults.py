"""Faults of a batch file, all of them at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eureka_agent.errors import EurekaError
from eureka_agent.wording import plural

Place = tuple[str | int, ...]
"""Keys and numbers that lead to a value of the file."""


@dataclass(frozen=True)
class FileFault:
    """One mistake in a batch file."""

    place: Place
    message: str
    hint: str = ""
    line: int | None = None

    @property
    def key(self) -> str:
        """The place in the form `groups.walkers.matrix.env[1]`."""
        parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.place)
        return "".join(parts).removeprefix(".")

    def __str__(self) -> str:
        where = f"line {self.line}, " if self.line is not None else ""
        key = f"{self.key}: " if self.place else ""
        return f"{where}{key}{self.message}" + (f" ({self.hint})" if self.hint else "")


def located(lines: Mapping[Place, int], place: Place, message: str, hint: str = "") -> FileFault:
    """A fault with the line of its place, or of the nearest one around it."""
    around = next((place[:end] for end in range(len(place), 0, -1) if place[:end] in lines), ())
    return FileFault(place, message, hint, lines.get(around))


class BatchFileError(EurekaError):
    """A batch file with mistakes."""

    def __init__(self, file: str, faults: Sequence[FileFault]) -> None:
        """`faults`: at least one."""
        self.faults = sorted(faults, key=lambda fault: fault.line or 0)
        if len(faults) == 1:
            message = f"{file!r}, {faults[0]}"
        else:
            listed = "".join(f"\n  {fault}" for fault in self.faults)
            message = f"{file!r} has {plural(len(faults), 'mistake')}:{listed}"
        super().__init__(message, "mend the file and give the same command again")
