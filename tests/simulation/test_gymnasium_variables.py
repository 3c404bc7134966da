"""Variables of Gymnasium's own environments, each against an independent reading of the simulator."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
import pytest
import torch

from eureka_agent.errors import EnvironmentLoadError
from eureka_agent.simulation.gymnasium_names import Part, names_of
from eureka_agent.simulation.loading import describe, load_environment

pytestmark = pytest.mark.filterwarnings("ignore:.*(out of date|Overriding environment)")
Numbers = Mapping[str, Any]
BOX2D = ("LunarLander-v3", "LunarLanderContinuous-v3")


def make(name: str, rows: int = 2) -> Any:
    if name in BOX2D:
        pytest.importorskip("Box2D")
    loaded = load_environment(f"gymnasium:{name}")
    return loaded.make(loaded.task(None)[1], rows, seed=3)


def part(name: str, variable: str) -> Part:
    """A part of an environment's observation."""
    names = names_of(name)
    assert names is not None
    return next(each for each in names.parts if each.variable.name == variable)


# ── what each simulator says ──────────────────────────────────────────────────────────────────────


def joints(physics: Any, names: Sequence[str], field: str) -> list[float]:
    """`qpos` or `qvel` of one-dimensional joints by their names in the MJCF."""
    return [float(getattr(physics.data.joint(name), field)[0]) for name in names]


def planar(physics: Any, height: str, prefix: str, names: Sequence[str], most: float) -> Numbers:
    """A robot in the x-z plane with the root joints rootx, rootz and rooty."""
    (x, z, pitch) = joints(physics, ("rootx", "rootz", "rooty"), "qpos")
    speeds = np.clip(joints(physics, ("rootx", "rootz", "rooty"), "qvel"), -most, most)
    return {
        height: z,
        f"{prefix}_pitch": pitch,
        "joint_positions": joints(physics, names, "qpos"),
        f"{prefix}_velocity_w": speeds[:2],
        f"{prefix}_pitch_velocity": speeds[2],
        "joint_velocities": np.clip(joints(physics, names, "qvel"), -most, most),
        "x_position": x,
    }


def hopper(physics: Any) -> Numbers:
    names = ("thigh_joint", "leg_joint", "foot_joint")
    found = planar(physics, "torso_height", "torso", names, 10.0)
    return {**found, "z_distance_from_origin": found["torso_height"] - 1.25}


def walker(physics: Any) -> Numbers:
    right = ("thigh_joint", "leg_joint", "foot_joint")
    left = ("thigh_left_joint", "leg_left_joint", "foot_left_joint")
    found = planar(physics, "torso_height", "torso", (*right, *left), 10.0)
    return {**found, "z_distance_from_origin": found["torso_height"] - 1.25}


def floating(physics: Any, names: Sequence[str]) -> Numbers:
    """A robot with the free joint `root`."""
    root = physics.data.joint("root")
    return {
        "torso_height": root.qpos[2],
        "torso_orientation_w": root.qpos[3:],
        "joint_positions": joints(physics, names, "qpos"),
        "torso_velocity_w": root.qvel[:3],
        "torso_angular_velocity_b": root.qvel[3:],
        "joint_velocities": joints(physics, names, "qvel"),
        "x_position": root.qpos[0],
        "y_position": root.qpos[1],
    }


def ant(physics: Any) -> Numbers:
    names = [f"{joint}_{leg}" for leg in (1, 2, 3, 4) for joint in ("hip", "ankle")]
    found = floating(physics, names)
    distance = math.hypot(found["x_position"], found["y_position"])
    forces = physics.data.cfrc_ext[1:].clip(-1.0, 1.0)
    return {**found, "distance_from_origin": distance, "contact_forces": forces}


def reacher(physics: Any) -> Numbers:
    angles = np.array(joints(physics, ("joint0", "joint1"), "qpos"))
    fingertip, target = (physics.data.body(name).xpos[:2] for name in ("fingertip", "target"))
    assert joints(physics, ("target_x", "target_y"), "qpos") == pytest.approx(target, abs=1e-6)
    return {
        "joint_cosines": np.cos(angles),
        "joint_sines": np.sin(angles),
        "target_position_w": target,
        "joint_velocities": joints(physics, ("joint0", "joint1"), "qvel"),
        "fingertip_error_w": fingertip - target,
    }


