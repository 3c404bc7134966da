"""The step loop: the policies' means, noise and the simulator, and nothing else. What rewards need is recorded for afterwards."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from eureka_agent.errors import EnvironmentLoadError, did_you_mean
from eureka_agent.simulation.vec_task import TIME_OUT, Transition, VecTask
from eureka_agent.task import PREVIOUS_PREFIX
from eureka_agent.training.binding import variable_of
from eureka_agent.training.networks import MemberNetworks
from eureka_agent.training.normalization import ObservationStatistics, normalize


@dataclass
class Rollout:
    """One iteration's steps of the leading members, as views of buffers that the next iteration overwrites."""

    observations: Tensor
    """Shape: (members, steps, num_envs, num_observations), not normalised."""
    normalized: Tensor
    """The same, as the policies saw them."""
    final_observations: Tensor
    """Of the states reached, before any reset. Same shape, not normalised."""
    last_observations: Tensor
    """From which the next iteration goes on. Shape: (members, num_envs, num_observations), not normalised."""
    action_means: Tensor
    """Shape: (members, steps, num_envs, num_actions)."""
    actions: Tensor
    """As drawn, before clipping. Same shape."""
    noise: Tensor
    """Standard normal numbers behind the actions. Same shape."""
    terminated: Tensor
    """Shape: (members, steps, num_envs), bool."""
    truncated: Tensor
    """Shape: (members, steps, num_envs), bool."""
    causes: dict[str, Tensor]
    """Termination causes and the time-out. Shape of each: (members, steps, num_envs), bool."""
    arguments: dict[str, Tensor]
    """What rewards and fitness read, by argument name. Shape of each: (members, steps, num_envs, *variable.shape)."""


