"""Records that pass between the parts and that the archive stores: proposals, verdicts, outcomes,
diagnoses, attempts.

All are pydantic models, so a record means the same in the driver, in a worker and on disk.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    FiniteFloat,
    ValidationError,
    field_validator,
)

from eureka_agent.base_record import Record
from eureka_agent.label_records import LearnedLabels
from eureka_agent.randomisation_records import (
    ParameterRanges,
    Randomisation,
    RandomisedParameters,
    RangeScore,
)
from eureka_agent.reward_names import (
    LONGEST_NAME,
    MOST_COMPONENTS,
    component_fault,
    is_argument_name,
)
from eureka_agent.rewards import Baseline, CodeReward, RewardSpecification
from eureka_agent.settings import MOST_ENV_STEPS, TrainingSettings, validation_fault
from eureka_agent.task import FitnessReduction, QuaternionOrder
from eureka_agent.text import plain_text

MOST_MEASURED = 1000
"""Entries of each kind of a worker's measurements."""
MOST_FILES = 200
"""Files of an environment's folder whose hashes are kept one by one."""
MOST_CHOICES = 4096
"""Choices of all numbers of an action together."""
MOST_COLUMNS = 12
"""Columns of a variable with a range each; one with more has one range."""
MOST_CHARACTERS = 400
MOST_AXES = 16


# ── what a worker may say: it is not trusted, and people and models read it ───────────────────────


def _checked_name(name: str) -> str:
    if component_fault(name):
        raise ValueError(f"expected one line of 1 to {LONGEST_NAME} visible characters")
    return name


def _argument_name(name: str) -> str:
    if not is_argument_name(name):
        raise ValueError("expected a Python identifier that a reward may have as an argument")
    return name


def _file_stem(name: str) -> str:
    if "/" in name or name.startswith("."):
        raise ValueError("expected a name that a file may have, without a folder")
    return _checked_name(name)


def _of_training(overrides: dict[str, Any]) -> dict[str, Any]:
    try:
        found = TrainingSettings.model_validate(overrides)
    except ValidationError as error:
        raise ValueError(validation_fault(error)) from None
    return found.model_dump(mode="json", exclude_unset=True)


ShortName = Annotated[str, AfterValidator(_checked_name)]
ArgumentName = Annotated[str, AfterValidator(_argument_name)]
"""Name of a variable, a constant or a parameter, which stands in exported code."""
TaskName = Annotated[str, AfterValidator(_file_stem)]
"""Name of a task, which is a part of file names."""
PlainText = Annotated[str, AfterValidator(plain_text)]
ShortSentence = Annotated[str, Field(max_length=MOST_CHARACTERS), AfterValidator(plain_text)]
Count = Annotated[int, Field(ge=0, lt=1 << 63)]
"""A number that the archive can hold."""
Size = Annotated[int, Field(gt=0, le=1 << 24)]
"""Number of entries of an observation, an action or a variable's axis."""
TrainingOverrides = Annotated[
    dict[str, FiniteFloat | int | bool | str | list[int]], AfterValidator(_of_training)
]
"""Settings of a training by name: a worker may not name another setting of a search."""


# ── the task as the driver and the designer see it ────────────────────────────────────────────────


class VariableSpec(Record):
    """`eureka_agent.task.Variable` as data."""

    name: ArgumentName
    shape: Annotated[tuple[Size, ...], Field(max_length=MOST_AXES)]
    unit: PlainText
    frame: PlainText
    doc: PlainText
    range: tuple[FiniteFloat, FiniteFloat] | None = None
    private: bool = False


class ConstantSpec(Record):
    """`eureka_agent.task.Constant` as data."""

    name: ArgumentName
    value: FiniteFloat
    unit: PlainText = "1"
    doc: PlainText = ""


class ParameterSpec(Record):
    """`eureka_agent.task.Parameter` as data."""

    name: ArgumentName
    unit: PlainText = "1"
    default: FiniteFloat
    low: FiniteFloat
    high: FiniteFloat
    doc: PlainText = ""
    of_model: bool = False


class ParameterStage(Record):
    """A distribution for the episodes that begin from an env step of a training on. A training's
    stages are its curriculum."""

    env_steps: Count
    parameters: ParameterRanges