def acrobot(physics: Any) -> Numbers:
    shoulder, elbow, shoulder_velocity, elbow_velocity = map(float, physics.state)
    return {
        "shoulder_cosine": math.cos(shoulder),
        "shoulder_sine": math.sin(shoulder),
        "elbow_cosine": math.cos(elbow),
        "elbow_sine": math.sin(elbow),
        "shoulder_velocity": shoulder_velocity,
        "elbow_velocity": elbow_velocity,
    }


def pendulum(physics: Any) -> Numbers:
    angle, velocity = physics.state
    return {
        "pendulum_upright": math.cos(angle),
        "pendulum_sideways": math.sin(angle),
        "pendulum_velocity": velocity,
    }


def lander(physics: Any) -> Numbers:
    body = physics.lander
    # legs are told by their side of the lander, in its own frame
    left, right = sorted(physics.legs, key=lambda leg: body.GetLocalPoint(leg.position).x)
    pad = (physics.helipad_x1 + physics.helipad_x2) / 2
    return {
        "lander_x": body.position.x - pad,
        "lander_height": body.position.y - physics.helipad_y - 0.6,
        "lander_velocity_x": body.linearVelocity.x,
        "lander_velocity_z": body.linearVelocity.y,
        "lander_angle": body.angle,
        "lander_angular_velocity": body.angularVelocity,
        "left_leg_contact": touches(left),
        "right_leg_contact": touches(right),
    }


def touches(body: Any) -> float:
    return float(any(edge.contact.touching for edge in body.contacts))


READ: dict[str, Callable[[Any], Numbers]] = {
    "Ant-v5": ant,
    "Hopper-v5": hopper,
    "Reacher-v5": reacher,
    "Walker2d-v5": walker,
    "Acrobot-v1": acrobot,
    "Pendulum-v1": pendulum,
    "LunarLander-v3": lander,
    "LunarLanderContinuous-v3": lander,
}
"""Readings of a simulator, one for each form of a file: roots, legs, tips, angles, flags, changes of
another file."""
MEASURED = ("x_velocity", "y_velocity")
"""Mean velocities over a step, which are compared with positions before and after."""


@pytest.mark.parametrize("name", READ)
def test_variables_are_what_the_simulator_says(name: str) -> None:
    environment = make(name)
    environment.reset()
    of_all = {"actions", "terminated", "succeeded", "observation", "native_reward"}
    named = {each.name for each in environment.all_variables()} - of_all
    generator = torch.Generator().manual_seed(0)
    for step in range(40):
        values = environment.read_variables()
        if step:
            uniform = torch.rand(2, environment.num_actions, generator=generator)
            values = environment.advance(environment.actions_from(uniform)).variables
        for row in range(2):
            expected = READ[name](environment.environments[row].unwrapped)
            assert named - set(MEASURED) == expected.keys()
            for key, numbers in expected.items():
                wanted = np.asarray(numbers, dtype=np.float32)
                assert values[key][row].shape == wanted.shape, key
                assert values[key][row].numpy() == pytest.approx(wanted, rel=1e-4, abs=2e-5), key
        environment.reset_done()


@pytest.mark.parametrize("name", ["Ant-v5", "Hopper-v5"])
def test_mean_velocities_are_the_way_of_a_step_over_its_time(name: str) -> None:
    environment = make(name, 1)
    environment.reset()
    assert float(environment.read_variables()["x_velocity"]) == 0.0
    generator = torch.Generator().manual_seed(1)
    gone, measured = 0.0, 0.0
    start = environment.read_variables()["x_position"].clone()
    for _ in range(20):
        actions = 2.0 * torch.rand(1, environment.num_actions, generator=generator) - 1.0
        values = environment.advance(actions).variables
        measured += float(values["x_velocity"]) * environment.control_dt
        gone = float(values["x_position"] - start)
    # Ant's is read a physics step late
    assert measured == pytest.approx(gone, abs=0.02 if name == "Ant-v5" else 1e-4)


