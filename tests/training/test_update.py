"""PPO's update against the textbook's, Adam against torch's, advantages against a plain loop."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from eureka_agent.settings import TrainingSettings
from eureka_agent.training.distributions import ActionDistribution, Categorical, Gaussian
from eureka_agent.training.networks import StackedNetworks, with_ones
from eureka_agent.training.update import (
    Batch,
    PPOUpdate,
    StackedAdam,
    adapted_learning_rate,
    generalized_advantages,
)

MEMBERS, ROWS, OBSERVATIONS, ACTIONS, HIDDEN = 3, 12, 4, 2, (6, 5)


@dataclass
class Independent:
    """torch's own distributions side by side: one Normal, or a Categorical for each choice."""

    parts: list[torch.distributions.Distribution]

    def log_prob(self, actions: Tensor) -> Tensor:
        if isinstance(self.parts[0], torch.distributions.Normal):
            return self.parts[0].log_prob(actions).sum(dim=-1)
        return torch.stack(
            [part.log_prob(actions[..., index]) for index, part in enumerate(self.parts)]
        ).sum(dim=0)

    def sample(self) -> Tensor:
        drawn = [part.sample() for part in self.parts]
        is_normal = isinstance(self.parts[0], torch.distributions.Normal)
        return drawn[0] if is_normal else torch.stack(drawn, dim=-1).float()

    def entropy(self) -> Tensor:
        entropies = [part.entropy() for part in self.parts]
        is_normal = isinstance(self.parts[0], torch.distributions.Normal)
        return entropies[0].sum(dim=-1) if is_normal else torch.stack(entropies).sum(dim=0)

    def kl_from(self, old: Independent) -> Tensor:
        divergences = [
            torch.distributions.kl_divergence(one, other)
            for one, other in zip(old.parts, self.parts, strict=True)
        ]
        is_normal = isinstance(self.parts[0], torch.distributions.Normal)
        return divergences[0].sum(dim=-1) if is_normal else torch.stack(divergences).sum(dim=0)


def of_torch(distribution: ActionDistribution, outputs: Tensor, log_std: Tensor) -> Independent:
    if isinstance(distribution, Categorical):
        groups = outputs.split(distribution.choices, dim=-1)
        return Independent([torch.distributions.Categorical(logits=group) for group in groups])
    return Independent([torch.distributions.Normal(outputs, log_std.exp())])


def random_batch(
    networks: StackedNetworks, distribution: ActionDistribution, generator: torch.Generator
) -> Batch:
    """Data of a policy a little off the present one, so that ratios and values leave the clip range
    in places."""
    views = networks.members(0, MEMBERS)
    observations = with_ones(torch.randn(MEMBERS, ROWS, OBSERVATIONS, generator=generator))
    outputs = views.outputs(observations)
    outputs = outputs + 0.3 * torch.randn(outputs.shape, generator=generator)
    parameters = views.distribution_parameters.clone() + 0.1
    old = of_torch(distribution, outputs, parameters.unsqueeze(1))
    with torch.random.fork_rng():
        torch.manual_seed(8)
        actions = old.sample()
    values = views.values(observations) + 0.3 * torch.randn(MEMBERS, ROWS, generator=generator)
    return Batch(
        observations=observations,
        actions=actions,
        outputs=outputs,
        log_probabilities=old.log_prob(actions),
        advantages=torch.randn(MEMBERS, ROWS, generator=generator),
        values=values,
        targets=values + torch.randn(MEMBERS, ROWS, generator=generator),
        parameters=parameters,
    )


def perceptron(tensors: dict[str, Tensor], name: str, inputs: Tensor) -> Tensor:
    for index in range(3):
        inputs = inputs @ tensors[f"{name}.{index}.weight"] + tensors[f"{name}.{index}.bias"]
        if index < 2:
            inputs = torch.nn.functional.elu(inputs)
    return inputs


