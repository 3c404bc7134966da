"""Checks of `eureka envs --check` on a task and on what its class declares: fitness and rewards, a
brief training, misspelt names, baselines, settings, speed, GPUs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import mujoco
import torch
from torch import Tensor

from eureka_agent.errors import RewardLoadError
from eureka_agent.rewards import baseline
from eureka_agent.settings import TrainingSettings, parse_settings
from eureka_agent.simulation.class_checks import misspelling, misspelt
from eureka_agent.simulation.loading import RewardKind, describe
from eureka_agent.simulation.mujoco_task import MujocoTask, read_mjcf, substeps
from eureka_agent.simulation.rollouts import as_choices, copied_variables
from eureka_agent.simulation.vec_task import Transition, VecTask
from eureka_agent.task import PREVIOUS_PREFIX
from eureka_agent.training.conformance import checks
from eureka_agent.training.environment_faults import OBSERVATIONS, check_rows
from eureka_agent.training.reward import RewardContractError, RewardFunction, load_reward
from eureka_agent.training.trainer import MemberFailed, MemberProgress, Trainer
from eureka_agent.wording import rough_duration

_KINDS: tuple[RewardKind, ...] = ("human", "sparse")
_EPISODES = 2
_LEAST_ITERATIONS = 2
_MOST_ENV_STEPS = 50_000


# ── fitness and rewards ───────────────────────────────────────────────────────────────────────────


def fitness(subject: checks.Subject) -> None:
    """The fitness takes known variables and constants and gives one finite number per row."""
    function = subject.fitness()
    for step in subject.sound_steps():
        checks.check_tensor("fitness", function(step.values), (checks.ROWS,), None)


def human_reward(subject: checks.Subject) -> None:
    """The human reward loads and runs."""
    _checked_reward(subject, "human")


def sparse_reward(subject: checks.Subject) -> None:
    """The sparse reward loads, runs and is the fitness of each step."""
    reward = _checked_reward(subject, "sparse")
    function = subject.fitness()
    for index, step in enumerate(subject.sound_steps() if reward else ()):
        assert reward is not None
        total, expected = reward(step.values)[0], function(step.values)
        if torch.allclose(total, expected, rtol=1e-4, atol=1e-6):
            continue
        worst = int((total - expected).abs().argmax())
        raise checks.Nonconforming(
            f"the sparse reward is the fitness: {float(expected[worst]):.6g} in step {index}, row"
            f" {worst}",
            f"{float(total[worst]):.6g}",
            "return the fitness's own value as the total",
        )


def _reward(subject: checks.Subject, kind: RewardKind) -> RewardFunction | None:
    """A baseline, loaded as a training does; None where there is none."""
    source = subject.loaded.reward_source(subject.task, kind)
    return None if source is None else load_reward(baseline(source), subject.cls)


def _checked_reward(subject: checks.Subject, kind: RewardKind) -> RewardFunction | None:
    try:
        reward = _reward(subject, kind)
        for step in subject.sound_steps() if reward else ():
            assert reward is not None
            total, components = reward(step.values)
            for name, value in {"total": total, **components}.items():
                checks.check_tensor(f"{kind} reward's {name}", value, (checks.ROWS,), None)
    except (RewardLoadError, RewardContractError) as error:
        file = Path(getattr(subject.task, f"{kind}_reward")).name
        hint = error.hint or "correct this line"
        expected = f"the {kind} reward loads and runs"
        raise checks.Nonconforming(expected, f"{file}, {error.message}", hint) from None
    return reward


# ── whole episodes and a brief training ───────────────────────────────────────────────────────────


@dataclass
class Seen:
    steps: int = 0
    ended: int = 0
    """Episodes that ended before the time limit."""
    trained_fitness: float = 0.0
    """Largest magnitude of an episode's fitness in a brief training."""
    low: dict[str, Tensor] = field(default_factory=dict)
    high: dict[str, Tensor] = field(default_factory=dict)
    """Smallest and largest value of each observation's column, and of the fitness."""

    def add(self, transition: Transition) -> None:
        self.steps += len(transition.terminated)
        self.ended += int(transition.terminated.sum())
        self.add_values(OBSERVATIONS, transition.observations)

    def add_values(self, name: str, values: Tensor) -> None:
        """Add values, whose first dimension is the batch."""
        low, high = values.amin(dim=0), values.amax(dim=0)
        self.low[name] = torch.minimum(self.low.get(name, low), low)
        self.high[name] = torch.maximum(self.high.get(name, high), high)

    def watch(self, environment: VecTask) -> VecTask:
        """The environment, each of whose steps is added."""
        advance = environment.advance

        def noted(actions: Tensor) -> Transition:
            transition = advance(actions)
            self.add(transition)
            return transition

        environment.advance = noted  # type: ignore[method-assign]
        return environment