# ── what the docs say of signs and places ─────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["Ant-v5", "Humanoid-v5", "Pusher-v5", "Swimmer-v5"])
def test_actions_drive_the_joints_of_their_names(name: str) -> None:
    physics: Any = gymnasium.make(name).unwrapped
    # joints of the robot, in the order in which joint_velocities are checked above
    model = physics.model
    robot = [
        index
        for index in range(model.njnt)
        if model.jnt_type[index] == mujoco.mjtJoint.mjJNT_HINGE
        and model.joint(index).name not in ("rooty", "free_body_rot")
    ]
    driven = [robot.index(joint) for joint in model.actuator_trnid[:, 0]]
    entries = part(name, "joint_velocities").entries
    assert [entries[index] for index in driven] == [
        channel.name for channel in make(name, 1).action_channels
    ]


# ── where names do not fit, and what else the files tell ──────────────────────────────────────────

FOLDER = """
from eureka_agent.simulation.gymnasium_task import GymnasiumTask


class Changed(GymnasiumTask):
    gymnasium_id = "{name}"
    gymnasium_options = {options}
"""
TASK = """
from eureka_agent.task import Task

task = Task(sentence="go", fitness=lambda native_reward: native_reward, fitness_doc="return")
"""


def changed(folder: Path, name: str, options: Mapping[str, Any]) -> Path:
    """A folder with an environment of Gymnasium's that has other options."""
    (folder / "tasks").mkdir()
    (folder / "env.py").write_text(FOLDER.format(name=name, options=dict(options)))
    (folder / "tasks" / "go.py").write_text(TASK)
    return folder


@pytest.mark.parametrize(
    ("name", "options", "why"),
    [
        (
            "Ant-v5",
            {"include_cfrc_ext_in_observation": False},
            "it has 27 numbers, and Ant-v5.yaml names 105",
        ),
        (
            "Hopper-v5",
            {"xml_file": "hopper.xml"},
            "'xml_file' is another model than the one that Hopper-v5.yaml describes",
        ),
    ],
)
def test_names_that_need_not_fit_are_left_out_and_it_is_told(
    tmp_path: Path, name: str, options: Mapping[str, Any], why: str
) -> None:
    description = describe(load_environment(str(changed(tmp_path, name, options))))
    known = {each.name: each for each in description.variables}
    assert "torso_height" not in known
    assert known["x_position"].unit == "?"
    assert why in known["observation"].doc
    (remark,) = description.remarks
    assert remark.endswith(why)
    assert description.observation_channels == ()
    assert "z-coordinate of the torso" in description.details  # Gymnasium's own words


def test_a_task_cannot_bring_another_model(tmp_path: Path) -> None:
    folder = changed(tmp_path, "Hopper-v5", {})
    task = TASK.replace("task = Task(", 'task = Task(options={"xml_file": "hopper.xml"}, ')
    (folder / "tasks" / "go.py").write_text(task)
    loaded = load_environment(str(folder))
    with pytest.raises(EnvironmentLoadError, match="is another model than the one that Hopper-v5"):
        loaded.make(loaded.task(None)[1], 1)


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("MountainCar-v0", [0.49, 0.03]),
        ("MountainCarContinuous-v0", [0.44, 0.03]),
        ("Acrobot-v1", [2.1, 0.1, 3.0, 0.0]),
    ],
)
def test_reaching_the_goal_is_a_success(name: str, state: list[float]) -> None:
    environment = make(name, 1)
    environment.reset()
    environment.environments[0].unwrapped.state = np.array(state)
    transition = environment.advance(torch.full((1, 1), 2.0))
    assert bool(transition.terminated)
    assert float(transition.variables["succeeded"]) == 1.0
    assert float(transition.variables["terminated"]) == 0.0
    assert [name for name, rows in transition.causes.items() if bool(rows)] == ["reached_goal"]
