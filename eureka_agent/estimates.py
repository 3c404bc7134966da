"""Records of an estimate: what a search would train, ask, take and cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from eureka_agent.records import TaskDescription
from eureka_agent.settings import SearchSettings
from eureka_agent.training_counts import TrainingCounts


def sum_of_money(amounts: Iterable[Decimal | None]) -> Decimal | None:
    """The sum; None if an amount is not known."""
    total = Decimal(0)
    for amount in amounts:
        if amount is None:
            return None
        total += amount
    return total


@dataclass(frozen=True)
class Estimate:
    """The size of a search before it starts. Trainings and env steps are the most that it makes."""

    trainings: int
    env_steps: int
    seconds: float | None
    """Wall time on this machine; None where it was not measured."""
    requests: int
    prompt_tokens: int
    reply_tokens: int
    money: Decimal | None
    """US dollars; None where a price is not known."""


@dataclass(frozen=True)
class RoleEstimate:
    """Requests of one role to one model."""

    role: str
    model: str
    requests: int
    prompt_tokens: int
    """Tokens of all its prompts."""
    reply_tokens: int
    """Tokens of all its replies."""
    money: Decimal | None
    """US dollars; None for an unknown price."""


@dataclass(frozen=True)
class SearchPlan:
    """A search that could be started, with its estimate."""

    estimate: Estimate
    settings: SearchSettings
    """Settings of the run, with those that a budget chose."""
    description: TaskDescription
    counts: TrainingCounts
    """Candidates are those of one generation."""
    roles: Sequence[RoleEstimate]
    devices: str
    """Sentence on devices and workers."""
    busy_seconds: float | None
    """Part of the wall time in which this machine works, without waits for models alone."""
    notes: Sequence[str]
    """Sentences on budget and limits, and on what is assumed."""
