"""What passes between the parts, and what the archive stores: proposals, verdicts, outcomes,
diagnoses, attempts.

Everything here is plain data (pydantic models), so a record means the same in the driver, in a
worker and on disk.
"""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    FiniteFloat,
    field_validator,
    model_validator,
)

from eureka_agent.base_record import Record
from eureka_agent.component_names import MOST_COMPONENTS, component_fault
from eureka_agent.rewards import Baseline, CodeReward, RewardSpecification
from eureka_agent.task import FitnessReduction, QuaternionOrder

MOST_MEASURED = 1000
"""Entries of what a worker measured, by any name."""
MOST_FILES = 200
"""Number of files of an environment's folder whose hashes are kept one by one."""
MOST_CHOICES = 4096
"""Choices of all numbers of an action together."""
MOST_COLUMNS = 12
"""Of a variable with more columns one range is given for all."""
MOST_CHARACTERS = 400
"""Of one sentence among them."""


# ── the task as the driver and the designer see it ────────────────────────────────────────────────


class VariableSpec(Record):
    """`eureka_agent.task.Variable` as data."""

    name: str
    shape: tuple[int, ...]
    unit: str
    frame: str
    doc: str
    range: tuple[FiniteFloat, FiniteFloat] | None = None
    private: bool = False


class ConstantSpec(Record):
    """`eureka_agent.task.Constant` as data."""

    name: str
    value: FiniteFloat
    unit: str = "1"
    doc: str = ""


Count = Annotated[int, Field(ge=0, lt=1 << 63)]
"""A number of things, such that a float and the archive can hold it."""


class ChannelSpec(Record):
    """`eureka_agent.task.Channel` as data."""

    name: str
    entries: tuple[str, ...] = ()
    unit: str = "1"
    frame: str = "-"
    doc: str = ""
    scale: FiniteFloat = 1.0
    range: tuple[FiniteFloat, FiniteFloat] | None = None


class UntrainedScore(Record):
    """Fitness of a policy that nobody trained, over some episodes."""

    mean: FiniteFloat
    std: FiniteFloat
    """Standard deviation over the episodes (n − 1)."""
    length: FiniteFloat
    """Mean length of an episode in control steps."""
    episodes: Count


ShortSentence = Annotated[str, Field(max_length=MOST_CHARACTERS)]
ColumnRange = tuple[FiniteFloat, FiniteFloat, FiniteFloat]


class Measurements(Record):
    """Measurements that a worker made on the environment before the first request to a model; the
    run's prompts hold them."""

    starts: dict[str, Annotated[tuple[ColumnRange, ...], Field(max_length=MOST_COLUMNS)]] = Field(
        default_factory=dict, max_length=MOST_MEASURED
    )
    """Lowest and highest value and smallest magnitude right after a reset, by variable: of every
    column, or of all together where they are many."""
    resets: Count = 0
    """Resets that `starts` was taken from."""
    termination_conditions: dict[ShortSentence, ShortSentence] = Field(
        default_factory=dict, max_length=MOST_MEASURED
    )
    """In words with the number, by cause: for this task, where the class says more than one task
    needs."""
    masses_and_sizes: tuple[ShortSentence, ...] = Field((), max_length=MOST_MEASURED)
    zero_actions: UntrainedScore | None = None
    """All actions 0; None where it was not measured."""
    random_actions: UntrainedScore | None = None
    """Every entry of every action uniform in [-1, 1]."""


