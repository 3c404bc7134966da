"""The variables of Isaac Gym's Ant and Humanoid, over random walks."""

from __future__ import annotations

from typing import ClassVar

import torch
from corpus_world import RandomWalks, Walk, constants, inverse, rotated, rotation_of, vectors
from torch import Tensor

from eureka_agent.task import Variable


def legged_walks(joints: int, feet: int, height: float) -> dict[str, Walk]:
    """The moving parts of a robot with so many joints."""
    return {
        "torso": Walk(3, 1.2, 1.6, (2.0, 0.0, height)),
        "bob": Walk(1, 0.06, 0.5),
        "turn": Walk(3, 0.35, 1.0),
        "joints": Walk(joints, 0.5, 4.0),
        "load": Walk(feet, 60.0, 600.0, 10.0),
        "twist": Walk(6 * feet, 4.0, 40.0),
    }


def legged_variables(joints: int, feet: int) -> tuple[Variable, ...]:
    """Variables of a robot with so many joints."""
    return (
        *vectors(
            "world", "m", 3,
            torso_position="position of the torso: x (forward), y (left), z (up)",
            targets="position to run to, 1000 m ahead",
        ),
        *vectors("world", "m/s", 3, velocity="velocity of the torso: x, y, z"),
        *vectors("world", "rad/s", 3, ang_velocity="angular velocity of the torso about x, y, z"),
        *vectors("world", "1", 4, (-1.0, 1.0), torso_rotation="orientation of the torso as a quaternion x, y, z, w",
                 inv_start_rot="inverse of the orientation at the start, a quaternion x, y, z, w"),
        Variable("root_states", (13,), "m, 1, m/s, rad/s", "world",
                 "of the torso: position (0:3), quaternion x, y, z, w (3:7), velocity (7:10), angular velocity (10:13)"),
        *vectors("world", "1", 3, (-1.0, 1.0), up_vec="the torso's up axis; (0, 0, 1) is upright",
                 heading_vec="the torso's forward axis; (1, 0, 0) is straight ahead"),
        *vectors("body", "1", 3, (-1.0, 1.0), basis_vec0="forward axis of the body's frame", basis_vec1="up axis of the body's frame"),
        *vectors("world", "1", 0, (-1.0, 1.0), up_proj="upright projection: the up axis's z, 1 is upright",
                 heading_proj="projection of the forward axis on the direction to the target, 1 is straight ahead"),
        *vectors("world", "m/s", 0, potentials="minus the horizontal distance to the target, divided by the control step",
                 prev_potentials="potentials one step before; equal right after a reset"),
        *vectors("joint", "rad", joints, dof_pos="joint angles"),
        *vectors("joint", "rad", joints, (-1.2, -0.6), dof_limits_lower="lower limits of the joint angles"),
        *vectors("joint", "rad", joints, (0.7, 1.3), dof_limits_upper="upper limits of the joint angles"),
        *vectors("joint", "rad/s", joints, dof_vel="joint velocities"),
        *vectors("joint", "N·m", joints, dof_force_tensor="joint torques"),
        *vectors("joint", "N·m", joints, (40.0, 100.0), motor_efforts="largest torque of each motor"),
        *vectors("body", "N, N·m", 6 * feet, vec_sensor_tensor="of each foot: force x, y, z, torque x, y, z"),
        Variable("contact_forces", (feet, 3), "N", "world", "of the ground on each foot: x, y, z; 0 without contact"),
        *vectors("joint", "1", joints, (-1.0, 1.0), prev_actions="actions one step before"),
        *vectors("-", "1", 0, (0.0, 300.0), progress_buf="control steps since the start"),
        Variable("obs_buf", (12 + 3 * joints + 6 * feet,), "1", "-",
                 "height, velocity (1:4), angular velocity (4:7), yaw, roll, angle to target, up_proj (10), heading_proj (11), "
                 "joint angles scaled to ±1, 0.2 × joint velocities, 0.1 × foot sensors, actions"),
    )  # fmt: skip


