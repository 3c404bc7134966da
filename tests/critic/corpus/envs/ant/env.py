"""Isaac Gym's Ant, over random walks."""

from __future__ import annotations

from typing import ClassVar

import torch
from corpus_world import RandomWalks, Walk, constants, inverse, rotated, rotation_of, vectors
from torch import Tensor

from eureka_agent.task import Variable

JOINTS = 8


class Ant(RandomWalks):
    """A four-legged robot with eight joints that is to run forward, along x, as fast as it can."""

    num_actions = JOINTS
    walks: ClassVar = {
        "torso": Walk(3, 1.2, 1.6, (2.0, 0.0, 0.55)),
        "bob": Walk(1, 0.06, 0.5),
        "turn": Walk(3, 0.35, 1.0),
        "joints": Walk(JOINTS, 0.5, 4.0),
        "load": Walk(4, 60.0, 600.0, 10.0),
    }
    variables = (
        *vectors("world", "m", 3, targets="position to run to, 1000 m ahead"),
        *vectors("world", "m/s", 3, velocity="velocity of the torso: x, y, z"),
        Variable("root_states", (13,), "m, 1, m/s, rad/s", "world",
                 "of the torso: position (0:3), quaternion x, y, z, w (3:7), velocity (7:10), angular velocity (10:13)"),
        *vectors("world", "1", 3, (-1.0, 1.0), up_vec="the torso's up axis; (0, 0, 1) is upright",
                 heading_vec="the torso's forward axis; (1, 0, 0) is straight ahead"),
        *vectors("world", "1", 0, (-1.0, 1.0), up_proj="upright projection: the up axis's z, 1 is upright",
                 heading_proj="projection of the forward axis on the direction to the target, 1 is straight ahead"),
        *vectors("world", "m/s", 0, potentials="minus the horizontal distance to the target, divided by the control step",
                 prev_potentials="potentials one step before; equal right after a reset"),
        *vectors("joint", "rad", JOINTS, dof_pos="joint angles"),
        *vectors("joint", "rad", JOINTS, (-1.2, -0.6), dof_limits_lower="lower limits of the joint angles"),
        *vectors("joint", "rad", JOINTS, (0.7, 1.3), dof_limits_upper="upper limits of the joint angles"),
        *vectors("joint", "rad/s", JOINTS, dof_vel="joint velocities"),
        Variable("contact_forces", (4, 3), "N", "world", "of the ground on each foot: x, y, z; 0 without contact"),
        Variable("obs_buf", (12 + 3 * JOINTS,), "1", "-",
                 "height, velocity (1:4), angular velocity (4:7), yaw, roll, angle to target, up_proj (10), heading_proj (11), "
                 "joint angles scaled to ±1, 0.2 × joint velocities, actions"),
    )  # fmt: skip
    constants = constants(
        dt=1.0 / 60.0, up_weight=0.1, heading_weight=0.5, actions_cost_scale=0.005, energy_cost_scale=0.05,
        joints_at_limit_cost_scale=0.1, termination_height=0.38, death_cost=-2.0,
    )  # fmt: skip

    def torso(self) -> Tensor:
        """Position of the torso, which bobs about its height."""
        position = self.at("torso").clone()
        position[:, 2] = self.walks["torso"].centre[2] + self.at("bob")[:, 0]
        return position

    def potential(self, position: Tensor) -> Tensor:
        """Isaac's measure of progress."""
        to_target = self.full(1000.0, 0.0) - position[:, :2]
        return -to_target.square().sum(dim=-1).sqrt() / self.control_dt

    def compute_variables(self) -> dict[str, Tensor]:
        position, rotation = self.torso(), rotation_of(self.at("turn"))
        velocity = torch.cat([self.velocity("torso")[:, :2], self.velocity("bob")], dim=-1)
        spin = self.angular_velocity("turn")
        up, ahead = (
            rotated(rotation, self.full(*axis)) for axis in ((0.0, 0.0, 1.0), (1.0, 0.0, 0.0))
        )
        targets = self.full(1000.0, 0.0, 0.0)
        to_target = torch.nn.functional.normalize(targets[:, :2] - position[:, :2], dim=-1)
        heading = (ahead[:, :2] * to_target).sum(dim=-1)
        lower, upper = (
            torch.linspace(first, last, JOINTS, device=self.device).expand(self.num_envs, -1)
            for first, last in ((-1.2, -0.6), (0.7, 1.3))
        )
        angles = self.at("joints").clamp(lower, upper)
        load = self.at("load").clamp(min=0.0)
        yaw = torch.atan2(ahead[:, 1], ahead[:, 0])
        roll = torch.atan2(-up[:, 1], up[:, 2])
        local = [rotated(inverse(rotation), vector) for vector in (velocity, spin)]
        angle = yaw - torch.atan2(to_target[:, 1], to_target[:, 0])
        scalars = torch.stack([yaw, roll, angle, up[:, 2], heading], dim=-1)
        scaled, rate = (2.0 * angles - upper - lower) / (upper - lower), self.velocity("joints")
        observed = [position[:, 2:], *local, scalars, scaled, 0.2 * rate, self.actions]
        return {
            "targets": targets,
            "velocity": velocity,
            "root_states": torch.cat([position, rotation, velocity, spin], dim=-1),
            "up_vec": up,
            "heading_vec": ahead,
            "up_proj": up[:, 2],
            "heading_proj": heading,
            "potentials": self.potential(self.at("torso")),
            "prev_potentials": self.potential(self.before("torso")),
            "dof_pos": angles,
            "dof_limits_lower": lower.clone(),
            "dof_limits_upper": upper.clone(),
            "dof_vel": rate,
            "contact_forces": torch.stack([0.1 * load, -0.05 * load, load], dim=-1),
            "obs_buf": torch.cat(observed, dim=-1),
        }

    def compute_termination(self) -> Tensor:
        return self.torso()[:, 2] < 0.38
