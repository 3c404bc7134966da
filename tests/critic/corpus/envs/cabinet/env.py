"""Isaac Gym's FrankaCabinet, over random walks."""

from __future__ import annotations

from typing import ClassVar

import torch
from corpus_world import RandomWalks, Walk, constants, rotated, rotation_of, vectors
from torch import Tensor

JOINTS = 9


class Cabinet(RandomWalks):
    """An arm with a two-finger gripper in front of a cabinet, whose top drawer it is to pull open,
    towards +x.

    The drawer is open at 0.4 m. Of the cabinet's four joints, the last one is the top drawer's.
    """

    num_actions = JOINTS
    walks: ClassVar = {
        "grasp": Walk(3, 0.12, 0.5, (0.32, 0.0, 0.55)),
        "handle": Walk(3, 0.02, 0.0, (0.25, 0.0, 0.52)),
        "drawer": Walk(1, 0.15, 0.3, 0.15),
        "others": Walk(3, 0.02, 0.05, 0.03),
        "turn": Walk(3, 0.5, 1.0),
        "grip": Walk(1, 0.015, 0.1, 0.03),
        "joints": Walk(JOINTS, 0.4, 1.5),
    }
    variables = (
        *vectors("world", "m", 3, franka_grasp_pos="position between the fingers", drawer_grasp_pos="position of the drawer's handle",
                 franka_lfinger_pos="position of the left (upper) finger", franka_rfinger_pos="position of the right (lower) finger"),
        *vectors("world", "1", 4, (-1.0, 1.0), franka_grasp_rot="orientation of the gripper as a quaternion x, y, z, w",
                 drawer_grasp_rot="orientation of the handle as a quaternion x, y, z, w"),
        *vectors("joint", "rad, m", JOINTS, franka_dof_pos="joint angles (0:7) and finger openings (7:9)"),
        *vectors("joint", "rad/s, m/s", JOINTS, franka_dof_vel="velocities of them"),
        *vectors("joint", "rad, m", 4, cabinet_dof_pos="of the cabinet's two doors, bottom drawer, top drawer"),
        *vectors("joint", "rad/s, m/s", 4, cabinet_dof_vel="velocities of them"),
        *vectors("body", "1", 3, (-1.0, 1.0), gripper_forward_axis="forward axis of the gripper's frame", gripper_up_axis="up axis of the gripper's frame",
                 drawer_inward_axis="inward axis of the drawer's frame", drawer_up_axis="up axis of the drawer's frame"),
    )  # fmt: skip
    constants = constants(
        dist_reward_scale=2.0, rot_reward_scale=0.5, around_handle_reward_scale=0.25,
        open_reward_scale=7.5, finger_dist_reward_scale=5.0, action_penalty_scale=0.01, distX_offset=0.04,
    )  # fmt: skip

    def compute_variables(self) -> dict[str, Tensor]:
        rotation, grasp = rotation_of(self.at("turn")), self.at("grasp")
        opening = self.at("drawer").clamp(0.0, 0.4)
        half = self.at("grip").clamp(0.0, 0.04) * rotated(rotation, self.full(0.0, 0.0, 1.0))
        cabinet = self.at("others").clamp(min=0.0)
        angles = self.at("joints").clone()
        angles[:, 7:9] = self.at("grip").clamp(0.0, 0.04)
        speeds = self.velocity("joints").clone()
        speeds[:, 7:9] = self.velocity("grip")
        return {
            "franka_grasp_pos": grasp,
            "drawer_grasp_pos": self.at("handle") + opening * self.full(1.0, 0.0, 0.0),
            "franka_lfinger_pos": grasp + half,
            "franka_rfinger_pos": grasp - half,
            "franka_grasp_rot": rotation,
            "drawer_grasp_rot": self.full(0.0, 0.0, 0.0, 1.0),
            "franka_dof_pos": angles,
            "franka_dof_vel": speeds,
            "cabinet_dof_pos": torch.cat([cabinet, opening], dim=-1),
            "cabinet_dof_vel": torch.cat(
                [self.velocity("others"), self.velocity("drawer")], dim=-1
            ),
            "gripper_forward_axis": self.full(0.0, 0.0, 1.0),
            "gripper_up_axis": self.full(0.0, 1.0, 0.0),
            "drawer_inward_axis": self.full(-1.0, 0.0, 0.0),
            "drawer_up_axis": self.full(0.0, 0.0, 1.0),
        }
