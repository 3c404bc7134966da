"""Shares of the machine: equal, or less for searches that fall behind the others of their task."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator

from eureka_agent.fleet.share import Share
from eureka_agent.journal.entries import AttemptEnded, BaseEntry, IterationEnded, RunStarted

YIELDING_WEIGHT = 0.25
LEAST_GENERATIONS = 2
"""Generations of a search before it can yield: the first one is a draw."""
LEAST_OTHERS = 2


class PromisingFirst:
    """The median stopping rule (Golovin et al., Google Vizier, KDD 2017), softened: a search whose
    best fitness lies below the median of the others of its task after as many generations gets a
    quarter of an equal share, until it catches up."""

    def __init__(self) -> None:
        self._tasks: dict[str, tuple[str, str]] = {}
        self._best: dict[str, float] = {}
        self._curves: dict[str, dict[int, float]] = defaultdict(dict)
        """Best fitness after each generation, by search."""

    def observe(self, search: str, entry: BaseEntry) -> bool:
        """Take an entry of a search into account. True where a generation has ended."""
        match entry:
            case RunStarted():
                description = entry.description
                self._tasks[search] = (description.fingerprint, description.task)
                for attempt in sorted(entry.known, key=lambda each: each.iteration):
                    self._add(search, attempt.fitness)
                    if search in self._best:
                        self._curves[search][attempt.iteration] = self._best[search]
            case AttemptEnded(outcome=outcome) if outcome is not None:
                self._add(search, outcome.fitness)
            case IterationEnded(iteration=iteration) if search in self._best:
                self._curves[search][iteration] = self._best[search]
                return True
        return False

    def _add(self, search: str, fitness: float | None) -> None:
        if fitness is not None:
            self._best[search] = max(fitness, self._best.get(search, fitness))

    def changes(self, shares: dict[str, Share]) -> Iterator[tuple[str, str]]:
        """Set the weights of these searches. Gives those that change, with the reason."""
        for search, share in shares.items():
            curve = self._curves.get(search)
            if not curve:
                continue
            generation = max(curve)
            others = [
                known[generation]
                for name, known in self._curves.items()
                if name != search
                and self._tasks.get(name) == self._tasks.get(search)
                and generation in known
            ]
            if generation + 1 < LEAST_GENERATIONS or len(others) < LEAST_OTHERS:
                continue
            median = statistics.median(others)
            weight = YIELDING_WEIGHT if curve[generation] < median else 1.0
            if weight != share.weight:
                share.weight = weight
                compared = (
                    f"its best fitness after {generation + 1} generations is"
                    f" {curve[generation]:.4g}, the median of {len(others)} others {median:.4g}"
                )
                what = "yields to the others" if weight < 1 else "has an equal share again"
                yield search, f"{what}: {compared}"
