"""A reference to a variable or to some of its entries, and the scope in which a reward's code is
written."""

from __future__ import annotations

import math
from collections.abc import Collection

from eureka_agent.designer.offline.semantics import Reading
from eureka_agent.records import Record
from eureka_agent.task import PREVIOUS_PREFIX


class Operand(Record):
    """A variable, one entry of it, or its leading entries."""

    variable: str
    rank: int
    """Number of dimensions behind the batch."""
    size: int
    """Number of entries that are picked."""
    entry: tuple[int, ...] | None = None
    """Index of the one entry picked, one number a dimension; None: not a single entry."""
    stop: int | None = None
    """Entries `[0, stop)` of the last dimension are picked; None: all."""
    differenced: bool = False
    """True: its rate of change, from this step's and the previous step's value; per second."""
    step_s: float = 1.0
    """Seconds between two steps, for `differenced`."""

    @property
    def is_scalar(self) -> bool:
        return self.size == 1

    def arguments(self) -> tuple[str, ...]:
        """Names of the arguments that its code reads."""
        return (
            (self.variable, PREVIOUS_PREFIX + self.variable)
            if self.differenced
            else (self.variable,)
        )

    def code(self, previous: bool = False) -> str:
        """Expression of shape (batch,) for a single entry, else (batch, size)."""
        name = PREVIOUS_PREFIX + self.variable if previous else self.variable
        if self.entry is not None:
            picked = (
                f"{name}[:, {', '.join(str(index) for index in self.entry)}]"
                if self.entry
                else name
            )
        elif self.stop is not None:
            picked = f"{name}[:, :{self.stop}]"
        else:
            picked = f"{name}.flatten(1)" if self.rank > 1 else name
        if self.differenced and not previous:
            return f"(({picked} - {self.code(previous=True)}) / {number(self.step_s)})"
        return picked


def whole(reading: Reading) -> Operand:
    """All entries of a variable; a variable with a single entry becomes a scalar."""
    shape = reading.spec.shape
    entry = tuple(0 for _ in shape) if reading.is_scalar else None
    return Operand(variable=reading.name, rank=len(shape), size=reading.size, entry=entry)


def one_entry(reading: Reading, *index: int) -> Operand:
    """The entry at `index`."""
    return Operand(variable=reading.name, rank=len(reading.spec.shape), size=1, entry=index)


def leading(reading: Reading, count: int) -> Operand:
    """The first `count` entries of a vector."""
    if count >= reading.size:
        return whole(reading)
    return Operand(variable=reading.name, rank=1, size=count, stop=count)


def number(value: float) -> str:
    """A float as source code, exact."""
    return repr(float(value))


def rounded(value: float, digits: int = 3) -> float:
    """`value` with a few significant digits, as a person would write it."""
    return float(f"{value:.{digits}g}") if math.isfinite(value) else value


class Scope:
    """What one rendered function has: its arguments, named constants and local tensors."""

    def __init__(self, reserved: Collection[str]) -> None:
        """`reserved`: names that no local may have, such as every variable's."""
        self.constants: dict[str, float] = {}
        self._reserved = set(reserved)
        self._locals: dict[str, str] = {}
        self._pending: list[str] = []

    def constant(self, name: str, value: float) -> str:
        """Declare a constant and return its name."""
        self.constants[name.upper()] = value
        return name.upper()

    def local(self, name: str, expression: str) -> str:
        """Name of a local that holds `expression`; the same expression is computed once."""
        if expression not in self._locals:
            self._locals[expression] = self.free(name)
            self._pending.append(f"{self._locals[expression]} = {expression}")
        return self._locals[expression]

    def free(self, name: str) -> str:
        """`name`, or one like it that clashes with no variable and no other local."""
        while name in self._reserved:
            name += "_value"
        self._reserved.add(name)
        return name

    def take_statements(self) -> list[str]:
        """Assignments made since the last call, in order."""
        statements, self._pending = self._pending, []
        return statements
