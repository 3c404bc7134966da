"""Fresh rewards from nothing but the sentence and the variables."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from eureka_agent.designer.offline import matching
from eureka_agent.designer.offline.dice import SENSIBLE, THEMES, Dice, Theme
from eureka_agent.designer.offline.matching import Candidate, Scene
from eureka_agent.designer.offline.semantics import Quantity
from eureka_agent.designer.offline.terms import (
    Genome,
    Operand,
    Term,
    rounded,
    term,
    unique_terms,
)
from eureka_agent.designer.offline.unasked import Option, generic_options, optional_terms
from eureka_agent.designer.offline.vocabulary import Goal, Intent
from eureka_agent.designer.offline.words import stem, stem_set

MAX_TERMS = 9
"""Terms that a reward may have and still be read at a glance."""
_RARELY, _OFTEN = 0.01, 0.3
"""Odds of a term of a variable that no word names, where a word names what is to be done and where
none does."""
_MOST_UNGROUNDED = 6
"""Most of these that may be of variables that no word names."""
_HEADINGS = (("forward", "backward"), ("leftward", "rightward"), ("upward", "downward"))
_MARGIN = {Goal.CHANGE: 1.0, Goal.SWING_UP: math.inf, Goal.UPRIGHT: math.inf}
"""Scores below the best that may still be taken now and then; else 2."""


class Composition(NamedTuple):
    """A fresh genome and why it is as it is."""

    genome: Genome
    notes: tuple[str, ...]
    """Sentences for the reasoning."""
    asked: tuple[tuple[str, Intent], ...] = ()
    """Names of the terms that the words ask for, each with what it serves."""


def theme_for(place: int, generator: random.Random, first: bool) -> Theme:
    """The first proposal of a search is the most sensible guess; the next go through the themes;
    later ones draw one."""
    if first:
        return SENSIBLE
    return THEMES[place] if 0 < place < len(THEMES) else generator.choice(THEMES[2:])


def compose(scene: Scene, dice: Dice) -> Composition:
    """A fresh reward: terms that the sentence asks for, some of those that most rewards have, now
    and then one of a variable that no word names.

    Where the words ask for nothing that can be paid, there are more of the last.
    """
    notes: list[str] = []
    terms: list[Term] = []
    served: list[tuple[str, Intent]] = []
    intents = scene.goals.values()
    swing, upright = scene.goals.get(Goal.SWING_UP), scene.goals.get(Goal.UPRIGHT)
    for intent in intents:
        if not intent.main or (swing is not None and intent is upright):
            continue
        asked = _asked_terms(scene, intent, dice)
        made = [] if asked is None else [each for each in asked[1] if not scene.refuses(each)]
        if asked is None or not made:
            missing = "No variable says anything of"
            why = missing if asked is None else "Recorded episodes speak against a term for"
            notes.append(f"{why} {', '.join(map(repr, intent.words[:2]))}.")
            continue
        terms += made
        serves = [intent] if intent is not swing or upright is None else [intent, upright]
        served += [(each.name, it) for each in made for it in serves]
        notes.append(asked[0])
    options = optional_terms(scene, dice)
    served += [(o.term.name, scene.goals[o.goal]) for o in options if o.goal is not None]
    # to survive pays alone for doing nothing, and so does a manner that only the metric's words
    # name
    spoken = {each.goal for each in intents if scene.words & set(map(stem, each.words))}
    manners = [option for option in options if option.goal in spoken - {Goal.SURVIVE}]
    if not terms and all(option.term.penalty for option in manners):
        notes.append("The sentence could not be grounded, so variables are tried by their kind.")
        kept = [option for option in options if option.goal in {None, *spoken}]
        options = [*_ungrounded(scene, dice), *kept]
    named = any(intent.named and intent.main for _, intent in served)
    _take(options, terms, notes, dice)
    _take(generic_options(scene, terms, dice, _RARELY if named else _OFTEN), terms, notes, dice)
    if all(each.penalty for each in terms):
        terms += _without_variables(scene)
        what = "Little effort and survival are" if scene.efforts else "The way in which it ends is"
        notes.append(f"{what} all that is left to be paid.")
    return Composition(Genome(terms=unique_terms(terms)), tuple(notes), tuple(served))


def _take(options: Iterable[Option], terms: list[Term], notes: list[str], dice: Dice) -> None:
    """Add those options that the dice are for, while there is room."""
    for option in options:
        if len(terms) < MAX_TERMS and dice.includes(option.probability):
            terms.append(option.term)
            notes.append(f"'{option.term.name}': {option.why}.")


def _ungrounded(scene: Scene, dice: Dice) -> list[Option]:
    """Terms by kind, those of variables that share words with the sentence first."""
    spoken = {each.name for each in scene.readings if each.affinity(scene.words) >= 1.0}
    options = generic_options(scene, (), dice, probability=0.6, place_weight=1.0)
    options.sort(key=lambda each: spoken.isdisjoint(each.term.arguments()))
    return options[:_MOST_UNGROUNDED]


def _without_variables(scene: Scene) -> list[Term]:
    """Survival, rest and small effort, for a scene of which nothing else can be made."""
    actions = scene.efforts
    terms = [term("alive", "alive", 1.0)] if scene.can_fail else []
    if actions is not None:
        operand = matching.whole(actions)
        terms.append(term("stillness", "calm", 1.0, operand, temperature=1.0))
        terms.append(term("penalty", "effort", 0.05, operand))
    # what cannot fail has an end by success
    return terms or [term("success", "success", 1.0)]


def _asked_terms(scene: Scene, intent: Intent, dice: Dice) -> tuple[str, list[Term]] | None:
    """The terms for one intent, after the sentence of the reasoning that says why; None where no
    variable can express it."""
    found = _candidates(scene, intent)
    if intent.goal is Goal.SPIN and not found:  # a rudder, a valve
        intent = replace(intent, goal=Goal.CHANGE, target=None)
        found = matching.levels(scene, intent.objects)
    if not found:
        return None
    margin = _MARGIN.get(intent.goal, 2.0)
    chosen = dice.first_or_other([each for each in found if each.score > found[0].score - margin])
    if intent.target is not None:
        terms = _tracked(intent, intent.target, dice, chosen)
    elif intent.goal in (Goal.SWING_UP, Goal.UPRIGHT):
        make = _swing_up if intent.goal is Goal.SWING_UP else _stay_upright
        terms = make(scene, dice, chosen)
    else:
        terms = _more_or_less(scene, intent, dice, chosen)
    words = " and ".join(f"'{word}'" for word in intent.words[:3])
    asks = "asks" if len(intent.words) == 1 else "ask"
    doc = chosen.reading.spec.doc.rstrip(".")
    return f"{words} {asks} for '{terms[0].name}': {chosen.operand.code} ({doc}).", terms


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


def _heading(intent: Intent) -> str:
    return _HEADINGS[intent.axis or 0][intent.sign < 0]


def _tracked(intent: Intent, target: float, dice: Dice, chosen: Candidate) -> list[Term]:
    """Closeness to a number that the words give."""
    target = rounded(abs(target))
    name, least = {
        Goal.MOVE: (f"{_heading(intent)}_speed", 0.3),
        Goal.SPIN: ("spin", 0.5),
        Goal.RAISE: ("height", 0.1),
    }[intent.goal]
    width = dice.around(max(least, 0.5 * target))
    terms = [term("tracking", name, 1.0, chosen.operand, target=target, width=width)]
    if intent.goal is Goal.MOVE:
        weight = dice.around(0.2)
        terms.append(term("progress", _heading(intent), weight, chosen.operand, cap=target))
    return terms


def _more_or_less(scene: Scene, intent: Intent, dice: Dice, chosen: Candidate) -> list[Term]:
    """As much speed, height or nearness as there can be, or as little."""
    up, operand, scale = intent.sign > 0, chosen.operand, chosen.reading.scale()
    weight, level = dice.around(1.0), "level" if up else "level_down"
    if intent.goal is Goal.REACH:
        kind, name = ("distance", "reach") if up else ("distance_away", "away")
        terms = [term(kind, name, weight, operand, temperature=dice.around(scale))]
        if up and dice.includes(0.6):
            weight, near = dice.around(0.7), dice.around(scale / 5)
            terms.append(term(kind, "reach_closely", weight, operand, temperature=near))
        return terms
    if intent.goal is Goal.RAISE:
        name, rate = ("height", "rise") if up else ("lowness", "sinking")
        terms = [term(level, name, weight, operand, low=0.0, high=dice.around(scale))]
        rising = matching.velocities(scene, 2, intent.sign, intent.objects | scene.words)
        if rising and dice.includes(0.5):
            terms.append(term("progress", rate, dice.around(0.3), rising[0].operand, cap=10.0))
        return terms
    if intent.goal in (Goal.MOVE, Goal.SPIN):
        name = _heading(intent) if intent.goal is Goal.MOVE else "spin"
        cap = rounded(chosen.reading.limit() or 20.0)
        return [term("progress", name, weight, operand, cap=cap)]
    low, high = map(rounded, chosen.reading.spec.range or (0.0, scale))
    name = "opening" if "open" in intent.words else "change"
    return [term(level, name, weight, operand, low=low, high=high)]


def _swing_up(scene: Scene, dice: Dice, chosen: Candidate) -> list[Term]:
    whirl = _turning(scene, chosen)
    # without a price on speed the best that is soon found is whirling: it passes the top again and
    # again
    calm = whirl[:0] if whirl and dice.explores() else whirl
    tilt = (chosen.operand, *calm)
    terms = [_upright("upright", dice.around(1.0), tilt, 1.0, dice.around(5.0))]
    if dice.includes(0.8):
        weight, sharpness = dice.around(1.0), dice.around(8.0)
        terms.append(_upright("balanced", weight, tilt, sharpness, dice.around(2.0)))
    return terms


def _upright(
    name: str, weight: float, tilt: tuple[Operand, ...], sharpness: float, calm_speed: float
) -> Term:
    """`tilt`: its cosine, and the turning speed where that is to be small."""
    if len(tilt) == 1:
        return term("upright", name, weight, *tilt, sharpness=sharpness)
    calm = {"sharpness": sharpness, "calm_speed": calm_speed}
    return term("upright_calm", name, weight, *tilt, **calm)


def _stay_upright(scene: Scene, dice: Dice, chosen: Candidate) -> list[Term]:
    weight, sharpness = dice.around(1.0), dice.first_or_other([1.0, 2.0, 4.0])
    terms = [term("upright", "upright", weight, chosen.operand, sharpness=sharpness)]
    turning = _turning(scene, chosen)
    if turning and dice.includes(0.7):
        weight, calm = dice.around(0.4), dice.around(2.0)
        still = term("stillness", "still_at_top", weight, *turning, temperature=calm)
        terms.append(still.gated("upright"))
    return terms


def _turning(scene: Scene, upright: Candidate) -> list[Operand]:
    """Angular velocity of the thing whose tilt `upright` tells, if there is one."""
    own = upright.reading.name_words - stem_set("angle upright cosine")
    return [each.operand for each in matching.speeds(scene, own, Quantity.ANGULAR_VELOCITY)[:1]]
