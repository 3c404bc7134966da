"""The fitness as a reward: at the time limit the hundreds of cells seen, for an agent alive."""

from __future__ import annotations

import torch
from torch import Tensor


def compute_reward(
    cells_seen: Tensor, steps_left: Tensor, terminated: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    survived = (steps_left <= 0.0) & (terminated < 0.5)
    cells = torch.where(survived, 0.01 * cells_seen, 0.0)
    return cells, {"cells": cells}
