"""State of a run: the fold of its entries, the same in every process."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

from eureka_agent.batch_records import RequestBatch
from eureka_agent.feedback_records import Decision, Given, Judge, Next, Withdrawal
from eureka_agent.journal import entries, progress
from eureka_agent.journal.entries import BaseEntry, Planned, RunCreated, RunStarted
from eureka_agent.journal.under_way import UnderWay
from eureka_agent.records import Attempt, FinalTraining, Proposal, RunStatus, Stage, Verdict
from eureka_agent.settings import SearchSettings


@dataclass(frozen=True)
class Recorded:
    """An entry with its place in the journal."""

    number: int
    time: str
    """ISO 8601, UTC."""
    seconds: float
    """Wall time of the run, over all its processes."""
    entry: BaseEntry


ENDED = (RunStatus.FINISHED, RunStatus.FAILED)


@dataclass
class RunState:
    """State of a run after some of its entries."""

    created: str = ""
    began: RunCreated = field(default_factory=RunCreated)
    started: RunStarted | None = None
    status: RunStatus = RunStatus.RUNNING
    message: str = ""
    last_time: str = ""
    """Time of the last entry about the run that is not on its pruning."""
    pruned: dict[str, str] = field(default_factory=dict)
    """Times of pruning, by attempt."""
    seconds: float = 0.0
    devices: tuple[str, ...] = ()
    """Devices of trainings, an item for each change."""
    changes: tuple[tuple[str, entries.SettingChanged], ...] = ()
    """Settings changed on resume, each with the time."""
    baselines_not_awaited: str | None = None
    """Limit in wall time that was reached before them."""
    deadline_reached: entries.DeadlineReached | None = None
    budget_spent: entries.ModelBudgetSpent | None = None
    ended_early: str = ""
    finalists: tuple[str, ...] = ()
    no_finals: str = ""
    """Reason for training no finalist."""
    final_rounds: tuple[entries.FinalRound, ...] = ()
    iterations_ended: set[int] = field(default_factory=set)
    given_alone: dict[int, int] = field(default_factory=dict)
    """Iterations of given rewards alone, with the number of these."""
    plans: dict[tuple[int, int], Planned] = field(default_factory=dict)
    """Plans by iteration and sample."""
    answers: dict[str, entries.ToolAnswered] = field(default_factory=dict)
    """Answers of tools, by key."""
    captions_asked: dict[int, entries.CaptionsAsked] = field(default_factory=dict)
    """Requests for labels, by number."""
    captions_labelled: dict[int, entries.CaptionsLabelled] = field(default_factory=dict)
    """Answers to them."""
    confirmations: tuple[entries.ConfirmationStarted, ...] = ()
    batches: dict[str, RequestBatch] = field(default_factory=dict)
    """Batches of requests to models by the run's own id, in the order of their planning."""
    feedback: tuple[Given, ...] = ()
    """A person's feedback, without what was withdrawn."""
    decision: Next | None = None
    """A person's decision until the search has acted on it, also in a later process."""
    by_id: dict[str, Attempt] = field(default_factory=dict)
    """All attempts, those under distributions of parameters included."""
    kept_drafts: dict[int, tuple[Proposal, ...]] = field(default_factory=dict)
    """Fresh drafts that no proposal took yet, by sample, oldest first."""
    by_training: dict[tuple[str, int], FinalTraining] = field(default_factory=dict)
    """Final and baseline trainings by name and seed."""
    under_way: UnderWay = field(default_factory=UnderWay)
    """Known to those who see every entry: the process that works on the run, and who follows it."""

    def copy(self) -> RunState:
        """Copy that later entries do not change."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        own: dict[str, Any] = {
            name: each.copy() for name, each in values.items() if isinstance(each, dict | set)
        }
        return replace(self, **own, under_way=UnderWay())

    @property
    def designer(self) -> str:
        """Designer's name; empty where unknown."""
        return (self.started or self.began).designer

    @property
    def settings(self) -> SearchSettings | None:
        """Settings of the last process; None before the first one."""
        return None if self.started is None else self.started.settings

    @property
    def iterations(self) -> int:
        """Number of iterations: those of the settings, or more where a person wanted them."""
        asked = self.settings.iterations if self.settings is not None else 0
        return max([asked, *(each + 1 for each in self.under_way.rounds)])

    @property
    def ranks_by_strength(self) -> bool:
        """True where comparisons rank the attempts in place of the fitness."""
        judges = [each.feedback for each in self.feedback if isinstance(each.feedback, Judge)]
        return bool(judges) and judges[-1].by != "fitness"

    @property
    def wall(self) -> str:
        """Name of the wall around generated code; empty where unknown."""
        return (self.started or self.began).wall

    def open_batches(self) -> dict[str, RequestBatch]:
        """The batch of each request that may have a reply at the provider, by the request's key."""
        return {
            each.key: batch
            for batch in self.batches.values()
            for each in batch.requests
            if each.key not in batch.unanswered
        }

    def attempts(self, iteration: int | None = None) -> tuple[Attempt, ...]:
        """All attempts of the search, or of one iteration, by iteration, sample, revision."""
        chosen = (
            each
            for each in self.by_id.values()
            if (iteration is None or each.iteration == iteration) and each.is_ranked
        )
        return tuple(sorted(chosen, key=lambda each: (each.iteration, each.sample, each.revision)))

    def randomised(self, parent: str) -> tuple[Attempt, ...]:
        """Attempts that train this one's reward under distributions of parameters, in order."""
        return tuple(
            each
            for each in self.by_id.values()
            if not each.is_ranked and each.proposal.parents == (parent,)
        )

    def trainings(self) -> tuple[FinalTraining, ...]:
        """All final and baseline trainings, by name and seed."""
        return tuple(self.by_training[key] for key in sorted(self.by_training))

    def apply(self, recorded: Recorded) -> None:
        """Apply the next entry. Raises KeyError for one on an attempt without a proposal."""
        self.seconds = recorded.seconds
        if not isinstance(recorded.entry, entries.Pruned):
            self.last_time = recorded.time
        match recorded.entry:
            case RunCreated() as entry:
                self.began, self.created = entry, recorded.time
                self.devices = entry.devices
            case RunStarted() as entry:
                if self.decision == "leave" or self.status in ENDED:  # it was acted on
                    self.decision = None
                self.started, self.status, self.message = entry, RunStatus.RUNNING, ""
                self.under_way = UnderWay(asked=entry.asked)
                if entry.devices and self.devices[-1:] != (entry.devices,):
                    self.devices = (*self.devices, entry.devices)
            case entries.RunEnded() as entry:
                self.status, self.message = entry.status, entry.message
            case entries.Pruned() as entry:
                self.pruned |= dict.fromkeys(entry.attempts, recorded.time)
            case entries.SettingChanged() as entry:
                self.changes = (*self.changes, (recorded.time, entry))
            case entries.BaselinesNotAwaited() as entry:
                self.baselines_not_awaited = entry.limit
            case entries.DeadlineReached() as entry:
                self.deadline_reached = entry
            case entries.ModelBudgetSpent() as entry:
                self.budget_spent = entry
            case entries.SearchEndedEarly() as entry:
                self.ended_early = entry.text
            case entries.FinalStarted() as entry:
                self.finalists, self.no_finals = entry.attempts, entry.skipped
            case entries.FinalRound() as entry:
                self.final_rounds = (*self.final_rounds, entry)
            case entries.IterationEnded() as entry:
                self.iterations_ended.add(entry.iteration)
                self.decision = None  # also where nothing could be planned
            case entries.ConfirmationStarted() as entry:
                self.confirmations = (*self.confirmations, entry)
            case entries.FeedbackGiven(feedback=Decision(then=then)):
                self.decision = then
            case entries.FeedbackGiven(feedback=Withdrawal(of=withdrawn)):
                self.feedback = tuple(each for each in self.feedback if each.number != withdrawn)
            case entries.FeedbackGiven(who=who, feedback=feedback):
                given = Given(
                    number=recorded.number, time=recorded.time, who=who, feedback=feedback
                )
                self.feedback = (*self.feedback, given)
            case entries.IterationStarted(given_alone=True) as entry:
                self.given_alone[entry.iteration] = entry.samples
            case Planned() as entry:
                self.plans[entry.iteration, entry.sample] = entry
                self.decision = None
            case entries.ToolAnswered() as entry:
                self.answers[entry.key] = entry
            case entries.CaptionsAsked() as entry:
                self.captions_asked[entry.number] = entry
            case entries.CaptionsLabelled() as entry:
                self.captions_labelled[entry.number] = entry
            case entries.FinalTrained() as entry:
                self.by_training[entry.training.name, entry.training.seed] = entry.training
            case progress.RequestBatchPlanned(batch=batch):
                self.batches[batch.id] = batch
            case progress.RequestBatchSent() as entry:
                update = {"provider_id": entry.provider_id}
                self.batches[entry.id] = self.batches[entry.id].model_copy(update=update)
            case progress.RequestBatchEnded() as entry:
                ended = {"unanswered": entry.unanswered}
                self.batches[entry.id] = self.batches[entry.id].model_copy(update=ended)
            case _ if recorded.entry.of_attempt:
                attempt = changed(self.by_id, recorded)
                self.by_id[attempt.id] = attempt
                if isinstance(recorded.entry, entries.Proposed):
                    self._keep_drafts(recorded.entry)
        self.under_way.apply(recorded, self)

    def _keep_drafts(self, entry: entries.Proposed) -> None:
        """Add what a choice among drafts has left, without what it took."""
        taken = entry.proposal.reward.source
        left = (*self.kept_drafts.get(entry.sample, ()), *entry.kept)
        left = tuple(each for each in left if each.reward.source != taken)
        if left or entry.sample in self.kept_drafts:
            self.kept_drafts[entry.sample] = left