class ChannelSpec(Record):
    """`eureka_agent.task.Channel` as data."""

    name: PlainText
    entries: tuple[PlainText, ...] = ()
    unit: PlainText = "1"
    frame: PlainText = "-"
    doc: PlainText = ""
    scale: FiniteFloat = 1.0
    range: tuple[FiniteFloat, FiniteFloat] | None = None


class UntrainedScore(Record):
    """Fitness of an untrained policy over some episodes."""

    mean: FiniteFloat
    std: FiniteFloat
    """Standard deviation over the episodes (n − 1)."""
    length: FiniteFloat
    """Mean length of an episode in control steps."""
    episodes: Count
    ends: dict[ShortName, Count] = Field(default_factory=dict, max_length=MOST_MEASURED)
    """Episodes by what ended them."""


ColumnRange = tuple[FiniteFloat, FiniteFloat, FiniteFloat]


class Measurements(Record):
    """A worker's measurements of the environment, made before the first request to a model and told
    in the prompts."""

    starts: dict[
        ArgumentName, Annotated[tuple[ColumnRange, ...], Field(max_length=MOST_COLUMNS)]
    ] = Field(default_factory=dict, max_length=MOST_MEASURED)
    """Lowest and highest value and smallest magnitude after a reset, by variable, for every column
    or, where they are many, for all together."""
    resets: Count = 0
    termination_conditions: dict[ShortSentence, ShortSentence] = Field(
        default_factory=dict, max_length=MOST_MEASURED
    )
    """This task's conditions in words with their numbers, by cause."""
    masses_and_sizes: tuple[ShortSentence, ...] = Field((), max_length=MOST_MEASURED)
    zero_actions: UntrainedScore | None = None
    """All actions 0; None where not measured."""
    random_actions: UntrainedScore | None = None
    """Every entry of every action uniform in [-1, 1]."""


class NativeTerm(Record):
    """A term of a simulator's own reward."""

    name: ShortName
    weight: FiniteFloat = 1.0
    doc: PlainText = ""


class CommandFacts(Record):
    """Facts about a command environment (docs/protocol.md)."""

    slots: int = Field(gt=0)
    """Processes that train side by side on this machine."""
    cores: int = Field(gt=0)
    """CPU cores of each."""
    rewards: int = Field(gt=0)
    """Trainings that one process takes."""
    rungs: bool
    """True where a training gives policies on the way."""
    native_terms: tuple[NativeTerm, ...] = Field((), max_length=MOST_MEASURED)
    versions: dict[ShortName, ShortSentence] = Field(default_factory=dict, max_length=100)
    """Versions of its packages, by name."""


