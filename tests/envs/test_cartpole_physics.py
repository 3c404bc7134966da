"""Cartpole against mechanics and against MuJoCo's own simulation of the same system."""

from __future__ import annotations

import math
from collections.abc import Callable

import mujoco
import numpy as np
import pytest
import torch

from eureka_agent.simulation.vec_task import VecTask

Make = Callable[..., VecTask]

CART, POLE, HALF, GRAVITY = 1.0, 0.1, 0.5, 9.81

# the pole's inertia about its middle is m(2l)²/12 across and 0 along it
MJCF = f"""
<mujoco>
  <option timestep="0.001" integrator="RK4" gravity="0 0 -{GRAVITY}"/>
  <worldbody>
    <body>
      <joint name="cart" type="slide" axis="1 0 0"/>
      <inertial mass="{CART}" pos="0 0 0" diaginertia="1 1 1"/>
      <body>
        <joint name="pole" type="hinge" axis="0 1 0"/>
        <inertial mass="{POLE}" pos="0 0 {HALF}" diaginertia="{POLE / 12} {POLE / 12} 1e-6"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="cart"/></actuator>
</mujoco>
"""


def set_state(
    environment: VecTask, position: float, velocity: float, angle: float, angular_velocity: float
) -> None:
    for name, value in (
        ("position", position),
        ("velocity", velocity),
        ("angle", angle),
        ("angular_velocity", angular_velocity),
    ):
        getattr(environment, name).fill_(value)


def test_driven_motion_is_that_of_mujoco(make: Make) -> None:
    environment = make("cartpole", 1, task="swingup")
    set_state(environment, 0.1, -0.3, 2.5, 1.0)
    model = mujoco.MjModel.from_xml_string(MJCF)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = (0.1, 2.5), (-0.3, 1.0)
    for step in range(100):
        action = math.sin(0.1 * step)
        values = environment.advance(torch.tensor([[action]])).variables
        data.ctrl[0] = 10.0 * action
        mujoco.mj_step(model, data, nstep=20)
    # RK4 at 0.02 s in float32 against RK4 at 0.001 s in float64, 2 s on
    assert float(values["cart_position"][0]) == pytest.approx(data.qpos[0], abs=1e-3)
    assert float(values["cart_velocity"][0]) == pytest.approx(data.qvel[0], abs=1e-3)
    assert float(values["pole_upright"][0]) == pytest.approx(math.cos(data.qpos[1]), abs=1e-3)
    assert float(values["pole_angular_velocity"][0]) == pytest.approx(data.qvel[1], abs=5e-3)


def energy(environment: VecTask) -> np.ndarray:
    """Kinetic energy of cart and rod plus the rod's potential energy, J."""
    velocity, angle, spin = (
        getattr(environment, name).double().numpy()
        for name in ("velocity", "angle", "angular_velocity")
    )
    kinetic = 0.5 * (CART + POLE) * velocity**2 + POLE * HALF * velocity * spin * np.cos(angle)
    kinetic += 0.5 * (POLE * HALF**2 + POLE * (2 * HALF) ** 2 / 12) * spin**2
    return kinetic + POLE * GRAVITY * HALF * np.cos(angle)


def test_energy_of_the_undriven_system_is_conserved(make: Make) -> None:
    environment = make("cartpole", 64, task="swingup")
    environment.angle.copy_(torch.linspace(-3.0, 3.0, 64))
    environment.angular_velocity.copy_(torch.linspace(4.0, -4.0, 64))
    before = energy(environment)
    for _ in range(500):
        environment.advance(torch.zeros(64, 1))
    # about 0.5 J of potential energy up and as much down; RK4 loses some 1e-4 of it in 10 s
    assert np.abs(energy(environment) - before).max() < 1e-3


def test_the_free_end_moves_with_the_cart_and_with_the_turn(make: Make) -> None:
    environment = make("cartpole", 1, task="swingup")
    set_state(environment, 0.0, -0.4, 0.3, 1.7)
    environment.compute_observations()
    # the end is at x + 2l sin(angle), a metre from the hinge: its speed is v + 2l ω cos(angle)
    speed = -0.4 + 1.7 * math.cos(0.3)
    assert float(environment.read_variables()["pole_tip_velocity"]) == pytest.approx(speed)


def test_an_episode_that_ends_in_two_ways_at_once_left_the_track(make: Make) -> None:
    environment = make("cartpole", 1, task="balance")
    set_state(environment, 2.99, 1.0, 1.56, 2.0)
    transition = environment.advance(torch.zeros(1, 1))
    told = {name: bool(rows[0]) for name, rows in transition.causes.items()}
    assert told == {"pole_fell": False, "left_the_track": True}
