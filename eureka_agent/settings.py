"""Definition of all settings, for flags, `--config` files and the run's record."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from eureka_agent.amounts import EXAMPLES, whole_number
from eureka_agent.errors import SettingsError, close_match
from eureka_agent.invocation import FIRST_SEARCH, command
from eureka_agent.label_records import MOST_LABELS, LabelMethod
from eureka_agent.rewards import Design, RewardKind

DAY_SECONDS = 86_400.0
SNAPSHOT_SECONDS = 20.0
"""Default of `snapshot_interval`."""
MOST_SEED = 2**63 - 1
"""Largest whole number that SQLite, YAML and a random generator all take."""
MOST_ENV_STEPS = 10**15
MOST_ITERATIONS = 1_000_000
MOST_PROPOSALS = 1000
"""Proposals of one generation, which are all in memory."""
MOST_EPISODES = 100_000
"""Episodes whose scores fit into one message of a worker."""
MOST_DISTRIBUTIONS = 16
"""Distributions of an environment's parameters that one search tries."""
MOST_SENTENCE_CHARACTERS = 2000
OFFLINE_DRAFTS = 32
"""Default of `drafts` for the offline designer: about a second of one core for a proposal."""
_SHOWN_CHARACTERS = 60
"""Characters of a faulty value or line that an error shows."""


def scalar_type(annotation: Any) -> Any:
    """Scalar type of an annotation: `int` for `int | None` and for `tuple[int, ...]`."""
    arguments = get_args(annotation)
    if annotation is None or not arguments or get_origin(annotation) is Literal:
        return annotation
    return scalar_type(next(part for part in arguments if part is not type(None)))


def read_amount(value: Any) -> Any:
    """Whole number of a text such as `200k`; another value as it is, also plain digits, which a
    file has in quotes or after a zero. Raises a pydantic error for another text."""
    if not isinstance(value, str) or value.isdecimal():
        return value
    try:
        return whole_number(value)
    except ValueError:
        raise PydanticCustomError("amount", "expected a whole number") from None


Amount = Annotated[int, BeforeValidator(read_amount)]
"""Whole number in a file of settings."""


