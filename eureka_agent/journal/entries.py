"""The journal's entries: what was decided or happened in a run, each a record of its own kind.

An entry is appended to the run's archive before anybody acts on it. What a run knows follows from
its entries alone (`eureka_agent.journal.state`), and so does what a view shows. Append only: a kind
that changes its form or meaning gets a new `version`, and reads its earlier ones.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Protocol, get_args

from pydantic import ConfigDict, Field, FiniteFloat, TypeAdapter

from eureka_agent.records import (
    Attempt,
    Cost,
    Count,
    CurvePoint,
    Diagnosis,
    FinalTraining,
    Money,
    Operator,
    Outcome,
    Proposal,
    Record,
    Repeat,
    RungScore,
    RunStatus,
    Score,
    Stage,
    TaskDescription,
    Verdict,
    WrittenFitness,
)
from eureka_agent.settings import SearchSettings

TrainingKind = Literal["search", "repeat", "final", "human", "sparse"]
"""Why a training runs: a candidate of the search, one of the best again, a finalist with a fresh
seed, or one of the two baselines."""
Wait = Literal["review", "others", "slot"]
"""Reasons for which a training waits that has paused at a rung: its review, the comparison with the
others, and then a slot in which it goes on."""
Seconds = Annotated[FiniteFloat, Field(ge=0, le=1e10)]


class BaseEntry(Record):
    """Base of all entries."""

    version: ClassVar[int] = 1
    durable: ClassVar[bool] = True
    """False: nothing is decided by it, so it may be written a moment later, with others."""

    @property
    def of_attempt(self) -> str:
        """Id of the attempt that it changes; empty for none."""
        return ""


class _OfAttempt(BaseEntry):
    attempt: str
    """Its id."""

    @property
    def of_attempt(self) -> str:
        return self.attempt


class _Passing(BaseEntry):
    durable: ClassVar[bool] = False


# ── the run ───────────────────────────────────────────────────────────────────────────────────────


class RunCreated(BaseEntry):
    """The first entry: what was fixed when the run was made."""

    kind: Literal["run-created"] = "run-created"
    command: tuple[str, ...] = ()
    settings: dict[str, Any] = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)
    git_commit: str | None = None
    prices: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Prices of the models, by name; they stay for the whole run."""
    recorded_settings: dict[str, Any] | None = None
    """Settings of the recorded run, in a run that replays it."""
    given_source: str | None = None
    """The reward of a run that trains a person's own."""
    written_fitness: WrittenFitness | None = None
    fitness_accepted: str = ""
    """Acceptance of the written fitness, in words."""
    fitness_messages: tuple[str, ...] = ()
    """Keys of the requests that it took."""
    designer: str = ""
    """Known when the run was made, like the next two; the last `RunStarted` has today's."""
    wall: str = ""
    devices: tuple[str, ...] = ()
    budget: str = ""
    """Result of a budget, in words."""
    seconds_before: Seconds = 0.0
    """Wall time before the first generation, of a run with a budget."""


class Asked(Record):
    """An account of requests to models."""

    requests: Count = 0
    uncounted: Count = 0
    """Requests whose tokens the server did not count."""
    tokens: Count = 0
    money: Money = Decimal(0)
    """None where that of any request is unknown."""


class RunStarted(BaseEntry):
    """A process begins to work on the run; a resumed run has several."""

    kind: Literal["run-started"] = "run-started"
    run_folder: Path = Field(default=Path(), exclude=True)
    """Place of the run now; not recorded."""
    run_name: str
    description: TaskDescription
    sentence: str
    """The task in the words that the designer was given."""
    settings: SearchSettings
    wall: str
    """Name of the wall around generated code."""
    designer: str
    """`"offline"` or the model's name."""
    devices: str = ""
    """Devices that trainings run on: `"cpu"`, `"cuda:0 and cuda:1"`."""
    resumed: bool = False
    fitness_origin: str = ""
    """Author of the fitness and how it was accepted, in words; empty for the task's own metric."""
    seconds_before: Seconds = 0.0
    """Wall time that earlier processes spent on the run."""
    known: tuple[Attempt, ...] = Field(default=(), exclude=True)
    """The attempts of earlier processes, for whoever looks on from here; not recorded."""
    asked: Asked = Asked()
    """The requests to models that the run has made so far."""


class SettingChanged(BaseEntry):
    """A person changed a setting when the run was resumed."""

    kind: Literal["setting-changed"] = "setting-changed"
    name: str
    before: Any
    now: Any


class RunEnded(BaseEntry):
    """Last entry of a process."""

    kind: Literal["run-ended"] = "run-ended"
    status: RunStatus
    message: str = ""
    """One sentence for the person: why it stopped, how to resume."""
    report_path: Path | None = Field(default=None, exclude=True)
    """Place of the report; not recorded."""


class Notice(_Passing):
    """Something that the person should know."""

    kind: Literal["notice"] = "notice"
    text: str
    level: Literal["info", "warning"] = "info"
    stays: bool = False
    """Printed above the live view, in full: what the person should have read before the training
    begins."""


