"""The worker protocol: JSON lines in both directions, one message a line, validated on both sides;
files go between them as they are.

The driver writes commands to the worker's standard input; the worker answers with events on the
descriptor that was its standard output (its own prints go to standard error, so generated code
cannot write into the protocol by printing). A file (a policy, a saved state, episodes) is a
`FileHeader` followed by its bytes; it comes before the message that names it. The two sides share
no folder.
"""

from __future__ import annotations

import math
import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, FiniteFloat, TypeAdapter, field_validator

from eureka_agent.records import (
    CurvePoint,
    Evaluation,
    Finding,
    Measurements,
    Outcome,
    Record,
    TaskDescription,
    WrittenFitness,
)
from eureka_agent.rewards import RewardSpecification
from eureka_agent.settings import TrainingSettings
from eureka_agent.text import escape_unprintable, one_line

MAX_LINE_BYTES = 16 << 20
"""Longest line in either direction, which has room for 100,000 episodes; a longer one is a
violation of the protocol."""

MAX_FILE_BYTES = 256 << 20
"""Largest file in either direction."""
KERNELS_FILE = "kernels.safetensors"
"""Compiled kernels: bytes (uint8) by their path in a cache folder."""
FILE_NAME_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
"""What a file is called in messages: a plain name, never a path. A later file takes the place of an
earlier one of its name."""

EPISODES_PREFIX = "episodes-"
"""How the names of files begin that `ScoreTransitions` reads."""

MOST_SCORES = 1000
"""Of policies that are scored together."""
MOST_FINDINGS = 200
"""Of one dry run."""
MOST_SHOWN_FINDINGS = 12
"""Most findings, errors first: what a process says that runs hostile code and can read a worker's
memory goes on to models and into the report."""
LONGEST_FINDING = 240
"""Characters of a finding's message: an exception's has room in it, a page of memory has not."""
LONGEST_HINT = 400
"""Longest hint, which may list the shapes of a reward's arguments."""
LONGEST_FAULT = 1000
"""Longest message about an environment's fault: a path, a line and what was raised there."""
LONGEST_TEXT = 8000
"""Characters of any text that a person, a report or another model's prompt is to get from a
worker."""


def plain_text(text: str) -> str:
    """Text of a worker, which generated code may have written: bounded, control characters as in
    source code."""
    if len(text) > LONGEST_TEXT:
        text = f"{text[: LONGEST_TEXT - 3]}..."
    return escape_unprintable(text, keep="\t\n")[: 2 * LONGEST_TEXT]


def plain_line(text: str, limit: int) -> str:
    """`plain_text` in one line of at most `limit` characters."""
    return one_line(plain_text(" ".join(text.split())), limit)


