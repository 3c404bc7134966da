"""Checks of `eureka envs --check` that train briefly: reached states, fitness and speed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

import mujoco
from torch import Tensor

from eureka_agent.conformance.checks import (
    Nonconforming,
    NotApplicable,
    Note,
    Remark,
    Subject,
)
from eureka_agent.conformance.fitness import constant_fitness
from eureka_agent.conformance.states import Seen
from eureka_agent.rewards import baseline
from eureka_agent.settings import TrainingSettings, parse_settings
from eureka_agent.simulation.mujoco_task import MujocoTask, read_mjcf, substeps
from eureka_agent.simulation.vec_task import Transition, VecTask
from eureka_agent.training.fitness import FitnessFunction
from eureka_agent.training.reward import Result, Reward, load_reward
from eureka_agent.training.trainer import MemberFailed, MemberProgress, Trainer
from eureka_agent.wording import rough_duration

_JOB = "check"
_LEAST_ITERATIONS = 2
_MOST_ENV_STEPS = 50_000
_MANY_SUBSTEPS = 10
_TOO_MANY_SUBSTEPS = 40
_MUCH_MEMORY = 4_000_000
"""Bytes."""


class _FitnessAsReward:
    """A task's own fitness as a reward, where there is no baseline."""

    def __init__(self, fitness: FitnessFunction) -> None:
        self._fitness = fitness
        self.arguments = fitness.arguments

    def begin(self, values: Mapping[str, Tensor], timeout_s: float) -> Callable[[], Result]:
        def call() -> Result:
            total = self._fitness(values)
            return total, {"fitness": total}

        return call


def brief_training(subject: Subject, seen: Seen, seconds: float) -> Iterator[Note]:
    """A short training runs, and no state that it reaches is NaN, infinite or huge."""
    settings, wanted = _settings(subject)
    kind, reward = _reward(subject)
    environments: list[VecTask] = []

    def make(rows: int) -> VecTask:
        environment = subject.make(rows)
        _note_steps(environment, seen)
        environments.append(environment)
        return environment

    trainer = Trainer(make, subject.task, settings, 1, iteration_limit=None)
    trainer.submit(_JOB, reward, 0)
    began = measured = time.monotonic()
    iterations, env_steps, first_steps = 0, 0, 0
    failure = ""
    try:
        while trainer.busy and (
            iterations < _LEAST_ITERATIONS or time.monotonic() - began < seconds
        ):
            for event in trainer.iterate():
                if isinstance(event, MemberProgress):
                    env_steps = event.point.env_steps
                    fitness = abs(event.point.fitness or 0.0)
                    seen.trained_fitness = max(seen.trained_fitness, fitness)
                elif isinstance(event, MemberFailed):
                    failure = event.reason
            iterations += 1
            if iterations == 1 and trainer.busy:  # it warms up, unless it is the only one
                measured, first_steps = time.monotonic(), env_steps
    finally:
        for environment in environments:
            environment.close()
    if failure:
        raise Nonconforming(
            f"a training on the {kind} that goes on",
            f"it failed: {failure}",
            "correct the reward, or what it reads",
        )
    rate = (env_steps - first_steps) / max(time.monotonic() - measured, 1e-9)
    share = trainer.timers["physics"] / max(sum(trainer.timers.values()), 1e-9)
    yield Note(f"{env_steps:,} env steps, on the {kind}")
    yield Note(
        f"{_rounded(rate)} env steps/s of one training on one core, of which the environment takes"
        f" {share:.0%}: the task's {wanted:,} env steps take about {rough_duration(wanted / rate)}"
    )


def fitness_tells_apart(subject: Subject, seen: Seen) -> Iterator[Remark]:
    """The fitness is not the same in all steps."""
    if "fitness" not in seen.low or bool(seen.low["fitness"] != seen.high["fitness"]):
        return
    value = float(seen.low["fitness"])
    where = f"in all {seen.steps:,} steps of random and trained actions"
    counts_steps = value and seen.ended and subject.task.fitness_reduction == "sum"
    if counts_steps or (not value and seen.trained_fitness):  # else a policy did reach it
        return
    if constant_fitness(subject) is not None:
        raise Nonconforming(
            "a fitness that depends on the state",
            f"{value:.4g} {where}, and whatever its arguments are",
            "compute it from them",
        )
    yield Remark(
        "a fitness that differs between policies",
        f"{value:.4g} {where}",
        "where no chance policy ever earns any of it, scores cannot tell rewards apart: see whether"
        " it can be reached, or give it a slope",
    )