class RolloutCollector:
    """Steps one simulator of K times `num_envs` rows; member k owns the rows from k * num_envs on."""

    def __init__(self, environment: VecTask, members: int, num_envs: int, horizon: int) -> None:
        self._environment = environment
        self._num_envs = num_envs
        self._horizon = horizon
        device = environment.device
        shape = (members, horizon, num_envs)
        self._actions = torch.zeros(members * num_envs, environment.num_actions, device=device)
        self._observations = torch.zeros(*shape, environment.num_observations, device=device)
        self._final_observations = torch.zeros_like(self._observations)
        self._action_means = torch.zeros(*shape, environment.num_actions, device=device)
        self.noise = torch.zeros_like(self._action_means)
        """Standard normal numbers for the next rollout; whoever calls `collect` fills the rows first."""
        self._terminated = torch.zeros(shape, dtype=torch.bool, device=device)
        self._truncated = torch.zeros_like(self._terminated)
        self._causes = {name: torch.zeros_like(self._terminated) for name in environment.termination_causes}
        self._arguments: dict[str, Tensor] = {}
        self._previous: dict[str, Tensor] = {}
        self.seconds = {"physics": 0.0, "policy": 0.0}
        """Wall seconds since the beginning."""

    def start_member(self, member: int, seed: int, progress: Tensor) -> None:
        """New episodes in a member's rows, at `progress` (int64, shape (num_envs,)) control steps of their length."""
        environment = self._environment
        rows = self._rows(member)
        environment.seed_rows(rows, torch.full_like(rows, seed))
        environment.reset_rows(rows)
        environment.progress_buf[rows] = progress
        environment.compute_observations()
        self._remember(rows)

    def member_state(self, member: int) -> dict[str, Tensor]:
        """Where a member's environments are, between two rollouts."""
        return self._environment.row_state(self._rows(member))

    def load_member_state(self, member: int, state: Mapping[str, Tensor]) -> None:
        """Go on in a member's rows from where `member_state` found some."""
        rows = self._rows(member)
        self._environment.load_row_state(rows, state)
        self._remember(rows)

    def _rows(self, member: int) -> Tensor:
        first = member * self._num_envs
        return torch.arange(first, first + self._num_envs, device=self._environment.device)

    def _remember(self, rows: Tensor) -> None:
        """Between two rollouts, what the next step calls `previous_…` are the values of the current state."""
        if self._previous:
            current = self._environment.read_variables()
            for name, value in self._previous.items():
                value[rows] = current[name][rows]

    def clear_member(self, member: int) -> None:
        """Leave a member's rows alone: they act with zeros until a new member starts there."""
        self._actions[member * self._num_envs : (member + 1) * self._num_envs] = 0.0
        self.noise[member] = 0.0

    def collect(
        self, networks: MemberNetworks, statistics: ObservationStatistics, members: int, arguments: Collection[str]
    ) -> Rollout:
        """One iteration of the leading `members`; records `arguments`, which are variables or `previous_<variable>`."""
        environment, rows = self._environment, members * self._num_envs
        self._prepare(members, arguments)
        mean = statistics.mean[:members].unsqueeze(1)
        inverse_deviation = statistics.deviation()[:members].reciprocal().unsqueeze(1)
        scaled_noise = self.noise[:members] * networks.log_std.exp()[:, None, None]
        shape = (members, self._num_envs)
        for step in range(self._horizon):
            began = time.perf_counter()
            observations = environment.obs_buf[:rows].view(*shape, -1)
            self._observations[:members, step] = observations
            means = networks.policy.forward(normalize(observations, mean, inverse_deviation))[-1]
            self._action_means[:members, step] = means
            self._actions[:rows] = (means + scaled_noise[:, step]).view(rows, -1)
            acted = time.perf_counter()
            transition = environment.advance(self._actions)
            self._final_observations[:members, step] = transition.observations[:rows].view(*shape, -1)
            self._terminated[:members, step] = transition.terminated[:rows].view(shape)
            self._truncated[:members, step] = transition.truncated[:rows].view(shape)
            for name, flags in transition.causes.items():
                self._cause_buffer(name)[:members, step] = flags[:rows].view(shape)
            for name, buffer in self._arguments.items():
                source = (
                    self._previous[variable_of(name)]
                    if name.startswith(PREVIOUS_PREFIX)
                    else transition.variables[name]
                )
                buffer[:members, step] = source[:rows].unflatten(0, shape)
            self._reset_done(transition)
            self.seconds["physics"] += time.perf_counter() - acted
            self.seconds["policy"] += acted - began
        return self._rollout(members, mean, inverse_deviation, scaled_noise)

    def _prepare(self, members: int, arguments: Collection[str]) -> None:
        """Make buffers for what is recorded, and forget those that nobody reads any more."""
        environment = self._environment
        shapes = {variable.name: variable.shape for variable in environment.all_variables()}
        shape = self._terminated.shape
        self._arguments = {
            name: self._arguments[name]
            if name in self._arguments
            else torch.zeros(*shape, *shapes[variable_of(name)], device=environment.device)
            for name in sorted(arguments)
        }
        remembered = sorted({variable_of(name) for name in arguments if name.startswith(PREVIOUS_PREFIX)})
        if set(remembered) - set(self._previous):
            current = environment.read_variables()
            self._previous = {name: self._previous.get(name, current[name].clone()) for name in remembered}
        else:
            self._previous = {name: self._previous[name] for name in remembered}

    def _cause_buffer(self, name: str) -> Tensor:
        if name not in self._causes:
            raise EnvironmentLoadError(
                f"compute_termination gave the cause {name!r}, which is not in termination_causes",
                did_you_mean(name, self._causes),
            )
        return self._causes[name]

    def _reset_done(self, transition: Transition) -> None:
        """Start new episodes, and keep what the next step calls `previous_…`: of a new episode, its first state's."""
        environment = self._environment
        if not self._previous:
            environment.reset_done()
            return
        ended = environment.reset_buf.clone()
        reached = {name: transition.variables[name].clone() for name in self._previous}
        environment.reset_done()
        if environment.resets_by_mask or bool(ended.any()):
            fresh = environment.read_variables()
            for name, value in reached.items():
                mask = ended.view(-1, *([1] * (value.dim() - 1)))
                reached[name] = torch.where(mask, fresh[name], value)
        self._previous = reached

    def _rollout(self, members: int, mean: Tensor, inverse_deviation: Tensor, scaled_noise: Tensor) -> Rollout:
        shape = (members, self._num_envs)
        last = self._environment.obs_buf[: members * self._num_envs].view(*shape, -1).clone()
        observations, truncated = self._observations[:members], self._truncated[:members]
        # the same expression as in the step loop gives the same bits
        normalized = normalize(observations, mean.unsqueeze(1), inverse_deviation.unsqueeze(1))

        action_means = self._action_means[:members]
        causes = {name: flags[:members] for name, flags in self._causes.items()}
        return Rollout(
            observations=observations,
            normalized=normalized,
            final_observations=self._final_observations[:members],
            last_observations=last,
            action_means=action_means,
            actions=action_means + scaled_noise,
            noise=self.noise[:members],
            terminated=self._terminated[:members],
            truncated=truncated,
            causes={**causes, TIME_OUT: truncated},
            arguments={name: buffer[:members] for name, buffer in self._arguments.items()},
        )
