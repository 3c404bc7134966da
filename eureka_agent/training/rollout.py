"""The step loop: policy outputs, noise and simulator, and a check of the states. Rewards are
calculated afterwards."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from eureka_agent.arguments import variable_of
from eureka_agent.parameters import DEFAULTS, Distribution
from eureka_agent.simulation.vec_task import TIME_OUT, Transition, VecTask
from eureka_agent.task import PREVIOUS_PREFIX
from eureka_agent.training.distributions import ActionDistribution
from eureka_agent.training.environment_faults import LARGEST, OBSERVATIONS, is_unsound, state_fault
from eureka_agent.training.networks import MemberNetworks, ObservationStatistics, normalize
from eureka_agent.training.observation import DesignedObservation


@dataclass
class Rollout:
    """One iteration of the leading members, as views of buffers that the next one overwrites.
    Shapes begin with (members, steps, num_envs), where nothing else is said."""

    observations: Tensor
    """(…, num_observations), not normalised, as are the next but one and two. Designed ones are
    filled up with 0 to the width of all."""
    normalized: Tensor
    """Normalised, with a last column of ones."""
    final_observations: Tensor
    """States reached, before any reset."""
    last_observations: Tensor
    """Start of the next iteration. Shape: (members, num_envs, num_observations)."""
    outputs: Tensor
    actions: Tensor
    """Sampled, before clipping."""
    noise: Tensor
    """Unscaled noise of the actions. Shape: (…, num_outputs)."""
    terminated: Tensor
    truncated: Tensor
    causes: dict[str, Tensor]
    """Termination causes and the time-out, bool."""
    progress: Tensor
    """Each episode's control steps before the first step. Shape: (members, num_envs), int64."""
    arguments: dict[str, Tensor]
    """Arguments of rewards and fitness. Shape: (…, *variable.shape)."""


