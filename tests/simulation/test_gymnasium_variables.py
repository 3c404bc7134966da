"""Variables of Gymnasium's own environments, each against an independent reading of the simulator."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
import pytest
import torch

from eureka_agent.errors import EnvironmentLoadError
from eureka_agent.simulation.gymnasium_names import Part, named_ids, names_of
from eureka_agent.simulation.loading import describe, load_environment

pytestmark = pytest.mark.filterwarnings("ignore:.*(out of date|Overriding environment)")
Numbers = Mapping[str, Any]
BOX2D = ("LunarLander-v3", "LunarLanderContinuous-v3", "BipedalWalker-v3")
BOX2D = (*BOX2D, "BipedalWalkerHardcore-v3")


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


def cheetah(physics: Any) -> Numbers:
    names = ("bthigh", "bshin", "bfoot", "fthigh", "fshin", "ffoot")
    return planar(physics, "trunk_rise", "trunk", names, math.inf)


def swimmer(physics: Any) -> Numbers:
    names = ("motor1_rot", "motor2_rot")
    x, y, heading = joints(physics, ("slider1", "slider2", "free_body_rot"), "qpos")
    speeds = joints(physics, ("slider1", "slider2", "free_body_rot"), "qvel")
    return {
        "heading_angle": heading,
        "joint_positions": joints(physics, names, "qpos"),
        "body_velocity_w": speeds[:2],
        "heading_velocity": speeds[2],
        "joint_velocities": joints(physics, names, "qvel"),
        "x_position": x,
        "y_position": y,
        "distance_from_origin": math.hypot(x, y),
    }


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


HUMANOID = [
    *("abdomen_z", "abdomen_y", "abdomen_x"),
    *("right_hip_x", "right_hip_z", "right_hip_y", "right_knee"),
    *("left_hip_x", "left_hip_z", "left_hip_y", "left_knee"),
    *("right_shoulder1", "right_shoulder2", "right_elbow"),
    *("left_shoulder1", "left_shoulder2", "left_elbow"),
]


def standing_up(physics: Any) -> Numbers:
    found = floating(physics, HUMANOID)
    data, model = physics.data, physics.model
    inertias = np.zeros((13, 10))
    for body in range(1, model.nbody):
        inertias[body - 1] = data.cinert[body]
        assert inertias[body - 1, 9] == pytest.approx(model.body_mass[body])
        # mass times the offset from the robot's centre of mass
        offset = data.xipos[body] - data.subtree_com[1]
        assert inertias[body - 1, 6:9] == pytest.approx(offset * model.body_mass[body], abs=1e-9)
    return {
        **found,
        "body_inertias": inertias,
        "body_velocities": data.cvel[1:],
        "joint_torques": [
            float(data.qfrc_actuator[model.joint(name).dofadr[0]]) for name in HUMANOID
        ],
        "contact_forces": data.cfrc_ext[1:],
        "z_distance_from_origin": found["torso_height"] - 0.105,
    }


def humanoid(physics: Any) -> Numbers:
    found = dict(standing_up(physics))
    del found["z_distance_from_origin"]
    distance = math.hypot(found["x_position"], found["y_position"])
    return {**found, "distance_from_origin": distance}


def inverted_pendulum(physics: Any) -> Numbers:
    position, angle = joints(physics, ("slider", "hinge"), "qpos")
    velocity, turning = joints(physics, ("slider", "hinge"), "qvel")
    return {
        "cart_position": position,
        "pole_angle": angle,
        "cart_velocity": velocity,
        "pole_angular_velocity": turning,
    }


def double_pendulum(physics: Any) -> Numbers:
    lower, upper = joints(physics, ("hinge", "hinge2"), "qpos")
    speeds = np.clip(joints(physics, ("slider", "hinge", "hinge2"), "qvel"), -10, 10)
    dof = physics.model.joint("slider").dofadr[0]
    return {
        "cart_position": joints(physics, ("slider",), "qpos")[0],
        "lower_pole_sine": math.sin(lower),
        "upper_pole_sine": math.sin(upper),
        "lower_pole_upright": math.cos(lower),
        "upper_pole_straight": math.cos(upper),
        "cart_velocity": speeds[0],
        "lower_pole_angular_velocity": speeds[1],
        "upper_pole_angular_velocity": speeds[2],
        "track_end_force": np.clip(physics.data.qfrc_constraint[dof], -10, 10),
    }


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


def pusher(physics: Any) -> Numbers:
    names = "shoulder_pan shoulder_lift upper_arm_roll elbow_flex forearm_roll wrist_flex"
    arm = [f"r_{name}_joint" for name in (*names.split(), "wrist_roll")]
    return {
        "joint_positions": joints(physics, arm, "qpos"),
        "joint_velocities": joints(physics, arm, "qvel"),
        "hand_position_w": physics.data.body("tips_arm").xpos,
        "object_position_w": physics.data.body("object").xpos,
        "goal_position_w": physics.data.body("goal").xpos,
    }


def cart_pole(physics: Any) -> Numbers:
    names = ("cart_position", "cart_velocity", "pole_angle", "pole_angular_velocity")
    return dict(zip(names, physics.state, strict=True))


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


def mountain_car(physics: Any) -> Numbers:
    return dict(zip(("car_position", "car_velocity"), physics.state, strict=True))


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


def walking_hull(physics: Any) -> Numbers:
    hull, found = physics.hull, dict[str, Any]()
    found["hull_pitch"], found["hull_pitch_velocity"] = hull.angle, hull.angularVelocity
    found["hull_velocity_x"], found["hull_velocity_z"] = hull.linearVelocity
    # legs are made at ∓0.05 rad, from where Box2D counts the angle of the hip
    for leg, upper, lower, start in (("first", 0, 1, -0.05), ("second", 2, 3, 0.05)):
        thigh, shank = physics.legs[upper], physics.legs[lower]
        found[f"{leg}_hip_position"] = thigh.angle - hull.angle - start
        found[f"{leg}_hip_velocity"] = thigh.angularVelocity - hull.angularVelocity
        found[f"{leg}_knee_position"] = 1.0 + shank.angle - thigh.angle
        found[f"{leg}_knee_velocity"] = shank.angularVelocity - thigh.angularVelocity
        found[f"{leg}_foot_contact"] = touches(shank)
    angles = -math.pi / 2 + 0.15 * np.arange(10)
    found["lidar_distances"] = [ground_along(physics, angle) for angle in angles]
    return found


def ground_along(physics: Any, angle: float, reach: float = 16 / 3) -> float:
    """Distance from the hull to the terrain's polyline along a ray."""
    start = np.array(physics.hull.position)
    ray = reach * np.array([math.cos(angle), math.sin(angle)])
    points = np.column_stack([physics.terrain_x, physics.terrain_y])
    hits = [reach]
    for first, second in pairwise(points):
        system = np.column_stack([ray, first - second])
        if abs(np.linalg.det(system)) > 1e-9:
            along, between = np.linalg.solve(system, first - start)
            if 0.0 <= along <= 1.0 and 0.0 <= between <= 1.0:
                hits.append(along * reach)
    return min(hits)