class TaskDescription(Record):
    """All that anyone outside the worker knows of an environment and its task. Never holds the
    fitness's code."""

    environment: str
    """What `--env` was: a built-in name, a folder, or `gymnasium:<id>`."""
    task: str
    """Task name within the environment."""
    sentence: str
    """The task file's sentence (a search may have its own)."""
    doc: str
    """The environment class's docstring, first paragraph."""
    details: str = ""
    """The rest of it: what a designer is told besides."""
    fitness_doc: str
    fitness_unit: str
    fitness_reduction: str
    success_fitness: FiniteFloat | None
    variables: tuple[VariableSpec, ...]
    num_observations: int
    num_actions: int
    action_choices: Annotated[tuple[Count, ...], Field(max_length=MOST_CHOICES)] = ()
    """Numbers of choices, one for each number of the action, which is the choice's index; empty
    where actions are continuous, in [-1, 1]."""
    control_dt: FiniteFloat
    """Seconds between two control steps."""
    max_episode_length: int
    """Control steps after which an episode is truncated."""
    episode_source: str = ""
    """Origin of these two, where they were read from a simulator or guessed."""
    termination_causes: tuple[str, ...]
    termination_conditions: dict[str, str] = Field(default_factory=dict)
    """As the environment's class declares them, by cause."""
    success_causes: tuple[str, ...] = ()
    """The `termination_causes` that are successes."""
    env_steps: int
    """The task's own; a run's settings may say otherwise, and so with `num_envs`."""
    num_envs: int
    training_overrides: dict[str, FiniteFloat | int | bool | str | list[int]]
    human_reward: Baseline | None
    """The expert's; None where the environment has none."""
    sparse_reward: Baseline | None
    fingerprint: str
    """SHA-256 over the environment folder's files that count for the task: what a cached baseline
    depends on. With a written fitness, `+` and SHA-256 of that follow."""
    remarks: tuple[ShortSentence, ...] = Field(default=(), max_length=MOST_FILES)
    """Likely mistakes that its source alone shows, such as a misspelt hook: told at a search's
    start."""
    files: dict[ShortSentence, str] = Field(default_factory=dict, max_length=MOST_FILES)
    """A short hash of each file in the fingerprint, by its name in the folder; empty where there
    are more."""
    restorable: bool = False
    """Whether a training can pause, and be taken up again after an interruption."""
    fitness_author: str = ""
    """The language model that wrote the fitness; empty where it is the task's own metric."""
    constants: tuple[ConstantSpec, ...] = ()
    """Numbers of the environment that a reward may name as arguments."""
    quaternion_order: QuaternionOrder = "wxyz"
    """Order in the environment's variables, and in the helper functions that a reward may call."""
    observation_channels: tuple[ChannelSpec, ...] = ()
    """The observation's numbers in their order; empty where the environment does not name them."""
    action_channels: tuple[ChannelSpec, ...] = ()
    """The same of the action."""
    measured: Measurements | None = None
    """None where no model is told of it."""

    @property
    def endings(self) -> dict[str, str]:
        """Meaning of each termination cause in this task; empty where nobody says."""
        known = (
            self.termination_conditions
            if self.measured is None
            else self.measured.termination_conditions
        )
        return {cause: known.get(cause, "") for cause in self.termination_causes}

    @property
    def failure_causes(self) -> tuple[str, ...]:
        """The termination causes that are no successes."""
        return tuple(cause for cause in self.termination_causes if cause not in self.success_causes)

    @property
    def baselines(self) -> dict[str, RewardSpecification]:
        """The rewards to compare with that the environment has, by name."""
        rewards = {"human": self.human_reward, "sparse": self.sparse_reward}
        return {name: reward for name, reward in rewards.items() if reward is not None}

    @property
    def environment_fingerprint(self) -> str:
        """The fingerprint's part that a written fitness does not change."""
        return self.fingerprint.partition("+")[0]

    def public_variables(self) -> tuple[VariableSpec, ...]:
        """The variables that a proposed reward may read."""
        return tuple(variable for variable in self.variables if not variable.private)


class WrittenFitness(Record):
    """A fitness that a language model wrote for a sentence which has none, in the form of a reward:
    its total is the fitness of a step."""

    sentence: str
    """The task in the searcher's words, which it measures."""
    source: str
    """Python source with `compute_reward`; it reads public variables only."""
    doc: str
    """The episode's fitness in words."""
    unit: str = "1"
    reduction: FitnessReduction
    success_fitness: float | None = None
    author: str
    """Name of the model."""
    reasoning: str = ""

    @property
    def reward(self) -> RewardSpecification:
        """The reward that it is written as."""
        return CodeReward(source=self.source, author=self.author)


# ── the critic ────────────────────────────────────────────────────────────────────────────────────


