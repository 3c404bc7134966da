"""The term library's values, worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch
from invented_environments import description, variable
from reward_values import evaluate

from eureka_agent.designer.offline.language import Goal, Intent
from eureka_agent.designer.offline.scene import Scene
from eureka_agent.designer.offline.terms import Operand, Term, genome_of, render, term
from eureka_agent.records import TaskDescription, VariableSpec

ROLL = Operand(code="roll_angle", reads=("roll_angle",))
SURGE = Operand(code="hull_velocity[:, 0]", reads=("hull_velocity",))
VELOCITY = Operand(code="hull_velocity", reads=("hull_velocity",), scalar=False)
OFF = Operand(
    code="(buoy_position - hull_position)", reads=("hull_position", "buoy_position"), scalar=False
)
ACTIONS = Operand(code="actions", reads=("actions",), scalar=False)
JUMP = Operand(
    code="(actions - previous_actions)", reads=("actions", "previous_actions"), scalar=False
)


def component(each: Term, boat: TaskDescription, **values: list[object]) -> list[float]:
    source = render(genome_of([each]), "test", [each.name for each in boat.variables])
    total, components = evaluate(
        source,
        boat,
        {name: torch.tensor(value, dtype=torch.float32) for name, value in values.items()},
    )
    assert torch.equal(total, components[each.name])
    return total.tolist()


def test_progress_turns_its_sign_and_is_capped(boat: TaskDescription) -> None:
    astern = SURGE.model_copy(update={"code": f"-{SURGE.code}"})
    backward = term("progress", "backward", 2.0, astern, cap=3.0)
    # −1 m/s backward is worth 2·1; −9 m/s is cut at 3: 2·3; 0.5 m/s forward costs 2·0.5
    assert component(
        backward, boat, hull_velocity=[[-1, 7, 7], [-9, 0, 0], [0.5, 0, 0]]
    ) == pytest.approx([2.0, 6.0, -1.0])


def test_distance_falls_to_one_over_e_at_its_temperature(boat: TaskDescription) -> None:
    reach = term("closeness", "reach", 1.0, OFF, temperature=5.0)
    # (3, 4) is 5 away
    values = component(reach, boat, hull_position=[[0, 0], [1, 1]], buoy_position=[[3, 4], [1, 1]])
    assert values == pytest.approx([math.exp(-1.0), 1.0])


def test_upright_grows_with_the_cosine_of_the_tilt(boat: TaskDescription) -> None:
    cosine = ROLL.model_copy(update={"code": "torch.cos(roll_angle)"})
    upright = term("upright", "upright", 1.0, cosine, sharpness=2.0)
    # upright 1; a quarter turn (1 + 0)/2 squared = 0.25; upside down 0
    assert component(upright, boat, roll_angle=[0.0, math.pi / 2, math.pi]) == pytest.approx(
        [1.0, 0.25, 0.0], abs=1e-6
    )


def tilt(of: VariableSpec, *values: list[float] | float) -> list[float]:
    """Cosine of the tilt as read from a variable: of an upright term's (1 + cosine) / 2."""
    what = description("stand upright", (of,), 2)
    (found,) = Scene(what, what.sentence).candidates(Intent(Goal.UPRIGHT))
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


def test_a_calm_upright_pays_little_while_whirling(boat: TaskDescription) -> None:
    cosine = ROLL.model_copy(update={"code": "torch.cos(roll_angle)"})
    calm = term("upright_calm", "upright", 1.0, cosine, SURGE, sharpness=1.0, calm_speed=2.0)
    assert component(
        calm, boat, roll_angle=[0.0, 0.0], hull_velocity=[[0, 0, 0], [-2, 0, 0]]
    ) == pytest.approx([1.0, math.exp(-1.0)])


def test_level_runs_from_start_to_end(boat: TaskDescription) -> None:
    up = term("level", "level", 1.0, ROLL, low=1.0, high=3.0)
    assert component(up, boat, roll_angle=[1.0, 2.0, 3.0]) == pytest.approx([0.0, 0.5, 1.0])
    # of several entries the mean: (1 + 0)/2
    assert component(
        term("level", "level", 1.0, ACTIONS, low=0.0, high=1.0), boat, actions=[[1.0, 0.0]]
    ) == pytest.approx([0.5])
    down = term("level", "level", 1.0, ROLL.turned(-1), low=-3.0, high=-1.0)
    assert component(down, boat, roll_angle=[1.0, 2.0, 3.0]) == pytest.approx([1.0, 0.5, 0.0])


def test_tracking_and_stillness(boat: TaskDescription) -> None:
    track = term("tracking", "track", 1.0, ROLL, target=2.0, width=0.5)
    assert component(track, boat, roll_angle=[2.0, 2.5]) == pytest.approx([1.0, math.exp(-1.0)])
    still = term("closeness", "still", 1.0, VELOCITY, temperature=3.0)
    # |(1, 2, 2)| = 3
    assert component(still, boat, hull_velocity=[[1, 2, 2], [0, 0, 0]]) == pytest.approx(
        [math.exp(-1.0), 1.0]
    )


def test_penalties_are_means_over_the_entries(boat: TaskDescription) -> None:
    effort = term("penalty", "effort", 0.5, ACTIONS)
    # (1² + 0.5²)/2 = 0.625
    assert component(effort, boat, actions=[[1.0, -0.5]]) == pytest.approx([-0.3125])
    smooth = term("penalty", "smoothness", 1.0, JUMP)
    # changes of 1 and 0: (1 + 0)/2
    assert component(
        smooth, boat, actions=[[1.0, 0.5]], previous_actions=[[0.0, 0.5]]
    ) == pytest.approx([-0.5])
    limit = term("penalty_limits", "limit", 1.0, ACTIONS.formed("{}.abs()"), soft=0.8)
    # 1.0 is at the limit and costs 1, 0.5 is below 0.8 of the range, 0.9 is half way from there to
    # the limit
    assert component(limit, boat, actions=[[1.0, 0.5], [0.9, -0.9]]) == pytest.approx(
        [-0.5, -0.5], abs=1e-6
    )


def test_alive_pays_unless_the_episode_fails(boat: TaskDescription) -> None:
    assert component(term("alive", "alive", 0.5), boat, terminated=[0.0, 1.0]) == [0.5, 0.0]


def test_failure_costs_once(boat: TaskDescription) -> None:
    assert component(term("failure", "failure", 8.0), boat, terminated=[0.0, 1.0]) == [0.0, -8.0]


def test_a_gate_multiplies(boat: TaskDescription) -> None:
    reach = term("closeness", "reach", 7.0, OFF, temperature=1.0)
    still = term("closeness", "still", 2.0, VELOCITY, temperature=1.0).gated("reach")
    source = render(genome_of([still, reach]), "test", [each.name for each in boat.variables])
    total, components = evaluate(source, boat, {"hull_position": torch.tensor([[1.0, 0.0]])})
    # 1 m away and at rest: the gate is exp(−1) without the weight of reach
    assert components["still"].item() == pytest.approx(2.0 * math.exp(-1.0))
    assert total.item() == pytest.approx(9.0 * math.exp(-1.0))
