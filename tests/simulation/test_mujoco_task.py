"""MujocoTask on a small model: control mapping, currency of what is read, broken physics, mistakes
in the class."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
import torch

from eureka_agent.errors import EnvironmentLoadError
from eureka_agent.simulation.loading import load_environment

WriteFolder = Callable[..., Path]

# a block on a free joint beside a pendulum whose motor takes -2 to 6, and a slider whose motor has
# no limits
MJCF = """
<mujoco>
  <option timestep="0.005" integrator="implicitfast"/>
  <worldbody>
    <geom type="plane" size="5 5 1"/>
    <body name="block" pos="2 0 0.5"><freejoint/><geom type="box" size="0.1 0.1 0.1" mass="1"/></body>
    <body name="pendulum" pos="0 0 2">
      <joint name="hinge" type="hinge" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.02" mass="1"/>
      <site name="tip" pos="0 0 -0.5"/>
    </body>
    <body name="slider" pos="0 2 1"><joint name="slide" type="slide" axis="1 0 0"/><geom size="0.1" mass="1"/></body>
  </worldbody>
  <actuator>
    <motor joint="hinge" ctrlrange="-2 6" ctrllimited="true"/>
    <motor joint="slide"/>
  </actuator>
  <sensor>
    <framepos name="tip" objtype="site" objname="tip"/>
    <framelinvel name="tip_velocity" objtype="site" objname="tip"/>
    <jointpos name="angle" joint="hinge"/>
  </sensor>
