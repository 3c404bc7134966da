"""An environment and a sentence as read: which variables can stand for what is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from eureka_agent.designer.offline.language import (
    Goal,
    Intent,
    direction,
    task_intents,
    understood_in,
)
from eureka_agent.designer.offline.terms import Operand, rounded
from eureka_agent.designer.offline.variables import Meaning, Quantity, read_variable
from eureka_agent.designer.offline.words import stems, tokens
from eureka_agent.records import TaskDescription
from eureka_agent.task import PREVIOUS_PREFIX

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
        read = understood_in(description, sentence)
        self.words = stems(read.text)
        spoken = read.spoken_of()
        known = understood_in(description, description.sentence).text, description.fitness_doc
        self.goals = {each.goal: each for each in task_intents(read.text, *known, spoken)}
        self.unread = {goal: it for goal, it in spoken.items() if goal not in self.goals}
        """Goals of which the words say something that is not understood: nothing is paid for."""
        self.aimless = not any(intent.main for intent in self.goals.values())
        """The words ask for no more than a manner."""
        self.readings = tuple(read_variable(spec) for spec in description.public_variables())
        efforts = [each.whole() for each in self.readings if each.name == "actions"]
        self.effort = None if description.action_choices or not efforts else efforts[0]
        """The actions; None where they are choices, of which none costs more."""
        about = stems(" ".join(read.refused))
        named = {each.name for each in self.readings if each.name_words & about}
        meant = (each for intent in self.unread.values() for each in self.candidates(intent))
        self.left_alone = named.union(*(each.operand.reads for each in meant))
        """Variables that no term is tried for that no word asks for."""

    def of(self, *quantities: Quantity) -> list[Meaning]:
        """Variables of these quantities that are measured, not wanted."""
        return [each for each in self.readings if each.quantity in quantities and not each.is_goal]

    def asks(self, *goals: Goal) -> bool:
        """True where the words ask for any of these goals."""
        return any(goal in self.goals for goal in goals)

    def candidates(self, intent: Intent) -> list[Candidate]:
        """The operands that a term for the intent may read, best first."""
        words = intent.objects | self.words
        match intent.goal:
            case Goal.MOVE | Goal.SPIN:
                turning = intent.goal is Goal.SPIN
                return self._velocities(intent.axis or 0, intent.sign, words, turning)
            case Goal.REACH:
                return self._errors(intent.objects)
            case Goal.RAISE:
                base = {Quantity.HEIGHT: 2.0, Quantity.POSITION: 1.0}
                return self.matches(base, words, _height)
            case Goal.CHANGE:
                return self.levels(intent.objects) or self.levels(self.words)
            case Goal.CENTRE:
                return self.matches({Quantity.POSITION: 0.0}, self.words, _place)
            case Goal.UPRIGHT | Goal.SWING_UP:
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
        """Whole velocity vectors, or scalar ones, of the quantity."""
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
                named = direction(tokens(reading.name))
                said = named or direction(tokens(reading.spec.doc))
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
                shared = (each.name_words & goal.name_words) - stems("goal target position")
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