class TrainingSettings(BaseModel):
    """PPO's settings, equal for every candidate of a run. Defaults follow Isaac Gym's locomotion
    tasks, but for the epochs (benchmarks/LOG.md)."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    env_steps: int = Field(200_000, gt=0, le=MOST_ENV_STEPS)
    """Environment steps of one training."""
    num_envs: int = Field(16, gt=0, le=1_000_000)
    """Parallel environments of one training."""
    horizon: int = Field(32, gt=0, le=1_000_000)
    """Control steps between two updates."""
    hidden_sizes: tuple[Annotated[int, Field(gt=0, le=100_000)], ...] = Field(
        (64, 64), min_length=1, max_length=100
    )
    """Hidden layers of the policy and of the value network."""
    activation: Literal["elu", "tanh"] = "tanh"
    """Activation of the hidden layers."""
    learning_rate: float = Field(1e-3, gt=0, le=10)
    """Adam's first learning rate."""
    desired_kl: float = Field(0.01, ge=0, le=100)
    """KL per update that the adaptive learning rate aims at; 0 keeps it fixed."""
    epochs: int = Field(3, gt=0, le=1000)
    """Passes over an iteration's samples."""
    minibatches: int = Field(4, gt=0, le=1_000_000)
    """Minibatches of one pass."""
    discount: float = Field(0.99, gt=0, le=1)
    """Discount factor."""
    gae_lambda: float = Field(0.95, ge=0, le=1)
    """Lambda of generalised advantage estimation."""
    clip: float = Field(0.2, gt=0, le=100)
    """PPO's clip range of the probability ratio."""
    entropy_coefficient: float = Field(0.0, ge=0, le=1e6)
    """Weight of the entropy bonus."""
    value_coefficient: float = Field(1.0, ge=0, le=1e6)
    """Weight of the value loss."""
    clip_value_loss: bool = True
    """Clip the value function's change like the policy's."""
    max_gradient_norm: float = Field(1.0, gt=0, le=1e9)
    """Gradient norm is clipped to this, per member."""
    initial_action_std: float = Field(1.0, gt=0, le=1000)
    """Standard deviation of the first policy's actions; choices have none."""
    checkpoints: int = Field(10, ge=1, le=1000)
    """Points of a training at which the policy may be kept and the curves are summed up."""
    kept_policies: int = Field(3, ge=1, le=1000)
    """Checkpoints with the best curve, of which the one that scores best is a training's result."""

    @field_validator("*", mode="before")
    @classmethod
    def _check_type(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse values that pydantic converts: `yes` to 1, "no" to False, True to 1."""
        kind = scalar_type(cls.model_fields[str(info.field_name)].annotation)
        several = isinstance(value, list | tuple)
        if kind is int:
            value = type(value)(map(read_amount, value)) if several else read_amount(value)
        members = value if several else (value,)
        if kind is bool and not isinstance(value, bool | None):
            raise PydanticCustomError("bool_type", "expected true or false")
        if kind in (int, float, Decimal):
            for each in members:
                if isinstance(each, bool) or (isinstance(each, str) and kind is not Decimal):
                    raise PydanticCustomError(f"{kind.__name__.lower()}_type", "expected a number")
        return value

    @property
    def updates(self) -> int:
        """PPO iterations of one training, as many as its env steps need; `iterations` are a
        search's generations."""
        return math.ceil(self.env_steps / (self.horizon * self.num_envs))

    @property
    def steps_of_a_training(self) -> int:
        """Env steps of one training: those asked for, rounded up to whole iterations."""
        return self.updates * self.num_envs * self.horizon


OUTSIDE: dict[str, JsonValue] = {"reach": "outside"}
"""Mark of a setting that chooses an address, a wall, a program, or a path to code. It is signed,
and the question before another person's run names it. Each setting that is more than a number or a
switch has this mark or the other one."""
WITHIN: dict[str, JsonValue] = {"reach": "within"}
"""Mark of a setting that changes nothing but the search itself."""


def checked_cluster(cluster: str) -> str:
    """The value of `--cluster`. Raises ValueError for another one, also for the `ray://` of Ray's
    client, which unpickles what a server sends."""
    found = re.fullmatch(
        r"off|ray|ray:auto|ray:(?:[\w.-]+|\[[\da-fA-F:.]+\]):(\d{1,5})", cluster, re.ASCII
    )
    if not found or not 0 < int(found[1] or 1) < 1 << 16:
        raise ValueError(
            "expected off, ray or ray:<address>, a host and its port such as ray:10.0.0.1:6379"
        )
    return cluster


class SearchSettings(TrainingSettings):
    """Settings of a search: names of flags, of keys in a `--config` file and in a run's
    `settings.yaml`. The docstrings are the flags' help."""

    env: str = Field("cartpole", json_schema_extra=OUTSIDE)
    """Environment: a built-in name, a folder, or gymnasium:<id>."""
    task: str | None = Field(None, json_schema_extra=WITHIN)
    """Task of the environment; default: its only or first one."""
    sentence: str | None = Field(None, json_schema_extra=WITHIN)
    """The task in plain words; default: the task's own."""
    model: tuple[str, ...] = Field(("offline",), min_length=1, json_schema_extra=OUTSIDE)
    """Designer: offline, <provider>/<model> such as openai/gpt-5.5 or anthropic/claude-sonnet-5,
    command:<program> that reads a prompt and writes the reply, or replay:<run>. Given several
    times, the models take turns."""
    base_url: str | None = Field(None, json_schema_extra=OUTSIDE)
    """Address of a server that speaks like the first model's provider."""
    api: Literal["auto", "chat", "responses"] = Field("auto", json_schema_extra=WITHIN)
    """Interface of openai/ models: auto is Responses at OpenAI itself, Chat Completions at a
    --base-url."""
    temperature: float | None = Field(None, ge=0, le=2)
    """Temperature of the models; default: their own."""
    reply_tokens: int | None = Field(None, gt=0, le=100_000_000)
    """Bound on a reply, the model's reasoning included; default: the model's own, 16000 for
    anthropic/."""
    request_timeout: float = Field(600.0, gt=0, le=DAY_SECONDS)
    """Seconds to wait for a model's reply."""
    outage: str = Field("10m", json_schema_extra=WITHIN)
    """Longest wait for a model whose server is out, such as 2h: its requests wait, all else goes
    on. Off or 0: no wait, the search ends its generations after the retries."""
    concurrency: int = Field(8, gt=0, le=1000)
    """Requests to models at a time."""
    llm_batch: bool = False
    """Ask openai/ and anthropic/ models in their providers' batches: at half the price, with
    replies within 24 hours, most of them within one."""
    llm_batch_wait: float = Field(15.0, gt=0, le=DAY_SECONDS)
    """Seconds without a further request after which a batch is sent. The first look for its results
    comes after as long, the next ones after more, up to twenty times as long."""
    reviewer: str = Field("auto", json_schema_extra=OUTSIDE)
    """Model that reviews rewards against the task: off, <provider>/<model> for every reward, or
    auto for the first --model, where the critic doubts."""
    analyst: str = Field("auto", json_schema_extra=OUTSIDE)
    """Model that reads parents' trainings and episodes: off, <provider>/<model>, or auto for the
    first --model; auto is off where designers have tools, unless the analyst sees."""
    analyst_sees: bool = False
    """Show the analyst pictures of the best and the worst episode, if its model takes them."""
    designer_tools: Literal["auto", "written", "off"] = Field("auto", json_schema_extra=WITHIN)
    """Tools with which models look at episodes and try drafts before they propose. auto: called by
    the model's interface, or written where a server refuses that, and none with --llm-batch;
    written: called by code blocks; off: none."""
    judge: str = Field("auto", json_schema_extra=OUTSIDE)
    """Model that compares pictures for --fitness judged: <provider>/<model>, or auto for the first
    --model."""
    blind: bool = False
    """The designer is not told what the human reward scores."""
    max_cost: Decimal | None = Field(None, gt=0, le=1_000_000_000)
    """US dollars that may be spent on models, such as 5.00."""
    max_tokens: int | None = Field(None, gt=0, le=10**15)
    """Tokens that may be spent on models, prompts and replies."""
    max_time: str | None = Field(None, json_schema_extra=WITHIN)
    """Wall time of the search, such as 8h: nothing new begins that would not end in it."""
    price: tuple[str, ...] = Field((), json_schema_extra=WITHIN)
    """Price of a model that is not in the table, as <provider>/<model>=<dollars for a million
    tokens of prompts>,<of replies>."""
    strategy: Literal["auto", "greedy", "best-of-n", "islands", "map-elites"] = Field(
        "auto", json_schema_extra=WITHIN
    )
    """Strategy that chooses parents and operators; auto: best-of-n where the offline designer's
    drafts are compared, until a person says something, and else greedy."""
    rewards: RewardKind = Field("code", json_schema_extra=WITHIN)
    """Pay of trainings. Code: the rewards as they are written; latent: what their terms have told
    of the fitness of whole episodes, which a network learns meanwhile (LaRe); blend: the fitness
    itself, step by step, and as much of the rewards as pulls the same way (BARFI); labels: the
    rewards, and what the first --model says of the states that trainings reach, in plain words,
    while they go on (ONI)."""
    labels: LabelMethod = Field("classification", json_schema_extra=WITHIN)
    """Reward that --rewards labels makes of a model's labels: retrieval, the label of the state's
    own words; classification, a logistic regression over observations; ranking, one on comparisons
    of two states."""
    label_requests: int = Field(50, gt=0, le=MOST_LABELS // 20)
    """Requests for labels of a whole search, each for 20 states at most."""
    design: Design = Field("reward", json_schema_extra=WITHIN)
    """Subject of a model's design: the reward; the observation of the policy, beside the
    environment's own reward; or both, of the same variables (LIMEN)."""
    fitness: Literal["task", "written", "chosen", "judged"] = Field(
        "task", json_schema_extra=WITHIN
    )
    """Metric that counts: task, the task's own; written, one that the model first writes for the
    sentence; chosen, none: the search ends after a generation, and your choices in `eureka refine`
    rank what it trained; judged, none: a model that sees compares pictures of what was trained."""
    budget: str | None = Field(None, json_schema_extra=WITHIN)
    """Limit of the whole search: wall time (90s, 10m, 8h, 1h30m) or env steps (500k, 5M, 2G); 10m
    is ten minutes, 10M ten million env steps. It sets iterations and samples and, if it is small,
    fewer baselines, final seeds, finalists and env steps."""
    iterations: int = Field(2, ge=0, le=MOST_ITERATIONS)
    """Generations of the search; 0: the human and the sparse reward alone are trained."""
    samples: int = Field(8, gt=0, le=MOST_PROPOSALS)
    """Proposals of one generation."""
    drafts: int | None = Field(None, gt=0, le=64)
    """Drafts of each proposal, once trainings have left episodes: the one is trained that is
    expected to improve most, by the credit that rewards give to their steps. Default: 32 of the
    offline designer, 1 of a model, where each is a request."""
    revisions: int = Field(3, ge=0, le=3)
    """Times a rejected proposal goes back to the designer."""
    retry_rounds: int = Field(2, ge=0, le=100)
    """Times a generation in which all proposals failed is tried again."""
    seed: int = Field(0, ge=0, le=MOST_SEED)
    """Seed of the search; equal seeds give equal attempts."""
    novelty: bool = True
    """Send back rewards that this run has tried before."""
    rungs: tuple[Annotated[float, Field(gt=0, lt=1)], ...] = Field((0.7,), max_length=100)
    """Parts of a training after which its policy is scored."""
    scoring_episodes: int = Field(16, gt=0, le=MOST_EPISODES)
    """Episodes that score a policy at a rung, and each of the policies kept at a training's end."""
    schedule: Literal["auto", "generations", "steady"] = Field("auto", json_schema_extra=WITHIN)
    """Generations: design the next generation when this one has ended; steady: design the next
    proposal as soon as there is room for it; auto: steady where a model designs."""
    confirm: int = Field(4, ge=0, le=MOST_PROPOSALS)
    """Best attempts so far that are trained from further seeds before a generation is made from
    them, and at the end where there are no finalists; 0: none."""
    confirm_seeds: int = Field(1, gt=0, le=1000)
    """Further seeds of each of them."""
    finalists: int = Field(3, ge=0, le=MOST_PROPOSALS)
    """Best attempts trained again with fresh seeds, as long as they may win; 0: none, and no
    baselines."""
    baselines: bool = True
    """Compare with the human and the sparse reward: by the task's card where it holds for this
    search, else by training them too."""
    train_baselines: bool = False
    """Train the human and the sparse reward here, also where a card has their scores."""
    final_seeds: int = Field(5, gt=0, le=1000)
    """Fresh seeds of the winner, and at most of every other finalist."""
    baseline_seeds: int | None = Field(None, gt=0, le=1000)
    """Seeds of the human and the sparse reward; default: as many as --final-seeds."""
    randomise: int = Field(0, ge=0, le=MOST_DISTRIBUTIONS)
    """Distributions of the environment's parameters under which the best reward is trained at the
    end, from the final seeds, for a policy that works over their whole safe ranges; 0: none."""
    evaluation_episodes: int = Field(32, gt=0, le=MOST_EPISODES)
    """Episodes that score a policy."""
    video: bool = True
    """Make a video of the best policy at the end."""
    log: tuple[Literal["wandb", "trackio", "mlflow", "tensorboard"], ...] = Field(
        (), json_schema_extra=WITHIN
    )
    """Send each training's curve to wandb, trackio or mlflow too, offline into the run's folder
    unless their own variables say another place; files of tensorboard are always there."""
    slots: int = Field(16, gt=0, le=1000)
    """Trainings side by side in one worker."""
    device: str = Field("auto", json_schema_extra=WITHIN)
    """Device of trainings: auto, cpu, cuda (all GPUs, a worker on each) or cuda:<number>, several
    with commas between them."""
    workers: int = Field(0, ge=0, le=1000)
    """Training workers; 0: one per CPU core, or per GPU."""
    cluster: Annotated[str, AfterValidator(checked_cluster)] = Field(
        "off", json_schema_extra=OUTSIDE
    )
    """Train on a Ray cluster: ray (the one that this machine is part of) or ray:<address>."""
    sandbox: Literal["auto", "docker", "bubblewrap", "process"] = Field(
        "auto", json_schema_extra=OUTSIDE
    )
    """Wall around generated code; auto: the strongest one that is there."""
    dry_run_timeout: float = Field(10.0, gt=0, le=DAY_SECONDS)
    """Seconds that a reward may take in the critic's dry run."""
    training_timeout: float = Field(120.0, gt=0, le=DAY_SECONDS)
    """Seconds without a sign of life after which a training worker is killed."""
    snapshot_interval: float = Field(SNAPSHOT_SECONDS, gt=0, le=DAY_SECONDS)
    """Seconds between two saved states of a training, from which it can go on."""

    @property
    def drafts_of_each(self) -> int:
        """Number of drafts of each proposal; 1 where no fitness says what to expect of them."""
        if self.fitness in UNMEASURED:
            return 1
        return self.drafts or (OFFLINE_DRAFTS if self.model == ("offline",) else 1)

    @property
    def trains_baselines(self) -> bool:
        """True where baselines are compared with, and so trained where no card has them."""
        return self.baselines and self.finalists > 0

    @property
    def seeds_of_baselines(self) -> int:
        """Number of seeds of each baseline, the first of the final seeds."""
        return self.baseline_seeds or self.final_seeds

    @property
    def seeds_of_randomised(self) -> int:
        """Number of seeds under each distribution of parameters: the final ones, or that of the
        search without finals."""
        return self.final_seeds if self.finalists else 1

    @field_validator("budget", "outage", mode="before")
    @classmethod
    def _number_as_text(cls, value: Any) -> Any:
        """Text of a plain number in YAML."""
        return str(value) if isinstance(value, int) else value

    @field_validator("model", "price", "log", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        """List of a single value, which YAML allows without one."""
        return (value,) if isinstance(value, str) else value

    @field_validator("model")
    @classmethod
    def _check_models(cls, models: tuple[str, ...]) -> tuple[str, ...]:
        alone = [model for model in models if model == "offline" or model.startswith("replay:")]
        if alone and len(models) > 1:
            raise ValueError(f"{alone[0]} cannot be combined with other models")
        if len(set(models)) < len(models):
            raise ValueError("a model is named twice")
        return models

    @field_validator("device")
    @classmethod
    def _check_device(cls, device: str) -> str:
        if not re.fullmatch(r"auto|cpu|cuda|cuda:\d{1,4}(,cuda:\d{1,4})*", device):
            raise ValueError("expected auto, cpu, cuda, or one or several like cuda:0,cuda:1")
        return device

    @field_validator("*")
    @classmethod
    def _check_encoding(cls, value: Any) -> Any:
        """Refuse lone surrogates, a shell's bytes that are not UTF-8: no file can hold them."""
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, str) and not each.isascii() and re.search("[\ud800-\udfff]", each):
                raise ValueError("it is not encoded as UTF-8")
        return value

    @field_validator("base_url")
    @classmethod
    def _check_base_url(cls, address: str | None) -> str | None:
        """Refuse an address with a password, since settings are stored."""
        if address is not None and re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^/?#]*@", address):
            raise ValueError(
                "an address must not hold a password or a key; export the provider's key variable"
                " instead"
            )
        return address

    @field_validator("sentence")
    @classmethod
    def _check_sentence(cls, sentence: str | None) -> str | None:
        """Stripped sentence."""
        if sentence is None:
            return None
        if not sentence.strip():
            raise ValueError("expected the task in plain words, such as 'balance the pole'")
        if len(sentence) > MOST_SENTENCE_CHARACTERS:
            most = f"expected at most {MOST_SENTENCE_CHARACTERS:,}"
            raise ValueError(f"it has {len(sentence):,} characters, {most}")
        return sentence.strip()

    @field_validator("env")
    @classmethod
    def _check_env(cls, env: str) -> str:
        if not env.strip():
            raise ValueError(f"no environment is named; `{command('envs')}` lists them")
        return env


REACHING = frozenset(
    name
    for name, field in SearchSettings.model_fields.items()
    if field.json_schema_extra == OUTSIDE
)
"""Settings with the mark `OUTSIDE`."""

_BESIDE_TRAINING = (
    "env task seed rewards final_seeds baselines train_baselines baseline_seeds randomise"
    " evaluation_episodes device workers sandbox dry_run_timeout training_timeout"
)
OF_ONE_REWARD = (*_BESIDE_TRAINING.split(), *TrainingSettings.model_fields)
"""Settings of a run that trains one given reward."""

FREE_SETTINGS = frozenset(
    (
        *("api", "base_url", "price", "request_timeout", "outage", "concurrency"),
        *("llm_batch", "llm_batch_wait", "max_cost", "max_tokens", "max_time", "budget"),
        *("iterations", "retry_rounds", "novelty"),
        *("finalists", "final_seeds", "baselines", "baseline_seeds", "randomise", "video", "log"),
        *("sandbox", "device", "workers", "cluster", "slots"),
        *("dry_run_timeout", "training_timeout", "snapshot_interval"),
    )
)
"""Settings that may change when a run is resumed. They change neither a training, nor its score,
nor the designs of a generation."""


def strategy_name(settings: SearchSettings, *, refined: bool = False) -> str:
    """Strategy of a search. Of the offline designer's drafts the choice among fresh ones leads to a
    good reward with fewer env steps than one among changes of the best (`drafts` in
    docs/strategies.md). `refined`: a person has said something, and something is there to change.
    """
    if settings.strategy != "auto":
        return settings.strategy
    drafted = settings.model == ("offline",) and settings.drafts_of_each > 1
    return "best-of-n" if drafted and not refined else "greedy"


def schedule_of(settings: SearchSettings) -> Literal["generations", "steady"]:
    """Schedule of a search: generations where one fits into a worker's slots, since a proposal is
    worth more when all results before it are known. A replay needs generations, since its replies
    belong to prompts, and so does a model that judges what a generation has trained."""
    if settings.schedule != "auto":
        return settings.schedule
    if settings.fitness == "judged" or settings.samples <= settings.slots:
        return "generations"
    by_model = any(name != "offline" and not name.startswith("replay:") for name in settings.model)
    return "steady" if by_model else "generations"


UNMEASURED = ("chosen", "judged")
"""Values of the setting `fitness` with which no metric is calculated."""


def judge_of(settings: SearchSettings) -> str:
    """Name of the model that judges attempts; empty where none does."""
    if settings.fitness != "judged":
        return ""
    return settings.model[0] if settings.judge == "auto" else settings.judge


THE_FLAGS = "the flags"
"""Origin of settings that were typed as flags."""

SettingsT = TypeVar("SettingsT", bound=BaseModel)


def parse_settings(
    model: type[SettingsT],
    values: Mapping[str, Any],
    origin: str,
    help_command: str = "search --help",
) -> SettingsT:
    """Validated settings. `origin`: their place, for an error; `help_command`: lists them.

    Raises SettingsError for an unknown key or a bad value, with a suggestion.
    """
    for key in values:
        if key not in model.model_fields:
            close = close_match(str(key), model.model_fields)
            listing = f"`{command(help_command)}` lists the settings"
            raise SettingsError(
                f"unknown setting {key!r} in {origin}",
                f"did you mean {close!r}?" if close else listing,
            )
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        close = _close_choice(first)
        hint = f"see `{command(help_command)}` for what it takes"
        if first["loc"] == ("sentence",) and origin == THE_FLAGS:
            hint = f"such as: {command(FIRST_SEARCH)}"
        elif close:
            hint = f"did you mean {close!r}?"
        raise SettingsError(_problem(first, origin), hint) from None


def _problem(error: ErrorDetails, origin: str) -> str:
    """A validation error as a sentence."""
    name, *inside = (str(part) for part in error["loc"])
    if origin != THE_FLAGS:
        key = f"setting {name!r} in {origin}"
    else:
        key = "SENTENCE" if name == "sentence" else "--" + name.replace("_", "-")
    return f"{key} {'holds' if inside else 'is'} {value_fault(error)}"


def value_fault(error: ErrorDetails) -> str:
    """The wrong value and what was expected: `3, expected text`."""
    cause = error.get("ctx", {}).get("error")
    expected = f": {cause}" if isinstance(cause, ValueError) else f", expected {_expected(error)}"
    given = error["input"]
    is_list = isinstance(given, list | tuple) and len(given) > 0
    shown = ", ".join(map(repr, given)) if is_list else "empty" if given is None else repr(given)
    found = re.sub(r"//[^/\s]*@", "//…@", shown)  # an address with a password in it
    if len(found) > _SHOWN_CHARACTERS:
        found = f"{found[: _SHOWN_CHARACTERS - 1]}…"
    return f"{found}{expected}"


def validation_fault(error: ValidationError) -> str:
    """First fault of a record from a file, in words: `"'task' is 3, expected text"`."""
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"]))
    match first["type"]:
        case "missing":
            return f"{place!r} is missing"
        case "json_invalid":
            return "it is not JSON"
        case "extra_forbidden":
            return f"{place!r} is none of its names"
    return f"{place!r} is {value_fault(first)}"


def _plain_number(number: float | Decimal) -> str:
    """A bound as a person types it: `86400` for 86400.0."""
    return str(int(number)) if number == int(number) else str(number)


_TYPES = {
    "int": "a whole number",
    "amount": f"a whole number {EXAMPLES}",
    "float": "a number",
    "decimal": "a number",
    "finite": "a finite number",
    "string": "text",
    "bool": "true or false",
    "tuple": "a list",
    "dict": "names with values",
}
"""Expected type by the first word of a validation error's type."""


def _expected(error: ErrorDetails) -> str:
    """Expected value in words."""
    kind, bound = error["type"], error.get("ctx", {})
    match kind:
        case "greater_than":
            return f"more than {bound['gt']}"
        case "greater_than_equal":
            return f"{bound['ge']} or more"
        case "less_than":
            return f"less than {bound['lt']}"
        case "less_than_equal":
            return f"at most {_plain_number(bound['le'])}"
        case "too_short":
            least = bound["min_length"]
            return "at least one value" if least == 1 else f"at least {least} values"
        case "too_long":
            return f"at most {bound['max_length']} values"
        case "literal_error":
            return str(bound["expected"]).replace("'", "")
    return _TYPES.get(kind.partition("_")[0], "another value")


def _close_choice(error: ErrorDetails) -> str | None:
    """Choice that resembles a mistyped one."""
    if error["type"] != "literal_error":
        return None
    return close_match(str(error["input"]), re.findall(r"'([^']*)'", str(error["ctx"]["expected"])))


def check_training(settings: TrainingSettings) -> None:
    """Check a complete set of settings: a training has at least one update, and every minibatch a
    sample. Raises SettingsError."""
    if settings.horizon > settings.env_steps:
        most = f"expected at most the {settings.env_steps} env steps of a training"
        hint = "take a shorter --horizon or more --env-steps"
        raise SettingsError(f"horizon is {settings.horizon}, {most}", hint)
    samples = settings.horizon * settings.num_envs
    if settings.minibatches > samples:
        raise SettingsError(
            f"minibatches is {settings.minibatches}, but an update has only horizon x num_envs ="
            f" {samples} samples",
            "take fewer minibatches, or a longer horizon, or more environments",
        )


def training_part(settings: SearchSettings) -> TrainingSettings:
    """Fields that a training depends on."""
    return TrainingSettings(
        **{name: getattr(settings, name) for name in TrainingSettings.model_fields}
    )
