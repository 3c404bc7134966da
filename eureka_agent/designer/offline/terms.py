"""The term library: each term is a dataclass of variables, parameters and a weight that renders to a line or two of torch code.

A term's value is about 1 at its best (a penalty's about −1 at its worst), so that a weight says how much the term counts per step.
Values that no physics bounds are clamped: an extreme state must not turn the reward into inf or NaN.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from eureka_agent.designer.offline.operands import Operand, Scope
from eureka_agent.records import Record

_FAR = 1000.0
"""Distances are cut off here, in the variable's unit, so that a difference of two stays finite."""


class TermBase(Record):
    """What all terms have."""

    name: str
    """Component name, unique within a reward."""
    weight: float = 1.0
    gate: str | None = None
    """Name of another term of values in [0, 1] that this one is multiplied with: it counts only where that one does."""

    penalty: ClassVar[bool] = False
    tunable: ClassVar[tuple[str, ...]] = ()
    """Parameters that a search may scale, all positive."""
    unit_interval: ClassVar[bool] = False
    """Its values lie in [0, 1], so that it can gate others and be gated."""
    meaning: ClassVar[str] = ""

    def parameters(self) -> tuple[str, ...]:
        """Those of `tunable` that change anything in this term."""
        return self.tunable

    def operands(self) -> tuple[Operand, ...]:
        return ()

    def arguments(self) -> tuple[str, ...]:
        """Names of the arguments that its code reads."""
        return tuple(name for operand in self.operands() for name in operand.arguments())

    def value(self, scope: Scope) -> str:
        """Expression of shape (batch,), without weight and gate."""
        raise NotImplementedError

    def describe(self) -> str:
        """What it rewards, for a comment."""
        return self.meaning.format(*(operand.variable for operand in self.operands()))

    def _constant(self, scope: Scope, parameter: str) -> str:
        return scope.constant(f"{self.name}_{parameter}", float(getattr(self, parameter)))

    def _norm(self, scope: Scope, operand: Operand, label: str = "size") -> str:
        if operand.is_scalar:
            return f"{operand.code()}.abs()"
        return scope.local(f"{self.name}_{label}", f"torch.linalg.vector_norm({operand.code()}, dim=-1)")


class Progress(TermBase):
    """Speed in the wanted direction, per `scale`; forwards counts up, backwards counts down."""

    kind: Literal["progress"] = "progress"
    operand: Operand
    sign: int = 1
    scale: float = 1.0
    """Speed that is worth 1."""
    cap: float = 20.0
    """Speed beyond which nothing is gained."""
    tunable: ClassVar[tuple[str, ...]] = ("cap",)

    def operands(self) -> tuple[Operand, ...]:
        return (self.operand,)

    def value(self, scope: Scope) -> str:
        cap = self._constant(scope, "cap")
        speed = f"{self.operand.code()}.clamp(-{cap}, {cap})"
        value = f"{'-' if self.sign < 0 else ''}{speed}"
        return value if self.scale == 1.0 else f"{value} / {self._constant(scope, 'scale')}"

    def describe(self) -> str:
        return f"speed in the wanted direction, {'minus ' if self.sign < 0 else ''}{self.operand.code()}"


class Level(TermBase):
    """How far a position, a height or an opening is towards its wanted end."""

    kind: Literal["level"] = "level"
    operand: Operand
    sign: int = 1
    low: float = 0.0
    high: float = 1.0
    """`low` is worth 0 and `high` 1 for sign +1; the other way round for −1."""
    cap: float = 5.0
    """Multiples of that beyond which nothing is gained."""

    def operands(self) -> tuple[Operand, ...]:
        return (self.operand,)

    def value(self, scope: Scope) -> str:
        low, high = (self.low, self.high) if self.sign > 0 else (self.high, self.low)
        begin = scope.constant(f"{self.name}_start", low)
        end = scope.constant(f"{self.name}_end", high)
        return f"(({self.operand.code()} - {begin}) / ({end} - {begin})).clamp(-{self.cap}, {self.cap})"

    def describe(self) -> str:
        return f"{self.operand.code()} {'up' if self.sign > 0 else 'down'}, from its start to its wanted end"


