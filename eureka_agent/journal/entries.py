"""The journal's entries: decisions and events of a run, each a record of its own kind. An entry is
stored before anything acts on it. The run's state (`eureka_agent.journal.state`) and all views
follow from the entries alone. A kind that changes its meaning gets a new `version`."""

from __future__ import annotations

import shlex
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Protocol

from pydantic import Field, FiniteFloat

from eureka_agent import attempt_words as words
from eureka_agent import records, wording
from eureka_agent.cards import Card
from eureka_agent.feedback_records import Feedback, Judgement, feedback_line
from eureka_agent.label_records import CaptionLabel, CaptionMet
from eureka_agent.parameters import distribution_text
from eureka_agent.randomisation_records import Randomisation, RangeScore
from eureka_agent.settings import UNMEASURED, SearchSettings

if TYPE_CHECKING:
    from eureka_agent.journal.state import RunState

TrainingKind = Literal["search", "repeat", "final", "human", "sparse"]
"""Purpose of a training: a candidate, a repeat of one of the best, a finalist, or a baseline."""
Seconds = Annotated[FiniteFloat, Field(ge=0, le=1e10)]


class BaseEntry(records.Record):
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

    @property
    def is_told(self) -> bool:
        """True for an entry of a search's log; `eureka show --events` has all."""
        return True

    def line(self, state: RunState) -> str:
        """The entry in words; empty where there is nothing to tell. `state`: with this entry."""
        return ""


KINDS: dict[str, type[BaseEntry]] = {}


def kind_of(entry: BaseEntry | type[BaseEntry]) -> str:
    """Kind of an entry or of its class: `"attempt-ended"`."""
    model = entry if isinstance(entry, type) else type(entry)
    return str(model.model_fields["kind"].default)


class OfAttempt(BaseEntry):
    """Base of entries that change an attempt."""

    attempt: str

    @property
    def of_attempt(self) -> str:
        return self.attempt


class Untold(BaseEntry):
    """Base of entries that a search's log omits."""

    @property
    def is_told(self) -> bool:
        return False


class Passing(BaseEntry):
    """Base of entries that are of no use once the run has ended."""

    durable: ClassVar[bool] = False


# ── the run ───────────────────────────────────────────────────────────────────────────────────────


class RunCreated(Untold):
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
    written_fitness: records.WrittenFitness | None = None
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

    def line(self, state: RunState) -> str:
        return f"made by: {shlex.join(self.command)}" if self.command else ""


class Asked(records.Record):
    """Account of requests to models."""

    requests: records.Count = 0
    uncounted: records.Count = 0
    """Requests whose tokens the server did not count."""
    tokens: records.Count = 0
    money: records.Money = Decimal(0)
    """Cost of all requests; unknown where that of any request is."""

    def with_cost(self, cost: records.Cost | None) -> Asked:
        """The account after another request; None: it had no reply."""
        if cost is None:
            return self
        unknown = self.money is None or cost.money is None
        uncounted = cost.prompt_tokens is None or cost.completion_tokens is None
        return Asked(
            requests=self.requests + 1,
            uncounted=self.uncounted + uncounted,
            tokens=self.tokens + (cost.prompt_tokens or 0) + (cost.completion_tokens or 0),
            money=None if unknown else (self.money or 0) + (cost.money or 0),
        )


class RunStarted(BaseEntry):
    """A process begins to work on the run; a resumed run has several."""

    kind: Literal["run-started"] = "run-started"
    run_folder: Path = Field(default=Path(), exclude=True)
    """Current place of the run; not recorded."""
    run_name: str
    description: records.TaskDescription
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
    asked: Asked = Asked()
    """Requests of earlier processes."""
    state: Any = Field(default=None, exclude=True, repr=False)
    """State of the run, which later entries change, for views of this process; not recorded."""

    def line(self, state: RunState) -> str:
        verb = "resumes" if self.resumed else "starts"
        place = f"{self.description.environment}, task {self.description.task}"
        return (
            f"run {self.run_name} {verb}: {self.sentence!r} ({place}; designer"
            f" {self.designer}; wall {self.wall})"
        )


