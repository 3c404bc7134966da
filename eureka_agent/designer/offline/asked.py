"""Terms for what the sentence asks."""

from __future__ import annotations

import math

from eureka_agent.designer.offline import matching
from eureka_agent.designer.offline.dice import Dice
from eureka_agent.designer.offline.matching import Candidate, Scene
from eureka_agent.designer.offline.semantics import Quantity, Reading
from eureka_agent.designer.offline.terms import FORMS, Operand, Term, rounded, term
from eureka_agent.designer.offline.vocabulary import Goal, Intent
from eureka_agent.designer.offline.words import stem_set

_HEADINGS = (("forward", "backward"), ("leftward", "rightward"), ("upward", "downward"))
_LENGTH_SCALE = {"m": 1.0, "rad": 0.5, "deg": 30.0}
"""A distance that matters, by unit, where a variable has no range."""
_MARGIN = {Goal.CHANGE: 1.0, Goal.SWING_UP: math.inf, Goal.UPRIGHT: math.inf}
"""Scores below the best that may still be taken now and then; else 2."""


Made = tuple[str, list[Term]]
"""What the words ask for, in words, and the terms for it."""


def asked_terms(scene: Scene, intent: Intent, dice: Dice) -> Made | None:
    """The terms for one intent and the sentence of the reasoning that says why; None where no
    variable can express it."""
    goal, found = intent.goal, _candidates(scene, intent)
    if goal is Goal.SPIN and not found:  # a rudder, a valve
        goal, found = Goal.CHANGE, matching.levels(scene, intent.objects)
    if not found:
        return None
    margin = _MARGIN.get(goal, 2.0)
    chosen = dice.first_or_other([each for each in found if each.score > found[0].score - margin])
    make = _tracked if intent.target is not None else _MAKERS[goal]
    what, terms = make(scene, intent, dice, chosen)
    words = " and ".join(f"'{word}'" for word in intent.words[:3])
    asks = "asks" if len(intent.words) == 1 else "ask"
    doc = chosen.reading.spec.doc.rstrip(".")
    return f"{words} {asks} for {what}: {chosen.operand.code} ({doc}).", terms


def _candidates(scene: Scene, intent: Intent) -> list[Candidate]:
    words = intent.objects | scene.words
    match intent.goal:
        case Goal.MOVE:
            return matching.velocities(scene, intent.axis, intent.sign, words)
        case Goal.SPIN:
            return matching.angular_velocities(scene, intent.axis, intent.sign, words)
        case Goal.REACH:
            return matching.goals(scene, intent.objects)
        case Goal.RAISE:
            return matching.heights(scene, words)
        case Goal.CHANGE:
            return matching.levels(scene, intent.objects) or matching.levels(scene, scene.words)
        case _:
            return matching.uprights(scene, words)


def length_scale(reading: Reading) -> float:
    """A distance that matters for this variable: a third of its range, else by its unit."""
    limit = reading.limit()
    if limit is None:
        return _LENGTH_SCALE.get(reading.spec.unit.lower(), 1.0)
    return rounded(limit / 3.0)


def _towards(chosen: Candidate) -> Operand:
    """The operand with its wanted direction upwards."""
    code = f"{'-' if chosen.sign < 0 else ''}{chosen.operand.code}"
    return chosen.operand.model_copy(update={"code": code})


def _heading(intent: Intent) -> str:
    return _HEADINGS[intent.axis or 0][intent.sign < 0]


def _tracked(scene: Scene, intent: Intent, dice: Dice, chosen: Candidate) -> Made:
    """A number that the words give."""
    target = rounded(chosen.sign * abs(intent.target or 0.0))
    name, least = {
        Goal.MOVE: (f"{_heading(intent)}_speed", 0.3),
        Goal.SPIN: ("spin", 0.5),
        Goal.RAISE: ("height", 0.1),
    }[intent.goal]
    width = dice.around(max(least, 0.5 * abs(target)))
    terms = [term("tracking", name, 1.0, chosen.operand, target=target, width=width)]
    if intent.goal is Goal.MOVE:
        cap = {"cap": abs(target)}
        terms += [term("progress", _heading(intent), dice.around(0.2), _towards(chosen), **cap)]
    return f"{target:g}", terms


def _move(scene: Scene, intent: Intent, dice: Dice, chosen: Candidate) -> Made:
    name, cap = _heading(intent), rounded(chosen.reading.limit() or 20.0)
    undirected = "" if intent.axis is not None else " (no direction is named, so along x)"
    progress = term("progress", name, dice.around(1.0), _towards(chosen), cap=cap)
    return f"speed {name}{undirected}", [progress]


