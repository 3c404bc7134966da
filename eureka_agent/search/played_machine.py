"""Trainings of a search played through in advance, at the measured pace of this machine's workers.

Trainings take slots as the dispatcher gives them: candidates before baselines, each in the worker
with the most free slots. A worker's trainings go on together, the slower the more there are. Scores
come from one evaluator, which scores all policies that wait in one pass.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import deque
from dataclasses import dataclass, field
from enum import IntEnum

from eureka_agent.search.pace import Pace


class Kind(IntEnum):
    """Kind of a training; smaller ones start first among those that are ready."""

    CANDIDATE = 0
    AGAIN = 1
    """Trained to confirm an attempt, or as a final."""
    BASELINE = 2


@dataclass(frozen=True)
class Scoring:
    """Seconds of a pass of the evaluator: of any, and of each training whose policies it scores."""

    any: float
    each: float


@dataclass
class _Worker:
    """A worker's trainings. All have the same length, so the first to start is the first to end."""

    progress: float = 0.0
    """Updates that a training would have made that was there from the start."""
    ends: deque[tuple[float, Kind]] = field(default_factory=deque)
    """Progress at which each training ends."""


class PlayedMachine:
    """Workers and an evaluator with a clock of their own."""

    def __init__(self, pace: Pace, slots: int, updates: int, scoring: Scoring) -> None:
        """`updates` of one training; `slots` of each worker."""
        self.now = 0.0
        """Seconds since the workers started to train."""
        self._pace = pace
        self._slots = slots
        self._updates = updates
        self._scoring = scoring
        self._workers = [_Worker() for _ in range(pace.workers)]
        self._arriving: list[tuple[float, int, Kind]] = []
        self._ready: list[tuple[int, int, Kind]] = []
        self._order = itertools.count()
        self._to_score: list[Kind] = []
        self._scored_now: list[Kind] = []
        self._evaluator_free = math.inf
        self.open = dict.fromkeys(Kind, 0)
        """Trainings without a score."""

    def submit(self, kind: Kind, count: int, after: float = 0.0) -> None:
        """Have trainings wait for slots, `after` seconds from now."""
        self.open[kind] += count
        for _ in range(count):
            heapq.heappush(self._arriving, (self.now + after, next(self._order), kind))

    def finish(self, *kinds: Kind) -> None:
        """Play on until all trainings of these kinds have scores."""
        while any(self.open[kind] for kind in kinds):
            self.next_scored()

    def next_scored(self) -> list[Kind]:
        """Play on until the evaluator ends a pass. Returns the kinds of what it has scored."""
        while True:
            self._fill()
            seconds = min(
                self._evaluator_free - self.now,
                self._arriving[0][0] - self.now if self._arriving else math.inf,
                *(self._seconds_left(worker) for worker in self._workers),
            )
            self._pass_time(max(0.0, seconds))
            if self._evaluator_free <= self.now:
                scored, self._scored_now = self._scored_now, []
                self._evaluator_free = math.inf
                self._start_pass()
                for kind in scored:
                    self.open[kind] -= 1
                return scored

    def _fill(self) -> None:
        while self._arriving and self._arriving[0][0] <= self.now:
            _, order, kind = heapq.heappop(self._arriving)
            heapq.heappush(self._ready, (kind == Kind.BASELINE, order, kind))
        while self._ready:
            worker = min(self._workers, key=lambda each: len(each.ends))
            if len(worker.ends) >= self._slots:
                return
            *_, kind = heapq.heappop(self._ready)
            worker.ends.append((worker.progress + self._updates, kind))

    def _seconds_left(self, worker: _Worker) -> float:
        """Seconds until a training of this worker ends."""
        if not worker.ends:
            return math.inf
        return (worker.ends[0][0] - worker.progress) * self._pace.update_seconds(len(worker.ends))

    def _pass_time(self, seconds: float) -> None:
        for worker in self._workers:
            if not worker.ends:
                continue
            ending = self._seconds_left(worker) <= seconds
            worker.progress += seconds / self._pace.update_seconds(len(worker.ends))
            if ending:
                worker.progress = end = worker.ends[0][0]  # without rounding errors
                while worker.ends and worker.ends[0][0] <= end:
                    self._to_score.append(worker.ends.popleft()[1])
        self.now += seconds
        if math.isinf(self._evaluator_free):
            self._start_pass()

    def _start_pass(self) -> None:
        if self._to_score:
            self._scored_now, self._to_score = self._to_score, []
            seconds = self._scoring.any + len(self._scored_now) * self._scoring.each
            self._evaluator_free = self.now + seconds