class TaskDescription(Record):
    """Facts about an environment and its task, without the fitness's code."""

    environment: PlainText
    """Value of `--env`: a built-in name, a folder, or `gymnasium:<id>`."""
    task: TaskName
    sentence: PlainText
    """The task file's sentence (a search may have its own)."""
    doc: PlainText
    """First paragraph of the environment class's docstring."""
    details: PlainText = ""
    """Its other paragraphs, for the designer."""
    fitness_doc: PlainText
    fitness_unit: PlainText
    fitness_reduction: FitnessReduction
    success_fitness: FiniteFloat | None
    fitness_variables: tuple[ArgumentName, ...] = ()
    """Variables that the fitness reads, in its order."""
    variables: tuple[VariableSpec, ...]
    num_observations: Size
    num_actions: Size
    action_choices: Annotated[tuple[Count, ...], Field(max_length=MOST_CHOICES)] = ()
    """Number of choices for each number of the action, which is the choice's index; empty for
    continuous actions in [-1, 1]."""
    control_dt: FiniteFloat = Field(gt=0)
    """Seconds between two control steps."""
    max_episode_length: int = Field(gt=0, lt=1 << 63)
    """Control steps after which an episode is truncated."""
    episode_source: PlainText = ""
    """Origin of these two, where read from a simulator or guessed."""
    termination_causes: tuple[ShortName, ...]
    termination_conditions: dict[ShortName, PlainText] = Field(default_factory=dict)
    """Conditions that the environment's class declares, by cause."""
    success_causes: tuple[ShortName, ...] = ()
    env_steps: int = Field(gt=0, le=MOST_ENV_STEPS)
    """The task's default, as `num_envs` is."""
    num_envs: int = Field(gt=0, le=1_000_000)
    training_overrides: TrainingOverrides
    gpu_overrides: TrainingOverrides = Field(default_factory=dict)
    """In place of all others where trainings run on a GPU."""
    human_reward: Baseline | None
    """The expert's; None where the environment has none."""
    sparse_reward: Baseline | None
    fingerprint: ShortSentence
    """SHA-256 over the environment folder's files that count for the task, which the driver works
    out itself. With a written fitness, `+` and its SHA-256 follow."""
    remarks: tuple[ShortSentence, ...] = Field(default=(), max_length=MOST_FILES)
    """Likely mistakes in its source, such as a misspelt hook, shown at a search's start."""
    files: dict[ShortSentence, ShortSentence] = Field(default_factory=dict, max_length=MOST_FILES)
    """Short hash of each file in the fingerprint, by name; empty for more than `MOST_FILES`."""
    restorable: bool = False
    """True where a training can be saved and resumed."""
    fitness_author: ShortSentence = ""
    """Language model that wrote the fitness; empty for the task's own metric."""
    constants: tuple[ConstantSpec, ...] = ()
    parameters: tuple[ParameterSpec, ...] = ()
    """Properties that may differ between episodes, with their safe ranges."""
    quaternion_order: QuaternionOrder = "wxyz"
    """Order in the environment's variables and in the reward's helper functions."""
    observation_channels: tuple[ChannelSpec, ...] = ()
    """Quantities of the observation in order; empty where the environment does not name them."""
    action_channels: tuple[ChannelSpec, ...] = ()
    command: CommandFacts | None = None
    """None for an environment in Python."""
    captions: bool = False
    """True where the environment has captions of its states."""
    measured: Measurements | None = None
    """None where no model is asked."""

    def training_on(self, device: str) -> dict[str, Any]:
        """The task's settings of a training, by name, on a device such as `cpu`, `cuda:1`."""
        defaults = {"env_steps": self.env_steps, "num_envs": self.num_envs}
        gpu = self.gpu_overrides if device.startswith("cuda") else {}
        return {**defaults, **self.training_overrides, **gpu}

    @property
    def endings(self) -> dict[str, str]:
        """Condition of each termination cause in this task, in words; empty where unknown."""
        known = (self.measured or self).termination_conditions
        return {cause: known.get(cause, "") for cause in self.termination_causes}

    @property
    def failure_causes(self) -> tuple[str, ...]:
        """Termination causes that are no successes."""
        return tuple(cause for cause in self.termination_causes if cause not in self.success_causes)

    @property
    def baselines(self) -> dict[str, RewardSpecification]:
        """The rewards to compare with that the environment has, by name."""
        rewards = {"human": self.human_reward, "sparse": self.sparse_reward}
        return {name: reward for name, reward in rewards.items() if reward is not None}

    @property
    def environment_fingerprint(self) -> str:
        """The environment, without a written fitness, in the keys of what runs share. Where it has
        no files, a worker told the fingerprint, which counts for its own reference alone."""
        found = self.fingerprint.partition("+")[0]
        if self.command is not None:
            found += f" {sorted(self.command.versions.items())}"
        return f"{found} {self.environment}" if ":" in self.environment else found

    def public_variables(self) -> tuple[VariableSpec, ...]:
        """Variables that a proposed reward may read."""
        return tuple(variable for variable in self.variables if not variable.private)


class WrittenFitness(Record):
    """A fitness that a language model wrote for a search's sentence, in the form of a reward: its
    total is the fitness of a step."""

    sentence: str
    source: str
    """Python source with `compute_reward`; it reads public variables only."""
    doc: str
    unit: str = "1"
    reduction: FitnessReduction
    success_fitness: float | None = None
    author: str
    reasoning: str = ""

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all that decides on its values."""
        content = json.dumps([self.source, self.reduction, self.success_fitness])
        return hashlib.sha256(content.encode()).hexdigest()

    @property
    def reward(self) -> RewardSpecification:
        """The reward that it is written as."""
        return CodeReward(source=self.source, author=self.author)


# ── the critic ────────────────────────────────────────────────────────────────────────────────────


class Finding(Record):
    """One finding of the critic, like a linter's."""

    code: str
    """`P…` parse, `M…` mended, `A…` allow-list, `C…` contract, `D…` dry run, `N…` novelty, `R…`
    review, `F…` a written fitness's words."""
    severity: Literal["error", "warning", "note"]
    message: str
    line: int | None = None
    column: int | None = None
    hint: str = ""


