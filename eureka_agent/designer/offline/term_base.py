"""What all reward terms share: a name, a weight, a gate, and how they are turned into code.

A term's value is about 1 at its best (a penalty's about −1 at its worst), so that a weight says how
much the term counts per step. Values that no physics bounds are clamped: an extreme state must not
turn the reward into inf or NaN.
"""

from __future__ import annotations

from typing import ClassVar

from eureka_agent.designer.offline.operands import Operand, Scope
from eureka_agent.records import Record

_FAR = 1000.0
"""Distances are cut off here, in the variable's unit, so that they stay finite."""


class TermBase(Record):
    """What all terms have."""

    name: str
    """Component name, unique within a reward."""
    weight: float = 1.0
    gate: str | None = None
    """Name of another term of values in [0, 1] that this one is multiplied with: it counts only
    where that one does."""

    penalty: ClassVar[bool] = False
    tunable: ClassVar[tuple[str, ...]] = ()
    """Parameters that a search may scale, all positive."""
    unit_interval: ClassVar[bool] = False
    """Its values lie in [0, 1], so that it can gate others and be gated."""

    def parameters(self) -> tuple[str, ...]:
        """Those of `tunable` that change anything in this term."""
        return self.tunable

    def operands(self) -> tuple[Operand, ...]:
        """The variables that it reads, or their entries."""
        return ()

    def arguments(self) -> tuple[str, ...]:
        """Names of the arguments that its code reads."""
        return tuple(name for operand in self.operands() for name in operand.arguments())

    def trait(self) -> str:
        """Form, entries and sign: equal for terms that differ in numbers alone."""
        entries = ",".join(operand.code() for operand in self.operands())
        sign = -1 if getattr(self, "away", False) else getattr(self, "sign", 1)
        return f"{type(self).__name__}({entries}){sign:+d}"

    def value(self, scope: Scope) -> str:
        """Expression of shape (batch,), without weight and gate."""
        raise NotImplementedError

    def describe(self) -> str:
        """What it rewards, for a comment."""
        raise NotImplementedError

    def constant(self, scope: Scope, parameter: str) -> str:
        """Name of a source constant that holds one of its parameters."""
        return scope.constant(f"{self.name}_{parameter}", float(getattr(self, parameter)))

    def norm(self, scope: Scope, operand: Operand, label: str = "size") -> str:
        """Expression of shape (batch,): the operand's magnitude."""
        if operand.is_scalar:
            return f"{operand.code()}.abs()"
        return scope.local(
            f"{self.name}_{label}", f"torch.linalg.vector_norm({operand.code()}, dim=-1)"
        )


def distance_code(scope: Scope, operand: Operand, goal: Operand | None) -> str:
    """Name of a local with the distance of `operand` to `goal` (to 0 where there is none), cut off
    far away."""
    off = operand.code() if goal is None else f"({goal.code()} - {operand.code()})"
    size = f"{off}.abs()" if operand.is_scalar else f"torch.linalg.vector_norm({off}, dim=-1)"
    return scope.local(
        f"{'distance' if goal else 'size'}_of_{operand.variable}", f"{size}.clamp(max={_FAR})"
    )