# ── decisions ─────────────────────────────────────────────────────────────────────────────────────


class IterationStarted(BaseEntry):
    """The engine asks for an iteration's proposals; `round` counts its repetitions after all of
    them failed."""

    kind: Literal["iteration-started"] = "iteration-started"
    iteration: Count
    round: Count
    samples: Count


class Planned(BaseEntry):
    """The strategy's plan for one proposal, made from what was known then. A resumed run keeps to
    it."""

    kind: Literal["planned"] = "planned"
    iteration: Count
    sample: Count
    operator: Operator
    parents: tuple[str, ...] = ()
    """Attempt ids."""
    model: str = ""
    """Model that is asked, of several."""
    seen: Count
    """Number of the last entry that the plan was made from: attempts and scores up to it, and none
    after, go into the request."""


class IterationEnded(BaseEntry):
    """All attempts of an iteration reached their last stage, and the best so far were confirmed."""

    kind: Literal["iteration-ended"] = "iteration-ended"
    iteration: Count
    best: str | None
    """Id of the best attempt of the run so far."""


class ConfirmationStarted(BaseEntry):
    """The best attempts so far are trained again, so that none of them leads by luck."""

    kind: Literal["confirmation-started"] = "confirmation-started"
    iteration: Count
    attempts: tuple[str, ...]
    """Their ids."""
    trainings: Count
    """Number still to be made."""


class GateLoosened(BaseEntry):
    """The trajectory gate's findings are warnings from this place on."""

    kind: Literal["gate-loosened"] = "gate-loosened"
    iteration: Count
    sample: Count
    text: str


class BaselinesNotAwaited(BaseEntry):
    """The time was up before the baselines were there: nothing is decided by them any more."""

    kind: Literal["baselines-not-awaited"] = "baselines-not-awaited"
    limit: str
    """The limit in wall time, in words."""


class DeadlineReached(BaseEntry):
    """A limit in wall time ended the search."""

    kind: Literal["deadline-reached"] = "deadline-reached"
    limit: str
    """It in words: another limit decides anew."""
    iterations: Count
    """Generations until then."""
    text: str


class ModelBudgetSpent(BaseEntry):
    """A request to a model was turned down, so none is made any more."""

    kind: Literal["model-budget-spent"] = "model-budget-spent"
    limits: dict[str, str]
    """Limits that turned it down: others decide anew."""
    text: str


class SearchEndedEarly(BaseEntry):
    """The search ended before its last generation."""

    kind: Literal["search-ended-early"] = "search-ended-early"
    text: str
    """Why; empty where a resumed search has got beyond that."""


class FinalStarted(BaseEntry):
    """The best attempts are trained again with fresh seeds, beside the baselines."""

    kind: Literal["final-started"] = "final-started"
    attempts: tuple[str, ...]
    """Their ids."""


# ── attempts ──────────────────────────────────────────────────────────────────────────────────────


class Proposed(_OfAttempt):
    """The designer's proposal; the critic reads it next."""

    version: ClassVar[int] = 2
    kind: Literal["proposed"] = "proposed"
    iteration: Count
    sample: Count
    revision: Count
    proposal: Proposal
    seed: int
    """Training seed."""


class Judged(_OfAttempt):
    """The critic accepted or rejected it. The last verdict counts."""

    kind: Literal["judged"] = "judged"
    verdict: Verdict


class Reviewed(_OfAttempt):
    """The verdict with what the reviewer found, who may turn an accepted attempt down."""

    kind: Literal["reviewed"] = "reviewed"
    verdict: Verdict


class RungScored(_OfAttempt):
    """The policy's score where its training came to a rung."""

    kind: Literal["rung-scored"] = "rung-scored"
    score: RungScore


class RungDecided(_OfAttempt):
    """Decision on the training at a rung, in its race."""

    kind: Literal["rung-decided"] = "rung-decided"
    env_steps: Count
    """Place of the rung."""
    stop: str
    """Why it is stopped; empty where it goes on."""


class AttemptEnded(_OfAttempt):
    """Its training ended: trained, failed or stopped."""

    kind: Literal["attempt-ended"] = "attempt-ended"
    stage: Stage
    reason: str = ""
    retries: Count = 0
    outcome: Outcome | None = None
    diagnosis: Diagnosis | None = None


class Analysed(_OfAttempt):
    """Reading of its training by the trajectory analyst."""

    kind: Literal["analysed"] = "analysed"
    text: str


class AttemptRepeated(_OfAttempt):
    """One more training of it ended; its fitness is the mean over those that did not fail."""

    kind: Literal["attempt-repeated"] = "attempt-repeated"
    repeat: Repeat


class AttemptImported(BaseEntry):
    """An attempt as it stood when its run was taken over from an earlier version's archive."""

    version: ClassVar[int] = 2
    kind: Literal["attempt-imported"] = "attempt-imported"
    record: Attempt

    @property
    def of_attempt(self) -> str:
        return self.record.id


