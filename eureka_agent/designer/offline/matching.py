"""From words to the variables that can stand for them: candidates with a score, best first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from eureka_agent.designer.offline.semantics import (
    Quantity,
    Reading,
    hangs_at_zero,
    read_variable,
    scalar_last,
    upright_sign,
)
from eureka_agent.designer.offline.terms import Genome, Operand, Term, rounded
from eureka_agent.designer.offline.vocabulary import Goal, direction, task_intents
from eureka_agent.designer.offline.words import stem, stem_set, stems, tokens
from eureka_agent.records import TaskDescription
from eureka_agent.task import PREVIOUS_PREFIX

_FRAMES = {"world": 1.0, "body": 0.2, "joint": -4.0}
_TURNS = (stem_set("roll"), stem_set("pitch"), stem_set("yaw turn heading"))
_UPRIGHT = {
    Quantity.COSINE: 4.0,
    Quantity.UP_VECTOR: 3.5,
    Quantity.ROTATION_MATRIX: 3.0,
    Quantity.QUATERNION: 2.5,
    Quantity.ANGLE: 2.0,
}
_LEANING = stem_set(
    "upright pitch roll tilt lean inclination vertical pole pendulum torso body base trunk"
)
_STEERS = stem_set("yaw heading rudder steering")
_LEVELS = {
    Quantity.POSITION: 1.0,
    Quantity.HEIGHT: 1.0,
    Quantity.ANGLE: 1.0,
    Quantity.JOINT_POSITION: 1.0,
    Quantity.OTHER: 0.0,
    Quantity.VELOCITY: -1.5,
    Quantity.FORCE: -1.5,
}
_NO_PLACE = (Quantity.ACTION, Quantity.TERMINATED, Quantity.CONTACT)


class Candidate(NamedTuple):
    """A variable, or an entry of one, that can stand for what is asked."""

    operand: Operand
    reading: Reading
    score: float

    def turned(self, sign: int) -> Candidate:
        """The candidate times 1 or −1."""
        code = f"{'-' if sign < 0 else ''}{self.operand.code}"
        return self._replace(operand=self.operand.model_copy(update={"code": code}))


class Scene:
    """The environment's public variables and the sentence, as read."""

    def __init__(
        self, description: TaskDescription, sentence: str, refused: Iterable[Genome] = ()
    ) -> None:
        """`refused`: rewards whose leading term is not to be composed again."""
        paying = [[term for term in genome.terms if not term.penalty] for genome in refused]
        leading = [max(terms, key=lambda term: term.weight) for terms in paying if terms]
        self._refused = frozenset(term.trait() for term in leading)
        self.description = description
        self.words = stems(sentence)
        known = description.sentence, description.fitness_doc
        self.goals = {each.goal: each for each in task_intents(sentence, *known)}
        self.readings = tuple(read_variable(spec) for spec in description.public_variables())

    def of(self, *quantities: Quantity) -> list[Reading]:
        """Variables of these quantities that are measured, not wanted."""
        return [each for each in self.readings if each.quantity in quantities and not each.is_goal]

    def named(self, name: str) -> Reading | None:
        """The variable called `name`."""
        return next((reading for reading in self.readings if reading.name == name), None)

    @property
    def efforts(self) -> Reading | None:
        """The variable `actions`; None where they are choices, of which none costs more."""
        return None if self.description.action_choices else self.named("actions")

    def asks(self, *goals: Goal) -> bool:
        """True where the words ask for any of these goals."""
        return any(goal in self.goals for goal in goals)

    @property
    def aimless(self) -> bool:
        """True where the words ask for no more than a manner."""
        return not any(intent.main for intent in self.goals.values())

    def refuses(self, term: Term) -> bool:
        """True where this run's recorded episodes speak against the term."""
        return term.trait() in self._refused

    @property
    def can_fail(self) -> bool:
        """True where episodes can end by failure."""
        return bool(self.description.failure_causes) and self.named("terminated") is not None

    def matches(
        self,
        base: Mapping[Quantity, float],
        words: frozenset[str],
        operand: Callable[[Reading], Operand | None],
        bonus: Callable[[Reading], float] = lambda reading: 0.0,
        errors: bool = False,
    ) -> list[Candidate]:
        """Variables of the quantities in `base`, for which `operand` gives something, ranked by
        base score, words, place in the body and bonus. `errors`: differences to a goal as well."""
        return _ranked(
            Candidate(picked, each, base[each.quantity] + each.likeness(words) + bonus(each))
            for each in self.of(*base)
            if (errors or not each.is_error) and (picked := operand(each)) is not None
        )


def _ranked(candidates: Iterable[Candidate]) -> list[Candidate]:
    return sorted(candidates, key=lambda each: (-each.score, each.reading.name))