</mujoco>
"""

ENV = '''
from eureka_agent.simulation.mujoco_task import MujocoTask
from eureka_agent.task import Variable


class Swinging(MujocoTask):
    """Moving parts."""

    variables = (Variable("tip", (3,), "m", "world", "tip"), Variable("angle", (), "rad", "joint", "angle"))
    model_file = "model.xml"
    num_observations = 9
    num_actions = 2
    max_episode_length = 20
    control_dt = 0.02
    position_noise = 0.1
    velocity_noise = 0.5
    termination_causes = ("swung", "unstable_physics")

    def compute_observations(self):
        self.obs_buf[:] = self.joint_positions

    def compute_variables(self):
        return {"tip": self.sensors["tip"], "angle": self.sensors["angle"]}

    def compute_failures(self):
        return {"swung": self.sensors["angle"].abs() > 3.0}
'''


TASK = """from eureka_agent.task import Task
task = Task(sentence='swing', fitness=lambda angle: angle, fitness_doc='angle')
"""


@pytest.fixture
def make(write_folder: WriteFolder) -> Callable[..., Any]:
    """`make(num_envs, seed)` of the model above; keyword `change` replaces text in env.py."""

    def made(
        num_envs: int = 3,
        seed: int = 0,
        change: tuple[str, str] = ("", ""),
        model: str | None = MJCF,
    ) -> Any:
        files = {"env.py": ENV.replace(*change), "tasks/go.py": TASK, "model.xml": model}
        loaded = load_environment(str(write_folder(files=files)))
        return loaded.make(loaded.task(None)[1], num_envs, seed=seed)

    return made


def test_actions_map_onto_each_control_range(make: Callable[..., Any]) -> None:
    environment = make()
    environment.advance(torch.tensor([[-1.0, -1.0], [0.0, 0.5], [1.0, 1.0]]))
    # -2 to 6 has its middle at 2; a motor without limits takes the action itself
    assert environment.ctrl.tolist() == [[-2.0, -1.0], [2.0, 0.5], [6.0, 1.0]]


def test_sensors_describe_the_state_reached(make: Callable[..., Any]) -> None:
    environment = make()
    for _ in range(5):
        environment.advance(torch.ones(3, 2))
    for row in range(3):
        data = mujoco.MjData(environment.model)
        data.qpos[:], data.qvel[:] = environment.qpos[row].numpy(), environment.qvel[row].numpy()
        mujoco.mj_forward(environment.model, data)
        for name in ("tip", "tip_velocity"):
            assert environment.sensors[name][row].tolist() == pytest.approx(
                data.sensor(name).data.tolist(), abs=1e-6
            )
        assert float(environment.sensors["angle"][row]) == pytest.approx(data.qpos[7], abs=1e-6)


def test_sensors_are_current_after_a_reset(make: Callable[..., Any]) -> None:
    environment = make()
    for _ in range(5):
        environment.advance(torch.ones(3, 2))
    environment.reset_rows(torch.tensor([1]))
    angle = float(environment.qpos[1, 7])
    assert 0.0 < abs(angle) <= 0.1
    assert environment.sensors["tip"][1].tolist() == pytest.approx(
        [-0.5 * math.sin(angle), 0.0, 2.0 - 0.5 * math.cos(angle)], abs=1e-6
    )


def test_starts_are_noisy_in_hinges_slides_and_velocities_alone(make: Callable[..., Any]) -> None:
    environment = make(num_envs=400)
    positions, velocities = environment.qpos.numpy(), environment.qvel.numpy()
    assert np.all(positions[:, :7] == np.array([2, 0, 0.5, 1, 0, 0, 0]))
    # uniform on ±0.1: standard deviation 0.1/√3
    assert positions[:, 7:].std(axis=0) == pytest.approx([0.1 / math.sqrt(3)] * 2, rel=0.1)
    assert np.abs(positions[:, 7:]).max() <= 0.1
    assert velocities.std(axis=0) == pytest.approx([0.5] * 8, rel=0.15)


@pytest.mark.parametrize("broken", [False, True])
def test_a_row_that_was_reset_goes_on_like_mujocos_own_simulation(
    make: Callable[..., Any], broken: bool
) -> None:
    environment = make()
    # the block has fallen and rests on the ground by then: the solver's warm start is not zero
    for _ in range(40):
        environment.advance(torch.ones(3, 2))
    if broken:
        environment.qvel[1, 6] = math.nan
        environment.advance(torch.ones(3, 2))
    environment.reset_rows(torch.tensor([1]))
    data = mujoco.MjData(environment.model)
    data.qpos[:], data.qvel[:] = environment.qpos[1].numpy(), environment.qvel[1].numpy()
    mujoco.mj_forward(environment.model, data)
    for _ in range(30):
        assert not environment.advance(torch.ones(3, 2)).causes["unstable_physics"].any()
        data.ctrl[:] = 6.0, 1.0
        mujoco.mj_step(environment.model, data, 4)
        assert environment.qpos[1].tolist() == data.qpos.tolist()
        assert environment.qvel[1].tolist() == data.qvel.tolist()
    assert float(environment.physics.state()["time"][1]) == data.time


@pytest.mark.parametrize("poison", [math.nan, math.inf, 1e11])
def test_broken_physics_ends_its_row_alone(make: Callable[..., Any], poison: float) -> None:
    environment = make()
    environment.qvel[1, 6] = poison
    transition = environment.advance(torch.zeros(3, 2))
    assert transition.causes["unstable_physics"].tolist() == [False, True, False]
    assert transition.causes["swung"].tolist() == [False] * 3
    assert bool(torch.isfinite(transition.observations).all())
    environment.reset_done()
    # the row goes on after its reset
    assert environment.advance(torch.zeros(3, 2)).terminated.tolist() == [False] * 3


def test_broken_physics_writes_no_log(
    make: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    environment = make()
    environment.qpos[0, 0] = math.nan
    environment.advance(torch.zeros(3, 2))
    assert not (tmp_path / "MUJOCO_LOG.TXT").exists()
    assert capfd.readouterr() == ("", "")


def test_skipped_rows_stand_still(make: Callable[..., Any]) -> None:
    environment = make()
    environment.skipped_rows = torch.tensor([True, False, True])
    before = environment.qpos.clone()
    environment.advance(torch.ones(3, 2))
    moved = (environment.qpos != before).any(dim=1)
    assert moved.tolist() == [False, True, False]


MISTAKES = {
    "file": (("model.xml", "other.xml"), r"model_file is 'other\.xml'"),
    "no file": (('    model_file = "model.xml"\n', ""), "names no model_file"),
    "actuators": (
        ("num_actions = 2", "num_actions = 3"),
        "num_actions is 3, but model.xml has 2 controls of actuators",
    ),
    "time step": (
        ("control_dt = 0.02", "control_dt = 0.012"),
        "no multiple of the MJCF's timestep 0.005",
    ),
    "too short": (("control_dt = 0.02", "control_dt = 0.001"), "no multiple"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_in_the_class(make: Callable[..., Any], mistake: str) -> None:
    change, message = MISTAKES[mistake]
    with pytest.raises(EnvironmentLoadError, match=message):
        make(change=change)


def test_a_sensor_that_is_not_there_is_named_with_those_that_are(make: Callable[..., Any]) -> None:
    with pytest.raises(
        EnvironmentLoadError, match="no <sensor> named 'agnle'; it has: angle, tip, tip_velocity"
    ) as caught:
        make(
            change=('"angle": self.sensors["angle"]', '"angle": self.sensors["agnle"]')
        ).read_variables()
    assert caught.value.hint == "did you mean 'angle'?"


def test_a_row_goes_on_in_another_instance(make: Callable[..., Any]) -> None:
    taken, put = make(3, seed=0), make(2, seed=9)
    for environment in (taken, put):
        environment.tell_rows_from_constants(make(5))
        environment.reset()
        environment.advance(torch.full((environment.num_envs, 2), 0.3))
    put.load_row_state(torch.tensor([0]), taken.row_state(torch.tensor([2])))
    for environment in (taken, put):
        environment.advance(torch.full((environment.num_envs, 2), -0.5))
    assert torch.equal(put.obs_buf[0], taken.obs_buf[2])
    assert torch.equal(put.read_variables()["tip"][0], taken.read_variables()["tip"][2])