class SettingChanged(Untold):
    """A setting was changed when the run was resumed."""

    kind: Literal["setting-changed"] = "setting-changed"
    name: str
    before: Any
    now: Any

    @property
    def text(self) -> str:
        return f"{self.name} changed from {self.before} to {self.now}"

    def line(self, state: RunState) -> str:
        return self.text


class RunEnded(BaseEntry):
    """Last entry of a process."""

    kind: Literal["run-ended"] = "run-ended"
    status: records.RunStatus
    message: str = ""
    """Sentence on why it stopped and how to resume."""
    report_path: Path | None = Field(default=None, exclude=True)
    """Place of the report; not recorded."""

    def line(self, state: RunState) -> str:
        # the commands' own output says how to resume a stopped run
        stopped = self.status is records.RunStatus.STOPPED
        lines = [] if stopped else [line.strip() for line in self.message.splitlines()]
        message = f": {'; '.join(lines)}" if lines else ""
        report = f"; report in {self.report_path}" if self.report_path else ""
        return f"run {self.status.value}{message}{report}"


class Pruned(Untold):
    """Files that nothing needs again are about to be removed, to free space."""

    kind: Literal["pruned"] = "pruned"
    attempts: tuple[str, ...] = ()
    """Attempts without policies, episodes and pictures from now on."""
    files: records.Count
    size: records.Count
    """Bytes of these files."""

    def line(self, state: RunState) -> str:
        files = wording.plural(self.files, "file")
        of = f", of {' '.join(self.attempts)}" if self.attempts else ""
        return f"{files} removed to free {wording.file_size(self.size)}{of}"


class Notice(Passing):
    """A message to the person."""

    kind: Literal["notice"] = "notice"
    text: str
    level: Literal["info", "warning"] = "info"
    stays: bool = False
    """True: printed above the live view, in full."""

    def line(self, state: RunState) -> str:
        return f"warning: {self.text}" if self.level == "warning" else self.text


# ── decisions ─────────────────────────────────────────────────────────────────────────────────────


class IterationStarted(BaseEntry):
    """The engine asks for an iteration's proposals; `round` counts repetitions after all failed."""

    kind: Literal["iteration-started"] = "iteration-started"
    iteration: records.Count
    round: records.Count
    samples: records.Count
    given_alone: bool = False
    """True where a person's or a program's rewards are all that is trained."""

    def line(self, state: RunState) -> str:
        again = f", round {self.round + 1}" if self.round else ""
        proposals = wording.plural(self.samples, "proposal")
        return f"iteration {self.iteration + 1} of {state.iterations}{again}: {proposals} to make"


class Planned(Untold):
    """The strategy's plan for one proposal, which a resumed run keeps."""

    kind: Literal["planned"] = "planned"
    iteration: records.Count
    sample: records.Count
    operator: records.Operator
    parents: tuple[str, ...] = ()
    model: str = ""
    seen: records.Count
    """Number of the last entry known to the plan; later ones do not enter the request."""
    feedback: records.Count | None = None
    """Number of the entry with the person's reward, for `Operator.EDIT`."""

    def line(self, state: RunState) -> str:
        name = f"{self.iteration + 1}-{self.sample + 1:02d}"
        parents = f" from {' and '.join(self.parents)}" if self.parents else ""
        return f"{name} planned: {wording.words(self.operator.value)}{parents}"


class IterationEnded(BaseEntry):
    """All attempts of an iteration ended, and the best so far were confirmed."""

    kind: Literal["iteration-ended"] = "iteration-ended"
    iteration: records.Count
    best: str | None

    def line(self, state: RunState) -> str:
        summary = "nothing trained yet"
        if self.best is not None:
            fitness = wording.number(state.by_id[self.best].fitness)
            summary = f"best so far is {self.best}"
            summary += "" if state.ranks_by_strength else f" with fitness {fitness}"
        return f"iteration {self.iteration + 1} ends: {summary}"


