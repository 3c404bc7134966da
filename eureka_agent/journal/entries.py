"""The journal's entries: decisions and events of a run, each a record of its own kind.

An entry is stored before anything acts on it. The run's state (`eureka_agent.journal.state`) and
all views follow from the entries alone. A kind that changes its meaning gets a new `version`.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Protocol

from pydantic import Field, FiniteFloat

from eureka_agent.batch_records import RequestBatch
from eureka_agent.cards import Card
from eureka_agent.feedback_records import Feedback, Given
from eureka_agent.randomisation_records import Prior, RandomisedParameters, RandomisedScore
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

TrainingKind = Literal["search", "repeat", "final", "randomised", "human", "sparse"]
"""Purpose of a training: a candidate, a repeat of one of the best, a finalist, the best under a
distribution of parameters, or a baseline."""
Seconds = Annotated[FiniteFloat, Field(ge=0, le=1e10)]


class BaseEntry(Record):
    """Base of all entries. A subclass with a `kind` is one."""

    version: ClassVar[int] = 1
    durable: ClassVar[bool] = True
    """False: no decision depends on it, so it is stored a moment later, with others."""

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        """Register the entry by its kind."""
        if "kind" in cls.model_fields:
            KINDS[kind_of(cls)] = cls

    @property
    def of_attempt(self) -> str:
        """Id of the attempt that it changes; empty for none."""
        return ""


KINDS: dict[str, type[BaseEntry]] = {}


def kind_of(entry: BaseEntry | type[BaseEntry]) -> str:
    """Kind of an entry or of its class: `"attempt-ended"`."""
    model = entry if isinstance(entry, type) else type(entry)
    return str(model.model_fields["kind"].default)


class _OfAttempt(BaseEntry):
    attempt: str

    @property
    def of_attempt(self) -> str:
        return self.attempt


class _Passing(BaseEntry):
    durable: ClassVar[bool] = False


# ── the run ───────────────────────────────────────────────────────────────────────────────────────


class RunCreated(BaseEntry):
    """First entry: facts that were fixed when the run was made."""

    kind: Literal["run-created"] = "run-created"
    command: tuple[str, ...] = ()
    settings: dict[str, Any] = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)
    git_commit: str | None = None
    prices: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Prices of the models, by name, for the whole run."""
    recorded_settings: dict[str, Any] | None = None
    """Settings of the recorded run, in a replay."""
    given_source: str | None = None
    """Source of a person's own reward."""
    written_fitness: WrittenFitness | None = None
    fitness_accepted: str = ""
    """Acceptance of the written fitness, in words."""
    fitness_messages: tuple[str, ...] = ()
    """Keys of the requests for the written fitness."""
    designer: str = ""
    """Values at the start, like the next two; the last `RunStarted` has the current ones."""
    wall: str = ""
    devices: tuple[str, ...] = ()
    card: Card | None = None
    """Card from which the run takes its baselines; None where it trains them, if it has any."""
    card_text: str = ""
    """Origin of the baselines, in words; empty where nothing is to be said."""
    budget: str = ""
    """Result of the budget, in words."""
    seconds_before: Seconds = 0.0
    """Wall time before the first generation, in a run with a budget."""


class Asked(Record):
    """Account of requests to models."""

    requests: Count = 0
    uncounted: Count = 0
    """Requests whose tokens the server did not count."""
    tokens: Count = 0
    money: Money = Decimal(0)
    """Cost of all requests; unknown where that of any request is."""