class Finding(Record):
    """One remark of the critic's, like a linter's."""

    code: str
    """`P…` parse, `M…` mended, `A…` allow-list, `C…` contract, `D…` dry run, `N…` novelty, `G…`
    trajectory gate, `R…` review, `F…` a written fitness's words."""
    severity: Literal["error", "warning", "note"]
    message: str
    line: int | None = None
    column: int | None = None
    hint: str = ""


class Verdict(Record):
    """The critic's findings on one reward. Accepted when none of them is an error."""

    findings: tuple[Finding, ...] = ()
    steps_run: tuple[str, ...] = ()
    """Names of the critic's steps that ran, in order; the first one with an error is the last."""
    seconds: float = 0.0
    repaired: str | None = None
    """The source with what has one sure repair mended, which is then judged and trained; None where
    there was nothing to mend."""

    @property
    def accepted(self) -> bool:
        return not any(finding.severity == "error" for finding in self.findings)


# ── the designer ──────────────────────────────────────────────────────────────────────────────────


class Operator(StrEnum):
    """What a designer is asked to do."""

    FRESH = "fresh"
    IMPROVE = "improve"
    MUTATE_STRUCTURE = "mutate_structure"
    RETUNE_WEIGHTS = "retune_weights"
    CROSSOVER = "crossover"
    DIFFERENT = "different"
    REASON_OVER_PATH = "reason_over_path"
    """To continue a line of attempts, each made from the one before (RF-Agent 2025): the parent,
    then its ancestors."""
    TUNE_WEIGHTS = "tune_weights"
    """Nobody: a numeric optimiser chooses the parent's named constants, which costs no tokens."""


MOST_TOKENS = 100_000_000
"""Most tokens of one request, far beyond any model's: what a server says that it counted beyond
that is no count."""
_MOST_MONEY = Decimal(10**12)


def known_tokens(count: object) -> int | None:
    """A number of tokens as a server tells it; None, unknown, for what can be none."""
    return count if type(count) is int and 0 <= count <= MOST_TOKENS else None


def _known_money(money: Decimal | None) -> Decimal | None:
    return money if money is not None and 0 <= money <= _MOST_MONEY else None


Money = Annotated[Decimal | None, AfterValidator(_known_money)]
"""US dollars; None where they are unknown."""


Tokens = Annotated[int | None, BeforeValidator(known_tokens)]


class Cost(Record):
    """Cost of a proposal. Unknown is None, never 0. Archives of earlier versions hold whatever a
    server told."""

    money: Money = None
    """US dollars."""
    prompt_tokens: Tokens = None
    """All of the prompt's, those from a cache and those written to it included."""
    completion_tokens: Tokens = None
    """Those of the model's reasoning included."""
    cached_tokens: Tokens = None
    """Part of the prompt's that the provider had in its cache."""
    cache_write_tokens: Tokens = None
    """Part of the prompt's that the provider put into its cache, where that has a price of its
    own."""
    seconds: float = 0.0


class Proposal(Record):
    """A reward with its designer's reasoning and where it came from."""

    reward: RewardSpecification
    reasoning: str
    operator: Operator
    parents: tuple[str, ...] = ()
    """Attempt ids."""
    prompt: str = ""
    reply: str = ""
    finish_reason: str = "stop"
    """`eureka_agent.llm.interface.FinishReason`: whether the reply is whole."""
    cost: Cost = Cost()

    @field_validator("reward")
    @classmethod
    def _is_not_trusted(cls, reward: RewardSpecification) -> RewardSpecification:
        if reward.trusted:
            raise ValueError("a proposed reward may not read private variables")
        return reward

    @model_validator(mode="before")
    @classmethod
    def _of_earlier_versions(cls, fields: Any) -> Any:
        """Archives of earlier versions hold the source and its designer beside the rest."""
        if not isinstance(fields, dict) or "source" not in fields:
            return fields
        fields = dict(fields)
        reward = {"source": fields.pop("source"), "author": fields.pop("designer", "offline")}
        return {"reward": reward, **fields}


# ── training ──────────────────────────────────────────────────────────────────────────────────────


def _checked_name(name: str) -> str:
    if fault := component_fault(name):
        raise ValueError(fault[0])
    return name


# of a worker, which is not believed: what it sends is shown to people and to models
ShortName = Annotated[str, AfterValidator(_checked_name)]
ComponentNumbers = Annotated[dict[ShortName, FiniteFloat], Field(max_length=MOST_COMPONENTS)]


