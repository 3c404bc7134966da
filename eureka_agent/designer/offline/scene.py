"""An environment and a sentence as read: which variables can stand for what is asked."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from eureka_agent.designer.offline import language
from eureka_agent.designer.offline.terms import Operand, rounded
from eureka_agent.records import TaskDescription, VariableSpec
from eureka_agent.task import PREVIOUS_PREFIX

Quantity = Enum(
    "Quantity",
    "ACTION TERMINATED POSITION HEIGHT VELOCITY ANGLE ANGULAR_VELOCITY COSINE QUATERNION"
    " ROTATION_MATRIX UP_VECTOR JOINT_POSITION JOINT_VELOCITY CONTACT FORCE OTHER",
)
_BY_UNIT = {"m/s": Quantity.VELOCITY, "m": Quantity.POSITION}
_BY_UNIT |= dict.fromkeys(("rad/s", "deg/s"), Quantity.ANGULAR_VELOCITY)
_BY_UNIT |= dict.fromkeys(("rad", "deg"), Quantity.ANGLE)
_BY_UNIT |= dict.fromkeys(("n", "nm", "kn"), Quantity.FORCE)
_BY_NAME = ("cosine", "contact", "velocity", "height", "angle", "position")
"""Quantities of variables without a unit, by a word of their name; the first that fits."""
_IN_JOINTS = dict.fromkeys((Quantity.VELOCITY, Quantity.ANGULAR_VELOCITY), Quantity.JOINT_VELOCITY)
_IN_JOINTS |= dict.fromkeys((Quantity.ANGLE, Quantity.POSITION), Quantity.JOINT_POSITION)
_SCALES = {"m": 1.0, "rad": 0.5, "deg": 30.0}
"""Magnitudes that matter, by unit, where a variable has no range."""
_FRAMES = {"world": 1.0, "body": 0.2, "joint": -4.0}


class Meaning(NamedTuple):
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
    """Axis (0 x, 1 y, 2 z) of each entry along the last dimension; empty where nothing tells."""

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
        """Score of the words in it: 2 a word of its name, 0.5 a word of its doc line."""
        of_doc = words & (self.doc_words - self.name_words)
        return 2.0 * len(words & self.name_words) + 0.5 * len(of_doc)

    def centrality(self) -> float:
        """+1 for the body as a whole, −2 for one part of it."""
        body, part = (bool(self.name_words & language.WORDS[each]) for each in ("body", "part"))
        return 1.0 * body - 2.0 * part

    def likeness(self, words: frozenset[str]) -> float:
        """Rank by the words that it shares, the body before a part."""
        return self.affinity(words) + self.centrality()

    def frame_score(self) -> float:
        """The world's frame before the body's, joints last."""
        return _FRAMES.get(self.spec.frame.lower(), 0.0)

    def entry(self, *index: int) -> Operand:
        code = f"{self.name}[:, {', '.join(map(str, index))}]" if index else self.name
        return Operand(code=code, reads=(self.name,))

    def whole(self) -> Operand:
        """All entries; a single one is a scalar."""
        if self.is_scalar:
            return self.entry(*(0 for _ in self.spec.shape))
        code = f"{self.name}.flatten(1)" if len(self.spec.shape) > 1 else self.name
        return Operand(code=code, reads=(self.name,), scalar=False)

    def along(self, axis: int) -> Operand | None:
        if self.is_scalar or len(self.spec.shape) != 1 or axis not in self.axes:
            return None
        return self.entry(self.axes.index(axis))

    def tilt(self) -> Operand | None:
        """The cosine of the tilt: 1 upright, −1 upside down; None for what tells no tilt."""
        spec, code, doc = self.spec, self.whole().code, self.spec.doc.lower()
        hanging = re.search(r"(?<![-−\d.])1(?:\.0)?\b[^,;.]*\b(hang|down|bottom|invert)", doc)
        sign = -1 if hanging or "gravity" in f"{spec.name} {doc}" else 1
        if self.quantity in (Quantity.COSINE, Quantity.ANGLE):
            leaning = (self.name_words | self.doc_words) & language.WORDS["leaning"]
            if not self.is_scalar or not leaning or self.name_words & language.WORDS["steering"]:
                return None
        if self.quantity is Quantity.ANGLE:
            angle = f"torch.deg2rad({code})" if spec.unit.lower().startswith("deg") else code
            cosine = Operand(code=f"torch.cos({angle})", reads=(self.name,))
            return cosine.turned(-1 if self.hangs_at_zero() else 1)
        if self.quantity is Quantity.QUATERNION:
            order = "".join(re.findall(r"\b([wxyz])\b", doc)[:4])
            last = order == "xyzw" or re.search(r"xyzw|scalar.last|w last", doc)
            # the z entry of the body's z axis in the frame that the quaternion rotates to
            x, y = (f"{self.name}[:, {each}].square()" for each in ((0, 1) if last else (1, 2)))
            code, sign = f"(1.0 - 2.0 * ({x} + {y}))", 1
        elif self.quantity is Quantity.ROTATION_MATRIX:
            code, sign = self.entry(2, 2).code, 1
        elif not self.is_scalar:
            code = self.entry(2).code
        return Operand(code=f"{code}.clamp(-1.0, 1.0)", reads=(self.name,)).turned(sign)

    def hangs_at_zero(self) -> bool:
        """True for an angle that is upright at half a turn: '0 hanging down', 'pi upright'."""
        turned = r"\b(?:pi|180|π)\b[^,;.]*\b(upright|up|top|vertical)"
        hanging = r"((?<![\d.])0(?:\.0)?|\bzero)\b[^,;.]*\b(hang\w*|down\w*|bottom)"
        return bool(re.search(f"{turned}|{hanging}", self.spec.doc.lower()))


def read_variable(spec: VariableSpec) -> Meaning:
    """The meaning of a variable, from its words alone."""
    name, doc = language.stems(spec.name.replace("_", " ")), language.stems(spec.doc)
    quantity = _quantity(spec, name, doc)
    measured = quantity not in (Quantity.ACTION, Quantity.TERMINATED)
    difference = r"\bminus\b|\bfrom\b.+\bto (its|the)\b.*(goal|target)"
    is_error = bool(name & language.WORDS["error"] or re.search(difference, spec.doc.lower()))
    head = language.stems(re.split(r"[,;:(]", spec.doc)[0])
    of_goal = "to" not in language.tokens(spec.doc)[:4] and not name & language.WORDS["body"]
    is_goal = bool(name & language.WORDS["goal"] or (of_goal and head & language.WORDS["goal"]))
    wanted = measured and is_goal and not is_error
    return Meaning(spec, quantity, wanted, measured and is_error, name, doc, _entry_axes(spec))


def _entry_axes(spec: VariableSpec) -> tuple[int, ...]:
    """Axis of each entry along the last dimension, from the doc's list, else from the shape."""
    count, doc = spec.shape[-1] if spec.shape else 1, spec.doc.lower()
    if count == 1:
        return _axes([f"{spec.name.replace('_', ' ')} {spec.doc}"])
    letters = ["xyz".index(letter) for letter in re.findall(r"\b([xyz])\b", doc)][:count]
    if len(letters) == count and len(set(letters)) == min(count, 3):
        return tuple(letters)
    for listing in [*re.findall(r"[:(]([^:()]*)", doc), doc]:
        parts = [part for part in re.split(r",|\band\b|;", listing) if part.strip()]
        axes = _axes(parts)
        if len(parts) == count == len(set(axes)):
            return axes
    return tuple(range(count)) if len(spec.shape) == 1 and count in (2, 3) else ()


