"""Lookups by name against plain MuJoCo: joints, actuators, sensors, poses, velocities and contact
forces on both simulators, rows that are reset or loaded, and names that are not there."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
import torch
from torch import Tensor

from eureka_agent.errors import EnvironmentLoadError
from eureka_agent.simulation.mujoco_names import can_touch
from eureka_agent.simulation.mujoco_task import MujocoTask

# two fingers press a cube between them, which turns freely; beside it an arm on a ball joint, whose
# elbow stands between the fingers' slides in the MJCF
MJCF = """
<mujoco>
  <option timestep="0.004" integrator="implicitfast"/>
  <size memory="512K"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1"/>
    <body name="left_finger" pos="-0.16 0 0.1">
      <joint name="left_slide" type="slide" axis="1 0 0" range="-0.2 0.1" limited="true"/>
      <geom name="left_pad" size="0.05" mass="0.3"/>
    </body>
    <body name="arm" pos="0 1 1">
      <joint name="shoulder" type="ball"/>
      <geom name="upper" type="capsule" fromto="0 0 0 0.3 0 0" size="0.03" mass="0.5"/>
      <body name="forearm" pos="0.3 0 0" euler="0 0 40">
        <joint name="elbow" type="hinge" axis="0 1 0" damping="0.1"/>
        <geom name="lower" type="capsule" fromto="0 0 0 0.3 0 0" size="0.02" mass="0.3"/>
        <site name="tip" pos="0.3 0 0" euler="20 0 30"/>
      </body>
    </body>
    <body name="right_finger" pos="0.16 0 0.1">
      <joint name="right_slide" type="slide" axis="-1 0 0" range="-0.2 0.1" limited="true"/>
      <geom name="right_pad" size="0.05" mass="0.3"/>
    </body>
    <body name="cube" pos="0 0 0.08" euler="0 0 10">
      <freejoint name="cube_root"/>
      <geom name="cube_box" type="box" size="0.08 0.08 0.08" mass="0.4"/>
      <geom name="cube_knob" type="sphere" size="0.03" pos="0 0 0.1" mass="0.1"/>
    </body>
    <body name="ghost" pos="0 -1 1">
      <geom name="ghost" size="0.1" contype="0" conaffinity="0"/>
    </body>
    <body name="cup" pos="0 -2 1">
      <geom name="cup" size="0.1"/><geom name="handle" size="0.05" pos="0.1 0 0"/>
    </body>
  </worldbody>
  <contact><exclude body1="cube" body2="cup"/></contact>
  <actuator>
    <motor name="right_push" joint="right_slide" ctrlrange="0 8" ctrllimited="true"/>
    <motor name="elbow_turn" joint="elbow"/>
    <motor name="left_push" joint="left_slide" ctrlrange="0 8" ctrllimited="true"/>
  </actuator>
  <sensor>
    <jointpos name="elbow_angle" joint="elbow"/>
    <framepos name="tip_place" objtype="site" objname="tip"/>
    <jointvel name="elbow_speed" joint="elbow"/>
  </sensor>
