"""Work under way in a run, which follows from the entries; a resumed run begins it anew."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from eureka_agent.journal import entries, progress
from eureka_agent.journal.entries import Asked, Notice, TrainingKind
from eureka_agent.journal.progress import Progress
from eureka_agent.records import BASELINES, Score

if TYPE_CHECKING:
    from eureka_agent.journal.state import Recorded, RunState

KEPT_NOTICES = 5
RATE_WINDOW_S = 20.0
"""Seconds of training behind the steps per second."""
FINALS = "final trainings"
RANDOMISED = "distributions of parameters"


def finite_mean(values: Sequence[float | None]) -> float | None:
    """Mean of the values that are known and finite; None without any."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    return sum(known) / len(known) if known else None


class History:
    """Growing curve in bounded memory: neighbours are averaged when it is full."""

    def __init__(self, capacity: int = 128) -> None:
        self._capacity = capacity
        self._stride = 1
        self._pending: list[float | None] = []
        self.values: list[float | None] = []

    def append(self, value: float | None) -> None:
        """Add a value, in constant time on average."""
        self._pending.append(value)
        if len(self._pending) < self._stride:
            return
        self.values.append(finite_mean(self._pending))
        self._pending.clear()
        if len(self.values) >= self._capacity:
            pairs = range(0, len(self.values), 2)
            self.values = [finite_mean(self.values[index : index + 2]) for index in pairs]
            self._stride *= 2


@dataclass
class TrainingUnderWay:
    """A queued or running training."""

    job: str
    label: str
    kind: TrainingKind
    role: str
    """Operator of a candidate, or number of a final or baseline training."""
    env_steps: int = 0
    fitness: float | None = None
    history: History = field(default_factory=History)

    def add(self, points: Sequence[Progress]) -> int:
        """Add points to the curve. Returns the number of new env steps."""
        before = self.env_steps
        for point in points:
            if point.fitness is not None:
                self.fitness = point.fitness
            self.history.append(self.fitness)  # level where no episode ended
            self.env_steps = max(self.env_steps, point.env_steps)
        return self.env_steps - before


@dataclass
class UnderWay:
    """Work of the process that works on a run. Times are seconds of the run."""

    asked: Asked = field(default_factory=Asked)
    """Requests that have an answer, those of earlier processes included."""
    requests: dict[int, tuple[progress.RequestStarted, float]] = field(default_factory=dict)
    """Requests that wait for an answer, with their times."""
    batches: dict[str, tuple[progress.RequestBatchAwaited, float]] = field(default_factory=dict)
    """Batches of requests that are awaited, with the times of their sending."""
    notices: deque[Notice] = field(default_factory=lambda: deque(maxlen=KEPT_NOTICES))
    queued: dict[str, TrainingUnderWay] = field(default_factory=dict)
    running: dict[str, TrainingUnderWay] = field(default_factory=dict)
    rounds: dict[int, entries.IterationStarted] = field(default_factory=dict)
    """Last round of each iteration of this process."""
    iterations: dict[int, str] = field(default_factory=dict)
    """Iterations under way, each with a remark: several in a steady search."""
    end: str = ""
    """`FINALS` or `RANDOMISED` once these have begun."""
    scores: dict[str, Score] = field(default_factory=dict)
    """Final scores by name."""
    trained: int = 0
    """Env steps that this process has trained."""
    first: float | None = None
    """Time at which its first training began."""
    marks: deque[tuple[float, int]] = field(default_factory=deque)
    """Times with the env steps trained by then, over `RATE_WINDOW_S`."""

    @property
    def is_training(self) -> bool:
        """True where something trains, or waits for a slot."""
        return bool(self.running or self.queued)

    @property
    def steps_per_second(self) -> float | None:
        """Speed over the last seconds of training; None while unknown, and while nothing trains."""
        if len(self.marks) < 2 or not self.is_training:
            return None
        (begin, before), (end, after) = self.marks[0], self.marks[-1]
        return (after - before) / (end - begin) if end > begin else None

    def apply(self, recorded: Recorded, state: RunState) -> None:
        """Apply the next entry. `state`: with this entry."""
        now = recorded.seconds
        match recorded.entry:
            case Notice() as entry if not entry.stays:  # the others are printed above the view
                self.notices.append(entry)
            case progress.RequestStarted() as entry:
                self.requests[entry.number] = entry, now
            case progress.RequestEnded() as entry:
                self.requests.pop(entry.request.number, None)
                self.asked = self.asked.with_cost(entry.cost)
            case progress.RequestBatchAwaited() as entry:
                self.batches[entry.id] = entry, now - entry.seconds
            case progress.RequestBatchEnded() as entry:
                self.batches.pop(entry.id, None)
            case progress.TrainingQueued() as entry:
                attempt = state.by_id.get(entry.label)
                if attempt is not None and not attempt.is_ranked:
                    self.end = RANDOMISED
                role = self._role(entry, state)
                self.queued[entry.job] = TrainingUnderWay(
                    entry.job, entry.label, entry.training, role
                )
            case progress.TrainingProgress() as entry:
                self._progress(entry, now)
            case progress.TrainingResumed() as entry if entry.job in self.queued:
                self.queued[entry.job].add(entry.points)  # of an earlier process
            case progress.TrainingRetried() as entry:
                if (training := self.running.pop(entry.job, None)) is not None:
                    # from its first step, without its curve
                    anew = replace(training, env_steps=0, fitness=None, history=History())
                    self.queued[entry.job] = anew
                self.notices.append(Notice(text=entry.line(state), level="warning"))
            case progress.TrainingEnded() as entry:
                self.running.pop(entry.job, None)
                self.queued.pop(entry.job, None)
            case entries.IterationStarted() as entry:
                self.rounds[entry.iteration] = entry
                remark = f"round {entry.round + 1}" if entry.round else ""
                self._enter(entry.iteration, remark, state)
            case entries.ConfirmationStarted() as entry:
                self._enter(entry.iteration, "the best again", state)
            case entries.IterationEnded(iteration=iteration) if len(self.iterations) > 1:
                self.iterations.pop(iteration, None)  # the last one stays until another begins
            case entries.FinalStarted():
                self.end = FINALS
            case entries.Scored(score=score):
                self.scores[score.name] = score
            case entries.RunEnded():
                self.running.clear()
                self.queued.clear()

    def _enter(self, iteration: int, remark: str, state: RunState) -> None:
        under_way = self.iterations.items()
        self.iterations = {
            number: text for number, text in under_way if number not in state.iterations_ended
        }
        self.iterations[iteration] = remark

    def _role(self, entry: progress.TrainingQueued, state: RunState) -> str:
        if entry.training == "search":
            attempt = state.by_id.get(entry.label)
            return "" if attempt is None else attempt.proposal.operator.value
        if entry.training == "repeat":
            return "again"
        kind = "baseline" if entry.training in BASELINES else entry.training
        waiting = (*self.queued.values(), *self.running.values())
        number = 1 + sum(each.label == entry.label for each in waiting)
        number += sum(name == entry.label for name, _ in state.by_training)
        return f"{kind}, seed {number}"

    def _progress(self, entry: progress.TrainingProgress, now: float) -> None:
        training = self.running.get(entry.job) or self.queued.pop(entry.job, None)
        if training is None:
            return
        self.running[entry.job] = training
        self.first = now if self.first is None else self.first
        self.trained += training.add(entry.points)
        if not self.marks or now > self.marks[-1][0]:
            self.marks.append((now, self.trained))
        while len(self.marks) > 2 and now - self.marks[0][0] > RATE_WINDOW_S:
            self.marks.popleft()
