"""From an intent to the variables that can express it: candidates with a score and the reason, best
first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eureka_agent.designer.offline.operands import Operand, leading, one_entry, rounded, whole
from eureka_agent.designer.offline.semantics import Quantity, Reading, read_variable
from eureka_agent.designer.offline.terms import Term
from eureka_agent.designer.offline.vocabulary import direction
from eureka_agent.designer.offline.words import stem, stem_set, stems, tokens
from eureka_agent.records import TaskDescription


@dataclass(frozen=True)
class Candidate:
    """A variable, or an entry of one, that can stand for what is asked."""

    operand: Operand
    reading: Reading
    score: float
    sign: int = 1
    goal: Operand | None = None
    """The place to get to, for a pair of a position and a goal."""

    @property
    def name(self) -> str:
        return self.reading.name


class Scene:
    """The environment's public variables as read, with the sentence's words at hand."""

    def __init__(
        self, description: TaskDescription, sentence: str, refused: frozenset[str] = frozenset()
    ) -> None:
        """`refused`: traits of terms that are not to be composed."""
        self.description = description
        self._refused = refused
        self.words = stems(sentence)
        self.readings = tuple(read_variable(spec) for spec in description.public_variables())
        self.step_s = rounded(description.control_dt)

    def of(self, *quantities: Quantity) -> list[Reading]:
        """Variables of these quantities that are measured, not wanted."""
        return [
            reading
            for reading in self.readings
            if reading.quantity in quantities and not reading.is_goal
        ]

    def named(self, name: str) -> Reading | None:
        """The variable called `name`."""
        return next((reading for reading in self.readings if reading.name == name), None)

    @property
    def efforts(self) -> Reading | None:
        """The variable `actions`; None where they are choices, of which none costs more."""
        return None if self.description.action_choices else self.named("actions")

    def refuses(self, term: Term) -> bool:
        """True where this run's recorded episodes speak against the term."""
        return term.trait() in self._refused

    @property
    def can_fail(self) -> bool:
        """Whether episodes can end by failure."""
        return bool(self.description.failure_causes) and self.named("terminated") is not None


def _ranked(candidates: Iterable[Candidate]) -> list[Candidate]:
    return sorted(candidates, key=lambda candidate: (-candidate.score, candidate.name))


def _says_direction(reading: Reading) -> tuple[int, int] | None:
    """Direction that a scalar's own words give: its name before its doc line."""
    return direction([stem(word) for word in tokens(reading.name)]) or direction(
        [stem(word) for word in tokens(reading.spec.doc)]
    )


def _entries_along(reading: Reading, axis: int) -> Operand | None:
    """The entry of a vector along an axis."""
    if len(reading.spec.shape) != 1 or axis not in reading.axes:
        return None
    return one_entry(reading, reading.axes.index(axis)) if reading.size > 1 else whole(reading)


def _frame_score(reading: Reading) -> float:
    return {"world": 1.0, "body": 0.2, "joint": -4.0}.get(reading.spec.frame.lower(), 0.0)


def velocities(scene: Scene, axis: int | None, sign: int, words: frozenset[str]) -> list[Candidate]:
    """Signed speeds along `axis` (forward where it is None). Falls back on the rate of change of a
    position."""
    wanted = 0 if axis is None else axis
    found: list[Candidate] = []
    for quantity, penalty in (
        (Quantity.VELOCITY, 0.0),
        (Quantity.POSITION, -3.0),
        (Quantity.HEIGHT, -3.0),
    ):
        for reading in scene.of(quantity):
            if reading.is_error:
                continue
            score = penalty + reading.affinity(words) + reading.centrality() + _frame_score(reading)
            operand, direction_sign = _along(reading, wanted, sign, axis is None)
            if operand is None:
                continue
            if quantity is not Quantity.VELOCITY:
                operand = operand.model_copy(update={"differenced": True, "step_s": scene.step_s})
            found.append(Candidate(operand, reading, score, direction_sign))
    return _ranked(found)


def _along(reading: Reading, wanted: int, sign: int, free: bool) -> tuple[Operand | None, int]:
    """The part of a variable along an axis and the sign to use it with. `free`: any axis will do
    for a lone scalar."""
    if not reading.is_scalar:
        return _entries_along(reading, wanted), sign
    said = _says_direction(reading)
    if said is not None:
        axis, its_sign = said
        own = {direction([stem(word)]) for word in tokens(reading.name)} - {None}
        # a doc line may name both ends ('positive forward'); only the name's word turns the sign
        positive = its_sign if own else 1
        return (whole(reading), sign * positive) if axis == wanted else (None, sign)
    if reading.axes:
        return (whole(reading), sign) if reading.axes[0] == wanted else (None, sign)
    return (whole(reading), sign) if free or wanted != 2 else (None, sign)


