"""A table-top arm that picks up a cube, over random walks."""

from __future__ import annotations

from typing import ClassVar

import torch
from corpus_world import Constant, RandomWalks, Walk, constants, rotation_of, vectors
from torch import Tensor

JOINTS = 9


class Pick(RandomWalks):
    """An arm with a two-finger gripper over a table, whose top is z = 0. It is to pick up a cube of
    4 cm and bring it to a goal in the air."""

    num_actions = 8
    walks: ClassVar = {
        "tool": Walk(3, 0.06, 0.3, (0.0, 0.0, 0.12)),
        "cube": Walk(3, 0.06, 0.12, (0.0, 0.0, 0.03)),
        "goal": Walk(3, 0.1, 0.0, (0.05, 0.0, 0.25)),
        "turn": Walk(3, 0.3, 0.8),
        "grip": Walk(1, 0.015, 0.1, 0.025),
        "joints": Walk(JOINTS, 0.4, 1.2),
    }
    variables = (
        *vectors("world", "m", 3, ee_pos="position between the gripper's fingers", cube_pos="position of the cube's middle; z is 0.02 on the table",
                 goal_pos="position where the cube is to get"),
        *vectors("world", "m/s", 3, ee_vel="velocity of the gripper", cube_vel="velocity of the cube"),
        *vectors("world", "1", 4, (-1.0, 1.0), cube_rot="orientation of the cube as a quaternion x, y, z, w"),
        *vectors("joint", "m", 0, (0.0, 0.08), gripper_width="distance of the fingers, 0 closed to 0.08 open"),
        *vectors("-", "1", 0, (0.0, 1.0), is_grasped="1 where both fingers hold the cube, else 0"),
        *vectors("joint", "rad, m", JOINTS, qpos="joint angles (0:7) and finger positions (7:9)"),
        *vectors("joint", "rad/s, m/s", JOINTS, qvel="velocities of them"),
        *vectors("world", "N", 3, left_finger_force="contact force on the left finger: x, y, z; 0 without contact",
                 right_finger_force="contact force on the right finger: x, y, z; 0 without contact"),
    )  # fmt: skip
    constants = (
        Constant("dt", 1.0 / 60.0, "s", "control step"),
        Constant("cube_half_size", 0.02, "m", "half the edge of the cube"),
        *constants(max_episode_length=300.0, success_tolerance=0.025),
    )

    def compute_variables(self) -> dict[str, Tensor]:
        tool, cube = self.at("tool"), self.at("cube").clone()
        cube[:, 2] = cube[:, 2].clamp(min=0.02)
        width = 2.0 * self.at("grip")[:, 0].clamp(0.0, 0.04)
        near = (tool - cube).norm(dim=-1) < 0.06
        held = near & (width < 0.05)
        push = held.float().unsqueeze(-1) * torch.cat(
            [self.full(0.0), 4.0 + 40.0 * self.at("grip").abs(), self.full(0.0)], dim=-1
        )
        goal = self.at("goal").clone()
        goal[:, 2] = goal[:, 2].clamp(min=0.1)
        return {
            "ee_pos": tool,
            "cube_pos": cube,
            "goal_pos": goal,
            "ee_vel": self.velocity("tool"),
            "cube_vel": self.velocity("cube"),
            "cube_rot": rotation_of(self.at("turn")),
            "gripper_width": width,
            "is_grasped": held.float(),
            "qpos": torch.cat(
                [self.at("joints")[:, :7], 0.5 * width.unsqueeze(-1).expand(-1, 2)], dim=-1
            ),
            "qvel": self.velocity("joints"),
            "left_finger_force": push,
            "right_finger_force": -push,
        }
