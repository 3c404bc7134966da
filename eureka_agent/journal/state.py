"""Knowledge of a run: its entries, folded one by one. The same function serves the process that
works on the run, one that resumes it, and whoever looks on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from eureka_agent.journal.entries import (
    Analysed,
    AttemptEnded,
    AttemptImported,
    AttemptRepeated,
    BaseEntry,
    BaselinesNotAwaited,
    ConfirmationStarted,
    DeadlineReached,
    FinalTrained,
    GateLoosened,
    IterationEnded,
    Judged,
    ModelBudgetSpent,
    Planned,
    Proposed,
    Reviewed,
    RunCreated,
    RunEnded,
    RungDecided,
    RungScored,
    RunStarted,
    SearchEndedEarly,
    SettingChanged,
)
from eureka_agent.records import Attempt, FinalTraining, RunStatus, Stage, Verdict


@dataclass(frozen=True)
class Recorded:
    """An entry with its place in the journal."""

    number: int
    """Counts from 1 in a run."""
    time: str
    """ISO 8601, UTC."""
    seconds: float
    """Wall time that the run had taken, over all its processes."""
    entry: BaseEntry


@dataclass
class RunState:
    """A run as its entries up to a place tell it."""

    created: str = ""
    began: RunCreated = field(default_factory=RunCreated)
    started: RunStarted | None = None
    """The last process's; its description has nothing that the run's own has not."""
    status: RunStatus = RunStatus.RUNNING
    message: str = ""
    seconds: float = 0.0
    """Wall time, over all processes."""
    devices: tuple[str, ...] = ()
    """Devices that it trained on: one entry for each time that they changed."""
    changes: tuple[tuple[str, SettingChanged], ...] = ()
    """Settings that were changed when it was resumed, each with the time."""
    gate_loosened: GateLoosened | None = None
    baselines_not_awaited: str | None = None
    """The limit in wall time that was reached before they were there."""
    deadline_reached: DeadlineReached | None = None
    budget_spent: ModelBudgetSpent | None = None
    ended_early: str = ""
    iterations_ended: set[int] = field(default_factory=set)
    plans: dict[tuple[int, int], Planned] = field(default_factory=dict)
    """By iteration and sample."""
    confirmations: tuple[ConfirmationStarted, ...] = ()
    decisions: dict[tuple[str, int], str] = field(default_factory=dict)
    """Decisions on attempts at rungs, by id and env steps: why each was stopped, or ""."""
    by_id: dict[str, Attempt] = field(default_factory=dict)
    by_training: dict[tuple[str, int], FinalTraining] = field(default_factory=dict)
    """Final and baseline trainings by name and seed."""

    def copy(self) -> RunState:
        """The same, which later entries do not change."""
        return replace(
            self,
            iterations_ended=set(self.iterations_ended),
            plans=dict(self.plans),
            decisions=dict(self.decisions),
            by_id=dict(self.by_id),
            by_training=dict(self.by_training),
        )

    @property
    def designer(self) -> str:
        """Designer's name; empty where nobody has said."""
        return self.began.designer if self.started is None else self.started.designer

    @property
    def wall(self) -> str:
        """The wall around generated code; empty where nobody has said."""
        return self.began.wall if self.started is None else self.started.wall

    def attempts(self, iteration: int | None = None) -> tuple[Attempt, ...]:
        """All attempts, or those of one iteration, in the order of iteration, sample, revision."""
        chosen = (
            each for each in self.by_id.values() if iteration is None or each.iteration == iteration
        )
        return tuple(sorted(chosen, key=lambda each: (each.iteration, each.sample, each.revision)))

    def trainings(self) -> tuple[FinalTraining, ...]:
        """All final and baseline trainings, by name and seed."""
        return tuple(self.by_training[key] for key in sorted(self.by_training))

    def apply(self, recorded: Recorded) -> None:
        """Take over the next entry. Raises KeyError for one on an attempt that nobody proposed."""
        self.seconds = recorded.seconds
        match recorded.entry:
            case RunCreated() as entry:
                self.began, self.created = entry, recorded.time
                self.devices = entry.devices
            case RunStarted() as entry:
                self.started, self.status, self.message = entry, RunStatus.RUNNING, ""
                if entry.devices and self.devices[-1:] != (entry.devices,):
                    self.devices = (*self.devices, entry.devices)
            case RunEnded() as entry:
                self.status, self.message = entry.status, entry.message
            case SettingChanged() as entry:
                self.changes = (*self.changes, (recorded.time, entry))
            case GateLoosened() as entry:
                self.gate_loosened = entry
            case BaselinesNotAwaited() as entry:
                self.baselines_not_awaited = entry.limit
            case DeadlineReached() as entry:
                self.deadline_reached = entry
            case ModelBudgetSpent() as entry:
                self.budget_spent = entry
            case SearchEndedEarly() as entry:
                self.ended_early = entry.text
            case IterationEnded() as entry:
                self.iterations_ended.add(entry.iteration)
            case ConfirmationStarted() as entry:
                self.confirmations = (*self.confirmations, entry)
            case Planned() as entry:
                self.plans[entry.iteration, entry.sample] = entry
            case RungDecided() as entry:
                self.decisions[entry.attempt, entry.env_steps] = entry.stop
            case FinalTrained() as entry:
                self.by_training[entry.training.name, entry.training.seed] = entry.training
            case _ if recorded.entry.of_attempt:
                attempt = changed(self.by_id, recorded)
                self.by_id[attempt.id] = attempt


def changed(attempts: dict[str, Attempt], recorded: Recorded) -> Attempt:
    """The attempt that an entry is about, with what it says."""
    entry = recorded.entry
    update: dict[str, Any]
    match entry:
        case Proposed():
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
        case AttemptImported():
            return entry.record
    attempt = attempts[entry.of_attempt]
    match entry:
        case Judged(verdict=verdict) | Reviewed(verdict=verdict):
            return judged(attempt, verdict)
        case RungDecided():
            return attempt  # what follows from it is an entry of its own
        case RungScored(score=score):
            update = {"rungs": (*attempt.rungs, score)}
        case AttemptEnded():
            update = {
                "stage": entry.stage,
                "reason": entry.reason,
                "retries": entry.retries,
                "outcome": entry.outcome,
                "diagnosis": entry.diagnosis,
            }
        case Analysed(text=text):
            update = {"analysis": text}
        case AttemptRepeated(repeat=repeat):
            repeats = sorted((*attempt.repeats, repeat), key=lambda each: each.seed)
            update = {"repeats": tuple(repeats)}
        case _:
            raise TypeError(f"{type(entry).__name__} does not change an attempt")
    return attempt.model_copy(update=update)


def judged(attempt: Attempt, verdict: Verdict) -> Attempt:
    """The attempt with a verdict, and with the source as the critic mended it."""
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
