"""Generalised advantage estimation (Schulman et al. 2016) over stacked members."""

from __future__ import annotations

import torch
from torch import Tensor


def generalized_advantages(
    rewards: Tensor,
    values: Tensor,
    next_values: Tensor,
    ended: Tensor,
    terminated: Tensor,
    discount: float,
    gae_lambda: float,
) -> Tensor:
    """Advantage of every step. Shape of all tensors: (members, steps, num_envs).

    `next_values`: values of the states reached, before any reset. They count where an episode is
    truncated by its length (Pardo et al. 2018), not where `terminated`. `ended`: either of both.
    """
    delta = rewards + discount * next_values * ~terminated - values
    carry = (discount * gae_lambda) * ~ended
    advantages = torch.empty_like(rewards)
    running = torch.zeros_like(rewards[:, 0])
    for step in reversed(range(rewards.shape[1])):
        running = delta[:, step] + carry[:, step] * running
        advantages[:, step] = running
    return advantages
