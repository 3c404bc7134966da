"""Variables → what they are, from name, unit, frame and doc line."""

from __future__ import annotations

import pytest

from eureka_agent.designer.offline.scene import Quantity, read_variable
from eureka_agent.records import VariableSpec


def spec(
    name: str, shape: tuple[int, ...] = (), unit: str = "1", frame: str = "world", doc: str = ""
) -> VariableSpec:
    return VariableSpec(name=name, shape=shape, unit=unit, frame=frame, doc=doc)


@pytest.mark.parametrize(
    ("variable", "quantity"),
    [
        (spec("hull_velocity", (3,), "m/s"), Quantity.VELOCITY),
        (spec("joint_velocities", (8,), "rad/s", "joint"), Quantity.JOINT_VELOCITY),
        (spec("pitch", (), "rad"), Quantity.ANGLE),
        (spec("torso_quat", (4,)), Quantity.QUATERNION),
        (spec("rotation", (3, 3)), Quantity.ROTATION_MATRIX),
        (spec("body_up", (3,), doc="the body's z axis in the world"), Quantity.UP_VECTOR),
        (spec("pole_cosine", ()), Quantity.COSINE),
        (spec("motor_torques", (3,), "N·m", "joint"), Quantity.FORCE),
        (spec("happiness", ()), Quantity.OTHER),
    ],
)
def test_quantities(variable: VariableSpec, quantity: Quantity) -> None:
    assert read_variable(variable).quantity is quantity


def test_goals_and_errors_are_told_apart() -> None:
    goal = read_variable(spec("goal_position", (3,), "m"))
    error = read_variable(spec("goal_error", (3,), "m", doc="vector from the drone to the goal"))
    place = read_variable(spec("position", (3,), "m", doc="position of the drone"))
    told = [(each.is_goal, each.is_error) for each in (goal, error, place)]
    assert told == [(True, False), (False, True), (False, False)]


@pytest.mark.parametrize(
    ("variable", "axes"),
    [
        (spec("velocity", (3,), "m/s"), (0, 1, 2)),
        (spec("velocity", (2,), "m/s", doc="velocity of the torso: x (forward), z (up)"), (0, 2)),
        (spec("velocity", (2,), "m/s", doc="velocity: up, forward"), (2, 0)),
        (spec("forward_speed", (), "m/s"), (0,)),
    ],
)
def test_axes_of_entries(variable: VariableSpec, axes: tuple[int, ...]) -> None:
    assert read_variable(variable).axes == axes