READ: dict[str, Callable[[Any], Numbers]] = {
    "Ant-v5": ant,
    "HalfCheetah-v5": cheetah,
    "Hopper-v5": hopper,
    "Humanoid-v5": humanoid,
    "HumanoidStandup-v5": standing_up,
    "InvertedPendulum-v5": inverted_pendulum,
    "InvertedDoublePendulum-v5": double_pendulum,
    "Pusher-v5": pusher,
    "Reacher-v5": reacher,
    "Swimmer-v5": swimmer,
    "Walker2d-v5": walker,
    "CartPole-v0": cart_pole,
    "CartPole-v1": cart_pole,
    "Acrobot-v1": acrobot,
    "MountainCar-v0": mountain_car,
    "MountainCarContinuous-v0": mountain_car,
    "Pendulum-v1": pendulum,
    "LunarLander-v3": lander,
    "LunarLanderContinuous-v3": lander,
    "BipedalWalker-v3": walking_hull,
    "BipedalWalkerHardcore-v3": walking_hull,
}
MEASURED = ("x_velocity", "y_velocity")
"""Mean velocities over a step, which are compared with positions before and after."""


def test_every_file_is_compared_with_a_simulator() -> None:
    assert named_ids() == READ.keys()


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
                if key == "lidar_distances" and "Hardcore" in name:
                    continue  # stumps are no part of the polyline
                wanted = np.asarray(numbers, dtype=np.float32)
                if key.endswith("foot_contact"):
                    # 0 also where the foot leaves a piece of the ground and stands on another
                    assert values[key][row] <= numbers
                    continue
                assert values[key][row].shape == wanted.shape, key
                assert values[key][row].numpy() == pytest.approx(wanted, rel=1e-4, abs=2e-5), key
        environment.reset_done()


@pytest.mark.parametrize("name", ["Ant-v5", "HalfCheetah-v5", "Hopper-v5", "Swimmer-v5"])
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


DRIVEN = ("Ant-v5", "HalfCheetah-v5", "Hopper-v5", "Humanoid-v5", "Reacher-v5", "Swimmer-v5")


@pytest.mark.parametrize("name", [*DRIVEN, "HumanoidStandup-v5", "Pusher-v5", "Walker2d-v5"])
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
            "Walker2d-v5",
            {"exclude_current_positions_from_observation": False},
            "it has 18 numbers, and Walker2d-v5.yaml names 17",
        ),
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


def test_parts_of_the_reward_in_the_info_are_no_variables() -> None:
    names = {each.name for each in make("InvertedDoublePendulum-v5", 1).all_variables()}
    assert not any("penalty" in name for name in names)