class CurvePoint(Record):
    """One PPO iteration of one training. Means are over the iteration's steps of that member
    alone."""

    env_steps: Count
    fitness: FiniteFloat | None
    """Mean fitness of the full episodes that ended in this iteration; None where none did."""
    episode_length: FiniteFloat | None
    """Mean length in control steps of those episodes."""
    episodes: Count
    reward: FiniteFloat
    """Mean total reward per step."""
    components: ComponentNumbers
    """Mean of every component per step."""
    component_magnitudes: ComponentNumbers
    """Mean absolute value of every component per step."""
    component_deviations: ComponentNumbers
    """Standard deviation of every component over the iteration's steps."""
    terminations: dict[ShortName, Count]
    """Episodes ended by cause; `"time_out"` is a truncation."""
    action_saturation: FiniteFloat | None
    """Share of action entries at their bound (|a| > 0.99); None, as the next one is, where actions
    are choices."""
    action_std: FiniteFloat | None
    learning_rate: FiniteFloat
    kl: FiniteFloat
    entropy: FiniteFloat
    value_loss: FiniteFloat
    policy_loss: FiniteFloat
    explained_variance: FiniteFloat


class CheckpointRecord(Record):
    """One of about ten points of a training at which the policy is kept and the curves are summed
    up."""

    env_steps: Count
    fitness: FiniteFloat | None
    """Mean fitness of the full episodes since the checkpoint before."""
    episode_length: FiniteFloat | None
    episodes: Count
    reward: FiniteFloat
    components: ComponentNumbers


class Outcome(Record):
    """What one training gave."""

    env_steps: Count
    seconds: FiniteFloat
    """Wall seconds from the slot's first step to its last."""
    checkpoints: tuple[CheckpointRecord, ...]
    best_checkpoint: int
    """Index of the checkpoint whose policy was kept: of the few with the highest training fitness
    the one that scored best without noise."""
    training_fitness: FiniteFloat | None
    """That checkpoint's fitness, with exploring actions."""
    fitness: FiniteFloat | None = None
    """Mean episode fitness of the kept policy acting without noise, from a process that never
    loaded the reward."""
    fitness_std: FiniteFloat | None = None
    """Standard deviation over those episodes."""
    success_rate: FiniteFloat | None = None
    evaluation_episodes: int = 0
    ended_by: dict[ShortName, Count] = Field(default_factory=dict)
    """Number of those episodes by what ended them: a termination cause or `"time_out"`. Empty in
    archives of earlier versions."""


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
    """A component of the reward over a training, as Eureka's reward reflection shows it."""

    name: str
    values: tuple[float, ...]
    """Mean per step at each checkpoint."""
    maximum: float
    mean: float
    minimum: float
    share: float
    """Its part of the sum of all components' mean magnitudes, 0 to 1, over the last third of the
    training."""


class DiagnosisFinding(Record):
    """Something that the analyzer read off the data."""

    code: Literal[
        "dead-component",
        "dominant-component",
        "reward-hacking",
        "early-termination",
        "saturated-actions",
        "not-a-number",
        "no-learning",
        "still-improving",
        "collapsed",
        "exploration-lost",
    ]
    message: str
    """One sentence with the numbers."""
    advice: str
    component: str | None = None
    cause: str | None = None
    """Name of a termination cause, where the finding has one."""
    value: float | None = None
    """The number that the finding rests on."""


class Diagnosis(Record):
    """The analyzer's reading of an outcome."""

    fitness: float | None
    fitness_values: tuple[float | None, ...]
    episode_length_values: tuple[float | None, ...]
    components: tuple[ComponentSummary, ...]
    findings: tuple[DiagnosisFinding, ...]
    endings: str = ""
    """Number and length of the evaluated episodes, and how many ended early, by what; empty where
    none was evaluated."""
    text: str
    """The reward reflection: what the designer is told."""


# ── the archive ───────────────────────────────────────────────────────────────────────────────────


