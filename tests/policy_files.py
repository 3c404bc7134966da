"""Policies that were never trained, for tests of what is done with policies."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor

from eureka_agent.training.distributions import ActionDistribution, Gaussian
from eureka_agent.training.policy import Policy, policy_bytes


def save_policy(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write a policy's file."""
    path.write_bytes(policy_bytes(tensors, metadata))


def random_tensors(
    observations: int, actions: int, seed: int, hidden: tuple[int, ...] = (16,), scale: float = 1.0
) -> dict[str, Tensor]:
    """A policy's tensors; `scale`: how strongly its actions depend on what it sees."""
    generator = torch.Generator().manual_seed(seed)
    tensors = {
        "observation_mean": 0.1 * torch.randn(observations, generator=generator),
        "observation_deviation": 0.5 + torch.rand(observations, generator=generator),
        "log_std": torch.full((actions,), -0.5),
    }
    for index, (inputs, outputs) in enumerate(pairwise((observations, *hidden, actions))):
        weight = torch.randn(inputs, outputs, generator=generator)
        tensors[f"policy.{index}.weight"] = scale / inputs**0.5 * weight
        tensors[f"policy.{index}.bias"] = 0.1 * torch.randn(1, outputs, generator=generator)
    return tensors


def random_policy(
    observations: int,
    actions: int,
    seed: int,
    hidden: tuple[int, ...] = (16,),
    scale: float = 1.0,
    distribution: ActionDistribution | None = None,
) -> Policy:
    """A policy in memory, by default a Gaussian one."""
    distribution = distribution or Gaussian(actions)
    tensors = random_tensors(observations, distribution.num_outputs, seed, hidden, scale)
    return Policy(tensors, "elu", distribution.metadata)


def save_random_policy(
    path: Path, observations: int, actions: int, seed: int, bias: float = 0.0
) -> Path:
    """A policy in a file; `bias` is added to every action. Returns `path`."""
    tensors = random_tensors(observations, actions, seed)
    tensors["policy.1.bias"] += bias
    save_policy(path, tensors, {"activation": "elu"})
    return path
