"""The built-in environments behave as they declare: endings, start states, masses."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from by_hand import looked_at

from eureka_agent.simulation.catalogue import list_environments
from eureka_agent.simulation.loading import load_environment
from eureka_agent.simulation.mujoco_task import model_path
from eureka_agent.simulation.rollouts import measure_starts
from eureka_agent.value_ranges import ValueRange

Make = Callable[..., Any]
Put = Callable[[Any, float], None]
CONDITION = re.compile(r"(\w+) (below|beyond) (±?)(-?[\d.]+)")


def put_height(column: int) -> Put:
    def put(environment: Any, value: float) -> None:
        environment.qpos[:, column] = value

    return put


def put_pitch(environment: Any, value: float) -> None:
    environment.qpos[:, 1:3] = torch.tensor([2.0, value])  # too high for the ground to be touched


def put_upright(environment: Any, value: float) -> None:
    """Rolled by the angle whose cosine is the value, high above the ground."""
    half = math.acos(value) / 2.0
    environment.qpos[:, 2:7] = torch.tensor([3.0, math.cos(half), math.sin(half), 0.0, 0.0])


def put(attribute: str) -> Put:
    def assign(environment: Any, value: float) -> None:
        getattr(environment, attribute)[:] = value

    return assign


def put_pole(environment: Any, value: float) -> None:
    environment.angle[:] = math.acos(value)


def put_craft(environment: Any, value: float) -> None:
    environment.position[2] = value


def put_goal(environment: Any, value: float) -> None:
    environment.goal.copy_(environment.position)
    environment.goal[0] += value


CASES = [
    ("allegro_hand", "dropped", put_height(18)),
    ("ant", "torso_too_low", put_height(2)),
    ("ant", "tipped_over", put_upright),
    ("hopper", "torso_too_low", put_height(1)),
    ("hopper", "tipped_over", put_pitch),
    ("humanoid", "torso_too_low", put_height(2)),
    ("quadruped", "torso_too_low", put_height(2)),
    ("quadruped", "tipped_over", put_upright),
    ("ball_balance", "ball_fell", put_height(5)),
    ("shadow_hand", "dropped", put_height(26)),
    ("cartpole", "pole_fell", put_pole),
    ("cartpole", "left_the_track", put("position")),
    ("quadcopter", "hit_the_ground", put_craft),
    ("quadcopter", "flew_away", put_goal),
]
OF_CELLS = {
    ("doorkey", "reached_goal"),
    *(("craft", cause) for cause in ("fell_into_lava", "died", "reached_goal")),
}
"""Conditions on whole numbers, which their environments' own tests look at."""


def test_every_condition_is_among_the_cases(make: Make) -> None:
    """The simulator's own condition is left out."""
    told = {
        (name, cause)
        for name in (entry.name for entry in list_environments())
        for cause in make(name, 1).termination_causes
        if cause != "unstable_physics"
    }
    assert told == OF_CELLS | {(name, cause) for name, cause, _ in CASES}


@pytest.mark.parametrize(("name", "cause", "place"), CASES)
def test_an_episode_ends_on_one_side_of_the_number_that_is_told(
    make: Make, name: str, cause: str, place: Put
) -> None:
    told = make(name, 1).termination_conditions[cause]
    found = CONDITION.match(told)
    assert found is not None, told
    variable, direction, both, number = found[1], found[2], found[3], float(found[4])
    margin = 0.02
    beyond = number + margin if direction == "beyond" else number - margin
    within = number - margin if direction == "beyond" else number + margin
    # and the variable that is named holds the value that was set
    for value, ends in [
        (within, False),
        (beyond, True),
        *([(-within, False), (-beyond, True)] if both else []),
    ]:
        environment = make(name, 2)
        place(environment, value)
        if hasattr(environment, "physics"):
            environment.qvel.zero_()
            looked_at(environment)
        else:
            environment.compute_observations()
        assert environment.compute_termination()[cause].tolist() == [ends, ends], value
        read = environment.read_variables()[variable]
        assert read.tolist() == pytest.approx([value, value], abs=1e-5)


