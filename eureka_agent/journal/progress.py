"""The journal's entries on work under way, of use as long as the run goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import FiniteFloat

from eureka_agent import wording
from eureka_agent.batch_records import RequestBatch
from eureka_agent.journal import entries
from eureka_agent.records import BASELINES, Cost, Count, CurvePoint, Record

if TYPE_CHECKING:
    from eureka_agent.journal.state import RunState

# ── requests ──────────────────────────────────────────────────────────────────────────────────────


class RequestStarted(entries.Untold, entries.Passing):
    """A request was sent to a language model."""

    kind: Literal["request-started"] = "request-started"
    number: Count
    """Unique within the process."""
    model: str
    purpose: str
    """Expected reply in words: `"design of 2-03"`."""

    def line(self, state: RunState) -> str:
        return f"request to {self.model}: {self.purpose}"


class RequestEnded(entries.Passing):
    """The reply to a request is stored, or the request failed."""

    durable: ClassVar[bool] = True  # a kill does not lose the time that the reply took
    kind: Literal["request-ended"] = "request-ended"
    request: RequestStarted
    cost: Cost | None
    """Cost of the reply; None without one."""

    def line(self, state: RunState) -> str:
        request, cost = self.request, self.cost
        if cost is None:
            return f"no reply from {request.model}: {request.purpose}"
        tokens = "tokens unknown"
        if cost.prompt_tokens is not None and cost.completion_tokens is not None:
            tokens = f"{wording.count(cost.prompt_tokens + cost.completion_tokens)} tokens"
        money = "cost unknown" if cost.money is None else wording.money(cost.money)
        facts = f"{wording.duration(cost.seconds)}, {tokens}, {money}"
        return f"reply from {request.model}: {request.purpose} ({facts})"


class RequestBatchPlanned(entries.Untold):
    """A batch of requests is about to be sent to a model's provider."""

    kind: Literal["request-batch-planned"] = "request-batch-planned"
    batch: RequestBatch

    def line(self, state: RunState) -> str:
        requests = wording.plural(len(self.batch.requests), "request")
        return f"batch {self.batch.id} of {requests} to {self.batch.model} is sent"


class RequestBatchSent(entries.Untold):
    """The provider has a batch, under an id of its own."""

    kind: Literal["request-batch-sent"] = "request-batch-sent"
    id: str
    provider_id: str

    def line(self, state: RunState) -> str:
        return f"batch {self.id} is with the provider as {self.provider_id}"


class RequestBatchAwaited(entries.Passing):
    """Replies of a batch are awaited, in the process that sent it or in a later one."""

    kind: Literal["request-batch-awaited"] = "request-batch-awaited"
    id: str
    model: str
    requests: Count
    seconds: entries.Seconds
    """Time since it was sent."""

    def line(self, state: RunState) -> str:
        requests = wording.plural(self.requests, "request")
        return f"a batch of {requests} is with the provider of {self.model}"


class RequestBatchEnded(entries.BaseEntry):
    """The results of a batch are read, or it was never accepted."""

    kind: Literal["request-batch-ended"] = "request-batch-ended"
    id: str
    unanswered: tuple[str, ...]
    """Keys of requests that it has no reply for."""

    @property
    def is_told(self) -> bool:
        return bool(self.unanswered)

    def line(self, state: RunState) -> str:
        if not self.unanswered:
            return f"batch {self.id} has ended, each request with a reply"
        requests = wording.plural(len(self.unanswered), "request")
        return f"a batch of requests has ended, {requests} of it without a reply"


# ── trainings ─────────────────────────────────────────────────────────────────────────────────────


class TrainingQueued(entries.Untold, entries.Passing):
    """A training waits for a slot."""

    kind: Literal["training-queued"] = "training-queued"
    job: str
    """Unique within the run."""
    label: str
    """The attempt's id, `"human"` or `"sparse"`."""
    training: entries.TrainingKind
    seed: int

    def line(self, state: RunState) -> str:
        what = f"{self.training} training of {self.label}"
        return f"{what} from seed {self.seed} waits for a slot"


class Progress(Record):
    """Part of a curve point, for views."""

    env_steps: Count
    fitness: FiniteFloat | None


class TrainingProgress(entries.Untold, entries.Passing):
    """New curve points of a training; the first entry, without any, means that it has a slot."""

    kind: Literal["training-progress"] = "training-progress"
    job: str
    points: tuple[Progress, ...]

    def line(self, state: RunState) -> str:
        if not self.points:
            return f"training {self.job} begins"
        last = self.points[-1]
        place = f"{wording.count(last.env_steps)} env steps"
        return f"training {self.job} at {place}: fitness {wording.number(last.fitness)}"


class TrainingEnded(entries.Passing):
    """A training ended; one without `TrainingQueued` was known already (cached, resumed)."""

    kind: Literal["training-ended"] = "training-ended"
    job: str
    label: str
    training: entries.TrainingKind
    fitness: FiniteFloat | None
    """Fitness of the evaluated policy; None after a failure."""
    failure: str = ""
    taken_from: str = ""
    """Source of a known result, in words; empty where it was trained now."""

    @property
    def is_told(self) -> bool:
        return self.training not in ("search", "repeat")  # the attempt's own entry tells

    def line(self, state: RunState) -> str:
        what = f"{self.training} training of {self.label}"
        if self.training in BASELINES:
            what = f"training of the {self.label} reward"
        result = f"fitness {wording.number(self.fitness)}"
        if self.failure:
            result = f"failed: {self.failure}"
        end = f"is taken from {self.taken_from}" if self.taken_from else "ended"
        return f"{what} {end}: {result}"


class TrainingRetried(entries.Passing):
    """A training restarts after its worker died, perhaps from a saved state."""

    kind: Literal["training-retried"] = "training-retried"
    job: str
    reason: str

    def line(self, state: RunState) -> str:
        return f"training of {self.job.partition('@')[0]} starts again: {self.reason}"


class TrainingResumed(entries.Passing):
    """A queued training will resume from a saved state."""

    kind: Literal["training-resumed"] = "training-resumed"
    job: str
    label: str
    points: tuple[Progress, ...]

    def line(self, state: RunState) -> str:
        steps = self.points[-1].env_steps if self.points else 0
        return f"training of {self.label} goes on at {wording.count(steps)} env steps"


def progress_of(points: tuple[CurvePoint, ...]) -> tuple[Progress, ...]:
    """Part of curve points that the journal keeps; the whole curve is in the attempt's folder."""
    return tuple(Progress(env_steps=each.env_steps, fitness=each.fitness) for each in points)


PASSING = frozenset(
    kind for kind, each in entries.KINDS.items() if issubclass(each, entries.Passing)
)
"""Kinds that do not change the run's state."""
OF_RUN = frozenset(
    kind
    for kind, each in entries.KINDS.items()
    if not issubclass(each, entries.Passing | entries.OfAttempt)
)
"""Kinds that change the run's state but no attempt."""