class FinalTrained(BaseEntry):
    """A training of a finalist or a baseline from one of the final seeds ended."""

    kind: Literal["final-trained"] = "final-trained"
    training: FinalTraining


class Scored(_Passing):
    """The score of a finalist or a baseline over all seeds."""

    kind: Literal["scored"] = "scored"
    score: Score


# ── what passes ───────────────────────────────────────────────────────────────────────────────────


class RequestStarted(_Passing):
    """A request was sent to a language model."""

    kind: Literal["request-started"] = "request-started"
    number: Count
    """Unique within the process."""
    model: str
    purpose: str
    """Expected reply in words: `"design of 2-03"`."""


class RequestEnded(_Passing):
    """The reply to a request is stored, or there will be none."""

    durable: ClassVar[bool] = True  # a kill does not lose the time that the reply took
    kind: Literal["request-ended"] = "request-ended"
    request: RequestStarted
    cost: Cost | None
    """None where there is no reply."""


class TrainingQueued(_Passing):
    """A training waits for a slot."""

    kind: Literal["training-queued"] = "training-queued"
    job: str
    """Unique within the run."""
    label: str
    """The attempt's id, `"human"` or `"sparse"`."""
    training: TrainingKind
    seed: int


class Progress(Record):
    """Part of a curve point that a view shows."""

    env_steps: Count
    fitness: FiniteFloat | None


class TrainingProgress(_Passing):
    """Curve points of one training since the last such entry; the first one says that it has a
    slot."""

    kind: Literal["training-progress"] = "training-progress"
    job: str
    points: tuple[Progress, ...]


class TrainingWaits(_Passing):
    """A training has paused at a rung, or waits for something else there from now on; its next
    points say that it goes on."""

    kind: Literal["training-waits"] = "training-waits"
    job: str
    waits_for: Wait


class TrainingEnded(_Passing):
    """A training gave its slot back. Without a `TrainingQueued` before it: its result was there
    already (cached, resumed)."""

    kind: Literal["training-ended"] = "training-ended"
    job: str
    label: str
    training: TrainingKind
    fitness: FiniteFloat | None
    """Fitness of the evaluated policy; None when it failed."""
    failure: str = ""
    """Why it failed, in one sentence; empty when it did not."""
    taken_from: str = ""
    """Source of a result that was there already, in words; empty where it was trained now."""


class TrainingRetried(_Passing):
    """A training is started again because its worker died: from its last saved state
    (`TrainingResumed` follows) or its first step."""

    kind: Literal["training-retried"] = "training-retried"
    job: str
    reason: str


class TrainingResumed(_Passing):
    """A training that waits will go on from a saved state: of an interrupted run, or of a worker
    that died."""

    kind: Literal["training-resumed"] = "training-resumed"
    job: str
    label: str
    points: tuple[Progress, ...]
    """Its curve up to there."""


def kind_of(entry: BaseEntry) -> str:
    """The entry's kind: `"attempt-ended"`."""
    return str(type(entry).model_fields["kind"].default)


def progress_of(points: tuple[CurvePoint, ...]) -> tuple[Progress, ...]:
    """Part of curve points that the journal keeps; the whole curve is in the attempt's folder."""
    return tuple(Progress(env_steps=each.env_steps, fitness=each.fitness) for each in points)


Entry = Annotated[
    RunCreated
    | RunStarted
    | SettingChanged
    | RunEnded
    | Notice
    | IterationStarted
    | Planned
    | IterationEnded
    | ConfirmationStarted
    | GateLoosened
    | BaselinesNotAwaited
    | DeadlineReached
    | ModelBudgetSpent
    | SearchEndedEarly
    | FinalStarted
    | Proposed
    | Judged
    | Reviewed
    | RungScored
    | RungDecided
    | AttemptEnded
    | Analysed
    | AttemptRepeated
    | AttemptImported
    | FinalTrained
    | Scored
    | RequestStarted
    | RequestEnded
    | TrainingQueued
    | TrainingProgress
    | TrainingWaits
    | TrainingEnded
    | TrainingRetried
    | TrainingResumed,
    Field(discriminator="kind"),
]
ENTRY: TypeAdapter[Entry] = TypeAdapter(Entry, config=ConfigDict(defer_build=True))


class Observer(Protocol):
    """Receives every entry, in order, on the engine's thread; must return at once and never
    raise."""

    def __call__(self, entry: BaseEntry, /) -> None: ...


KINDS: dict[str, type[BaseEntry]] = {
    each.model_fields["kind"].default: each for each in get_args(get_args(Entry)[0])
}
PASSING = frozenset(kind for kind, each in KINDS.items() if issubclass(each, _Passing))
"""Kinds that change nothing of what a run knows."""
OF_RUN = frozenset(
    kind
    for kind, each in KINDS.items()
    if not issubclass(each, _Passing | _OfAttempt | AttemptImported)
)
"""Kinds that change what it knows beside its attempts."""
