"""Fresh rewards from nothing but the sentence and the variables."""

from __future__ import annotations

import random
from dataclasses import dataclass

from eureka_agent.designer.offline import matching
from eureka_agent.designer.offline.asked import asked_terms, length_scale
from eureka_agent.designer.offline.dice import SENSIBLE, THEMES, Dice, Theme
from eureka_agent.designer.offline.genome import Genome, unique_terms
from eureka_agent.designer.offline.matching import Candidate, Scene
from eureka_agent.designer.offline.operands import Operand, one_entry, rounded
from eureka_agent.designer.offline.semantics import Quantity
from eureka_agent.designer.offline.terms import Alive, Level, Penalty, Progress, Stillness, Term, Tracking
from eureka_agent.designer.offline.unasked import optional_terms
from eureka_agent.designer.offline.vocabulary import Goal, Intent, task_intents
from eureka_agent.records import TaskDescription

MAX_TERMS = 9
"""Terms that a reward may have and still be read at a glance."""


@dataclass(frozen=True)
class Composition:
    """A fresh genome and why it is as it is."""

    genome: Genome
    notes: tuple[str, ...]
    """Sentences for the reasoning."""


def scene_of(description: TaskDescription, sentence: str) -> tuple[Scene, tuple[Intent, ...]]:
    """The environment as read and the sentence's intents."""
    return Scene(description, sentence), task_intents(sentence, description.sentence, description.fitness_doc)


def theme_for(place: int, generator: random.Random, first: bool) -> Theme:
    """The first proposal of a search is the most sensible guess; the next go through the themes; later ones draw one."""
    if first:
        return SENSIBLE
    return THEMES[place] if 0 < place < len(THEMES) else generator.choice(THEMES[2:])


def compose(scene: Scene, intents: tuple[Intent, ...], dice: Dice) -> Composition:
    """A fresh reward: the terms that the sentence asks for, then some of those that most rewards have."""
    notes: list[str] = []
    terms: list[Term] = []
    swings = any(intent.goal is Goal.SWING_UP for intent in intents)
    for intent in intents:
        if not intent.main or (swings and intent.goal is Goal.UPRIGHT):
            continue
        asked = asked_terms(scene, intent, dice)
        if asked is None:
            notes.append(f"No variable says anything of {', '.join(repr(word) for word in intent.words[:2])}.")
            continue
        terms += asked.terms
        notes.append(asked.note)
    grounded = bool(terms)
    options = optional_terms(scene, intents, dice)
    if not grounded and not any(option.probability == 1.0 and not option.term.penalty for option in options):
        fallback, note = _fallback(scene, dice)
        terms += fallback
        notes.append(note)
    for option in options:
        if len(terms) < MAX_TERMS and dice.includes(option.probability):
            terms.append(option.term)
            notes.append(f"'{option.term.name}': {option.why}.")
    return Composition(Genome(terms=unique_terms(terms)), tuple(notes))


def _fallback(scene: Scene, dice: Dice) -> tuple[list[Term], str]:
    """Where no word can be grounded: variables that share words with the sentence, else any that measure something."""
    found = matching.spoken_of(scene, scene.words)
    moving = matching.velocities(scene, None, 1, scene.words)
    if found:
        chosen = dice.first_or_other(found)
        said = "shares words with the sentence"
    elif moving and not dice.explores():
        note = f"The sentence could not be grounded; moving forward, {moving[0].operand.code()}, is what most tasks ask for."
        return [Progress(name="forward", operand=moving[0].operand, sign=moving[0].sign)], note
    else:
        measured = [
            reading
            for reading in scene.readings
            if reading.quantity not in (Quantity.ACTION, Quantity.TERMINATED, Quantity.CONTACT) and not reading.is_goal
        ]
        if not measured:
            return _without_variables(
                scene
            ), "Nothing but the actions can be read, so little effort and survival are all that can be paid."
        reading = dice.generator.choice(measured)
        chosen = Candidate(_some_entry(reading, dice), reading, 0.0)
        said = "was picked at random: no word of the sentence matches any variable"
    note = f"The sentence could not be grounded; {chosen.operand.code()} {said}."
    return [_guess(chosen, dice)], note


def _some_entry(reading: matching.Reading, dice: Dice) -> Operand:
    index = tuple(dice.generator.randrange(size) for size in reading.spec.shape)
    return one_entry(reading, *index)


def _guess(chosen: Candidate, dice: Dice) -> Term:
    """A term of any form on a variable of which it is not known what is wanted."""
    operand = chosen.operand if chosen.operand.is_scalar else _some_entry(chosen.reading, dice)
    scale = length_scale(chosen.reading)
    sign = 1 if not dice.explores() else -1
    if chosen.reading.is_error:
        return Stillness(name="small", operand=chosen.operand, temperature=dice.around(scale))
    if chosen.reading.quantity in (Quantity.VELOCITY, Quantity.ANGULAR_VELOCITY, Quantity.JOINT_VELOCITY):
        return Progress(name="progress", operand=operand, sign=sign, cap=10.0)
    forms: list[Term] = [
        Level(name="level", operand=operand, sign=sign, low=0.0, high=rounded(scale)),
        Level(name="level", operand=operand, sign=-sign, low=0.0, high=rounded(scale)),
        Tracking(name="near_zero", operand=operand, width=rounded(scale)),
    ]
    return dice.first_or_other(forms)


def _without_variables(scene: Scene) -> list[Term]:
    terms: list[Term] = [Alive(name="alive", weight=1.0)] if scene.can_fail else []
    actions = scene.named("actions")
    if actions is not None:
        terms.append(Stillness(name="calm", operand=matching.whole(actions), temperature=1.0))
        terms.append(Penalty(name="effort", weight=0.05, operand=matching.whole(actions)))
    return terms
