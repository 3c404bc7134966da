"""Fresh rewards from nothing but the sentence and the variables."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from typing import NamedTuple

from eureka_agent.designer.offline import matching
from eureka_agent.designer.offline.dice import SENSIBLE, THEMES, Dice, Theme
from eureka_agent.designer.offline.matching import Candidate, Scene
from eureka_agent.designer.offline.semantics import Quantity
from eureka_agent.designer.offline.terms import (
    FORMS,
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
Made = tuple[str, list[Term]]
"""What the words ask for, in words, and the terms for it."""


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
        notes.append("Little effort and survival are all that is left to be paid.")
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
    actions = scene.named("actions")
    terms = [term("alive", "alive", 1.0)] if scene.can_fail else []
    if actions is not None:
        operand = matching.whole(actions)
        terms.append(term("stillness", "calm", 1.0, operand, temperature=1.0))
        terms.append(term("penalty", "effort", 0.05, operand))
    return terms


def _asked_terms(scene: Scene, intent: Intent, dice: Dice) -> Made | None:
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


def _heading(intent: Intent) -> str:
    return _HEADINGS[intent.axis or 0][intent.sign < 0]


def _tracked(scene: Scene, intent: Intent, dice: Dice, chosen: Candidate) -> Made:
    """A number that the words give."""
    target = rounded(abs(intent.target or 0.0))
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
    return f"{target:g}", terms


def _move(scene: Scene, intent: Intent, dice: Dice, chosen: Candidate) -> Made:
    name, cap = _heading(intent), rounded(chosen.reading.limit() or 20.0)
    undirected = "" if intent.axis is not None else " (no direction is named, so along x)"
    progress = term("progress", name, dice.around(1.0), chosen.operand, cap=cap)
    return f"speed {name}{undirected}", [progress]


def _spin(scene: Scene, intent: Intent, dice: Dice, chosen: Candidate) -> Made:
    return "turning", [term("progress", "spin", dice.around(1.0), chosen.operand, cap=10.0)]


def _reach(scene: Scene, intent: Intent, dice: Dice, chosen: Candidate) -> Made:
    scale, off = chosen.reading.scale(), chosen.operand
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
    weight, high = dice.around(1.0), dice.around(chosen.reading.scale())
    terms = [term(kind, name, weight, chosen.operand, low=0.0, high=high)]
    rising = matching.velocities(scene, 2, intent.sign, intent.objects | scene.words)
    if rising and dice.includes(0.5):
        terms.append(term("progress", rate, dice.around(0.3), rising[0].operand, cap=10.0))
    return what, terms


def _change(scene: Scene, intent: Intent, dice: Dice, chosen: Candidate) -> Made:
    low, high = map(rounded, chosen.reading.spec.range or (0.0, chosen.reading.scale()))
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
