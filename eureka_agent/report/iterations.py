"""Fitness of each iteration's attempts."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from eureka_agent.records import Attempt, Stage


@dataclass(frozen=True)
class Iteration:
    """Attempts of one iteration."""

    number: int
    """Counted from 1."""
    fitness: tuple[float, ...]
    """Mean of each attempt's trainings, lowest first, without those that have none; strengths where
    these rank."""
    broken_off: str
    """`2 stopped, 1 failed`: trainings without a fitness."""

    @property
    def best(self) -> float | None:
        return self.fitness[-1] if self.fitness else None

    @property
    def median(self) -> float | None:
        return statistics.median(self.fitness) if self.fitness else None


def iterations(attempts: Sequence[Attempt]) -> list[Iteration]:
    """Iterations with attempts, in order."""
    by_number: dict[int, list[Attempt]] = {}
    for attempt in attempts:
        by_number.setdefault(attempt.iteration + 1, []).append(attempt)
    return [
        Iteration(number, _fitness(members), _broken_off(members))
        for number, members in sorted(by_number.items())
    ]


def _fitness(attempts: Sequence[Attempt]) -> tuple[float, ...]:
    return tuple(sorted(each.merit for each in attempts if each.merit is not None))


def _broken_off(attempts: Sequence[Attempt]) -> str:
    failed = sum(each.stage is Stage.FAILED and each.fitness is None for each in attempts)
    return f"{failed} failed" if failed else ""
