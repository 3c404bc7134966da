"""A cube in a robot hand of MuJoCo: goals, observations, variables and ends that do not depend on
the hand, for `envs/allegro_hand` and `envs/shadow_hand`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import ClassVar, Literal

import torch
from torch import Tensor

from eureka_agent.simulation.mujoco_task import MujocoTask

from . import quaternions

LOWEST = -0.01
"""Height in m of the cube's centre below which it is dropped."""
SMOOTHING = 0.5
"""Part of the way to a new command that the motors' targets go in a control step."""
PLACE_NOISE = 0.005
"""Noise of the cube's start position, ± m along x and y."""
YAW_NOISE = 0.2
"""Noise of the cube's start angle about z, ± rad."""
JOINT_NOISE = 0.05
"""Noise of the hand's start angles, ± rad."""


class CubeInHand(MujocoTask):
    """Base of hands that turn a cube. The MJCF holds a free joint `cube`, after all others; a
    keyframe `start`; and a geom and a site `<finger>_tip` of each finger."""

    device_types = ("cpu", "cuda")
    control_dt = 0.05
    termination_causes = ("dropped", "unstable_physics")
    termination_conditions: Mapping[str, str] = {"dropped": f"cube_height below {LOWEST:g} m"}
    fingers: ClassVar[tuple[str, ...]]
    joints: ClassVar[tuple[str, ...]]
    """Joints of the hand, in the MJCF's order."""
    motors: ClassVar[tuple[str, ...]]
    """Actuators, in the order of the actions; their controls are targets of angles."""

    def __init__(
        self,
        num_envs: int,
        device: torch.device | str = "cpu",
        seed: int = 0,
        *,
        goals: Literal["turn", "any"] = "turn",
        turn: float = math.pi / 4.0,
        tolerance: float = 0.25,
        hold: int = 5,
    ) -> None:
        """`goals`: each is the last one turned about z by `turn` rad, the first one the start; or
        any orientation. A goal is reached after `hold` control steps in a row with a rotation
        distance below `tolerance` rad: several, so that a thrown cube does not count."""
        super().__init__(num_envs, device, seed)
        self.any_goal = goals == "any"
        self.tolerance, self.hold = tolerance, hold
        self.cube = self.free_joint("cube")
        self.hand = self.joint(self.joints)
        self.commands = self.actuator(self.motors)
        tips = [f"{finger}_tip" for finger in self.fingers]
        self.tips = self.site(tips)
        self.touches = self.contact(tips, "cube")
        start = self.model.key("start")
        self._start_qpos, self._start_ctrl = (
            torch.tensor(values, device=self.device) for values in (start.qpos, start.ctrl)
        )
        self._place = self._start_qpos[-7:-4].float()
        self._middle = (self.commands.lower + self.commands.upper) / 2.0
        self._half = (self.commands.upper - self.commands.lower) / 2.0
        self._turn = quaternions.about_z(torch.tensor(turn, device=self.device))
        self.goal, self.next_goal, self.orientation = torch.zeros(
            3, num_envs, 4, device=self.device
        )
        """Goal of this step, and of the next one; the cube's orientation at the last count."""
        self.distance, self.progress, self.turned = torch.zeros(3, num_envs, device=self.device)
        self.held, self.reached, self.reached_count = torch.zeros(3, num_envs, device=self.device)
        """Steps in a row at the goal; 1 where it is reached; count of goals reached."""

    # ── a step ────────────────────────────────────────────────────────────────────────────────────

    def pre_physics_step(self, actions: Tensor) -> None:
        """Move the motors' targets towards the commanded angles."""
        self.commands.control += SMOOTHING * (
            self._middle + self._half * actions - self.commands.control
        )

    def simulate(self) -> None:
        super().simulate()
        self.count()

    def count(self) -> None:
        """Compare the cube with the goal, and choose the next one where it is reached."""
        orientation = self.cube.orientation_w
        step = quaternions.multiply(orientation, quaternions.conjugate(self.orientation))
        self.turned += quaternions.angle_about_z(step)
        self.goal.copy_(self.next_goal)
        before = quaternions.angle(self.error(self.orientation))
        self.distance.copy_(quaternions.angle(self.error(orientation)))
        self.progress.copy_(before - self.distance)
        # a goal that was reached in the step before has been replaced
        self.held *= 1.0 - self.reached
        self.held += 1.0
        self.held *= (self.distance < self.tolerance) & ~self.unstable
        reached = self.held >= self.hold
        self.reached.copy_(reached)
        self.reached_count += self.reached
        rows = torch.arange(self.num_envs, device=self.device)
        new = self.new_goal(rows, self.goal)
        self.next_goal.copy_(torch.where(reached.unsqueeze(-1), new, self.goal))
        self.orientation.copy_(orientation)

    def error(self, orientation: Tensor) -> Tensor:
        """Rotation that takes the cube to the goal of this step. Shape: (num_envs, 4)."""
        return quaternions.multiply(self.goal, quaternions.conjugate(orientation))

    def new_goal(self, env_ids: Tensor, last: Tensor) -> Tensor:
        """Goals after `last`. Shape of both: (len(env_ids), 4)."""
        if self.any_goal:
            return quaternions.uniform(self.random.uniform(env_ids, 3))
        return quaternions.multiply(self._turn, last)

    def compute_failures(self) -> dict[str, Tensor]:
        return {"dropped": self.cube.position_w[:, 2] < LOWEST}

    def place_distance(self) -> Tensor:
        """Distance of the cube from its start place, m. Shape: (num_envs,)."""
        return (self.cube.position_w - self._place).norm(dim=-1)

    def cube_angular_velocity_w(self) -> Tensor:
        """rad/s. Shape: (num_envs, 3)."""
        return quaternions.rotate(self.cube.orientation_w, self.cube.angular_velocity_b)

    # ── start ─────────────────────────────────────────────────────────────────────────────────────

    def place(self, env_ids: Tensor) -> None:
        """The keyframe, with noise of the hand's angles, the cube's place and its turn about z."""
        joints = len(self.joints)
        noise = self.random.uniform(env_ids, joints + 3, -1.0, 1.0)
        angles = self._start_qpos[:joints] + JOINT_NOISE * noise[:, :joints]
        self.hand.write(env_ids, position=angles)
        self.ctrl[env_ids] = self._start_ctrl.to(self.ctrl)
        shift = PLACE_NOISE * noise[:, joints : joints + 2]
        position = self._place + torch.nn.functional.pad(shift, (0, 1))
        orientation = quaternions.about_z(YAW_NOISE * noise[:, joints + 2])
        self.cube.write(env_ids, position_w=position, orientation_w=orientation)
        goal = self.new_goal(env_ids, orientation)
        error = quaternions.multiply(goal, quaternions.conjugate(orientation))
        for tensor, values in (
            (self.orientation, orientation),
            (self.goal, goal),
            (self.next_goal, goal),
            (self.distance, quaternions.angle(error)),
        ):
            tensor.index_copy_(0, env_ids, values)
        for tensor in (self.progress, self.turned, self.held, self.reached, self.reached_count):
            tensor.index_fill_(0, env_ids, 0.0)

    # ── what policies and rewards read ────────────────────────────────────────────────────────────

    def compute_observations(self) -> None:
        cube = self.cube
        orientation = cube.orientation_w
        error = quaternions.multiply(self.next_goal, quaternions.conjugate(orientation))
        torch.cat(
            (
                self.hand.scaled_position,
                0.2 * self.hand.velocity,
                10.0 * (cube.position_w - self._place),
                _axes(orientation),
                cube.linear_velocity_w,
                0.2 * self.cube_angular_velocity_w(),
                quaternions.to_rotation_vector(error),
                10.0 * (self.tips.position_w - cube.position_w.unsqueeze(1)).flatten(1),
                (self.commands.control.float() - self._middle) / self._half,
                self.actions,
            ),
            dim=1,
            out=self.obs_buf,
        )

    def compute_variables(self) -> dict[str, Tensor | Callable[[], Tensor]]:
        cube, hand, tips = self.cube, self.hand, self.tips
        return {
            "cube_position": lambda: cube.position_w,
            "cube_orientation": lambda: cube.orientation_w,
            "cube_velocity": lambda: cube.linear_velocity_w,
            "cube_angular_velocity": self.cube_angular_velocity_w,
            "cube_height": lambda: cube.position_w[:, 2],
            "cube_place_distance": self.place_distance,
            "cube_upright": lambda: _axes(cube.orientation_w)[:, 5].clamp(-1.0, 1.0),
            "goal_orientation": self.goal,
            "goal_rotation_vector": lambda: quaternions.to_rotation_vector(
                self.error(self.orientation)
            ),
            "rotation_distance": self.distance,
            "rotation_progress": self.progress,
            "time_at_goal": lambda: self.control_dt * self.held,
            "goal_reached": self.reached,
            "goals_reached": self.reached_count,
            "angle_turned": self.turned,
            "fingertip_positions": lambda: tips.position_w,
            "fingertip_distances": lambda: (tips.position_w - cube.position_w.unsqueeze(1)).norm(
                dim=-1
            ),
            "fingertips_in_contact": lambda: self.touches.is_touching.float(),
            "joint_positions": lambda: hand.position,
            "joint_velocities": lambda: hand.velocity,
            "joint_targets": lambda: self.commands.control.float(),
        }


def _axes(orientation: Tensor) -> Tensor:
    """The cube's x axis and z axis in the world. Shape: (num_envs, 6)."""
    w, x, y, z = orientation.unbind(dim=-1)
    return torch.stack(
        (
            1.0 - 2.0 * (y * y + z * z),
            2.0 * (x * y + w * z),
            2.0 * (x * z - w * y),
            2.0 * (x * z + w * y),
            2.0 * (y * z - w * x),
            1.0 - 2.0 * (x * x + y * y),
        ),
        dim=-1,
    )