def _axes(parts: list[str]) -> tuple[int, ...]:
    """Axes of the parts that name one."""
    words = [language.stems(part) | frozenset(language.tokens(part)) for part in parts]
    named = [[axis for axis in range(3) if each & language.WORDS["xyz"[axis]]] for each in words]
    return tuple(axes[0] for axes in named if len(axes) == 1)


def _quantity(spec: VariableSpec, name: frozenset[str], doc: frozenset[str]) -> Quantity:
    size = math.prod(spec.shape)
    if spec.name in ("actions", "terminated", "succeeded"):
        return Quantity.ACTION if spec.name == "actions" else Quantity.TERMINATED
    if spec.shape == (4,) and (name | doc) & language.WORDS["attitude"]:
        return Quantity.QUATERNION
    if spec.shape == (3, 3):
        return Quantity.ROTATION_MATRIX
    unit = spec.unit.lower().replace(" ", "").replace("·", "")
    quantity = _BY_UNIT.get(unit) or _by_words(spec, name)
    jointed = "joint" in name or (size > 1 and spec.frame.lower() in ("joint", "actuator"))
    if jointed or (quantity is Quantity.ANGULAR_VELOCITY and name & language.WORDS["turning part"]):
        return _IN_JOINTS.get(quantity, quantity)
    of_height = size == 1 and name & language.WORDS["height"]
    return Quantity.HEIGHT if quantity is Quantity.POSITION and of_height else quantity


