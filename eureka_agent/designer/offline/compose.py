"""Fresh rewards from nothing but the sentence and the variables."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass

from eureka_agent.designer.offline import matching
from eureka_agent.designer.offline.asked import asked_terms
from eureka_agent.designer.offline.dice import SENSIBLE, THEMES, Dice, Theme
from eureka_agent.designer.offline.genome import Genome, unique_terms
from eureka_agent.designer.offline.matching import Scene
from eureka_agent.designer.offline.terms import Alive, Penalty, Stillness, Success, Term
from eureka_agent.designer.offline.unasked import Option, generic_options, optional_terms
from eureka_agent.designer.offline.vocabulary import Goal, Intent, task_intents
from eureka_agent.designer.offline.words import stem
from eureka_agent.records import TaskDescription

MAX_TERMS = 9
"""Terms that a reward may have and still be read at a glance."""
_RARELY, _OFTEN = 0.01, 0.3
"""Odds of a term of a variable that no word names, where a word names what is to be done and where
none does."""
_MOST_UNGROUNDED = 6
"""Most of these that may be of variables that no word names."""


@dataclass(frozen=True)
class Composition:
    """A fresh genome and why it is as it is."""

    genome: Genome
    notes: tuple[str, ...]
    """Sentences for the reasoning."""
    asked: tuple[tuple[str, Intent], ...] = ()
    """Names of the terms that the words ask for, each with what it serves."""


def scene_of(
    description: TaskDescription, sentence: str, refused: Iterable[Genome] = ()
) -> tuple[Scene, tuple[Intent, ...]]:
    """The environment as read and the sentence's intents. `refused`: rewards whose leading term is
    not to be composed again."""
    leading = [
        max(paying, key=lambda term: term.weight)
        for genome in refused
        if (paying := [t for t in genome.terms if not t.penalty])
    ]
    scene = Scene(description, sentence, frozenset(term.trait() for term in leading))
    return scene, task_intents(sentence, description.sentence, description.fitness_doc)


def theme_for(place: int, generator: random.Random, first: bool) -> Theme:
    """The first proposal of a search is the most sensible guess; the next go through the themes;
    later ones draw one."""
    if first:
        return SENSIBLE
    return THEMES[place] if 0 < place < len(THEMES) else generator.choice(THEMES[2:])


def compose(scene: Scene, intents: tuple[Intent, ...], dice: Dice) -> Composition:
    """A fresh reward: terms that the sentence asks for, some of those that most rewards have, now
    and then one of a variable that no word names.

    Where the words ask for nothing that can be paid, there are more of the last.
    """
    notes: list[str] = []
    terms: list[Term] = []
    served: list[tuple[str, Intent]] = []
    swings = any(intent.goal is Goal.SWING_UP for intent in intents)
    for intent in intents:
        if not intent.main or (swings and intent.goal is Goal.UPRIGHT):
            continue
        asked = asked_terms(scene, intent, dice)
        made = [] if asked is None else [term for term in asked.terms if not scene.refuses(term)]
        if asked is None or not made:
            why = (
                "No variable says anything of"
                if asked is None
                else "Recorded episodes speak against a term for"
            )
            notes.append(f"{why} {', '.join(repr(word) for word in intent.words[:2])}.")
            continue
        terms += made
        held = [
            each for each in intents if intent.goal is Goal.SWING_UP and each.goal is Goal.UPRIGHT
        ]
        served += [(term.name, each) for term in made for each in (intent, *held)]
        notes.append(asked.note)
    options = optional_terms(scene, intents, dice)
    by_goal = {intent.goal: intent for intent in intents}
    served += [
        (option.term.name, by_goal[option.goal]) for option in options if option.goal is not None
    ]
    # to survive pays alone for doing nothing, and so does a manner that only the metric's words
    # name
    spoken = {
        goal
        for goal, intent in by_goal.items()
        if scene.words & {stem(word) for word in intent.words}
    }
    manners = [option for option in options if option.goal in spoken - {Goal.SURVIVE}]
    if not terms and all(option.term.penalty for option in manners):
        notes.append("The sentence could not be grounded, so variables are tried by their kind.")
        options = [
            *_ungrounded(scene, dice),
            *(option for option in options if option.goal in {None, *spoken}),
        ]
    named = any(intent.named and intent.main for _, intent in served)
    _take(options, terms, notes, dice)
    _take(generic_options(scene, terms, dice, _RARELY if named else _OFTEN), terms, notes, dice)
    if not any(not term.penalty for term in terms):
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
    spoken = [candidate.name for candidate in matching.spoken_of(scene, scene.words)]
    options = generic_options(scene, (), dice, probability=0.6, place_weight=1.0)
    ranked = sorted(options, key=lambda option: not set(spoken) & set(option.term.arguments()))
    return ranked[:_MOST_UNGROUNDED]


def _without_variables(scene: Scene) -> list[Term]:
    terms: list[Term] = [Alive(name="alive", weight=1.0)] if scene.can_fail else []
    actions = scene.efforts
    if actions is not None:
        terms.append(Stillness(name="calm", operand=matching.whole(actions), temperature=1.0))
        terms.append(Penalty(name="effort", weight=0.05, operand=matching.whole(actions)))
    return terms or [Success(name="success", weight=1.0)]  # what cannot fail has an end by success