class ConfirmationStarted(BaseEntry):
    """The best attempts so far are trained again, so that none leads by luck."""

    kind: Literal["confirmation-started"] = "confirmation-started"
    iteration: records.Count
    attempts: tuple[str, ...]
    trainings: records.Count

    def line(self, state: RunState) -> str:
        trainings = wording.plural(self.trainings, "training")
        names = ", ".join(self.attempts)
        return f"the best so far are trained again from other seeds: {names} ({trainings})"


class BaselinesNotAwaited(Untold):
    """The time was up before the baselines were trained, so nothing is decided by them."""

    kind: Literal["baselines-not-awaited"] = "baselines-not-awaited"
    limit: str
    """The limit in wall time, in words."""

    def line(self, state: RunState) -> str:
        return f"the time is up, the baselines are not awaited: {self.limit}"


class DeadlineReached(Untold):
    """A limit in wall time ended the search."""

    kind: Literal["deadline-reached"] = "deadline-reached"
    limit: str
    """The limit in words; the decision does not hold for another one."""
    iterations: records.Count
    text: str

    def line(self, state: RunState) -> str:
        return self.text


class ModelBudgetSpent(Untold):
    """The budget refused a request to a model, so none is made any more."""

    kind: Literal["model-budget-spent"] = "model-budget-spent"
    limits: dict[str, str]
    """Limits that refused it; the decision does not hold for others."""
    text: str
    """Reason; empty where a resumed search asks again."""

    def line(self, state: RunState) -> str:
        return self.text or "models are asked again, under other limits"


class SearchEndedEarly(Untold):
    """The search ended before its last generation."""

    kind: Literal["search-ended-early"] = "search-ended-early"
    text: str
    """Reason; empty where a resumed search went on."""

    def line(self, state: RunState) -> str:
        return self.text or "the search goes on where it had ended early"


class FinalStarted(BaseEntry):
    """The best attempts are trained from fresh seeds, beside the baselines."""

    kind: Literal["final-started"] = "final-started"
    attempts: tuple[str, ...]
    skipped: str = ""
    """Reason for training none of them."""

    def line(self, state: RunState) -> str:
        if self.skipped:
            return f"no final trainings: {self.skipped}"
        return f"final trainings with fresh seeds: {', '.join(self.attempts) or 'no finalist'}"


class FinalRound(BaseEntry):
    """Finalists get further fresh seeds, the others having shown enough."""

    kind: Literal["final-round"] = "final-round"
    seeds: dict[str, records.Count]
    """Number of seeds that each of them is to have."""

    def line(self, state: RunState) -> str:
        seeds = (f"{name} up to {number}" for name, number in self.seeds.items())
        return f"fresh seeds next: {', '.join(seeds)}"


class FeedbackGiven(BaseEntry):
    """A person, or a model that judges, said something about what was trained."""

    kind: Literal["feedback-given"] = "feedback-given"
    who: str
    feedback: Feedback

    @property
    def is_told(self) -> bool:
        return isinstance(self.feedback, Judgement)  # a person knows what it has said

    def line(self, state: RunState) -> str:
        return f"{self.who} {feedback_line(self.feedback)}"


class CaptionsAsked(Untold):
    """A model is to label captions that trainings met."""

    kind: Literal["captions-asked"] = "captions-asked"
    number: records.Count
    captions: tuple[CaptionMet, ...]
    pairs: tuple[tuple[int, int], ...] = ()
    """Codes of the captions to compare; empty: each gets a label."""

    def line(self, state: RunState) -> str:
        if self.pairs:
            return f"{wording.plural(len(self.pairs), 'comparison')} of captions asked for"
        return f"labels of {wording.plural(len(self.captions), 'caption')} asked for"


