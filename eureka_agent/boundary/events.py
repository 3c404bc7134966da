"""Events from a worker to the driver, one JSON line each. The driver trusts nothing in them."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field, FiniteFloat, TypeAdapter, field_validator

from eureka_agent.boundary.bounds import (
    MOST_ASKED_STEPS,
    MOST_FILMED,
    MOST_GPUS,
    MOST_SCORES,
    MOST_TIMERS,
    Credits,
    FileHeader,
    Findings,
    Reference,
    ShortText,
)
from eureka_agent.label_records import MOST_WANTED, CaptionMet
from eureka_agent.records import (
    CurvePoint,
    EpisodeSummary,
    Evaluation,
    Measurements,
    Outcome,
    PlainText,
    Record,
    ShortName,
    TaskDescription,
)


class Gpus(Record):
    """GPUs that torch finds in the worker."""

    count: int = Field(0, ge=0, le=MOST_GPUS)
    missing: PlainText = ""
    """Reason why there is no GPU, or why this environment cannot use it; else empty."""


class Opened(Record):
    type: Literal["opened"] = "opened"
    description: TaskDescription
    gpus: Gpus = Gpus()
    device_types: tuple[ShortName, ...] = ("cpu",)
    """Types of torch devices that the environment runs on."""
    described: str = Field("", max_length=1 << 20)
    """Description of a command environment by itself, for further workers."""


class DryRunDone(Record):
    type: Literal["dry_run_done"] = "dry_run_done"
    job: Reference
    findings: Findings
    seconds: FiniteFloat


class TransitionsScored(Record):
    """Returns of a reward. None stands for a number that is not finite."""

    type: Literal["scored"] = "scored"
    job: Reference
    returns: tuple[dict[ShortName, float | None], ...] = ()
    """Sum of the total over each episode by its name, per file in the order of the command."""
    reason: ShortText = ""
    """Reason why there are no numbers; else empty."""


class StepsAsked(Record):
    """A reward's values in each stored step, episode after episode. None stands for a number that
    is not finite."""

    type: Literal["steps_asked"] = "steps_asked"
    job: Reference
    total: tuple[float | None, ...] = Field((), max_length=MOST_ASKED_STEPS)
    terms: dict[ShortName, tuple[float | None, ...]] = Field(default_factory=dict, max_length=8)
    reason: ShortText = ""
    """Reason why there are no numbers; else empty."""


class Credited(Record):
    """Credit of each reward of a `GiveCredit`."""

    type: Literal["credited"] = "credited"
    job: Reference
    credits: Credits
    """None for a reward that failed or is not finite; for all where the episodes are without
    fitness or observations."""


class Prepared(Record):
    type: Literal["prepared"] = "prepared"


class CurvePoints(Record):
    """Curve points since the last such event, sent at most about twice a second. It also serves as
    the sign of life."""

    type: Literal["progress"] = "progress"
    points: dict[Reference, tuple[CurvePoint, ...]]
    """By job."""
    timers: dict[ShortName, FiniteFloat] = Field(default_factory=dict, max_length=MOST_TIMERS)
    """Wall seconds since the worker's start, by part: physics, policy, reward, update, rest."""


class Saved(Record):
    """A saved state of a training. All curve points up to it have been sent."""

    type: Literal["saved"] = "saved"
    job: Reference
    snapshot: Reference
    """Safetensors file."""
    iterations: int
    """Iterations made, equal to the number of curve points up to this state."""


class AllSaved(Record):
    """End of the answer to `Save`."""

    type: Literal["all_saved"] = "all_saved"


class RungReached(Record):
    """The policy of a training at a rung. All curve points up to it have been sent, and no later
    saved state."""

    type: Literal["rung_reached"] = "rung_reached"
    job: Reference
    env_steps: int
    policy: Reference
    """Safetensors file."""


class LabelsWanted(Record):
    """Captions without a label that a training met, the most met first; about every two seconds."""

    type: Literal["labels_wanted"] = "labels_wanted"
    job: Reference
    captions: tuple[CaptionMet, ...] = Field(max_length=MOST_WANTED)


class Trained(Record):
    type: Literal["trained"] = "trained"
    job: Reference
    outcome: Outcome
    policies: dict[int, Reference]
    """Safetensors files of the best checkpoints by their index, the outcome's among them."""


class TrainingFailed(Record):
    """A failure by the candidate's own fault: its reward raised, gave NaN or timed out, or a
    written fitness failed on its states."""

    type: Literal["training_failed"] = "training_failed"
    job: Reference
    code: ShortName
    """`"not-a-number"`, `"raised"`, `"timeout"`, `"contract"`, `"fitness"`."""
    reason: PlainText
    env_steps: int


class PolicyScore(Record):
    """A policy's score, or the reason why it has none."""

    evaluation: Evaluation | None = None
    fault: PlainText = ""
    """Empty where there is an evaluation."""
    hint: PlainText = ""

    @field_validator("evaluation")
    @classmethod
    def _is_finite(cls, evaluation: Evaluation | None) -> Evaluation | None:
        if evaluation is not None and not all(
            math.isfinite(episode.fitness) for episode in evaluation.episodes
        ):
            raise ValueError("expected finite numbers")
        return evaluation


class Evaluated(Record):
    type: Literal["evaluated"] = "evaluated"
    job: Reference
    scores: tuple[PolicyScore, ...] = Field(max_length=MOST_SCORES)
    """In the order of the command."""


class ShownEpisode(Record):
    """An episode in a video."""

    policy: int
    """Place of its policy in the command."""
    shown: ShortText
    """`"best"`, `"median"`, `"worst"`, or its number."""
    number: int
    """Number of the episode, which stands for its start state."""
    episode: EpisodeSummary
    begins_s: FiniteFloat
    """Time in the video at which it begins."""


class Filmed(Record):
    """A video, whose files were sent before."""

    type: Literal["filmed"] = "filmed"
    job: Reference
    video: Reference
    """Mp4 file."""
    gif: Reference | None = None
    sheet: Reference | None = None
    """JPEG file: a row for each episode or two, moments from left to right."""
    trajectories: Reference | None = None
    """Npz file of arrays named `<policy>-<number of the episode>/<variable>`."""
    seconds: FiniteFloat
    episodes: tuple[ShownEpisode, ...] = Field(max_length=MOST_FILMED**2)


class TaskMeasured(Record):
    type: Literal["measured"] = "measured"
    job: Reference
    measurements: Measurements


class Fault(Record):
    """An error that the user can act on (`EurekaError`), or a defect of this program. The worker
    goes on if it can."""

    type: Literal["fault"] = "fault"
    job: Reference | None
    message: PlainText
    hint: PlainText = ""
    environment: bool = False
    """True if the environment's own code failed, so that every reward would fail."""
    gpu: bool = False
    """True if the GPU itself failed, for which no code is to blame."""


Event = Annotated[
    FileHeader
    | Opened
    | DryRunDone
    | TransitionsScored
    | Credited
    | StepsAsked
    | Prepared
    | CurvePoints
    | Saved
    | AllSaved
    | RungReached
    | LabelsWanted
    | Trained
    | TrainingFailed
    | Evaluated
    | Filmed
    | TaskMeasured
    | Fault,
    Field(discriminator="type"),
]
EVENT: TypeAdapter[Event] = TypeAdapter(Event)
