"""Agreement of a model that judges with the person's choices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eureka_agent import wording
from eureka_agent.feedback.preferences import wins_of
from eureka_agent.feedback.standing import choices_of, comparisons_of_model, preferences_of
from eureka_agent.feedback_records import Given
from eureka_agent.records import Attempt, Stage

FEWEST_PAIRS = 5
"""Pairs below which a share says nothing."""


@dataclass(frozen=True)
class Agreement:
    """Pairs of which a person preferred one, and those in which the model has the same first."""

    agreed: int
    pairs: int

    def __str__(self) -> str:
        return f"it agrees with your choices in {self.agreed} of {self.pairs}"


def agreement(attempts: Sequence[Attempt], feedback: Sequence[Given]) -> Agreement | None:
    """The agreement so far; None for fewer than `FEWEST_PAIRS` pairs. Pairs that a person calls
    alike, or with an attempt that the model has not compared, are left out."""
    trained = {each.id for each in attempts if each.stage is Stage.TRAINED}
    seen = {
        name
        for each in comparisons_of_model(feedback)
        for pair in wins_of(each)
        for name in trained.intersection(pair)
    }
    pairs: list[tuple[str, str]] = []
    for each in choices_of(feedback):
        wins = set(wins_of(each.feedback))  # much better is one pair, too
        pairs += [pair for pair in wins if pair[::-1] not in wins and seen.issuperset(pair)]
    if len(pairs) < FEWEST_PAIRS:
        return None
    strengths = preferences_of(attempts, feedback, "model").means()
    agreed = sum(strengths[winner] > strengths[loser] for winner, loser in pairs)
    return Agreement(agreed, len(pairs))


def judged_words(model: str, comparisons: int, agreement: Agreement | None) -> str:
    """Clause on a model that judges, and on how far it agrees with the person."""
    words = f"{model} judged {wording.plural(comparisons, 'pair')} from pictures"
    return words if agreement is None else f"{words}; {agreement}"