class RolloutCollector:
    """Steps a simulator of at least K * num_envs rows; member k has the rows from k * num_envs."""

    def __init__(
        self,
        environment: VecTask,
        distribution: ActionDistribution,
        members: int,
        num_envs: int,
        horizon: int,
        designed: int = 0,
    ) -> None:
        """`designed`: most numbers of an observation that is designed; 0: none is."""
        self.designed: dict[int, DesignedObservation] = {}
        """Observations of the members that have one of their own."""
        self._width = width = max(designed, environment.num_observations)
        self._environment = environment
        self._distribution = distribution
        self._num_envs = num_envs
        self._horizon = horizon
        device = environment.device
        shape = (members, horizon, num_envs)
        self._actions = torch.zeros(environment.num_envs, environment.num_actions, device=device)
        self._observations = torch.zeros(*shape, width, device=device)
        self._normalized = torch.ones(*shape, width + 1, device=device)
        self._final_observations = torch.zeros_like(self._observations)
        self._outputs = torch.zeros(*shape, distribution.num_outputs, device=device)
        self.noise = torch.zeros_like(self._outputs)
        """Random numbers of the next rollout; the caller of `collect` fills the rows first."""
        flags = 2 + len(environment.termination_causes)
        self._flags = torch.zeros(flags, *shape, dtype=torch.bool, device=device)
        """Terminated, truncated, and the termination causes in order."""
        self._values: dict[str, Tensor] = {}
        """Recorded variables. Shape of each: (members, horizon, num_envs, *variable.shape)."""
        self._previous: dict[str, Tensor] = {}
        """Values one step before, the current state's last. Shape: (members, horizon + 1, …)."""
        self.seconds = {"physics": 0.0, "policy": 0.0}
        """Wall seconds so far."""

    def start_member(
        self, member: int, seed: int, progress: Tensor, parameters: Distribution = DEFAULTS
    ) -> None:
        """Reset a member's rows to `progress` (int64, shape (num_envs,)) control steps."""
        environment = self._environment
        rows = self._rows(member)
        environment.seed_rows(rows, torch.full_like(rows, seed))
        self.set_parameters(member, parameters)
        environment.reset_rows(rows)
        environment.progress_buf[rows] = progress
        environment.compute_observations()
        self._remember(rows)

    def set_parameters(self, member: int, parameters: Distribution) -> None:
        """Have a member's rows draw from this distribution from their next episodes on."""
        self._environment.set_parameters(self._rows(member), parameters)

    def member_state(self, member: int) -> dict[str, Tensor]:
        return self._environment.row_state(self._rows(member))

    def load_member_state(self, member: int, state: Mapping[str, Tensor]) -> None:
        """Restore a `member_state` in a member's rows."""
        rows = self._rows(member)
        self._environment.load_row_state(rows, state)
        self._remember(rows)

    def _rows(self, member: int) -> Tensor:
        first = member * self._num_envs
        return torch.arange(first, first + self._num_envs, device=self._environment.device)

    def _remember(self, rows: Tensor) -> None:
        """Set the values of the current state as those before the next step."""
        if self._previous:
            current = self._environment.read_variables()
            members, places = rows // self._num_envs, rows % self._num_envs
            for name, value in self._previous.items():
                value[members, -1, places] = current[name][rows]

    def clear_member(self, member: int) -> None:
        """Let a member's rows act with zeros until a new member starts there."""
        self.designed.pop(member, None)
        self._actions[member * self._num_envs : (member + 1) * self._num_envs] = 0.0
        self.noise[member] = 0.0

    def collect(
        self,
        networks: MemberNetworks,
        statistics: ObservationStatistics,
        members: int,
        arguments: Collection[str],
    ) -> Rollout:
        """Run an iteration of the leading `members`; record `arguments` by name."""
        environment, rows = self._environment, members * self._num_envs
        self._prepare(arguments)
        progress = self._by_member(environment.progress_buf, members).clone()
        mean = statistics.mean[:members].unsqueeze(1)
        inverse_deviation = statistics.deviation()[:members].reciprocal().unsqueeze(1)
        distribution = self._distribution
        scaled_noise = distribution.scaled(self.noise[:members], networks.distribution_parameters)
        actions = self._actions[:rows].view(members, self._num_envs, -1)

        # one view per step of every buffer
        step_noise = scaled_noise.unbind(1)
        step_outputs = self._outputs[:members].unbind(1)
        step_observations = self._observations[:members].unbind(1)
        step_inputs = self._normalized[:members].unbind(1)
        step_normalized = self._normalized[:members, :, :, :-1].unbind(1)
        step_final = self._final_observations[:members].unbind(1)
        step_flags = self._flags[:, :members].unbind(2)
        both = (self._values, self._previous)
        step_values, step_previous = (
            {name: each[:members].unbind(1) for name, each in buffers.items()} for buffers in both
        )
        for views in step_previous.values():
            views[0].copy_(views[-1])

        for step in range(self._horizon):
            began = time.perf_counter()
            observations = self._observed(environment.obs_buf, None, members)
            step_observations[step].copy_(observations)
            normalize(observations, mean, inverse_deviation, out=step_normalized[step])
            outputs = networks.outputs(step_inputs[step])
            step_outputs[step].copy_(outputs)
            distribution.sample(outputs, step_noise[step], out=actions)
            acted = time.perf_counter()
            transition = environment.advance(self._actions)
            reached = transition.observations, transition.variables
            step_final[step].copy_(self._observed(*reached, members))
            step_flags[step].copy_(self._by_member(self._flags_of(transition), members, dim=1))
            variables = transition.variables
            for name, views in step_values.items():
                views[step].copy_(self._by_member(variables[name], members))
            environment.reset_done()
            if step_previous:
                # rows without a reset still have the values of the state reached
                variables = environment.read_variables()
                for name, views in step_previous.items():
                    views[step + 1].copy_(self._by_member(variables[name], members))
            self.seconds["physics"] += time.perf_counter() - acted
            self.seconds["policy"] += acted - began
        return self._rollout(members, scaled_noise, progress, arguments)

    def _by_member(self, values: Tensor, members: int, dim: int = 0) -> Tensor:
        rows = members * self._num_envs
        shape = values.shape
        used = values if shape[dim] == rows else values.narrow(dim, 0, rows)
        return used.view(*shape[:dim], members, self._num_envs, *shape[dim + 1 :])

    def _observed(
        self, own: Tensor, variables: Mapping[str, Tensor] | None, members: int
    ) -> Tensor:
        """Observations of the leading members, from the environment's `own` ones of all rows and
        their variables; None: those of the current state. Shape: (members, num_envs, width)."""
        given = self._by_member(own, members)
        designed = {slot: each for slot, each in self.designed.items() if slot < members}
        if not designed and given.shape[-1] == self._width:
            return given
        found = given.new_zeros(*given.shape[:2], self._width)
        found[..., : given.shape[-1]] = given
        values = variables
        for slot, each in designed.items():
            values = self._environment.read_variables() if values is None else values
            own_rows = {name: self._by_member(values[name], members)[slot] for name in each.inputs}
            found[slot] = 0.0
            found[slot, :, : each.width] = each(own_rows)
        return found

    def _prepare(self, arguments: Collection[str]) -> None:
        """Make missing buffers of recorded values, and drop unused ones."""
        now = {name for name in arguments if not name.startswith(PREVIOUS_PREFIX)}
        before = {variable_of(name) for name in arguments if name.startswith(PREVIOUS_PREFIX)}
        members, horizon, num_envs = self.noise.shape[:3]
        shapes = {variable.name: variable.shape for variable in self._environment.all_variables()}

        def buffers(
            known: Mapping[str, Tensor], names: Collection[str], steps: int
        ) -> dict[str, Tensor]:
            device = self._environment.device
            return {
                name: known[name]
                if name in known
                else torch.zeros(members, steps, num_envs, *shapes[name], device=device)
                for name in sorted(names)
            }

        unknown = before - set(self._previous)
        self._values = buffers(self._values, now, horizon)
        self._previous = buffers(self._previous, before, horizon + 1)
        if unknown:
            current = self._environment.read_variables()
            for name in unknown:
                self._previous[name][:, -1] = self._by_member(current[name], members)

    def _flags_of(self, transition: Transition) -> Tensor:
        """Terminated, truncated, and termination causes. Shape: (2 + causes, rows), bool."""
        absent = torch.zeros_like(transition.terminated)
        names = self._environment.termination_causes
        flags = (transition.causes.get(name, absent) for name in names)
        return torch.stack((transition.terminated, transition.truncated, *flags))

    def _rollout(
        self, members: int, scaled_noise: Tensor, progress: Tensor, arguments: Collection[str]
    ) -> Rollout:
        last = self._observed(self._environment.obs_buf, None, members).clone()
        outputs = self._outputs[:members]
        terminated, truncated, *causes = self._flags[:, :members]
        names = self._environment.termination_causes
        return Rollout(
            observations=self._observations[:members],
            normalized=self._normalized[:members],
            final_observations=self._final_observations[:members],
            last_observations=last,
            outputs=outputs,
            actions=self._distribution.sample(outputs, scaled_noise),
            noise=self.noise[:members],
            terminated=terminated,
            truncated=truncated,
            causes={**dict(zip(names, causes, strict=True)), TIME_OUT: truncated},
            progress=progress,
            arguments={
                name: self._previous[variable_of(name)][:members, :-1]
                if name.startswith(PREVIOUS_PREFIX)
                else self._values[name][:members]
                for name in arguments
            },
        )


