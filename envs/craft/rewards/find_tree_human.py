"""New cells in view, and the way to a tree in view as a potential (Ng, Harada, Russell 1999), in
the manner of Auto MC-Reward's dense rewards (Li et al. 2024). Weights are our own.

A tree that is not in view counts as one at a distance of 8 cells: turning away takes back what
coming near has paid.
"""

from __future__ import annotations

from torch import Tensor


def compute_reward(
    new_cells_seen: Tensor,
    tree_distance: Tensor,
    previous_tree_distance: Tensor,
    succeeded: Tensor,
    steps_left: Tensor,
) -> tuple[Tensor, dict[str, Tensor]]:
    components = {
        "exploration": 0.001 * new_cells_seen,
        "way": 0.04 * (previous_tree_distance - tree_distance),
        "tree": succeeded * (0.1 + 0.9 * steps_left),
    }
    return sum(components.values()), components