def _plain_findings(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Raises ValueError for codes and places that no dry run gives."""
    for each in findings:
        places = (each.line or 0, each.column or 0)
        if re.fullmatch(r"D3[0-9]{2}", each.code) is None or not all(
            0 <= place < 1 << 31 for place in places
        ):
            raise ValueError(f"a dry run has no finding {each.code[:20]!r} at {places}")
    shown = sorted(findings, key=lambda each: each.severity != "error")[:MOST_SHOWN_FINDINGS]
    return tuple(
        each.model_copy(
            update={
                "message": plain_line(each.message, LONGEST_FINDING),
                "hint": plain_line(each.hint, LONGEST_HINT),
            }
        )
        for each in (findings if len(findings) == len(shown) else shown)
    )


Text = Annotated[str, AfterValidator(plain_text)]
ShortText = Annotated[str, AfterValidator(lambda text: plain_line(text, LONGEST_FINDING))]
Findings = Annotated[
    tuple[Finding, ...], Field(max_length=MOST_FINDINGS), AfterValidator(_plain_findings)
]


class FileHeader(Record):
    """The line before a file's bytes. Not answered."""

    type: Literal["file"] = "file"
    name: str = Field(pattern=f"^{FILE_NAME_PATTERN}$")
    size: int = Field(ge=0, le=MAX_FILE_BYTES)
    """Bytes that follow the line's end."""


# ── commands: driver → worker ─────────────────────────────────────────────────────────────────────


class Open(Record):
    """First command: load the environment and the task. Answered by `Opened`."""

    type: Literal["open"] = "open"
    environment: str
    task: str | None
    device: str = "cpu"
    """What it trains and evaluates on, as torch names it in the worker; dry runs are made on the
    CPU."""
    fitness: WrittenFitness | None = None
    """In place of the task's own metric."""
    rehearse: bool = False
    """Record the states of dry runs now, and go on for an episode: what is wrong with the
    environment is then known before anything is paid."""


class DryRun(Record):
    """Run a reward on recorded and extreme states in a process of its own. Answered by
    `DryRunDone`."""

    type: Literal["dry_run"] = "dry_run"
    job: str
    reward: RewardSpecification
    timeout_s: float


class ScoreTransitions(Record):
    """Run a reward on recorded and extreme states and on stored episodes, in a process of its own.
    Answered by `Scored`."""

    type: Literal["score_transitions"] = "score_transitions"
    job: str
    reward: RewardSpecification
    transitions: tuple[str, ...]
    """Npz files of plain arrays named `<episode>/<variable>`. A name stands for the same content
    always, and is sent to a worker once; it keeps the files until such a command does not name
    them, so that they never fill its scratch folder."""
    timeout_s: float


class Prepare(Record):
    """Make the population that later `Train` commands fill. Answered by `Prepared`."""

    type: Literal["prepare"] = "prepare"
    settings: TrainingSettings
    slots: int
    snapshot_s: float
    """Time between two saved states of a training."""
    iteration_limit_s: float | None = None
    """Time limit for the steps of one iteration: less than the driver waits for a sign of life, so
    that the worker can say where it stands still."""
    kernels: bool = False
    """Send the kernels that were compiled for it, as the file `KERNELS_FILE`, before the answer."""


class Train(Record):
    """Queue one training; it starts when a slot is free. Answered by `Progress` and `Saved`…, then
    `Trained` or `TrainingFailed`."""

    type: Literal["train"] = "train"
    job: str
    reward: RewardSpecification
    seed: int
    snapshot: str | None = None
    """Safetensors file as a `Saved` named one: the training goes on from there."""
    pauses: tuple[int, ...] = ()
    """Env steps at which it gives its slot back, says `Paused` and waits for `Proceed` or `Cancel`.
    Only where the environment is restorable."""


class Proceed(Record):
    """Let a paused training go on, before those that are queued. Not answered."""

    type: Literal["proceed"] = "proceed"
    job: str


class Cancel(Record):
    """Drop a queued, paused or running training. Not answered."""

    type: Literal["cancel"] = "cancel"
    job: str


class Save(Record):
    """Save the states of all trainings that have a slot, now. Answered by a `Progress`, a `Saved`
    for each of them, and `AllSaved`."""

    type: Literal["save"] = "save"


class PolicyFile(Record):
    """A policy to be scored."""

    policy: str
    """Safetensors file. No two of a command have the same."""
    seed: int
    episodes: int
    trajectories: str | None = None
    """Name of the file for the worst and the best episode (npz); None: they are not wanted."""


class Evaluate(Record):
    """Score policies on fresh episodes, acting without noise. Answered by `Evaluated`. Never sent
    to a worker that trains.

    A policy's score is the same whoever is scored with it. A `Fault` says nothing of which policy
    it is due to.
    """

    type: Literal["evaluate"] = "evaluate"
    job: str
    policies: tuple[PolicyFile, ...]


class Measure(Record):
    """Look at start states, and at what zero and random actions score. Answered by `Measured`.
    Never sent to a worker that trains."""

    type: Literal["measure"] = "measure"
    job: str
    scores: bool = True
    """False: look at start states alone."""


class Shutdown(Record):
    """Finish and exit. End of input means the same."""

    type: Literal["shutdown"] = "shutdown"


Command = Annotated[
    FileHeader
    | Open
    | DryRun
    | ScoreTransitions
    | Prepare
    | Train
    | Proceed
    | Cancel
    | Save
    | Evaluate
    | Measure
    | Shutdown,
    Field(discriminator="type"),
]
COMMAND: TypeAdapter[Command] = TypeAdapter(Command)

# ── events: worker → driver ───────────────────────────────────────────────────────────────────────


class Gpus(Record):
    """What torch finds in the worker."""

    count: int = 0
    missing: str = ""
    """Why there is none, or why this environment cannot use those that there are; empty where it
    can."""


class Opened(Record):
    type: Literal["opened"] = "opened"
    description: TaskDescription
    gpus: Gpus = Gpus()
    device_types: tuple[str, ...] = ("cpu",)
    """Types of torch devices that the environment runs on."""


class DryRunDone(Record):
    type: Literal["dry_run_done"] = "dry_run_done"
    job: str
    findings: Findings
    seconds: FiniteFloat


class Scored(Record):
    """Totals and returns of a reward; null where one is not finite."""

    type: Literal["scored"] = "scored"
    job: str
    returns: tuple[dict[str, float | None], ...] = ()
    """Sum of the total over every episode by its name, for each file in the order of the
    command."""
    totals: tuple[float | None, ...] = ()
    """Totals of single steps: the recorded ones, then steps of the episodes, at most
    `eureka_agent.worker.scoring.MOST_STEPS` of them."""
    extreme_totals: tuple[float | None, ...] = ()
    reason: ShortText = ""
    """Why there are no numbers; empty where there are."""


class Prepared(Record):
    type: Literal["prepared"] = "prepared"


class Progress(Record):
    """Curve points since the last such event, at most about twice a second. Also the sign of
    life."""

    type: Literal["progress"] = "progress"
    points: dict[str, tuple[CurvePoint, ...]]
    """By job."""
    timers: dict[str, FiniteFloat] = Field(default_factory=dict)
    """Wall seconds since the worker began, by part: physics, policy, reward, update, rest."""


class Saved(Record):
    """A training's state is in a file, from which it can go on. Every point up to there has been
    sent."""

    type: Literal["saved"] = "saved"
    job: str
    snapshot: str
    """Safetensors file."""
    iterations: int
    """Made so far: as many points belong to it."""


class AllSaved(Record):
    """The states that a `Save` asked for have been sent."""

    type: Literal["all_saved"] = "all_saved"


class Paused(Record):
    """A training has reached one of its pauses. Every point up to there has been sent."""

    type: Literal["paused"] = "paused"
    job: str
    env_steps: int
    policy: str
    """Safetensors file of the policy of that moment."""
    snapshot: str
    """Safetensors file of its state, likewise: what it can go on from elsewhere."""


class Trained(Record):
    type: Literal["trained"] = "trained"
    job: str
    outcome: Outcome
    policies: dict[int, str]
    """Safetensors files of the best checkpoints by their index; that of the outcome's is among
    them."""


class TrainingFailed(Record):
    """The candidate's own fault: its reward raised, turned NaN or took too long, or a written
    fitness failed on its states."""

    type: Literal["training_failed"] = "training_failed"
    job: str
    code: str
    """`"not-a-number"`, `"raised"`, `"timeout"`, `"contract"`, `"fitness"`."""
    reason: Text
    env_steps: int


class PolicyScore(Record):
    """A policy's score, or why it has none."""

    evaluation: Evaluation | None = None
    fault: Text = ""
    """Empty where there is an evaluation."""
    hint: Text = ""

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
    job: str
    scores: tuple[PolicyScore, ...] = Field(max_length=MOST_SCORES)
    """In the order of the command. The bound is for the driver's sake: a line has room for millions
    of empty ones, gigabytes when they are parsed."""


class Measured(Record):
    type: Literal["measured"] = "measured"
    job: str
    measurements: Measurements


class Fault(Record):
    """An error that the user can act on (`EurekaError`), or one of ours; the worker goes on where
    it can."""

    type: Literal["fault"] = "fault"
    job: str | None
    message: Text
    hint: Text = ""
    environment: bool = False
    """True where the environment's own code failed: no reward is to blame, and no further one will
    do better."""


Event = Annotated[
    FileHeader
    | Opened
    | DryRunDone
    | Scored
    | Prepared
    | Progress
    | Saved
    | AllSaved
    | Paused
    | Trained
    | TrainingFailed
    | Evaluated
    | Measured
    | Fault,
    Field(discriminator="type"),
]
EVENT: TypeAdapter[Event] = TypeAdapter(Event)
