"""Flips of the hopper, and the ant lying and waving: counts of movements made by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from by_hand import fitness_of

Make = Callable[..., Any]
TURN = 2.0 * math.pi


# ── flips ─────────────────────────────────────────────────────────────────────────────────────────


def landed(environment: Any, movement: list[tuple[float, float, bool]]) -> tuple[float, float]:
    """Flips forward and backward of a movement: height, pitch in turns and contact of the foot."""
    environment.reset()
    for height, turns, touches in movement:
        environment.joint_positions[:] = 0.0
        environment.joint_positions[:, 1] = height
        environment.joint_positions[:, 2] = turns * TURN
        environment.sensors["foot_force"][:] = 150.0 * touches
        environment.count_flips()
    values = environment.read_variables()
    return float(values["front_flips"][0]), float(values["back_flips"][0])


def flight(start: float, end: float, height: float = 1.8) -> list[tuple[float, float, bool]]:
    """Turning in the air, between two pitches in turns."""
    return [(height, float(turns), False) for turns in np.linspace(start, end, 20)]


STANDING = (1.25, 0.0, True)


def test_a_turn_in_the_air_counts_once_it_is_landed(make: Make) -> None:
    environment = make("hopper", 2, task="front_flip")
    assert landed(environment, [STANDING, *flight(0.0, 1.0)]) == (0.0, 0.0)
    assert landed(environment, [STANDING, *flight(0.0, 1.0), (1.25, 1.0, True)]) == (1.0, 0.0)
    standing_on = [(1.25, 1.0, True)] * 5
    assert landed(environment, [STANDING, *flight(0.0, 1.0), *standing_on]) == (1.0, 0.0)
    twice = [STANDING, *flight(0.0, 1.0), (1.25, 1.0, True), *flight(1.0, 2.0), (1.25, 2.0, True)]
    assert landed(environment, twice) == (2.0, 0.0)
    double = [STANDING, *flight(0.0, 2.0), (1.25, 2.0, True)]
    assert landed(environment, double) == (2.0, 0.0)
    backward = [STANDING, *flight(0.0, -1.0), (1.25, -1.0, True)]
    assert landed(environment, backward) == (0.0, 1.0)
    # 5.08 rad are 0.81 turns: leaning 0.5 rad (0.08 turns) at either end is allowed
    leaning = [(1.25, 0.08, True), *flight(0.08, 0.92), (1.25, 0.92, True)]
    assert landed(environment, leaning) == (1.0, 0.0)


def test_no_flip_for_rocking_rolling_or_a_fall(make: Make) -> None:
    environment = make("hopper", 2, task="back_flip")
    rocking = [STANDING, *flight(0.0, 0.4), *flight(0.4, -0.4), *flight(-0.4, 0.0), STANDING]
    assert landed(environment, rocking * 5) == (0.0, 0.0)
    # a wheel: upside down with the head on the ground, 0.25 m below the torso's centre
    rolling = [STANDING, *flight(0.0, 0.4, 1.0), (0.25, 0.5, False), *flight(0.5, 1.0, 1.0)]
    assert landed(environment, [*rolling, (1.25, 1.0, True)]) == (0.0, 0.0)
    # landed on the foot, but tipped over or low
    assert landed(environment, [STANDING, *flight(0.0, 0.85), (1.25, 0.85, True)]) == (0.0, 0.0)
    assert landed(environment, [STANDING, *flight(0.0, 1.0), (0.6, 1.0, True)]) == (0.0, 0.0)
    # forward and back again is no flip either way
    undone = [STANDING, *flight(0.0, 0.9), *flight(0.9, 0.0), STANDING]
    assert landed(environment, undone) == (0.0, 0.0)


def test_a_hopper_upside_down_goes_on_only_in_the_flips(make: Make) -> None:
    for task, ends in (("run", True), ("front_flip", False), ("back_flip", False)):
        environment = make("hopper", 1, task=task)
        environment.qpos[0, 1:3] = torch.tensor([2.0, 3.5])
        transition = environment.advance(torch.zeros(1, 3))
        assert bool(transition.terminated[0]) == ends
        assert ("never" in environment.termination_conditions["tipped_over"]) == (not ends)
        # the pitch is told within half a turn, and whole turns beside it
        assert float(transition.variables["torso_pitch"][0]) == pytest.approx(3.5 - TURN, abs=0.05)
        assert float(transition.observations[0, 1]) == pytest.approx(3.5 - TURN, abs=0.05)
        assert float(transition.variables["pitch_turned"][0]) == pytest.approx(3.5, abs=0.05)
    for height, ends in ((0.3, True), (0.4, False)):
        environment.joint_positions[0, 1] = height
        assert environment.compute_termination()["torso_too_low"].tolist() == [ends]


# ── poses of the ant ──────────────────────────────────────────────────────────────────────────────

UP, DOWN, BETWEEN = 0.3, 0.08, 0.2


def waves(environment: Any, heights: list[float], others: float = 0.08, up: float = 1.0) -> float:
    """Waves of a front left foot at these heights, with the other feet at one height."""
    environment.reset()
    feet = environment.feet_w.value
    for height in heights:
        feet[:, 2], feet[:, 5::3] = height, others
        environment.sensors["up_w"][:, 2] = up
        environment.count_waves()
    return float(environment.read_variables()["front_left_waves"][0])


def test_a_wave_is_up_and_down_again(make: Make) -> None:
    environment = make("ant", 2, task="wave_leg")
    assert waves(environment, [DOWN, BETWEEN, UP, UP, BETWEEN]) == 0.0
    assert waves(environment, [DOWN, BETWEEN, UP, UP, BETWEEN, DOWN, DOWN]) == 1.0
    assert waves(environment, [DOWN, UP, DOWN, UP, DOWN]) == 2.0
    # a shaking foot that stays up, or never gets up, waves not at all
    assert waves(environment, [UP, BETWEEN] * 5) == 0.0
    assert waves(environment, [DOWN, BETWEEN] * 5) == 0.0


def test_no_wave_while_another_foot_is_up_or_the_torso_leans(make: Make) -> None:
    environment = make("ant", 2, task="wave_leg")
    assert waves(environment, [DOWN, UP, DOWN], others=0.15) == 0.0
    assert waves(environment, [DOWN, UP, DOWN], up=0.85) == 0.0
    # a wave that fails in the middle does not count when the others stand again
    environment.reset()
    feet = environment.feet_w.value
    for height, others in ((UP, 0.08), (BETWEEN, 0.2), (BETWEEN, 0.08), (DOWN, 0.08)):
        feet[:, 2], feet[:, 5::3] = height, others
        environment.count_waves()
    assert environment.waves.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("changed", "seconds"),
    [
        ({}, 0.016),
        ({"torso_height": 0.45}, 0.0),
        ({"torso_upright": 0.9}, 0.0),
        # |(0.12, 0, 0.16)| = 0.2 m/s; joints at 1 and at 0 rad/s in turn: 0.5 on average
        ({"torso_velocity_w": [0.12, 0.0, 0.16]}, 0.016 * math.exp(-1.0)),
        ({"joint_velocities": [-1.0, 0.0] * 4}, 0.016 * math.exp(-0.5)),
    ],
)
def test_lying_is_low_level_and_still(changed: dict[str, Any], seconds: float) -> None:
    lying: dict[str, Any] = {
        "torso_height": 0.37,
        "torso_upright": 0.99,
        "torso_velocity_w": [0.0, 0.0, 0.0],
        "joint_velocities": [0.0] * 8,
    }
    values = {name: torch.tensor([value]) for name, value in {**lying, **changed}.items()}
    assert fitness_of("ant", "lie_down", values).tolist() == pytest.approx([seconds])
