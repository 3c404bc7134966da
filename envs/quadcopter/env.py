"""Quadcopter: a rigid body with four thrusts, in plain torch."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import Variable

from . import rotation

GRAVITY = 9.81
MASS = 1.0
INERTIA = (0.02, 0.02, 0.035)
"""Moments of inertia about the body's axes, kg·m²."""
ROTOR_OFFSET = 0.15
"""Distance of each rotor from the body's x axis and from its y axis, m."""
DRAG_TORQUE = 0.05
"""Torque about z of a rotor's air drag, N·m per N of thrust."""
HOVER_THRUST = MASS * GRAVITY / 4.0
MAX_THRUST = 2.0 * HOVER_THRUST
SUBSTEPS = 2
GROUND_CLEARANCE = 0.1
FARTHEST = 4.0

# one column per rotor (front left, back left, back right, front right), one row per torque about x, y, z
_MIXER = (
    (ROTOR_OFFSET, ROTOR_OFFSET, -ROTOR_OFFSET, -ROTOR_OFFSET),
    (-ROTOR_OFFSET, ROTOR_OFFSET, ROTOR_OFFSET, -ROTOR_OFFSET),
    (DRAG_TORQUE, -DRAG_TORQUE, DRAG_TORQUE, -DRAG_TORQUE),
)


