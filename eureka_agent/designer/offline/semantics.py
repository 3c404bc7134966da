"""A variable's name, unit, frame and doc line → what it is: an angle, a velocity, a goal, … and
what its entries are."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import StrEnum

from eureka_agent.designer.offline.words import stem_set, stems, tokens
from eureka_agent.records import VariableSpec


class Quantity(StrEnum):
    """What a variable measures."""

    ACTION = "action"
    TERMINATED = "end by failure"
    POSITION = "position"
    HEIGHT = "height"
    VELOCITY = "velocity"
    ANGLE = "angle"
    ANGULAR_VELOCITY = "angular velocity"
    COSINE = "cosine"
    SINE = "sine"
    QUATERNION = "quaternion"
    ROTATION_MATRIX = "rotation matrix"
    UP_VECTOR = "up vector"
    JOINT_POSITION = "joint position"
    JOINT_VELOCITY = "joint velocity"
    CONTACT = "contact"
    FORCE = "force"
    OTHER = "quantity"


_GOAL = stem_set(
    "goal target desired waypoint setpoint command commanded reference destination buoy"
)
_ERROR = stem_set("error offset distance displacement difference gap deviation residual")
_BODY = stem_set(
    "torso base root body trunk pelvis hull chassis com mass robot drone vehicle quadcopter"
    " quadrotor boat car cart ship craft agent head"
)
_PART = stem_set(
    "foot leg hand wheel joint rotor propeller motor finger toe arm knee ankle hip thigh shin elbow"
    " wrist shoulder left right"
)
_AXIS_WORDS: dict[int, frozenset[str]] = {
    0: stem_set("x forward surge ahead longitudinal east along front"),
    1: stem_set("y left lateral sway sideways right transverse north"),
    2: stem_set("z up upward vertical heave height down"),
}


@dataclass(frozen=True)
class Reading:
    """A variable with what its words say of it."""

    spec: VariableSpec
    quantity: Quantity
    is_goal: bool
    """A place or value to get to rather than one that is measured."""
    is_error: bool
    """Already a difference to the goal: 0 is best."""
    name_words: frozenset[str]
    doc_words: frozenset[str]
    axes: tuple[int, ...]
    """World or body axis (0 x, 1 y, 2 z) of each entry along the last dimension, where the words or
    the shape tell; else empty."""

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def size(self) -> int:
        """Number of entries of one environment's value."""
        return math.prod(self.spec.shape)

    @property
    def is_scalar(self) -> bool:
        return self.size == 1

    def limit(self) -> float | None:
        """Largest magnitude in its range, where that is finite and not 0."""
        if self.spec.range is None:
            return None
        bound = max(abs(self.spec.range[0]), abs(self.spec.range[1]))
        return bound if math.isfinite(bound) and bound > 0 else None

    def affinity(self, words: frozenset[str]) -> float:
        """How much the words speak of this variable: 2 a word of its name, 0.5 a word of its doc
        line."""
        return 2.0 * len(words & self.name_words) + 0.5 * len(
            words & (self.doc_words - self.name_words)
        )

    def centrality(self) -> float:
        """+1 for the body as a whole, −2 for one part of it."""
        return 1.0 * bool(self.name_words & _BODY) - 2.0 * bool(self.name_words & _PART)


def entry_axes(spec: VariableSpec) -> tuple[int, ...]:
    """Axis of each entry along the last dimension, from the doc's list of entries, else from the
    shape; empty where neither tells."""
    count = spec.shape[-1] if spec.shape else 1
    letters = [
        {"x": 0, "y": 1, "z": 2}[letter] for letter in re.findall(r"\b([xyz])\b", spec.doc.lower())
    ]
    if count > 1 and len(letters) >= count and len(set(letters[:count])) == min(count, 3):
        return tuple(letters[:count])
    for listing in [*re.findall(r"[:(]([^:()]*)", spec.doc.lower()), spec.doc.lower()]:
        parts = [part for part in re.split(r",|\band\b|;", listing) if part.strip()]
        if count > 1 and len(parts) == count:
            axes = [_axis_of(part) for part in parts]
            if all(axis is not None for axis in axes) and len(set(axes)) == count:
                return tuple(axis for axis in axes if axis is not None)
    if count == 1:
        axis = _axis_of(f"{spec.name.replace('_', ' ')} {spec.doc}")
        return () if axis is None else (axis,)
    return {2: (0, 1), 3: (0, 1, 2)}.get(count, ()) if len(spec.shape) == 1 else ()


def _axis_of(text: str) -> int | None:
    words = stems(text) | frozenset(tokens(text))
    found = [axis for axis, names in _AXIS_WORDS.items() if words & names]
    return found[0] if len(found) == 1 else None


def read_variable(spec: VariableSpec) -> Reading:
    """What a variable is, from its words alone. Anything that is not recognised is
    `Quantity.OTHER`."""
    name_words = frozenset(stems(spec.name.replace("_", " ")))
    doc_words = stems(spec.doc)
    head = stems(re.split(r"[,;:(]", spec.doc)[0])
    quantity = _quantity(spec, name_words, doc_words)
    is_error = (
        bool(name_words & _ERROR)
        or bool({"relativ", "delta"} & name_words)
        or bool(re.search(r"\bminus\b|\bfrom\b.+\bto (its|the)\b.*(goal|target)", spec.doc.lower()))
    )
    is_goal = not is_error and bool(
        name_words & _GOAL
        or (head & _GOAL and "to" not in tokens(spec.doc)[:4] and not name_words & _BODY)
    )
    if quantity in (Quantity.ACTION, Quantity.TERMINATED):
        is_error = is_goal = False
    return Reading(spec, quantity, is_goal, is_error, name_words, doc_words, entry_axes(spec))