class EpisodeOrder(Record):
    """A reward's order of recorded episodes (`eureka_agent.critic.memory`)."""

    pairs: int
    """Pairs that differ clearly in fitness."""
    right: float
    """Pairs whose better episode has the higher return. Equal returns count half."""


class Verdict(Record):
    """The critic's findings on one reward. Accepted when none of them is an error."""

    findings: tuple[Finding, ...] = ()
    steps_run: tuple[str, ...] = ()
    """Names of the critic's steps that ran, in order; a step with an error is the last."""
    seconds: float = 0.0
    repaired: str | None = None
    """Source with sure repairs, which is judged and trained; None without repairs."""
    order: EpisodeOrder | None = None
    """None where too few episodes were known."""

    @property
    def accepted(self) -> bool:
        return not any(finding.severity == "error" for finding in self.findings)


# ── the designer ──────────────────────────────────────────────────────────────────────────────────


class Operator(StrEnum):
    """Task of a designer."""

    FRESH = "fresh"
    IMPROVE = "improve"
    MUTATE_STRUCTURE = "mutate_structure"
    RETUNE_WEIGHTS = "retune_weights"
    CROSSOVER = "crossover"
    DIFFERENT = "different"
    EDIT = "edit"
    """Take a reward that a person wrote or changed."""
    RANDOMISE = "randomise"
    """Train the best reward again, under a distribution of the environment's parameters."""


NOT_ASKED = (Operator.EDIT, Operator.RANDOMISE)
"""Operators for which no designer of rewards is asked."""

MOST_TOKENS = 100_000_000
"""Most tokens of one request, far beyond any model's; a server's larger count is unknown."""
_MOST_MONEY = Decimal(10**12)


def known_tokens(count: object) -> int | None:
    """Number of tokens from a server; None, unknown, for an impossible one."""
    return count if type(count) is int and 0 <= count <= MOST_TOKENS else None


def _known_money(money: Decimal | None) -> Decimal | None:
    return money if money is not None and 0 <= money <= _MOST_MONEY else None


Money = Annotated[Decimal | None, AfterValidator(_known_money)]
"""US dollars; None where they are unknown."""


Tokens = Annotated[int | None, BeforeValidator(known_tokens)]


class Cost(Record):
    """Cost of a request to a model. Unknown is None, never 0."""

    money: Money = None
    prompt_tokens: Tokens = None
    """All tokens of the prompt, cached ones included."""
    completion_tokens: Tokens = None
    """All tokens of the reply, reasoning included."""
    reasoning_tokens: Tokens = None
    """Tokens of the reasoning, which may have a price of its own."""
    cached_tokens: Tokens = None
    """Prompt tokens read from the provider's cache."""
    cache_write_tokens: Tokens = None
    """Prompt tokens written to the provider's cache, where that has a price of its own."""
    batched: bool = False
    """True for a reply from a batch, which has half the price."""
    seconds: float = 0.0


def total_cost(costs: Sequence[Cost]) -> Cost:
    """Cost of several requests, at least one; a sum is unknown where a part of it is."""

    def total(name: str) -> Any:
        found = [getattr(each, name) for each in costs]
        return None if None in found else sum(found[1:], found[0])

    summed = {name: total(name) for name in Cost.model_fields if name != "batched"}
    return Cost(**summed, batched=costs[0].batched)


MOST_RANKED_STEPS = 600
"""Most steps whose ranks a `Credit` has."""
Rank = Annotated[float, Field(ge=-0.5, le=0.5, allow_inf_nan=False)]
Correlation = Annotated[float, Field(ge=-1.0, le=1.0, allow_inf_nan=False)]


class Credit(Record):
    """Credit that a reward gives to stored steps: its rank correlations with the fitness's, and the
    ranks themselves (`eureka_agent.worker.scoring`)."""

    step: Correlation
    """Correlation of what single steps are worth."""
    to_go: Correlation
    """Correlation of the discounted returns from there on."""
    advantage: Correlation
    """Correlation of these returns beyond what is usual in the state."""
    ranks: tuple[Rank, ...] = Field((), max_length=3 * MOST_RANKED_STEPS)
    """Ranks of the steps by each of the three, one after the other: from -0.5 to 0.5 among the
    steps of the same policy."""

    @property
    def alignment(self) -> float:
        return (self.step + self.to_go + self.advantage) / 3


