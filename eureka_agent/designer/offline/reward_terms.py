"""Terms that pay: progress, closeness, posture, rest, survival."""

from __future__ import annotations

from typing import ClassVar, Literal

from eureka_agent.designer.offline.operands import Operand, Scope
from eureka_agent.designer.offline.term_base import TermBase, distance_code


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
        cap = self.constant(scope, "cap")
        value = f"{'-' if self.sign < 0 else ''}{self.operand.code()}.clamp(-{cap}, {cap})"
        return value if self.scale == 1.0 else f"{value} / {self.constant(scope, 'scale')}"

    def describe(self) -> str:
        return (
            "speed in the wanted direction,"
            f" {'minus ' if self.sign < 0 else ''}{self.operand.code()}"
        )


class Level(TermBase):
    """Way of a position, a height or an opening towards its wanted end; of several entries the
    mean."""

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
        low, high = self.constant(scope, "low"), self.constant(scope, "high")
        entries = (
            self.operand.code() if self.operand.is_scalar else f"{self.operand.code()}.mean(dim=-1)"
        )
        done = f"{entries} - {low}" if self.sign > 0 else f"{high} - {entries}"
        return f"(({done}) / ({high} - {low})).clamp(-{self.cap}, {self.cap})"

    def describe(self) -> str:
        return (
            f"{self.operand.code()} {'up' if self.sign > 0 else 'down'}, from its start to its"
            " wanted end"
        )


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
        near = (
            f"torch.exp(-{distance_code(scope, self.operand, self.goal)} /"
            f" {self.constant(scope, 'temperature')})"
        )
        return f"(1.0 - {near})" if self.away else near

    def describe(self) -> str:
        to = (
            f"of {self.operand.variable} to {self.goal.variable}"
            if self.goal
            else f"in {self.operand.variable}"
        )
        return f"{'0' if self.away else '1'} where the distance {to} is 0"


class Upright(TermBase):
    """(1 + cosine of the tilt) / 2, to the power of `sharpness`: 1 upright, 0 upside down;
    optionally times exp(−turning speed / calm_speed)."""

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
    """Turning speed in which whirling through the top is told from standing there; None: any speed
    counts in full."""
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
            value = f"{value} ** {self.constant(scope, 'sharpness')}"
        if self.rate is None:
            return value
        return (
            f"{value} * torch.exp(-{self.norm(scope, self.rate, 'rate')} /"
            f" {self.constant(scope, 'calm_speed')})"
        )

    def _cosine(self, scope: Scope) -> str:
        code = self.operand.code()
        if self.form == "cosine":
            return f"{code}.clamp(-1.0, 1.0)"
        if self.form == "angle":
            angle = code if self.offset == 0.0 else f"{code} - {self.constant(scope, 'offset')}"
            return (
                f"torch.cos(torch.deg2rad({angle}))" if self.in_degrees else f"torch.cos({angle})"
            )
        x, y = (0, 1) if self.scalar_last else (1, 2)
        # the z entry of the body's z axis in the frame that the quaternion rotates to
        return (
            f"(1.0 - 2.0 * ({self.operand.variable}[:, {x}].square() + {self.operand.variable}[:,"
            f" {y}].square())).clamp(-1.0, 1.0)"
        )

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
            else f"({self.operand.code()} - {self.constant(scope, 'target')})"
        )
        return f"torch.exp(-({off} / {self.constant(scope, 'width')}).square())"

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
        return (
            f"torch.exp(-{self.norm(scope, self.operand, 'speed')} /"
            f" {self.constant(scope, 'temperature')})"
        )

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


class Success(TermBase):
    """1 in the step that ends the episode by success."""

    kind: Literal["success"] = "success"

    def arguments(self) -> tuple[str, ...]:
        return ("succeeded",)

    def value(self, scope: Scope) -> str:
        return "succeeded"

    def describe(self) -> str:
        return "the prize of a success that ends the episode"