def _quantity(spec: VariableSpec, name: frozenset[str], doc: frozenset[str]) -> Quantity:
    unit = spec.unit.lower().replace(" ", "").replace("·", "").replace("**", "^")
    size = math.prod(spec.shape)
    jointed = spec.frame.lower() in ("joint", "actuator") or "joint" in name
    if spec.name == "actions":
        return Quantity.ACTION
    if spec.name in ("terminated", "succeeded"):
        return Quantity.TERMINATED
    if spec.shape == (4,) and (name | doc) & stem_set("quaternion quat orientation attitude"):
        return Quantity.QUATERNION
    if spec.shape == (3, 3):
        return Quantity.ROTATION_MATRIX
    by_unit = {
        "m/s": Quantity.VELOCITY,
        "rad/s": Quantity.ANGULAR_VELOCITY,
        "deg/s": Quantity.ANGULAR_VELOCITY,
        "rad": Quantity.ANGLE,
    }
    by_unit |= {
        "m": Quantity.POSITION,
        "n": Quantity.FORCE,
        "nm": Quantity.FORCE,
        "deg": Quantity.ANGLE,
        "kn": Quantity.FORCE,
    }
    quantity = by_unit.get(unit) or _quantity_by_words(spec, name, doc)
    if jointed and (size > 1 or "joint" in name):
        if quantity in (Quantity.VELOCITY, Quantity.ANGULAR_VELOCITY):
            return Quantity.JOINT_VELOCITY
        if quantity in (Quantity.ANGLE, Quantity.POSITION):
            return Quantity.JOINT_POSITION
    if name & stem_set("rotor propeller wheel motor") and quantity is Quantity.ANGULAR_VELOCITY:
        return Quantity.JOINT_VELOCITY
    if (
        quantity is Quantity.POSITION
        and size == 1
        and name & stem_set("height altitude elevation z")
    ):
        return Quantity.HEIGHT
    return quantity


def _quantity_by_words(spec: VariableSpec, name: frozenset[str], doc: frozenset[str]) -> Quantity:
    """For dimensionless variables and those without a unit."""
    words = name | stems(spec.doc.split(",")[0])
    if name & stem_set("cosine cos") or (
        spec.doc.lower().startswith("cosine") and math.prod(spec.shape) == 1
    ):
        return Quantity.COSINE
    if name & stem_set("sine sin"):
        return Quantity.SINE
    if spec.shape == (3,) and (
        name & stem_set("up upright gravity")
        or re.search(r"\bz.?axis\b|\bup.?(axis|vector|direction)\b|gravity", spec.doc.lower())
    ):
        return Quantity.UP_VECTOR
    if math.prod(spec.shape) == 1 and name & stem_set("up upright uprightness"):
        return Quantity.COSINE
    if name & stem_set("contact contacts touch collision ground"):
        return Quantity.CONTACT
    if words & stem_set("angular") and words & stem_set("velocity rate speed"):
        return Quantity.ANGULAR_VELOCITY
    if name & stem_set("velocity velocities speed vel"):
        return Quantity.VELOCITY
    if name & stem_set("height altitude"):
        return Quantity.HEIGHT
    if name & stem_set("angle angles pitch roll yaw heading"):
        return Quantity.ANGLE
    if name & stem_set("position positions pos"):
        return Quantity.POSITION
    return Quantity.OTHER


def upright_sign(spec: VariableSpec) -> int:
    """+1 where a cosine or an up entry is largest when upright, −1 where it is largest upside down
    or (gravity) points down."""
    doc = spec.doc.lower()
    gravity = "gravity" in spec.name or "gravity" in doc
    hanging = re.search(r"(?<![-−\d.])1(?:\.0)?\b[^,;.]*\b(hang|down|bottom|invert)", doc)
    return -1 if gravity or hanging else 1


def upright_angle(spec: VariableSpec) -> float:
    """Value in rad (or the unit's) at which an angle is upright, from words such as '0 hanging
    down' or 'pi upright'."""
    doc = spec.doc.lower()
    half_turn = 180.0 if spec.unit.lower().startswith("deg") else math.pi
    if re.search(r"\b(?:pi|180|π)\b[^,;.]*\b(upright|up|top|vertical)", doc):
        return half_turn
    if re.search(r"(?<![\d.])0(?:\.0)?\b[^,;.]*\b(hang\w*|down\w*|bottom)", doc) or re.search(
        r"\bzero\b[^,;.]*\b(hang|down|bottom)", doc
    ):
        return half_turn
    return 0.0


def scalar_last(spec: VariableSpec) -> bool:
    """True for a quaternion in (x, y, z, w) order; MuJoCo's (w, x, y, z) is the default."""
    letters = re.findall(r"\b([wxyz])\b", spec.doc.lower())
    return "".join(letters[:4]) == "xyzw" or bool(
        re.search(r"xyzw|scalar.last|w last", spec.doc.lower())
    )
