"""Number of a search's trainings by kind, for budget, deadline, slots and views."""

from __future__ import annotations

from dataclasses import dataclass

from eureka_agent.settings import SearchSettings


@dataclass(frozen=True)
class TrainingCounts:
    """Trainings that a search makes at most, by kind."""

    candidates: int
    """In every generation."""
    confirmations: int
    """After every generation."""
    finals: int
    baselines: int
    randomised: int = 0
    """Trainings of the best under distributions of parameters."""

    @property
    def outside_generations(self) -> int:
        """Trainings that no generation makes."""
        return self.finals + self.baselines + self.randomised

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
        confirmed = min(settings.confirm, settings.samples) if candidates > 1 else 0
        return cls(
            candidates=settings.samples,
            confirmations=confirmed * settings.confirm_seeds,
            finals=min(settings.finalists, candidates) * settings.final_seeds,
            baselines=max(0, baselines) if settings.trains_baselines else 0,
            randomised=settings.randomise * settings.seeds_of_randomised if candidates else 0,
        )