class Stage(StrEnum):
    """How far an attempt got."""

    PROPOSED = "proposed"
    REJECTED = "rejected"
    """By the critic; the reason is its first error."""
    ACCEPTED = "accepted"
    """By the critic; waiting for or in training."""
    FAILED = "failed"
    """In training."""
    STOPPED = "stopped"
    """In training, clearly behind the others of its generation."""
    TRAINED = "trained"


class RungScore(Record):
    """How good a training's policy was when it came to a rung."""

    env_steps: int
    """Where the rung is."""
    fitness: float | None
    """Mean over episodes of the policy of that moment, acting without noise, in a process that
    never loaded the reward; None where it could not be scored."""
    evaluation: Evaluation | None = None
    """The episodes that this is the mean of; None in archives of earlier versions, too."""


class Repeat(Record):
    """An attempt's reward trained once more from another seed, to tell a good reward from a lucky
    training."""

    iteration: int
    """The generation after which it was made."""
    seed: int
    outcome: Outcome | None
    failure: str = ""
    """Why there is no outcome."""
    retries: int = 0


class Attempt(Record):
    """A proposal with whatever of verdict, outcome and diagnosis it got to."""

    id: str
    """`<iteration>-<sample>`, with `-r<n>` for the n-th revision after a rejection."""
    iteration: int
    sample: int
    revision: int
    proposal: Proposal
    stage: Stage
    reason: str = ""
    """Why it ended where it did."""
    seed: int
    """Training seed."""
    retries: int = 0
    """Times its training was started again because the worker died."""
    verdict: Verdict | None = None
    outcome: Outcome | None = None
    diagnosis: Diagnosis | None = None
    """Of its first training."""
    analysis: str = ""
    """What the trajectory analyst, a language model, read from its training; empty where none was
    asked."""
    rungs: tuple[RungScore, ...] = ()
    """Those that its first training has come to."""
    repeats: tuple[Repeat, ...] = ()
    created: str = ""
    """ISO 8601, UTC."""

    @property
    def fitness_per_seed(self) -> tuple[float, ...]:
        """Fitness of its trainings that did not fail, the first one first."""
        outcomes = (self.outcome, *(repeat.outcome for repeat in self.repeats))
        return tuple(
            outcome.fitness
            for outcome in outcomes
            if outcome is not None and outcome.fitness is not None
        )

    @property
    def fitness(self) -> float | None:
        """Mean over its trainings in the search; None where none came to an end."""
        values = self.fitness_per_seed
        return sum(values) / len(values) if values else None


class Score(Record):
    """A reward's honest score: trained again from several seeds under one budget, each policy
    evaluated apart."""

    name: str
    """`"human"`, `"sparse"` or an attempt id."""
    seeds: tuple[int, ...]
    fitness: tuple[float | None, ...]
    """Per seed; None where that training failed."""
    mean: float | None
    std: float | None
    """Sample standard deviation over the seeds (n − 1)."""
    human_normalized: float | None = None
    """HNS = (mean − sparse) / |human − sparse| (Ma et al. 2023); None where human and sparse are
    not told apart."""
    cached: bool = False
    """True: taken from an earlier run that trained the same reward, task, settings and seeds."""


BASELINES = ("human", "sparse")
"""Names of the scores and final trainings that are not an attempt's."""
GIVEN_DESIGNER = "given"
"""Name of the designer in a run on a reward that a person wrote."""


class FinalTraining(Record):
    """One training of a finalist or a baseline from one of the final seeds."""

    name: str
    """`"human"`, `"sparse"` or an attempt id."""
    seed: int
    outcome: Outcome | None
    failure: str = ""
    cached: bool = False
    retries: int = 0


class RunStatus(StrEnum):
    RUNNING = "running"
    STOPPED = "stopped"
    FINISHED = "finished"
    FAILED = "failed"


class Message(Record):
    """One request to an LLM and its reply."""

    role: str
    """Who asked: `eureka_agent.llm.interface.Role`."""
    attempt: str = ""
    """Id of the attempt that it was asked for; empty where it was for none."""
    model: str
    request: str
    """The conversation as Markdown."""
    reply: str
    finish_reason: str = "stop"
    """`eureka_agent.llm.interface.FinishReason`: whether the reply is whole."""
    cost: Cost = Field(default_factory=Cost)
    created: str = ""
    """ISO 8601, UTC: when the reply was stored."""
