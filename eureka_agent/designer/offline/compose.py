"""Fresh rewards from nothing but the sentence and the variables."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import NamedTuple

from eureka_agent.designer.offline import matching
from eureka_agent.designer.offline.asked import asked_terms
from eureka_agent.designer.offline.dice import SENSIBLE, THEMES, Dice, Theme
from eureka_agent.designer.offline.matching import Scene
from eureka_agent.designer.offline.terms import Genome, Term, term, unique_terms
from eureka_agent.designer.offline.unasked import Option, generic_options, optional_terms
from eureka_agent.designer.offline.vocabulary import Goal, Intent
from eureka_agent.designer.offline.words import stem

MAX_TERMS = 9
"""Terms that a reward may have and still be read at a glance."""
_RARELY, _OFTEN = 0.01, 0.3
"""Odds of a term of a variable that no word names, where a word names what is to be done and where
none does."""
_MOST_UNGROUNDED = 6
"""Most of these that may be of variables that no word names."""


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
        asked = asked_terms(scene, intent, dice)
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
    served += [
        (each.term.name, scene.goals[each.goal]) for each in options if each.goal is not None
    ]
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
    actions = scene.named("actions")
    terms = [term("alive", "alive", 1.0)] if scene.can_fail else []
    if actions is not None:
        operand = matching.whole(actions)
        terms.append(term("stillness", "calm", 1.0, operand, temperature=1.0))
        terms.append(term("penalty", "effort", 0.05, operand))
    return terms