def whole(reading: Reading) -> Operand:
    """All entries of a variable; a variable with a single entry becomes a scalar."""
    if reading.is_scalar:
        return entry(reading, *(0 for _ in reading.spec.shape))
    code = f"{reading.name}.flatten(1)" if len(reading.spec.shape) > 1 else reading.name
    return Operand(code=code, reads=(reading.name,), scalar=False)


def entry(reading: Reading, *index: int) -> Operand:
    """The entry at `index`."""
    code = f"{reading.name}[:, {', '.join(map(str, index))}]" if index else reading.name
    return Operand(code=code, reads=(reading.name,))


def change(operand: Operand, step_s: float | None = None) -> Operand:
    """Difference of this step's and the previous step's value; with `step_s` its rate, per
    second."""
    code = f"({operand.code} - {PREVIOUS_PREFIX}{operand.code})"
    code = code if step_s is None else f"({code} / {rounded(step_s)!r})"
    reads = (operand.reads[0], PREVIOUS_PREFIX + operand.reads[0])
    return Operand(code=code, reads=reads, scalar=operand.scalar)


def entry_along(reading: Reading, axis: int) -> Operand | None:
    """The entry of a vector along an axis."""
    if reading.is_scalar or len(reading.spec.shape) != 1 or axis not in reading.axes:
        return None
    return entry(reading, reading.axes.index(axis))


def frame_score(reading: Reading) -> float:
    """The world's frame before the body's, joints last."""
    return _FRAMES.get(reading.spec.frame.lower(), 0.0)


def velocities(scene: Scene, axis: int | None, sign: int, words: frozenset[str]) -> list[Candidate]:
    """Signed speeds along `axis` (forward where it is None). Falls back on the rate of change of a
    position."""
    base = {Quantity.VELOCITY: 0.0, Quantity.POSITION: -3.0, Quantity.HEIGHT: -3.0}

    def along(reading: Reading) -> Operand | None:
        operand = entry_along(reading, axis or 0)
        if reading.is_scalar:
            said = _name_says(reading) or direction(map(stem, tokens(reading.spec.doc)))
            axes = reading.axes if said is None else said[:1]
            fits = axes[0] == (axis or 0) if axes else axis != 2
            operand = whole(reading) if fits else None
        if operand is None or reading.quantity is Quantity.VELOCITY:
            return operand
        return change(operand, scene.description.control_dt)

    found = scene.matches(base, words, along, frame_score)
    # a scalar's name may say that it counts backward; its doc line may name both ends
    said = [_name_says(each.reading) if each.reading.is_scalar else None for each in found]
    signs = [sign if way is None else sign * way[1] for way in said]
    return [each.turned(its) for each, its in zip(found, signs, strict=True)]


def _name_says(reading: Reading) -> tuple[int, int] | None:
    """Direction that a variable's name gives."""
    return direction(map(stem, tokens(reading.name)))


def angular_velocities(
    scene: Scene, axis: int | None, sign: int, words: frozenset[str]
) -> list[Candidate]:
    """Signed turning speeds about `axis`, or of the joint that the words name."""
    base = {Quantity.ANGULAR_VELOCITY: 0.0, Quantity.JOINT_VELOCITY: 0.0}

    def about(reading: Reading) -> Operand | None:
        if reading.is_scalar:
            return whole(reading)
        of_joints = reading.quantity is Quantity.JOINT_VELOCITY
        return None if of_joints else entry_along(reading, 2 if axis is None else axis)

    def bonus(reading: Reading) -> float:
        other = any(reading.name_words & each for at, each in enumerate(_TURNS) if at != axis)
        return frame_score(reading) + (-3.0 * other if reading.is_scalar else 1.0)

    found = scene.matches(base, words, about, bonus, errors=True)
    return [each.turned(sign) for each in found]


def uprights(scene: Scene, words: frozenset[str]) -> list[Candidate]:
    """Cosines of tilts, from variables that tell how upright something stands: a cosine, an up
    vector, a rotation, an angle."""

    def bonus(reading: Reading) -> float:
        if reading.quantity not in (Quantity.COSINE, Quantity.ANGLE):
            return 0.0
        upright, roll = (reading.name_words & stem_set(each) for each in ("upright", "roll"))
        return 1.0 * bool(upright) - 1.0 * bool(roll)

    return scene.matches(_UPRIGHT, words, _tilt, bonus)