def _by_words(spec: VariableSpec, name: frozenset[str]) -> Quantity:
    """For dimensionless variables and those without a unit."""
    doc, scalar = spec.doc.lower(), math.prod(spec.shape) == 1
    up = r"\bz.?axis\b|\bup.?(axis|vector|direction)\b|gravity"
    if spec.shape == (3,) and (name & language.WORDS["up vector"] or re.search(up, doc)):
        return Quantity.UP_VECTOR
    if scalar and doc.startswith("cosine"):
        return Quantity.COSINE
    words = name | language.stems(spec.doc.split(",")[0])
    if "angular" in words and words & language.WORDS["rate"]:
        return Quantity.ANGULAR_VELOCITY
    fitting = (
        each for each in _BY_NAME if name & language.WORDS[each] and (scalar or each != "cosine")
    )
    return Quantity[next(fitting, "other").upper()]


_PLACES = (Quantity.POSITION, Quantity.HEIGHT)
_NO_PLACE = (Quantity.ACTION, Quantity.TERMINATED, Quantity.CONTACT)
_UPRIGHT = {Quantity.COSINE: 4.0, Quantity.UP_VECTOR: 3.5, Quantity.ROTATION_MATRIX: 3.0}
_UPRIGHT |= {Quantity.QUATERNION: 2.5, Quantity.ANGLE: 2.0}
_LEVELS = dict.fromkeys((*_PLACES, Quantity.ANGLE, Quantity.JOINT_POSITION), 1.0)
_LEVELS |= {Quantity.OTHER: 0.0, Quantity.VELOCITY: -1.5, Quantity.FORCE: -1.5}


class Candidate(NamedTuple):
    """A variable, or an entry of one, that can stand for what is asked."""

    operand: Operand
    reading: Meaning
    score: float