class RunStarted(BaseEntry):
    """A process begins to work on the run; a resumed run has several."""

    kind: Literal["run-started"] = "run-started"
    run_folder: Path = Field(default=Path(), exclude=True)
    """Current place of the run; not recorded."""
    run_name: str
    description: TaskDescription
    sentence: str
    settings: SearchSettings
    wall: str
    designer: str
    """`"offline"` or the model's name."""
    devices: str = ""
    """Devices of trainings: `"cpu"`, `"cuda:0 and cuda:1"`."""
    resumed: bool = False
    fitness_origin: str = ""
    """Author and acceptance of the fitness, in words; empty for the task's own metric."""
    seconds_before: Seconds = 0.0
    """Wall time of earlier processes."""
    known: tuple[Attempt, ...] = Field(default=(), exclude=True)
    """Attempts of earlier processes, for views of this process; not recorded."""
    feedback: tuple[Given, ...] = Field(default=(), exclude=True)
    """Feedback from before this process, for its views; not recorded."""
    asked: Asked = Asked()
    card: Card | None = None
    """Card from which the run takes its baselines, for views of this and other processes."""


class SettingChanged(BaseEntry):
    """A setting was changed when the run was resumed."""

    kind: Literal["setting-changed"] = "setting-changed"
    name: str
    before: Any
    now: Any


class RunEnded(BaseEntry):
    """Last entry of a process."""

    kind: Literal["run-ended"] = "run-ended"
    status: RunStatus
    message: str = ""
    """Sentence on why it stopped and how to resume."""
    report_path: Path | None = Field(default=None, exclude=True)
    """Place of the report; not recorded."""


class Pruned(BaseEntry):
    """Files that nothing needs again are about to be removed, to free space."""

    kind: Literal["pruned"] = "pruned"
    attempts: tuple[str, ...] = ()
    """Attempts without policies, episodes and pictures from now on."""
    files: Count
    size: Count
    """Bytes of these files."""


class Notice(_Passing):
    """A message to the person."""

    kind: Literal["notice"] = "notice"
    text: str
    level: Literal["info", "warning"] = "info"
    stays: bool = False
    """True: printed above the live view, in full."""


# ── decisions ─────────────────────────────────────────────────────────────────────────────────────


class IterationStarted(BaseEntry):
    """The engine asks for an iteration's proposals; `round` counts repetitions after all failed."""

    kind: Literal["iteration-started"] = "iteration-started"
    iteration: Count
    round: Count
    samples: Count


class Planned(BaseEntry):
    """The strategy's plan for one proposal, which a resumed run keeps."""

    kind: Literal["planned"] = "planned"
    iteration: Count
    sample: Count
    operator: Operator
    parents: tuple[str, ...] = ()
    model: str = ""
    seen: Count
    """Number of the last entry known to the plan; later ones do not enter the request."""
    feedback: Count | None = None
    """Number of the entry with the person's reward, for `Operator.EDIT`."""


class IterationEnded(BaseEntry):
    """All attempts of an iteration ended, and the best so far were confirmed."""

    kind: Literal["iteration-ended"] = "iteration-ended"
    iteration: Count
    best: str | None


class ConfirmationStarted(BaseEntry):
    """The best attempts so far are trained again, so that none leads by luck."""

    kind: Literal["confirmation-started"] = "confirmation-started"
    iteration: Count
    attempts: tuple[str, ...]
    trainings: Count


class BaselinesNotAwaited(BaseEntry):
    """The time was up before the baselines were trained, so nothing is decided by them."""

    kind: Literal["baselines-not-awaited"] = "baselines-not-awaited"
    limit: str
    """The limit in wall time, in words."""


class DeadlineReached(BaseEntry):
    """A limit in wall time ended the search."""

    kind: Literal["deadline-reached"] = "deadline-reached"
    limit: str
    """The limit in words; the decision does not hold for another one."""
    iterations: Count
    text: str


class ModelBudgetSpent(BaseEntry):
    """The budget refused a request to a model, so none is made any more."""

    kind: Literal["model-budget-spent"] = "model-budget-spent"
    limits: dict[str, str]
    """Limits that refused it; the decision does not hold for others."""
    text: str
    """Reason; empty where a resumed search asks again."""


class SearchEndedEarly(BaseEntry):
    """The search ended before its last generation."""

    kind: Literal["search-ended-early"] = "search-ended-early"
    text: str
    """Reason; empty where a resumed search went on."""


