"""Isaac Gym's Quadcopter, over random walks."""

from __future__ import annotations

from typing import ClassVar

import torch
from corpus_world import RandomWalks, Walk, constants, rotation_of, vectors
from torch import Tensor

from eureka_agent.task import Variable

TARGET_HEIGHT = 1.0


class Quadcopter(RandomWalks):
    """A flying robot with four tilting rotors that is to reach a target in the air and hover
    there."""

    num_actions = 12
    walks: ClassVar = {
        "root": Walk(3, 0.7, 1.2, (0.0, 0.0, 1.2)),
        "turn": Walk(3, 0.4, 1.0),
        "target": Walk(3, 0.5, 0.0, (0.0, 0.0, TARGET_HEIGHT)),
        "joints": Walk(8, 0.2, 1.5),
        "thrust": Walk(4, 0.4, 3.0, 1.0),
    }
    variables = (
        Variable("root_states", (13,), "m, 1, m/s, rad/s", "world",
                 "position (0:3), quaternion x, y, z, w (3:7), velocity (7:10), angular velocity (10:13)"),
        *vectors("world", "m", 3, root_positions="position: x, y, z (height)", target_root_positions="position to be reached"),
        *vectors("world", "1", 4, (-1.0, 1.0), root_quats="orientation as a quaternion x, y, z, w"),
        *vectors("world", "m/s", 3, root_linvels="velocity"),
        *vectors("world", "rad/s", 3, root_angvels="angular velocity"),
        *vectors("joint", "rad", 8, dof_positions="angles of the rotors' joints"),
        *vectors("joint", "rad/s", 8, dof_velocities="velocities of them"),
        *vectors("body", "N", 4, (0.0, 2.0), thrusts="thrust of each rotor"),
        *vectors("-", "1", 0, (0.0, 300.0), progress_buf="control steps since the start"),
    )  # fmt: skip
    constants = constants(dt=1.0 / 60.0, max_episode_length=300.0, target_height=TARGET_HEIGHT)

    def compute_variables(self) -> dict[str, Tensor]:
        rotation, spin = rotation_of(self.at("turn")), self.angular_velocity("turn")
        return {
            "root_states": torch.cat(
                [self.at("root"), rotation, self.velocity("root"), spin], dim=-1
            ),
            "root_positions": self.at("root"),
            "target_root_positions": self.at("target"),
            "root_quats": rotation,
            "root_linvels": self.velocity("root"),
            "root_angvels": spin,
            "dof_positions": self.at("joints"),
            "dof_velocities": self.velocity("joints"),
            "thrusts": self.at("thrust").clamp(0.0, 2.0),
            "progress_buf": self.steps(),
        }

    def compute_termination(self) -> Tensor:
        return self.at("root")[:, 2] < 0.3
