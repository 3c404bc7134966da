"""K independent PPO members on one simulator: their state, and an iteration of all. Nothing mixes
members: a member's numbers are those of a training on its own."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor

from eureka_agent.parameters import DEFAULTS, Distribution
from eureka_agent.records import CurvePoint
from eureka_agent.settings import TrainingSettings
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.training.distributions import distribution_of
from eureka_agent.training.fitness import EndedEpisodes
from eureka_agent.training.networks import (
    ObservationStatistics,
    ReturnStatistics,
    StackedNetworks,
    normalize,
    with_ones,
)
from eureka_agent.training.observation import DesignedObservation
from eureka_agent.training.rollout import Rollout, RolloutCollector
from eureka_agent.training.update import Batch, PPOUpdate, StackedAdam, generalized_advantages


class StackedMembers:
    """Networks, optimiser, statistics and random streams of K members, and their simulator rows."""

    def __init__(
        self, environment: VecTask, settings: TrainingSettings, members: int, designed: int = 0
    ) -> None:
        """`environment` has at least `members * settings.num_envs` rows. `designed`: most numbers
        of an observation that is designed; 0: none is."""
        self._environment = environment
        self._settings = settings
        device = environment.device
        self.distribution = distribution_of(environment)
        layers = settings.hidden_sizes, settings.activation
        size = max(designed, environment.num_observations)
        self.networks = StackedNetworks(members, size, self.distribution, *layers, device)
        self.observation_statistics = ObservationStatistics(members, size, device)
        self._return_statistics = ReturnStatistics(members, device)
        self._adam = StackedAdam(self.networks.parameters, self.networks.gradients)
        self._parts: dict[str, StackedAdam | ObservationStatistics | ReturnStatistics] = {
            "adam": self._adam,
            "observations": self.observation_statistics,
            "returns": self._return_statistics,
        }
        self._learning_rate = torch.full((members, 1), settings.learning_rate, device=device)
        learned = self.networks, self.distribution, self._adam, self._learning_rate
        self._update = PPOUpdate(*learned, settings)
        self._generators = [torch.Generator(device) for _ in range(members)]
        sizes = members, settings.num_envs, settings.horizon
        self.collector = RolloutCollector(environment, self.distribution, *sizes, designed)
        rows = settings.horizon * settings.num_envs
        self._permutations = torch.arange(rows, device=device).repeat(members, settings.epochs, 1)

    def start(
        self,
        member: int,
        seed: int,
        parameters: Distribution = DEFAULTS,
        observation: DesignedObservation | None = None,
    ) -> None:
        """Initialise one member for a new training with this seed and these parameters, on a
        designed observation or the environment's own."""
        generator = self._generators[member].manual_seed(seed)
        self.collector.designed.pop(member, None)
        if observation is not None:
            self.collector.designed[member] = observation
        parameter = self.distribution.initial_parameter(self._settings)
        self.networks.initialize(member, seed, parameter, self._inputs(member))
        self._reset(member)
        self._learning_rate[member] = self._settings.learning_rate
        longest = self._environment.max_episode_length
        size, device = (self._settings.num_envs,), generator.device
        progress = torch.randint(longest, size, generator=generator, device=device)
        self.collector.start_member(member, seed, progress, parameters)

    def _inputs(self, member: int) -> int:
        """Numbers that a member observes."""
        designed = self.collector.designed.get(member)
        return self._environment.num_observations if designed is None else designed.width

    def set_parameters(self, member: int, parameters: Distribution) -> None:
        """Have a member's rows draw from this distribution from their next episodes on."""
        self.collector.set_parameters(member, parameters)

    def member_state(self, member: int) -> dict[str, Tensor]:
        """CPU copies of a member's whole state between two iterations."""
        state = {name: value[member] for name, value in self._member_tensors().items()}
        state["generator"] = self._generators[member].get_state()
        rows = self.collector.member_state(member)
        state |= {f"rows.{name}": value for name, value in rows.items()}
        copies = ((name, value.detach().to("cpu", copy=True)) for name, value in state.items())
        return {name: value.contiguous() for name, value in copies}

    def load_member_state(self, member: int, state: Mapping[str, Tensor]) -> None:
        """Restore a `member_state` in any slot; the training continues bit for bit."""
        for name, value in self._member_tensors().items():
            value[member] = state[name].to(value)
        self._generators[member].set_state(state["generator"])
        found = (name for name in state if name.startswith("rows."))
        rows = {name.removeprefix("rows."): state[name] for name in found}
        self.collector.load_member_state(member, rows)

    def _member_tensors(self) -> dict[str, Tensor]:
        """All state tensors with one row per member, not copied."""
        tensors = {"parameters": self.networks.parameters, "learning_rate": self._learning_rate}
        for part, state in self._parts.items():
            tensors |= {f"{part}.{name}": each for name, each in state.member_tensors().items()}
        return tensors

    def clear(self, member: int) -> None:
        """Empty a slot: finite numbers, zero actions."""
        self.networks.parameters[member] = 0.0
        self.networks.gradients[member] = 0.0
        self._reset(member)
        self.collector.clear_member(member)

    def _reset(self, member: int) -> None:
        for state in self._parts.values():
            state.reset(member)

    def collect(self, members: Collection[int], width: int, arguments: Collection[str]) -> Rollout:
        """Act for one iteration in the `width` leading slots; only `members` draw noise."""
        for member in members:
            self.distribution.draw_noise(self._generators[member], out=self.collector.noise[member])
        networks, statistics = self.networks.members(0, width), self.observation_statistics
        return self.collector.collect(networks, statistics, width, arguments)

    def learn(
        self, members: Collection[int], rollout: Rollout, rewards: Tensor
    ) -> tuple[dict[str, Tensor], Tensor]:
        """Make one PPO update. `rewards`: shape (members, steps, num_envs). Returns numbers of a
        curve point by name, and whose parameters are finite, shape (members,) each. Choices have no
        deviation and no saturation."""
        settings, width = self._settings, len(rewards)
        for member in members:
            for epoch in range(settings.epochs):
                row = self._permutations[member, epoch]
                torch.randperm(len(row), generator=self._generators[member], out=row)
        inputs = rollout.normalized.flatten(1, 2)
        outputs = self.networks.members(0, width).values(inputs).view(rollout.terminated.shape)
        returns, advantages = self._returns_and_advantages(rollout, rewards, outputs)
        explained = _explained_variance(self._scaled(outputs).flatten(1), returns)
        scale, shift = self._return_statistics.update(returns)
        self.networks.rescale_values(width, scale, shift)
        networks = self.networks.members(0, width)
        parameters = networks.distribution_parameters
        mean = self._return_statistics.mean[:width]
        deviation = self._return_statistics.deviation[:width]
        policy_outputs, actions = rollout.outputs.flatten(1, 2), rollout.actions.flatten(1, 2)
        batch = Batch(
            observations=rollout.normalized.flatten(1, 2),
            actions=actions,
            outputs=policy_outputs,
            log_probabilities=self.distribution.log_probability(
                policy_outputs, rollout.noise.flatten(1, 2), actions, parameters
            ),
            advantages=advantages,
            values=outputs.flatten(1) * scale + shift,
            targets=(returns - mean) / deviation,
            parameters=parameters.clone(),
        )
        kl, policy_loss, value_loss = self._update.run(batch, self._permutations[:width])
        self.observation_statistics.update(rollout.observations.flatten(1, 2))
        numbers = {
            "action_saturation": self.distribution.saturation(rollout.actions),
            "action_std": self.distribution.std(parameters),
            "learning_rate": self._learning_rate[:width, 0].clone(),
            "kl": kl,
            "entropy": self.distribution.entropy(policy_outputs, parameters),
            "value_loss": value_loss,
            "policy_loss": policy_loss,
            "explained_variance": explained,
        }
        healthy = self.networks.parameters[:width].isfinite().all(dim=1)
        return {name: each for name, each in numbers.items() if each is not None}, healthy

    def scores(self, member: int, rollout: Rollout) -> Tensor:
        """Gradients of the log-probability of a member's actions by the network's outputs. Shape:
        (steps * num_envs, num_outputs)."""
        each = (rollout.outputs, rollout.actions)
        outputs, actions = (part[member : member + 1].flatten(1, 2).mT for part in each)
        ones = torch.ones_like(outputs[:, :1])
        parameters = self.networks.members(member, member + 1).distribution_parameters
        likelihood = self.distribution.likelihood(outputs, parameters, actions, ones)
        found = torch.empty_like(outputs)
        likelihood.write_gradients(ones, 0.0, found, torch.empty_like(parameters))
        return found[0].T

    def policy_tensors(self, member: int) -> dict[str, Tensor]:
        """CPU copies of the tensors that a member's policy needs to act."""
        named = self.networks.member_tensors(member).items()
        tensors = {name: tensor for name, tensor in named if not name.startswith("value.")}
        inputs, statistics = self._inputs(member), self.observation_statistics
        tensors["policy.0.weight"] = tensors["policy.0.weight"][:inputs]
        tensors["observation_mean"] = statistics.mean[member, :inputs].clone()
        tensors["observation_deviation"] = statistics.deviation()[member, :inputs].clone()
        return {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}

    def _scaled(self, outputs: Tensor) -> Tensor:
        """Values in the reward's scale from the network's outputs, shape (members, …)."""
        width, shape = len(outputs), (len(outputs), *([1] * (outputs.dim() - 1)))
        statistics = self._return_statistics
        deviation, mean = statistics.deviation[:width], statistics.mean[:width]
        return outputs * deviation.view(shape) + mean.view(shape)

    def _returns_and_advantages(
        self, rollout: Rollout, rewards: Tensor, outputs: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Returns, and advantages normalised per member. Shape of both: (members, rows)."""
        width, steps = rewards.shape[0], rewards.shape[1]
        values = self._scaled(outputs)
        next_values = torch.empty_like(values)
        next_values[:, :-1] = values[:, 1:]
        next_values[:, -1] = self._state_values(rollout.last_observations)
        # Only steps at which some episode was truncated, but for all environments: a matrix product
        # of another height may round differently.
        cut = rollout.truncated.any(dim=2).any(dim=0).nonzero().flatten().tolist()
        for step in cut:
            reached = self._state_values(rollout.final_observations[:, step])
            was_cut = rollout.truncated[:, step]
            next_values[:, step] = torch.where(was_cut, reached, next_values[:, step])
        ended, settings = rollout.terminated | rollout.truncated, self._settings
        rest = ended, rollout.terminated, settings.discount, settings.gae_lambda
        advantages = generalized_advantages(rewards, values, next_values, *rest)
        returns = (advantages + values).view(width, steps * rewards.shape[2])
        advantages = advantages.view(returns.shape)
        centred = advantages - advantages.mean(dim=1, keepdim=True)
        deviation = centred.square().mean(dim=1, keepdim=True).sqrt()
        return returns, centred / (deviation + 1e-8)

    def _state_values(self, observations: Tensor) -> Tensor:
        """Values of states. `observations`: (members, num_envs, num_observations), raw."""
        width, statistics = len(observations), self.observation_statistics
        mean = statistics.mean[:width].unsqueeze(1)
        inverse_deviation = statistics.deviation()[:width].reciprocal().unsqueeze(1)
        inputs = with_ones(normalize(observations, mean, inverse_deviation))
        return self._scaled(self.networks.members(0, width).values(inputs))


def _explained_variance(values: Tensor, returns: Tensor) -> Tensor:
    """1 − Var[returns − values] / Var[returns], 0 for equal returns. Shape: (members,)."""
    total = returns.var(dim=1, correction=0)
    rest = (returns - values).var(dim=1, correction=0)
    return torch.where(total > 0.0, 1.0 - rest / total, 0.0)


def curve_points(
    env_steps: Mapping[int, int],
    rollout: Rollout,
    rewards: Tensor,
    components: Mapping[int, Mapping[str, Tensor]],
    episodes: EndedEpisodes,
    learning: Mapping[str, Tensor],
) -> tuple[dict[int, CurvePoint], dict[int, str]]:
    """Points of the members, with one transfer from the device, and by member the name of a number
    that is not finite. `env_steps`: each member's; `rewards`: shape (members, steps, num_envs);
    `components`: shape (rows,) each; `learning`: of `learn`."""
    named = {"reward": rewards.flatten(1).mean(dim=1), **learning}
    sums = episodes.count, episodes.fitness_sum, episodes.length_sum
    numbers = torch.stack([*sums, *named.values()], dim=1).tolist()
    causes = list(rollout.causes)
    counted = ((rollout.causes[each] & episodes.counted).flatten(1) for each in causes)
    ended = torch.stack([each.sum(dim=1) for each in counted], dim=1).tolist()
    moments = _component_moments([components[member] for member in env_steps])
    points, faults = {}, {}
    for (member, steps), (means, magnitudes, deviations) in zip(
        env_steps.items(), moments, strict=True
    ):
        counts = zip(causes, ended[member], strict=True)
        count, fitness, length, *rest = numbers[member]
        absent = dict.fromkeys(("action_saturation", "action_std"))
        values: dict[str, Any] = {**absent, **dict(zip(named, rest, strict=True))}
        try:
            points[member] = CurvePoint(
                env_steps=steps,
                fitness=fitness / count if count else None,
                episode_length=length / count if count else None,
                episodes=round(count),
                components=means,
                component_magnitudes=magnitudes,
                component_deviations=deviations,
                terminations={cause: each for cause, each in counts if each},
                **values,
            )
        except ValidationError as error:  # a sum or square of finite values can overflow
            faults[member] = ".".join(str(part) for part in error.errors()[0]["loc"])
    return points, faults


def _component_moments(
    members: Sequence[Mapping[str, Tensor]],
) -> list[tuple[dict[str, float], dict[str, float], dict[str, float]]]:
    """Mean, mean magnitude and deviation of components, by member for equal rounding."""
    tables = [torch.stack(list(components.values())) for components in members if components]
    triples = ((each.mean(1), each.abs().mean(1), each.std(1, correction=0)) for each in tables)
    moments = [torch.stack(each, dim=1) for each in triples]
    columns = iter(torch.cat(moments).tolist() if moments else ())
    result = []
    for components in members:
        own = {name: next(columns) for name in components}
        means, magnitudes, deviations = (
            {name: values[index] for name, values in own.items()} for index in range(3)
        )
        result.append((means, magnitudes, deviations))
    return result
