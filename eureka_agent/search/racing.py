"""Racing: the candidates of a generation are compared at rungs of their training, and those clearly behind are stopped there.

Successive halving (Jamieson and Talwalkar 2016) that stops at most half of the candidates at a rung, and of these only who is behind by more than
noise. Everybody waits at a rung, without a slot, until all who are still in the race have come to it: so what is decided depends on the
curves alone, never on who trained faster.
"""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Collection, Mapping, Sequence

from eureka_agent.records import CheckpointRecord, CurvePoint
from eureka_agent.report import wording
from eureka_agent.settings import TrainingSettings
from eureka_agent.summaries import checkpoint_iterations, checkpoints_of

MARGIN = 0.5
"""How far below the median, in robust standard deviations of the candidates' fitness, is clearly behind at the first rung. At the n-th it
is n times that: who is left there differs less, and has cost more (benchmarks/LOG.md)."""
LEAST_SPREAD = 0.05
"""Spread, as a part of the median, that is taken for noise where the candidates differ by less."""


def behind(values: Mapping[int, float | None], earlier: Sequence[float] = (), margin: float = MARGIN) -> dict[int, str]:
    """Who of the candidates is to be stopped, and why.

    `values`: fitness at the rung by candidate; None where no episode has ended yet, of which nothing is said. `earlier`: fitness at the same rung of
    candidates that were not stopped in earlier generations; they are compared with, and count neither as stopped nor as kept.
    """
    known = {candidate: value for candidate, value in values.items() if value is not None}
    field = [*known.values(), *earlier]
    if len(known) < 2:
        return {}
    median = statistics.median(field)
    # 1.4826 times the median distance to the median is the standard deviation of a normal distribution (Hampel 1974)
    spread = max(1.4826 * statistics.median(abs(value - median) for value in field), LEAST_SPREAD * abs(median))
    bar = median - margin * spread
    worst = sorted(known, key=lambda candidate: (known[candidate], candidate))[: len(known) // 2]
    return {
        candidate: f"fitness {wording.number(known[candidate])}, clearly behind the median of {wording.number(median)}"
        for candidate in worst
        if known[candidate] < bar
    }


class Rungs:
    """Where in a training candidates are compared: at some of its checkpoints."""

    def __init__(self, settings: TrainingSettings, shares: Sequence[float]) -> None:
        """`shares` of the sample budget, in (0, 1)."""
        self._iterations = settings.updates
        self._checkpoints = settings.checkpoints
        due = checkpoint_iterations(self._iterations, settings.checkpoints)
        places = {
            next(place for place, iteration in enumerate(due) if iteration >= share * self._iterations)
            for share in shares
        }
        self.places = tuple(sorted(place for place in places if place < len(due) - 1))
        """Indices of those checkpoints; not the last one, which is the end."""
        self.env_steps = tuple(due[place] * settings.horizon * settings.num_envs for place in self.places)

    @property
    def progress(self) -> float:
        """Part of a training that is behind it at the last rung."""
        return (self.places[-1] + 1) / min(self._iterations, self._checkpoints)

    def fitness(self, rung: int, checkpoints: Sequence[CheckpointRecord]) -> float | None:
        """Mean fitness of the episodes that ended between the checkpoint before the rung and the rung."""
        return checkpoints[self.places[rung]].fitness

    def checkpoints(self, points: Sequence[CurvePoint]) -> tuple[CheckpointRecord, ...]:
        """What a training with these points has behind it."""
        return checkpoints_of(points, self._iterations, self._checkpoints)

    def reached(self, checkpoints: Sequence[CheckpointRecord]) -> int:
        """Rungs that a training with these checkpoints has come to."""
        return sum(place < len(checkpoints) for place in self.places)


class Race:
    """One generation's race."""

    def __init__(
        self, rungs: Rungs, candidates: Collection[int], earlier: Sequence[Sequence[CheckpointRecord]]
    ) -> None:
        """`candidates`: samples of the generation. `earlier`: checkpoints of what earlier generations trained to the end."""
        self.rungs = rungs
        self._racing = set(candidates)
        self._earlier = earlier
        self._values: list[dict[int, float | None]] = [{} for _ in rungs.places]
        self._stopped: list[dict[int, str] | None] = [None] * len(rungs.places)
        """By rung, once all have come to it."""
        self._decided = asyncio.Condition()

    async def at_rung(self, candidate: int, checkpoints: Sequence[CheckpointRecord]) -> str:
        """Wait at the last rung that these checkpoints hold until all are there; why this candidate is to be stopped, or ""."""
        rung = self.rungs.reached(checkpoints) - 1
        self.tell(candidate, checkpoints)
        async with self._decided:
            self._decide()
            await self._decided.wait_for(lambda: self._stopped[rung] is not None)
        return (self._stopped[rung] or {}).get(candidate, "")

    def tell(self, candidate: int, checkpoints: Sequence[CheckpointRecord]) -> None:
        """What a candidate reached, without waiting: of one that an earlier process trained."""
        for rung in range(self.rungs.reached(checkpoints)):
            self._values[rung][candidate] = self.rungs.fitness(rung, checkpoints)

    async def leave(self, candidate: int) -> None:
        """A candidate's life has ended, whatever it came to: nobody waits for it any more."""
        self._racing.discard(candidate)
        async with self._decided:
            self._decide()

    def _decide(self) -> None:
        for rung, values in enumerate(self._values):
            if self._stopped[rung] is None and self._racing <= values.keys():
                earlier = [self.rungs.fitness(rung, each) for each in self._earlier if self.rungs.reached(each) > rung]
                known = [value for value in earlier if value is not None]
                stopped = behind(values, known, MARGIN * (rung + 1))
                self._stopped[rung] = stopped
                self._racing -= stopped.keys()
                self._decided.notify_all()
