"""Events of a running search for whoever watches it: plain frozen events, sent by the engine to an
`Observer`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from eureka_agent.records import (
    Attempt,
    Cost,
    CurvePoint,
    Repeat,
    RunStatus,
    Score,
    TaskDescription,
)
from eureka_agent.report.ledger import NOTHING_ASKED, LedgerLine
from eureka_agent.settings import SearchSettings

TrainingKind = Literal["search", "repeat", "final", "human", "sparse"]
"""Why a training runs: a candidate of the search, one of the best again, a finalist with a fresh
seed, or one of the two baselines."""
Wait = Literal["review", "others", "slot"]
"""Reasons for which a training waits that has paused at a rung: its review, the comparison with the
others, and then a slot in which it goes on."""


@dataclass(frozen=True, kw_only=True)
class RunStarted:
    """First event of a run; sent again when a run is resumed."""

    run_folder: Path
    run_name: str
    description: TaskDescription
    sentence: str
    """The task in the words that the designer was given."""
    settings: SearchSettings
    wall: str
    """Name of the wall around generated code."""
    designer: str
    """`"offline"` or the model's name."""
    resumed: bool = False
    fitness_origin: str = ""
    """Author of the fitness and how it was accepted, in words; empty for the task's own metric."""
    seconds_before: float = 0.0
    """Wall time that earlier processes spent on the run."""
    asked_before: LedgerLine = NOTHING_ASKED.total
    """Account of the requests to models that the run has made so far."""


@dataclass(frozen=True, kw_only=True)
class IterationStarted:
    """The engine asks for an iteration's proposals; `round` counts its repetitions after all of
    them failed."""

    iteration: int
    round: int
    samples: int


@dataclass(frozen=True, kw_only=True)
class RequestStarted:
    """A request was sent to a language model."""

    number: int
    """Unique within the process."""
    model: str
    purpose: str
    """Expected reply in words: `"design of 2-03"`."""


@dataclass(frozen=True, kw_only=True)
class RequestEnded:
    """The reply to a request is stored, or there will be none."""

    request: RequestStarted
    cost: Cost | None
    """None where there is no reply."""


@dataclass(frozen=True, kw_only=True)
class Proposed:
    """The designer's proposal is stored; the critic reads it next."""

    attempt: Attempt


@dataclass(frozen=True, kw_only=True)
class Judged:
    """The critic accepted or rejected it: see the attempt's stage, reason and verdict."""

    attempt: Attempt


@dataclass(frozen=True, kw_only=True)
class TrainingQueued:
    """A training waits for a slot."""

    job: str
    """Unique within the run."""
    label: str
    """The attempt's id, `"human"` or `"sparse"`."""
    kind: TrainingKind
    seed: int


@dataclass(frozen=True, kw_only=True)
class TrainingProgress:
    """Curve points of one training since the last such event; the first one says that it has a
    slot."""

    job: str
    points: tuple[CurvePoint, ...]


@dataclass(frozen=True, kw_only=True)
class TrainingWaits:
    """A training has paused at a rung, or waits for something else there from now on; its next
    points say that it goes on."""

    job: str
    waits_for: Wait


@dataclass(frozen=True, kw_only=True)
class TrainingEnded:
    """A training gave its slot back. Without a `TrainingQueued` before it: its result was there
    already (cached, resumed)."""

    job: str
    label: str
    kind: TrainingKind
    fitness: float | None
    """Fitness of the evaluated policy; None when it failed."""
    failure: str = ""
    """Why it failed, in one sentence; empty when it did not."""
    taken_from: str = ""
    """Source of a result that was there already, in words; empty where it was trained now."""


@dataclass(frozen=True, kw_only=True)
class TrainingRetried:
    """A training is started again because its worker died: from its last saved state
    (`TrainingResumed` follows) or its first step."""

    job: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class TrainingResumed:
    """A training that waits will go on from a saved state: of an interrupted run, or of a worker
    that died."""

    job: str
    label: str
    points: tuple[CurvePoint, ...]
    """Its curve up to there."""


@dataclass(frozen=True, kw_only=True)
class AttemptEnded:
    """An attempt reached its last stage."""

    attempt: Attempt


@dataclass(frozen=True, kw_only=True)
class ConfirmationStarted:
    """The best attempts so far are trained again, so that none of them leads by luck."""

    iteration: int
    attempts: tuple[Attempt, ...]
    trainings: int
    """Number still to be made."""


@dataclass(frozen=True, kw_only=True)
class AttemptRepeated:
    """One more training of an attempt ended; its fitness is the mean over the trainings that did
    not fail."""

    attempt: Attempt
    repeat: Repeat


@dataclass(frozen=True, kw_only=True)
class IterationEnded:
    """All attempts of an iteration reached their last stage, and the best so far were confirmed."""

    iteration: int
    best: Attempt | None
    """The best attempt of the run so far."""


@dataclass(frozen=True, kw_only=True)
class FinalStarted:
    """The best attempts are trained again with fresh seeds, beside the baselines."""

    attempts: tuple[Attempt, ...]


@dataclass(frozen=True, kw_only=True)
class Scored:
    """A finalist or a baseline has its score over all seeds."""

    score: Score


@dataclass(frozen=True, kw_only=True)
class RunEnded:
    """Last event of a run."""

    status: RunStatus
    scores: tuple[Score, ...] = ()
    best: Attempt | None = None
    report_path: Path | None = None
    message: str = ""
    """One sentence for the person: why it stopped, how to resume."""


@dataclass(frozen=True, kw_only=True)
class Notice:
    """Something that the person should know."""

    text: str
    level: Literal["info", "warning"] = "info"
    stays: bool = False
    """Printed above the live view, in full: what the person should have read before the training
    begins."""


Event = (
    RunStarted
    | IterationStarted
    | RequestStarted
    | RequestEnded
    | Proposed
    | Judged
    | TrainingQueued
    | TrainingProgress
    | TrainingWaits
    | TrainingEnded
    | TrainingRetried
    | TrainingResumed
    | AttemptEnded
    | ConfirmationStarted
    | AttemptRepeated
    | IterationEnded
    | FinalStarted
    | Scored
    | RunEnded
    | Notice
)


class Observer(Protocol):
    """Receives every event, in order, on the engine's thread; must return at once and never
    raise."""

    def __call__(self, event: Event) -> None: ...
