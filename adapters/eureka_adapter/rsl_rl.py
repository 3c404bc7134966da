"""Vectorised environments of rsl_rl with its PPO: a whole program for a user's `main`. Several
rewards may share a simulator, each with its rows. Tried with rsl-rl-lib 5.5.1."""

from __future__ import annotations

import contextlib
import copy
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rsl_rl.env import VecEnv
from rsl_rl.runners import OnPolicyRunner
from rsl_rl.utils import check_nan
from torch import Tensor

from eureka_adapter.episodes import play
from eureka_adapter.faults import RewardFault, blame
from eureka_adapter.job import Job, Variable, episode_seed
from eureka_adapter.rows import Step
from eureka_adapter.training import load_arrays, load_state, save_arrays

Read = Callable[[Any], Mapping[str, Tensor]]


@dataclass
class RslEnv:
    """An environment of rsl_rl and what reads it, as a `BatchedEnv`."""

    env: VecEnv
    reset_all: Callable[[Any, list[int]], None]
    """Begins an episode in every row of the environment from its seed."""
    values: Read
    """Values of the states that the last step reached, before its resets; or that `reset_all`
    made."""
    start: Read | None = None
    """Values after the last step's resets."""
    causes: Read | None = None
    """Masks by cause of an early end, of the last step."""
    picture: Callable[[Any, int], Any] | None = None
    """Picture of a row."""
    clip_actions: float = float("inf")

    def __post_init__(self) -> None:
        """Count the rows."""
        self.num_envs = self.env.num_envs

    def reset(self, seeds: list[int]) -> tuple[Any, Mapping[str, Tensor]]:
        """See `BatchedEnv`."""
        with blame("environment"):
            self.reset_all(self.env, seeds)
            return self.env.get_observations(), self.values(self.env)

    def step(self, actions: Tensor) -> Step:
        """See `BatchedEnv`."""
        with blame("environment"):
            applied = actions.to(self.env.device).clamp(-self.clip_actions, self.clip_actions)
            observations, rewards, dones, extras = self.env.step(applied)
            check_nan(observations, rewards, dones)
            late = extras.get("time_outs", torch.zeros_like(dones)).bool()
            causes, start = (read and read(self.env) for read in (self.causes, self.start))
            ends = dones.bool() & ~late, dones.bool() & late
            return Step(self.values(self.env), applied, *ends, causes, start, observations)

    def render(self, row: int) -> Any:
        """See `BatchedEnv`."""
        return self.picture and self.picture(self.env, row)


def main(
    make_env: Callable[[Job], RslEnv],
    variables: Sequence[Variable],
    configuration: Mapping[str, Any],
    *,
    control_dt: float,
    random_first_lengths: bool = True,
    rewards: int = 1,
    argv: Sequence[str] | None = None,
    **description: Any,
) -> None:
    """Do the job that eureka-agent asks for. `make_env`: with `job.num_envs` rows.
    `configuration`: of OnPolicyRunner. `random_first_lengths`: the first episodes of a training end
    at different times. `rewards`: most trainings that share the rows. `description`: other fields
    of `Job.described`."""
    job = Job.open(argv)
    env = make_env(job)
    groups = (configuration.get("obs_groups") or {}).get("actor", ["policy"])
    can = {"film": env.picture is not None, "rewards": rewards, **description.pop("can", {})}
    job.described(
        variables,
        num_observations=sum(env.env.get_observations()[name].shape[-1] for name in groups),
        num_actions=env.env.num_actions,
        control_dt=control_dt,
        max_episode_length=int(torch.as_tensor(env.env.max_episode_length).max()),
        can=can,
        **{"versions": ("rsl-rl-lib", "torch"), **description},
    )

    def load_policy(path: Path) -> Callable[[Any], Tensor]:
        actor = _runner(env.env, configuration, job.device).get_inference_policy(job.device)
        actor.load_state_dict(load_arrays(path))
        return torch.inference_mode()(lambda observations: actor(observations.to(job.device)))

    if job.mode != "train":
        play(job, env, load_policy)
        return
    members = [_Member(job, number, env.env, configuration) for number in range(len(job.trainings))]
    _train(job, env, members, configuration["num_steps_per_env"], random_first_lengths)


