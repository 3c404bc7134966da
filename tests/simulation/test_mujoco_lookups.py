"""Lookups by name against plain MuJoCo: joints, actuators, sensors, poses, velocities and contact
forces, and rows that are reset or loaded."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
import torch
from gripper import goes_on_among_others, random_actions, read
from torch import Tensor

from eureka_agent.errors import EnvironmentLoadError
from eureka_agent.simulation.mujoco_task import MujocoTask


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
            joints.position, environment.joint_positions[:, [columns[name] for name in expected]]
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


def test_a_loaded_row_reads_as_where_it_was_taken_from(gripper: Callable[..., Any]) -> None:
    goes_on_among_others(gripper(4, seed=1), gripper(9, seed=2))
    # also into an instance that has not been reset: nothing was simulated there
    goes_on_among_others(gripper(4, seed=1), gripper(9, seed=2, reset=False))


SEVERAL_INPUTS = """
<mujoco>
  <option timestep="0.01"/>
  <worldbody>
    <body><joint name="hip" type="ball"/><geom size=".2" mass="1"/></body>
    <body pos="1 0 0"><joint name="knee" axis="0 1 0"/><geom size=".2" mass="1"/></body>
  </worldbody>
  <actuator>
    <orientation name="hip" joint="hip" kp="5"/>
    <dcmotor name="fan" joint="knee" motorconst=".1" resistance="1" input="none"/>
    <motor name="knee" joint="knee" ctrlrange="-2 2"/>
    <pid name="servo" joint="knee" kp="1" kv="1" input="pos vel" ctrlrange="-3 3"/>
  </actuator>
</mujoco>
"""


def test_actuators_with_several_inputs_or_none_have_their_own_controls(tmp_path: Path) -> None:
    path = tmp_path / "several.xml"
    path.write_text(SEVERAL_INPUTS)

    class Several(MujocoTask):
        """A ball joint, and a hinge with two actuators and a fan."""

        model_file = str(path)
        num_observations, num_actions = 1, 6
        max_episode_length = 10
        control_dt = 0.01
        termination_causes = ("unstable_physics",)

        def compute_observations(self) -> None:
            self.obs_buf.zero_()

        def compute_variables(self) -> dict[str, Tensor]:
            return {}

    channels = Several.channels_of_action()
    names = ["hip_rx", "hip_ry", "hip_rz", "knee", "servo_pos", "servo_vel"]
    assert [channel.name for channel in channels] == names
    assert [channel.range for channel in channels[2:]] == [None, (-2, 2), (-3, 3), None]
    environment = Several(2)
    environment.reset()
    knee, hip = environment.actuator("knee"), environment.actuator("hip")
    assert (knee.lower.item(), knee.upper.item()) == (-2, 2)
    knee.control = torch.tensor([2.0, -2.0])
    assert environment.ctrl.tolist() == [[0, 0, 0, 2, 0, 0], [0, 0, 0, -2, 0, 0]]
    hip.control = torch.ones(2, 3)
    environment.actuator(["servo", "knee"]).control = torch.tensor([[7.0, 8.0, 9.0]]).expand(2, 3)
    assert environment.ctrl[0].tolist() == [1, 1, 1, 9, 7, 8]
    assert hip.lower.shape == (3,)
    with pytest.raises(EnvironmentLoadError, match="'fan' has no control"):
        environment.actuator("fan")
