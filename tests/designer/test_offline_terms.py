"""The term library's values, worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch
from invented_environments import description, variable
from reward_values import evaluate

from eureka_agent.designer.offline.genome import Genome
from eureka_agent.designer.offline.operands import Operand
from eureka_agent.designer.offline.render import render
from eureka_agent.designer.offline.terms import (
    Alive,
    Distance,
    Failure,
    Level,
    Limit,
    Penalty,
    Progress,
    Smoothness,
    Stillness,
    Term,
    Tracking,
    Upright,
)
from eureka_agent.records import TaskDescription

SCALAR = Operand(variable="roll_angle", rank=0, size=1, entry=())
SURGE = Operand(variable="hull_velocity", rank=1, size=1, entry=(0,))
VELOCITY = Operand(variable="hull_velocity", rank=1, size=3)
HULL = Operand(variable="hull_position", rank=1, size=2)
BUOY = Operand(variable="buoy_position", rank=1, size=2)
ACTIONS = Operand(variable="actions", rank=1, size=2)


def component(term: Term, boat: TaskDescription, **values: list[object]) -> list[float]:
    source = render(Genome(terms=(term,)), "test", [each.name for each in boat.variables])
    total, components = evaluate(
        source,
        boat,
        {name: torch.tensor(value, dtype=torch.float32) for name, value in values.items()},
    )
    assert torch.equal(total, components[term.name])
    return total.tolist()


def test_progress_turns_its_sign_and_is_capped(boat: TaskDescription) -> None:
    term = Progress(name="backward", weight=2.0, operand=SURGE, sign=-1, cap=3.0)
    # −1 m/s backward is worth 2·1; −9 m/s is cut at 3: 2·3; 0.5 m/s forward costs 2·0.5
    assert component(
        term, boat, hull_velocity=[[-1, 7, 7], [-9, 0, 0], [0.5, 0, 0]]
    ) == pytest.approx([2.0, 6.0, -1.0])


def test_distance_falls_to_one_over_e_at_its_temperature(boat: TaskDescription) -> None:
    term = Distance(name="reach", operand=HULL, goal=BUOY, temperature=5.0)
    # (3, 4) is 5 away
    values = component(term, boat, hull_position=[[0, 0], [1, 1]], buoy_position=[[3, 4], [1, 1]])
    assert values == pytest.approx([math.exp(-1.0), 1.0])
    away = component(
        term.model_copy(update={"away": True}), boat, hull_position=[[0, 0]], buoy_position=[[3, 4]]
    )
    assert away == pytest.approx([1.0 - math.exp(-1.0)])


def test_upright_of_an_angle_a_cosine_and_a_quaternion(boat: TaskDescription) -> None:
    by_angle = Upright(name="upright", operand=SCALAR, form="angle", sharpness=2.0)
    # upright 1; a quarter turn (1 + 0)/2 squared = 0.25; upside down 0
    assert component(by_angle, boat, roll_angle=[0.0, math.pi / 2, math.pi]) == pytest.approx(
        [1.0, 0.25, 0.0], abs=1e-6
    )
    hanging = by_angle.model_copy(update={"offset": math.pi, "sharpness": 1.0})
    assert component(hanging, boat, roll_angle=[0.0, math.pi]) == pytest.approx(
        [0.0, 1.0], abs=1e-6
    )
    upside_down = Upright(name="upright", operand=SURGE, form="cosine", sign=-1)
    assert component(upside_down, boat, hull_velocity=[[-1, 0, 0], [1, 0, 0]]) == pytest.approx(
        [1.0, 0.0]
    )


def test_upright_of_a_quaternion_against_its_rotation_matrix() -> None:
    turned = description(
        "stand", (variable("attitude", (4,), "1", "world", "quaternion w, x, y, z"),), 2
    )
    operand = Operand(variable="attitude", rank=1, size=4)
    quaternions = torch.nn.functional.normalize(
        torch.randn(16, 4, generator=torch.Generator().manual_seed(3)), dim=-1
    )
    # R[2, 2] of a unit quaternion is w² − x² − y² + z²
    w, x, y, z = quaternions.unbind(dim=-1)
    expected = 0.5 + 0.5 * (w * w - x * x - y * y + z * z)
    total, _ = evaluate(
        render(
            Genome(terms=(Upright(name="up", operand=operand, form="quaternion"),)),
            "stand",
            ["attitude"],
        ),
        turned,
        {"attitude": quaternions},
    )
    assert torch.allclose(total, expected, atol=1e-6)
    last = Upright(name="up", operand=operand, form="quaternion", scalar_last=True)
    total, _ = evaluate(
        render(Genome(terms=(last,)), "stand", ["attitude"]),
        turned,
        {"attitude": quaternions.roll(-1, dims=-1)},
    )
    assert torch.allclose(total, expected, atol=1e-6)


def test_a_calm_upright_pays_little_while_whirling(boat: TaskDescription) -> None:
    term = Upright(name="upright", operand=SCALAR, form="angle", rate=SURGE, calm_speed=2.0)
    assert component(
        term, boat, roll_angle=[0.0, 0.0], hull_velocity=[[0, 0, 0], [-2, 0, 0]]
    ) == pytest.approx([1.0, math.exp(-1.0)])


def test_level_runs_from_start_to_end(boat: TaskDescription) -> None:
    up = Level(name="level", operand=SCALAR, low=1.0, high=3.0)
    assert component(up, boat, roll_angle=[1.0, 2.0, 3.0]) == pytest.approx([0.0, 0.5, 1.0])
    # of several entries the mean: (1 + 0)/2
    assert component(
        Level(name="level", operand=ACTIONS), boat, actions=[[1.0, 0.0]]
    ) == pytest.approx([0.5])
    down = Level(name="level", operand=SCALAR, sign=-1, low=1.0, high=3.0)
    assert component(down, boat, roll_angle=[1.0, 2.0, 3.0]) == pytest.approx([1.0, 0.5, 0.0])


def test_tracking_and_stillness(boat: TaskDescription) -> None:
    track = Tracking(name="track", operand=SCALAR, target=2.0, width=0.5)
    assert component(track, boat, roll_angle=[2.0, 2.5]) == pytest.approx([1.0, math.exp(-1.0)])
    still = Stillness(name="still", operand=VELOCITY, temperature=3.0)
    # |(1, 2, 2)| = 3
    assert component(still, boat, hull_velocity=[[1, 2, 2], [0, 0, 0]]) == pytest.approx(
        [math.exp(-1.0), 1.0]
    )


def test_penalties_are_means_over_the_entries(boat: TaskDescription) -> None:
    effort = Penalty(name="effort", weight=0.5, operand=ACTIONS)
    # (1² + 0.5²)/2 = 0.625
    assert component(effort, boat, actions=[[1.0, -0.5]]) == pytest.approx([-0.3125])
    smooth = Smoothness(name="smoothness", weight=1.0, operand=ACTIONS)
    # changes of 1 and 0: (1 + 0)/2
    assert component(
        smooth, boat, actions=[[1.0, 0.5]], previous_actions=[[0.0, 0.5]]
    ) == pytest.approx([-0.5])
    limit = Limit(name="limit", operand=ACTIONS, low=-1.0, high=1.0, soft=0.8)
    # 1.0 is at the limit and costs 1, 0.5 is below 0.8 of the range, 0.9 is half way from there to
    # the limit
    assert component(limit, boat, actions=[[1.0, 0.5], [0.9, -0.9]]) == pytest.approx(
        [-0.5, -0.5], abs=1e-6
    )


def test_alive_pays_unless_the_episode_fails(boat: TaskDescription) -> None:
    assert component(Alive(name="alive", weight=0.5), boat, terminated=[0.0, 1.0]) == [0.5, 0.0]


def test_failure_costs_once(boat: TaskDescription) -> None:
    assert component(Failure(name="failure", weight=8.0), boat, terminated=[0.0, 1.0]) == [
        0.0,
        -8.0,
    ]


def test_a_gate_multiplies(boat: TaskDescription) -> None:
    reach = Distance(name="reach", weight=7.0, operand=HULL, goal=BUOY, temperature=1.0)
    still = Stillness(name="still", weight=2.0, operand=VELOCITY, gate="reach")
    source = render(Genome(terms=(still, reach)), "test", [each.name for each in boat.variables])
    total, components = evaluate(source, boat, {"hull_position": torch.tensor([[1.0, 0.0]])})
    # 1 m away and at rest: the gate is exp(−1) without the weight of reach
    assert components["still"].item() == pytest.approx(2.0 * math.exp(-1.0))
    assert total.item() == pytest.approx(9.0 * math.exp(-1.0))
