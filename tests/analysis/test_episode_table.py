"""The rows and the moments of an episode's table."""

from __future__ import annotations

import time

import numpy as np
import pytest

from eureka_agent.analysis.episode_table import MOST_ROWS, failed, moments, trajectory_table
from eureka_agent.records import TaskDescription, VariableSpec


def seeing(description: TaskDescription, **shapes: tuple[int, ...]) -> TaskDescription:
    """The description with these public variables."""
    variables = tuple(
        VariableSpec(name=name, shape=shape, unit="m", frame="-", doc="d") for name, shape in shapes.items()
    )
    return description.model_copy(update={"variables": variables})


def rows_of(table: str) -> list[str]:
    return [line.split("  ")[0] for line in table.split("\n")]


def test_a_failed_episode_is_shown_closely_before_its_end() -> None:
    # 101 steps: the 101/64 = 1.6th, and to 101 in three equal ratios of 4: 1.6, 6.3, 25, 101; then 20, 10, 5, 2 before the last
    assert moments(101, True) == [0, 1, 5, 24, 80, 90, 95, 98, 100]
    assert moments(4, True) == [0, 1, 2, 3]
    assert moments(1, True) == moments(1, False) == [0]


@pytest.mark.parametrize("steps", [2, 40, 100, 1000])
def test_an_episode_that_lasted_is_shown_densely_at_first(steps: int) -> None:
    shown = moments(steps, False)
    assert shown[0] == 0
    assert shown[-1] == steps - 1
    assert len(shown) <= 8
    assert len([step for step in shown if step < steps / 8]) >= len(shown) // 2


def test_what_is_constant_stands_below_the_table(description: TaskDescription) -> None:
    seen = seeing(description, goal=(2,), height=(), lamps=(6,))
    # the height moves by a hundredth, the goal by a ten-thousandth of a thousandth of its size
    goal = np.stack((np.full(50, 5.0), np.linspace(-1.0, -1.0 + 1e-7, 50)), axis=1)
    table = trajectory_table({"goal": goal, "height": np.linspace(1.0, 1.01, 50), "lamps": np.ones((50, 6))}, seen)
    assert rows_of(table) == ["time [s]", "height [m]", "constant: goal (5, -1), lamps"]


def test_what_moves_with_another_is_named_not_shown(description: TaskDescription) -> None:
    time = np.linspace(0.0, 6.0, 200)
    position = np.stack((time, np.sin(time), np.cos(3 * time)), axis=1)
    episode = {"height": 2.0 - position[:, 2], "position": position, "speed": np.sin(2 * time)}
    table = trajectory_table(episode, seeing(description, height=(), position=(3,), speed=()))
    assert rows_of(table) == ["time [s]", "position [m]", "speed [m]", "moves with another: height with position[2]"]
    # a noisy copy says something of its own: cos has a variance of about 1/2, noise of 0.2 leaves r = 1/sqrt(1 + 0.04/0.5) = 0.96
    noisy = episode | {"height": position[:, 2] + np.random.default_rng(0).normal(0.0, 0.2, 200)}
    assert "height [m]" in rows_of(trajectory_table(noisy, seeing(description, height=(), position=(3,), speed=())))


def test_of_many_joints_those_are_shown_that_move_most(description: TaskDescription) -> None:
    generator = np.random.default_rng(1)
    joints = generator.normal(size=(60, 8)) * np.array([1, 2, 1, 50, 1, 9, 1, 1])
    joints[0] = np.arange(8)
    table = trajectory_table({"joints": joints}, seeing(description, joints=(8,)))
    assert rows_of(table) == ["time [s]", "joints[3, 5] [m]"]
    assert "joints[3, 5] [m]  (3, 5)  " in table
    # a joint that moves as another one says nothing besides
    joints[:, 5] = -joints[:, 3]
    assert "joints[1, 3] [m]" in trajectory_table({"joints": joints}, seeing(description, joints=(8,)))


def test_a_long_vector_that_moves_with_another_is_not_shown_by_other_entries(description: TaskDescription) -> None:
    joints = np.random.default_rng(4).normal(size=(60, 8))
    episode = {"joints": joints, "scaled": (joints - 0.5) / np.arange(1.0, 9.0), "nearness": np.abs(joints - 0.5) * 2.0}
    table = trajectory_table(episode, seeing(description, joints=(8,), scaled=(8,), nearness=(8,)))
    assert [row.partition("[")[0] for row in rows_of(table)[:2]] == ["time ", "joints"]
    assert rows_of(table)[2] == "moves with another: scaled with joints[0], nearness with |scaled[0]|"
    assert len(rows_of(table)) == 3


def test_the_fitness_of_a_step_and_the_end_need_no_variable(description: TaskDescription) -> None:
    ended = np.zeros(10)
    ended[-1] = 1.0
    episode = {"place": np.arange(10.0) ** 3, "terminated": ended, "fitness": np.full(10, 0.25)}
    table = trajectory_table(episode, seeing(description, place=(), terminated=()))
    assert rows_of(table) == ["time [s]", "fitness a step", "place [m]"]


def test_a_table_is_bounded(description: TaskDescription) -> None:
    generator = np.random.default_rng(2)
    names = [f"v{number}" for number in range(100)]
    episode = {name: generator.normal(size=40) for name in names}
    table = trajectory_table(episode, seeing(description, **dict.fromkeys(names, ())))
    assert len(rows_of(table)) == 1 + MOST_ROWS + 1
    assert len(table) < 6_000


def test_a_camera_is_compared_in_a_moment(description: TaskDescription) -> None:
    pictures = np.random.default_rng(5).random((500, 64, 64))
    names = [f"camera{number}" for number in range(6)]
    began = time.process_time()
    table = trajectory_table(dict.fromkeys(names, pictures), seeing(description, **dict.fromkeys(names, (64, 64))))
    assert time.process_time() - began < 5.0
    assert len(rows_of(table)) == 3
    assert "camera5 with camera0[" in table


def test_numbers_beyond_all_bounds_are_compared_too(description: TaskDescription) -> None:
    wild = np.array([0.0, np.inf, -np.inf, 1e308, np.nan, 3.0])
    with np.errstate(all="raise"):
        table = trajectory_table({"a": wild, "b": wild[::-1].copy()}, seeing(description, a=(), b=()))
    assert rows_of(table)[:2] == ["time [s]", "a [m]"]


def test_arrays_that_do_not_fit_are_left_out(description: TaskDescription) -> None:
    episode = {"a": np.arange(5.0), "b": np.arange(3.0), "c": np.array(["x"] * 5), "d": np.array(1.0)}
    table = trajectory_table(episode, seeing(description, a=(), b=(), c=(), d=()))
    assert rows_of(table) == ["time [s]", "a [m]"]
    assert trajectory_table({}, description) == "no steps"
    assert "nan" not in trajectory_table({"a": np.array([0.0, np.nan, 2.0])}, seeing(description, a=()))


def test_an_end_is_read_from_whatever_shape_a_worker_wrote() -> None:
    assert failed({"terminated": np.array([False, True])})
    assert failed({"terminated": np.array(True)})
    assert not failed({"terminated": np.zeros((0,), dtype=bool)})