def reference(
    tensors: dict[str, Tensor],
    distribution: ActionDistribution,
    batch: Batch,
    permutations: Tensor,
    settings: TrainingSettings,
) -> tuple[float, float]:
    """Update one member's tensors in place, as the paper has it; returns the last learning rate and
    the mean KL."""
    for tensor in tensors.values():
        tensor.requires_grad_()
    optimizer = torch.optim.Adam(tensors.values(), lr=settings.learning_rate)
    rate, divergences = settings.learning_rate, []
    size = ROWS // settings.minibatches
    for epoch in range(settings.epochs):
        for part in range(settings.minibatches):
            rows = permutations[epoch, part * size : (part + 1) * size]
            outputs = perceptron(tensors, "policy", batch.observations[0, rows, :-1])
            log_std = tensors.get("log_std", torch.zeros(0))
            policy = of_torch(distribution, outputs, log_std)
            old = of_torch(distribution, batch.outputs[0, rows], batch.parameters[0])
            kl = float(policy.kl_from(old).mean().detach())
            divergences.append(kl)
            if settings.desired_kl and kl > 2 * settings.desired_kl:
                rate = max(1e-5, rate / 1.5)
            elif settings.desired_kl and 0.0 < kl < settings.desired_kl / 2:
                rate = min(1e-2, rate * 1.5)
            for group in optimizer.param_groups:
                group["lr"] = rate
            ratio = (
                policy.log_prob(batch.actions[0, rows]) - batch.log_probabilities[0, rows]
            ).exp()
            advantage = batch.advantages[0, rows]
            surrogate = torch.min(
                ratio * advantage, ratio.clamp(1 - settings.clip, 1 + settings.clip) * advantage
            )
            value = perceptron(tensors, "value", batch.observations[0, rows, :-1]).squeeze(-1)
            value_loss = (value - batch.targets[0, rows]).square()
            if settings.clip_value_loss:
                old_value = batch.values[0, rows]
                clipped = old_value + (value - old_value).clamp(-settings.clip, settings.clip)
                value_loss = torch.max(value_loss, (clipped - batch.targets[0, rows]).square())
            entropy = policy.entropy().mean()
            loss = (
                -surrogate.mean()
                + settings.value_coefficient * value_loss.mean()
                - settings.entropy_coefficient * entropy
            )
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(tensors.values(), settings.max_gradient_norm)
            optimizer.step()
    return rate, sum(divergences) / len(divergences)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"clip_value_loss": False, "desired_kl": 0.0},
        {
            "entropy_coefficient": 0.02,
            "value_coefficient": 0.5,
            "max_gradient_norm": 0.3,
            "clip": 0.1,
        },
    ],
)
@pytest.mark.parametrize(
    "distribution", [Gaussian(ACTIONS), Categorical((3,)), Categorical((2, 4))], ids=str
)
def test_an_update_is_that_of_the_textbook(
    distribution: ActionDistribution, changes: dict[str, float]
) -> None:
    settings = TrainingSettings.model_validate(
        {"epochs": 3, "minibatches": 2, "learning_rate": 3e-3, **changes}
    )
    generator = torch.Generator().manual_seed(4)
    networks = StackedNetworks(MEMBERS, OBSERVATIONS, distribution, HIDDEN, "elu", "cpu")
    for member in range(MEMBERS):
        networks.initialize(member, member, distribution_parameter=math.log(0.6))
    batch = random_batch(networks, distribution, generator)
    permutations = torch.stack(
        [torch.randperm(ROWS, generator=generator) for _ in range(MEMBERS * settings.epochs)]
    )
    permutations = permutations.view(MEMBERS, settings.epochs, ROWS)
    learning_rate = torch.full((MEMBERS, 1), settings.learning_rate)
    expected = [networks.member_tensors(member) for member in range(MEMBERS)]

    adam = StackedAdam(networks.parameters, networks.gradients)
    report = PPOUpdate(networks, distribution, adam, learning_rate, settings).run(
        batch, permutations
    )

    for member, tensors in enumerate(expected):
        rate, kl = reference(
            tensors, distribution, batch.members(member, member + 1), permutations[member], settings
        )
        assert learning_rate[member].item() == pytest.approx(rate, rel=1e-5)
        assert report[0, member].item() == pytest.approx(kl, rel=1e-3)
        for name, tensor in networks.member_tensors(member).items():
            torch.testing.assert_close(
                tensor, tensors[name].detach(), rtol=1e-3, atol=2e-5, msg=name
            )
    unused = networks.members(0, MEMBERS).value.forward(batch.observations)[-1][..., 1:]
    assert not unused.any()


