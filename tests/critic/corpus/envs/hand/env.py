"""Isaac Gym's ShadowHand and AllegroHand, over random walks."""

from __future__ import annotations

from typing import ClassVar

import torch
from corpus_world import RandomWalks, Walk, constants, rotation_of, vectors
from torch import Tensor

from eureka_agent.task import Variable

FINGERS = 5
JOINTS = 20


class Hand(RandomWalks):
    """A hand with five fingers and 20 joints that is to turn a cube in its palm to a goal
    orientation.

    The palm is at (0, -0.39, 0.54), facing up. An episode ends where the cube has fallen off.
    """

    num_actions = JOINTS
    walks: ClassVar = {
        "object": Walk(3, 0.03, 0.25, (0.0, -0.39, 0.54)),
        "turn": Walk(3, 0.9, 2.5),
        "goal_turn": Walk(3, 0.9, 0.0),
        "fingers": Walk(3 * FINGERS, 0.035, 0.3),
        "joints": Walk(JOINTS, 0.4, 2.5, 0.6),
        "touch": Walk(6 * FINGERS, 1.5, 15.0),
    }
    variables = (
        *vectors("world", "m", 3, object_pos="position of the cube", goal_pos="position where the cube is to stay",
                 hand_pos="position of the palm"),
        *vectors("world", "1", 4, (-1.0, 1.0), object_rot="orientation of the cube as a quaternion x, y, z, w",
                 goal_rot="orientation that it is to get, a quaternion x, y, z, w"),
        *vectors("world", "m, 1", 7, object_pose="position and quaternion of the cube", goal_pose="position and quaternion of the goal"),
        *vectors("world", "m/s", 3, object_linvel="velocity of the cube"),
        *vectors("world", "rad/s", 3, object_angvel="angular velocity of the cube"),
        Variable("fingertip_pos", (FINGERS, 3), "m", "world", "positions of the fingertips: first, middle, ring, little finger, thumb"),
        *vectors("joint", "rad", JOINTS, (0.0, 1.571), shadow_hand_dof_pos="joint angles", shadow_hand_dof_lower_limits="lower limits of the joint angles",
                 shadow_hand_dof_upper_limits="upper limits of the joint angles"),
        *vectors("joint", "rad/s", JOINTS, shadow_hand_dof_vel="joint velocities"),
        *vectors("joint", "N·m", JOINTS, dof_force_tensor="joint torques"),
        *vectors("body", "N, N·m", 6 * FINGERS, vec_sensor_tensor="of each fingertip: force x, y, z, torque x, y, z; 0 without contact"),
        *vectors("world", "1", 3, (0.0, 1.0), x_unit_tensor="the x axis", y_unit_tensor="the y axis", z_unit_tensor="the z axis"),
        *vectors("-", "1", 0, (0.0, 300.0), progress_buf="control steps since the start"),
    )  # fmt: skip
    constants = constants(
        dt=1.0 / 60.0, max_episode_length=300.0, dist_reward_scale=-10.0, rot_reward_scale=1.0, rot_eps=0.1, action_penalty_scale=-0.0002,
        success_tolerance=0.1, reach_goal_bonus=250.0, fall_dist=0.24, fall_penalty=-50.0, object_radius=0.03, vel_obs_scale=0.2,
    )  # fmt: skip

    def compute_variables(self) -> dict[str, Tensor]:
        position, rotation, goal = (
            self.at("object"),
            rotation_of(self.at("turn")),
            rotation_of(self.at("goal_turn")),
        )
        centre = self.full(0.0, -0.39, 0.54)
        tips = (position.unsqueeze(1) + self.at("fingers").view(-1, FINGERS, 3)).contiguous()
        touching = (tips - position.unsqueeze(1)).norm(dim=-1) < 0.05
        return {
            "object_pos": position,
            "goal_pos": centre,
            "hand_pos": centre - self.full(0.0, 0.0, 0.04),
            "object_rot": rotation,
            "goal_rot": goal,
            "object_pose": torch.cat([position, rotation], dim=-1),
            "goal_pose": torch.cat([centre, goal], dim=-1),
            "object_linvel": self.velocity("object"),
            "object_angvel": self.angular_velocity("turn"),
            "fingertip_pos": tips,
            "shadow_hand_dof_pos": self.at("joints").clamp(0.0, 1.571),
            "shadow_hand_dof_lower_limits": torch.zeros(self.num_envs, JOINTS, device=self.device),
            "shadow_hand_dof_upper_limits": torch.full(
                (self.num_envs, JOINTS), 1.571, device=self.device
            ),
            "shadow_hand_dof_vel": self.velocity("joints"),
            "dof_force_tensor": 0.8 * self.actions - 0.05 * self.velocity("joints"),
            "vec_sensor_tensor": self.at("touch") * touching.repeat_interleave(6, dim=-1),
            "x_unit_tensor": self.full(1.0, 0.0, 0.0),
            "y_unit_tensor": self.full(0.0, 1.0, 0.0),
            "z_unit_tensor": self.full(0.0, 0.0, 1.0),
            "progress_buf": self.steps(),
        }

    def compute_termination(self) -> Tensor:
        return self.at("object")[:, 2] < 0.47
