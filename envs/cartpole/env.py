"""Cart and pole in plain torch."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from eureka_agent.simulation.drawing import Circle, Drawing, Line, rectangle
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import Channel, Variable

GRAVITY = 9.81
CART_MASS = 1.0
POLE_MASS = 0.1
POLE_HALF_LENGTH = 0.5
TRACK_HALF_LENGTH = 3.0
MAX_FORCE = 10.0
LEAST_UPRIGHT = 0.0

DEFAULT_TASK = "balance"


def accelerations(force: Tensor, angle: Tensor, angular_velocity: Tensor) -> tuple[Tensor, Tensor]:
    """Acceleration of the cart (m/s²) and of the pole (rad/s²): Florian 2007, "Correct equations
    for the dynamics of the cart-pole system", without friction. The pole is a uniform rod; angle 0
    is upright. Shape of each: (num_envs,)."""
    total_mass = CART_MASS + POLE_MASS
    sine, cosine = torch.sin(angle), torch.cos(angle)
    push = (force + POLE_MASS * POLE_HALF_LENGTH * angular_velocity.square() * sine) / total_mass
    inertia = POLE_HALF_LENGTH * (4.0 / 3.0 - POLE_MASS / total_mass * cosine.square())
    pole = (GRAVITY * sine - cosine * push) / inertia
    return push - POLE_MASS * POLE_HALF_LENGTH / total_mass * pole * cosine, pole


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

    def pre_physics_step(self, actions: Tensor) -> None:
        self.force = MAX_FORCE * actions[:, 0]

    def simulate(self) -> None:
        """One Runge-Kutta step of order 4."""
        step, velocity, spin = self.control_dt, self.velocity, self.angular_velocity
        cart_1, pole_1 = accelerations(self.force, self.angle, spin)
        spin_2 = spin + 0.5 * step * pole_1
        cart_2, pole_2 = accelerations(self.force, self.angle + 0.5 * step * spin, spin_2)
        spin_3 = spin + 0.5 * step * pole_2
        cart_3, pole_3 = accelerations(self.force, self.angle + 0.5 * step * spin_2, spin_3)
        cart_4, pole_4 = accelerations(self.force, self.angle + step * spin_3, spin + step * pole_3)
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