def _spin(scene: Scene, intent: Intent, dice: Dice, chosen: Candidate) -> Made:
    return "turning", [term("progress", "spin", dice.around(1.0), _towards(chosen), cap=10.0)]


def _reach(scene: Scene, intent: Intent, dice: Dice, chosen: Candidate) -> Made:
    scale, off = length_scale(chosen.reading), chosen.operand
    kind, name = ("distance", "reach") if intent.sign > 0 else ("distance_away", "away")
    terms = [term(kind, name, dice.around(1.0), off, temperature=dice.around(scale))]
    if intent.sign > 0 and dice.includes(0.6):
        weight = dice.around(0.7)
        terms.append(term(kind, f"{name}_closely", weight, off, temperature=dice.around(scale / 5)))
    return f"a {'small' if intent.sign > 0 else 'large'} distance", terms


def _raise(scene: Scene, intent: Intent, dice: Dice, chosen: Candidate) -> Made:
    kind, name, rate, what = (
        ("level", "height", "rise", "height")
        if intent.sign > 0
        else ("level_down", "lowness", "sinking", "a low height")
    )
    weight, high = dice.around(1.0), dice.around(length_scale(chosen.reading))
    terms = [term(kind, name, weight, chosen.operand, low=0.0, high=high)]
    rising = matching.velocities(scene, 2, intent.sign, intent.objects | scene.words)
    if rising and dice.includes(0.5):
        terms.append(term("progress", rate, dice.around(0.3), _towards(rising[0]), cap=10.0))
    return what, terms


def _change(scene: Scene, intent: Intent, dice: Dice, chosen: Candidate) -> Made:
    low, high = map(rounded, chosen.reading.spec.range or (0.0, length_scale(chosen.reading)))
    kind, what = ("level", "more of it") if intent.sign > 0 else ("level_down", "less of it")
    name = "opening" if "open" in intent.words else "change"
    return what, [term(kind, name, dice.around(1.0), chosen.operand, low=low, high=high)]


def _swing_up(scene: Scene, intent: Intent, dice: Dice, chosen: Candidate) -> Made:
    whirl = _turning(scene, chosen)
    # without a price on speed the best that is soon found is whirling: it passes the top again and
    # again
    calm = whirl[:0] if whirl and dice.explores() else whirl
    operands, kind = (chosen.operand, *calm), "upright_calm" if calm else "upright"
    terms = []
    for name, sharp, fast in (("upright", 1.0, 5.0), ("balanced", 8.0, 2.0)):
        if name == "balanced" and not dice.includes(0.8):
            break
        weight, sharpness = dice.around(1.0), sharp if sharp == 1.0 else dice.around(sharp)
        numbers = {"sharpness": sharpness, "calm_speed": dice.around(fast)}
        numbers = {number: numbers[number] for number in FORMS[kind].numbers}
        terms.append(term(kind, name, weight, *operands, **numbers))
    slow = f", at little {calm[0].reads[0]}" if calm else ""
    return f"the cosine of the angle, from hanging down to upright{slow}", terms


def _stay_upright(scene: Scene, intent: Intent, dice: Dice, chosen: Candidate) -> Made:
    weight, sharpness = dice.around(1.0), dice.first_or_other([1.0, 2.0, 4.0])
    terms = [term("upright", "upright", weight, chosen.operand, sharpness=sharpness)]
    turning = _turning(scene, chosen)
    if turning and dice.includes(0.7):
        weight, calm = dice.around(0.4), dice.around(2.0)
        still = term("stillness", "still_at_top", weight, *turning, temperature=calm)
        terms.append(still.gated("upright"))
    return "an upright posture", terms


def _turning(scene: Scene, upright: Candidate) -> list[Operand]:
    """Angular velocity of the thing whose tilt `upright` tells, if there is one."""
    own = upright.reading.name_words - stem_set("angle upright cosine")
    return [each.operand for each in matching.speeds(scene, own, Quantity.ANGULAR_VELOCITY)[:1]]


_MAKERS = {
    Goal.MOVE: _move,
    Goal.SPIN: _spin,
    Goal.REACH: _reach,
    Goal.SWING_UP: _swing_up,
    Goal.UPRIGHT: _stay_upright,
    Goal.RAISE: _raise,
    Goal.CHANGE: _change,
}