LEGGED_CONSTANTS = constants(
    dt=1.0 / 60.0, max_episode_length=300.0, up_weight=0.1, heading_weight=0.5, actions_cost_scale=0.005, energy_cost_scale=0.05,
    joints_at_limit_cost_scale=0.1, dof_vel_scale=0.2, contact_force_scale=0.1, max_motor_effort=100.0,
)  # fmt: skip
"""Constants of every robot, beside its own."""


class Legged(RandomWalks):
    """A robot with legs."""

    joints: ClassVar[int] = 8
    feet: ClassVar[int] = 4
    lowest: ClassVar[float] = 0.31

    def __init__(self, num_envs: int, device: torch.device | str = "cpu", seed: int = 0) -> None:
        super().__init__(num_envs, device, seed)
        self._lower = torch.linspace(-1.2, -0.6, self.joints, device=self.device)
        self._upper = torch.linspace(0.7, 1.3, self.joints, device=self.device)
        self._efforts = torch.linspace(40.0, 100.0, self.joints, device=self.device)

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
            rotated(rotation, self.full(0.0, 0.0, 1.0)),
            rotated(rotation, self.full(1.0, 0.0, 0.0)),
        )
        targets = self.full(1000.0, 0.0, 0.0)
        to_target = torch.nn.functional.normalize(targets[:, :2] - position[:, :2], dim=-1)
        heading = (ahead[:, :2] * to_target).sum(dim=-1)
        angles = self.at("joints").clamp(self._lower, self._upper)
        scaled = (2.0 * angles - self._upper - self._lower) / (self._upper - self._lower)
        load = self.at("load").clamp(min=0.0)
        contact = torch.stack([0.1 * load, -0.05 * load, load], dim=-1)
        sensors = self.at("twist") * (load > 0.0).repeat_interleave(6, dim=-1)
        yaw = torch.atan2(ahead[:, 1], ahead[:, 0])
        roll = torch.atan2(-up[:, 1], up[:, 2])
        local = [rotated(inverse(rotation), vector) for vector in (velocity, spin)]
        angle = yaw - torch.atan2(to_target[:, 1], to_target[:, 0])
        scalars = torch.stack([yaw, roll, angle, up[:, 2], heading], dim=-1)
        joint_velocity = self.velocity("joints")
        return {
            "torso_position": position,
            "targets": targets,
            "velocity": velocity,
            "ang_velocity": spin,
            "torso_rotation": rotation,
            "inv_start_rot": self.full(0.0, 0.0, 0.0, 1.0),
            "root_states": torch.cat([position, rotation, velocity, spin], dim=-1),
            "up_vec": up,
            "heading_vec": ahead,
            "basis_vec0": self.full(1.0, 0.0, 0.0),
            "basis_vec1": self.full(0.0, 0.0, 1.0),
            "up_proj": up[:, 2],
            "heading_proj": heading,
            "potentials": self.potential(self.at("torso")),
            "prev_potentials": self.potential(self.before("torso")),
            "dof_pos": angles,
            "dof_limits_lower": self._lower.expand(self.num_envs, -1).clone(),
            "dof_limits_upper": self._upper.expand(self.num_envs, -1).clone(),
            "dof_vel": joint_velocity,
            "dof_force_tensor": 0.6 * self._efforts * self.actions - 0.5 * joint_velocity,
            "motor_efforts": self._efforts.expand(self.num_envs, -1).clone(),
            "vec_sensor_tensor": sensors,
            "contact_forces": contact,
            "prev_actions": self.prev_actions,
            "progress_buf": self.steps(),
            "obs_buf": torch.cat(
                [
                    position[:, 2:],
                    *local,
                    scalars,
                    scaled,
                    0.2 * joint_velocity,
                    0.1 * sensors,
                    self.actions,
                ],
                dim=-1,
            ),
        }

    def compute_termination(self) -> Tensor:
        return self.torso()[:, 2] < self.lowest