class _Member(VecEnv):
    """A training with its algorithm and its rows, which are the environment of the algorithm."""

    def __init__(
        self, job: Job, number: int, env: VecEnv, configuration: Mapping[str, Any]
    ) -> None:
        """`number`: of the training. All have equal blocks of the rows."""
        self.training = training = job.trainings[number]
        self._env, self.num_envs = env, env.num_envs // len(job.trainings)
        self.rows = slice(number * self.num_envs, (number + 1) * self.num_envs)
        state = load_state(training.state) if training.state else {}
        self.env_steps = state.get("env_steps", 0)
        torch.manual_seed(episode_seed("algorithm", training.seed, self.env_steps))
        self.algorithm = _runner(self, configuration, job.device).alg
        if state:
            self.algorithm.load(state["algorithm"], None, True)
        self.algorithm.train_mode()
        parts = ("training", training.seed, self.env_steps)
        self.seeds = [episode_seed(*parts, row) for row in range(self.num_envs)]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)

    def get_observations(self) -> Any:
        return self._env.get_observations()[self.rows]

    def step(self, actions: Tensor) -> Any:
        raise NotImplementedError("members step together")

    def own(self, values: Any) -> Any:
        """The part of its rows."""
        if isinstance(values, Mapping):
            return {name: each[self.rows] for name, each in values.items()}
        return None if values is None else values[self.rows]

    def take(self, step: Step, observations: Any) -> None:
        """Give the algorithm the reward of a step of all rows. Raises RewardFault."""
        own, device = Step(*map(self.own, step)), self.training.job.device
        reward, late = self.training.step(own).to(device), own.truncated.to(device)
        done = own.terminated.to(device) | late
        self.algorithm.process_env_step(self.own(observations), reward, done, {"time_outs": late})

    def save_policy(self, path: Path) -> None:
        save_arrays(path, self.algorithm.get_policy().state_dict())

    def save_state(self, path: Path) -> None:
        state = {"algorithm": self.algorithm.save(), "env_steps": self.training.env_steps}
        torch.save(state, path)


def _train(
    job: Job, env: RslEnv, members: list[_Member], horizon: int, random_first_lengths: bool
) -> None:
    """Train all members at once. The loop is that of OnPolicyRunner, without its printing."""
    seeds = [seed for member in members for seed in member.seeds]
    spare = seeds[-1:] * (env.num_envs - len(seeds))
    observations, start = env.reset(seeds + spare)
    observations = observations.to(job.device)
    if random_first_lengths:
        lengths, most = env.env.episode_length_buf, job.description["max_episode_length"]
        env.env.episode_length_buf = torch.randint_like(lengths, high=most)
    for member in list(members):
        with _reporting(members, member):
            member.training.begin(member.own(start), member.env_steps)
    while members:
        with torch.inference_mode(), blame("trainer"):
            for _ in range(horizon):
                actions = torch.zeros(env.num_envs, env.env.num_actions, device=job.device)
                for member in members:
                    actions[member.rows] = member.algorithm.act(member.own(observations))
                step = env.step(actions)
                observations = step.observations.to(job.device)
                for member in list(members):
                    with _reporting(members, member):
                        member.take(step, observations)
            for member in members:
                member.algorithm.compute_returns(member.own(observations))
        for member in list(members):
            with blame("trainer"):
                member.algorithm.update()
            member.training.keep(member.save_policy, member.save_state)
            if member.training.over:
                member.training.end(member.save_policy)
                members.remove(member)


@contextlib.contextmanager
def _reporting(members: list[_Member], member: _Member) -> Iterator[None]:
    """A fault of its reward ends a member alone."""
    try:
        yield
    except RewardFault as fault:
        member.training.job.report(fault)
        members.remove(member)


def _runner(env: VecEnv, configuration: Mapping[str, Any], device: str) -> OnPolicyRunner:
    """Runner with new networks; it would print them."""
    with contextlib.redirect_stdout(io.StringIO()), blame("trainer"):
        return OnPolicyRunner(env, copy.deepcopy(dict(configuration)), None, device)