def long_episodes(subject: checks.Subject, seen: Seen, seconds: float) -> None:
    """Nothing turns NaN, infinite or huge in whole episodes of random actions."""
    environment, function = seen.watch(subject.make()), subject.fitness()
    generator = torch.Generator().manual_seed(8)
    deadline = time.monotonic() + seconds
    before = copied_variables(environment)
    size = checks.ROWS, environment.num_actions

    def when(row: int) -> str:
        return f"in step {int(environment.progress_buf[row])} of an episode of random actions"

    for _ in range(_EPISODES * environment.max_episode_length):
        if time.monotonic() >= deadline:
            break
        actions = as_choices(environment, torch.randn(size, generator=generator))
        transition = environment.advance(actions)
        values = {name: value.clone() for name, value in transition.variables.items()}
        states = {**values, OBSERVATIONS: transition.observations}
        check_rows(type(environment), states, when, environment.actions)
        previous = {PREVIOUS_PREFIX + name: each for name, each in before.items()}
        seen.add_values("fitness", function({**values, **previous}))
        environment.reset_done()
        before = copied_variables(environment)
    environment.close()


def brief_training(subject: checks.Subject, seen: Seen, seconds: float) -> Iterator[checks.Note]:
    """A short training runs, and no state that it reaches is NaN, infinite or huge."""
    budget = subject.task.training
    values = {**budget.overrides, "num_envs": budget.num_envs, "env_steps": budget.env_steps}
    settings = parse_settings(TrainingSettings, values, "the task's training budget")
    wanted = budget.env_steps
    settings = settings.model_copy(update={"env_steps": min(_MOST_ENV_STEPS, wanted)})
    found = {kind: _reward(subject, kind) for kind in _KINDS}
    reward = found["human"] or found["sparse"]
    if reward is None:
        raise checks.NotApplicable
    kind = "human reward" if found["human"] else "sparse reward"
    made: list[VecTask] = []

    def make(rows: int) -> VecTask:
        made.append(seen.watch(subject.make(rows)))
        return made[-1]

    trainer = Trainer(make, subject.task, settings, 1, iteration_limit=None)
    trainer.submit("check", reward, 0)
    began = measured = time.monotonic()
    iterations, env_steps, first_steps = 0, 0, 0
    while trainer.busy and (iterations < _LEAST_ITERATIONS or time.monotonic() - began < seconds):
        for event in trainer.iterate():
            if isinstance(event, MemberProgress):
                env_steps = event.point.env_steps
                reached = abs(event.point.fitness or 0.0)
                seen.trained_fitness = max(seen.trained_fitness, reached)
            elif isinstance(event, MemberFailed):
                expected = f"a training on the {kind} that goes on"
                actual = f"it failed: {event.reason}"
                raise checks.Nonconforming(expected, actual, "correct the reward, or what it reads")
        iterations += 1
        if iterations == 1 and trainer.busy:  # it warms up, unless it is the only one
            measured, first_steps = time.monotonic(), env_steps
    for environment in made:
        environment.close()
    rate = (env_steps - first_steps) / max(time.monotonic() - measured, 1e-9)
    share = trainer.timers["physics"] / max(sum(trainer.timers.values()), 1e-9)
    two_digits = round(rate, -max(0, len(str(int(rate))) - 2))
    yield checks.Note(f"{env_steps:,} env steps, on the {kind}")
    yield checks.Note(
        f"{two_digits:,.0f} env steps/s of one training on one core, of which the environment takes"
        f" {share:.0%}: the task's {wanted:,} env steps take about {rough_duration(wanted / rate)}"
    )


def moving_columns(subject: checks.Subject, seen: Seen) -> Iterator[checks.Remark]:
    """Every observation's column takes more than one value."""
    if OBSERVATIONS in seen.low:
        low, high = seen.low[OBSERVATIONS], seen.high[OBSERVATIONS]
        if still := (low == high).nonzero().flatten().tolist():
            values = ", ".join(f"{float(low[column]):.4g}" for column in still[:8])
            steps = f"in {seen.steps:,} steps of random and trained actions"
            yield checks.Remark(
                "columns that change",
                f"{checks.columns_in_words(still)} always {values} {steps}",
                "a column that never changes teaches nothing: see whether it is computed",
            )


def fitness_tells_apart(subject: checks.Subject, seen: Seen) -> Iterator[checks.Remark]:
    """The fitness is not the same in all steps."""
    if "fitness" not in seen.low or bool(seen.low["fitness"] != seen.high["fitness"]):
        return
    value = float(seen.low["fitness"])
    where = f"in all {seen.steps:,} steps of random and trained actions"
    counts_steps = value and seen.ended and subject.task.fitness_reduction == "sum"
    if counts_steps or (not value and seen.trained_fitness):  # else a policy did reach it
        return
    yield checks.Remark(
        "a fitness that differs between policies",
        f"{value:.4g} {where}",
        "compute it from its arguments; where no chance policy ever earns any of it, see whether it"
        " can be reached, or give it a slope",
    )


