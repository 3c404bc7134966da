"""The term library's values, worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from invented_environments import description, variable
from reward_values import evaluate

from eureka_agent.designer.offline.language import Goal, Intent
from eureka_agent.designer.offline.scene import TaskReading
from eureka_agent.designer.offline.terms import Operand, RewardTerm, genome_of, render, term
from eureka_agent.records import TaskDescription, VariableSpec

ROLL = Operand(code="roll_angle", reads=("roll_angle",))
SURGE = Operand(code="hull_velocity[:, 0]", reads=("hull_velocity",))
VELOCITY = Operand(code="hull_velocity", reads=("hull_velocity",), scalar=False)
OFF = Operand(
    code="(buoy_position - hull_position)", reads=("hull_position", "buoy_position"), scalar=False
)
ACTIONS = Operand(code="actions", reads=("actions",), scalar=False)


UPRIGHT = Operand(code="torch.cos(roll_angle)", reads=("roll_angle",))
ASTERN = SURGE.turned(-1)
E = math.exp(-1.0)


@pytest.mark.parametrize(
    ("each", "values", "expected"),
    [
        # −1 m/s is worth 2·1; −9 m/s is cut at 3: 2·3; 0.5 m/s forward costs 2·0.5
        (
            term("progress", "x", 2.0, ASTERN, cap=3.0),
            {"hull_velocity": [[-1.0, 7, 7], [-9, 0, 0], [0.5, 0, 0]]},
            [2.0, 6.0, -1.0],
        ),
        # (3, 4) is 5 away
        (
            term("closeness", "x", 1.0, OFF, temperature=5.0),
            {"hull_position": [[0.0, 0], [1, 1]], "buoy_position": [[3.0, 4], [1, 1]]},
            [E, 1.0],
        ),
        # upright 1; a quarter turn (1 + 0)/2 squared = 0.25; upside down 0
        (
            term("upright", "x", 1.0, UPRIGHT, sharpness=2.0),
            {"roll_angle": [0.0, math.pi / 2, math.pi]},
            [1.0, 0.25, 0.0],
        ),
        (
            term("upright_calm", "x", 1.0, UPRIGHT, SURGE, sharpness=1.0, calm_speed=2.0),
            {"roll_angle": [0.0, 0.0], "hull_velocity": [[0.0, 0, 0], [-2, 0, 0]]},
            [1.0, E],
        ),
        (
            term("level", "x", 1.0, ROLL, low=1.0, high=3.0),
            {"roll_angle": [1.0, 2, 3]},
            [0, 0.5, 1],
        ),
        # of several entries the mean: (1 + 0)/2
        (term("level", "x", 1.0, ACTIONS, low=0.0, high=1.0), {"actions": [[1.0, 0.0]]}, [0.5]),
        (
            term("tracking", "x", 1.0, ROLL, target=2.0, width=0.5),
            {"roll_angle": [2.0, 2.5]},
            [1.0, E],
        ),
        # (1² + 0.5²)/2 = 0.625
        (term("penalty", "x", 0.5, ACTIONS), {"actions": [[1.0, -0.5]]}, [-0.3125]),
        # at the limit 1; 0.5 is below 0.8 of the range; 0.9 is half way from there to the limit
        (
            term("penalty_limits", "x", 1.0, ACTIONS.formed("{}.abs()"), soft=0.8),
            {"actions": [[1.0, 0.5], [0.9, -0.9]]},
            [-0.5, -0.5],
        ),
        (term("alive", "x", 0.5), {"terminated": [0.0, 1.0]}, [0.5, 0.0]),
        (term("failure", "x", 8.0), {"terminated": [0.0, 1.0]}, [0.0, -8.0]),
    ],
)
def test_values(
    each: RewardTerm, values: dict[str, list[Any]], expected: list[float], boat: TaskDescription
) -> None:
    source = render({"x": each}, "test", [known.name for known in boat.variables])
    total, parts = evaluate(source, boat, {name: torch.tensor(of) for name, of in values.items()})
    assert torch.equal(total, parts["x"])
    assert total.tolist() == pytest.approx(expected, abs=1e-6)


def tilt(of: VariableSpec, *values: list[float] | float) -> list[float]:
    """Cosine of the tilt as read from a variable: of an upright term's (1 + cosine) / 2."""
    what = description("stand upright", (of,), 2)
    (found,) = TaskReading(what, what.sentence).candidates(Intent(Goal.UPRIGHT))
    total, _ = evaluate(
        render(
            genome_of([term("upright", "up", 1.0, found.operand, sharpness=1.0)]), "", [of.name]
        ),
        what,
        {of.name: torch.tensor(values)},
    )
    return (2.0 * total - 1.0).tolist()


def test_the_tilt_is_read_from_angles_and_vectors() -> None:
    angle = variable("pole_angle", (), "rad", "world", "angle of the pole; 0 is upright")
    assert tilt(angle, 0.0, math.pi / 2) == pytest.approx([1.0, 0.0], abs=1e-6)
    hanging = variable("pole_angle", (), "deg", "world", "angle of the pole; 0 hangs down")
    assert tilt(hanging, 0.0, 180.0) == pytest.approx([-1.0, 1.0], abs=1e-6)
    up = variable("body_up", (3,), "1", "world", "the body's z axis")
    assert tilt(up, [0.6, 0.0, 0.8]) == pytest.approx([0.8])
    # of an upright body, gravity points along its −z
    gravity = variable("projected_gravity", (3,), "1", "body", "direction of gravity")
    assert tilt(gravity, [0.0, 0.0, -1.0], [0.0, 0.0, 1.0]) == pytest.approx([1.0, -1.0])


@pytest.mark.parametrize(("order", "shift"), [("w, x, y, z", 0), ("x, y, z, w", -1)])
def test_the_tilt_of_a_quaternion_is_that_of_its_rotation_matrix(order: str, shift: int) -> None:
    attitude = variable("attitude", (4,), "1", "world", f"quaternion {order}")
    quaternions = torch.nn.functional.normalize(
        torch.randn(16, 4, generator=torch.Generator().manual_seed(3)), dim=-1
    )
    # R[2, 2] of a unit quaternion is w² − x² − y² + z²
    w, x, y, z = quaternions.unbind(dim=-1)
    expected = (w * w - x * x - y * y + z * z).tolist()
    assert tilt(attitude, *quaternions.roll(shift, dims=-1).tolist()) == pytest.approx(
        expected, abs=1e-5
    )


def test_a_gate_multiplies(boat: TaskDescription) -> None:
    reach = term("closeness", "reach", 7.0, OFF, temperature=1.0)
    still = term("closeness", "still", 2.0, VELOCITY, temperature=1.0).gated("reach")
    source = render(genome_of([still, reach]), "test", [each.name for each in boat.variables])
    total, components = evaluate(source, boat, {"hull_position": torch.tensor([[1.0, 0.0]])})
    # 1 m away and at rest: the gate is exp(−1) without the weight of reach
    assert components["still"].item() == pytest.approx(2.0 * math.exp(-1.0))
    assert total.item() == pytest.approx(9.0 * math.exp(-1.0))