def test_a_task_without_an_ending_says_so(make: Make) -> None:
    swinging = make("cartpole", 2, task="swingup")
    put_pole(swinging, -0.5)
    assert not swinging.compute_termination()["pole_fell"].any()
    assert swinging.termination_conditions["pole_fell"] == "never in this task"
    assert make("cartpole", 1).termination_conditions["pole_fell"] == "pole_upright below 0"


# ── start states ──────────────────────────────────────────────────────────────────────────────────


def starts(name: str, task: str | None = None) -> dict[str, tuple[ValueRange, ...]]:
    loaded = load_environment(name)
    return measure_starts(loaded, loaded.task(task)[1]).starts


def near(found: tuple[ValueRange, ...], drawn: np.ndarray) -> None:
    """Each column's ends are those of many numbers drawn from the documented distribution. Shape of
    `drawn`: (draws, columns)."""
    width = np.ptp(drawn, axis=0)
    assert [low for low, _, _ in found] == pytest.approx(
        drawn.min(axis=0), abs=0.05 * width.max() + 1e-6
    )
    assert [high for _, high, _ in found] == pytest.approx(
        drawn.max(axis=0), abs=0.05 * width.max() + 1e-6
    )


def test_start_states_are_those_of_the_documented_distributions() -> None:
    generator = np.random.default_rng(0)
    hopper = starts("hopper")
    joints = generator.uniform(-0.01, 0.01, (20_000, 3))
    near(hopper["joint_positions"], joints)
    near(hopper["torso_height"], 1.25 + joints[:, :1])
    near(hopper["torso_pitch"], joints[:, :1])
    quadcopter = starts("quadcopter")
    height = 2.0 + generator.uniform(-0.5, 0.5, (20_000, 1))
    near(quadcopter["height"], height)
    near(quadcopter["velocity_w"], generator.uniform(-0.2, 0.2, (20_000, 3)))
    near(
        quadcopter["goal_position_w"],
        np.array([0.0, 0.0, 2.0]) + generator.uniform(-1.0, 1.0, (20_000, 3)),
    )
    near(starts("cartpole")["pole_upright"], np.cos(generator.uniform(-0.2, 0.2, (20_000, 1))))


# ── masses and sizes ──────────────────────────────────────────────────────────────────────────────


def capsule_kilograms(radius: float, length: float, density: float) -> float:
    return density * (math.pi * radius**2 * length + 4.0 / 3.0 * math.pi * radius**3)


def test_masses_and_sizes_of_the_ant_are_those_of_its_mjcf(make: Make) -> None:
    environment = make("ant", 1)
    path = model_path(environment)
    geom = ElementTree.parse(path).getroot().find("./default/geom")
    assert geom is not None
    radius, density = float(geom.attrib["size"]), float(geom.attrib["density"])
    hip, shank = math.hypot(0.2, 0.2), math.hypot(0.2, 0.2, 0.4899)
    leg, foot = (capsule_kilograms(radius, length, density) for length in (hip, shank))
    torso = density * 4.0 / 3.0 * math.pi * 0.25**3 + 4 * leg
    total, *bodies = environment.masses_and_sizes
    assert total == f"{torso + 4 * (leg + foot):.3g} kg in all"
    assert bodies[0].startswith(f"torso: {torso:.3g} kg, sphere of radius 0.25 m + 4 × capsule")
    legs = "front_left_leg, back_left_leg, back_right_leg, front_right_leg"
    assert bodies[1] == f"{legs}: {leg:.3g} kg, capsule of radius 0.08 and length {hip:.3g} m each"
    assert bodies[2].endswith(
        f": {foot:.3g} kg, capsule of radius 0.08 and length {shank:.3g} m each"
    )
    assert len(bodies) == 3
