"""Subgoals and the way to the next one, in the manner of "Words as Beacons" (Ruiz-Gonzalez et al.
2025): a stone, a table, a stone pickaxe, iron. Each is paid once. Weights are our own.

The way to the nearest iron counts once there is a stone pickaxe; iron out of view counts as 8 cells
away.
"""

from __future__ import annotations

from torch import Tensor


def compute_reward(
    stones_mined: Tensor,
    previous_stones_mined: Tensor,
    tables_placed: Tensor,
    previous_tables_placed: Tensor,
    has_stone_pickaxe: Tensor,
    previous_has_stone_pickaxe: Tensor,
    iron_distance: Tensor,
    previous_iron_distance: Tensor,
    new_cells_seen: Tensor,
    succeeded: Tensor,
    steps_left: Tensor,
    lava_ahead: Tensor,
) -> tuple[Tensor, dict[str, Tensor]]:
    stone = stones_mined.clamp(max=1.0) - previous_stones_mined.clamp(max=1.0)
    table = tables_placed.clamp(max=1.0) - previous_tables_placed.clamp(max=1.0)
    # mined iron is gone, and the next one is no step away
    counts = previous_has_stone_pickaxe * (1.0 - succeeded)
    components = {
        "exploration": 0.001 * new_cells_seen,
        "lava": -0.01 * lava_ahead,
        "way": 0.03 * counts * (previous_iron_distance - iron_distance),
        "stone": 0.1 * stone,
        "table": 0.1 * table,
        "pickaxe": 0.3 * (has_stone_pickaxe - previous_has_stone_pickaxe),
        "iron": succeeded * (0.1 + 0.9 * steps_left),
    }
    return sum(components.values()), components