class Proposal(Record):
    """Reward with its designer's reasoning and its origin."""

    reward: RewardSpecification
    reasoning: str
    operator: Operator
    parents: tuple[str, ...] = ()
    prompt: str = ""
    reply: str = ""
    finish_reason: str = "stop"
    """`eureka_agent.llm.interface.FinishReason`."""
    problem: str = ""
    """Why the reply holds no reward, or not all of it; empty for a whole one."""
    problem_hint: str = ""
    """What could help."""
    cost: Cost = Cost()
    drafts: tuple[float | None, ...] = ()
    """Improvement of the fitness that was expected of each draft, of which this is the one with the
    highest; None: unknown. Empty where there was one draft alone."""
    distribution: RandomisedParameters | None = None
    """Parameters to train under, for `Operator.RANDOMISE`; None for the defaults."""

    @field_validator("reward")
    @classmethod
    def _is_not_trusted(cls, reward: RewardSpecification) -> RewardSpecification:
        if reward.trusted:
            raise ValueError("a proposed reward may not read private variables")
        return reward


# ── training ──────────────────────────────────────────────────────────────────────────────────────


ComponentNumbers = Annotated[dict[ShortName, FiniteFloat], Field(max_length=MOST_COMPONENTS)]


class CurvePoint(Record):
    """One PPO iteration of one training. Means are over this member's steps of the iteration."""

    env_steps: Count
    fitness: FiniteFloat | None
    """Mean over the full episodes that ended in this iteration; None without any."""
    episode_length: FiniteFloat | None
    """Mean length of those episodes in control steps."""
    episodes: Count
    reward: FiniteFloat
    """Mean total reward per step."""
    components: ComponentNumbers
    """Mean per step."""
    component_magnitudes: ComponentNumbers
    """Mean absolute value per step."""
    component_deviations: ComponentNumbers
    """Standard deviation over the steps."""
    terminations: dict[ShortName, Count]
    """Ended episodes by cause; `"time_out"` is a truncation."""
    action_saturation: FiniteFloat | None = None
    """Share of action entries at their bound (|a| > 0.99); None for discrete actions."""
    action_std: FiniteFloat | None = None
    """None for discrete actions."""
    learning_rate: FiniteFloat | None = None
    """None, as all that follow, for a command's own trainer."""
    kl: FiniteFloat | None = None
    entropy: FiniteFloat | None = None
    value_loss: FiniteFloat | None = None
    policy_loss: FiniteFloat | None = None
    explained_variance: FiniteFloat | None = None


class CheckpointRecord(Record):
    """A checkpoint of a training: its policy is kept, and the last curve points are summed up."""

    env_steps: Count
    fitness: FiniteFloat | None
    """Mean over the full episodes since the last checkpoint."""
    episode_length: FiniteFloat | None
    episodes: Count
    reward: FiniteFloat
    components: ComponentNumbers


class LearnedReward(Record):
    """Knowledge of a latent reward at the end of its training."""

    episodes: Count
    """Episodes that it was fitted to."""
    explained: FiniteFloat
    """Share of the variance of their fitness that the sums of its steps explain."""
    guess: FiniteFloat
    """Slope of what a step is paid over the designer's total; the other slopes come on top."""
    slopes: ComponentNumbers
    """Slopes over the factors. All are at factors of 0, in deviations of an episode's fitness for a
    factor that has its size of the first iteration in every step of the longest episode."""


class LearnedBlend(Record):
    """Knowledge of a blended reward at the end of its training."""

    weight: FiniteFloat
    """Mean weight of the designer's total in the last iteration, 0 to 1."""
    regions: tuple[FiniteFloat, ...] = Field(max_length=MOST_COMPONENTS)
    """Weights of the regions."""


class Outcome(Record):
    """Result of one training."""

    env_steps: Count
    seconds: FiniteFloat
    """Wall time from the first step to the last."""
    checkpoints: tuple[CheckpointRecord, ...]
    best_checkpoint: int
    """Index of the kept policy's checkpoint: the best without noise among the highest curves."""
    training_fitness: FiniteFloat | None
    """Fitness of the best checkpoint, with exploration noise."""
    learned: LearnedReward | LearnedBlend | LearnedLabels | None = None
    """None for a reward that is paid as it is written."""
    fitness: FiniteFloat | None = None
    """Mean episode fitness of the kept policy without noise, from a process that never loaded the
    reward."""
    fitness_std: FiniteFloat | None = None
    """Standard deviation over those episodes."""
    success_rate: FiniteFloat | None = None
    evaluation_episodes: int = 0
    ended_by: dict[ShortName, Count] = Field(default_factory=dict)
    """Number of those episodes by cause of termination or `"time_out"`."""


