"""Terms for what the sentence asks."""

from __future__ import annotations

import math
from typing import NamedTuple

from eureka_agent.designer.offline import matching
from eureka_agent.designer.offline.dice import Dice
from eureka_agent.designer.offline.matching import Candidate, Scene
from eureka_agent.designer.offline.semantics import Quantity, Reading
from eureka_agent.designer.offline.terms import Operand, Term, rounded, term
from eureka_agent.designer.offline.vocabulary import Goal, Intent
from eureka_agent.designer.offline.words import stem_set

_HEADINGS = (("forward", "backward"), ("leftward", "rightward"), ("upward", "downward"))
_LENGTH_SCALE = {"m": 1.0, "rad": 0.5, "deg": 30.0}
"""A distance that matters, by unit, where a variable has no range."""
_MARGIN = {Goal.CHANGE: 1.0, Goal.SWING_UP: math.inf, Goal.UPRIGHT: math.inf}
"""Scores below the best that may still be taken now and then; else 2."""


class Asked(NamedTuple):
    """Terms of one intent and the sentence of the reasoning that says why."""

    terms: list[Term]
    note: str


def asked_terms(scene: Scene, intent: Intent, dice: Dice) -> Asked | None:
    """The terms for one intent, or None where no variable can express it."""
    goal, found = intent.goal, _candidates(scene, intent)
    if goal is Goal.SPIN and not found:  # a rudder, a valve
        goal, found = Goal.CHANGE, matching.levels(scene, intent.objects)
    if not found:
        return None
    margin = _MARGIN.get(goal, 2.0)
    chosen = dice.first_or_other([each for each in found if each.score > found[0].score - margin])
    what, terms = {
        Goal.MOVE: _move,
        Goal.SPIN: _spin,
        Goal.REACH: _reach,
        Goal.SWING_UP: _swing_up,
        Goal.UPRIGHT: _stay_upright,
        Goal.RAISE: _raise,
        Goal.CHANGE: _change,
    }[goal](scene, intent, dice, chosen)
    words = " and ".join(f"'{word}'" for word in intent.words[:3])
    asks = "asks" if len(intent.words) == 1 else "ask"
    doc = chosen.reading.spec.doc.rstrip(".")
    return Asked(terms, f"{words} {asks} for {what}: {chosen.operand.code} ({doc}).")


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


def upright_term(
    name: str,
    weight: float,
    tilt: Operand,
    sharpness: float = 1.0,
    turning: Operand | None = None,
    calm_speed: float = 5.0,
) -> Term:
    """A tilt's cosine, and with `turning` only while that is small."""
    if turning is None:
        return term("upright", name, weight, tilt, sharpness=sharpness)
    calm = {"sharpness": sharpness, "calm_speed": calm_speed}
    return term("upright_calm", name, weight, tilt, turning, **calm)


def _towards(chosen: Candidate) -> Operand:
    """The operand with its wanted direction upwards."""
    code = f"{'-' if chosen.sign < 0 else ''}{chosen.operand.code}"
    return chosen.operand.model_copy(update={"code": code})


def _move(scene: Scene, intent: Intent, dice: Dice, chosen: Candidate) -> tuple[str, list[Term]]:
    name = _HEADINGS[intent.axis or 0][intent.sign < 0]
    undirected = "" if intent.axis is not None else " (no direction is named, so along x)"
    what = f"speed {name}{undirected}"
    if intent.target is None:
        cap = rounded(chosen.reading.limit() or 20.0)
        return what, [term("progress", name, dice.around(1.0), _towards(chosen), cap=cap)]
    target = rounded(chosen.sign * abs(intent.target))
    width = dice.around(max(0.3, 0.5 * abs(target)))
    speed = term("tracking", f"{name}_speed", 1.0, chosen.operand, target=target, width=width)
    cap = abs(target)
    return what, [speed, term("progress", name, dice.around(0.2), _towards(chosen), cap=cap)]


def _spin(scene: Scene, intent: Intent, dice: Dice, chosen: Candidate) -> tuple[str, list[Term]]:
    if intent.target is None:
        return "turning", [term("progress", "spin", dice.around(1.0), _towards(chosen), cap=10.0)]
    target = rounded(chosen.sign * abs(intent.target))
    width = dice.around(max(0.5, 0.5 * abs(target)))
    return "turning", [term("tracking", "spin", 1.0, chosen.operand, target=target, width=width)]


