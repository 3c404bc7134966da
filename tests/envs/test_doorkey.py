"""DoorKey in torch against MiniGrid itself, cell by cell, and its human reward by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from by_hand import rewarded

from eureka_agent.simulation.loading import load_environment

FORWARD, PICK_UP, DROP, TOGGLE = 2, 3, 4, 5
NUMBERS = {"wall": 1, "goal": 2, "key": 3}
"""Ours, by MiniGrid's names."""


def sized(rows: int, size: int) -> Any:
    environment: Any = load_environment("doorkey").environment_class(rows, size=size, seed=4)
    environment.reset()
    return environment


def minigrid_copy(environment: Any, row: int) -> Any:
    """MiniGrid with the layout of one of our rows."""
    pytest.importorskip("minigrid")
    from minigrid.core.grid import Grid
    from minigrid.core.world_object import Door, Goal, Key
    from minigrid.envs.doorkey import DoorKeyEnv

    size = environment.size
    copy = DoorKeyEnv(size=size, max_steps=360)
    copy.reset(seed=0)
    copy.gen_obs = dict  # which is slow
    places = [int(each[row]) for each in (environment.agent, environment.key, environment.door)]
    agent, key, door = ((place % size, place // size) for place in places)
    copy.grid = Grid(size, size)
    copy.grid.wall_rect(0, 0, size, size)
    copy.grid.vert_wall(door[0], 0)
    copy.grid.set(size - 2, size - 2, Goal())
    copy.grid.set(*door, Door("yellow", is_locked=True))
    copy.grid.set(*key, Key("yellow"))
    copy.agent_pos, copy.agent_dir = agent, int(environment.direction[row])
    return copy


def numbered(copy: Any) -> list[int]:
    """MiniGrid's cells row by row, in our numbers."""
    kinds = []
    for cell in copy.grid.grid:
        if cell is None:
            kinds.append(0)
        elif cell.type == "door":
            kinds.append(4 if cell.is_open else 6 if cell.is_locked else 5)
        else:
            kinds.append(NUMBERS[cell.type])
    return kinds


def eager_actions(variables: Any, generator: np.random.Generator) -> np.ndarray:
    """Random actions, of which half walk toward the next of key, door and goal."""
    values = {name: value.numpy() for name, value in variables.items()}
    behind, locked = values["in_goal_room"] > 0.5, values["door_unlocked"] < 0.5
    to_key = locked & (values["has_key"] < 0.5)
    target = np.where(to_key[:, None], values["key_offset_b"], values["door_offset_b"])
    target = np.where(behind[:, None], values["goal_offset_b"], target)
    walks = np.where(target[:, 0] > 0.5, FORWARD, np.where(target[:, 1] > 0.0, 1, 0))
    shut = (values["facing_door"] > 0.5) & (values["door_open"] < 0.5)
    walks = np.where(shut, TOGGLE, np.where(values["facing_key"] > 0.5, PICK_UP, walks))
    eager = generator.random(len(walks)) < 0.5
    return np.where(eager, walks, generator.integers(0, 7, len(walks)))


@pytest.mark.parametrize("size", [5, 6, 8])
def test_every_cell_is_minigrids_after_every_step(size: int) -> None:
    rows = 8
    environment = sized(rows, size)
    copies = [minigrid_copy(environment, row) for row in range(rows)]
    fitness = load_environment("doorkey").task(None)[1].fitness
    generator = np.random.default_rng(2)
    seen: set[str] = set()
    playing = set(range(rows))
    for step in range(150):
        actions = eager_actions(environment.read_variables(), generator)
        transition = environment.advance(torch.from_numpy(actions).float().unsqueeze(-1))
        variables = transition.variables
        score = fitness(variables["succeeded"], variables["steps_left"])
        for row in sorted(playing):
            copy, before = copies[row], numbered(copies[row])
            _, reward, terminated, _, _ = copy.step(int(actions[row]))
            assert environment.cells[row].tolist() == numbered(copy), (row, step)
            assert environment.agent[row] == copy.agent_pos[0] + copy.agent_pos[1] * copy.width
            assert environment.direction[row] == copy.agent_dir
            assert bool(environment.carrying[row]) == (copy.carrying is not None)
            assert bool(transition.terminated[row]) == terminated
            assert float(score[row]) == pytest.approx(float(reward), abs=1e-5)
            front = copy.grid.get(*copy.front_pos)
            kind = "nothing" if front is None else front.type
            for name in ("wall", "key", "door", "goal"):
                assert bool(variables[f"facing_{name}"][row]) == (name == kind)
            for was, is_now in zip(before, numbered(copy), strict=True):
                seen |= {f"{was}->{is_now}"} if was != is_now else set()
            if terminated:
                playing.remove(row)
    # taken and dropped, unlocked, closed and opened again; and most episodes came to the goal
    assert seen == {"3->0", "0->3", "6->4", "4->5", "5->4"}
    assert len(playing) <= rows // 2


def placed(agent: tuple[int, int], direction: int, key: tuple[int, int]) -> Any:
    """6 × 6 cells with the wall in column 3 and the door in row 2."""
    environment = sized(1, 6)
    environment.cells[0] = environment._rooms[3]
    for name, (column, row), kind in (("key", key, 3), ("door", (3, 2), 6)):
        getattr(environment, name)[0] = column + 6 * row
        environment.cells[0, column + 6 * row] = kind
    environment.agent[0], environment.direction[0] = agent[0] + 6 * agent[1], direction
    environment.compute_observations()
    return environment


def test_offsets_are_those_that_the_agent_sees() -> None:
    # at column 1, row 2 and looking down: the key two rows on and one column to its left
    variables = placed((1, 2), 1, (2, 4)).read_variables()
    assert variables["key_offset_b"].tolist() == [[2.0, -1.0]]
    assert variables["door_offset_b"].tolist() == [[0.0, -2.0]]
    assert variables["goal_offset_b"].tolist() == [[2.0, -3.0]]
    assert variables["key_distance"].tolist() == [3.0]
    assert variables["agent_direction"].tolist() == [[0.0, 1.0]]
    assert variables["goal_position"].tolist() == [[4.0, 4.0]]


def test_the_human_reward_pays_for_subgoals_once() -> None:
    # key in front, door two cells ahead of the key: take it, drop it, take it again
    environment = placed((1, 2), 0, (2, 2))
    parts = rewarded(environment, "doorkey", None, [PICK_UP, DROP, PICK_UP, FORWARD, TOGGLE])
    assert [each["key"] for each in parts] == pytest.approx([0.2, -0.2, 0.2, 0.0, 0.0])
    assert [each["door"] for each in parts] == pytest.approx([0.0, 0.0, 0.0, 0.0, 0.2])
    # the way by the key is as long as the way that is left with it: only the step forward counts
    assert [each["way"] for each in parts] == pytest.approx([0.0, 0.0, 0.0, 0.02, 0.0])
    # two cells through the door, then down twice: 4 cells, with a turn to the right between them
    parts = rewarded(environment, "doorkey", None, [FORWARD, FORWARD, 1, FORWARD, FORWARD])
    assert [each["way"] for each in parts] == pytest.approx([0.02, 0.02, 0.0, 0.02, 0.02])
    # ten steps of 360
    assert parts[-1]["goal"] == pytest.approx(1.0 - 0.9 * 10 / 360)