class FinalStarted(BaseEntry):
    """The best attempts are trained from fresh seeds, beside the baselines."""

    kind: Literal["final-started"] = "final-started"
    attempts: tuple[str, ...]
    skipped: str = ""
    """Reason for training none of them."""


class FinalRound(BaseEntry):
    """Finalists get further fresh seeds, the others having shown enough."""

    kind: Literal["final-round"] = "final-round"
    seeds: dict[str, Count]
    """Number of seeds that each of them is to have."""


class FeedbackGiven(BaseEntry):
    """A person, or a model that judges, said something about what was trained."""

    kind: Literal["feedback-given"] = "feedback-given"
    who: str
    feedback: Feedback
    number: Count = Field(default=0, exclude=True)
    """Number of the entry, for views; not recorded."""


# ── attempts ──────────────────────────────────────────────────────────────────────────────────────


class Proposed(_OfAttempt):
    """A designer's proposal."""

    version: ClassVar[int] = 2
    kind: Literal["proposed"] = "proposed"
    iteration: Count
    sample: Count
    revision: Count
    proposal: Proposal
    seed: int
    kept: tuple[Proposal, ...] = ()
    """Fresh drafts that were not chosen, for this sample's place in later generations."""


class Judged(_OfAttempt):
    """The critic accepted or rejected the attempt; the last verdict counts."""

    kind: Literal["judged"] = "judged"
    verdict: Verdict


class Reviewed(_OfAttempt):
    """Verdict with the reviewer's findings, which may reject an accepted attempt."""

    kind: Literal["reviewed"] = "reviewed"
    verdict: Verdict


class RungScored(_OfAttempt):
    """Score of a training's policy at a rung."""

    kind: Literal["rung-scored"] = "rung-scored"
    score: RungScore


class AttemptEnded(_OfAttempt):
    """The attempt's training ended: trained, failed or stopped."""

    kind: Literal["attempt-ended"] = "attempt-ended"
    stage: Stage
    reason: str = ""
    retries: Count = 0
    outcome: Outcome | None = None
    diagnosis: Diagnosis | None = None


class Analysed(_OfAttempt):
    """The trajectory analyst read the attempt's training."""

    kind: Literal["analysed"] = "analysed"
    text: str


class AttemptRepeated(_OfAttempt):
    """One more training of the attempt ended."""

    kind: Literal["attempt-repeated"] = "attempt-repeated"
    repeat: Repeat


class FinalTrained(BaseEntry):
    """A training of a finalist or a baseline ended."""

    kind: Literal["final-trained"] = "final-trained"
    training: FinalTraining


class Scored(_Passing):
    """Score of a finalist or a baseline over all seeds."""

    kind: Literal["scored"] = "scored"
    score: Score


# ── distributions of parameters ───────────────────────────────────────────────────────────────────


class OfRandomisation(BaseEntry):
    """Base of the entries on distributions of parameters."""

    winner: str
    """Attempt whose reward is trained under distributions of parameters. Its own record stays as it
    is."""


class RandomisationStarted(OfRandomisation):
    """The search over distributions begins, or goes on in another process."""

    kind: Literal["randomisation-started"] = "randomisation-started"
    distributions: Count
    seeds: Count


class PriorMeasured(OfRandomisation):
    """The best policy was scored with each parameter at other values."""

    kind: Literal["prior-measured"] = "prior-measured"
    prior: Prior


class DistributionsProposed(OfRandomisation):
    """Distributions to train under, besides those that are there."""

    kind: Literal["distributions-proposed"] = "distributions-proposed"
    distributions: tuple[RandomisedParameters, ...]


class RandomisedTrained(OfRandomisation):
    """A training under a distribution ended."""

    kind: Literal["randomised-trained"] = "randomised-trained"
    training: FinalTraining
    """Its name is that of the distribution."""


