"""Terms that nobody asked for but that most good rewards have, and one for each variable."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from eureka_agent.designer.offline import matching
from eureka_agent.designer.offline.dice import Dice
from eureka_agent.designer.offline.matching import Scene
from eureka_agent.designer.offline.semantics import Quantity, Reading, hangs_at_zero
from eureka_agent.designer.offline.terms import Term, rounded, term
from eureka_agent.designer.offline.vocabulary import Goal
from eureka_agent.designer.offline.words import stems

_TURNING = Quantity.ANGULAR_VELOCITY
_SPEEDS = {Quantity.VELOCITY: 1.0, _TURNING: 2.0, Quantity.JOINT_VELOCITY: 10.0}
"""Speeds that matter: m/s, rad/s."""
_FAR = 3.0
"""Multiple of the distance that matters, for a place that has no range."""
_LOOKS_AHEAD = 100
"""Steps whose pay counts for a policy that discounts by 0.99."""
_BEST_SMALL = {*_SPEEDS, Quantity.POSITION, Quantity.ANGLE}
_ROTATIONS = {Quantity.QUATERNION, Quantity.ROTATION_MATRIX, Quantity.UP_VECTOR}
_NO_GENERIC = {*_ROTATIONS, Quantity.ACTION, Quantity.TERMINATED}


class Option(NamedTuple):
    """A term that may be added, how likely it belongs, and why."""

    term: Term
    probability: float
    """1.0: the words ask for it."""
    why: str
    goal: Goal | None = None
    """The goal that it serves, where the words name one."""


def optional_terms(scene: Scene, dice: Dice) -> list[Option]:
    """Every optional term that the variables allow, in a fixed order, with drawn weights."""
    found = []
    for maker in (_ends, _posture, _rest, _centre, _thrift, _joints):
        for option in maker(scene, dice):
            if option.probability < 1.0:
                lighter = option.term.scaled("weight", dice.theme.support_weight)
                option = option._replace(term=lighter)
            found.append(option)
    return found


def _option(scene: Scene, goal: Goal, term: Term, probability: float, why: str) -> Option:
    """An option that is certain where the words ask for it."""
    if goal in scene.goals:
        return Option(term, 1.0, f"the words ask to {goal}", goal)
    probability = 0.0 if goal in scene.unread else probability
    return Option(term, probability, why)


def generic_options(
    scene: Scene, terms: Iterable[Term], dice: Dice, probability: float, place_weight: float = 0.3
) -> list[Option]:
    """A term for each variable that `terms` do not read, by its kind: errors, places, tilts and
    speeds small, contacts and levels either way."""
    read = {name for term in terms for name in term.arguments()}
    found = []
    for reading in scene.readings:
        name, speed = reading.name, _SPEEDS.get(reading.quantity)
        unfit = reading.is_goal or reading.quantity in _NO_GENERIC
        if unfit or name in read | scene.left_alone:
            continue
        # places and contacts are what tasks are about, speeds how they are done
        weight = dice.around(0.3 if speed else place_weight)
        hangs = reading.quantity is Quantity.ANGLE and hangs_at_zero(reading.spec)
        if reading.is_error or (reading.quantity in _BEST_SMALL and not hangs):
            scale = speed or reading.scale() * (1.0 if reading.limit() else _FAR)
            calm = dice.around(scale)
            made = term("stillness", f"small_{name}", weight, reading.whole(), temperature=calm)
            aim = "0 is the likeliest aim of its kind"
        else:
            kind, high, aim = "level", "high", "more of it is tried"
            if dice.explores():
                kind, high, aim = "level_down", "low", "less of it is tried"
            low, top = map(rounded, reading.spec.range or (0.0, reading.scale()))
            if low >= top:  # a range without a width tells nothing
                continue
            made = term(kind, f"{high}_{name}", weight, reading.whole(), low=low, high=top)
        why = f"{name} is left alone by the words, and {aim}"
        found.append(Option(made, probability, why))
    return found


def _ends(scene: Scene, dice: Dice) -> Iterator[Option]:
    """A wage for surviving, a price on failing, a prize for a success."""
    description, asked = scene.description, scene.asks(Goal.SURVIVE)
    causes, wins = (", ".join(e) for e in (description.failure_causes, description.success_causes))
    speeds = scene.asks(Goal.MOVE, Goal.SPIN)
    # a success would end the pay as a failure does; a price on failing serves both
    if scene.can_fail and not wins:
        # a speed can be 0 or negative, so that failing at once may pay; places and postures pay for
        # every step anyway
        likely = 0.85 if speeds else 0.05 if scene.asks(Goal.SWING_UP) else 0.15
        alive = term("alive", "alive", dice.around(1.0 if asked else 0.5))
        yield _option(scene, Goal.SURVIVE, alive, likely, f"episodes end early by {causes}")
    if scene.can_fail and Goal.SURVIVE not in scene.unread:
        why = f"an end by {causes} forfeits all that could still be earned"
        price = term("failure", "failure", dice.around(8.0))
        serves = Goal.SURVIVE if asked and wins else None
        yield Option(price, 1.0 if serves else 0.3 if speeds else 0.8, why, serves)
    if wins:
        # twice the steps that an end by success forgoes, as far as a policy looks ahead
        steps = min(_LOOKS_AHEAD, description.max_episode_length)
        prize = term("success", "success", dice.around(2.0 * steps))
        # another task of the environment may have nothing to do with it
        told = stems(f"{description.sentence} {description.fitness_doc}") | scene.words
        likely = 1.0 if any(stems(cause) & told for cause in description.success_causes) else 0.4
        why = f"an end by {wins} is a success, and ends what every further step would pay"
        yield Option(prize, likely, why)


def _posture(scene: Scene, dice: Dice) -> Iterator[Option]:
    found = matching.uprights(scene, scene.words)
    body = [each for each in found if each.reading.centrality() >= 0]
    known = scene.asks(Goal.UPRIGHT, Goal.SWING_UP, Goal.CHANGE)
    if not body or known or Goal.UPRIGHT in scene.unread:
        return
    gate = "reach" if scene.asks(Goal.REACH) and dice.includes(0.5) else None
    weight, sharpness = dice.around(0.2), dice.first_or_other([1.0, 2.0, 4.0])
    upright = term("upright", "upright", weight, body[0].operand, sharpness=sharpness)
    why = f"{body[0].reading.name} tells whether the body is upright"
    yield Option(upright.gated(gate), 0.6, why)


def _rest(scene: Scene, dice: Dice) -> Iterator[Option]:
    """Low speed, at the goal where there is one."""
    asked, alone = scene.asks(Goal.STILL), scene.aimless
    gates = {Goal.REACH: "reach", Goal.UPRIGHT: "upright", Goal.RAISE: "height"}
    gate = next((name for goal, name in gates.items() if goal in scene.goals), None)
    if Goal.STILL in scene.unread or (not asked and gate != "reach"):
        return
    for quantity, name in ((Quantity.VELOCITY, "slow"), (_TURNING, "turning_slowly")):
        found = matching.speeds(scene, scene.words, quantity)
        if not found or (found[0].reading.centrality() < 0 and not alone):
            continue
        weight, calm = dice.around(1.0 if alone else 0.3), dice.around(_SPEEDS[quantity])
        slow = term("stillness", name, weight, found[0].operand, temperature=calm).gated(gate)
        why = f"{found[0].reading.name} should be small{' once it is there' if gate else ''}"
        likely, serves = (1.0 if alone else 0.9, Goal.STILL) if asked else (0.5, None)
        yield Option(slow, likely, why, serves)


def _centre(scene: Scene, dice: Dice) -> Iterator[Option]:
    asked, found = scene.asks(Goal.CENTRE), matching.centred(scene)
    if not asked:
        elsewhere = scene.asks(Goal.MOVE, Goal.REACH, Goal.RAISE, Goal.CHANGE)
        around_0 = [each for each in found if sum(each.reading.spec.range or [math.inf]) == 0.0]
        found = [] if elsewhere else around_0
    if not found:
        return
    reading, place = found[0].reading, found[0].operand
    weight = dice.around(1.0 if asked and scene.aimless else 0.3 if asked else 0.2)
    kind, number = ("tracking_zero", "width") if place.scalar else ("stillness", "temperature")
    centred = term(kind, "centred", weight, place, **{number: dice.around(reading.scale())})
    # what is centred from the start must not be paid for staying there and hanging
    gate = "upright" if scene.asks(Goal.SWING_UP) and not asked else None
    why = f"{reading.name} has limits, and the middle is far from them"
    yield _option(scene, Goal.CENTRE, centred.gated(gate), 0.45, why)


def _thrift(scene: Scene, dice: Dice) -> Iterator[Option]:
    """Prices on going astray, on effort, on jumps."""
    if scene.asks(Goal.MOVE):
        across = 1 - (scene.goals[Goal.MOVE].axis or 0)
        speeds = {Quantity.VELOCITY: 0.0}, scene.words, lambda each: each.along(across)
        for found in scene.matches(*speeds, Reading.frame_score)[:1]:
            why = f"speed across the wanted direction, {found.operand.code}, leads astray"
            yield Option(term("penalty", "drift", dice.around(0.1), found.operand), 0.35, why)
    if scene.effort is not None:
        # what has to gather energy first is held back by a price on it
        small, likely = (0.02, 0.3) if scene.asks(Goal.SWING_UP, Goal.RAISE) else (0.05, 0.75)
        weight = dice.around(0.3 if scene.asks(Goal.EFFORT) else small)
        effort = term("penalty", "effort", weight, scene.effort)
        why = "a small price on effort keeps actions off their bounds"
        yield _option(scene, Goal.EFFORT, effort, likely, why)
        weight = dice.around(0.2 if scene.asks(Goal.SMOOTH) else 0.03)
        jumps = term("penalty_jumps", "smoothness", weight, matching.change(scene.effort))
        yield _option(scene, Goal.SMOOTH, jumps, 0.2, "jumps of the actions cost a little")


def _joints(scene: Scene, dice: Dice) -> Iterator[Option]:
    """Prices on wild joints and on joints near their limits."""
    for joints in scene.of(Quantity.JOINT_VELOCITY)[:1]:
        scale, weight = rounded(joints.limit() or 10.0), dice.around(0.03)
        made = term("penalty_scaled", "joint_speed", weight, joints.whole(), scale=scale)
        yield Option(made, 0.15, f"{joints.name} far from 0 is wild motion")
    ranged = [each for each in scene.of(Quantity.JOINT_POSITION) if each.limit() is not None]
    for joints in ranged[:1]:
        low, high = map(rounded, joints.spec.range or (-1.0, 1.0))
        bounds = {"low": low, "high": high, "soft": 0.9}
        made = term("penalty_limits", "limits", dice.around(0.5), joints.whole(), **bounds)
        yield Option(made, 0.3, f"{joints.name} should stay off its limits")
