"""The fitness as a reward."""

from __future__ import annotations

import torch
from torch import Tensor


def compute_reward(base_lin_vel: Tensor, commands: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    followed = torch.exp(-4.0 * (base_lin_vel[:, :2] - commands[:, :2]).square().sum(dim=-1))
    return followed, {"followed": followed}
