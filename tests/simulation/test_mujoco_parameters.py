"""Parameters of MuJoCo models: a row moves as plain MuJoCo does with a model that was compiled with
those numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch
from torch import Tensor
from warp_needed import NEEDS_WARP

from eureka_agent.parameters import ParameterError
from eureka_agent.simulation.mujoco_parameters import (
    PUSH_PERIOD,
    ModelParameter,
    ModelScaling,
    damping_of,
    friction_of,
    gravity,
    mass_of,
    push_on,
    strength_of,
)
from eureka_agent.simulation.mujoco_task import MujocoTask
from eureka_agent.task import Variable

# a sledge with an arm that a servo turns, sliding over the ground; mass and inertia are numbers of
# their own, so that the test compiles any of them
MJCF = """
<mujoco>
  <option timestep="0.005" integrator="implicitfast"/>
  <worldbody>
    <geom name="ground" type="plane" size="5 5 1" friction="0.6"/>
    <body name="sledge" pos="0 0 0.1">
      <freejoint/>
      <inertial pos="0 0 0" mass="{mass}" diaginertia="{inertia} {inertia} {inertia}"/>
      <geom name="runner" type="box" size="0.3 0.2 0.1" friction="{friction}"/>
      <body name="arm" pos="0 0 0.15">
        <inertial pos="0.2 0 0" mass="0.5" diaginertia="0.01 0.01 0.01"/>
        <joint name="shoulder" axis="0 1 0" damping="{damping}" range="-1 1" limited="true"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position name="servo" joint="shoulder" kp="20" kv="1" ctrlrange="-1 1" forcerange="-3 3"/>
  </actuator>
