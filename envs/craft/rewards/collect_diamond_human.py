"""Subgoals and the way to the diamond, in the manner of "Words as Beacons" (Ruiz-Gonzalez et al.
2025): a table, a furnace, an iron pickaxe, the diamond. Each is paid once. Weights are our own.

The way to the nearest diamond counts once there is an iron pickaxe; a diamond out of view counts as
8 cells away.
"""

from __future__ import annotations

from torch import Tensor


def compute_reward(
    tables_placed: Tensor,
    previous_tables_placed: Tensor,
    furnaces_placed: Tensor,
    previous_furnaces_placed: Tensor,
    has_iron_pickaxe: Tensor,
    previous_has_iron_pickaxe: Tensor,
    diamond_distance: Tensor,
    previous_diamond_distance: Tensor,
    new_cells_seen: Tensor,
    lava_ahead: Tensor,
    succeeded: Tensor,
    steps_left: Tensor,
) -> tuple[Tensor, dict[str, Tensor]]:
    table = tables_placed.clamp(max=1.0) - previous_tables_placed.clamp(max=1.0)
    furnace = furnaces_placed.clamp(max=1.0) - previous_furnaces_placed.clamp(max=1.0)
    # a mined diamond is gone, and the next one is no step away
    counts = previous_has_iron_pickaxe * (1.0 - succeeded)
    components = {
        "exploration": 0.001 * new_cells_seen,
        "lava": -0.01 * lava_ahead,
        "way": 0.03 * counts * (previous_diamond_distance - diamond_distance),
        "table": 0.1 * table,
        "furnace": 0.1 * furnace,
        "pickaxe": 0.3 * (has_iron_pickaxe - previous_has_iron_pickaxe),
        "diamond": succeeded * (0.1 + 0.9 * steps_left),
    }
    return sum(components.values()), components