class Distance(TermBase):
    """exp(−distance / temperature) between two places, or of an error to 0."""

    kind: Literal["distance"] = "distance"
    operand: Operand
    goal: Operand | None = None
    """None: the operand is an error itself."""
    temperature: float = 1.0
    """Distance at which the value has fallen to 1/e."""
    away: bool = False
    """True: the value is 1 far away and 0 at the place, for what is to be avoided."""
    tunable: ClassVar[tuple[str, ...]] = ("temperature",)
    unit_interval: ClassVar[bool] = True

    def operands(self) -> tuple[Operand, ...]:
        return (self.operand,) if self.goal is None else (self.operand, self.goal)

    def value(self, scope: Scope) -> str:
        near = f"torch.exp(-{distance_code(scope, self.operand, self.goal)} / {self._constant(scope, 'temperature')})"
        return f"(1.0 - {near})" if self.away else near

    def describe(self) -> str:
        to = f"of {self.operand.variable} to {self.goal.variable}" if self.goal else f"in {self.operand.variable}"
        return f"{'0' if self.away else '1'} where the distance {to} is 0"


class Approach(TermBase):
    """Speed at which a distance shrinks, per `scale`."""

    kind: Literal["approach"] = "approach"
    operand: Operand
    goal: Operand | None = None
    step_s: float
    """Seconds between two steps."""
    scale: float = 1.0
    cap: float = 20.0
    tunable: ClassVar[tuple[str, ...]] = ("scale",)

    def operands(self) -> tuple[Operand, ...]:
        return (self.operand,) if self.goal is None else (self.operand, self.goal)

    def arguments(self) -> tuple[str, ...]:
        return tuple(name for operand in self.operands() for name in (operand.variable, f"previous_{operand.variable}"))

    def value(self, scope: Scope) -> str:
        now = distance_code(scope, self.operand, self.goal)
        before = distance_code(scope, self.operand, self.goal, previous=True)
        speed = f"(({before} - {now}) / {self._constant(scope, 'step_s')})"
        return f"{speed}.clamp(-{self.cap}, {self.cap}) / {self._constant(scope, 'scale')}"

    def describe(self) -> str:
        return "speed at which the distance shrinks"


class Bonus(TermBase):
    """1 within a radius of the goal, 0 outside."""

    kind: Literal["bonus"] = "bonus"
    operand: Operand
    goal: Operand | None = None
    radius: float = 0.1
    tunable: ClassVar[tuple[str, ...]] = ("radius",)
    unit_interval: ClassVar[bool] = True

    def operands(self) -> tuple[Operand, ...]:
        return (self.operand,) if self.goal is None else (self.operand, self.goal)

    def value(self, scope: Scope) -> str:
        return f"({distance_code(scope, self.operand, self.goal)} < {self._constant(scope, 'radius')}).float()"

    def describe(self) -> str:
        return "success: within the radius of the goal"


class Upright(TermBase):
    """(1 + cosine of the tilt) / 2, to the power of `sharpness`: 1 upright, 0 upside down; optionally times exp(−turning speed / calm_speed)."""

    kind: Literal["upright"] = "upright"
    operand: Operand
    form: Literal["cosine", "angle", "quaternion"]
    """What the operand is: the cosine itself, an angle in rad, or a quaternion."""
    sign: int = 1
    """−1: the cosine is largest upside down."""
    offset: float = 0.0
    """Angle at which it is upright."""
    in_degrees: bool = False
    scalar_last: bool = False
    sharpness: float = 1.0
    rate: Operand | None = None
    """Turning speed in which whirling through the top is told from standing there; None: any speed counts in full."""
    calm_speed: float = 5.0
    """Turning speed at which the value has fallen to 1/e."""
    tunable: ClassVar[tuple[str, ...]] = ("sharpness", "calm_speed")
    unit_interval: ClassVar[bool] = True

    def parameters(self) -> tuple[str, ...]:
        return self.tunable if self.rate is not None else ("sharpness",)

    def operands(self) -> tuple[Operand, ...]:
        return (self.operand,) if self.rate is None else (self.operand, self.rate)

    def value(self, scope: Scope) -> str:
        cosine = self._cosine(scope)
        value = f"(0.5 {'+' if self.sign > 0 else '-'} 0.5 * {cosine})"
        if self.sharpness != 1.0:
            value = f"{value} ** {self._constant(scope, 'sharpness')}"
        if self.rate is None:
            return value
        return f"{value} * torch.exp(-{self._norm(scope, self.rate, 'rate')} / {self._constant(scope, 'calm_speed')})"

    def _cosine(self, scope: Scope) -> str:
        code = self.operand.code()
        if self.form == "cosine":
            return f"{code}.clamp(-1.0, 1.0)"
        if self.form == "angle":
            angle = code if self.offset == 0.0 else f"{code} - {self._constant(scope, 'offset')}"
            return f"torch.cos(torch.deg2rad({angle}))" if self.in_degrees else f"torch.cos({angle})"
        x, y = (0, 1) if self.scalar_last else (1, 2)
        # the z entry of the body's z axis in the frame that the quaternion rotates to
        return f"(1.0 - 2.0 * ({self.operand.variable}[:, {x}].square() + {self.operand.variable}[:, {y}].square())).clamp(-1.0, 1.0)"

    def describe(self) -> str:
        calm = f", and only while {self.rate.variable} is small" if self.rate is not None else ""
        return f"1 upright, 0 upside down, from {self.operand.variable}{calm}"


