"""Terms that nobody asked for but that most good rewards have: survival, posture, rest at the goal,
small effort; and one for each variable."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from eureka_agent.designer.offline import matching
from eureka_agent.designer.offline.asked import length_scale
from eureka_agent.designer.offline.dice import Dice
from eureka_agent.designer.offline.matching import Candidate, Scene
from eureka_agent.designer.offline.operands import rounded, whole
from eureka_agent.designer.offline.postures import upright_term
from eureka_agent.designer.offline.semantics import Quantity, upright_angle
from eureka_agent.designer.offline.terms import (
    Alive,
    Failure,
    Level,
    Limit,
    Penalty,
    Smoothness,
    Stillness,
    Success,
    Term,
    Tracking,
)
from eureka_agent.designer.offline.vocabulary import Goal, Intent
from eureka_agent.designer.offline.words import stem_set, stems

_SPEED_SCALES = {
    Quantity.VELOCITY: 1.0,
    Quantity.ANGULAR_VELOCITY: 2.0,
    Quantity.JOINT_VELOCITY: 10.0,
}
"""Speeds that matter: m/s, rad/s."""
_FAR = 3.0
"""Multiple of the distance that matters, for a place of which nobody says how far away it may
be."""
_LOOKS_AHEAD = 100
"""Steps whose pay counts for a policy that discounts by 0.99."""
_BEST_SMALL = frozenset({*_SPEED_SCALES, Quantity.POSITION, Quantity.ANGLE})
_ROTATIONS = (Quantity.QUATERNION, Quantity.ROTATION_MATRIX, Quantity.UP_VECTOR)
_NO_GENERIC = frozenset({*_ROTATIONS, Quantity.ACTION, Quantity.TERMINATED})


@dataclass(frozen=True)
class Option:
    """A term that may be added, how likely it belongs, and why."""

    term: Term
    probability: float
    """1.0: the words ask for it."""
    why: str
    goal: Goal | None = None
    """The goal that the words name and that it serves; None: they name none."""


def optional_terms(scene: Scene, intents: Iterable[Intent], dice: Dice) -> list[Option]:
    """Every optional term that the variables allow, in a fixed order. Weights are drawn around
    their defaults."""
    goals = {intent.goal: intent for intent in intents}
    weighted = dice.theme.support_weight
    found: list[Option] = []
    for maker in (
        _alive,
        _failure,
        _success,
        _posture,
        _rest,
        _centre,
        _drift,
        _effort,
        _smoothness,
        _joint_speed,
        _limits,
    ):
        for option in maker(scene, goals, dice):
            if option.probability < 1.0:
                term = option.term.model_copy(
                    update={"weight": rounded(option.term.weight * weighted, digits=2)}
                )
                option = replace(option, term=term)
            found.append(option)
    return [option for option in found if not scene.refuses(option.term)]


def generic_options(
    scene: Scene, terms: Iterable[Term], dice: Dice, probability: float, place_weight: float = 0.3
) -> list[Option]:
    """A term for each variable that `terms` do not read, by its kind alone: errors, places, tilts
    and speeds small, contacts and levels either way."""
    read = {name for term in terms for name in term.arguments()}
    found = []
    for reading in scene.readings:
        if reading.name in read or reading.is_goal or reading.quantity in _NO_GENERIC:
            continue
        operand, speed = whole(reading), _SPEED_SCALES.get(reading.quantity)
        # where something is or what it touches is what tasks are about, its speed is how they are
        # done
        weight = dice.around(0.3 if speed else place_weight)
        hangs = reading.quantity is Quantity.ANGLE and upright_angle(reading.spec) != 0.0
        if reading.is_error or (reading.quantity in _BEST_SMALL and not hangs):
            scale = speed or length_scale(reading) * (1.0 if reading.limit() else _FAR)
            name = f"small_{reading.name}"
            term: Term = Stillness(
                name=name, weight=weight, operand=operand, temperature=dice.around(scale)
            )
            why = (
                f"{reading.name} is left alone by the words, and 0 is the likeliest aim of its kind"
            )
        else:
            sign = -1 if dice.explores() else 1
            low, high = map(rounded, reading.spec.range or (0.0, length_scale(reading)))
            if low >= high:  # a range without a width tells nothing
                continue
            name = f"{'high' if sign > 0 else 'low'}_{reading.name}"
            term = Level(name=name, weight=weight, operand=operand, sign=sign, low=low, high=high)
            why = (
                f"{reading.name} is left alone by the words; {'more' if sign > 0 else 'less'} of it"
                " is tried"
            )
        if not scene.refuses(term):
            found.append(Option(term, probability, why))
    return found


def _alive(scene: Scene, goals: dict[Goal, Intent], dice: Dice) -> list[Option]:
    if not scene.can_fail:
        return []
    if (
        scene.description.success_causes
    ):  # a success would end the pay as a failure does; a price on failing serves both
        return []
    asked = Goal.SURVIVE in goals
    why = (
        "the words ask to survive"
        if asked
        else f"episodes end early by {', '.join(scene.description.failure_causes)}"
    )
    # a speed can be 0 or negative, so that failing at once may pay; places and postures pay for
    # every step anyway
    likely = (
        0.85 if goals.keys() & {Goal.MOVE, Goal.SPIN} else 0.05 if Goal.SWING_UP in goals else 0.15
    )
    term = Alive(name="alive", weight=dice.around(1.0 if asked else 0.5))
    return [Option(term, 1.0 if asked else likely, why, Goal.SURVIVE if asked else None)]


def _failure(scene: Scene, goals: dict[Goal, Intent], dice: Dice) -> list[Option]:
    if not scene.can_fail:
        return []
    likely = 0.3 if goals.keys() & {Goal.MOVE, Goal.SPIN} else 0.8
    why = (
        f"an end by {', '.join(scene.description.failure_causes)} forfeits all that could still be"
        " earned"
    )
    term = Failure(name="failure", weight=dice.around(8.0))
    if scene.description.success_causes and Goal.SURVIVE in goals:
        return [Option(term, 1.0, why, Goal.SURVIVE)]
    return [Option(term, likely, why)]


def _success(scene: Scene, goals: dict[Goal, Intent], dice: Dice) -> list[Option]:
    """A prize of twice the steps that an end by success forgoes, as far as a policy looks ahead."""
    causes = scene.description.success_causes
    if not causes or scene.named("succeeded") is None:
        return []
    steps = min(_LOOKS_AHEAD, scene.description.max_episode_length)
    why = f"an end by {', '.join(causes)} is a success, and ends what every further step would pay"
    # another task of the environment may have nothing to do with it
    told = stems(f"{scene.description.sentence} {scene.description.fitness_doc}") | scene.words
    likely = 1.0 if any(stems(cause) & told for cause in causes) else 0.4
    return [Option(Success(name="success", weight=dice.around(2.0 * steps)), likely, why)]


def _posture(scene: Scene, goals: dict[Goal, Intent], dice: Dice) -> list[Option]:
    if Goal.UPRIGHT in goals or Goal.SWING_UP in goals:
        return []
    body = [
        candidate
        for candidate in matching.uprights(scene, scene.words)
        if candidate.reading.centrality() >= 0
    ]
    if not body or goals.keys() & {Goal.CHANGE}:
        return []
    gated = "reach" if Goal.REACH in goals and dice.includes(0.5) else None
    term = upright_term(
        body[0], "upright", dice.around(0.2), sharpness=dice.first_or_other([1.0, 2.0, 4.0])
    )
    return [
        Option(
            term.model_copy(update={"gate": gated}),
            0.6,
            f"{body[0].reading.name} tells whether the body is upright",
        )
    ]


def _rest(scene: Scene, goals: dict[Goal, Intent], dice: Dice) -> list[Option]:
    """Low speed, at the goal where there is one."""
    asked = Goal.STILL in goals
    if not asked and Goal.REACH not in goals:
        return []
    gate = (
        "reach"
        if Goal.REACH in goals
        else "upright"
        if Goal.UPRIGHT in goals
        else "height"
        if Goal.RAISE in goals
        else None
    )
    found = []
    alone = gate is None and not any(intent.main for intent in goals.values())
    for name, quantity, weight, temperature in (
        ("slow", Quantity.VELOCITY, 0.3, 1.0),
        ("turning_slowly", Quantity.ANGULAR_VELOCITY, 0.3, 2.0),
    ):
        speed = matching.best(matching.speeds(scene, scene.words, quantity))
        if speed is None or (speed.reading.centrality() < 0 and not alone):
            continue
        term = Stillness(
            name=name,
            weight=dice.around(1.0 if alone else weight),
            gate=gate,
            operand=speed.operand,
            temperature=dice.around(temperature),
        )
        where = " once it is there" if gate else ""
        found.append(
            Option(
                term,
                (1.0 if alone else 0.9) if asked else 0.5,
                f"{speed.reading.name} should be small{where}",
                Goal.STILL if asked else None,
            )
        )
    return found


def _centre(scene: Scene, goals: dict[Goal, Intent], dice: Dice) -> list[Option]:
    asked = Goal.CENTRE in goals
    place: Candidate | None = matching.best(matching.centred(scene, scene.words))
    if place is None or (
        not asked
        and (
            goals.keys() & {Goal.MOVE, Goal.REACH, Goal.RAISE, Goal.CHANGE}
            or place.reading.spec.range is None
        )
    ):
        return []
    alone = asked and not any(intent.main for intent in goals.values())
    weight = dice.around(1.0 if alone else 0.3 if asked else 0.2)
    width = dice.around(length_scale(place.reading))
    why = (
        "the words ask for the centre"
        if asked
        else f"{place.reading.name} has limits, and the middle is far from them"
    )
    # what is centred from the start must not be paid for staying there and hanging
    gate = "upright" if Goal.SWING_UP in goals and not asked else None
    if place.operand.is_scalar:
        term: Term = Tracking(
            name="centred", weight=weight, gate=gate, operand=place.operand, width=width
        )
        return [Option(term, 1.0 if asked else 0.45, why, Goal.CENTRE if asked else None)]
    term = Stillness(name="centred", weight=weight, operand=place.operand, temperature=width)
    return [Option(term, 1.0 if asked else 0.3, why, Goal.CENTRE if asked else None)]


def _drift(scene: Scene, goals: dict[Goal, Intent], dice: Dice) -> list[Option]:
    intent = goals.get(Goal.MOVE)
    across = (
        matching.best(matching.sideways(scene, intent.axis or 0, scene.words))
        if intent is not None
        else None
    )
    if across is None:
        return []
    term = Penalty(name="drift", weight=dice.around(0.1), operand=across.operand)
    return [
        Option(
            term, 0.35, f"speed across the wanted direction, {across.operand.code()}, leads astray"
        )
    ]


def _effort(scene: Scene, goals: dict[Goal, Intent], dice: Dice) -> list[Option]:
    actions = scene.efforts
    if actions is None:
        return []
    asked = Goal.EFFORT in goals
    # what has to gather energy first is held back by a price on it
    energetic = bool(goals.keys() & {Goal.SWING_UP, Goal.RAISE})
    weight = dice.around(0.3 if asked else 0.02 if energetic else 0.05)
    why = (
        "the words ask to save effort"
        if asked
        else "a small price on effort keeps actions off their bounds"
    )
    term = Penalty(name="effort", weight=weight, operand=whole(actions))
    return [
        Option(
            term, 1.0 if asked else 0.3 if energetic else 0.75, why, Goal.EFFORT if asked else None
        )
    ]


def _smoothness(scene: Scene, goals: dict[Goal, Intent], dice: Dice) -> list[Option]:
    actions = scene.efforts
    if actions is None:
        return []
    asked = Goal.SMOOTH in goals
    term = Smoothness(
        name="smoothness", weight=dice.around(0.2 if asked else 0.03), operand=whole(actions)
    )
    why = "the words ask for smooth actions" if asked else "jumps of the actions cost a little"
    return [Option(term, 1.0 if asked else 0.2, why, Goal.SMOOTH if asked else None)]


def _joint_speed(scene: Scene, goals: dict[Goal, Intent], dice: Dice) -> list[Option]:
    joints = scene.of(Quantity.JOINT_VELOCITY)
    if not joints:
        return []
    scale = joints[0].limit() or 10.0
    term = Penalty(
        name="joint_speed", weight=dice.around(0.03), operand=whole(joints[0]), scale=rounded(scale)
    )
    return [Option(term, 0.15, f"{joints[0].name} far from 0 is wild motion")]


def _limits(scene: Scene, goals: dict[Goal, Intent], dice: Dice) -> list[Option]:
    found = []
    for reading in scene.of(Quantity.JOINT_POSITION):
        if (
            reading.spec.range is not None
            and reading.limit() is not None
            and reading.name_words & stem_set("joint joints position angle")
        ):
            low, high = (rounded(bound) for bound in reading.spec.range)
            term = Limit(
                name="limits", weight=dice.around(0.5), operand=whole(reading), low=low, high=high
            )
            found.append(Option(term, 0.3, f"{reading.name} should stay off its limits"))
    return found[:1]
