"""Isaac Gym's BallBalance, over random walks."""

from __future__ import annotations

from typing import ClassVar

import torch
from corpus_world import RandomWalks, Walk, constants, rotation_of, vectors
from torch import Tensor


class BallBalance(RandomWalks):
    """A tray on three legs on which a ball rolls, which is to be kept in the tray's middle and in
    the air above 0.7 m."""

    num_actions = 3
    walks: ClassVar = {
        "ball": Walk(2, 0.12, 0.35),
        "bob": Walk(1, 0.03, 0.2, 0.8),
        "tilt": Walk(3, 0.1, 0.3),
        "joints": Walk(6, 0.2, 0.8, 0.4),
    }
    variables = (
        *vectors("world", "m", 3, ball_positions="position of the ball; the tray's middle is (0, 0, 0.7)", tray_positions="position of the tray's middle"),
        *vectors("world", "m/s", 3, ball_linvels="velocity of the ball"),
        *vectors("world", "1", 4, (-1.0, 1.0), tray_quats="orientation of the tray as a quaternion x, y, z, w"),
        *vectors("joint", "rad", 6, dof_positions="angles of the legs' joints"),
        *vectors("joint", "rad/s", 6, dof_velocities="velocities of them"),
        *vectors("-", "1", 0, (0.0, 300.0), progress_buf="control steps since the start"),
    )  # fmt: skip
    constants = constants(dt=1.0 / 60.0, max_episode_length=300.0, ball_radius=0.1)

    def compute_variables(self) -> dict[str, Tensor]:
        return {
            "ball_positions": torch.cat([self.at("ball"), self.at("bob")], dim=-1),
            "tray_positions": self.full(0.0, 0.0, 0.7),
            "ball_linvels": torch.cat([self.velocity("ball"), self.velocity("bob")], dim=-1),
            "tray_quats": rotation_of(self.at("tilt")),
            "dof_positions": self.at("joints"),
            "dof_velocities": self.velocity("joints"),
            "progress_buf": self.steps(),
        }

    def compute_termination(self) -> Tensor:
        return self.at("ball").norm(dim=-1) > 0.35