class RandomisedScored(OfRandomisation):
    """A policy was scored under the whole safe ranges."""

    kind: Literal["randomised-scored"] = "randomised-scored"
    score: RandomisedScore


class RandomisationEnded(OfRandomisation):
    """The best distribution is chosen, or there is none."""

    kind: Literal["randomisation-ended"] = "randomisation-ended"
    best: str | None
    text: str = ""
    """Reason for an end without a best one."""


# ── progress ──────────────────────────────────────────────────────────────────────────────────────


class RequestStarted(_Passing):
    """A request was sent to a language model."""

    kind: Literal["request-started"] = "request-started"
    number: Count
    """Unique within the process."""
    model: str
    purpose: str
    """Expected reply in words: `"design of 2-03"`."""


class RequestEnded(_Passing):
    """The reply to a request is stored, or the request failed."""

    durable: ClassVar[bool] = True  # a kill does not lose the time that the reply took
    kind: Literal["request-ended"] = "request-ended"
    request: RequestStarted
    cost: Cost | None
    """Cost of the reply; None without one."""


class RequestBatchPlanned(BaseEntry):
    """A batch of requests is about to be sent to a model's provider."""

    kind: Literal["request-batch-planned"] = "request-batch-planned"
    batch: RequestBatch


class RequestBatchSent(BaseEntry):
    """The provider has a batch, under an id of its own."""

    kind: Literal["request-batch-sent"] = "request-batch-sent"
    id: str
    provider_id: str


class RequestBatchAwaited(_Passing):
    """Replies of a batch are awaited, in the process that sent it or in a later one."""

    kind: Literal["request-batch-awaited"] = "request-batch-awaited"
    id: str
    model: str
    requests: Count
    seconds: Seconds
    """Time since it was sent."""


class RequestBatchEnded(BaseEntry):
    """The results of a batch are read, or it was never accepted."""

    kind: Literal["request-batch-ended"] = "request-batch-ended"
    id: str
    unanswered: tuple[str, ...]
    """Keys of requests that it has no reply for."""


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
    """Part of a curve point, for views."""

    env_steps: Count
    fitness: FiniteFloat | None


class TrainingProgress(_Passing):
    """New curve points of a training; the first entry, without any, means that it has a slot."""

    kind: Literal["training-progress"] = "training-progress"
    job: str
    points: tuple[Progress, ...]


class TrainingEnded(_Passing):
    """A training ended; one without `TrainingQueued` was known already (cached, resumed)."""

    kind: Literal["training-ended"] = "training-ended"
    job: str
    label: str
    training: TrainingKind
    fitness: FiniteFloat | None
    """Fitness of the evaluated policy; None after a failure."""
    failure: str = ""
    taken_from: str = ""
    """Source of a known result, in words; empty where it was trained now."""


class TrainingRetried(_Passing):
    """A training restarts after its worker died, perhaps from a saved state."""

    kind: Literal["training-retried"] = "training-retried"
    job: str
    reason: str


class TrainingResumed(_Passing):
    """A queued training will resume from a saved state."""

    kind: Literal["training-resumed"] = "training-resumed"
    job: str
    label: str
    points: tuple[Progress, ...]


def progress_of(points: tuple[CurvePoint, ...]) -> tuple[Progress, ...]:
    """Part of curve points that the journal keeps; the whole curve is in the attempt's folder."""
    return tuple(Progress(env_steps=each.env_steps, fitness=each.fitness) for each in points)


class Observer(Protocol):
    """Receives every entry, in order, on the engine's thread. Returns at once and never raises."""

    def __call__(self, entry: BaseEntry, /) -> None: ...


PASSING = frozenset(kind for kind, each in KINDS.items() if issubclass(each, _Passing))
"""Kinds that do not change the run's state."""
OF_RUN = frozenset(
    kind for kind, each in KINDS.items() if not issubclass(each, _Passing | _OfAttempt)
)
"""Kinds that change the run's state but no attempt."""
