"""New cells in view at once, and a charge for death and for facing lava, in the manner of the dense
rewards of Auto MC-Reward (Li et al. 2024), which keep an agent off lava. Weights are our own."""

from __future__ import annotations

from torch import Tensor


def compute_reward(
    new_cells_seen: Tensor, lava_ahead: Tensor, terminated: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    components = {
        "exploration": 0.02 * new_cells_seen,
        "lava": -0.01 * lava_ahead,
        "death": -2.0 * terminated,
    }
    return sum(components.values()), components