</mujoco>
"""


class Gripper(MujocoTask):
    """Two fingers, a cube and an arm."""

    num_observations = 1
    num_actions = 3
    max_episode_length = 1000
    control_dt = 0.016
    position_noise = 0.01
    velocity_noise = 0.1
    termination_causes = ("unstable_physics",)

    def look_up(self) -> None:
        self.fingers = self.joint(["left_slide", "right_slide"])
        self.cube_root = self.free_joint("cube_root")
        self.cube = self.body("cube")
        self.links = self.body(["forearm", ".*_finger"])
        self.tip = self.site("tip")
        self.pads = self.contact([".*_pad"], "cube")
        self.grip = self.contact("left_finger", "cube_box")
        self.ground = self.contact("cube", "floor")
        self.any = self.contact("cube")

    def __init__(self, num_envs: int, device: torch.device | str = "cpu", seed: int = 0) -> None:
        super().__init__(num_envs, device, seed)
        self.look_up()

    def compute_observations(self) -> None:
        self.obs_buf[:, 0] = self.cube_root.position_w[:, 2]

    def compute_variables(self) -> dict[str, Tensor | Callable[[], Tensor]]:
        return {}


@pytest.fixture
def gripper(tmp_path: Path) -> Callable[..., Any]:
    """`gripper(num_envs, seed, device, **attributes of the class)`, freshly reset unless
    `reset=False`."""
    path = tmp_path / "gripper.xml"
    path.write_text(MJCF)

    def made(
        num_envs: int = 4,
        seed: int = 0,
        device: str = "cpu",
        reset: bool = True,
        **attributes: object,
    ) -> Any:
        cls = type("Gripper", (Gripper,), {"model_file": str(path), **attributes})
        environment = cls(num_envs, device, seed)
        if reset:
            environment.reset()
        return environment

    return made


def random_actions(environment: Any, steps: int, seed: int = 0) -> Tensor:
    """The fingers press the harder the longer, and the arm is moved at random."""
    generator = torch.Generator().manual_seed(seed)
    shape = steps, environment.num_envs, 3
    return 2.0 * torch.rand(shape, generator=generator) - 1.0


def plain_step(environment: Any, row: int, actions: Tensor) -> mujoco.MjData:
    """One control step of a row by MuJoCo itself: contact forces are of its last physics step,
    the rest is calculated from the state reached."""
    model, data = environment.model, mujoco.MjData(environment.model)
    for name, value in environment.physics.state().items():
        if name != "time":
            getattr(data, name)[:] = value[row].numpy()
    low, high = np.array([0.0, -1.0, 0.0]), np.array([8.0, 1.0, 8.0])
    data.ctrl[:] = (low + high) / 2 + (high - low) / 2 * actions[row].numpy()
    mujoco.mj_step(model, data, nstep=4)
    return data


def force_by(data: mujoco.MjData, model: mujoco.MjModel, on: set[str], by: set[str]) -> list[float]:
    """Net force on some geoms by others in the world, from MuJoCo's list of contacts; and how many
    there are."""
    total, count, force = np.zeros(3), 0, np.zeros(6)
    for index in range(data.ncon):
        contact = data.contact[index]
        first, second = (model.geom(int(geom)).name for geom in contact.geom)
        if not ((first in on and second in by) or (first in by and second in on)):
            continue
        mujoco.mj_contactForce(model, data, index, force)
        # of the first geom on the second, in a frame whose axes are the rows
        world = contact.frame.reshape(3, 3).T @ force[:3]
        total += world if second in on else -world
        count += 1
    return [*total, count]


CUBE = {"cube_box", "cube_knob"}
ALL = {"floor", "left_pad", "right_pad", "upper", "lower", "cup", "handle"}


def test_poses_velocities_and_forces_are_those_of_plain_mujoco(gripper: Callable[..., Any]) -> None:
    environment = gripper()
    touched = set()
    for step, actions in enumerate(random_actions(environment, 60)):
        expected = [plain_step(environment, row, actions) for row in range(4)]
        environment.advance(actions)
        for row, data in enumerate(expected):
            model = environment.model

            def near(found: Tensor, figures: Any) -> None:
                np.testing.assert_allclose(found.numpy(), np.array(figures), rtol=1e-5, atol=2e-5)

            for contact, on, by in (
                (environment.grip, {"left_pad"}, {"cube_box"}),
                (environment.ground, CUBE, {"floor"}),
                (environment.any, CUBE, ALL),
            ):
                *force, count = force_by(data, model, on, by)
                near(contact.force_w[row], force)
                assert bool(contact.is_touching[row]) == (count > 0)
                touched.add((contact, count > 0))
            pads = [force_by(data, model, {pad}, CUBE) for pad in ("left_pad", "right_pad")]
            near(environment.pads.force_w[row], [pad[:3] for pad in pads])
            assert environment.pads.is_touching[row].tolist() == [pad[3] > 0 for pad in pads]
            mujoco.mj_forward(model, data)
            near(environment.cube.position_w[row], data.body("cube").xpos)
            near(environment.cube.orientation_w[row], data.body("cube").xquat)
            near(environment.tip.position_w[row], data.site("tip").xpos)
            turn = np.zeros(9)
            mujoco.mju_quat2Mat(turn, environment.tip.orientation_w[row].double().numpy())
            assert turn == pytest.approx(data.site("tip").xmat, abs=1e-6)
            links = ["forearm", "left_finger", "right_finger"]
            near(environment.links.position_w[row], [data.body(name).xpos for name in links])
            near(environment.links.orientation_w[row], [data.body(name).xquat for name in links])
            for frame, kind, index in (
                (environment.cube, mujoco.mjtObj.mjOBJ_XBODY, model.body("cube").id),
                (environment.tip, mujoco.mjtObj.mjOBJ_SITE, model.site("tip").id),
            ):
                world, own = np.zeros(6), np.zeros(6)
                mujoco.mj_objectVelocity(model, data, kind, index, world, 0)
                mujoco.mj_objectVelocity(model, data, kind, index, own, 1)
                near(frame.angular_velocity_w[row], world[:3])
                near(frame.linear_velocity_w[row], world[3:])
                near(frame.angular_velocity_b[row], own[:3])
                near(frame.linear_velocity_b[row], own[3:])
            near(environment.cube_root.position_w[row], data.qpos[-7:-4])
            near(environment.cube_root.orientation_w[row], data.qpos[-4:])
            near(environment.cube_root.linear_velocity_w[row], data.qvel[-6:-3])
            near(environment.cube_root.angular_velocity_b[row], data.qvel[-3:])
        if step == 30:
            environment.reset_rows(torch.tensor([1]))
    # each contact was there and was not, but for the cube, which lies on the floor
    assert {(environment.grip, True), (environment.grip, False)} <= touched


def test_a_cube_at_rest_is_carried_by_the_floor(gripper: Callable[..., Any]) -> None:
    environment = gripper(position_noise=0.0, velocity_noise=0.0)
    for _ in range(60):
        environment.advance(torch.tensor([[-1.0, 0.0, -1.0]] * 4))
    # 0.4 kg and 0.1 kg; what presses on the floor is the same with the other sign
    weight = [0.0, 0.0, 0.5 * 9.81]
    assert environment.ground.force_w[0].tolist() == pytest.approx(weight, abs=1e-3)
    assert environment.ground.is_touching.tolist() == [True] * 4
    assert environment.pads.force_w[0].tolist() == [[0.0] * 3] * 2
    assert environment.pads.is_touching[0].tolist() == [False] * 2
    turned = math.radians(10) / 2
    assert environment.cube.orientation_w[0].tolist() == pytest.approx(
        [math.cos(turned), 0.0, 0.0, math.sin(turned)], abs=1e-4
    )


def test_groups_are_in_the_order_asked_for(gripper: Callable[..., Any]) -> None:
    environment = gripper()
    environment.advance(torch.zeros(4, 3))
    columns = {"left_slide": 0, "elbow": 5, "right_slide": 6}  # of qpos: a ball joint has four
    for names, expected in (
        (["right_slide", "left_slide"], ["right_slide", "left_slide"]),  # backwards
        (["left_slide", "right_slide"], ["left_slide", "right_slide"]),  # a step of 6
        (["elbow", ".*_slide"], ["elbow", "left_slide", "right_slide"]),
        ([".*_slide", "left_slide"], ["left_slide", "right_slide"]),  # once
        (("elbow",), ["elbow"]),
    ):
        joints = environment.joint(names)
        assert torch.equal(
            joints.position,
            environment.joint_positions[:, [columns[name] for name in expected]],
        )
        # three numbers for the ball joint's velocity in place of four
        velocities = [columns[name] - (name != "left_slide") for name in expected]
        assert torch.equal(joints.velocity, environment.joint_velocities[:, velocities])
    elbow = environment.joint("elbow")
    assert torch.equal(elbow.position, environment.joint_positions[:, 5])
    shoulder = environment.joint("shoulder")
    assert torch.equal(shoulder.position, environment.joint_positions[:, 1:5])
    assert torch.equal(shoulder.velocity, environment.joint_velocities[:, 1:4])
    assert environment.joint("cube_root").position.shape == (4, 7)
    assert environment.joint("cube_root").velocity.shape == (4, 6)


def test_limits_scale_positions(gripper: Callable[..., Any]) -> None:
    environment = gripper(position_noise=0.0)
    fingers, elbow = environment.fingers, environment.joint("elbow")
    assert fingers.lower.tolist() == pytest.approx([-0.2, -0.2])
    assert fingers.upper.tolist() == pytest.approx([0.1, 0.1])
    assert (float(elbow.lower), float(elbow.upper)) == (-math.inf, math.inf)
    # 0 lies two thirds of the way up: from -1, two thirds of 2
    assert fingers.scaled_position[0].tolist() == pytest.approx([1.0 / 3.0] * 2)


def test_sensors_stand_side_by_side(gripper: Callable[..., Any]) -> None:
    environment = gripper()
    environment.advance(torch.ones(4, 3))
    sensors = environment.sensors
    group = environment.sensor(["elbow_speed", "tip_place"]).value
    expected = torch.cat((sensors["elbow_speed"].unsqueeze(1), sensors["tip_place"]), dim=1)
    assert torch.equal(group, expected)
    assert torch.equal(environment.sensor("elbow_angle").value, sensors["elbow_angle"])
    assert torch.equal(environment.sensor("tip_place").value, sensors["tip_place"])
    assert set(sensors) == {"elbow_angle", "tip_place", "elbow_speed"}


def test_controls_are_set_by_name(gripper: Callable[..., Any]) -> None:
    environment = gripper()
    pushes, elbow = environment.actuator([".*_push"]), environment.actuator("elbow_turn")
    assert pushes.upper.tolist() == [8.0, 8.0]
    assert (float(elbow.lower), float(elbow.upper)) == (-math.inf, math.inf)
    pushes.control = torch.tensor([[1.0, 2.0]] * 4)
    elbow.control = torch.tensor([3.0, 4.0, 5.0, 6.0])
    assert environment.ctrl[:2].tolist() == [[1.0, 3.0, 2.0], [1.0, 4.0, 2.0]]
    environment.actuator(["elbow_turn", "right_push"]).control = torch.tensor([7.0, 8.0])
    assert environment.ctrl.tolist() == [[8.0, 7.0, 2.0]] * 4
    assert pushes.control.tolist() == [[8.0, 2.0]] * 4


def test_start_states_are_written_by_name(gripper: Callable[..., Any]) -> None:
    def place(self: Any, env_ids: Tensor) -> None:
        height = 0.5 + 0.1 * env_ids
        self.cube_root.write(
            env_ids,
            position_w=torch.stack((height, height, height), dim=1),
            orientation_w=torch.tensor([0.0, 0.0, 0.0, 1.0]),
            linear_velocity_w=torch.tensor([1.0, 2.0, 3.0]),
        )
        self.joint("elbow").write(env_ids, position=0.25 * env_ids, velocity=-env_ids)
        self.joint(["right_slide", "left_slide"]).write(env_ids, position=torch.tensor([0.1, 0.2]))

    environment = gripper(place=place)
    environment.reset_rows(torch.tensor([1, 3]))
    for row in range(4):
        assert environment.qpos[row, -7:].tolist() == pytest.approx(
            [0.5 + 0.1 * row] * 3 + [0, 0, 0, 1]
        )
        assert environment.qvel[row, -6:].tolist() == [1.0, 2.0, 3.0, 0.0, 0.0, 0.0]
        assert environment.qpos[row, [0, 5, 6]].tolist() == pytest.approx([0.2, 0.25 * row, 0.1])
        assert environment.qvel[row, 4].tolist() == -row
        assert environment.cube.position_w[row].tolist() == pytest.approx([0.5 + 0.1 * row] * 3)


def test_what_is_looked_up_changes_no_movement(gripper: Callable[..., Any]) -> None:
    def nothing(self: Any) -> None:
        self.cube_root = self.free_joint("cube_root")

    full, bare = gripper(), gripper(look_up=nothing)
    assert full.model.nsensor > bare.model.nsensor == 3
    for actions in random_actions(full, 50):
        full.advance(actions)
        bare.advance(actions)
        assert torch.equal(full.qpos, bare.qpos)
        for name, value in full.sensors.items():
            assert torch.equal(value, bare.sensors[name])


def read(environment: Any) -> dict[str, Tensor]:
    return {
        "position": environment.links.position_w,
        "orientation": environment.tip.orientation_w,
        "velocity": environment.cube.linear_velocity_b,
        "force": environment.pads.force_w,
        "touching": environment.ground.is_touching,
    }


@pytest.mark.parametrize("masked", [False, True])
def test_resets_leave_the_other_rows_alone(gripper: Callable[..., Any], masked: bool) -> None:
    environment = gripper()
    for actions in random_actions(environment, 30):
        environment.advance(actions)
    before = {name: value.clone() for name, value in read(environment).items()}
    if masked:
        environment.reset_masked(torch.tensor([False, False, True, False]))
    else:
        environment.reset_rows(torch.tensor([2]))
    others = torch.tensor([0, 1, 3])
    for name, value in read(environment).items():
        assert torch.equal(value[others], before[name][others]), name
    data = mujoco.MjData(environment.model)
    data.qpos[:], data.qvel[:] = environment.qpos[2].numpy(), environment.qvel[2].numpy()
    mujoco.mj_forward(environment.model, data)
    assert environment.links.position_w[2, 0].tolist() == pytest.approx(
        data.body("forearm").xpos.tolist(), abs=1e-6
    )
    *force, _ = force_by(data, environment.model, CUBE, {"floor"})
    assert environment.ground.force_w[2].tolist() == pytest.approx(force, 1e-5, 1e-5)


def goes_on_among_others(first: Any, second: Any) -> None:
    taken, place = torch.tensor([1, 3]), torch.tensor([6, 2])
    for actions in random_actions(first, 25):
        first.advance(actions)
    second.load_row_state(place, first.row_state(taken))
    for actions in random_actions(first, 25, seed=4):
        for name, value in read(second).items():
            assert torch.equal(value[place], read(first)[name][taken]), name
        others = random_actions(second, 1, seed=9)[0]
        others[place] = actions[taken]
        first.advance(actions)
        second.advance(others)
        # another row's start copies nothing of what a loaded row's simulator has not calculated yet
        second.reset_rows(torch.tensor([0]))


def test_a_loaded_row_reads_as_where_it_was_taken_from(gripper: Callable[..., Any]) -> None:
    goes_on_among_others(gripper(4, seed=1), gripper(9, seed=2))
    # also into an instance that has not been reset: nothing was simulated there
    goes_on_among_others(gripper(4, seed=1), gripper(9, seed=2, reset=False))


def test_a_model_that_was_changed_in_init_stays_changed(gripper: Callable[..., Any]) -> None:
    def lighter(self: Any) -> None:
        self.model.opt.gravity[2] = -2.0
        self.model.body_mass[self.model.body("cube").id] = 3.0
        Gripper.look_up(self)

    environment = gripper(look_up=lighter, position_noise=0.0, velocity_noise=0.0)
    environment.qpos[:, -5] = 2.0
    environment.advance(torch.zeros(4, 3))
    # after n steps of h the semi-implicit fall is g h² n (n + 1) / 2
    assert float(environment.qpos[0, -5]) == pytest.approx(2.0 - 2.0 * 0.004**2 * 10, abs=1e-9)
    assert environment.model.body("cube").mass == 3.0


EXCLUDED = '<exclude body1="cube" body2="cup"/>'


@pytest.mark.parametrize(
    "change",
    [
        ("", ""),
        ("<option ", '<option><flag filterparent="disable"/></option><option '),
        (
            EXCLUDED,
            '<pair geom1="upper" geom2="lower"/><exclude body1="left_finger" body2="cube"/>',
        ),
    ],
    ids=["as it is", "parents are compared", "a pair"],
)
def test_what_can_touch_is_what_mujoco_compares(change: tuple[str, str]) -> None:
    model = mujoco.MjModel.from_xml_string(MJCF.replace(*change))
    expected = {
        frozenset((first, second))
        for first in range(model.ngeom)
        for second in range(first + 1, model.ngeom)
        if can_touch(model, [first], [second])
    }
    # all geoms become spheres so large that each is in each
    model.geom_type[:], model.geom_size[:, 0] = mujoco.mjtGeom.mjGEOM_SPHERE, 9.0
    model.geom_rbound[:], model.geom_aabb[:] = 9.0, [0.0, 0.0, 0.0, 9.0, 9.0, 9.0]
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_MIDPHASE)
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    mujoco.mj_collision(model, data)
    found = {frozenset(contact.geom.tolist()) for contact in data.contact[: data.ncon]}
    assert found == expected
    assert 20 < len(found) < model.ngeom * (model.ngeom - 1) // 2


MISTAKES: dict[str, tuple[Callable[[Any], object], str, str]] = {
    "misspelt": (
        lambda task: task.joint("elbwo"),
        "no <joint> named 'elbwo'; it has: cube_root, elbow, left_slide, right_slide, shoulder",
        "did you mean 'elbow'?",
    ),
    "in a list": (
        lambda task: task.actuator(["elbow_turn", "lift"]),
        "no <actuator> named 'lift'; it has: elbow_turn, left_push, right_push",
        'use one of these, or write name="lift" into the MJCF',
    ),
    "of another kind": (
        lambda task: task.body("tip"),
        "no <body> named 'tip'",
        "'tip' is the name of a site",
    ),
    "a pattern alone": (
        lambda task: task.site("t.p"),
        "no <site> named 't.p'",
        "a pattern stands in a list: ['t.p']",
    ),
    "no pattern": (
        lambda task: task.joint(["*_slide"]),
        "'*_slide' is neither the name of a <joint> nor a regular expression: nothing to repeat",
        "'.*_knee' matches all that end in _knee",
    ),
    "nothing": (lambda task: task.sensor([]), "[] names no <sensor>", "elbow_angle"),
    "a number": (lambda task: task.body(3), "3 names no <body>", "the MJCF has: arm, cube"),
    "a free joint in a group": (
        lambda task: task.joint(["elbow", "cube_root"]),
        "'cube_root' is a free joint: a group is of hinges and slides",
        "self.joint('cube_root')",
    ),
    "no free joint": (
        lambda task: task.free_joint("elbow"),
        "'elbow' is a hinge joint, expected a free one",
        "self.joint('elbow')",
    ),
    "a contact with nobody": (
        lambda task: task.contact("cube", "flor"),
        "no <geom> or <body> named 'flor'",
        "did you mean 'floor'?",
    ),
    "a contact that cannot be": (
        lambda task: task.contact("cube", "ghost"),
        "'cube' and 'ghost' can have no contact",
        "contype",
    ),
    "a contact with itself": (
        lambda task: task.contact("cube_box", "cube_knob"),
        "can have no contact",
        "<contact><pair>",
    ),
    "a contact across a joint": (
        lambda task: task.contact("upper", "lower"),
        "'upper' and 'lower' can have no contact",
        "<contact><pair>",
    ),
    "a contact that is excluded": (
        lambda task: task.contact("handle", "cube"),
        "can have no contact",
        "<contact><pair>",
    ),
    "a contact with several": (
        lambda task: task.contact("cube", ["left_pad", "right_pad"]),
        "contact('cube', ['left_pad', 'right_pad']): expected one name to be touched",
        "only the first may be a list",
    ),
    "a name of two things": (
        lambda task: task.contact("cup", "cube"),
        "'cup' is a geom of the MJCF, and a body that has other geoms",
        "rename one of them",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_names_that_are_not_there(gripper: Callable[..., Any], mistake: str) -> None:
    ask, message, hint = MISTAKES[mistake]
    with pytest.raises(EnvironmentLoadError) as caught:
        ask(gripper(reset=False))
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


def test_a_body_looked_up_too_late_is_told(gripper: Callable[..., Any]) -> None:
    environment = gripper()
    assert environment.body("cube").position_w.shape == (4, 3)  # looked up in time
    for ask, name in (
        (lambda: environment.body("arm"), "'arm'"),
        (lambda: environment.contact("upper", "floor"), "'upper'"),
    ):
        with pytest.raises(
            EnvironmentLoadError, match=f"{name} was looked up after the simulation had been made"
        ) as caught:
            ask()
        assert "in __init__" in (caught.value.hint or "")


@pytest.mark.slow
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_both_simulators_read_the_same(gripper: Callable[..., Any], device: str) -> None:
    pytest.importorskip("mujoco_warp")
    batch = gripper(8)
    warp = gripper(8, device=device, simulator="warp")
    errors: dict[str, list[float]] = {}
    pressed = 0.0
    for step, actions in enumerate(random_actions(batch, 60)):
        for name, value in warp.physics.state().items():
            value.copy_(batch.physics.state()[name])
        batch.advance(actions)
        warp.advance(actions.to(device))
        if step == 30:
            batch.reset_rows(torch.tensor([1]))
            warp.reset_masked(torch.arange(8, device=device) == 1)
        for name, value in read(batch).items():
            error = (read(warp)[name].cpu().double() - value.double()).abs().max()
            errors.setdefault(name, []).append(float(error))
        pressed = max(pressed, float(batch.pads.force_w.abs().max()))
    # float32 in place of float64; the largest of these figures were 2e-7, 2e-7, 2e-6 and 5e-4 N
    for name, largest in {
        "position": 1e-5,
        "orientation": 1e-5,
        "velocity": 1e-4,
        "force": 1e-2,
    }.items():
        assert max(errors[name]) < largest, name
    assert pressed > 5.0
    # what just touches does so in one of the two
    assert sum(errors["touching"]) <= 2.0


@pytest.mark.slow
def test_a_loaded_row_on_warp_reads_as_where_it_was_taken_from(
    gripper: Callable[..., Any],
) -> None:
    pytest.importorskip("mujoco_warp")
    goes_on_among_others(gripper(4, seed=1, simulator="warp"), gripper(9, seed=2, simulator="warp"))


@pytest.mark.slow
@pytest.mark.gpu
def test_reads_and_writes_by_name_wait_for_no_gpu(gripper: Callable[..., Any]) -> None:
    environment = gripper(8, device="cuda")
    elbow, backwards = environment.joint("elbow"), environment.joint(["right_slide", "left_slide"])
    pushes = environment.actuator([".*_push"])
    actions, rows = torch.zeros(8, 3, device="cuda"), torch.arange(8, device="cuda")
    for _ in range(3):  # kernels are compiled in the first, graphs recorded in the second
        environment.advance(actions)
    torch.cuda.set_sync_debug_mode("error")
    try:
        elbow.write(rows, position=actions[:, 0], velocity=actions[:, 0])
        backwards.write(rows, position=actions[:, :2])
        environment.cube_root.write(rows, position_w=actions)
        pushes.control = backwards.velocity
        environment.advance(actions)
        read(environment)
    finally:
        torch.cuda.set_sync_debug_mode("default")
