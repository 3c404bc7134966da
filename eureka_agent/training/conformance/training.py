"""Checks of `eureka envs --check` on a task and on what its class declares: fitness and rewards, a
brief training, settings, GPUs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import torch

from eureka_agent.errors import RewardLoadError
from eureka_agent.rewards import baseline
from eureka_agent.settings import TrainingSettings, parse_settings
from eureka_agent.simulation.loading import RewardKind, describe
from eureka_agent.simulation.mujoco_task import MujocoTask
from eureka_agent.training.conformance import checks
from eureka_agent.training.reward import RewardContractError, RewardFunction, load_reward
from eureka_agent.training.trainer import MemberFailed, MemberProgress, Trainer
from eureka_agent.wording import rough_duration

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


# ── a brief training ──────────────────────────────────────────────────────────────────────────────


def brief_training(subject: checks.Subject, seconds: float) -> Iterator[checks.Note]:
    """A short training runs, and no state that it reaches is NaN, infinite or huge."""
    budget = subject.task.training
    values = {**budget.overrides, "num_envs": budget.num_envs, "env_steps": budget.env_steps}
    settings = parse_settings(TrainingSettings, values, "the task's training budget")
    wanted = budget.env_steps
    settings = settings.model_copy(update={"env_steps": min(_MOST_ENV_STEPS, wanted)})
    human = _reward(subject, "human")
    reward = human or _reward(subject, "sparse")
    if reward is None:
        raise checks.NotApplicable
    kind = "human reward" if human else "sparse reward"
    trainer = Trainer(subject.make, subject.task, settings, 1, iteration_limit=None)
    trainer.submit("check", reward, 0)
    began = measured = time.monotonic()
    iterations, env_steps, first_steps = 0, 0, 0
    while trainer.busy and (iterations < _LEAST_ITERATIONS or time.monotonic() - began < seconds):
        for event in trainer.iterate():
            if isinstance(event, MemberProgress):
                env_steps = event.point.env_steps
                reached = abs(event.point.fitness or 0.0)
                subject.trained_fitness = max(subject.trained_fitness, reached)
            elif isinstance(event, MemberFailed):
                expected = f"a training on the {kind} that goes on"
                actual = f"it failed: {event.reason}"
                raise checks.Nonconforming(expected, actual, "correct the reward, or what it reads")
        iterations += 1
        if iterations == 1 and trainer.busy:  # it warms up, unless it is the only one
            measured, first_steps = time.monotonic(), env_steps
    rate = (env_steps - first_steps) / max(time.monotonic() - measured, 1e-9)
    share = trainer.timers["physics"] / max(sum(trainer.timers.values()), 1e-9)
    two_digits = round(rate, -max(0, len(str(int(rate))) - 2))
    yield checks.Note(f"{env_steps:,} env steps, on the {kind}")
    yield checks.Note(
        f"{two_digits:,.0f} env steps/s of one training on one core, of which the environment takes"
        f" {share:.0%}: the task's {wanted:,} env steps take about {rough_duration(wanted / rate)}"
    )


def fitness_tells_apart(subject: checks.Subject) -> Iterator[checks.Remark]:
    """The fitness is not the same in all steps."""
    function, steps = subject.fitness(), subject.sound_steps()
    values = {each for step in steps for each in function(step.values).tolist()}
    if len(values) != 1:
        return
    (value,) = values
    where = f"in all {checks.ROWS * len(steps):,} steps of random actions"
    ends = any(bool(step.terminated.any()) for step in steps)
    counts_steps = value and ends and subject.task.fitness_reduction == "sum"
    if counts_steps or (not value and subject.trained_fitness):  # else a policy did reach it
        return
    yield checks.Remark(
        "a fitness that differs between policies",
        f"{value:.4g} {where}",
        "compute it from its arguments; where no chance policy ever earns any of it, see whether it"
        " can be reached, or give it a slope",
    )


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