def mujoco_speed(subject: Subject) -> Iterator[Note | Remark]:
    """The model's integrator, timestep and memory allow a fast training."""
    cls = subject.loaded.environment_class
    if not issubclass(cls, MujocoTask):
        raise NotApplicable
    environment = subject.loaded.make(subject.task, 1)
    assert isinstance(environment, MujocoTask)
    model = environment.model
    integrator = mujoco.mjtIntegrator(model.opt.integrator).name.removeprefix("mjINT_")
    count = substeps(cls, model)
    text = (
        f"integrator {integrator}, timestep {model.opt.timestep:g} s, {count} physics steps in a"
        f" control step of {cls.control_dt:g} s"
    )
    faster = integrator != "IMPLICITFAST"
    more = (
        'integrator="implicitfast" costs a quarter of RK4, and is stable at twice its timestep: a'
        " stock walker ran 5,000 env steps/s at RK4 and 0.002 s, 40,000 at implicitfast and 0.004 s"
    )
    if count > _TOO_MANY_SUBSTEPS:
        longer = cls.control_dt / _MANY_SUBSTEPS
        hint = (
            f'timestep="{longer:.3g}" takes {_MANY_SUBSTEPS} physics steps, a training'
            f" {count / _MANY_SUBSTEPS:.0f} times fewer"
        )
        yield Remark(
            f"at most {_TOO_MANY_SUBSTEPS} physics steps in a control step",
            text,
            f"{hint}; {more}" if faster else hint,
        )
    else:
        slow = faster and (integrator == "RK4" or count > _MANY_SUBSTEPS)
        yield Note(f"{text}; {more}" if slow else text)
    declared = int(read_mjcf(environment).memory)
    if model.narena >= _MUCH_MEMORY and declared < 0:
        yield Remark(
            "a <size memory> in the MJCF",
            f"there is none: MuJoCo reserves {model.narena / 1e6:.0f} MB for each simulation, of"
            " which a worker has hundreds",
            'write <size memory="256K"/>, with room for the contacts that you expect',
        )


def episode(subject: Subject) -> Iterator[Remark | Note]:
    """The length of an episode and the time of a step are declared, not guessed."""
    cls = subject.loaded.environment_class
    if not cls.episode_source:
        raise NotApplicable
    text = f"{cls.max_episode_length} steps of {cls.control_dt:g} s: {cls.episode_source}"
    if "guessed" not in cls.episode_source:
        yield Note(text)
        return
    yield Remark(
        "max_episode_steps or a TimeLimit, and dt or metadata['render_fps'], tell of both",
        text,
        "set MAX_EPISODE_LENGTH (steps) and CONTROL_DT (seconds) beside make in env.py, or"
        " max_episode_length and control_dt in the class",
    )


def _settings(subject: Subject) -> tuple[TrainingSettings, int]:
    """Settings of a short training for the task, and the env steps of a full one."""
    budget = subject.task.training
    values = {**budget.overrides, "num_envs": budget.num_envs, "env_steps": budget.env_steps}
    settings = parse_settings(TrainingSettings, values, "the task's training budget")
    short = settings.model_copy(update={"env_steps": min(_MOST_ENV_STEPS, budget.env_steps)})
    return short, budget.env_steps


def _reward(subject: Subject) -> tuple[str, Reward]:
    """Name and reward of a training: the human one, the sparse one, or the fitness."""
    found = subject.loaded.environment_class
    kinds: tuple[Literal["human", "sparse"], ...] = ("human", "sparse")
    for kind in kinds:
        source = subject.loaded.reward_source(subject.task, kind)
        if source is not None:
            reward = load_reward(baseline(source), found)
            return f"{kind} reward", reward
    return "fitness itself", _FitnessAsReward(subject.fitness())


def _note_steps(environment: VecTask, seen: Seen) -> None:
    """Have `seen` record each step of an environment."""
    advance = environment.advance

    def noted(actions: Tensor) -> Transition:
        transition = advance(actions)
        seen.add(transition)
        return transition

    environment.advance = noted  # type: ignore[method-assign]


def _rounded(number: float) -> str:
    """Two digits, with commas."""
    digits = max(0, len(str(int(number))) - 2)
    return f"{round(number, -digits):,.0f}"
