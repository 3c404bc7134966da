"""Quadcopter: a rigid body with four thrusts, in plain torch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from eureka_agent.simulation.drawing import Drawing
from eureka_agent.simulation.row_parameters import ACTION_DELAY
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import Channel, Parameter, Variable

from . import drawing, rotation

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
START_HEIGHT = 2.0
GROUND_CLEARANCE = 0.1
FARTHEST = 4.0
DEFAULT_TASK = "hover"
ROTORS = ("front_left", "back_left", "back_right", "front_right")

# one column per rotor (front left, back left, back right, front right), one row per torque about x,
# y, z
_MIXER = (
    (ROTOR_OFFSET, ROTOR_OFFSET, -ROTOR_OFFSET, -ROTOR_OFFSET),
    (-ROTOR_OFFSET, ROTOR_OFFSET, ROTOR_OFFSET, -ROTOR_OFFSET),
    (DRAG_TORQUE, -DRAG_TORQUE, DRAG_TORQUE, -DRAG_TORQUE),
)


class Quadcopter(VecTask):
    """A flying robot with four upward rotors at the corners of a square, which has to reach a goal
    position in the air.

    It weighs 1 kg; z is up. The four actions are the rotors' thrusts: 0 is a quarter of the weight,
    -1 is off, 1 twice as much. A new goal is drawn for each episode of 10 s at 50 control steps a
    second.
    """

    variables = (
        Variable("position_w", (3,), "m", "world", "position: x, y, z (height above the ground)"),
        Variable(
            "height",
            (),
            "m",
            "world",
            f"height above the ground; below {GROUND_CLEARANCE:g} the episode ends",
            (0.0, 6.0),
        ),
        Variable(
            "goal_position_w",
            (3,),
            "m",
            "world",
            "position to be reached: x, y, z; fixed within an episode",
        ),
        Variable(
            "goal_error_w", (3,), "m", "world", "vector from the quadcopter to the goal: x, y, z"
        ),
        Variable(
            "goal_distance",
            (),
            "m",
            "world",
            f"distance to the goal; beyond {FARTHEST:g} the episode ends",
            (0.0, FARTHEST),
        ),
        Variable(
            "goal_approach_speed",
            (),
            "m/s",
            "world",
            "speed towards the goal; negative when moving away from it",
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
            "upright projection of the body's up axis: 1 is level, 0 is on its side, -1 is upside"
            " down",
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
        Variable(
            "angular_velocity_b", (3,), "rad/s", "body", "angular velocity: roll, pitch, yaw rate"
        ),
        Variable(
            "rotor_thrusts",
            (4,),
            "N",
            "body",
            "thrust of the front left, back left, back right, front right rotor in this step; 2.45"
            " each carry the weight",
            (0.0, MAX_THRUST),
        ),
        Variable("time_left", (), "s", "-", "time until the episode's limit of 10 s", private=True),
    )
    observation_channels = (
        Channel(
            "goal_error_b",
            ("x", "y", "z"),
            "m",
            "body",
            "vector from the craft to the goal, in the craft's frame",
        ),
        Channel(
            "velocity_b", ("x", "y", "z"), "m/s", "body", "velocity in the craft's frame", scale=0.5
        ),
        Channel(
            "world_up_b",
            ("x", "y", "z"),
            "1",
            "body",
            "the world's up axis in the craft's frame; (0, 0, 1) is level",
        ),
        Channel(
            "angular_velocity_b",
            ("roll", "pitch", "yaw"),
            "rad/s",
            "body",
            "of the craft",
            scale=0.2,
        ),
        Channel(
            "last_actions",
            ROTORS,
            "1",
            "body",
            "the action of the step before; 0 in an episode's first step",
        ),
    )
    action_channels = (
        Channel("rotor_thrusts", ROTORS, "N", "body", "upward thrusts", range=(0.0, MAX_THRUST)),
    )
    parameters = (
        Parameter(
            "mass",
            "1",
            1.0,
            0.7,
            1.4,
            f"factor on mass ({MASS:g} kg) and moments of inertia: with or without a load; the"
            " rotors lift twice the mass at full thrust",
        ),
        Parameter(
            "rotor_strength",
            "1",
            1.0,
            0.8,
            1.2,
            "factor on all thrusts: an empty or a full battery; at 0.8 and a mass of 1.4 full"
            " thrust still lifts 1.14 times the weight",
        ),
        Parameter(
            "wind_x",
            "N",
            0.0,
            -1.0,
            1.0,
            "steady force along x: a tenth of the weight, against which a tilt of 0.1 rad holds",
        ),
        Parameter("wind_y", "N", 0.0, -1.0, 1.0, "steady force along y, likewise"),
        Parameter(
            ACTION_DELAY,
            "control steps",
            0.0,
            0.0,
            3.0,
            "control steps of 20 ms by which thrusts are late, rounded: a slow bus or computer",
        ),
    )
    device_types = ("cpu", "cuda")
    num_observations = 16
    num_actions = 4
    max_episode_length = 500
    control_dt = 0.02
    termination_causes = ("hit_the_ground", "flew_away")
    termination_conditions: Mapping[str, str] = {
        "hit_the_ground": f"height below {GROUND_CLEARANCE:g} m",
        "flew_away": f"goal_distance beyond {FARTHEST:g} m",
    }
    masses_and_sizes = (
        f"{MASS:g} kg",
        (
            f"moments of inertia {', '.join(f'{each:g}' for each in INERTIA)} kg·m² about the"
            " body's x, y, z"
        ),
        f"rotors {ROTOR_OFFSET:g} m from the body's x axis and from its y axis",
    )

    def __init__(
        self,
        num_envs: int,
        device: torch.device | str = "cpu",
        seed: int = 0,
        *,
        goal_spread: float = 1.0,
    ) -> None:
        """Goals lie up to `goal_spread` m from (0, 0, 2) along each axis; starts up to half a
        metre."""
        super().__init__(num_envs, device, seed)
        self.goal_spread = goal_spread
        # entries first, batch last: see rotation.py
        self.position, self.velocity, self.angular_velocity, self.goal = torch.zeros(
            4, 3, num_envs, device=self.device
        )
        self.orientation = torch.zeros(4, num_envs, device=self.device)
        self.orientation[0] = 1.0
        self.thrusts = torch.zeros(4, num_envs, device=self.device)
        self._mixer = torch.tensor(_MIXER, device=self.device).unsqueeze(-1)
        self._inertia = torch.tensor(INERTIA, device=self.device).unsqueeze(-1)
        self._up = torch.tensor((0.0, 0.0, 1.0), device=self.device).unsqueeze(-1)
        self.parameters_changed(torch.arange(num_envs, device=self.device))

    def parameters_changed(self, env_ids: Tensor) -> None:
        values = self.parameter_values
        mass = MASS * values["mass"]
        self._moments = self._inertia * values["mass"]
        """Moments of inertia. Shape: (3, num_envs)."""
        self._half_per_mass = 0.5 / mass
        wind = torch.stack((values["wind_x"], values["wind_y"], torch.zeros_like(mass)))
        self._pull = GRAVITY * self._up - wind / mass
        """Gravity less the wind's acceleration. Shape: (3, num_envs)."""

    def row_tensors(self) -> dict[str, Tensor]:
        """With the craft's state, whose batch is its last dimension."""
        craft = ("position", "velocity", "angular_velocity", "goal", "orientation", "thrusts")
        return {**super().row_tensors(), **{name: getattr(self, name).T for name in craft}}

    def pre_physics_step(self, actions: Tensor) -> None:
        self.thrusts = HOVER_THRUST * (1.0 + actions.T) * self.parameter_values["rotor_strength"]

    def angular_acceleration(self, torque: Tensor, angular_velocity: Tensor) -> Tensor:
        """Euler's equations of a rigid body, in its frame, rad/s². Shape of each: (3, num_envs)."""
        momentum = self._moments * angular_velocity
        return (torque - torch.linalg.cross(angular_velocity, momentum, dim=0)) / self._moments

    def simulate(self) -> None:
        """Steps of order 2: the attitude turns by the exponential of the midpoint's angular
        velocity, and the lift is the mean of the lifts before and after that turn."""
        step = self.control_dt / SUBSTEPS
        # written out: a matrix product may round a row differently in a batch of another size
        torque = (self._mixer * self.thrusts).sum(dim=1)
        half_lift = self._half_per_mass * self.thrusts.sum(dim=0)
        up = rotation.up_axis(self.orientation)
        for _ in range(SUBSTEPS):
            spin = self.angular_velocity
            middle_spin = spin + 0.5 * step * self.angular_acceleration(torque, spin)
            self.angular_velocity = spin + step * self.angular_acceleration(torque, middle_spin)
            self.orientation = rotation.multiply(
                self.orientation, rotation.from_rotation_vector(step * middle_spin)
            )
            next_up = rotation.up_axis(self.orientation)
            gain = step * (half_lift * (up + next_up) - self._pull)
            self.position = self.position + step * (self.velocity + 0.5 * gain)
            self.velocity = self.velocity + gain
            up = next_up
        self.orientation = self.orientation / self.orientation.square().sum(dim=0).sqrt()

    def compute_observations(self) -> None:
        """Goal error, velocity and world-up in the body frame, angular velocity, last action."""
        world = torch.stack(
            (self.goal - self.position, 0.5 * self.velocity, self._up.expand(3, self.num_envs)),
            dim=-1,
        )
        body = rotation.to_body(self.orientation.unsqueeze(-1), world)
        self.obs_buf[:, 0:9] = body.permute(1, 2, 0).flatten(1)
        self.obs_buf[:, 9:12] = 0.2 * self.angular_velocity.T
        self.obs_buf[:, 12:16] = self.actions

    def compute_variables(self) -> dict[str, Tensor | Callable[[], Tensor]]:
        error = self.goal - self.position
        distance = error.square().sum(dim=0).sqrt()
        upright = rotation.up_axis(self.orientation)[2].clamp(-1.0, 1.0)
        return {
            "position_w": self.position.T,
            "height": self.position[2],
            "goal_position_w": self.goal.T,
            "goal_error_w": error.T,
            "goal_distance": distance,
            "goal_approach_speed": (error * self.velocity).sum(dim=0) / distance.clamp(min=1e-6),
            "velocity_w": self.velocity.T,
            "orientation_w": self.orientation.T,
            "upright": upright,
            "tilt_angle": torch.acos(upright),
            "angular_velocity_b": self.angular_velocity.T,
            "rotor_thrusts": self.thrusts.T,
            "time_left": lambda: (
                self.control_dt * (self.max_episode_length - self.progress_buf).float()
            ),
        }

    def compute_termination(self) -> dict[str, Tensor]:
        hit = self.position[2] < GROUND_CLEARANCE
        far = (self.goal - self.position).square().sum(dim=0) > FARTHEST**2
        return {"hit_the_ground": hit, "flew_away": far & ~hit}

    def draw(self, row: int) -> Drawing:
        """See drawing.py."""
        return drawing.draw(
            self.position[:, row],
            self.orientation[:, row],
            self.goal[:, row],
            (self.thrusts[:, row] / MAX_THRUST).tolist(),
        )

    def reset_idx(self, env_ids: Tensor) -> None:
        """Nearly level and nearly at rest, with a goal of its own."""
        noise = self.random.uniform(env_ids, 15, -1.0, 1.0).T
        centre = START_HEIGHT * self._up
        self.position[:, env_ids] = centre + 0.5 * noise[0:3]
        self.velocity[:, env_ids] = 0.2 * noise[3:6]
        self.angular_velocity[:, env_ids] = 0.2 * noise[6:9]
        self.orientation[:, env_ids] = rotation.from_rotation_vector(0.2 * noise[9:12])
        self.goal[:, env_ids] = centre + self.goal_spread * noise[12:15]
        self.thrusts.index_fill_(1, env_ids, HOVER_THRUST)
