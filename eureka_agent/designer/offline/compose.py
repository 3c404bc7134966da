"""Fresh rewards from nothing but the sentence and the variables."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from eureka_agent.designer.offline.language import HEADINGS, Goal, Intent, stem, stems
from eureka_agent.designer.offline.scene import Candidate, Meaning, Quantity, TaskReading, change
from eureka_agent.designer.offline.terms import (
    Genome,
    Operand,
    RewardTerm,
    genome_of,
    rounded,
    term,
)

ChoiceT = TypeVar("ChoiceT")
MAX_TERMS = 9
_RARELY, _OFTEN = 0.01, 0.3
"""Odds of a term of a variable that no word names, where a word names a goal and where none is."""
_MARGIN = {Goal.CHANGE: 1.0, Goal.SWING_UP: math.inf, Goal.UPRIGHT: math.inf}
"""Scores below the best that may still be taken now and then; else 2."""
_TURNING = Quantity.ANGULAR_VELOCITY
_SPEEDS = {Quantity.VELOCITY: 1.0, _TURNING: 2.0, Quantity.JOINT_VELOCITY: 10.0}
"""Speeds that matter: m/s, rad/s."""
_BEST_SMALL = {*_SPEEDS, Quantity.POSITION, Quantity.ANGLE}
_NO_GENERIC = {Quantity.QUATERNION, Quantity.ROTATION_MATRIX, Quantity.UP_VECTOR}
_NO_GENERIC |= {Quantity.ACTION, Quantity.TERMINATED}


class Theme(NamedTuple):
    """How a fresh reward is composed."""

    spread: float
    """Standard deviation of the logarithm of every weight and temperature around its default."""
    explore: float
    """Probability of another variable or form than the most plausible."""
    support: float = 1.0
    support_weight: float = 1.0
    """Factors on the odds and the weights of terms that nobody asked for."""


SENSIBLE = Theme(0.08, 0.0)
OTHER_SHAPES = Theme(0.4, 0.5)
FREE = Theme(0.8, 0.4)
THEMES = (
    SENSIBLE,
    Theme(0.2, 0.0, support=0.15),  # what was asked for and little else
    Theme(0.7, 0.1),  # the sensible terms with other weights
    Theme(0.3, 0.1, support=1.5, support_weight=2.0),  # strong care for posture and survival
    OTHER_SHAPES,
    Theme(0.4, 0.2, support_weight=0.3),  # light penalties
    FREE,
    Theme(0.8, 0.4, support=2.0),  # a free draw with many terms
)


class Dice(NamedTuple):
    """Draws of one proposal."""

    generator: random.Random
    theme: Theme = SENSIBLE

    def around(self, value: float) -> float:
        """`value` times a log-normal factor, with two significant digits."""
        return rounded(value * math.exp(self.generator.gauss(0.0, self.theme.spread)), digits=2)

    def explores(self) -> bool:
        """True where this choice is to be another than the first."""
        return self.generator.random() < self.theme.explore

    def first_or_other(self, choices: Sequence[ChoiceT]) -> ChoiceT:
        """The first choice, or now and then one of the next three. `choices` must not be empty."""
        if len(choices) == 1 or not self.explores():
            return choices[0]
        return self.generator.choice(choices[1:4])

    def includes(self, probability: float) -> bool:
        """True where an optional term of this odds is in: of the sensible theme the likely ones."""
        if self.theme is SENSIBLE:
            return probability >= 0.5
        drawn, support = self.generator.random(), self.theme.support
        return drawn * (1.0 - probability + probability * support) < probability * support


class Option(NamedTuple):
    """A term that may be added, and how likely it belongs."""

    term: RewardTerm
    probability: float
    """1.0: the words ask for it."""
    goal: Goal | None = None


class Composition(NamedTuple):
    """A genome and how it came to be."""

    genome: Genome
    notes: tuple[str, ...] = ()
    asked: tuple[tuple[str, Intent], ...] = ()
    """Names of the terms that the words ask for, each with what it serves."""


def compose(scene: TaskReading, dice: Dice) -> Composition:
    """A fresh reward: terms that the sentence asks for, some that most rewards have, and now and
    then one of a variable that no word names; more of those where nothing else can be paid."""
    terms: list[RewardTerm] = []
    served: list[tuple[str, Intent]] = []
    intents = scene.goals.values()
    swing, upright = scene.goals.get(Goal.SWING_UP), scene.goals.get(Goal.UPRIGHT)
    for intent in intents:
        if intent.main and (swing is None or intent is not upright):
            made = _asked_terms(scene, intent, dice)
            terms += made
            serves = [intent] if intent is not swing or upright is None else [intent, upright]
            served += [(each.name, it) for each in made for it in serves]
    options = optional_terms(scene, dice)
    served += [(o.term.name, scene.goals[o.goal]) for o in options if o.goal is not None]
    # survival pays alone for doing nothing, and so does a manner that only the metric's words name
    spoken = {each.goal for each in intents if scene.words & set(map(stem, each.words))}
    manners = [option for option in options if option.goal in spoken - {Goal.SURVIVE}]
    if not terms and all(option.term.penalty for option in manners):
        kept = [option for option in options if option.goal in {None, *spoken}]
        by_kind = generic_options(scene, (), dice, probability=0.6, place_weight=1.0)
        # those of variables that share words with the sentence first
        near = {each.name for each in scene.readings if each.affinity(scene.words) >= 1.0}
        by_kind.sort(key=lambda each: near.isdisjoint(each.term.arguments()))
        options = [*by_kind[:6], *kept]
    named = any(intent.main for _, intent in served)
    _take(options, terms, dice)
    _take(generic_options(scene, terms, dice, _RARELY if named else _OFTEN), terms, dice)
    if all(each.penalty for each in terms):
        terms += [term("alive", "alive", 1.0)] if scene.can_fail else []
        if scene.effort is not None:
            terms.append(term("closeness", "calm", 1.0, scene.effort, temperature=1.0))
            terms.append(term("penalty", "effort", 0.05, scene.effort))
        elif not scene.can_fail:  # what cannot fail has an end by success
            terms.append(term("success", "success", 1.0))
    return Composition(genome_of(terms), asked=tuple(served))


def _take(options: Iterable[Option], terms: list[RewardTerm], dice: Dice) -> None:
    """Add those options that the dice are for, while there is room."""
    for option in options:
        if len(terms) < MAX_TERMS and dice.includes(option.probability):
            terms.append(option.term)


def _asked_terms(scene: TaskReading, intent: Intent, dice: Dice) -> list[RewardTerm]:
    """The terms for one intent; none where no variable says anything of it."""
    found = scene.candidates(intent)
    if intent.goal is Goal.SPIN and not found:  # a rudder, a valve
        intent = intent._replace(goal=Goal.CHANGE, target=None)
        found = scene.levels(intent.objects)
    if not found:
        return []
    margin = _MARGIN.get(intent.goal, 2.0)
    chosen = dice.first_or_other([each for each in found if each.score > found[0].score - margin])
    make = _tilted if intent.goal in (Goal.SWING_UP, Goal.UPRIGHT) else _more_or_less
    return make(scene, intent, dice, chosen)


def _level(name: str, weight: float, of: Operand, low: float, high: float, up: bool) -> RewardTerm:
    if up:
        return term("level", name, weight, of, low=low, high=high)
    return term("level", name, weight, of.turned(-1), low=-high, high=-low)


def _more_or_less(
    scene: TaskReading, intent: Intent, dice: Dice, chosen: Candidate
) -> list[RewardTerm]:
    """As much speed, height or nearness as there can be, or as little; or the number asked for."""
    up, operand, scale = intent.sign > 0, chosen.operand, chosen.reading.scale()
    heading = HEADINGS[intent.axis or 0][not up]
    if intent.target is not None:
        target = rounded(abs(intent.target))
        tracked = {Goal.MOVE: (f"{heading}_speed", 0.3), Goal.SPIN: ("spin", 0.5)}
        name, least = tracked.get(intent.goal, ("height", 0.1))
        width = dice.around(max(least, 0.5 * target))
        terms = [term("tracking", name, 1.0, operand, target=target, width=width)]
        if intent.goal is Goal.MOVE:
            terms.append(term("progress", heading, dice.around(0.2), operand, cap=target))
        return terms
    weight = dice.around(1.0)
    if intent.goal in (Goal.MOVE, Goal.SPIN):
        name = heading if intent.goal is Goal.MOVE else "spin"
        cap = rounded(chosen.reading.limit() or 20.0)
        return [term("progress", name, weight, operand, cap=cap)]
    if intent.goal is Goal.REACH:
        terms = [term("closeness", "reach", weight, operand, temperature=dice.around(scale))]
        if dice.includes(0.6):
            weight, near = dice.around(0.7), dice.around(scale / 5)
            terms.append(term("closeness", "reach_closely", weight, operand, temperature=near))
        return terms
    if intent.goal is Goal.RAISE:
        return [_level("height" if up else "lowness", weight, operand, 0.0, dice.around(scale), up)]
    low, high = map(rounded, chosen.reading.spec.range or (0.0, scale))
    name = "opening" if "open" in intent.words else "change"
    return [_level(name, weight, operand, low, high, up)]


def _tilted(scene: TaskReading, intent: Intent, dice: Dice, chosen: Candidate) -> list[RewardTerm]:
    """Upright, and slow there. Where it has to swing up, rest is a part of being upright: a search
    else soon finds that whirling passes the top again and again."""
    tilt, own = chosen.operand, chosen.reading.name_words - stems("angle upright cosine")
    turning = [each.operand for each in scene.speeds(own, _TURNING)[:1]]
    if intent.goal is Goal.UPRIGHT:
        weight, sharpness = dice.around(1.0), dice.first_or_other([1.0, 2.0, 4.0])
        terms = [term("upright", "upright", weight, tilt, sharpness=sharpness)]
        if turning and dice.includes(0.7):
            weight, calm = dice.around(0.4), dice.around(2.0)
            still = term("closeness", "still_at_top", weight, *turning, temperature=calm)
            terms.append(still.gated("upright"))
        return terms
    if turning and dice.explores():
        turning = []
    kind = "upright_calm" if turning else "upright"
    shapes = [("upright", dice.around(1.0), 1.0, dice.around(5.0))]
    if dice.includes(0.8):
        shapes.append(("balanced", dice.around(1.0), dice.around(8.0), dice.around(2.0)))
    terms = []
    for name, weight, sharpness, calm_speed in shapes:
        numbers = {"sharpness": sharpness} | ({"calm_speed": calm_speed} if turning else {})
        terms.append(term(kind, name, weight, tilt, *turning, **numbers))
    return terms


def optional_terms(scene: TaskReading, dice: Dice) -> list[Option]:
    """Every term that nobody need ask for and that the variables allow, in a fixed order, with
    drawn weights. One that the words ask for is certain."""
    found = []
    for maker in (_ends, _posture, _rest, _centre, _thrift, _joints):
        for option in maker(scene, dice):
            if option.probability < 1.0:
                lighter = option.term.scaled("weight", dice.theme.support_weight)
                option = option._replace(term=lighter)
            found.append(option)
    return found


def _option(scene: TaskReading, goal: Goal, term: RewardTerm, probability: float) -> Option:
    """An option that is certain where the words ask for it."""
    if goal in scene.goals:
        return Option(term, 1.0, goal)
    return Option(term, 0.0 if goal in scene.unread else probability)


def generic_options(
    scene: TaskReading,
    terms: Iterable[RewardTerm],
    dice: Dice,
    probability: float,
    place_weight: float = 0.3,
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
        hangs = reading.quantity is Quantity.ANGLE and reading.hangs_at_zero()
        if reading.is_error or (reading.quantity in _BEST_SMALL and not hangs):
            scale = speed or reading.scale() * (1.0 if reading.limit() else 3.0)
            near = {"temperature": dice.around(scale)}
            made = term("closeness", f"small_{name}", weight, reading.whole(), **near)
        else:
            up = not dice.explores()
            low, top = map(rounded, reading.spec.range or (0.0, reading.scale()))
            if low >= top:  # a range without a width tells nothing
                continue
            high = f"high_{name}" if up else f"low_{name}"
            made = _level(high, weight, reading.whole(), low, top, up)
        found.append(Option(made, probability))
    return found


def _ends(scene: TaskReading, dice: Dice) -> Iterator[Option]:
    """A wage for surviving, a price on failing, a prize for a success."""
    description, asked = scene.description, scene.asks(Goal.SURVIVE)
    wins, speeds = description.success_causes, scene.asks(Goal.MOVE, Goal.SPIN)
    # a success would end the pay as a failure does; a price on failing serves both
    if scene.can_fail and not wins:
        # a speed can be 0 or negative, so that failing at once may pay; places and postures pay for
        # every step anyway
        likely = 0.85 if speeds else 0.05 if scene.asks(Goal.SWING_UP) else 0.15
        alive = term("alive", "alive", dice.around(1.0 if asked else 0.5))
        yield _option(scene, Goal.SURVIVE, alive, likely)
    if scene.can_fail and Goal.SURVIVE not in scene.unread:
        price = term("failure", "failure", dice.around(8.0))
        likely = 0.3 if speeds else 0.8
        yield Option(price, 1.0, Goal.SURVIVE) if asked and wins else Option(price, likely)
    if wins:
        # twice the steps that an end by success forgoes, as far as a discount of 0.99 looks ahead
        steps = min(100, description.max_episode_length)
        prize = term("success", "success", dice.around(2.0 * steps))
        # another task of the environment may have nothing to do with it
        told = stems(f"{description.sentence} {description.fitness_doc}") | scene.words
        yield Option(prize, 1.0 if any(stems(cause) & told for cause in wins) else 0.4)


def _posture(scene: TaskReading, dice: Dice) -> Iterator[Option]:
    found = scene.candidates(Intent(Goal.UPRIGHT))
    body = [each for each in found if each.reading.centrality() >= 0]
    known = scene.asks(Goal.UPRIGHT, Goal.SWING_UP, Goal.CHANGE)
    if not body or known or Goal.UPRIGHT in scene.unread:
        return
    gate = "reach" if scene.asks(Goal.REACH) and dice.includes(0.5) else None
    weight, sharpness = dice.around(0.2), dice.first_or_other([1.0, 2.0, 4.0])
    upright = term("upright", "upright", weight, body[0].operand, sharpness=sharpness)
    yield Option(upright.gated(gate), 0.6)


def _rest(scene: TaskReading, dice: Dice) -> Iterator[Option]:
    """Low speed, at the goal where there is one."""
    asked, alone = scene.asks(Goal.STILL), scene.aimless
    gates = {Goal.REACH: "reach", Goal.UPRIGHT: "upright", Goal.RAISE: "height"}
    gate = next((name for goal, name in gates.items() if goal in scene.goals), None)
    if Goal.STILL in scene.unread or (not asked and gate != "reach"):
        return
    for quantity, name in ((Quantity.VELOCITY, "slow"), (_TURNING, "turning_slowly")):
        found = scene.speeds(scene.words, quantity)
        if not found or (found[0].reading.centrality() < 0 and not alone):
            continue
        weight, calm = dice.around(1.0 if alone else 0.3), dice.around(_SPEEDS[quantity])
        slow = term("closeness", name, weight, found[0].operand, temperature=calm).gated(gate)
        likely = 1.0 if alone else 0.9
        yield Option(slow, likely, Goal.STILL) if asked else Option(slow, 0.5)


def _centre(scene: TaskReading, dice: Dice) -> Iterator[Option]:
    asked, found = scene.asks(Goal.CENTRE), scene.candidates(Intent(Goal.CENTRE))
    if not asked:
        elsewhere = scene.asks(Goal.MOVE, Goal.REACH, Goal.RAISE, Goal.CHANGE)
        around_0 = [each for each in found if sum(each.reading.spec.range or [math.inf]) == 0.0]
        found = [] if elsewhere else around_0
    if not found:
        return
    reading, place = found[0].reading, found[0].operand
    weight = dice.around(1.0 if asked and scene.aimless else 0.3 if asked else 0.2)
    numbers, kind = {"temperature": dice.around(reading.scale())}, "closeness"
    if place.scalar:
        numbers, kind = {"target": 0.0, "width": numbers["temperature"]}, "tracking"
    centred = term(kind, "centred", weight, place, **numbers)
    # what is centred from the start must not be paid for staying there and hanging
    gate = "upright" if scene.asks(Goal.SWING_UP) and not asked else None
    yield _option(scene, Goal.CENTRE, centred.gated(gate), 0.45)


def _thrift(scene: TaskReading, dice: Dice) -> Iterator[Option]:
    """Prices on going astray, on effort, on jumps."""
    if scene.asks(Goal.MOVE):
        across = 1 - (scene.goals[Goal.MOVE].axis or 0)
        speeds = {Quantity.VELOCITY: 0.0}, scene.words, lambda each: each.along(across)
        for found in scene.matches(*speeds, Meaning.frame_score)[:1]:
            yield Option(term("penalty", "drift", dice.around(0.1), found.operand), 0.35)
    if scene.effort is not None:
        # what has to gather energy first is held back by a price on it
        small, likely = (0.02, 0.3) if scene.asks(Goal.SWING_UP, Goal.RAISE) else (0.05, 0.75)
        weight = dice.around(0.3 if scene.asks(Goal.EFFORT) else small)
        yield _option(scene, Goal.EFFORT, term("penalty", "effort", weight, scene.effort), likely)
        weight = dice.around(0.2 if scene.asks(Goal.SMOOTH) else 0.03)
        jumps = term("penalty", "smoothness", weight, change(scene.effort))
        yield _option(scene, Goal.SMOOTH, jumps, 0.2)


def _joints(scene: TaskReading, dice: Dice) -> Iterator[Option]:
    """Prices on wild joints and on joints near their limits."""
    for joints in scene.of(Quantity.JOINT_VELOCITY)[:1]:
        share = joints.whole().formed(f"({{}} / {rounded(joints.limit() or 10.0)!r})")
        yield Option(term("penalty", "joint_speed", dice.around(0.03), share), 0.15)
    ranged = [each for each in scene.of(Quantity.JOINT_POSITION) if each.limit() is not None]
    for joints in ranged[:1]:
        low, high = map(rounded, joints.spec.range or (-1.0, 1.0))
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        share = joints.whole().formed(f"(({{}} - {middle!r}) / {half!r}).abs()")
        yield Option(term("penalty_limits", "limits", dice.around(0.5), share, soft=0.9), 0.3)