class TaskReading:
    """The environment's public variables and the sentence, as read."""

    def __init__(self, description: TaskDescription, sentence: str) -> None:
        self.description = description
        self.can_fail = bool(description.failure_causes)
        read = language.understood_in(description, sentence)
        self.words = language.stems(read.text)
        spoken = read.spoken_of()
        known = (
            language.understood_in(description, description.sentence).text,
            description.fitness_doc,
        )
        self.goals = {each.goal: each for each in language.task_intents(read.text, *known, spoken)}
        self.unread = {goal: it for goal, it in spoken.items() if goal not in self.goals}
        """Goals of which the words say something that is not understood: nothing is paid for."""
        self.aimless = not any(intent.main for intent in self.goals.values())
        """The words ask for no more than a manner."""
        self.readings = tuple(read_variable(spec) for spec in description.public_variables())
        efforts = [each.whole() for each in self.readings if each.name == "actions"]
        self.effort = None if description.action_choices or not efforts else efforts[0]
        """The actions; None where they are choices, of which none costs more."""
        about = language.stems(" ".join(read.refused))
        named = {each.name for each in self.readings if each.name_words & about}
        meant = (each for intent in self.unread.values() for each in self.candidates(intent))
        self.left_alone = named.union(*(each.operand.reads for each in meant))
        """Variables that no term is tried for that no word asks for."""

    def of(self, *quantities: Quantity) -> list[Meaning]:
        """Variables of these quantities that are measured, not wanted."""
        return [each for each in self.readings if each.quantity in quantities and not each.is_goal]

    def asks(self, *goals: language.Goal) -> bool:
        """True where the words ask for any of these goals."""
        return any(goal in self.goals for goal in goals)

    def candidates(self, intent: language.Intent) -> list[Candidate]:
        """The operands that a term for the intent may read, best first."""
        words = intent.objects | self.words
        match intent.goal:
            case language.Goal.MOVE | language.Goal.SPIN:
                turning = intent.goal is language.Goal.SPIN
                return self._velocities(intent.axis or 0, intent.sign, words, turning)
            case language.Goal.REACH:
                return self._errors(intent.objects)
            case language.Goal.RAISE:
                base = {Quantity.HEIGHT: 2.0, Quantity.POSITION: 1.0}
                return self.matches(base, words, _height)
            case language.Goal.CHANGE:
                return self.levels(intent.objects) or self.levels(self.words)
            case language.Goal.CENTRE:
                return self.matches({Quantity.POSITION: 0.0}, self.words, _place)
            case language.Goal.UPRIGHT | language.Goal.SWING_UP:
                return self.matches(_UPRIGHT, words, Meaning.tilt)
        return []

    def matches(
        self,
        base: Mapping[Quantity, float],
        words: frozenset[str],
        operand: Callable[[Meaning], Operand | None],
        bonus: Callable[[Meaning], float] = lambda reading: 0.0,
    ) -> list[Candidate]:
        """Variables of the quantities in `base`, ranked by that score, words, body and bonus."""
        return _ranked(
            Candidate(picked, each, base[each.quantity] + each.likeness(words) + bonus(each))
            for each in self.of(*base)
            if not each.is_error and (picked := operand(each)) is not None
        )

    def speeds(self, words: frozenset[str], quantity: Quantity) -> list[Candidate]:
        return self.matches({quantity: 0.0}, words, Meaning.whole, Meaning.frame_score)

    def levels(self, words: frozenset[str]) -> list[Candidate]:
        """Scalars that the words name, to be brought up or down: an opening, an angle, a fill."""
        return _ranked(
            Candidate(each.whole(), each, spoken + _LEVELS[each.quantity] - 2.0 * each.is_error)
            for each in self.of(*_LEVELS)
            if each.is_scalar and (spoken := each.affinity(words)) > 0
        )

    def _velocities(
        self, axis: int, sign: int, words: frozenset[str], turning: bool
    ) -> list[Candidate]:
        """Signed speeds along an axis, else rates of a position; `turning`: speeds about it."""
        base = {Quantity.VELOCITY: 0.0, Quantity.POSITION: -3.0, Quantity.HEIGHT: -3.0}
        if turning:
            base = {Quantity.ANGULAR_VELOCITY: 0.0, Quantity.JOINT_VELOCITY: 0.0}

        def along(reading: Meaning) -> Operand | None:
            operand, way = reading.along(axis), sign
            if turning and reading.is_scalar:
                operand = reading.whole()
            elif reading.quantity is Quantity.JOINT_VELOCITY:
                return None
            elif reading.is_scalar:
                # a scalar's name may say that it counts backward; its doc line may name both ends
                named = language.direction(language.tokens(reading.name))
                said = named or language.direction(language.tokens(reading.spec.doc))
                axes = reading.axes if said is None else said[:1]
                fits = axes[0] == axis if axes else axis != 2
                operand, way = reading.whole() if fits else None, sign * (named or (0, 1))[1]
            if operand is not None and reading.quantity in _PLACES:
                step = rounded(self.description.control_dt)
                operand = change(operand).formed(f"({{}} / {step!r})")
            return operand and operand.turned(way)

        def bonus(reading: Meaning) -> float:
            other = turning and reading.is_scalar and reading.axes and axis not in reading.axes
            return reading.frame_score() - (3.0 if other else 0.0)

        return self.matches(base, words, along, bonus)

    def _errors(self, words: frozenset[str]) -> list[Candidate]:
        """Errors to bring to 0, and differences of a measured and a wanted place."""
        found = []
        for each in self.readings:
            if each.is_error and each.quantity not in (*_NO_PLACE, Quantity.FORCE):
                place = 3.0 if each.quantity in _PLACES else 1.0
                found.append(Candidate(each.whole(), each, place + each.likeness(words)))
        # a place that the sentence speaks of and that is not the body itself: 'reach the cup'
        places = [each for each in self.of(Quantity.POSITION) if not each.is_error]
        spoken = [each for each in places if each.name_words & words and each.centrality() == 0]
        for goal in [*(each for each in self.readings if each.is_goal), *spoken]:
            for each in self.readings:
                alike = {(r.spec.shape, r.spec.unit, r.spec.frame) for r in (each, goal)}
                measured = not (each.is_goal or each.is_error or each.quantity in _NO_PLACE)
                if each is goal or not measured or len(alike) > 1:
                    continue
                shared = (each.name_words & goal.name_words) - language.stems(
                    "goal target position"
                )
                score = each.likeness(words) + len(shared) + 0.5 * goal.affinity(words)
                score += 3.0 if each.quantity is Quantity.POSITION else 2.0
                code, reads = f"{goal.whole().code} - {each.whole().code}", (each.name, goal.name)
                off = Operand(code=code, reads=reads, scalar=each.is_scalar)
                found.append(Candidate(off, each, score))
        return _ranked(found)


def change(operand: Operand) -> Operand:
    """Difference to the previous step."""
    code = f"({operand.code} - {PREVIOUS_PREFIX}{operand.code})"
    reads = (operand.reads[0], PREVIOUS_PREFIX + operand.reads[0])
    return Operand(code=code, reads=reads, scalar=operand.scalar)


def _ranked(candidates: Iterable[Candidate]) -> list[Candidate]:
    return sorted(candidates, key=lambda each: (-each.score, each.reading.name))


def _height(reading: Meaning) -> Operand | None:
    """A height, or the z entry of a world position."""
    if reading.quantity is Quantity.HEIGHT:
        return reading.whole()
    return None if reading.spec.frame.lower() == "body" else reading.along(2)


def _place(reading: Meaning) -> Operand:
    """A position, of a place in space x and y, whose 0 is a middle to keep to."""
    if reading.is_scalar or reading.spec.shape[0] <= 2:
        return reading.whole()
    return Operand(code=f"{reading.name}[:, :2]", reads=(reading.name,), scalar=False)
