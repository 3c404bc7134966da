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
    TERMINATED = "end of an episode"
    POSITION = "position"
    HEIGHT = "height"
    VELOCITY = "velocity"
    ANGLE = "angle"
    ANGULAR_VELOCITY = "angular velocity"
    COSINE = "cosine"
    QUATERNION = "quaternion"
    ROTATION_MATRIX = "rotation matrix"
    UP_VECTOR = "up vector"
    JOINT_POSITION = "joint position"
    JOINT_VELOCITY = "joint velocity"
    CONTACT = "contact"
    FORCE = "force"
    OTHER = "quantity"


_UNITS = {
    Quantity.VELOCITY: "m/s",
    Quantity.ANGULAR_VELOCITY: "rad/s deg/s",
    Quantity.ANGLE: "rad deg",
    Quantity.POSITION: "m",
    Quantity.FORCE: "n nm kn",
}
_BY_UNIT = {unit: quantity for quantity, units in _UNITS.items() for unit in units.split()}
_BY_NAME = (
    (Quantity.COSINE, stem_set("cosine cos")),
    (Quantity.COSINE, stem_set("up upright uprightness")),
    (Quantity.CONTACT, stem_set("contact touch collision ground")),
    (Quantity.VELOCITY, stem_set("velocity speed vel")),
    (Quantity.HEIGHT, stem_set("height altitude")),
    (Quantity.ANGLE, stem_set("angle pitch roll yaw heading")),
    (Quantity.POSITION, stem_set("position pos")),
)
"""Quantities of variables without a unit by a word of their name, the first that fits."""
_IN_JOINTS = dict.fromkeys((Quantity.VELOCITY, Quantity.ANGULAR_VELOCITY), Quantity.JOINT_VELOCITY)
_IN_JOINTS |= dict.fromkeys((Quantity.ANGLE, Quantity.POSITION), Quantity.JOINT_POSITION)
_SCALES = {"m": 1.0, "rad": 0.5, "deg": 30.0}
"""Magnitudes that matter, by unit, where a variable has no range."""
_GOAL = stem_set(
    "goal target desired waypoint setpoint command commanded reference destination buoy"
)
_ERROR = stem_set(
    "error offset distance displacement difference gap deviation residual relative delta"
)
_BODY = stem_set(
    "torso base root body trunk pelvis hull chassis com mass robot drone vehicle quadcopter"
    " quadrotor boat car cart ship craft agent head"
)
_PART = stem_set(
    "foot leg hand wheel joint rotor propeller motor finger toe arm knee ankle hip thigh shin elbow"
    " wrist shoulder left right"
)
_AXES = (
    stem_set("x forward surge ahead longitudinal east along front"),
    stem_set("y left lateral sway sideways right transverse north"),
    stem_set("z up upward vertical heave height down"),
)
"""Words for x, y and z."""


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
    def is_scalar(self) -> bool:
        return math.prod(self.spec.shape) == 1

    def limit(self) -> float | None:
        """Largest magnitude in its range, where that is finite and not 0."""
        bound = max(map(abs, self.spec.range)) if self.spec.range is not None else 0.0
        return bound if 0 < bound < math.inf else None

    def scale(self) -> float:
        """A magnitude that matters: a third of the range, else by the unit."""
        limit = self.limit()
        unit = _SCALES.get(self.spec.unit.lower(), 1.0)
        return unit if limit is None else float(f"{limit / 3.0:.3g}")

    def affinity(self, words: frozenset[str]) -> float:
        """How much the words speak of this variable: 2 a word of its name, 0.5 a word of its doc
        line."""
        of_doc = words & (self.doc_words - self.name_words)
        return 2.0 * len(words & self.name_words) + 0.5 * len(of_doc)

    def likeness(self, words: frozenset[str]) -> float:
        """How much the words mean this variable: those that it shares, and the body before a
        part."""
        return self.affinity(words) + self.centrality()

    def centrality(self) -> float:
        """+1 for the body as a whole, −2 for one part of it."""
        return 1.0 * bool(self.name_words & _BODY) - 2.0 * bool(self.name_words & _PART)


def read_variable(spec: VariableSpec) -> Reading:
    """What a variable is, from its words alone. Anything that is not recognised is
    `Quantity.OTHER`."""
    name, doc = stems(spec.name.replace("_", " ")), stems(spec.doc)
    head = stems(re.split(r"[,;:(]", spec.doc)[0])
    quantity = _quantity(spec, name, doc)
    measured = quantity not in (Quantity.ACTION, Quantity.TERMINATED)
    difference = r"\bminus\b|\bfrom\b.+\bto (its|the)\b.*(goal|target)"
    is_error = measured and bool(name & _ERROR or re.search(difference, spec.doc.lower()))
    of_goal = head & _GOAL and "to" not in tokens(spec.doc)[:4] and not name & _BODY
    is_goal = measured and not is_error and bool(name & _GOAL or of_goal)
    return Reading(spec, quantity, is_goal, is_error, name, doc, entry_axes(spec))


