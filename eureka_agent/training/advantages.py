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
    """Advantage of every step. Shape of all: (members, steps, num_envs). `next_values`: before
    resets; they count at truncations (Pardo et al. 2018), not if `terminated`. `ended`: either."""
    delta = rewards + discount * next_values * ~terminated - values
    carry = (discount * gae_lambda) * ~ended
    advantages = torch.empty_like(rewards)
    running = torch.zeros_like(rewards[:, 0])
    for step in reversed(range(rewards.shape[1])):
        running = delta[:, step] + carry[:, step] * running
        advantages[:, step] = running
    return advantages
