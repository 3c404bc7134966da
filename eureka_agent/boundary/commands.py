"""Commands from the driver to a worker, one JSON line each."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from eureka_agent.boundary.bounds import (
    FILE_NAME_PATTERN,
    MOST_CREDITED,
    MOST_FILMED,
    FileHeader,
    PicturePixels,
)
from eureka_agent.label_records import MOST_LABELS, CaptionLabel, LabelMethod
from eureka_agent.records import ParameterRanges, ParameterStage, Record, WrittenFitness
from eureka_agent.rewards import RewardSpecification
from eureka_agent.settings import TrainingSettings


class Open(Record):
    """First command: load the environment and the task. Answered by `Opened`."""

    type: Literal["open"] = "open"
    environment: str
    task: str | None
    device: str = "cpu"
    """Torch device of trainings and evaluations, by its name in the worker. Dry runs use the
    CPU."""
    fitness: WrittenFitness | None = None
    """Replaces the task's own metric."""
    described: str = ""
    """Description by itself that a command environment gave before (`Opened.described`)."""
    interpreter: str = ""
    """Absolute path of a command environment's interpreter: a worker has another home folder."""
    rehearse: bool = False
    """Record the states for dry runs now and step on for one episode. This finds faults of the
    environment before anything is paid."""


class DryRun(Record):
    """Run a reward on recorded and extreme states in its own process. Answered by `DryRunDone`."""

    type: Literal["dry_run"] = "dry_run"
    job: str
    reward: RewardSpecification
    timeout_s: float


class ScoreTransitions(Record):
    """Run a reward on stored episodes, in its own process. Answered by `Scored`."""

    type: Literal["score_transitions"] = "score_transitions"
    job: str
    reward: RewardSpecification
    transitions: tuple[str, ...]
    """Npz files of plain arrays named `<episode>/<variable>`. A name always has the same content
    and is sent to a worker once. The worker deletes the files that neither the latest such command
    nor the latest `GiveCredit` names, so they never fill its scratch folder."""
    timeout_s: float


class GiveCredit(Record):
    """Compare the credit that rewards give to the steps of stored episodes with the fitness's.
    Answered by `Credited`."""

    type: Literal["give_credit"] = "give_credit"
    job: str
    rewards: tuple[RewardSpecification, ...] = Field(max_length=MOST_CREDITED)
    """They run one after the other in one process, which takes a fraction of the time of a process
    for each. So it is for rewards whose sources the critic has read."""
    transitions: tuple[str, ...]
    """As in `ScoreTransitions`."""
    timeout_s: float
    """For all of them; if they fail together, for each alone."""


class AskSteps(Record):
    """Calculate a reward's total and terms in each step of stored episodes, in its own process;
    without any in steps of random actions. Answered by `StepsAsked`."""

    type: Literal["ask_steps"] = "ask_steps"
    job: str
    reward: RewardSpecification
    transitions: tuple[str, ...]
    """As in `ScoreTransitions`."""
    timeout_s: float


class Prepare(Record):
    """Make the population for later `Train` commands. Answered by `Prepared`."""

    type: Literal["prepare"] = "prepare"
    settings: TrainingSettings
    slots: int
    designs: bool = False
    """Give policies room for observations that are designed."""
    snapshot_s: float
    """Seconds between two saved states of a training."""
    iteration_limit_s: float | None = None
    """Timeout for the environment steps of one iteration. It is shorter than the driver's timeout,
    so the worker can still report where it hangs."""
    kernels: bool = False
    """Send the compiled kernels as the file `KERNELS_FILE` before the answer."""


class Train(Record):
    """Queue one training, which starts when a slot is free. Answered by `Progress`, `Saved` and
    `RungReached` any number of times, then by `Trained` or `TrainingFailed`."""

    type: Literal["train"] = "train"
    job: str
    reward: RewardSpecification
    seed: int
    snapshot: str | None = None
    """Saved state (safetensors) that the training resumes from."""
    rungs: tuple[int, ...] = ()
    """Env steps after which it sends its policy in a `RungReached`, and goes on."""
    curriculum: tuple[ParameterStage, ...] = ()
    """Distributions of the environment's parameters, by the env step from which each holds."""
    label_method: LabelMethod = "retrieval"
    labels: tuple[CaptionLabel, ...] = Field((), max_length=MOST_LABELS)
    """Labels that are known at its start."""