class EpisodeSummary(Record):
    """One evaluated episode."""

    fitness: float
    length: Count
    """Control steps."""
    ended_by: ShortName
    """A termination cause or `"time_out"`."""


class Evaluation(Record):
    """A policy's score, from a process that never loaded its reward."""

    episodes: tuple[EpisodeSummary, ...]
    seed: int

    def fitness_mean(self) -> float:
        """Mean fitness over the episodes."""
        return sum(episode.fitness for episode in self.episodes) / len(self.episodes)


# ── the analyzer ──────────────────────────────────────────────────────────────────────────────────


class ComponentSummary(Record):
    """A component of the reward over a training, for the reward reflection (Ma et al. 2023)."""

    name: str
    values: tuple[float, ...]
    """Mean per step at each checkpoint."""
    maximum: float
    mean: float
    minimum: float
    share: float
    """Part of the sum of all components' mean magnitudes, 0 to 1, over the last third of the
    training."""


class DiagnosisFinding(Record):
    """One finding of the analyzer."""

    code: Literal[
        "never-paid",
        "standstill",
        "dead-component",
        "dominant-component",
        "reward-hacking",
        "early-termination",
        "saturated-actions",
        "not-a-number",
        "no-learning",
        "still-improving",
        "collapsed",
        "lost-without-noise",
        "exploration-lost",
        "learned-reward",
    ]
    message: str
    advice: str
    component: str | None = None
    cause: str | None = None
    value: float | None = None


class Diagnosis(Record):
    """The analyzer's reading of an outcome."""

    fitness: float | None
    fitness_values: tuple[float | None, ...]
    episode_length_values: tuple[float | None, ...]
    components: tuple[ComponentSummary, ...]
    findings: tuple[DiagnosisFinding, ...]
    visited: dict[str, tuple[float, float]] = Field(default_factory=dict)
    """Lowest and highest value of each number that the fitness reads, over the recorded
    episodes."""
    endings: str = ""
    """Sentence on the evaluated episodes and their causes of termination; empty without any."""
    early_ends: Count = 0
    """Evaluated episodes that a failure ended."""
    text: str
    """The reward reflection, for the designer."""
    tables: str = ""
    """Tables of the worst and the best episode, for those who cannot ask for more."""

    @property
    def whole(self) -> str:
        return "\n\n".join(filter(None, (self.text, self.tables)))


# ── the archive ───────────────────────────────────────────────────────────────────────────────────


class Stage(StrEnum):
    """Stage that an attempt has reached."""

    PROPOSED = "proposed"
    REJECTED = "rejected"
    """The critic found an error: the attempt's reason."""
    ACCEPTED = "accepted"
    """The critic found none; the training waits or runs."""
    FAILED = "failed"
    TRAINED = "trained"


class RungScore(Record):
    """Score of a training's policy at a rung."""

    env_steps: int
    fitness: float | None
    """Mean episode fitness without noise, from a process that never loaded the reward; None where
    the policy could not be scored."""
    evaluation: Evaluation | None = None
    """None without a fitness, and in lists."""


class Repeat(Record):
    """One more training of an attempt's reward from another seed."""

    iteration: int
    """Generation after which it was made."""
    seed: int
    outcome: Outcome | None
    failure: str = ""
    retries: int = 0


class Strength(Record):
    """Place of an attempt by comparisons, where these rank the attempts in place of the fitness."""

    mean: float
    deviation: float
    by: Literal["choices", "model"]
    """A person's choices, or a model's comparisons."""


