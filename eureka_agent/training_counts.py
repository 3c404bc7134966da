"""Number of a search's trainings by kind, for budget, deadline, slots and views."""

from __future__ import annotations

from dataclasses import dataclass

from eureka_agent.settings import SearchSettings, strategy_name

SEEDS_OF_OTHERS = 1.5
"""Fresh seeds of a finalist that does not win, on average of replayed searches
(benchmarks/LOG.md)."""


@dataclass(frozen=True)
class TrainingCounts:
    """Trainings that a search makes, by kind."""

    candidates: int
    """In every generation."""
    confirmations: int
    """After each generation that is confirmed."""
    confirmed: int
    """Generations that are confirmed."""
    finals: int
    """At most."""
    likely_finals: int
    baselines: int
    randomised: int = 0
    """Trainings of the best under distributions of parameters."""

    @property
    def outside_generations(self) -> int:
        """Trainings that no generation makes, as many as are likely."""
        return self.likely_finals + self.baselines + self.randomised

    def likely(self, generations: int) -> int:
        """All trainings of so many generations, as many as are likely."""
        searched = generations * self.candidates + self.confirmed * self.confirmations
        return searched + self.outside_generations

    def most(self, generations: int) -> int:
        """All trainings of so many generations, at most."""
        return self.likely(generations) + self.finals - self.likely_finals

    @classmethod
    def of(
        cls,
        settings: SearchSettings,
        *,
        candidates: int | None = None,
        baselines: int | None = None,
    ) -> TrainingCounts:
        """Counts from settings. `candidates`: of the whole search, else as many as are planned;
        `baselines`: those still to be trained, else the human and the sparse reward from each of
        their seeds."""
        if candidates is None:
            candidates = settings.iterations * settings.samples
        if baselines is None:
            baselines = 2 * settings.seeds_of_baselines
        again = min(settings.confirm, settings.samples) if candidates > 1 else 0
        finalists, seeds = min(settings.finalists, candidates), settings.final_seeds
        others = int((finalists - 1) * min(SEEDS_OF_OTHERS, seeds))
        confirmed = 0
        if again:
            last = settings.iterations - 1
            confirmed = last * is_confirmed(settings, -1) + is_confirmed(settings, last)
        return cls(
            candidates=settings.samples,
            confirmations=again * settings.confirm_seeds if confirmed else 0,
            confirmed=confirmed,
            finals=finalists * seeds,
            likely_finals=seeds + others if finalists else 0,
            baselines=max(0, baselines) if settings.trains_baselines else 0,
            randomised=settings.randomise * settings.seeds_of_randomised if candidates else 0,
        )


def is_confirmed(settings: SearchSettings, generation: int) -> bool:
    """True for a generation after which the best are trained again: where another one is made from
    their order, or where no finals show at the end who was lucky."""
    if generation < settings.iterations - 1:
        return strategy_name(settings) != "best-of-n"
    return not settings.finalists
