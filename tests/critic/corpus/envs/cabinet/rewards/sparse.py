"""The fitness as a reward."""

from __future__ import annotations

from torch import Tensor


def compute_reward(cabinet_dof_pos: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    opened = (cabinet_dof_pos[:, 3] > 0.39).float()
    return opened, {"opened": opened}