class GiveLabels(Record):
    """Give labels of captions to trainings. It has no answer, and passes over unknown jobs."""

    type: Literal["give_labels"] = "give_labels"
    jobs: tuple[str, ...]
    labels: tuple[CaptionLabel, ...] = Field(max_length=MOST_LABELS)


class Cancel(Record):
    """Drop a queued or running training. It has no answer."""

    type: Literal["cancel"] = "cancel"
    job: str


class Save(Record):
    """Save the states of all trainings that have a slot. Answered by a `Progress`, a `Saved` for
    each training, and `AllSaved`."""

    type: Literal["save"] = "save"


class PolicyFile(Record):
    """A policy to score."""

    policy: str
    """Safetensors file, unique within the command."""
    seed: int
    episodes: int
    trajectories: str | None = None
    """Name of the npz file to send with the worst and the best episode, or with all."""
    recorded: Literal["extremes", "all"] = "extremes"
    parameters: ParameterRanges = Field(default_factory=dict)
    """Distribution of the environment's parameters in its episodes; empty: the defaults."""


class Evaluate(Record):
    """Score policies on fresh episodes, acting without noise. Answered by `Evaluated`, or by a
    `Fault` that does not tell which policy caused it. Never sent to a worker that trains.

    A policy's score does not depend on the policies that it is scored with.
    """

    type: Literal["evaluate"] = "evaluate"
    job: str
    policies: tuple[PolicyFile, ...]


class FilmedPolicy(Record):
    """A policy to show."""

    policy: str
    """Safetensors file, unique within the command."""
    title: str = Field(max_length=200)


class Film(Record):
    """Make a video of episodes of policies, acting without noise, from the same start states.
    Answered by `Filmed`, after its files."""

    type: Literal["film"] = "film"
    job: str = Field(pattern=f"^{FILE_NAME_PATTERN}$")
    policies: tuple[FilmedPolicy, ...] = Field(min_length=1, max_length=MOST_FILMED)
    seed: int
    episodes: int = Field(gt=0)
    """Episodes of each policy, of which those `shown` are chosen."""
    shown: tuple[int | Literal["best", "median", "worst"], ...] = Field(
        min_length=1, max_length=MOST_FILMED
    )
    """Numbers of episodes, or the first policy's by fitness."""
    size: tuple[PicturePixels, PicturePixels] = (480, 360)
    """Width and height of one picture, without the lines above and below."""
    seconds: float = Field(10.0, gt=0, le=600)
    """Bound on the shown part of an episode, in the environment's time."""
    gif_seconds: float = Field(0.0, ge=0, le=60)
    """Length of an animated GIF of its beginning; 0: none."""
    fitness: bool = True
    """Show the fitness so far below each picture."""
    sheet: int = Field(0, ge=0, le=12)
    """Send a picture (JPEG) of each episode at so many moments, evenly spread; 0: none."""
    moments: tuple[Annotated[float, Field(ge=0, le=1e9)], ...] = Field((), max_length=12)
    """Seconds of these `sheet` moments, where they are not evenly spread."""
    by_change: bool = False
    """Choose the `sheet` moments of each episode by how much its state changes."""
    two_sides: bool = False
    """Show each moment of the sheet from a second side, too, where the scene has one."""
    trajectories: bool = False
    """Send the shown episodes' variables as an npz file, too."""


class MeasureTask(Record):
    """Measure start states and the scores of zero and random actions. Answered by `Measured`. Never
    sent to a worker that trains."""

    type: Literal["measure"] = "measure"
    job: str
    scores: bool = True
    """False: measure start states alone."""


class Shutdown(Record):
    """Finish and exit, as at the end of input."""

    type: Literal["shutdown"] = "shutdown"


Command = Annotated[
    FileHeader
    | Open
    | DryRun
    | ScoreTransitions
    | GiveCredit
    | AskSteps
    | Prepare
    | Train
    | GiveLabels
    | Cancel
    | Save
    | Evaluate
    | Film
    | MeasureTask
    | Shutdown,
    Field(discriminator="type"),
]
COMMAND: TypeAdapter[Command] = TypeAdapter(Command)