class Quadcopter(VecTask):
    """A flying robot with four upward rotors at the corners of a square, which has to reach a goal position in the air.

    It weighs 1 kg; z is up. The four actions are the rotors' thrusts: 0 is a quarter of the weight, -1 is off, 1 twice as much. A
    new goal is drawn for each episode of 10 s at 50 control steps a second.
    """

    variables = (
        Variable("position_w", (3,), "m", "world", "position: x, y, z (height above the ground)"),
        Variable("height", (), "m", "world", "height above the ground; below 0.1 the episode ends", (0.0, 6.0)),
        Variable("goal_position_w", (3,), "m", "world", "position to be reached: x, y, z; fixed within an episode"),
        Variable("goal_error_w", (3,), "m", "world", "vector from the quadcopter to the goal: x, y, z"),
        Variable("goal_distance", (), "m", "world", "distance to the goal; beyond 4 the episode ends", (0.0, 4.0)),
        Variable(
            "goal_approach_speed", (), "m/s", "world", "speed towards the goal; negative when moving away from it"
        ),
        Variable("velocity_w", (3,), "m/s", "world", "velocity: x, y, z"),
        Variable(
            "orientation_w",
            (4,),
            "1",
            "world",
            "orientation as a quaternion w, x, y, z; (1, 0, 0, 0) is level",
            (-1.0, 1.0),
        ),
        Variable(
            "upright",
            (),
            "1",
            "world",
            "upright projection of the body's up axis: 1 is level, 0 is on its side, -1 is upside down",
            (-1.0, 1.0),
        ),
        Variable(
            "tilt_angle",
            (),
            "rad",
            "world",
            "angle between the body's up axis and the vertical; 0 is level",
            (0.0, math.pi),
        ),
        Variable("angular_velocity_b", (3,), "rad/s", "body", "angular velocity: roll, pitch, yaw rate"),
        Variable(
            "rotor_thrusts",
            (4,),
            "N",
            "body",
            "thrust of the front left, back left, back right, front right rotor in this step; 2.45 each carry the weight",
            (0.0, MAX_THRUST),
        ),
    )
    num_observations = 16
    num_actions = 4
    max_episode_length = 500
    control_dt = 0.02
    termination_causes = ("hit_the_ground", "flew_away")

    def __init__(
        self, num_envs: int, device: torch.device | str = "cpu", seed: int = 0, *, goal_spread: float = 1.0
    ) -> None:
        """Goals lie up to `goal_spread` m from (0, 0, 2) along each axis; starts up to half a metre."""
        super().__init__(num_envs, device, seed)
        self.goal_spread = goal_spread
        self.position, self.velocity, self.angular_velocity, self.goal = torch.zeros(4, num_envs, 3, device=self.device)
        self.orientation = torch.zeros(num_envs, 4, device=self.device)
        self.orientation[:, 0] = 1.0
        self.thrusts = torch.zeros(num_envs, 4, device=self.device)
        self._mixer = torch.tensor(_MIXER, device=self.device)
        self._inertia = torch.tensor(INERTIA, device=self.device)
        self._gravity = torch.tensor((0.0, 0.0, -GRAVITY), device=self.device)
        self._centre = torch.tensor((0.0, 0.0, 2.0), device=self.device)

    def pre_physics_step(self, actions: Tensor) -> None:
        self.thrusts = HOVER_THRUST * (1.0 + actions)

    def angular_acceleration(self, torque: Tensor, angular_velocity: Tensor) -> Tensor:
        """Euler's equations of a rigid body, in its frame, rad/s². Shape of each: (num_envs, 3)."""
        momentum = self._inertia * angular_velocity
        return (torque - torch.linalg.cross(angular_velocity, momentum)) / self._inertia

    def simulate(self) -> None:
        """Midpoint steps; the attitude turns by the exponential of the midpoint's angular velocity."""
        step = self.control_dt / SUBSTEPS
        # written out: a matrix product may round a row differently in a batch of another size
        torque = (self.thrusts.unsqueeze(1) * self._mixer).sum(dim=-1)
        lift = self.thrusts.sum(dim=-1, keepdim=True) / MASS
        for _ in range(SUBSTEPS):
            spin = self.angular_velocity
            middle_spin = spin + 0.5 * step * self.angular_acceleration(torque, spin)
            middle = rotation.multiply(self.orientation, rotation.from_rotation_vector(0.5 * step * spin))
            acceleration = lift * rotation.up_axis(middle) + self._gravity
            self.position = self.position + step * self.velocity + 0.5 * step**2 * acceleration
            self.velocity = self.velocity + step * acceleration
            turned = rotation.multiply(self.orientation, rotation.from_rotation_vector(step * middle_spin))
            self.orientation = turned / turned.square().sum(dim=-1, keepdim=True).sqrt()
            self.angular_velocity = spin + step * self.angular_acceleration(torque, middle_spin)

    def compute_observations(self) -> None:
        """Goal error, velocity and world-up in the body frame, angular velocity, last action."""
        vertical = -self._gravity.expand_as(self.position) / GRAVITY
        entries = (
            rotation.rotate_inverse(self.orientation, self.goal - self.position),
            0.5 * rotation.rotate_inverse(self.orientation, self.velocity),
            rotation.rotate_inverse(self.orientation, vertical),
            0.2 * self.angular_velocity,
            self.actions,
        )
        torch.cat(entries, dim=1, out=self.obs_buf)

    def compute_variables(self) -> dict[str, Tensor]:
        error = self.goal - self.position
        distance = error.square().sum(dim=-1).sqrt()
        upright = rotation.up_axis(self.orientation)[:, 2]
        return {
            "position_w": self.position,
            "height": self.position[:, 2],
            "goal_position_w": self.goal,
            "goal_error_w": error,
            "goal_distance": distance,
            "goal_approach_speed": (error * self.velocity).sum(dim=-1) / distance.clamp(min=1e-6),
            "velocity_w": self.velocity,
            "orientation_w": self.orientation,
            "upright": upright,
            "tilt_angle": torch.acos(upright.clamp(-1.0, 1.0)),
            "angular_velocity_b": self.angular_velocity,
            "rotor_thrusts": self.thrusts,
        }

    def compute_termination(self) -> dict[str, Tensor]:
        hit = self.position[:, 2] < GROUND_CLEARANCE
        far = (self.goal - self.position).square().sum(dim=-1) > FARTHEST**2
        return {"hit_the_ground": hit, "flew_away": far & ~hit}

    def reset_idx(self, env_ids: Tensor) -> None:
        """Level, at rest up to small noise, with a goal of its own."""
        noise = self.random.uniform(env_ids, 15, -1.0, 1.0)
        self.position[env_ids] = self._centre + 0.5 * noise[:, 0:3]
        self.velocity[env_ids] = 0.2 * noise[:, 3:6]
        self.angular_velocity[env_ids] = 0.2 * noise[:, 6:9]
        self.orientation[env_ids] = rotation.from_rotation_vector(0.2 * noise[:, 9:12])
        self.goal[env_ids] = self._centre + self.goal_spread * noise[:, 12:15]
        self.thrusts[env_ids] = HOVER_THRUST
