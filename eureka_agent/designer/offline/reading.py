"""The words of a sentence that the offline designer uses, and for which terms."""

from __future__ import annotations

import math
import random
import re
from pathlib import Path

from eureka_agent.designer.offline.clauses import understood_in
from eureka_agent.designer.offline.compose import Composition, compose
from eureka_agent.designer.offline.dice import Dice
from eureka_agent.designer.offline.matching import Scene
from eureka_agent.designer.offline.vocabulary import QUANTITY, quantities, read_intents
from eureka_agent.designer.offline.words import STOP_WORDS, stem, stems
from eureka_agent.records import TaskDescription

_NUMBER = re.compile(rf"{QUANTITY.pattern}|(?<![\w.])(-?\d+(?:\.\d+)?)(?!\w)", re.IGNORECASE)
"""A number, with its unit where it has one that the designer knows."""


def content_words(sentence: str) -> list[str]:
    """Lower-case words of any script that say something, each once, without quantities."""
    words = re.findall(r"[^\W\d_]+", QUANTITY.sub(" ", re.sub("['’]", "", sentence)).lower())
    return [word for word in dict.fromkeys(words) if word not in STOP_WORDS]


def _most_sensible(scene: Scene) -> Composition:
    return compose(scene, Dice(random.Random(0)))


def word_use(description: TaskDescription, sentence: str) -> dict[str, str]:
    """Content words that the most sensible reward uses, with the term it has for each."""
    scene = Scene(description, sentence)
    composition = _most_sensible(scene)
    words = {reading.name: reading.name_words | reading.doc_words for reading in scene.readings}
    used: dict[str, str] = {}
    for word in content_words(understood_in(description, sentence).text):
        for name, intent in composition.asked:
            term = composition.genome.term(name)
            read = () if term is None else term.arguments()
            of_variable = any(stem(word) in words.get(variable, ()) for variable in read)
            if term is not None and (word in (*intent.words, *intent.heading) or of_variable):
                used.setdefault(word, name)
    return used


def not_understood(description: TaskDescription, sentence: str) -> tuple[str, ...]:
    """Clauses that are not understood, as they were typed, if one names a goal or a variable."""
    names = " ".join(each.name for each in description.public_variables())
    return understood_in(description, sentence).named(stems(names))


def unused_numbers(description: TaskDescription, sentence: str) -> list[str]:
    """Numbers of the sentence, with their units, that the most sensible reward lacks."""
    terms = _most_sensible(Scene(description, sentence)).genome.terms
    known = [abs(term.numbers.get("target", math.inf)) for term in terms]
    found = []
    for match in _NUMBER.finditer(sentence):
        written = match[0].strip()
        wanted = [value for value, _ in quantities(written)] or [float(match[3])]
        if not any(math.isclose(abs(wanted[0]), value, rel_tol=0.01) for value in known):
            found.append(written)
    return list(dict.fromkeys(found))


def is_unread(sentence: str, description: TaskDescription) -> bool:
    """True where no word names a goal or anything of a variable."""
    scene = Scene(description, sentence)
    named = any(each.affinity(scene.words) for each in scene.readings)
    return not named and not read_intents(understood_in(description, sentence).text)


def is_name(word: str, description: TaskDescription) -> bool:
    """True for what the environment is called, which no reward needs to use."""
    return stem(word) in stems(Path(description.environment).name)
