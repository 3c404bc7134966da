"""Vectorised environments of rsl_rl with its PPO: a whole program for a user's `main`. Several
rewards may share a simulator, each with its rows. Tried with rsl-rl-lib 5.5.1."""

from __future__ import annotations

import contextlib
import copy
import io
from collections.abc import Callable, Mapping, Sequence
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
            seen, rewards, dones, extras = self.env.step(applied)
            check_nan(seen, rewards, dones)
            late = extras.get("time_outs", torch.zeros_like(dones)).bool()
            causes, start = (read and read(self.env) for read in (self.causes, self.start))
            # the learner's device, which need not be the simulator's
            ends = [each.to(actions.device) for each in (dones.bool() & ~late, dones.bool() & late)]
            seen = seen.to(actions.device)
            return Step(self.values(self.env), applied, *ends, causes, start, seen)

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
    told = {"can": can, "control_dt": control_dt, "num_actions": env.env.num_actions}
    told["num_observations"] = sum(env.env.get_observations()[it].shape[-1] for it in groups)
    told["max_episode_length"] = int(torch.as_tensor(env.env.max_episode_length).max())
    job.described(variables, **{"versions": ("rsl-rl-lib", "torch"), **told, **description})

    def load_policy(path: Path) -> Callable[[Any], Tensor]:
        actor = _runner(env.env, configuration, job.device).get_inference_policy(job.device)
        actor.load_state_dict(load_arrays(path))
        return torch.inference_mode()(lambda observations: actor(observations.to(job.device)))

    if job.mode != "train":
        play(job, env, load_policy)
        return
    members = [_Member(job, number, env.env, configuration) for number in range(len(job.trainings))]
    _train(job, env, members, configuration["num_steps_per_env"], random_first_lengths)


class _Member:
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

    def own(self, values: Any) -> Any:
        """The part of its rows."""
        if isinstance(values, Mapping):
            return {name: each[self.rows] for name, each in values.items()}
        return None if values is None else values[self.rows]

    def begin(self, start: Mapping[str, Tensor]) -> None:
        self.training.begin(self.own(start), self.env_steps)

    def take(self, step: Step) -> None:
        """Give the algorithm the reward of a step of all rows."""
        own = Step(*map(self.own, step))
        reward, done = self.training.step(own), own.terminated | own.truncated
        paid = (reward, done, {"time_outs": own.truncated})
        self.algorithm.process_env_step(own.observations, *paid)

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
    _each(members, _Member.begin, start)
    while members:
        with torch.inference_mode(), blame("trainer"):
            for _ in range(horizon):
                actions = torch.zeros(env.num_envs, env.env.num_actions, device=job.device)
                for member in members:
                    actions[member.rows] = member.algorithm.act(member.own(observations))
                step = env.step(actions)
                observations = step.observations
                _each(members, _Member.take, step)
            for member in members:
                member.algorithm.compute_returns(member.own(observations))
        for member in list(members):
            with blame("trainer"):
                member.algorithm.update()
            member.training.keep(member.save_policy, member.save_state)
            if member.training.over:
                member.training.end(member.save_policy)
                members.remove(member)


def _each(members: list[_Member], call: Callable[[_Member, Any], None], given: Any) -> None:
    """Call all members. A fault of its reward ends one alone."""
    for member in list(members):
        try:
            call(member, given)
        except RewardFault as fault:
            member.training.job.report(fault)
            members.remove(member)


def _runner(env: Any, configuration: Mapping[str, Any], device: str) -> OnPolicyRunner:
    """Runner with new networks; it would print them."""
    with contextlib.redirect_stdout(io.StringIO()), blame("trainer"):
        return OnPolicyRunner(env, copy.deepcopy(dict(configuration)), None, device)