def changed(attempts: dict[str, Attempt], recorded: Recorded) -> Attempt:
    """Attempt after an entry about it."""
    entry = recorded.entry
    update: dict[str, Any]
    match entry:
        case entries.Proposed():
            return Attempt(
                id=entry.attempt,
                iteration=entry.iteration,
                sample=entry.sample,
                revision=entry.revision,
                proposal=entry.proposal,
                stage=Stage.PROPOSED,
                seed=entry.seed,
                created=recorded.time,
            )
    attempt = attempts[entry.of_attempt]
    match entry:
        case entries.Judged(verdict=verdict) | entries.Reviewed(verdict=verdict):
            return judged(attempt, verdict)
        case entries.RungScored(score=score):
            update = {"rungs": (*attempt.rungs, score)}
        case entries.AttemptEnded():
            names = ("stage", "reason", "retries", "outcome", "diagnosis")
            update = {name: getattr(entry, name) for name in names}
        case entries.Analysed(text=text):
            update = {"analysis": text}
        case entries.AttemptRepeated(repeat=repeat):
            repeats = sorted((*attempt.repeats, repeat), key=lambda each: each.seed)
            update = {"repeats": tuple(repeats)}
        case entries.RandomisationChanged(now=now):
            update = {"randomisation": now}
        case entries.RangesScored(score=score):
            scores = sorted((*attempt.range_scores, score), key=lambda each: each.seed)
            update = {"range_scores": tuple(scores)}
        case _:
            raise TypeError(f"{type(entry).__name__} does not change an attempt")
    return attempt.model_copy(update=update)


def judged(attempt: Attempt, verdict: Verdict) -> Attempt:
    """Attempt with a verdict and the repaired source."""
    errors = [finding for finding in verdict.findings if finding.severity == "error"]
    update: dict[str, Any] = {
        "stage": Stage.ACCEPTED if verdict.accepted else Stage.REJECTED,
        "reason": f"{errors[0].code} {errors[0].message}" if errors else "",
        "verdict": verdict,
    }
    if verdict.repaired is not None:
        mended = attempt.proposal.reward.with_source(verdict.repaired)
        update["proposal"] = attempt.proposal.model_copy(update={"reward": mended})
    return attempt.model_copy(update=update)