</mujoco>
"""
NUMBERS = {"mass": 2.0, "inertia": 0.05, "friction": 0.9, "damping": 0.3}
ACTIONS = (0.5, -1.0, 1.0, 0.2)
DOC = "for the test"


class Sledge(MujocoTask):
    """A sledge with an arm."""

    variables = (Variable("place", (3,), "m", "world", "of the sledge"),)
    parameters = (
        mass_of("sledge", low=0.2, high=5.0, doc=DOC),
        friction_of("runner", low=0.2, high=2.0, doc=DOC),
        friction_of(low=0.2, high=2.0, doc=DOC, name="all_friction"),
        damping_of("shoulder", low=0.1, high=9.0, doc=DOC),
        strength_of(["servo"], low=0.2, high=2.0, doc=DOC),
        gravity(low=0.3, high=1.5, doc=DOC),
        push_on("sledge", high=9.0, doc=DOC),
    )
    num_observations = 1
    num_actions = 1
    max_episode_length = 1000
    control_dt = 0.02
    termination_causes = ("unstable_physics",)

    def compute_observations(self) -> None:
        self.obs_buf[:, 0] = self.joint_positions[:, 0]

    def compute_variables(self) -> dict[str, Tensor]:
        return {"place": self.joint_positions[:, :3]}

    def place(self, env_ids: Tensor) -> None:
        """Sliding along x."""
        super().place(env_ids)
        self.qvel[env_ids, 0] = 1.0


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Sledge]:
    path = tmp_path / "sledge.xml"
    path.write_text(MJCF.format(**NUMBERS))

    class Here(Sledge):
        model_file = str(path)

    return Here


def change_strength(model: mujoco.MjModel) -> None:
    model.actuator_gainprm[0, 0] *= 0.5
    model.actuator_biasprm[0, 1:3] *= 0.5
    model.actuator_forcerange[0] *= 0.5


def change_gravity(model: mujoco.MjModel) -> None:
    model.opt.gravity[2] *= 0.5


def change_ground(model: mujoco.MjModel) -> None:
    model.geom_friction[:] *= 0.5


EXPECTED: dict[str, tuple[float, dict[str, float], Callable[[mujoco.MjModel], None]]] = {
    "mass": (4.0, {"mass": 8.0, "inertia": 0.2}, lambda model: None),
    "friction": (0.5, {"friction": 0.45}, lambda model: None),
    "all_friction": (0.5, {}, change_ground),
    "damping": (8.0, {"damping": 2.4}, lambda model: None),
    "motor_strength": (0.5, {}, change_strength),
    "gravity": (0.5, {}, change_gravity),
}
"""Factor, numbers of the MJCF, and a change of the compiled model."""


def plain_states(numbers: dict[str, float], change: Callable[[mujoco.MjModel], None]) -> np.ndarray:
    """States after each action of plain MuJoCo. Shape: (actions, nq + nv)."""
    model = mujoco.MjModel.from_xml_string(MJCF.format(**{**NUMBERS, **numbers}))
    change(model)
    data = mujoco.MjData(model)
    data.qvel[0] = 1.0
    found = []
    for action in 10 * ACTIONS:
        data.ctrl[0] = action
        mujoco.mj_step(model, data, 4)
        found.append(np.concatenate((data.qpos, data.qvel)))
    return np.stack(found)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_row_moves_as_a_model_compiled_with_its_numbers(
    make: Callable[..., Sledge], name: str
) -> None:
    factor, numbers, change = EXPECTED[name]
    expected = {0: plain_states({}, lambda model: None), 2: plain_states(numbers, change)}
    assert np.abs(expected[0] - expected[2]).max() > 0.01
    environment = make(3)
    environment.set_parameters(torch.tensor([2]), {name: (factor, factor)})
    # set where another episode was played; and taken back, which the other rows never had
    for distribution in ({}, {name: (0.7, 0.9)}, {}):
        environment.set_parameters(torch.tensor([0, 1]), distribution)
        environment.reset()
        for step, action in enumerate(10 * ACTIONS):
            environment.advance(torch.full((3, 1), action))
            found = torch.cat((environment.qpos, environment.qvel), dim=1).numpy()
            if not distribution:
                np.testing.assert_allclose(found[0], expected[0][step], atol=1e-9)
            np.testing.assert_allclose(found[2], expected[2][step], atol=1e-9)


def test_a_push_gives_its_impulse_every_two_seconds(make: Callable[..., Sledge]) -> None:
    environment = make(6)
    environment.set_parameters(torch.arange(6), {"push": (5.0, 5.0), "gravity": (0.3, 0.3)})
    environment.reset()
    environment.qpos[:, 2] += 50.0  # nothing touches the ground
    period = round(PUSH_PERIOD / environment.control_dt)
    pushed: list[list[int]] = [[] for _ in range(6)]
    directions: list[list[float]] = [[] for _ in range(6)]
    before = momentum(environment)
    for step in range(2 * period):
        environment.advance(torch.zeros(6, 1))
        after = momentum(environment)
        change = (after - before)[:, :2]
        for row in range(6):
            size = float(np.linalg.norm(change[row]))
            if size > 0.1:
                assert size == pytest.approx(5.0, rel=1e-3)
                pushed[row].append(step)
                directions[row].append(float(np.arctan2(change[row, 1], change[row, 0])))
        before = after
    assert all(second - first == period for first, second in pushed)
    assert len({first for first, _ in pushed}) > 3
    assert all(abs(first - second) > 0.1 for first, second in directions)


def momentum(environment: Sledge) -> np.ndarray:
    """Linear momentum of sledge and arm, 2 kg and 0.5 kg. Shape: (num_envs, 3)."""
    found = []
    for row in range(environment.num_envs):
        data = mujoco.MjData(environment.model)
        data.qpos[:], data.qvel[:] = environment.qpos[row].numpy(), environment.qvel[row].numpy()
        mujoco.mj_forward(environment.model, data)
        mujoco.mj_subtreeVel(environment.model, data)
        found.append(2.5 * data.subtree_linvel[0])
    return np.stack(found)


def test_rows_go_on_in_another_instance(make: Callable[..., Sledge]) -> None:
    distribution = {"mass": (0.5, 4.0), "friction": (0.3, 1.0), "push": (2.0, 5.0)}
    first, second = make(4, seed=1), make(2, seed=5)
    first.set_parameters(torch.arange(4), distribution)
    first.reset()
    for _ in range(30):
        first.advance(torch.ones(4, 1))
    second.load_row_state(torch.tensor([1]), first.row_state(torch.tensor([2])))
    for step in range(120):
        for environment in (first, second):
            environment.advance(torch.ones(environment.num_envs, 1))
            if step == 60:
                environment.reset()
        assert torch.equal(first.qpos[2], second.qpos[1])
        assert torch.equal(first.qvel[2], second.qvel[1])


@NEEDS_WARP
def test_on_a_gpu_rows_have_one_model_and_pushes_of_their_own(make: Callable[..., Sledge]) -> None:
    class OnWarp(make):  # type: ignore[misc,valid-type]
        simulator = "warp"

    environment = OnWarp(2)
    with pytest.raises(ParameterError, match=r"on 'cpu' all episodes have one model: 'mass'"):
        environment.set_parameters(torch.arange(2), {"push": (1.0, 1.0), "mass": (2.0, 2.0)})
    environment.set_parameters(torch.tensor([1]), {"push": (9.0, 9.0)})
    environment.reset()
    for _ in range(round(PUSH_PERIOD / environment.control_dt)):
        environment.advance(torch.zeros(2, 1))
    assert abs(float(environment.qpos[0, 1])) < 1e-3
    assert abs(float(environment.qpos[1, 1])) > 1e-2


LAWS = """
<mujoco>
  <option timestep="0.001"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1"/>
    <geom name="wall" type="plane" size="5 5 .1" pos="9 0 0" zaxis="-1 0 0"/>
    <site name="anchor" pos="-.3 0 1"/>
    <body pos="0 0 1">
      <joint name="j" axis="0 1 0" damping="{damping}"/>
      <geom type="capsule" fromto="0 0 0 0 0 -.5" size=".03" mass="1" contype="0" conaffinity="0"/>
      <site name="end" pos="-.02 0 -.3"/>
    </body>
    <body name="sled" pos="0 1 .0999">
      <joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>
      <geom name="sled" type="box" size=".1 .1 .1" mass="2" contype="0" conaffinity="0"/>
    </body>
  </worldbody>
  <tendon><spatial name="t"><site site="anchor"/><site site="end"/></spatial></tendon>
  <contact><pair geom1="floor" geom2="sled"/></contact>
  <actuator>{actuator}</actuator>
