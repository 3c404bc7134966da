"""Racing: the candidates of a generation are compared at rungs of their training, and those clearly
behind are stopped there.

Successive halving (Jamieson and Talwalkar 2016) that stops at most half of the candidates at a
rung, and of these only who is behind by more than noise. What is compared are the policies of that
moment, scored without exploration noise from the same start states: the curves of exploring
policies tell much less (benchmarks/LOG.md). Noise is the larger of a part of the candidates' spread
and of what the seed alone does to the task's baselines (`search/noise.py`), for which a race waits.
In a search by generations a candidate waits at a rung, without a slot, until all who are still in
the race have come to it, or until it is among the better half whatever the others will be worth: so
what is decided depends on the scores alone, never on who trained faster. In a steady search it is
compared with who came before. Either way the decision is recorded, and a resumed run keeps to it.
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
"""How far below the median, in robust standard deviations of the candidates' fitness, is clearly
behind at the first rung. At the n-th it is n times that: who is left there differs less, and has
cost more (benchmarks/LOG.md)."""
LEAST_SPREAD = 0.05
"""Spread, as a part of the median, that is taken for noise where the candidates differ by less."""
LEAST_OTHERS = 3
"""Scores at a rung with which one that comes alone is compared."""


def behind(
    values: Mapping[int, float | None],
    earlier: Sequence[float] = (),
    margin: float = MARGIN,
    noise: float = 0.0,
) -> dict[int, str]:
    """Who of the candidates is to be stopped, and why.

    `values`: score at the rung by candidate; None where it could not be had, of which nothing is
    said. `earlier`: scores at the same rung of candidates that were not stopped in earlier
    generations; they are compared with, and count neither as stopped nor as kept. `noise`: standard
    deviation between trainings of one reward here, by which a candidate must be behind at the
    least.
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
    """Why a candidate is to be stopped that is compared with the scores known so far at its rung;
    empty where it is not clearly behind them, or there are too few (asynchronous successive
    halving, Li et al. 2020)."""
    if score is None or len(others) < LEAST_OTHERS:
        return ""
    median, bar = _median_and_bar([score, *others], margin, noise)
    return _reason(score, median) if score < bar else ""


def _median_and_bar(field: Sequence[float], margin: float, noise: float) -> tuple[float, float]:
    """The median of the scores, and what a candidate below is clearly behind."""
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
    """Where in a training candidates are compared: at some of its checkpoints."""

    def __init__(self, settings: TrainingSettings, shares: Sequence[float]) -> None:
        """`shares` of the sample budget, in (0, 1)."""
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
        """Indices of those checkpoints; not the last one, which is the end."""
        self.env_steps = tuple(
            due[place] * settings.horizon * settings.num_envs for place in self.places
        )

    def checkpoints(self, points: Sequence[CurvePoint]) -> tuple[CheckpointRecord, ...]:
        """What a training with these points has behind it."""
        return checkpoints_of(points, self._iterations, self._checkpoints)

    def score(self, rung: int, attempt: Attempt) -> float | None:
        """What the attempt's policy was worth at this rung; None where that is not known."""
        steps = self.env_steps[rung]
        return next((each.fitness for each in attempt.rungs if each.env_steps == steps), None)

    def scores(self, rung: int, attempts: Iterable[Attempt]) -> list[float]:
        """Those of these attempts that are known."""
        known = (self.score(rung, attempt) for attempt in attempts)
        return [score for score in known if score is not None]


def rungs_of(settings: SearchSettings) -> Rungs:
    """The places at which a search compares its candidates."""
    return Rungs(settings, settings.rungs)


def broken_off_outcome(checkpoints: Sequence[CheckpointRecord]) -> Outcome:
    """What a training gave up to these checkpoints: no policy, so no fitness."""
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
    """Whom a candidate runs against."""

    rungs: Rungs

    async def at_rung(self, attempt: Attempt, rung: int, score: float | None) -> str:
        """Wait at a rung until it is certain what becomes of this candidate; why it is to be
        stopped, or ""."""
        ...

    async def tell(self, attempt: Attempt) -> None:
        """The scores of one about which an earlier process decided."""
        ...

    async def leave(self, sample: int) -> None:
        """A candidate's life has ended, whatever it came to: nobody waits for it any more."""
        ...