def angular_velocities(
    scene: Scene, axis: int | None, sign: int, words: frozenset[str]
) -> list[Candidate]:
    """Signed turning speeds about `axis`, or of the joint that the words name."""
    found = []
    names = {0: stem_set("roll"), 1: stem_set("pitch"), 2: stem_set("yaw turn heading")}
    for reading in scene.of(Quantity.ANGULAR_VELOCITY, Quantity.JOINT_VELOCITY):
        score = reading.affinity(words) + reading.centrality() + _frame_score(reading)
        if reading.is_scalar:
            other = any(reading.name_words & names[each] for each in names if each != axis)
            found.append(Candidate(whole(reading), reading, score - 3.0 * other, sign))
        else:
            operand = _entries_along(reading, 2 if axis is None else axis)
            if operand is not None and reading.quantity is Quantity.ANGULAR_VELOCITY:
                found.append(Candidate(operand, reading, score + 1.0, sign))
    return _ranked(found)


_UPRIGHT_BASE = {
    Quantity.COSINE: 4.0,
    Quantity.UP_VECTOR: 3.5,
    Quantity.ROTATION_MATRIX: 3.0,
    Quantity.QUATERNION: 2.5,
    Quantity.ANGLE: 2.0,
}


def uprights(scene: Scene, words: frozenset[str]) -> list[Candidate]:
    """Variables that tell how upright something stands: a cosine, an up vector, a rotation, an
    angle."""
    found = []
    leaning = stem_set(
        "upright pitch roll tilt lean inclination vertical pole pendulum torso body base trunk"
    )
    for reading in scene.of(*_UPRIGHT_BASE):
        if reading.is_error:
            continue
        score = _UPRIGHT_BASE[reading.quantity] + reading.affinity(words) + reading.centrality()
        if reading.quantity in (Quantity.COSINE, Quantity.ANGLE):
            if not reading.is_scalar:
                continue
            spoken = reading.name_words | reading.doc_words
            if not spoken & leaning or reading.name_words & stem_set("yaw heading rudder steering"):
                continue
            score += 1.0 * bool(reading.name_words & stem_set("upright")) - 1.0 * bool(
                reading.name_words & stem_set("roll")
            )
            operand = whole(reading)
        elif reading.quantity is Quantity.ROTATION_MATRIX:
            operand = one_entry(reading, 2, 2)
        elif reading.quantity is Quantity.UP_VECTOR:
            operand = one_entry(reading, 2)
        else:
            operand = whole(reading)
        found.append(Candidate(operand, reading, score))
    return _ranked(found)


def goals(scene: Scene, words: frozenset[str]) -> list[Candidate]:
    """Errors to bring to 0, and pairs of a measured and a wanted place of the same shape and
    unit."""
    found = []
    for reading in scene.readings:
        if reading.is_error and reading.quantity not in (
            Quantity.ACTION,
            Quantity.TERMINATED,
            Quantity.CONTACT,
            Quantity.FORCE,
        ):
            place = 1.0 if reading.quantity in (Quantity.POSITION, Quantity.HEIGHT) else -1.0
            found.append(
                Candidate(
                    whole(reading),
                    reading,
                    2.0 + place + reading.affinity(words) + reading.centrality(),
                )
            )
    wanted = [reading for reading in scene.readings if reading.is_goal]
    wanted += [
        reading
        for reading in scene.of(Quantity.POSITION)
        if not reading.is_error and _is_destination(reading, words)
    ]
    for goal in wanted:
        for reading in scene.readings:
            if (
                reading is goal
                or reading.is_goal
                or reading.is_error
                or not _comparable(reading, goal)
            ):
                continue
            kinship = len((reading.name_words & goal.name_words) - stem_set("goal target position"))
            score = (
                2.0
                + kinship
                + reading.affinity(words)
                + 0.5 * goal.affinity(words)
                + reading.centrality()
            )
            score += 1.0 if reading.quantity is Quantity.POSITION else 0.0
            found.append(Candidate(whole(reading), reading, score, goal=whole(goal)))
    return _ranked(found)


def _is_destination(reading: Reading, words: frozenset[str]) -> bool:
    """A place that the sentence speaks of and that is not the body itself: 'reach the cup'."""
    return bool(reading.name_words & words) and reading.centrality() == 0


