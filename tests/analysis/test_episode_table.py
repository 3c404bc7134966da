"""The rows and the moments of an episode's table."""

from __future__ import annotations

import numpy as np
import pytest

from eureka_agent.analysis.episode_table import Episode, moments, trajectory_tables
from eureka_agent.records import TaskDescription, VariableSpec


def seeing(description: TaskDescription, **shapes: tuple[int, ...]) -> TaskDescription:
    """The description with these public variables."""
    variables = tuple(
        VariableSpec(name=name, shape=shape, unit="m", frame="-", doc="d")
        for name, shape in shapes.items()
    )
    return description.model_copy(update={"variables": variables})


def rows_of(table: str) -> list[str]:
    return [line.split("  ")[0] for line in table.split("\n")]


def trajectory_table(episode: Episode, description: TaskDescription) -> str:
    """The table of a single episode, with what it leaves out below."""
    tables, left_out = trajectory_tables({"worst": episode}, description)
    return "\n".join(part for part in (tables["worst"], left_out) if part)


def test_a_failed_episode_is_shown_closely_before_its_end() -> None:
    # 500 steps of 0.016 s: the last, 0.2, 0.5 and 1 s before it, which is 12.5 → 12, 31.25 → 31 and
    # 62.5 → 62 steps, and the ends of an eighth (62.5 → 63 steps), a quarter, a half and three
    # quarters
    assert moments(500, True, 0.016) == [62, 124, 249, 374, 437, 468, 487, 499]
    # of 10 steps of 0.1 s there is none 1 s before; 0.5 s before the last is the end of a half
    assert moments(10, True, 0.1) == [1, 2, 4, 7, 9]
    assert moments(1, True, 0.02) == moments(1, False, 0.02) == [0]


