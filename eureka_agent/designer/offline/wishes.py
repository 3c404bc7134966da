"""A person's feedback in the offline designer: wishes by their words, orders by weights."""

from __future__ import annotations

import random
from collections.abc import Sequence

from eureka_agent.designer.interface import Told
from eureka_agent.designer.offline.clauses import understood_in
from eureka_agent.designer.offline.compose import compose
from eureka_agent.designer.offline.dice import Dice
from eureka_agent.designer.offline.matching import Scene
from eureka_agent.designer.offline.reading import content_words, word_use
from eureka_agent.designer.offline.render import recover
from eureka_agent.designer.offline.terms import Genome, Term, rounded
from eureka_agent.feedback_records import Given, Importance, Reading, Wish
from eureka_agent.records import Attempt, TaskDescription

AUTHOR = "offline"
_UNREAD = "the reward stays as it is, since this is not understood"
_STEP = 1.5
"""Ratio of the weights of two terms of which one matters more."""


class OfflineReader:
    """Reads a wish by the vocabulary of the offline designer."""

    def __init__(self, description: TaskDescription) -> None:
        self._description = description

    async def read(
        self, wish: Wish, standing: Sequence[Given], about: Attempt | None, correction: str
    ) -> Reading:
        """The terms that the words ask for, and the words that are not understood."""
        words = ". ".join(filter(None, (wish.wants, correction)))
        clauses, refused = understood_in(self._description, words, change=True)
        used = {} if refused else word_use(self._description, words)
        reward = "" if about is None else about.proposal.reward.source
        present = recover(reward, [each.name for each in self._description.variables])
        names = [term.name for term in present.terms]
        asked = list(dict.fromkeys(used.values()))
        unread = [word for word in content_words(clauses) if word not in used]
        if refused:
            text = f"{_UNREAD}: {'; '.join(map(repr, refused))}. A model (--model) would read it"
            unread = [*refused, *unread]
        elif not asked:
            text = "none of these words names anything that the variables tell"
        else:
            text = f"pay for {', '.join(asked)}, named by {', '.join(used)}"
        return Reading(
            text=text,
            stays=tuple(name for name in names if name not in asked),
            changes=tuple(f"{name}: {'weighs more' if name in names else 'new'}" for name in asked),
            author=AUTHOR,
            unread=tuple(unread),
        )


def with_wishes(genome: Genome, description: TaskDescription, told: Told) -> tuple[Genome, str]:
    """The genome with the terms that wishes ask for which its parents did not know, and a sentence
    on them. A term that is there already weighs more; the latest wish comes last and so holds."""
    notes: list[str] = []
    unread: list[str] = []
    for given in told.wishes:
        if given.number in told.heeded:
            continue
        assert isinstance(given.feedback, Wish)  # see `Told`
        if understood_in(description, given.feedback.wants, change=True).refused:
            unread.append(f"Entry {given.number} is not understood, so it changes nothing.")
            continue
        for name, term in _terms_of(given.feedback.wants, description).items():
            before = genome.term(name)
            if before is None:
                genome = genome.with_term(term)
                notes.append(f"'{name}' is added")
            else:
                genome = genome.with_term(before.scaled("weight", _STEP))
                notes.append(f"'{name}' weighs {_STEP:g} times as much")
    wished = [f"As the person wishes, {', '.join(notes)}."] if notes else []
    return genome, " ".join([*wished, *unread])


def _terms_of(wants: str, description: TaskDescription) -> dict[str, Term]:
    """Terms of the most sensible reward for these words that the words ask for."""
    made = compose(Scene(description, wants), Dice(random.Random(0)))
    names = set(word_use(description, wants).values())
    return {term.name: term for term in made.genome.terms if term.name in names}


def in_order(genome: Genome, told: Told) -> tuple[Genome, str]:
    """The genome whose terms weigh in the order of importance that the person gave (HERON), and a
    sentence on it. The largest weight of the ordered terms goes to the first."""
    orders = [
        each.feedback.order
        for each in told.importance
        if isinstance(each.feedback, Importance) and each.feedback.of == "terms"
    ]
    if not orders:
        return genome, ""
    named = [name for name in orders[-1] if genome.term(name) is not None]
    if len(named) < 2:
        return genome, ""
    weight = max(abs(term.weight) for term in genome.terms if term.name in named)
    for name in named:
        term = genome.term(name)
        assert term is not None  # it was looked for above
        genome = genome.with_term(term.scaled("weight", weight / max(abs(term.weight), 1e-9)))
        weight = rounded(weight / _STEP)
    return genome, f"The person's order of terms: {' > '.join(named)}."
