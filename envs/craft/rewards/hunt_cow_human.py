"""The way to a cow as a potential (Ng, Harada, Russell 1999), and a bonus for each hit, in the
manner of Auto MC-Reward's dense rewards (Li et al. 2024). Weights are our own.

A cow that is not in view counts as one at a distance of 8 cells.
"""

from __future__ import annotations

from torch import Tensor


def compute_reward(
    cow_distance: Tensor,
    previous_cow_distance: Tensor,
    cow_hits: Tensor,
    previous_cow_hits: Tensor,
    new_cells_seen: Tensor,
    succeeded: Tensor,
    steps_left: Tensor,
) -> tuple[Tensor, dict[str, Tensor]]:
    way = previous_cow_distance - cow_distance
    components = {
        "exploration": 0.001 * new_cells_seen,
        # a cow that is eaten is no longer in view, which is no step away
        "way": 0.03 * way * (1.0 - succeeded),
        "hits": 0.1 * (cow_hits - previous_cow_hits),
        "cow": succeeded * (0.1 + 0.9 * steps_left),
    }
    return sum(components.values()), components