def test_the_learning_rate_follows_the_divergence() -> None:
    rate = torch.tensor([[1e-3], [1e-3], [1e-3], [1e-3], [1e-3], [9e-3], [1.2e-5]])
    kl = torch.tensor([[0.0], [2.7e-19], [0.004], [0.01], [0.03], [0.001], [1.0]])
    # at 0.01: nothing at 0, nor at what a GPU makes of 0; up below 0.005; as it is up to 0.02; down
    # above; within 1e-5 and 1e-2
    expected = torch.tensor([[1e-3], [1e-3], [1.5e-3], [1e-3], [1e-3 / 1.5], [1e-2], [1e-5]])
    torch.testing.assert_close(adapted_learning_rate(rate, kl, 0.01), expected)


def test_every_member_steps_like_an_adam_of_its_own() -> None:
    generator = torch.Generator().manual_seed(0)
    parameters = torch.randn(3, 64, generator=generator)
    gradients = torch.zeros_like(parameters)
    rates = torch.tensor([[1e-3], [3e-2], [1e-2]])
    adam = StackedAdam(parameters, gradients)
    references = [torch.nn.Parameter(parameters[member].clone()) for member in range(3)]
    optimizers = [
        torch.optim.Adam([reference], lr=float(rates[member]))
        for member, reference in enumerate(references)
    ]
    for step in range(12):
        if (
            step == 5
            # member 1 begins anew while the others go on: its bias correction is that of a first
            # step
        ):
            adam.reset(1)
            optimizers[1] = torch.optim.Adam([references[1]], lr=float(rates[1]))
        gradients.copy_(torch.randn(3, 64, generator=generator))
        scale = torch.tensor([[1.0], [0.25], [1.0]])
        for member in range(3):
            references[member].grad = gradients[member] * scale[member]
            optimizers[member].step()
        # in two groups, as an update in chunks does it
        adam.step(0, 2, rates[:2], scale[:2])
        adam.step(2, 3, rates[2:], scale[2:])
    for member in range(3):
        torch.testing.assert_close(
            parameters[member], references[member].data, rtol=1e-5, atol=1e-7
        )


def plain(
    rewards: list[float],
    values: list[float],
    next_values: list[float],
    ends: list[str],
    gamma: float,
    lam: float,
) -> list[float]:
    """Sum of discounted TD errors up to the episode's end, written without recursion."""
    result = []
    for start in range(len(rewards)):
        total, factor = 0.0, 1.0
        for step in range(start, len(rewards)):
            bootstrap = 0.0 if ends[step] == "terminated" else next_values[step]
            total += factor * (rewards[step] + gamma * bootstrap - values[step])
            if ends[step]:
                break
            factor *= gamma * lam
        result.append(total)
    return result


def test_terminations_truncations_and_the_horizon_are_told_apart() -> None:
    members, steps, envs = 2, 7, 3
    generator = torch.Generator().manual_seed(3)
    rewards, values, next_values = torch.randn(3, members, steps, envs, generator=generator)
    terminated = torch.zeros(members, steps, envs, dtype=torch.bool)
    truncated = torch.zeros_like(terminated)
    terminated[0, 2, 0] = terminated[1, 5, 1] = terminated[1, 6, 2] = True
    truncated[0, 4, 1] = truncated[0, 6, 0] = truncated[1, 0, 0] = True
    advantages = generalized_advantages(
        rewards,
        values,
        next_values,
        terminated | truncated,
        terminated,
        discount=0.9,
        gae_lambda=0.8,
    )
    for member in range(members):
        for env in range(envs):
            ends = [
                "terminated"
                if terminated[member, step, env]
                else "truncated"
                if truncated[member, step, env]
                else ""
                for step in range(steps)
            ]
            columns = (tensor[member, :, env].tolist() for tensor in (rewards, values, next_values))
            expected = plain(*columns, ends, 0.9, 0.8)
            torch.testing.assert_close(advantages[member, :, env], torch.tensor(expected))
