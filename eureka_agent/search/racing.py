"""Racing: candidates are compared at rungs of their training, and those clearly behind are stopped.

The rule is successive halving (Jamieson and Talwalkar 2016). It stops at most half of the
candidates at a rung, and only those that are behind by more than noise. Policies are scored without
exploration noise from the same start states, since the curves of exploring policies tell much less
(benchmarks/LOG.md). Noise is the larger of a part of the candidates' spread and the spread between
seeds of the baselines (`search/noise.py`), for which a race waits.

By generations a candidate waits at a rung, without a slot, until all others in the race have come
to it, or until it is certainly in the better half. So decisions depend on the scores alone, never
on speed. A steady search compares it with the earlier candidates. Decisions are recorded, and a
resumed run keeps them.
"""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

from eureka_agent import wording
from eureka_agent.records import Attempt, CheckpointRecord, CurvePoint, Outcome
from eureka_agent.settings import SearchSettings, TrainingSettings
from eureka_agent.summaries import checkpoint_iterations, checkpoints_of

MARGIN = 0.5
"""Distance below the median that counts as clearly behind at the first rung, in robust standard
deviations of the candidates' fitness. At the n-th rung it is n times that, since the remaining
candidates differ less and have cost more (benchmarks/LOG.md)."""
LEAST_SPREAD = 0.05
"""Least spread that counts as noise, as a part of the median."""
LEAST_OTHERS = 3
"""Least number of other scores at a rung in a steady search."""