class Attempt(Record):
    """A proposal with its verdict, outcome and diagnosis, as far as it got."""

    id: str
    """`<iteration>-<sample>`, with `-r<n>` for the n-th revision after a rejection, and `+d<n>` for
    the n-th distribution of parameters."""
    iteration: int
    sample: int
    revision: int
    proposal: Proposal
    stage: Stage
    reason: str = ""
    """Reason for its stage."""
    seed: int
    retries: int = 0
    """Restarts of its training after a worker died."""
    verdict: Verdict | None = None
    outcome: Outcome | None = None
    diagnosis: Diagnosis | None = None
    """Diagnosis of its first training."""
    analysis: str = ""
    """Text of the trajectory analyst, a language model; empty where none was asked."""
    rungs: tuple[RungScore, ...] = ()
    """Rungs that its first training has reached."""
    repeats: tuple[Repeat, ...] = ()
    created: str = ""
    """ISO 8601, UTC."""
    strength: Strength | None = Field(default=None, exclude=True)
    """Set where strengths rank; it follows from the feedback and is not recorded."""
    range_scores: tuple[RangeScore, ...] = ()
    """Scores of its policies over the whole safe ranges, with `--randomise`."""
    randomisation: Randomisation | None = None
    """Search over distributions of parameters for its reward; None without one."""

    @property
    def is_ranked(self) -> bool:
        """False for a reward under other parameters: it is no parent and no finalist, and neither
        strategies nor comparisons of rewards know of it."""
        return self.proposal.operator is not Operator.RANDOMISE

    @property
    def outcomes(self) -> dict[int, Outcome | None]:
        """Outcomes of its trainings in the search, by seed; None for one that failed or has not
        ended."""
        return {self.seed: self.outcome, **{each.seed: each.outcome for each in self.repeats}}

    @property
    def fitness_per_seed(self) -> tuple[float, ...]:
        """Fitness of its trainings that did not fail, in order."""
        outcomes = (self.outcome, *(repeat.outcome for repeat in self.repeats))
        return tuple(
            outcome.fitness
            for outcome in outcomes
            if outcome is not None and outcome.fitness is not None
        )

    @property
    def fitness(self) -> float | None:
        """Mean over its trainings in the search; None without a finished one."""
        values = self.fitness_per_seed
        return sum(values) / len(values) if values else None

    @property
    def merit(self) -> float | None:
        """The number that ranks it: its strength if it has one, else its fitness."""
        return self.fitness if self.strength is None else self.strength.mean


class Score(Record):
    """Final score of a reward, trained from several fresh seeds under one budget."""

    name: str
    """`"human"`, `"sparse"` or an attempt id."""
    seeds: tuple[int, ...]
    fitness: tuple[float | None, ...]
    """Per seed; None where that training failed."""
    mean: float | None
    std: float | None
    """Sample standard deviation over the seeds (n − 1)."""
    human_normalized: float | None = None
    """HNS = (mean − sparse) / |human − sparse| (Ma et al. 2023); None where human and sparse cannot
    be distinguished."""
    cached: bool = False
    """True for a baseline that an earlier run trained."""
    card: bool = False
    """True for a baseline from a card."""

    @property
    def origin(self) -> str:
        """`from the cache`, `from the card`; empty for what the run trained."""
        return ("from the card" if self.card else "from the cache") if self.cached else ""


BASELINES = ("human", "sparse")
"""Names of the scores and final trainings of baselines."""
GIVEN_DESIGNER = "given"
"""Name of the designer in a run on a person's own reward."""


class FinalTraining(Record):
    """One training of a finalist or a baseline from one of the final seeds."""

    name: str
    seed: int
    outcome: Outcome | None
    failure: str = ""
    cached: bool = False
    """True for one that the run did not make."""
    card: bool = False
    """True for one of a card, which keeps no policy."""
    retries: int = 0


class RunStatus(StrEnum):
    RUNNING = "running"
    STOPPED = "stopped"
    FINISHED = "finished"
    FAILED = "failed"


class ToolCall(Record):
    """A model's call of a tool."""

    id: str
    name: str
    arguments: str
    """A JSON object, as the model wrote it."""


class Message(Record):
    """One request to an LLM and its reply."""

    role: str
    """`eureka_agent.llm.interface.Role`."""
    attempt: str = ""
    model: str
    request: str
    """The conversation as Markdown."""
    reply: str
    reasoning: str = ""
    """The reasoning, where the server sent it apart from the reply."""
    calls: tuple[ToolCall, ...] = ()
    """Tools that the reply calls."""
    finish_reason: str = "stop"
    """`eureka_agent.llm.interface.FinishReason`."""
    cost: Cost = Field(default_factory=Cost)
    created: str = ""
    """Time at which the reply was stored, ISO 8601, UTC."""
