"""Cart and pole in plain torch."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from eureka_agent.simulation.drawing import Circle, Drawing, Line, rectangle
from eureka_agent.simulation.row_parameters import ACTION_DELAY
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import Channel, Parameter, Variable

GRAVITY = 9.81
CART_MASS = 1.0
POLE_MASS = 0.1
POLE_HALF_LENGTH = 0.5
TRACK_HALF_LENGTH = 3.0
MAX_FORCE = 10.0
LEAST_UPRIGHT = 0.0

DEFAULT_TASK = "balance"


class Masses:
    """Masses of cart and pole, and what the equations of motion take of them, in float32. Shape of
    each: (num_envs,)."""

    def __init__(self, cart: Tensor, pole: Tensor) -> None:
        """Factors on both masses."""
        mass = POLE_MASS * pole.double()
        total = CART_MASS * cart.double() + mass
        self.total = total.float()
        self.pole_moment = (mass * POLE_HALF_LENGTH).float()
        """kg·m about the hinge."""
        self.pole_share = (mass / total).float()
        self.moment_share = (mass * POLE_HALF_LENGTH / total).float()


def accelerations(
    force: Tensor, angle: Tensor, angular_velocity: Tensor, masses: Masses
) -> tuple[Tensor, Tensor]:
    """Acceleration of the cart (m/s²) and of the pole (rad/s²): Florian 2007, "Correct equations
    for the dynamics of the cart-pole system", without friction. The pole is a uniform rod; angle 0
    is upright. Shape of each: (num_envs,)."""
    sine, cosine = torch.sin(angle), torch.cos(angle)
    push = (force + masses.pole_moment * angular_velocity.square() * sine) / masses.total
    inertia = POLE_HALF_LENGTH * (4.0 / 3.0 - masses.pole_share * cosine.square())
    pole = (GRAVITY * sine - cosine * push) / inertia
    return push - masses.moment_share * pole * cosine, pole


class Cartpole(VecTask):
    """A cart on a straight horizontal track with a pole hinged to it. The one action pushes the
    cart along the track.

    The pole is a uniform rod 1 m long. An episode lasts 10 s at 50 control steps a second.
    """

    variables = (
        Variable(
            "cart_position",
            (),
            "m",
            "world",
            "position of the cart along the track; 0 is the middle, the track ends at"
            f" ±{TRACK_HALF_LENGTH:g}",
            (-TRACK_HALF_LENGTH, TRACK_HALF_LENGTH),
        ),
        Variable("cart_velocity", (), "m/s", "world", "velocity of the cart along the track"),
        Variable(
            "pole_angle",
            (),
            "rad",
            "world",
            "angle of the pole from the vertical; 0 is upright, ±pi hangs down, positive leans"
            " toward +position",
            (-math.pi, math.pi),
        ),
        Variable(
            "pole_angular_velocity",
            (),
            "rad/s",
            "world",
            "angular velocity of the pole; 0 when it stands still",
        ),
        Variable(
            "pole_upright",
            (),
            "1",
            "world",
            "cosine of the pole's angle, its upright projection: 1 is upright, 0 horizontal, -1"
            " hangs down",
            (-1.0, 1.0),
        ),
        Variable(
            "pole_tip_velocity", (), "m/s", "world", "horizontal velocity of the pole's free end"
        ),
        Variable(
            "cart_force",
            (),
            "N",
            "world",
            "force that pushes the cart in this step",
            (-MAX_FORCE, MAX_FORCE),
        ),
        Variable(
            "track_limit_nearness",
            (),
            "1",
            "world",
            "how near the cart is to the end of the track: 0 in the middle, 1 at either end",
            (0.0, 1.0),
        ),
    )
    observation_channels = (
        Channel("cart_position", (), "m", "world", "along the track; 0 is the middle"),
        Channel("cart_velocity", (), "m/s", "world", "along the track"),
        Channel(
            "pole_angle_sine",
            (),
            "1",
            "world",
            "sine of the pole's angle; positive leans toward +position",
        ),
        Channel("pole_upright", (), "1", "world", "cosine of the pole's angle: 1 is upright"),
        Channel("pole_angular_velocity", (), "rad/s", "world", "positive falls toward +position"),
    )
    action_channels = (
        Channel(
            "cart_force",
            (),
            "N",
            "world",
            "pushes the cart along the track",
            range=(-MAX_FORCE, MAX_FORCE),
        ),
    )
    parameters = (
        Parameter(
            "cart_mass",
            "1",
            1.0,
            0.5,
            2.0,
            f"factor on the cart's mass, {CART_MASS:g} kg; up to where the largest force still"
            " accelerates it at half of gravity",
        ),
        Parameter(
            "pole_mass",
            "1",
            1.0,
            0.3,
            5.0,
            f"factor on the pole's mass, {POLE_MASS:g} kg, of the same length; up to half of the"
            " cart's mass",
        ),
        Parameter(
            "motor_strength",
            "1",
            1.0,
            0.6,
            1.3,
            f"factor on the force, {MAX_FORCE:g} N: a weak battery, or a stronger motor",
        ),
        Parameter(
            "wheel_friction",
            "N·s/m",
            0.0,
            0.0,
            1.0,
            "force on the cart against its velocity, per m/s; the largest takes the motor's"
            f" whole force at {MAX_FORCE:g} m/s",
        ),
        Parameter(
            ACTION_DELAY,
            "control steps",
            0.0,
            0.0,
            3.0,
            "control steps of 20 ms by which forces are late, rounded: a slow bus or computer",
        ),
    )
    device_types = ("cpu", "cuda")
    num_observations = 5
    num_actions = 1
    max_episode_length = 500
    control_dt = 0.02
    termination_causes = ("pole_fell", "left_the_track")
    termination_conditions: Mapping[str, str] = {
        "pole_fell": f"pole_upright below {LEAST_UPRIGHT:g}",
        "left_the_track": f"cart_position beyond ±{TRACK_HALF_LENGTH:g} m",
    }
    masses_and_sizes = (
        f"cart {CART_MASS:g} kg",
        f"pole {POLE_MASS:g} kg, {2.0 * POLE_HALF_LENGTH:g} m long",
        f"track {2.0 * TRACK_HALF_LENGTH:g} m long",
    )

    def __init__(
        self,
        num_envs: int,
        device: torch.device | str = "cpu",
        seed: int = 0,
        *,
        start_angle: float = 0.0,
        start_spread: float = 0.2,
        ends_on_fall: bool = True,
    ) -> None:
        """Episodes start around `start_angle` (rad) with every state entry up to `start_spread` (SI
        units) off; with `ends_on_fall` they end when the pole is below the horizontal."""
        super().__init__(num_envs, device, seed)
        self.start_angle = start_angle
        self.start_spread = start_spread
        self.ends_on_fall = ends_on_fall
        if not ends_on_fall:
            self.termination_conditions = {
                **self.termination_conditions,
                "pole_fell": "never in this task",
            }
        self.position, self.velocity, self.angle, self.angular_velocity, self.force = torch.zeros(
            5, num_envs, device=self.device
        )
        self.parameters_changed(torch.arange(num_envs, device=self.device))

    def parameters_changed(self, env_ids: Tensor) -> None:
        values = self.parameter_values
        self.masses = Masses(values["cart_mass"], values["pole_mass"])
        self.largest_force = MAX_FORCE * values["motor_strength"]

    def pre_physics_step(self, actions: Tensor) -> None:
        self.force = self.largest_force * actions[:, 0]

    def simulate(self) -> None:
        """One Runge-Kutta step of order 4."""
        step, velocity, spin = self.control_dt, self.velocity, self.angular_velocity
        force = self.force - self.parameter_values["wheel_friction"] * velocity
        cart_1, pole_1 = accelerations(force, self.angle, spin, self.masses)
        spin_2 = spin + 0.5 * step * pole_1
        angle_2 = self.angle + 0.5 * step * spin
        cart_2, pole_2 = accelerations(force, angle_2, spin_2, self.masses)
        spin_3 = spin + 0.5 * step * pole_2
        angle_3 = self.angle + 0.5 * step * spin_2
        cart_3, pole_3 = accelerations(force, angle_3, spin_3, self.masses)
        angle_4, spin_4 = self.angle + step * spin_3, spin + step * pole_3
        cart_4, pole_4 = accelerations(force, angle_4, spin_4, self.masses)
        self.position = self.position + step * velocity + step**2 / 6.0 * (cart_1 + cart_2 + cart_3)
        self.angle = self.angle + step * spin + step**2 / 6.0 * (pole_1 + pole_2 + pole_3)
        self.velocity = velocity + step / 6.0 * (cart_1 + 2.0 * (cart_2 + cart_3) + cart_4)
        self.angular_velocity = spin + step / 6.0 * (pole_1 + 2.0 * (pole_2 + pole_3) + pole_4)

    def compute_observations(self) -> None:
        entries = (
            self.position,
            self.velocity,
            torch.sin(self.angle),
            torch.cos(self.angle),
            self.angular_velocity,
        )
        torch.stack(entries, dim=1, out=self.obs_buf)

    def compute_variables(self) -> dict[str, Tensor]:
        sine, cosine = self.obs_buf[:, 2], self.obs_buf[:, 3]
        return {
            "cart_position": self.position,
            "cart_velocity": self.velocity,
            "pole_angle": torch.atan2(sine, cosine),
            "pole_angular_velocity": self.angular_velocity,
            "pole_upright": cosine,
            "pole_tip_velocity": (
                self.velocity + 2.0 * POLE_HALF_LENGTH * self.angular_velocity * cosine
            ),
            "cart_force": self.force,
            "track_limit_nearness": (self.position.abs() / TRACK_HALF_LENGTH).clamp(max=1.0),
        }

    def compute_termination(self) -> dict[str, Tensor]:
        left = self.position.abs() > TRACK_HALF_LENGTH
        fell = (
            torch.cos(self.angle) < LEAST_UPRIGHT if self.ends_on_fall else torch.zeros_like(left)
        )
        return {"pole_fell": fell & ~left, "left_the_track": left}

    def draw(self, row: int) -> Drawing:
        """The track from the front, with the pole's tip on a circle of its length."""
        x, angle = self.position[row].item(), self.angle[row].item()
        length = 2.0 * POLE_HALF_LENGTH
        hinge = (x, 0.15)
        tip = (hinge[0] + length * math.sin(angle), hinge[1] + length * math.cos(angle))
        push = 0.6 * self.force[row].item() / MAX_FORCE
        return Drawing(
            (
                Line(((-TRACK_HALF_LENGTH, 0.0), (TRACK_HALF_LENGTH, 0.0)), 0.03, "#94a3b8"),
                *(
                    rectangle((side * TRACK_HALF_LENGTH, 0.1), 0.05, 0.4, "#94a3b8")
                    for side in (-1.0, 1.0)
                ),
                Line(((x, -0.2), (x + push, -0.2)), 0.04, "#f97316"),
                rectangle((x, 0.1), 0.5, 0.2, "#334155"),
                Line((hinge, tip), 0.07, "#0ea5e9"),
                Circle(hinge, 0.05, "#0f172a"),
                Circle(tip, 0.05, "#0284c7"),
            ),
            centre=(0.0, 0.15),
            width=2.0 * TRACK_HALF_LENGTH + 0.6,
        )

    def reset_idx(self, env_ids: Tensor) -> None:
        start = self.random.uniform(env_ids, 4, -self.start_spread, self.start_spread)
        self.position[env_ids] = start[:, 0]
        self.velocity[env_ids] = start[:, 1]
        self.angle[env_ids] = start[:, 2] + self.start_angle
        self.angular_velocity[env_ids] = start[:, 3]
        self.force.index_fill_(0, env_ids, 0.0)