class CaptionsLabelled(BaseEntry):
    """A request for labels was answered, or was not."""

    kind: Literal["captions-labelled"] = "captions-labelled"
    number: records.Count
    labels: tuple[CaptionLabel, ...]
    failure: str = ""
    """Reason why some or all have none."""

    def line(self, state: RunState) -> str:
        values = [each.value for each in self.labels if each.value is not None]
        asked = state.captions_asked.get(self.number)
        told = wording.plural(len(values), "comparison of captions", "comparisons of captions")
        if asked is None or not asked.pairs:
            good = sum(value > 0.5 for value in values)
            told = f"{wording.plural(len(values), 'label')}, {good} good"
        return told + (f"; {self.failure}" if self.failure else "")


# ── attempts ──────────────────────────────────────────────────────────────────────────────────────


class ToolAnswered(BaseEntry):
    """A tool answered a model's call before its proposal."""

    kind: Literal["tool-answered"] = "tool-answered"
    attempt: str
    """Id of the coming proposal."""
    key: str
    """Hash of the conversation and the call."""
    call: records.ToolCall
    text: str
    pictures: tuple[str, ...] = ()
    """Files in the run's folder."""

    def line(self, state: RunState) -> str:
        return f"{self.attempt} asks {words.call_text(self.call)}"


class Proposed(Untold, OfAttempt):
    """A designer's proposal."""

    version: ClassVar[int] = 2
    kind: Literal["proposed"] = "proposed"
    iteration: records.Count
    sample: records.Count
    revision: records.Count
    proposal: records.Proposal
    seed: int
    kept: tuple[records.Proposal, ...] = ()
    """Fresh drafts that were not chosen, for this sample's place in later generations."""

    def line(self, state: RunState) -> str:
        return f"{self.attempt} proposed: {words.origin(self.proposal)}"


class Judged(OfAttempt):
    """The critic accepted or rejected the attempt; the last verdict counts."""

    kind: Literal["judged"] = "judged"
    verdict: records.Verdict

    def line(self, state: RunState) -> str:
        return _verdict_words(state.by_id[self.attempt])


class Reviewed(OfAttempt):
    """Verdict with the reviewer's findings, which may reject an accepted attempt."""

    kind: Literal["reviewed"] = "reviewed"
    verdict: records.Verdict

    @property
    def is_told(self) -> bool:
        return not self.verdict.accepted

    def line(self, state: RunState) -> str:
        if self.is_told:
            return _verdict_words(state.by_id[self.attempt])
        findings = wording.plural(len(self.verdict.findings), "finding")
        return f"{self.attempt} passed its review: {findings}"


class RungScored(Untold, OfAttempt):
    """Score of a training's policy at a rung."""

    kind: Literal["rung-scored"] = "rung-scored"
    score: records.RungScore

    def line(self, state: RunState) -> str:
        place = f"{wording.count(self.score.env_steps)} env steps"
        return f"{self.attempt} at {place}: fitness {wording.number(self.score.fitness)}"


class AttemptEnded(OfAttempt):
    """The attempt's training ended: trained, failed or stopped."""

    kind: Literal["attempt-ended"] = "attempt-ended"
    stage: records.Stage
    reason: str = ""
    retries: records.Count = 0
    outcome: records.Outcome | None = None
    diagnosis: records.Diagnosis | None = None

    def line(self, state: RunState) -> str:
        attempt = state.by_id[self.attempt]
        if self.stage is records.Stage.FAILED:
            return f"{attempt.id} failed in training: {self.reason}"
        measured = state.settings is None or state.settings.fitness not in UNMEASURED
        fitness = f": fitness {wording.number(attempt.fitness)}" if measured else ""
        return f"{attempt.id} trained{fitness} ({words.origin(attempt.proposal)})"


