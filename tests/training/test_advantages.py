"""Advantages against a plain loop over one environment at a time."""

from __future__ import annotations

import torch

from eureka_agent.training.update import generalized_advantages


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
