"""Words of a sentence that the offline designer uses, and a person's wishes and orders."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence

from eureka_agent.designer.interface import Told
from eureka_agent.designer.offline import language
from eureka_agent.designer.offline.compose import Composition, Dice, compose
from eureka_agent.designer.offline.scene import TaskReading
from eureka_agent.designer.offline.terms import Genome, recover, rounded
from eureka_agent.feedback_records import Given, Importance, Reading, Wish
from eureka_agent.records import Attempt, TaskDescription

_STEP = 1.5
"""Ratio of the weights of two terms of which one matters more."""


def content_words(sentence: str) -> list[str]:
    """Lower-case words of any script that say something, each once, without quantities."""
    words = re.findall(
        r"[^\W\d_]+", language.QUANTITY.sub(" ", re.sub("['’]", "", sentence)).lower()
    )
    return [word for word in dict.fromkeys(words) if word not in language.STOP_WORDS]


def _most_sensible(description: TaskDescription, sentence: str) -> tuple[TaskReading, Composition]:
    scene = TaskReading(description, sentence)
    return scene, compose(scene, Dice(random.Random(0)))


def word_use(description: TaskDescription, sentence: str) -> dict[str, str]:
    """Content words that the most sensible reward uses, with the term it has for each."""
    scene, made = _most_sensible(description, sentence)
    words = {reading.name: reading.name_words | reading.doc_words for reading in scene.readings}
    used: dict[str, str] = {}
    for word in content_words(language.understood_in(description, sentence).text):
        for name, intent in made.asked:
            read = made.genome[name].arguments() if name in made.genome else ()
            of_variable = any(language.stem(word) in words.get(variable, ()) for variable in read)
            if name in made.genome and (word in intent.words or of_variable):
                used.setdefault(word, name)
    return used


def unused_numbers(description: TaskDescription, sentence: str) -> list[str]:
    """Numbers of the sentence, with their units, that the most sensible reward lacks."""
    genome = _most_sensible(description, sentence)[1].genome
    targets = [term.numbers["target"] for term in genome.values() if "target" in term.numbers]
    found = language.NUMBER.finditer(sentence)
    sizes = {
        each[0]: abs(float(each[1] or each[0])) * language.SCALES.get(each[2], 1.0)
        for each in found
    }
    unused = [n for n, size in sizes.items() if not any(math.isclose(size, t) for t in targets)]
    return [each.strip() for each in unused]


def not_understood(description: TaskDescription, sentence: str) -> tuple[str, ...]:
    """Clauses that are not understood, if one names a goal or a variable."""
    refused = language.understood_in(description, sentence).refused
    names = language.stems(" ".join(each.name for each in description.public_variables()))
    return (
        refused if language.goal_words(refused) or language.stems(" ".join(refused)) & names else ()
    )


class OfflineReader:
    """Reads a wish by the vocabulary of the offline designer."""

    def __init__(self, description: TaskDescription) -> None:
        self._description = description

    async def read(
        self, wish: Wish, standing: Sequence[Given], about: Attempt | None, correction: str
    ) -> Reading:
        """The terms that the words ask for, and the words that are not understood."""
        words = ". ".join(filter(None, (wish.wants, correction)))
        text, refused = language.understood_in(self._description, words)
        used = {} if refused else word_use(self._description, words)
        reward = "" if about is None else about.proposal.reward.source
        names = [*recover(reward, [each.name for each in self._description.variables])]
        asked = list(dict.fromkeys(used.values()))
        if refused:
            clauses = "; ".join(map(repr, refused))
            told = f"the reward stays as it is, since this is not understood: {clauses}."
            told += " A model (--model) would read it"
        elif not asked:
            told = "none of these words names anything that the variables tell"
        else:
            told = f"pay for {', '.join(asked)}, named by {', '.join(used)}"
        return Reading(
            text=told,
            stays=tuple(name for name in names if name not in asked),
            changes=tuple(f"{name}: {'weighs more' if name in names else 'new'}" for name in asked),
            author="offline",
            unread=(*refused, *(word for word in content_words(text) if word not in used)),
        )


def as_told(genome: Genome, description: TaskDescription, told: Told) -> tuple[Genome, list[str]]:
    """The genome as a person's wishes and order of terms have it, and sentences on them. Wishes
    that its parents did not know add the terms that they ask for; a term that is there already
    weighs more. Of the terms in the last order of importance (HERON) the first gets the largest
    weight of them all."""
    notes: list[str] = []
    for given in told.wishes:
        if given.number in told.heeded or not isinstance(given.feedback, Wish):
            continue
        if language.understood_in(description, given.feedback.wants).refused:
            notes.append(f"Entry {given.number} is not understood, so it changes nothing.")
            continue
        wanted = _most_sensible(description, given.feedback.wants)[1].genome
        for name in dict.fromkeys(word_use(description, given.feedback.wants).values()):
            known = genome.get(name)
            term = wanted[name] if known is None else known.scaled("weight", _STEP)
            genome = {**genome, name: term}
            does = "is added" if known is None else f"weighs {_STEP:g} times as much"
            notes.append(f"As the person wishes, '{name}' {does}.")
    orders = [given.feedback for given in told.importance if isinstance(given.feedback, Importance)]
    order = next((each.order for each in reversed(orders) if each.of == "terms"), ())
    named = [name for name in order if name in genome]
    if len(named) > 1:
        weight = max(abs(genome[name].numbers["weight"]) for name in named)
        for name in named:
            before = max(abs(genome[name].numbers["weight"]), 1e-9)
            genome = {**genome, name: genome[name].scaled("weight", weight / before)}
            weight = rounded(weight / _STEP)
        notes.append(f"The person's order of terms: {' > '.join(named)}.")
    return genome, notes