_BASELINES: dict[RewardKind, str] = {
    "human": "reports compare with no human reward, and the search with the sparse one alone",
    "sparse": "reports cannot say what training on the metric itself gives",
}
"""What lacks without each."""
_MANY_SUBSTEPS = 10
_TOO_MANY_SUBSTEPS = 40
_MUCH_MEMORY = 4_000_000
"""Bytes."""


def hooks(subject: checks.Subject) -> None:
    """No method or class attribute has almost the name of one that a subclass may define."""
    for place, name, meant in misspelt(subject.cls):
        expected = f"{meant}, as the base class calls it"
        actual = f"{place}{misspelling(subject.cls, name, meant)}"
        hint = f"rename it to {meant!r}, or to something less alike"
        raise checks.Nonconforming(expected, actual, hint)


def baselines(subject: checks.Subject) -> Iterator[checks.Remark]:
    """There is a human and a sparse reward to compare with."""
    for kind, lost in _BASELINES.items() if subject.loaded.folder is not None else ():
        if subject.loaded.reward_source(subject.task, kind) is None:
            hint = f"write {getattr(subject.task, f'{kind}_reward')}, with a compute_reward in it"
            yield checks.Remark(f"a {kind} reward", f"there is none: {lost}", hint)


def settings(subject: checks.Subject) -> None:
    """the task's settings can be read"""
    describe(subject.loaded, subject.name)


def episode(subject: checks.Subject) -> Iterator[checks.Remark | checks.Note]:
    """The length of an episode and the time of a step are declared, not guessed."""
    cls = subject.cls
    if not cls.episode_source:
        raise checks.NotApplicable
    text = f"{cls.max_episode_length} steps of {cls.control_dt:g} s: {cls.episode_source}"
    if "guessed" not in cls.episode_source:
        yield checks.Note(text)
        return
    yield checks.Remark(
        "max_episode_steps or a TimeLimit, and dt or metadata['render_fps'], tell of both",
        text,
        "set MAX_EPISODE_LENGTH (steps) and CONTROL_DT (seconds) beside make in env.py, or"
        " max_episode_length and control_dt in the class",
    )


def mujoco_speed(subject: checks.Subject) -> Iterator[checks.Note | checks.Remark]:
    """The model's integrator, timestep and memory allow a fast training."""
    cls = subject.cls
    if not issubclass(cls, MujocoTask):
        raise checks.NotApplicable
    environment = subject.make(1)
    assert isinstance(environment, MujocoTask)
    model = environment.model
    integrator = mujoco.mjtIntegrator(model.opt.integrator).name.removeprefix("mjINT_")
    count = substeps(cls, model)
    text = f"integrator {integrator}, timestep {model.opt.timestep:g} s, {count} physics steps in a"
    text += f" control step of {cls.control_dt:g} s"
    if integrator == "RK4":
        text += '; integrator="implicitfast" costs a quarter, and is stable at twice the timestep'
    if count > _TOO_MANY_SUBSTEPS:
        yield checks.Remark(
            f"at most {_TOO_MANY_SUBSTEPS} physics steps in a control step",
            text,
            f'timestep="{cls.control_dt / _MANY_SUBSTEPS:.3g}" takes {_MANY_SUBSTEPS} physics'
            f" steps, a training {count / _MANY_SUBSTEPS:.0f} times fewer",
        )
    else:
        yield checks.Note(text)
    if model.narena >= _MUCH_MEMORY and int(read_mjcf(environment).memory) < 0:
        yield checks.Remark(
            "a <size memory> in the MJCF",
            f"there is none: MuJoCo reserves {model.narena / 1e6:.0f} MB for each simulation, of"
            " which a worker has hundreds",
            'write <size memory="256K"/>, with room for the contacts that you expect',
        )


# ── on a GPU ──────────────────────────────────────────────────────────────────────────────────────


def no_values(subject: checks.Subject) -> None:
    """A step and its resets read no value of a tensor: torch's `meta` device has none."""
    # a simulator of MJCF needs a real device
    if "cuda" not in subject.cls.device_types or issubclass(subject.cls, MujocoTask):
        raise checks.NotApplicable
    environment = subject.loaded.make(subject.task, checks.ROWS, "meta")
    actions = torch.zeros(checks.ROWS, environment.num_actions, device="meta")
    for _ in range(2):
        transition = environment.advance(actions)
        found = {"observations": transition.observations, **transition.variables}
        for name, value in found.items():
            if value.device.type != "meta":
                expected = f"{name} are on the environment's device"
                actual = f"on {value.device}"
                raise checks.Nonconforming(expected, actual, "make tensors with device=self.device")
        environment.reset_done()
