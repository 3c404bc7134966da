"""Terms that cost: failure, effort, jumps of the actions, joints near their limits."""

from __future__ import annotations

from typing import ClassVar, Literal

from eureka_agent.designer.offline.operands import Operand, Scope
from eureka_agent.designer.offline.term_base import TermBase


class Penalty(TermBase):
    """Mean square of the entries, per scale²: effort, joint speed, sideways drift."""

    kind: Literal["penalty"] = "penalty"
    operand: Operand
    scale: float = 1.0
    """Magnitude that costs 1."""
    cap: float = 25.0
    """Largest cost, before the weight."""
    penalty: ClassVar[bool] = True
    tunable: ClassVar[tuple[str, ...]] = ()

    def operands(self) -> tuple[Operand, ...]:
        return (self.operand,)

    def value(self, scope: Scope) -> str:
        entries = (
            self.operand.code()
            if self.scale == 1.0
            else f"({self.operand.code()} / {self.constant(scope, 'scale')})"
        )
        mean = "" if self.operand.is_scalar else ".mean(dim=-1)"
        return f"{entries}.square(){mean}.clamp(max={self.cap})"

    def describe(self) -> str:
        return f"costs the mean square of {self.operand.code()}"


class Smoothness(TermBase):
    """Mean square of the change of the actions since the step before."""

    kind: Literal["smoothness"] = "smoothness"
    operand: Operand
    cap: float = 4.0
    """Largest cost, before the weight: actions in [-1, 1] change by 2 at most."""
    penalty: ClassVar[bool] = True

    def arguments(self) -> tuple[str, ...]:
        return (self.operand.variable, f"previous_{self.operand.variable}")

    def operands(self) -> tuple[Operand, ...]:
        return (self.operand,)

    def value(self, scope: Scope) -> str:
        change = f"({self.operand.code()} - {self.operand.code(previous=True)}).square()"
        mean = "" if self.operand.is_scalar else ".mean(dim=-1)"
        return f"{change}{mean}.clamp(max={self.cap})"

    def describe(self) -> str:
        return "costs jumps of the actions"


class Limit(TermBase):
    """How far joints are into the last part of their range, beyond `soft`: 0 there, 1 for one at
    its limit; the mean over all."""

    kind: Literal["limit"] = "limit"
    operand: Operand
    low: float
    high: float
    soft: float = 0.9
    cap: float = 2.0
    """Largest cost of one joint, before the weight: a hard push takes it a little beyond its
    limit."""
    penalty: ClassVar[bool] = True

    def operands(self) -> tuple[Operand, ...]:
        return (self.operand,)

    def value(self, scope: Scope) -> str:
        low, high, soft = (self.constant(scope, each) for each in ("low", "high", "soft"))
        off = f"{self.operand.code()} - 0.5 * ({low} + {high})"
        share = scope.local(f"{self.name}_share", f"(({off}) / (0.5 * ({high} - {low}))).abs()")
        beyond = f"(({share} - {soft}) / (1.0 - {soft})).clamp(0.0, {self.cap})"
        return beyond if self.operand.is_scalar else f"{beyond}.mean(dim=-1)"

    def describe(self) -> str:
        return f"costs {self.operand.variable} near its limits"


class Failure(TermBase):
    """1 in the step that ends the episode by failure: a price on failing that leaves all other
    steps as they are."""

    kind: Literal["failure"] = "failure"
    penalty: ClassVar[bool] = True

    def arguments(self) -> tuple[str, ...]:
        return ("terminated",)

    def value(self, scope: Scope) -> str:
        return "terminated"

    def describe(self) -> str:
        return "the price of a failure that ends the episode"
