"""Mocap bodies, and an MJCF that options choose and change, against plain MuJoCo."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
import torch

from eureka_agent.errors import EnvironmentLoadError
from eureka_agent.simulation.mujoco_task import MujocoTask
from eureka_agent.task import Variable

XML = """<mujoco>
  <size memory="64K"/>
  <option timestep="0.01" integrator="implicitfast"/>
  <worldbody>
    <body name="hand" mocap="true" pos="0 0 1"><geom size="0.02" contype="0" conaffinity="0"/></body>
    <body name="load" pos="0 0 1">
      <freejoint name="load_root"/>
      <geom size="0.05" mass="MASS" contype="0" conaffinity="0"/>
    </body>
  </worldbody>
  <equality><weld body1="hand" body2="load"/></equality>
</mujoco>
"""


@pytest.fixture
def carrier(tmp_path: Path) -> type[MujocoTask]:
    for name, mass in (("light", "0.1"), ("heavy", "50")):
        (tmp_path / f"{name}.xml").write_text(XML.replace("MASS", mass))

    class Carrier(MujocoTask):
        """A load that hangs on a hand."""

        variables = (Variable("load_position_w", (3,), "m", "world", "position of the load"),)
        model_file = str(tmp_path / "light.xml")
        num_observations = 3
        num_actions = 3
        max_episode_length = 100
        control_dt = 0.02
        termination_causes = ("unstable_physics",)

        def __init__(
            self, num_envs: int, device: Any = "cpu", seed: int = 0, load: str = "light"
        ) -> None:
            self.model_file = str(tmp_path / f"{load}.xml")
            super().__init__(num_envs, device, seed)
            self.hand = self.mocap("hand")
            self.load = self.free_joint("load_root")

        def change_mjcf(self, spec: mujoco.MjSpec) -> None:
            spec.option.gravity = (0.0, 0.0, -5.0)

        def pre_physics_step(self, actions: torch.Tensor) -> None:
            self.hand.position_w = self.hand.position_w + 0.05 * actions.double()

        def place(self, env_ids: torch.Tensor) -> None:
            self.hand.write(env_ids, position_w=torch.tensor([0.0, 0.0, 1.0]))

        def compute_observations(self) -> None:
            self.obs_buf[:] = self.load.position_w

        def compute_variables(self) -> dict[str, torch.Tensor]:
            return {"load_position_w": self.load.position_w}

    return Carrier


ACTIONS = torch.tensor([[1.0, 0.0, 0.0], [0.0, -1.0, 1.0]])


@pytest.mark.parametrize("load", ["light", "heavy"])
def test_a_load_follows_its_hand_as_in_plain_mujoco(
    carrier: type[MujocoTask], tmp_path: Path, load: str
) -> None:
    environment = carrier(2, load=load)
    environment.reset()
    for _ in range(20):
        environment.advance(ACTIONS)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / f"{load}.xml"))
    model.opt.gravity[:] = (0.0, 0.0, -5.0)
    for row, action in enumerate(ACTIONS.double().numpy()):
        data = mujoco.MjData(model)
        for _ in range(20):
            data.mocap_pos[0] += 0.05 * action
            mujoco.mj_step(model, data, 2)
        found = environment.load.position_w[row].numpy()
        np.testing.assert_allclose(found, data.qpos[:3], atol=1e-6)
    assert float(environment.model.body("load").mass[0]) == pytest.approx(
        {"light": 0.1, "heavy": 50.0}[load]
    )


def test_a_rows_state_has_its_hand_and_a_reset_leaves_the_others_alone(
    carrier: type[MujocoTask],
) -> None:
    first, second = carrier(2), carrier(2)
    for environment in (first, second):
        environment.reset()
    for _ in range(5):
        first.advance(ACTIONS)
        first.reset_done()
    rows = torch.tensor([1, 0])
    second.load_row_state(rows, first.row_state(torch.arange(2)))
    for _ in range(5):
        here = first.advance(ACTIONS).variables["load_position_w"].clone()
        there = second.advance(ACTIONS[rows]).variables["load_position_w"]
        assert torch.equal(here, there[rows])
    hands = first.hand.position_w.clone()
    first.reset_rows(torch.tensor([0]))
    after = first.hand.position_w
    assert after[0].tolist() == [0.0, 0.0, 1.0]
    assert torch.equal(after[1], hands[1])


def test_a_body_that_is_simulated_is_no_mocap_body(carrier: type[MujocoTask]) -> None:
    with pytest.raises(EnvironmentLoadError, match="'load' is no mocap body"):
        carrier(1).mocap("load")


def test_a_task_is_freed_with_its_simulations_where_nobody_has_it_any_more(
    carrier: type[MujocoTask],
) -> None:
    gc.disable()  # a check or a worker makes dozens, faster than the collector looks for cycles
    try:
        environment: Any = carrier(2)
        environment.reset()
        environment.step(torch.zeros(2, 3))
        simulations = weakref.ref(environment.physics)
        assert simulations() is not None
        del environment
        assert simulations() is None
    finally:
        gc.enable()
