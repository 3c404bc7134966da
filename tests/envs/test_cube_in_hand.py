"""The two hands with a cube: sizes, directions, goals and their count, against MuJoCo and numpy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import pytest
import torch
from by_hand import looked_at

Make = Callable[..., Any]
HANDS = ("allegro_hand", "shadow_hand")


def put_cube(environment: Any, turn: float, tilt: float = 0.0) -> None:
    """The cube at rest, turned about z and then tilted about x."""
    cosine, sine = math.cos(turn / 2.0), math.sin(turn / 2.0)
    quaternion, tilted = np.array([cosine, 0.0, 0.0, sine]), np.zeros(4)
    mujoco.mju_mulQuat(
        tilted, np.array([math.cos(tilt / 2.0), math.sin(tilt / 2.0), 0.0, 0.0]), quaternion
    )
    environment.qpos[:, -4:] = torch.from_numpy(tilted)
    environment.qvel.zero_()
    looked_at(environment)


def start_turn(environment: Any) -> float:
    w, _, _, z = environment.cube.orientation_w[0].tolist()
    return 2.0 * math.atan2(z, w)


@pytest.mark.parametrize("name", HANDS)
def test_start_states_touch_nothing_but_the_palm(make: Make, name: str) -> None:
    environment = make(name, 100)
    model, data = environment.model, mujoco.MjData(environment.model)
    cube, palm = model.geom("cube").id, model.geom("palm").id
    touched = set()
    for row in range(100):
        data.qpos[:] = environment.qpos[row]
        mujoco.mj_forward(model, data)
        touched |= {
            (*sorted(contact.geom.tolist()),) for contact in data.contact if contact.dist < -0.002
        }
        angles = environment.hand.scaled_position[row]
        assert float(angles.abs().max()) < 1.0
    assert touched <= {(*sorted((cube, palm)),)}


@pytest.mark.parametrize("name", HANDS)
def test_the_distance_to_the_goal_is_that_of_rotation_matrices(make: Make, name: str) -> None:
    environment = make(name, 1, task="reorient")
    generator = np.random.default_rng(0)
    for _ in range(5):
        put_cube(environment, *generator.uniform(-3.0, 3.0, 2))
        environment.count()
        values = environment.read_variables()
        matrices = []
        for quaternion in (values["cube_orientation"], values["goal_orientation"]):
            matrix = np.zeros(9)
            mujoco.mju_quat2Mat(matrix, quaternion[0].double().numpy())
            matrices.append(matrix.reshape(3, 3))
        cosine = (np.trace(matrices[1] @ matrices[0].T) - 1.0) / 2.0
        distance = float(values["rotation_distance"][0])
        assert distance == pytest.approx(math.acos(np.clip(cosine, -1.0, 1.0)), abs=2e-3)
        assert float(values["goal_rotation_vector"][0].norm()) == pytest.approx(distance, abs=1e-4)


def test_a_goal_counts_once_it_was_held_and_the_next_is_an_eighth_further(make: Make) -> None:
    environment = make("allegro_hand", 2)
    first = start_turn(environment) + math.pi / 4.0
    reached = []
    for _ in range(5):
        put_cube(environment, first - 0.2)
        environment.count()
        values = environment.read_variables()
        reached.append(float(values["goal_reached"][0]))
        assert float(values["rotation_distance"][0]) == pytest.approx(0.2, abs=1e-3)
    assert reached == [0.0, 0.0, 0.0, 0.0, 1.0]
    assert float(values["time_at_goal"][0]) == pytest.approx(0.25)
    assert values["goals_reached"][0] == 1.0
    assert float(values["angle_turned"][0]) == pytest.approx(math.pi / 4.0 - 0.2, abs=1e-3)
    # the second goal is an eighth beyond the first, wherever the cube was
    put_cube(environment, first)
    environment.count()
    values = environment.read_variables()
    assert float(values["rotation_distance"][0]) == pytest.approx(math.pi / 4.0, abs=1e-3)
    assert float(values["rotation_progress"][0]) == pytest.approx(0.2, abs=1e-3)
    assert float(values["time_at_goal"][0]) == float(values["goal_reached"][0]) == 0.0


def test_a_cube_that_passes_its_goal_or_tilts_there_does_not_reach_it(make: Make) -> None:
    environment = make("allegro_hand", 2)
    first = start_turn(environment) + math.pi / 4.0
    for turn, tilt in [(first, 0.0), (first, 0.0), (first + 0.5, 0.0), *4 * [(first, 0.0)]]:
        put_cube(environment, turn, tilt)
        environment.count()
        assert environment.reached_count[0] == 0.0
    put_cube(environment, first, 0.5)
    environment.count()
    assert environment.reached_count[0] == environment.held[0] == 0.0
