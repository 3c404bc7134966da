"""Isaac Gym's Anymal, over random walks."""

from __future__ import annotations

from typing import ClassVar

import torch
from corpus_world import RandomWalks, Walk, constants, inverse, rotated, rotation_of, vectors
from torch import Tensor

from eureka_agent.task import Variable

JOINTS = 12
BODIES = 9


class Anymal(RandomWalks):
    """A four-legged robot that is to follow commanded velocities.

    An episode ends where the base or a thigh hits the ground.
    """

    num_actions = JOINTS
    walks: ClassVar = {
        "base": Walk(3, 0.5, 0.7, (0.0, 0.0, 0.6)),
        "bob": Walk(1, 0.04, 0.25),
        "turn": Walk(3, 0.25, 0.6),
        "command": Walk(3, 0.8, 0.0, (0.6, 0.0, 0.0)),
        "joints": Walk(JOINTS, 0.3, 3.0),
        "torque": Walk(JOINTS, 15.0, 150.0),
        "load": Walk(4, 80.0, 800.0, 60.0),
        "bump": Walk(1, 1.0, 3.0, -3.2),
    }
    variables = (
        Variable("root_states", (13,), "m, 1, m/s, rad/s", "world",
                 "of the base: position (0:3), quaternion x, y, z, w (3:7), velocity (7:10), angular velocity (10:13)"),
        *vectors("world", "1", 4, (-1.0, 1.0), base_quat="orientation of the base as a quaternion x, y, z, w"),
        *vectors("body", "m/s", 3, base_lin_vel="velocity of the base: forward, left, up"),
        *vectors("body", "rad/s", 3, base_ang_vel="angular velocity of the base: roll, pitch, yaw rate"),
        *vectors("body", "1", 3, (-1.0, 1.0), projected_gravity="direction of gravity; (0, 0, -1) where the base is level"),
        *vectors("world", "1", 3, (-1.0, 1.0), gravity_vec="direction of gravity"),
        *vectors("body", "m/s, m/s, rad/s", 3, commands="velocities asked for: forward, left, yaw rate"),
        *vectors("joint", "rad", JOINTS, dof_pos="joint angles", default_dof_pos="joint angles of the stance"),
        *vectors("joint", "rad/s", JOINTS, dof_vel="joint velocities"),
        *vectors("joint", "N·m", JOINTS, torques="joint torques"),
        *vectors("joint", "1", JOINTS, (-1.0, 1.0), prev_actions="actions one step before"),
        Variable("contact_forces", (BODIES, 3), "N", "world",
                 "of the ground on the base (0), the thighs (1:5), the feet (5:9): x, y, z; 0 without contact"),
        *vectors("body", "s", 4, (0.0, 5.0), feet_air_time="time since each foot left the ground; 0 while it stands"),
        *vectors("-", "1", 0, (0.0, 300.0), progress_buf="control steps since the start"),
    )  # fmt: skip
    constants = constants(
        dt=1.0 / 60.0, max_episode_length=300.0, lin_vel_scale=2.0, ang_vel_scale=0.25, dof_pos_scale=1.0, dof_vel_scale=0.05,
        lin_vel_xy_scale=1.0, ang_vel_z_scale=0.5, torque_scale=-0.000025, base_index=0.0,
    )  # fmt: skip

    def __init__(self, num_envs: int, device: torch.device | str = "cpu", seed: int = 0) -> None:
        super().__init__(num_envs, device, seed)
        self.air_time = torch.zeros(num_envs, 4, device=self.device)

    def simulate(self) -> None:
        self.air_time = (self.air_time + self.control_dt) * (self.at("load") <= 0.0)

    def reset_idx(self, env_ids: Tensor) -> None:
        super().reset_idx(env_ids)
        self.air_time[env_ids] = 0.0

    def compute_variables(self) -> dict[str, Tensor]:
        rotation, position = rotation_of(self.at("turn")), self.at("base").clone()
        position[:, 2] = 0.6 + self.at("bob")[:, 0]
        velocity = torch.cat([self.velocity("base")[:, :2], self.velocity("bob")], dim=-1)
        spin, down = self.angular_velocity("turn"), self.full(0.0, 0.0, -1.0)
        load = torch.cat(
            [
                40.0 * self.at("bump").clamp(min=0.0),
                0.0 * self.at("load"),
                self.at("load").clamp(min=0.0),
            ],
            dim=-1,
        )
        stance = self.full(*([0.03, 0.4, -0.8] * 2 + [0.03, -0.4, 0.8] * 2))
        return {
            "root_states": torch.cat([position, rotation, velocity, spin], dim=-1),
            "base_quat": rotation,
            "base_lin_vel": rotated(inverse(rotation), velocity),
            "base_ang_vel": rotated(inverse(rotation), spin),
            "projected_gravity": rotated(inverse(rotation), down),
            "gravity_vec": down,
            "commands": self.at("command"),
            "dof_pos": stance + self.at("joints"),
            "default_dof_pos": stance,
            "dof_vel": self.velocity("joints"),
            "torques": self.at("torque"),
            "prev_actions": self.prev_actions,
            "contact_forces": torch.stack([0.1 * load, -0.1 * load, load], dim=-1),
            "feet_air_time": self.air_time,
            "progress_buf": self.steps(),
        }

    def compute_termination(self) -> Tensor:
        return self.at("bump")[:, 0] > 0.0