def _reach(scene: Scene, intent: Intent, dice: Dice, chosen: Candidate) -> tuple[str, list[Term]]:
    scale, off = length_scale(chosen.reading), chosen.operand
    kind, name = ("distance", "reach") if intent.sign > 0 else ("distance_away", "away")
    terms = [term(kind, name, dice.around(1.0), off, temperature=dice.around(scale))]
    if intent.sign > 0 and dice.includes(0.6):
        weight = dice.around(0.7)
        terms.append(term(kind, f"{name}_closely", weight, off, temperature=dice.around(scale / 5)))
    return f"a {'small' if intent.sign > 0 else 'large'} distance", terms


def _raise(scene: Scene, intent: Intent, dice: Dice, chosen: Candidate) -> tuple[str, list[Term]]:
    up, height = intent.sign > 0, chosen.operand
    what = "height" if up else "a low height"
    if intent.target is not None:
        width = dice.around(max(0.05, 0.3 * abs(intent.target)))
        wanted = {"target": rounded(intent.target), "width": width}
        return what, [term("tracking", "height", dice.around(1.0), height, **wanted)]
    kind, name = ("level", "height") if up else ("level_down", "lowness")
    high = dice.around(length_scale(chosen.reading))
    terms = [term(kind, name, dice.around(1.0), height, low=0.0, high=high)]
    rising = matching.velocities(scene, 2, intent.sign, intent.objects | scene.words)
    if rising and dice.includes(0.5):
        speed, name = _towards(rising[0]), "rise" if up else "sinking"
        terms.append(term("progress", name, dice.around(0.3), speed, cap=10.0))
    return what, terms


def _change(scene: Scene, intent: Intent, dice: Dice, chosen: Candidate) -> tuple[str, list[Term]]:
    low, high = chosen.reading.spec.range or (0.0, length_scale(chosen.reading))
    ends = {"low": rounded(low), "high": rounded(high)}
    kind, name = "level" if intent.sign > 0 else "level_down", "change"
    name = "opening" if "open" in intent.words else "change"
    terms = [term(kind, name, dice.around(1.0), chosen.operand, **ends)]
    if dice.includes(0.3):
        operand = matching.change(chosen.operand, scene.description.control_dt)
        rate = _towards(Candidate(operand, chosen.reading, 0.0, intent.sign))
        numbers = {"cap": 10.0, "scale": max(rounded(high - low), 0.01)}
        terms.append(term("progress_scaled", "rate", dice.around(0.3), rate, **numbers))
    return "more of it" if intent.sign > 0 else "less of it", terms


def _swing_up(
    scene: Scene, intent: Intent, dice: Dice, chosen: Candidate
) -> tuple[str, list[Term]]:
    tilt, whirl = chosen.operand, _turning(scene, chosen)
    # without a price on speed the best that is soon found is whirling: it passes the top again and
    # again
    if whirl is not None and dice.explores():
        whirl = None
    terms = [upright_term("upright", dice.around(1.0), tilt, 1.0, whirl, dice.around(5.0))]
    if dice.includes(0.8):
        weight, sharpness = dice.around(1.0), dice.around(8.0)
        terms.append(upright_term("balanced", weight, tilt, sharpness, whirl, dice.around(2.0)))
    calm = f", at little {whirl.reads[0]}" if whirl is not None else ""
    return f"the cosine of the angle, from hanging down to upright{calm}", terms


def _stay_upright(
    scene: Scene, intent: Intent, dice: Dice, chosen: Candidate
) -> tuple[str, list[Term]]:
    weight, sharpness = dice.around(1.0), dice.first_or_other([1.0, 2.0, 4.0])
    terms = [upright_term("upright", weight, chosen.operand, sharpness)]
    turning = _turning(scene, chosen)
    if turning is not None and dice.includes(0.7):
        weight, calm = dice.around(0.4), dice.around(2.0)
        still = term("stillness", "still_at_top", weight, turning, temperature=calm)
        terms.append(still.gated("upright"))
    return "an upright posture", terms


def _turning(scene: Scene, upright: Candidate) -> Operand | None:
    """Angular velocity of the thing whose tilt `upright` tells."""
    own = upright.reading.name_words - stem_set("angle upright cosine")
    found = matching.speed(scene, own, Quantity.ANGULAR_VELOCITY)
    return None if found is None else found.operand