def broken_observations(rollout: Rollout, slots: Collection[int]) -> list[int]:
    """Those of `slots` whose designed observations are not finite, or absurdly large. They become
    0, so that nobody blames the environment for them."""
    observed = rollout.observations, rollout.final_observations, rollout.last_observations
    broken = []
    for slot in slots:
        if not all(bool((each[slot].abs() < LARGEST).all()) for each in observed):
            broken.append(slot)
            for each in observed:
                each[slot] = 0.0
    return broken


def spoiled_members(
    rollout: Rollout, env_steps: Mapping[int, int], environment: type[VecTask]
) -> list[int]:
    """Members whose policy gave NaN actions, which excuse later states; other unsound states raise
    EnvironmentFaultError. `env_steps`: each member's before the rollout."""
    observed = rollout.final_observations, rollout.last_observations, rollout.observations
    values = (*observed, *rollout.arguments.values())
    if bool(torch.stack([(value.abs() < LARGEST).all() for value in values]).all()):
        return []  # by a single transfer from the device
    spoiled = []
    for slot in env_steps:
        first = _first_unsound(rollout, slot)
        if first is None:
            continue
        time_of, row, name, value = first
        step = max(0, math.floor(time_of))
        taken = rollout.actions[slot, : math.floor(time_of) + 1, row]
        if bool(taken.isnan().any()):
            spoiled.append(slot)
            continue
        made = env_steps[slot] + step * rollout.progress.shape[1]
        when = f"{_when(rollout, slot, time_of, row)} (in a training, after {made:,} env steps)"
        action = taken[-1].clamp(-1.0, 1.0).tolist() if time_of == step else None
        raise state_fault(environment, name, value, when, action)
    return spoiled


def _first_unsound(rollout: Rollout, slot: int) -> tuple[float, int, str, Tensor] | None:
    """A member's earliest unsound value, a variable before an observation: the step that led there,
    half a step later after a reset or at the rollout's beginning; row, name, value."""
    named = {**rollout.arguments, OBSERVATIONS: rollout.final_observations}
    offsets = {name: -0.5 * name.startswith(PREVIOUS_PREFIX) for name in named}
    parts = [(name, value[slot], offsets[name]) for name, value in named.items()]
    end = len(rollout.terminated[slot]) - 0.5
    parts.append((OBSERVATIONS, rollout.observations[slot], -0.5))
    parts.append((OBSERVATIONS, rollout.last_observations[slot].unsqueeze(0), end))
    found = [
        (step + offset, row, name, value[step, row])
        for name, value, offset in parts
        for step, row in is_unsound(value, 2).nonzero()[:1].tolist()
    ]
    return min(found, key=lambda each: each[0], default=None)


def _when(rollout: Rollout, slot: int, time_of: float, row: int) -> str:
    ended = (rollout.terminated[slot] | rollout.truncated[slot])[:, row]
    step = math.floor(time_of)
    ends = ended[: max(0, step)].nonzero().flatten().tolist()
    begun = int(rollout.progress[slot, row])
    if step < 0 and begun:  # a training spreads the ends of its first episodes over time
        early = f"with progress_buf set to {begun}, as in a training's first episodes,"
        return f"right after a reset, {early}"
    if step < time_of and (step < 0 or bool(ended[step])):
        return "right after a reset"
    count = step - ends[-1] if ends else begun + step + 1
    return f"in step {count} of an episode"