class Tracking(TermBase):
    """exp(−((x − target) / width)²): 1 at the target."""

    kind: Literal["tracking"] = "tracking"
    operand: Operand
    target: float = 0.0
    width: float = 1.0
    tunable: ClassVar[tuple[str, ...]] = ("width",)
    unit_interval: ClassVar[bool] = True

    def operands(self) -> tuple[Operand, ...]:
        return (self.operand,)

    def value(self, scope: Scope) -> str:
        off = (
            self.operand.code()
            if self.target == 0.0
            else f"({self.operand.code()} - {self._constant(scope, 'target')})"
        )
        return f"torch.exp(-({off} / {self._constant(scope, 'width')}).square())"

    def describe(self) -> str:
        return f"1 where {self.operand.code()} is {self.target:g}"


class Stillness(TermBase):
    """exp(−speed / temperature): 1 at rest."""

    kind: Literal["stillness"] = "stillness"
    operand: Operand
    temperature: float = 1.0
    tunable: ClassVar[tuple[str, ...]] = ("temperature",)
    unit_interval: ClassVar[bool] = True

    def operands(self) -> tuple[Operand, ...]:
        return (self.operand,)

    def value(self, scope: Scope) -> str:
        return f"torch.exp(-{self._norm(scope, self.operand, 'speed')} / {self._constant(scope, 'temperature')})"

    def describe(self) -> str:
        return f"1 where {self.operand.variable} is 0"


class Alive(TermBase):
    """1 for every step that does not end the episode by failure."""

    kind: Literal["alive"] = "alive"

    def arguments(self) -> tuple[str, ...]:
        return ("terminated",)

    def value(self, scope: Scope) -> str:
        return "(1.0 - terminated)"

    def describe(self) -> str:
        return "1 for every step without a failure"


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
            self.operand.code() if self.scale == 1.0 else f"({self.operand.code()} / {self._constant(scope, 'scale')})"
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
    """Mean part by which joints are closer to their limits than `soft` of the range."""

    kind: Literal["limit"] = "limit"
    operand: Operand
    low: float
    high: float
    soft: float = 0.9
    cap: float = 5.0
    penalty: ClassVar[bool] = True

    def operands(self) -> tuple[Operand, ...]:
        return (self.operand,)

    def value(self, scope: Scope) -> str:
        middle, half = 0.5 * (self.low + self.high), 0.5 * (self.high - self.low)
        centre, reach = scope.constant(f"{self.name}_centre", middle), scope.constant(f"{self.name}_reach", half)
        beyond = f"((({self.operand.code()} - {centre}) / {reach}).abs() - {self._constant(scope, 'soft')}).clamp(0.0, {self.cap})"
        return beyond if self.operand.is_scalar else f"{beyond}.mean(dim=-1)"

    def describe(self) -> str:
        return f"costs {self.operand.variable} near its limits"


def distance_code(scope: Scope, operand: Operand, goal: Operand | None, previous: bool = False) -> str:
    """Name of a local with the distance of `operand` to `goal` (to 0 where there is none), cut off far away."""
    off = operand.code(previous) if goal is None else f"({goal.code(previous)} - {operand.code(previous)})"
    size = f"{off}.abs()" if operand.is_scalar else f"torch.linalg.vector_norm({off}, dim=-1)"
    name = (
        f"{'previous_' if previous else ''}distance_of_{operand.variable}"
        if goal
        else f"{'previous_' if previous else ''}size_of_{operand.variable}"
    )
    return scope.local(name, f"{size}.clamp(max={_FAR})")


Term = Annotated[
    Progress
    | Level
    | Distance
    | Approach
    | Bonus
    | Upright
    | Tracking
    | Stillness
    | Alive
    | Penalty
    | Smoothness
    | Limit,
    Field(discriminator="kind"),
]