</mujoco>
"""


def with_factor(xml: str, parameter: ModelParameter, factor: float) -> mujoco.MjModel:
    """The model with the numbers that a row with this factor has."""
    model = mujoco.MjModel.from_xml_string(xml)
    values = {parameter.name: torch.tensor([factor])}
    fields = ModelScaling(model, (parameter,)).fields(model, values, torch.tensor([0]))
    for field, numbers in fields.items():
        getattr(model, field)[:] = numbers[0].numpy()
    return model


@pytest.mark.parametrize(
    "actuator",
    [
        '<motor joint="j" gear="3"/>',
        '<position joint="j" kp="5" kv=".3"/>',
        '<damper joint="j" kv="2" ctrlrange="0 1"/>',
        '<pid joint="j" kp="5" kv=".3" input="pos vel"/>',
    ],
)
def test_half_of_the_strength_is_half_of_the_force_at_any_velocity(actuator: str) -> None:
    def forces(factor: float) -> list[float]:
        xml = LAWS.format(damping=0, actuator=actuator.replace("/>", ' name="a"/>'))
        model = with_factor(xml, strength_of(low=0.1, high=2.0, doc=DOC), factor)
        found = []
        for velocity in (0.0, 1.5):
            data = mujoco.MjData(model)
            data.ctrl[:], data.act[:], data.joint("j").qvel[:] = 0.8, 0.8, velocity
            mujoco.mj_forward(model, data)
            found.append(float(data.actuator_force[0]))
        return found

    whole = forces(1.0)
    assert max(map(abs, whole)) > 0.01
    assert forces(0.5) == pytest.approx([force / 2.0 for force in whole])


@pytest.mark.parametrize(
    ("geoms", "is_scaled"), [(None, True), ("sled", True), (["floor"], True), ("wall", False)]
)
def test_a_pair_of_geoms_has_the_friction_of_either(
    geoms: str | list[str] | None, is_scaled: bool
) -> None:
    parameter = friction_of(geoms, low=0.1, high=2.0, doc=DOC)
    xml = LAWS.format(damping=0, actuator="")
    pair = mujoco.MjModel.from_xml_string(xml).pair_friction
    expected = pair * (0.5 if is_scaled else 1.0)
    assert np.allclose(with_factor(xml, parameter, 0.5).pair_friction, expected)