class Analysed(Untold, OfAttempt):
    """The trajectory analyst read the attempt's training."""

    kind: Literal["analysed"] = "analysed"
    text: str

    def line(self, state: RunState) -> str:
        return f"{self.attempt} analysed: {self.text}"


class AttemptRepeated(OfAttempt):
    """One more training of the attempt ended."""

    kind: Literal["attempt-repeated"] = "attempt-repeated"
    repeat: records.Repeat

    def line(self, state: RunState) -> str:
        attempt = state.by_id[self.attempt]
        if self.repeat.outcome is None:
            return f"{attempt.id} trained again: failed: {self.repeat.failure}"
        fitness = wording.number(self.repeat.outcome.fitness)
        seeds = wording.plural(len(attempt.fitness_per_seed), "seed")
        mean = f"{wording.number(attempt.fitness)} over {seeds}"
        return f"{attempt.id} trained again: fitness {fitness}; mean {mean}"


class FinalTrained(Untold):
    """A training of a finalist or a baseline ended."""

    kind: Literal["final-trained"] = "final-trained"
    training: records.FinalTraining

    def line(self, state: RunState) -> str:
        training = self.training
        fitness = None if training.outcome is None else training.outcome.fitness
        result = training.failure or f"fitness {wording.number(fitness)}"
        return f"{training.name} from seed {training.seed}: {result}"


class Scored(Passing):
    """Score of a finalist or a baseline over all seeds."""

    kind: Literal["scored"] = "scored"
    score: records.Score

    def line(self, state: RunState) -> str:
        score = self.score
        text = f"{score.name}: {wording.plus_minus(score.mean, score.std)}"
        text += f" over {wording.plural(len(score.seeds), 'seed')}"
        if score.human_normalized is not None:
            text += f", human-normalised {wording.number(score.human_normalized)}"
        return text + (f" ({score.origin})" if score.origin else "")


# ── distributions of parameters ───────────────────────────────────────────────────────────────────


class RandomisationChanged(OfAttempt):
    """A step of the search over distributions: prior, proposals, or choice."""

    kind: Literal["randomisation-changed"] = "randomisation-changed"
    now: Randomisation

    def line(self, state: RunState) -> str:
        now = self.now
        if now.best is not None:
            return f"the best distribution of parameters is {self.attempt}+{now.best}"
        if now.text or now.prior is None:
            return f"no distribution of parameters is chosen: {now.text}"
        if now.distributions:
            named = "; ".join(f"{each.name} {each.text}" for each in now.distributions)
            return f"{self.attempt} is trained under distributions of parameters: {named}"
        named = distribution_text(now.prior.ranges).replace(",", ", ")
        return f"prior of {self.attempt}, each parameter alone: {named}"


class RangesScored(OfAttempt):
    """A policy of the attempt was scored under the whole safe ranges."""

    kind: Literal["ranges-scored"] = "ranges-scored"
    score: RangeScore

    def line(self, state: RunState) -> str:
        found, held_out = "could not be scored", self.score.held_out
        if held_out is not None:
            worst = wording.number(held_out.worst_quarter)
            found = f"{wording.number(held_out.mean)}, worst quarter {worst}"
        return f"{self.attempt} from seed {self.score.seed} over the safe ranges: {found}"


class Observer(Protocol):
    """Receives every entry, in order, on the engine's thread. Returns at once and never raises."""

    def __call__(self, entry: BaseEntry, /) -> None: ...


def _verdict_words(attempt: records.Attempt) -> str:
    if attempt.stage is not records.Stage.REJECTED:
        findings = () if attempt.verdict is None else attempt.verdict.findings
        codes = [each.code for each in findings if each.severity == "warning"]
        warned = f", with {wording.plural(len(codes), 'warning')}: {', '.join(codes)}"
        origin = words.origin(attempt.proposal)
        return f"{attempt.id} accepted by the critic ({origin}){warned if codes else ''}"
    return f"{attempt.id} thrown out by the critic: {words.first_error(attempt) or attempt.reason}"