class OpenRace:
    """The race of a search without generations: whoever comes to a rung is compared with all who
    have been there."""

    def __init__(
        self,
        rungs: Rungs,
        attempts: Callable[[], Iterable[Attempt]],
        noise: Callable[[int], Awaitable[float]],
        decided: Callable[[], None] = lambda: None,
    ) -> None:
        """`attempts`: those of the run, as they are known by then. `noise`: waits until the noise
        at a checkpoint is known. `decided`: called when a decision has been recorded."""
        self.rungs = rungs
        self._attempts = attempts
        self._noise = noise
        self._decided = decided

    async def at_rung(self, attempt: Attempt, rung: int, score: float | None) -> str:
        """Compare this candidate with those before it; why it is to be stopped, or ""."""
        noise = await self._noise(self.rungs.places[rung])
        others = [each for each in self._attempts() if each.id != attempt.id]
        # whoever asked records it in this step of the event loop
        asyncio.get_running_loop().call_soon(self._decided)
        return falls_behind(score, self.rungs.scores(rung, others), MARGIN * (rung + 1), noise)

    async def tell(self, attempt: Attempt) -> None:
        """Nothing: the archive has its scores."""

    async def leave(self, sample: int) -> None:
        """Nothing: nobody waits."""


class GenerationRace:
    """One generation's race: it is decided when all have come to a rung."""

    def __init__(
        self,
        rungs: Rungs,
        candidates: Collection[int],
        earlier: Sequence[Sequence[float]],
        *,
        noise_is_known: bool = True,
    ) -> None:
        """`candidates`: samples of the generation. `earlier`: for each rung, the scores there of
        what earlier generations trained to the end.

        Where the noise is not known yet, nobody is stopped before `tell_noise`; else there is none.
        """
        self.rungs = rungs
        self._racing = set(candidates)
        self._earlier = earlier
        self._scores: list[dict[int, float | None]] = [{} for _ in earlier]
        self._stopped: list[dict[int, str] | None] = [None] * len(earlier)
        """By rung, once all have come to it."""
        self._noise: Sequence[float] | None = [0.0] * len(earlier) if noise_is_known else None
        self._decided = asyncio.Condition()

    async def at_rung(self, attempt: Attempt, rung: int, score: float | None) -> str:
        """Wait at a rung until it is certain what becomes of this candidate; why it is to be
        stopped, or ""."""
        candidate = attempt.sample
        self._scores[rung][candidate] = score
        async with self._decided:
            self._decide()
            self._decided.notify_all()  # one more may be certain to go on
            await self._decided.wait_for(
                lambda: self._stopped[rung] is not None or self._is_safe(candidate, rung)
            )
        return (self._stopped[rung] or {}).get(candidate, "")

    async def tell(self, attempt: Attempt) -> None:
        """The scores of one about which an earlier process decided."""
        for score in attempt.rungs:
            rung = self.rungs.env_steps.index(score.env_steps)
            self._scores[rung][attempt.sample] = score.fitness
        async with self._decided:
            self._decide()
            self._decided.notify_all()

    async def tell_noise(self, noise: Sequence[float]) -> None:
        """The noise at each rung: whoever waits is decided about."""
        self._noise = noise
        async with self._decided:
            self._decide()

    async def leave(self, candidate: int) -> None:
        """A candidate's life has ended, whatever it came to: nobody waits for it any more."""
        self._racing.discard(candidate)
        async with self._decided:
            self._decide()

    def _is_safe(self, candidate: int, rung: int) -> bool:
        """Whether the candidate goes on at this rung even where all who have not come to it yet are
        better: `behind` stops none of the better half."""
        scores = self._scores[rung]
        known = [(score, other) for other, score in scores.items() if score is not None]
        mine = scores[candidate]
        if mine is None:
            return False
        worse = sum(other < (mine, candidate) for other in known)
        return worse >= (len(known) + len(self._racing - scores.keys())) // 2

    def _decide(self) -> None:
        if self._noise is None:
            return
        for rung, scores in enumerate(self._scores):
            if self._stopped[rung] is None and self._racing <= scores.keys():
                stopped = behind(
                    scores, self._earlier[rung], MARGIN * (rung + 1), self._noise[rung]
                )
                self._stopped[rung] = stopped
                self._racing -= stopped.keys()
                self._decided.notify_all()