def _tilt(reading: Reading) -> Operand | None:
    """The cosine of the tilt as code: 1 upright, −1 upside down."""
    name, spec, code, sign = reading.name, reading.spec, whole(reading).code, 1
    if reading.quantity in (Quantity.COSINE, Quantity.ANGLE):
        leaning = (reading.name_words | reading.doc_words) & _LEANING
        if not reading.is_scalar or not leaning or reading.name_words & _STEERS:
            return None
    if reading.quantity is Quantity.QUATERNION:
        x, y = (0, 1) if scalar_last(spec) else (1, 2)
        # the z entry of the body's z axis in the frame that the quaternion rotates to
        code = f"(1.0 - 2.0 * ({name}[:, {x}].square() + {name}[:, {y}].square()))"
    elif reading.quantity is Quantity.ANGLE:
        angle = f"torch.deg2rad({code})" if spec.unit.lower().startswith("deg") else code
        code, sign = f"torch.cos({angle})", -1 if hangs_at_zero(spec) else 1
    elif reading.quantity is Quantity.ROTATION_MATRIX:
        code = entry(reading, 2, 2).code
    else:
        code, sign = code if reading.is_scalar else entry(reading, 2).code, upright_sign(spec)
    code = code if reading.quantity is Quantity.ANGLE else f"{code}.clamp(-1.0, 1.0)"
    return Operand(code=f"{'-' if sign < 0 else ''}{code}", reads=(name,))


def goals(scene: Scene, words: frozenset[str]) -> list[Candidate]:
    """Errors to bring to 0, and differences of a measured and a wanted place of the same shape and
    unit."""
    found = []
    for each in scene.readings:
        if each.is_error and each.quantity not in (*_NO_PLACE, Quantity.FORCE):
            place = 3.0 if each.quantity in (Quantity.POSITION, Quantity.HEIGHT) else 1.0
            found.append(Candidate(whole(each), each, place + each.likeness(words)))
    # a place that the sentence speaks of and that is not the body itself: 'reach the cup'
    places = [each for each in scene.of(Quantity.POSITION) if not each.is_error]
    spoken = [each for each in places if each.name_words & words and each.centrality() == 0]
    for goal in [*(each for each in scene.readings if each.is_goal), *spoken]:
        for each in scene.readings:
            alike = {(r.spec.shape, r.spec.unit, r.spec.frame) for r in (each, goal)}
            measured = not each.is_goal and not each.is_error and each.quantity not in _NO_PLACE
            if each is goal or not measured or len(alike) > 1:
                continue
            shared = (each.name_words & goal.name_words) - stem_set("goal target position")
            score = each.likeness(words) + len(shared) + 0.5 * goal.affinity(words)
            score += 3.0 if each.quantity is Quantity.POSITION else 2.0
            code, reads = f"{whole(goal).code} - {whole(each).code}", (each.name, goal.name)
            off = Operand(code=code, reads=reads, scalar=each.is_scalar)
            found.append(Candidate(off, each, score))
    return _ranked(found)


def heights(scene: Scene, words: frozenset[str]) -> list[Candidate]:
    """Heights, and the z entries of world positions."""

    def height(reading: Reading) -> Operand | None:
        if reading.quantity is Quantity.HEIGHT:
            return whole(reading)
        return None if reading.spec.frame.lower() == "body" else entry_along(reading, 2)

    return scene.matches({Quantity.HEIGHT: 2.0, Quantity.POSITION: 1.0}, words, height)


def levels(scene: Scene, words: frozenset[str]) -> list[Candidate]:
    """Scalars that the words name, to be brought up or down: an opening, an angle, a fill."""
    return _ranked(
        Candidate(whole(each), each, spoken + _LEVELS[each.quantity] - 2.0 * each.is_error)
        for each in scene.of(*_LEVELS)
        if each.is_scalar and (spoken := each.affinity(words)) > 0
    )


def centred(scene: Scene, words: frozenset[str]) -> list[Candidate]:
    """Positions whose 0 is a middle to keep to: of scalars, those with a range around 0 or whose
    doc line says so."""

    def place(reading: Reading) -> Operand:
        if reading.is_scalar or reading.spec.shape[0] <= 2:
            return whole(reading)
        return Operand(code=f"{reading.name}[:, :2]", reads=(reading.name,), scalar=False)

    def bonus(reading: Reading) -> float:
        symmetric = reading.spec.range is not None and abs(sum(reading.spec.range)) < 1e-6
        spoken = bool(reading.doc_words & stem_set("centre middle origin"))
        return 2.0 * symmetric + 1.0 * spoken + 0.5 * reading.is_scalar

    return scene.matches({Quantity.POSITION: 0.0}, words, place, bonus)


def speeds(scene: Scene, words: frozenset[str], quantity: Quantity) -> list[Candidate]:
    """Whole velocity vectors, or scalar ones, of the quantity."""
    return scene.matches({quantity: 0.0}, words, whole, lambda each: 0.5 * frame_score(each))
