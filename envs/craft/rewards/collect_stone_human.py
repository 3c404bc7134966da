"""Subgoals and the way to the next one, in the manner of "Words as Beacons" (Ruiz-Gonzalez et al.
2025): wood, table, pickaxe, stone. Each is paid once. Weights are our own.

The way counts within a stage: to a tree until there is wood for table and pickaxe (3), to the table
if it is too far away to work at, and to a stone once there is a pickaxe. What is not in view counts
as 8 cells away.
"""

from __future__ import annotations

import torch
from torch import Tensor


def stage_and_distance(
    wood: Tensor,
    tables: Tensor,
    has_pickaxe: Tensor,
    tree_distance: Tensor,
    table_distance: Tensor,
    stone_distance: Tensor,
) -> tuple[Tensor, Tensor]:
    """Number of the stage (0 wood, 1 table, 2 stone) and cells to walk in it."""
    has_table = tables > 0.5
    enough = wood > torch.where(has_table, 0.5, 2.5)
    stage = torch.where(has_pickaxe > 0.5, 2.0, enough.float())
    to_table = torch.where(has_table, (table_distance - 1.0).clamp(min=0.0), 0.0)
    distance = torch.where(enough, to_table, tree_distance)
    return stage, torch.where(has_pickaxe > 0.5, stone_distance, distance)


def compute_reward(
    wood_carried: Tensor,
    previous_wood_carried: Tensor,
    wood_collected: Tensor,
    previous_wood_collected: Tensor,
    tables_placed: Tensor,
    previous_tables_placed: Tensor,
    has_wood_pickaxe: Tensor,
    previous_has_wood_pickaxe: Tensor,
    tree_distance: Tensor,
    previous_tree_distance: Tensor,
    table_distance: Tensor,
    previous_table_distance: Tensor,
    stone_distance: Tensor,
    previous_stone_distance: Tensor,
    new_cells_seen: Tensor,
    succeeded: Tensor,
    steps_left: Tensor,
) -> tuple[Tensor, dict[str, Tensor]]:
    stage_before, before = stage_and_distance(
        previous_wood_carried,
        previous_tables_placed,
        previous_has_wood_pickaxe,
        previous_tree_distance,
        previous_table_distance,
        previous_stone_distance,
    )
    stage, now = stage_and_distance(
        wood_carried,
        tables_placed,
        has_wood_pickaxe,
        tree_distance,
        table_distance,
        stone_distance,
    )
    # a felled tree or a mined stone is gone, and the next one is no step away
    took_something = (wood_collected > previous_wood_collected) | (succeeded > 0.5)
    counts = (stage == stage_before) & ~took_something
    wood = wood_collected.clamp(max=4.0) - previous_wood_collected.clamp(max=4.0)
    table = tables_placed.clamp(max=1.0) - previous_tables_placed.clamp(max=1.0)
    components = {
        "exploration": 0.001 * new_cells_seen,
        "way": 0.02 * counts * (before - now),
        "wood": 0.1 * wood,
        "table": 0.2 * table,
        "pickaxe": 0.4 * (has_wood_pickaxe - previous_has_wood_pickaxe),
        "stone": succeeded * (0.1 + 0.9 * steps_left),
    }
    return sum(components.values()), components