def behind(
    values: Mapping[int, float | None],
    earlier: Sequence[float] = (),
    margin: float = MARGIN,
    noise: float = 0.0,
) -> dict[int, str]:
    """The candidates to stop, with the reasons.

    `values` are the scores at the rung by candidate; a score of None decides nothing. `earlier` are
    scores at the rung of earlier generations' trained candidates, which count for the median alone.
    `noise` is the standard deviation between trainings of one reward, the least distance for a
    stop.
    """
    known = {candidate: value for candidate, value in values.items() if value is not None}
    if len(known) < 2:
        return {}
    median, bar = _median_and_bar([*known.values(), *earlier], margin, noise)
    worst = sorted(known, key=lambda candidate: (known[candidate], candidate))[: len(known) // 2]
    return {
        candidate: _reason(known[candidate], median)
        for candidate in worst
        if known[candidate] < bar
    }


def falls_behind(
    score: float | None, others: Sequence[float], margin: float = MARGIN, noise: float = 0.0
) -> str:
    """The reason to stop a candidate that is compared with the scores known at its rung; empty if
    it is not clearly behind or too few are known (asynchronous successive halving, Li et al.
    2020)."""
    if score is None or len(others) < LEAST_OTHERS:
        return ""
    median, bar = _median_and_bar([score, *others], margin, noise)
    return _reason(score, median) if score < bar else ""


def _median_and_bar(field: Sequence[float], margin: float, noise: float) -> tuple[float, float]:
    """The median of the scores, and the score below which a candidate is clearly behind."""
    median = statistics.median(field)
    # 1.4826 times the median distance to the median is the standard deviation of a normal
    # distribution (Hampel 1974)
    spread = max(
        1.4826 * statistics.median(abs(value - median) for value in field),
        LEAST_SPREAD * abs(median),
    )
    return median, median - max(margin * spread, noise)


def _reason(score: float, median: float) -> str:
    return f"fitness {wording.number(score)}, behind the median of {wording.number(median)}"


class Rungs:
    """Rungs of a training: checkpoints at which candidates are compared."""

    def __init__(self, settings: TrainingSettings, shares: Sequence[float]) -> None:
        """`shares` are parts of the env steps, in (0, 1)."""
        self._iterations = settings.updates
        self._checkpoints = settings.checkpoints
        due = checkpoint_iterations(self._iterations, settings.checkpoints)
        places = {
            next(
                place
                for place, iteration in enumerate(due)
                if iteration >= share * self._iterations
            )
            for share in shares
        }
        self.places = tuple(sorted(place for place in places if place < len(due) - 1))
        """Indices of the checkpoints, without the last one."""
        self.env_steps = tuple(
            due[place] * settings.horizon * settings.num_envs for place in self.places
        )

    def checkpoints(self, points: Sequence[CurvePoint]) -> tuple[CheckpointRecord, ...]:
        """Checkpoints of a training with these points."""
        return checkpoints_of(points, self._iterations, self._checkpoints)

    def score(self, rung: int, attempt: Attempt) -> float | None:
        """The score of the attempt's policy at this rung; None if it is not known."""
        steps = self.env_steps[rung]
        return next((each.fitness for each in attempt.rungs if each.env_steps == steps), None)

    def scores(self, rung: int, attempts: Iterable[Attempt]) -> list[float]:
        """The known scores of these attempts."""
        known = (self.score(rung, attempt) for attempt in attempts)
        return [score for score in known if score is not None]


def rungs_of(settings: SearchSettings) -> Rungs:
    """The rungs of a search."""
    return Rungs(settings, settings.rungs)


def broken_off_outcome(checkpoints: Sequence[CheckpointRecord]) -> Outcome:
    """The outcome of a training that ended early: no policy, so no fitness."""
    known = [
        (record.fitness, place)
        for place, record in enumerate(checkpoints)
        if record.fitness is not None
    ]
    best = max(known, default=(None, len(checkpoints) - 1))
    return Outcome(
        env_steps=checkpoints[-1].env_steps,
        seconds=0.0,
        checkpoints=tuple(checkpoints),
        best_checkpoint=best[1],
        training_fitness=best[0],
    )


class Race(Protocol):
    """The candidates that are compared with each other."""

    rungs: Rungs

    async def at_rung(self, attempt: Attempt, rung: int, score: float | None) -> str:
        """Wait for the decision on this candidate at a rung: the reason to stop it, or ""."""
        ...

    async def add_scores(self, attempt: Attempt) -> None:
        """Add the scores of an attempt that an earlier process decided about."""
        ...

    async def leave(self, sample: int) -> None:
        """Take a candidate that has ended out of the race."""
        ...


class OpenRace:
    """The race of a steady search: a candidate at a rung is compared with all earlier ones
    there."""

    def __init__(
        self,
        rungs: Rungs,
        attempts: Callable[[], Iterable[Attempt]],
        noise: Callable[[int], Awaitable[float]],
        decided: Callable[[], None] = lambda: None,
    ) -> None:
        """`attempts` gives the run's attempts so far. `noise` waits for the noise at a checkpoint.
        `decided` is called after a decision is recorded."""
        self.rungs = rungs
        self._attempts = attempts
        self._noise = noise
        self._decided = decided

    async def at_rung(self, attempt: Attempt, rung: int, score: float | None) -> str:
        """Compare this candidate with the earlier ones: the reason to stop it, or ""."""
        noise = await self._noise(self.rungs.places[rung])
        others = [each for each in self._attempts() if each.id != attempt.id]
        # the caller records the decision in this step of the event loop
        asyncio.get_running_loop().call_soon(self._decided)
        return falls_behind(score, self.rungs.scores(rung, others), MARGIN * (rung + 1), noise)

    async def add_scores(self, attempt: Attempt) -> None:
        """Do nothing, since the archive has its scores."""

    async def leave(self, sample: int) -> None:
        """Do nothing, since no candidate waits for others."""


class GenerationRace:
    """The race of one generation, decided at each rung when all candidates have come to it."""

    def __init__(
        self,
        rungs: Rungs,
        candidates: Collection[int],
        earlier: Sequence[Sequence[float]],
        *,
        noise_is_known: bool = True,
    ) -> None:
        """`candidates` are the generation's samples; `earlier` has, for each rung, the scores of
        earlier generations' trained candidates.

        Without known noise nothing is decided before `set_noise`; with it the noise is 0.
        """
        self.rungs = rungs
        self._racing = set(candidates)
        self._earlier = earlier
        self._scores: list[dict[int, float | None]] = [{} for _ in earlier]
        self._stopped: list[dict[int, str] | None] = [None] * len(earlier)
        """By rung, once all candidates have come to it."""
        self._noise: Sequence[float] | None = [0.0] * len(earlier) if noise_is_known else None
        self._decided = asyncio.Condition()

    async def at_rung(self, attempt: Attempt, rung: int, score: float | None) -> str:
        """Wait for the decision on this candidate at a rung: the reason to stop it, or ""."""
        candidate = attempt.sample
        self._scores[rung][candidate] = score
        await self._decide()
        async with self._decided:
            await self._decided.wait_for(
                lambda: self._stopped[rung] is not None or self._is_safe(candidate, rung)
            )
        return (self._stopped[rung] or {}).get(candidate, "")

    async def add_scores(self, attempt: Attempt) -> None:
        """Add the scores of an attempt that an earlier process decided about."""
        for score in attempt.rungs:
            rung = self.rungs.env_steps.index(score.env_steps)
            self._scores[rung][attempt.sample] = score.fitness
        await self._decide()

    async def set_noise(self, noise: Sequence[float]) -> None:
        """Set the noise at each rung, and decide."""
        self._noise = noise
        await self._decide()

    async def leave(self, candidate: int) -> None:
        """Take a candidate that has ended out of the race."""
        self._racing.discard(candidate)
        await self._decide()

    def _is_safe(self, candidate: int, rung: int) -> bool:
        """True if the candidate goes on even if all that have not come to this rung are better:
        `behind` stops none of the better half."""
        scores = self._scores[rung]
        known = [(score, other) for other, score in scores.items() if score is not None]
        mine = scores[candidate]
        if mine is None:
            return False
        worse = sum(other < (mine, candidate) for other in known)
        return worse >= (len(known) + len(self._racing - scores.keys())) // 2

    async def _decide(self) -> None:
        """Decide the rungs that all candidates have come to, and wake those that wait."""
        for rung, scores in enumerate(self._scores):
            if self._noise is None or self._stopped[rung] is not None:
                continue
            if self._racing <= scores.keys():
                margin = MARGIN * (rung + 1)
                stopped = behind(scores, self._earlier[rung], margin, self._noise[rung])
                self._stopped[rung] = stopped
                self._racing -= stopped.keys()
        async with self._decided:
            self._decided.notify_all()