def _comparable(reading: Reading, goal: Reading) -> bool:
    return (
        reading.spec.shape == goal.spec.shape
        and reading.spec.unit == goal.spec.unit
        and reading.spec.frame == goal.spec.frame
        and reading.quantity not in (Quantity.ACTION, Quantity.TERMINATED, Quantity.CONTACT)
    )


def heights(scene: Scene, words: frozenset[str]) -> list[Candidate]:
    """Heights, and the z entries of world positions."""
    found = []
    for reading in scene.of(Quantity.HEIGHT):
        found.append(
            Candidate(whole(reading), reading, 2.0 + reading.affinity(words) + reading.centrality())
        )
    for reading in scene.of(Quantity.POSITION):
        operand = (
            None
            if reading.is_error or reading.spec.frame.lower() == "body"
            else _entries_along(reading, 2)
        )
        if operand is not None:
            found.append(
                Candidate(operand, reading, 1.0 + reading.affinity(words) + reading.centrality())
            )
    return _ranked(found)


def levels(scene: Scene, words: frozenset[str]) -> list[Candidate]:
    """Scalars that the words name, to be brought up or down: an opening, an angle, a fill."""
    usable = (
        Quantity.POSITION,
        Quantity.HEIGHT,
        Quantity.ANGLE,
        Quantity.JOINT_POSITION,
        Quantity.OTHER,
        Quantity.FORCE,
        Quantity.VELOCITY,
    )
    found = []
    for reading in scene.of(*usable):
        spoken = reading.affinity(words)
        if reading.is_scalar and spoken > 0:
            preference = {Quantity.VELOCITY: -1.5, Quantity.FORCE: -1.5, Quantity.OTHER: 0.0}.get(
                reading.quantity, 1.0
            )
            found.append(
                Candidate(whole(reading), reading, spoken + preference - 2.0 * reading.is_error)
            )
    return _ranked(found)


def centred(scene: Scene, words: frozenset[str]) -> list[Candidate]:
    """Positions whose 0 is a middle to keep to: of scalars, those with a range around 0 or whose
    doc line says so."""
    found = []
    for reading in scene.of(Quantity.POSITION):
        if reading.is_error:
            continue
        symmetric = reading.spec.range is not None and abs(sum(reading.spec.range)) < 1e-6
        spoken = bool(reading.doc_words & stem_set("centre middle origin"))
        operand = whole(reading) if reading.is_scalar else leading(reading, 2)
        score = (
            reading.affinity(words)
            + reading.centrality()
            + 2.0 * symmetric
            + 1.0 * spoken
            + 0.5 * reading.is_scalar
        )
        found.append(Candidate(operand, reading, score))
    return _ranked(found)


def speeds(scene: Scene, words: frozenset[str], *quantities: Quantity) -> list[Candidate]:
    """Whole velocity vectors (or scalars) of the given quantities."""
    found = []
    for reading in scene.of(*quantities):
        if not reading.is_error:
            found.append(
                Candidate(
                    whole(reading),
                    reading,
                    reading.affinity(words) + reading.centrality() + 0.5 * _frame_score(reading),
                )
            )
    return _ranked(found)


def sideways(scene: Scene, axis: int, words: frozenset[str]) -> list[Candidate]:
    """Horizontal speed across the wanted direction."""
    across = 1 - axis if axis in (0, 1) else 0
    found = []
    for reading in scene.of(Quantity.VELOCITY):
        operand = None if reading.is_scalar else _entries_along(reading, across)
        if operand is not None:
            found.append(
                Candidate(
                    operand,
                    reading,
                    reading.affinity(words) + reading.centrality() + _frame_score(reading),
                )
            )
    return _ranked(found)


def spoken_of(scene: Scene, words: frozenset[str]) -> list[Candidate]:
    """Variables that share words with the sentence, in their name or twice in their doc line. Words
    that most variables have do not count."""
    common = {
        word
        for word in words
        if 2 * sum(word in reading.doc_words | reading.name_words for reading in scene.readings)
        > len(scene.readings)
    }
    words = words - common
    found = []
    for reading in scene.readings:
        if reading.quantity in (Quantity.ACTION, Quantity.TERMINATED):
            continue
        if (affinity := reading.affinity(words)) >= 1.0:
            found.append(Candidate(whole(reading), reading, affinity))
    return _ranked(found)


def best(candidates: Sequence[Candidate]) -> Candidate | None:
    """The first, or None."""
    return candidates[0] if candidates else None