@pytest.mark.parametrize("control_dt", [0.004, 0.016, 0.05, 1.0])
@pytest.mark.parametrize("steps", [2, 23, 40, 183, 402, 500, 1000])
@pytest.mark.parametrize("fell", [True, False])
def test_no_gap_is_longer_than_a_quarter_and_no_two_columns_say_the_same(
    steps: int, fell: bool, control_dt: float
) -> None:
    shown = moments(steps, fell, control_dt)
    gaps = np.diff([-1, *shown])
    assert shown[-1] == steps - 1
    assert len(shown) <= 8
    # a column gives way to one that is nearer than 0.1 s or a sixteenth, so a gap may be that much
    # longer
    least = max(1, min(round(0.1 / control_dt), steps // 16))
    assert gaps.max() <= np.ceil(steps / 4) + least
    assert len(gaps) == 1 or gaps[1:].min() >= least


def test_what_moves_with_another_is_named_not_shown(description: TaskDescription) -> None:
    time = np.linspace(0.0, 6.0, 200)
    position = np.stack((time, np.sin(time), np.cos(3 * time)), axis=1)
    episode = {"height": 2.0 - position[:, 2], "position": position, "speed": np.sin(2 * time)}
    table = trajectory_table(episode, seeing(description, height=(), position=(3,), speed=()))
    assert rows_of(table)[:3] == ["time [s]", "position [m]", "speed [m]"]
    assert table.endswith("\nleft out, with what says the same: height (position[2])")
    # a noisy copy says something of its own: cos has a variance of about 1/2, noise of 0.2 leaves r
    # = 1/sqrt(1 + 0.04/0.5) = 0.96
    noisy = episode | {"height": position[:, 2] + np.random.default_rng(0).normal(0.0, 0.2, 200)}
    assert "height [m]" in rows_of(
        trajectory_table(noisy, seeing(description, height=(), position=(3,), speed=()))
    )


def described(
    description: TaskDescription, *variables: tuple[str, tuple[int, ...], str, str]
) -> TaskDescription:
    """The description with variables of these names, shapes, units and frames."""
    specs = [
        VariableSpec(name=name, shape=shape, unit=unit, frame=frame, doc="d")
        for name, shape, unit, frame in variables
    ]
    return description.model_copy(update={"variables": tuple(specs)})


def test_an_attitude_is_shown_once(description: TaskDescription) -> None:
    """A pose as an angle, its cosine and sine, its quaternion, and a velocity in two frames: the
    angle and one velocity are left."""
    yaw = np.cumsum(np.random.default_rng(3).normal(0.0, 0.1, 200))
    turned = np.stack((np.cos(yaw), np.sin(yaw)), axis=1)
    forward = 2.0 + np.sin(np.linspace(0.0, 9.0, 200))
    quaternion = np.random.default_rng(7).normal(size=(200, 4))
    quaternion /= np.linalg.norm(quaternion, axis=1, keepdims=True)
    episode = {
        "torso_orientation_w": quaternion,
        "cube_orientation_w": quaternion[::-1],
        "torso_upright": np.sin(np.arange(200.0)),
        "velocity_w": forward[:, None] * turned,
        "velocity_b": np.stack((forward, 0 * forward), axis=1),
        "heading_w": turned,
        "heading_angle": yaw,
    }
    seen = described(
        description,
        ("torso_orientation_w", (4,), "1", "world"),
        ("cube_orientation_w", (4,), "1", "world"),
        ("torso_upright", (), "1", "world"),
        ("velocity_w", (2,), "m/s", "world"),
        ("velocity_b", (2,), "m/s", "body"),
        ("heading_w", (2,), "1", "world"),
        ("heading_angle", (), "rad", "world"),
    )
    rows = rows_of(trajectory_table(episode, seen))
    assert rows[:-1] == [
        "time [s]",
        "cube_orientation_w [1]",  # of another body, whose attitude stands nowhere else
        "torso_upright [1]",
        "mean velocity_w [m/s]",
        "heading_angle [rad]",
    ]
    assert "torso_orientation_w (torso_upright, heading_w)" in rows[-1]
    assert "velocity_b (velocity_w, turned)" in rows[-1]
    assert "heading_w (cos heading_angle)" in rows[-1]


def test_what_swings_is_a_mean_since_the_column_before(description: TaskDescription) -> None:
    # contact in every second step, a position that rises by 1 in each; of 100 steps of 0.02 s the
    # columns end at 7, 13, 25, 50, 75 and 100
    contact = np.tile([1.0, 0.0], 50)
    speed = np.where(np.arange(100) < 50, 1.0, 3.0)
    seen = described(
        description,
        ("place", (), "m", "world"),
        ("speed", (), "m/s", "world"),
        ("in_contact", (), "1", "world"),
    )
    table = trajectory_table(
        {"place": np.arange(1.0, 101.0) ** 2, "speed": speed, "in_contact": contact}, seen
    )
    assert table.split("\n")[1:] == [
        "place [m]            49  169  625  2.5e+03  5.62e+03  1e+04",
        "mean speed [m/s]     1  1  1  1  3  3",
        # 4 of 7, 3 of 6 and 6 of 12 steps, then 12 or 13 of 25
        "mean in_contact [1]  0.571  0.5  0.5  0.48  0.52  0.48",
        "jumps after 1 s speed",
    ]


def test_the_fitness_of_a_step_has_no_row_where_a_velocity_says_it(
    description: TaskDescription,
) -> None:
    speed = np.random.default_rng(6).normal(2.0, 1.0, 90)
    fitness = 0.02 * speed
    seen = described(description, ("speed", (), "m/s", "world"))
    table = trajectory_table({"speed": speed, "fitness": fitness}, seen)
    assert rows_of(table)[1:] == [
        "mean speed [m/s]",
        "left out, with what says the same: fitness a step (speed)",
    ]
    assert "mean fitness a step" in trajectory_table({"speed": speed, "fitness": fitness**2}, seen)


def test_arrays_that_do_not_fit_are_left_out(description: TaskDescription) -> None:
    episode = {
        "a": np.arange(5.0),
        "b": np.arange(3.0),
        "c": np.array(["x"] * 5),
        "d": np.array(1.0),
    }
    table = trajectory_table(episode, seeing(description, a=(), b=(), c=(), d=()))
    assert rows_of(table) == ["time [s]", "a [m]"]
    assert trajectory_table({}, description) == "no steps"
    assert "nan" not in trajectory_table(
        {"a": np.array([0.0, np.nan, 2.0])}, seeing(description, a=())
    )