def entry_axes(spec: VariableSpec) -> tuple[int, ...]:
    """Axis of each entry along the last dimension, from the doc's list of entries, else from the
    shape; empty where neither tells."""
    count, doc = spec.shape[-1] if spec.shape else 1, spec.doc.lower()
    if count == 1:
        axis = _axis_of(f"{spec.name.replace('_', ' ')} {spec.doc}")
        return () if axis is None else (axis,)
    letters = ["xyz".index(letter) for letter in re.findall(r"\b([xyz])\b", doc)][:count]
    if len(letters) == count and len(set(letters)) == min(count, 3):
        return tuple(letters)
    for listing in [*re.findall(r"[:(]([^:()]*)", doc), doc]:
        parts = [part for part in re.split(r",|\band\b|;", listing) if part.strip()]
        axes = [axis for part in parts if (axis := _axis_of(part)) is not None]
        if len(parts) == count == len(set(axes)):
            return tuple(axes)
    return {2: (0, 1), 3: (0, 1, 2)}.get(count, ()) if len(spec.shape) == 1 else ()


def _axis_of(text: str) -> int | None:
    words = stems(text) | frozenset(tokens(text))
    found = [axis for axis, names in enumerate(_AXES) if words & names]
    return found[0] if len(found) == 1 else None


def _quantity(spec: VariableSpec, name: frozenset[str], doc: frozenset[str]) -> Quantity:
    unit = spec.unit.lower().replace(" ", "").replace("·", "")
    size = math.prod(spec.shape)
    if spec.name in ("actions", "terminated", "succeeded"):
        return Quantity.ACTION if spec.name == "actions" else Quantity.TERMINATED
    if spec.shape == (4,) and (name | doc) & stem_set("quaternion quat orientation attitude"):
        return Quantity.QUATERNION
    if spec.shape == (3, 3):
        return Quantity.ROTATION_MATRIX
    quantity = _BY_UNIT.get(unit) or _by_words(spec, name)
    jointed = "joint" in name or (size > 1 and spec.frame.lower() in ("joint", "actuator"))
    turning_part = name & stem_set("rotor propeller wheel motor")
    if jointed or (turning_part and quantity is Quantity.ANGULAR_VELOCITY):
        return _IN_JOINTS.get(quantity, quantity)
    of_height = size == 1 and name & stem_set("height altitude elevation z")
    return Quantity.HEIGHT if quantity is Quantity.POSITION and of_height else quantity


def _by_words(spec: VariableSpec, name: frozenset[str]) -> Quantity:
    """For dimensionless variables and those without a unit."""
    doc, scalar = spec.doc.lower(), math.prod(spec.shape) == 1
    up = r"\bz.?axis\b|\bup.?(axis|vector|direction)\b|gravity"
    if spec.shape == (3,) and (name & stem_set("up upright gravity") or re.search(up, doc)):
        return Quantity.UP_VECTOR
    if scalar and doc.startswith("cosine"):
        return Quantity.COSINE
    words = name | stems(spec.doc.split(",")[0])
    if "angular" in words and words & stem_set("velocity rate speed"):
        return Quantity.ANGULAR_VELOCITY
    fitting = (quantity for quantity, words in _BY_NAME if name & words)
    return next((each for each in fitting if scalar or each is not Quantity.COSINE), Quantity.OTHER)


def upright_sign(spec: VariableSpec) -> int:
    """+1 where a cosine or an up entry is largest when upright, −1 where it is largest upside down
    or (gravity) points down."""
    doc = spec.doc.lower()
    hanging = re.search(r"(?<![-−\d.])1(?:\.0)?\b[^,;.]*\b(hang|down|bottom|invert)", doc)
    return -1 if hanging or "gravity" in f"{spec.name} {doc}" else 1


def hangs_at_zero(spec: VariableSpec) -> bool:
    """True for an angle that is upright at half a turn, from words such as '0 hanging down' or 'pi
    upright'."""
    turned = r"\b(?:pi|180|π)\b[^,;.]*\b(upright|up|top|vertical)"
    hanging = r"((?<![\d.])0(?:\.0)?|\bzero)\b[^,;.]*\b(hang\w*|down\w*|bottom)"
    return bool(re.search(f"{turned}|{hanging}", spec.doc.lower()))


def scalar_last(spec: VariableSpec) -> bool:
    """True for a quaternion in (x, y, z, w) order; MuJoCo's (w, x, y, z) is the default."""
    doc = spec.doc.lower()
    order = "".join(re.findall(r"\b([wxyz])\b", doc)[:4])
    return order == "xyzw" or bool(re.search(r"xyzw|scalar.last|w last", doc))
