"""Fresh rewards from nothing but the sentence and the variables."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from eureka_agent.designer.offline import matching
from eureka_agent.designer.offline.dice import Dice
from eureka_agent.designer.offline.matching import Candidate, Scene
from eureka_agent.designer.offline.semantics import Quantity
from eureka_agent.designer.offline.terms import Genome, Term, rounded, term, unique_terms
from eureka_agent.designer.offline.unasked import Option, generic_options, optional_terms
from eureka_agent.designer.offline.vocabulary import Goal, Intent
from eureka_agent.designer.offline.words import HEADINGS, stem, stems

MAX_TERMS = 9
"""Terms that a reward may have and still be read at a glance."""
_RARELY, _OFTEN = 0.01, 0.3
"""Odds of a term of a variable that no word names, where a word names a goal and where none is."""
_MOST_UNGROUNDED = 6
"""Most of these that may be of variables that no word names."""
_MARGIN = {Goal.CHANGE: 1.0, Goal.SWING_UP: math.inf, Goal.UPRIGHT: math.inf}
"""Scores below the best that may still be taken now and then; else 2."""


class Composition(NamedTuple):
    """A genome and why it is as it is."""

    genome: Genome
    notes: tuple[str, ...]
    """Sentences for the reasoning."""
    asked: tuple[tuple[str, Intent], ...] = ()
    """Names of the terms that the words ask for, each with what it serves."""


def compose(scene: Scene, dice: Dice) -> Composition:
    """A fresh reward: terms that the sentence asks for, some that most rewards have, and now and
    then one of a variable that no word names; more of those where nothing else can be paid."""
    notes: list[str] = []
    terms: list[Term] = []
    served: list[tuple[str, Intent]] = []
    intents = scene.goals.values()
    swing, upright = scene.goals.get(Goal.SWING_UP), scene.goals.get(Goal.UPRIGHT)
    for intent in intents:
        if intent.main and (swing is None or intent is not upright):
            made, note = _asked_terms(scene, intent, dice)
            notes.append(note)
            terms += made
            serves = [intent] if intent is not swing or upright is None else [intent, upright]
            served += [(each.name, it) for each in made for it in serves]
    options = optional_terms(scene, dice)
    served += [(o.term.name, scene.goals[o.goal]) for o in options if o.goal is not None]
    # survival pays alone for doing nothing, and so does a manner that only the metric's words name
    spoken = {each.goal for each in intents if scene.words & set(map(stem, each.words))}
    manners = [option for option in options if option.goal in spoken - {Goal.SURVIVE}]
    if not terms and all(option.term.penalty for option in manners):
        notes.append("The sentence could not be grounded, so variables are tried by their kind.")
        kept = [option for option in options if option.goal in {None, *spoken}]
        by_kind = generic_options(scene, (), dice, probability=0.6, place_weight=1.0)
        # those of variables that share words with the sentence first
        near = {each.name for each in scene.readings if each.affinity(scene.words) >= 1.0}
        by_kind.sort(key=lambda each: near.isdisjoint(each.term.arguments()))
        options = [*by_kind[:_MOST_UNGROUNDED], *kept]
    named = any(intent.named and intent.main for _, intent in served)
    _take(options, terms, notes, dice)
    _take(generic_options(scene, terms, dice, _RARELY if named else _OFTEN), terms, notes, dice)
    if all(each.penalty for each in terms):
        terms += _without_variables(scene)
        what = "Little effort and survival are" if scene.effort else "The way in which it ends is"
        notes.append(f"{what} all that is left to be paid.")
    return Composition(Genome(terms=unique_terms(terms)), tuple(notes), tuple(served))


def _take(options: Iterable[Option], terms: list[Term], notes: list[str], dice: Dice) -> None:
    """Add those options that the dice are for, while there is room."""
    for option in options:
        if len(terms) < MAX_TERMS and dice.includes(option.probability):
            terms.append(option.term)
            notes.append(f"'{option.term.name}': {option.why}.")


def _without_variables(scene: Scene) -> list[Term]:
    """Survival, rest and small effort, for a scene of which nothing else can be made."""
    terms = [term("alive", "alive", 1.0)] if scene.can_fail else []
    if scene.effort is not None:
        terms.append(term("stillness", "calm", 1.0, scene.effort, temperature=1.0))
        terms.append(term("penalty", "effort", 0.05, scene.effort))
    # what cannot fail has an end by success
    return terms or [term("success", "success", 1.0)]


def _asked_terms(scene: Scene, intent: Intent, dice: Dice) -> tuple[list[Term], str]:
    """The terms for one intent, and why they are what they are, or why there is none."""
    found = matching.candidates(scene, intent)
    if intent.goal is Goal.SPIN and not found:  # a rudder, a valve
        intent = intent._replace(goal=Goal.CHANGE, target=None)
        found = matching.levels(scene, intent.objects)
    words = [f"'{word}'" for word in intent.words[:3]]
    if not found:
        return [], f"No variable says anything of {', '.join(words[:2])}."
    margin = _MARGIN.get(intent.goal, 2.0)
    chosen = dice.first_or_other([each for each in found if each.score > found[0].score - margin])
    make = _tilted if intent.goal in (Goal.SWING_UP, Goal.UPRIGHT) else _more_or_less
    terms = make(scene, intent, dice, chosen)
    asks = "asks" if len(intent.words) == 1 else "ask"
    doc = chosen.reading.spec.doc.rstrip(".")
    why = f"{' and '.join(words)} {asks} for '{terms[0].name}': {chosen.operand.code} ({doc})."
    return terms, why


def _more_or_less(scene: Scene, intent: Intent, dice: Dice, chosen: Candidate) -> list[Term]:
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
    weight, level = dice.around(1.0), "level" if up else "level_down"
    if intent.goal in (Goal.MOVE, Goal.SPIN):
        name = heading if intent.goal is Goal.MOVE else "spin"
        cap = rounded(chosen.reading.limit() or 20.0)
        return [term("progress", name, weight, operand, cap=cap)]
    if intent.goal is Goal.REACH:
        kind, name = ("distance", "reach") if up else ("distance_away", "away")
        terms = [term(kind, name, weight, operand, temperature=dice.around(scale))]
        if up and dice.includes(0.6):
            weight, near = dice.around(0.7), dice.around(scale / 5)
            terms.append(term(kind, "reach_closely", weight, operand, temperature=near))
        return terms
    if intent.goal is Goal.RAISE:
        name, high = "height" if up else "lowness", dice.around(scale)
        return [term(level, name, weight, operand, low=0.0, high=high)]
    low, high = map(rounded, chosen.reading.spec.range or (0.0, scale))
    name = "opening" if "open" in intent.words else "change"
    return [term(level, name, weight, operand, low=low, high=high)]


def _tilted(scene: Scene, intent: Intent, dice: Dice, chosen: Candidate) -> list[Term]:
    """Upright, and slow there: where it has to swing up, rest is a part of being upright, since the
    best that is soon found else is whirling, which passes the top again and again."""
    tilt, own = chosen.operand, chosen.reading.name_words - stems("angle upright cosine")
    found = matching.speeds(scene, own, Quantity.ANGULAR_VELOCITY)
    turning = [each.operand for each in found[:1]]
    if intent.goal is Goal.UPRIGHT:
        weight, sharpness = dice.around(1.0), dice.first_or_other([1.0, 2.0, 4.0])
        terms = [term("upright", "upright", weight, tilt, sharpness=sharpness)]
        if turning and dice.includes(0.7):
            weight, calm = dice.around(0.4), dice.around(2.0)
            still = term("stillness", "still_at_top", weight, *turning, temperature=calm)
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
        numbers = {"sharpness": sharpness, "calm_speed": calm_speed}
        numbers = numbers if turning else {"sharpness": sharpness}
        terms.append(term(kind, name, weight, tilt, *turning, **numbers))
    return terms
