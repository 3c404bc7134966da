"""mujoco_warp against mujoco.batch.Batch on hopper and ant: steps, resets, broken and overflowing
rows, going on from a saved state.

The first run on a machine compiles warp's kernels, which takes about a minute; after that they come
from its cache.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import pytest
import torch
from torch import Tensor
from warp_needed import NEEDS_WARP

from eureka_agent.errors import EnvironmentLoadError
from eureka_agent.invocation import INSTALL_GPU
from eureka_agent.simulation import mujoco_task, warp_physics
from eureka_agent.simulation.loading import load_environment
from eureka_agent.simulation.mujoco_task import MujocoTask

pytestmark = [pytest.mark.slow, NEEDS_WARP]

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
NUM_ENVS = 16

# float32 in place of float64. After one control step from the same state, 64 rows and 200 steps of
# either model: at most 1.3e-4 rad/s or m/s and 2.1e-6 rad or m apart, half of the rows 1.5e-6. A
# friction pyramid that is turned makes up to 1 rad/s of it.
VELOCITY_TOLERANCE = 5e-4
POSITION_TOLERANCE = 2e-5


def assert_same(found: Tensor, expected: Tensor) -> None:
    """To the bit on a CPU. On a GPU threads add up in any order, and a few steps with contacts
    magnify that."""
    tolerance = 0.0 if found.device.type == "cpu" else 1e-2
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


def environment_class(name: str) -> type[MujocoTask]:
    cls = load_environment(name).environment_class
    assert issubclass(cls, MujocoTask)
    return cls


def on_warp(name: str, num_envs: int = NUM_ENVS, device: str = "cpu", seed: int = 0) -> Any:
    """The environment on mujoco_warp, also where the device is a CPU, with a GPU's resets. Freshly
    reset."""
    cls = environment_class(name)
    # a class of its own, in the same file: that is where its MJCF is looked for
    environment = type(cls.__name__, (cls,), {"simulator": "warp"})(num_envs, device, seed)
    environment.resets_by_mask = True
    environment.reset()
    return environment


def on_batch(name: str, num_envs: int = NUM_ENVS, seed: int = 0) -> Any:
    environment = environment_class(name)(num_envs, "cpu", seed)
    environment.reset()
    return environment


@pytest.fixture
def converging(monkeypatch: pytest.MonkeyPatch) -> None:
    """Solvers that reach the solution. One that is cut off after 4 iterations is somewhere on its
    way, and the two simulators are at different places."""
    load = mujoco_task.load_model

    def patient(task: type[MujocoTask]) -> mujoco.MjModel:
        model = load(task)
        model.opt.iterations, model.opt.ls_iterations = 20, 20
        return model

    monkeypatch.setattr(mujoco_task, "load_model", patient)


def random_actions(steps: int, environment: Any, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (
        2.0 * torch.rand(steps, environment.num_envs, environment.num_actions, generator=generator)
        - 1.0
    )


def put(state: dict[str, Tensor], environment: Any) -> None:
    """Give a simulator another one's state."""
    for name, value in environment.physics.state().items():
        value.copy_(state[name])


def largest(first: Tensor, second: Tensor) -> float:
    return float((first.double().cpu() - second.double().cpu()).abs().max())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["hopper", "ant"])
@pytest.mark.usefixtures("converging")
def test_from_the_same_state_both_reach_the_same(name: str, device: str) -> None:
    batch, warp = on_batch(name), on_warp(name, device=device)
    assert largest(batch.obs_buf, warp.obs_buf) < POSITION_TOLERANCE
    for environment in (batch, warp):
        environment.max_episode_length = 30
        environment.progress_buf[:] = 2 * torch.arange(NUM_ENVS)
    failed, cut, same_contacts = 0, 0, []
    for step, actions in enumerate(random_actions(200, batch)):
        if name == "ant" and step % 40 == 20:
            batch.qpos[step // 40, 2:7] = torch.tensor(
                [1.0, 0.0, 1.0, 0.0, 0.0], dtype=torch.float64
            )  # on its back
        put(batch.physics.state(), warp)
        expected, found = batch.advance(actions), warp.advance(actions.to(device))
        assert largest(batch.qpos, warp.qpos) < POSITION_TOLERANCE
        assert largest(batch.qvel, warp.qvel) < VELOCITY_TOLERANCE
        for sensor, value in batch.sensors.items():
            # forces of up to 1,000 N come from accelerations, which one step divides by 0.008 s
            tolerance = 0.5 if "force" in sensor else VELOCITY_TOLERANCE
            assert largest(value, warp.sensors[sensor]) < tolerance, sensor
        for variable, value in expected.variables.items():
            if "in_contact" in variable:
                same_contacts.append((value == found.variables[variable].cpu()).flatten())
            elif "force" not in variable and "power" not in variable:
                assert largest(value, found.variables[variable]) < 5.0 * VELOCITY_TOLERANCE, (
                    variable
                )
        assert torch.equal(expected.terminated, found.terminated.cpu())
        assert all(
            torch.equal(rows, found.causes[cause].cpu()) for cause, rows in expected.causes.items()
        )
        failed, cut = failed + int(expected.terminated.sum()), cut + int(expected.truncated.sum())
        assert largest(batch.reset_done(), warp.reset_done()) < 5.0 * VELOCITY_TOLERANCE
    # a foot that lets go in just this step may do so a step later; rows that end start again from
    # the same random numbers
    assert float(torch.cat(same_contacts).float().mean()) >= 0.999
    assert failed >= 5
    assert cut >= 5


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["hopper", "ant"])
def test_rows_go_on_from_their_state_bit_for_bit_among_others(name: str, device: str) -> None:
    """This also tests neighbours: the second simulator has other rows, and its own launches are
    compiled and recorded later."""
    first, second = on_warp(name, 5, device, seed=1), on_warp(name, 9, device, seed=2)
    taken, place = torch.tensor([1, 3], device=device), torch.tensor([6, 2], device=device)
    for actions in random_actions(7, first).to(device):
        first.advance(actions)
        first.reset_done()
    state = {key: value.cpu() for key, value in first.row_state(taken).items()}
    second.load_row_state(place, state)
    for actions in random_actions(30 if device == "cpu" else 5, first, seed=4).to(device):
        others = random_actions(1, second, seed=9)[0].to(device)
        others[place] = actions[taken]
        one, other = first.advance(actions), second.advance(others)
        assert_same(one.observations[taken], other.observations[place])
        for variable, value in one.variables.items():
            assert_same(value[taken], other.variables[variable][place])
        assert_same(first.reset_done()[taken], second.reset_done()[place])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("poison", [math.nan, math.inf, 1e11])
def test_broken_physics_ends_its_row_alone(poison: float, device: str) -> None:
    healthy, broken = on_warp("hopper", 4, device), on_warp("hopper", 4, device)
    broken.qvel[2, 1] = poison
    actions = torch.zeros(4, 3, device=device)
    expected, found = healthy.advance(actions), broken.advance(actions)
    assert found.causes["unstable_physics"].tolist() == [False, False, True, False]
    assert found.terminated.tolist() == [False, False, True, False]
    assert all(bool(value.isfinite().all()) for value in found.variables.values())
    others = torch.tensor([0, 1, 3], device=device)
    assert_same(found.observations[others], expected.observations[others])
    broken.reset_done()
    assert broken.advance(actions).terminated.tolist() == [False] * 4


@pytest.mark.parametrize("device", DEVICES)
def test_constraints_without_room_end_their_row_alone(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warp_physics, "_MOST_CONSTRAINTS", 4)
    environment = on_warp("ant", 3, device)
    environment.qpos[1, 2] = 5.0
    # four feet on the ground make 16 rows, the one in the air has none
    found = environment.advance(torch.zeros(3, 8, device=device))
    assert found.causes["unstable_physics"].tolist() == [True, False, True]


def test_room_for_all_contacts_and_constraints() -> None:
    def needed(
        name: str, change: Callable[[mujoco.MjModel], None] = lambda model: None
    ) -> tuple[int | None, int | None]:
        model = mujoco_task.load_model(environment_class(name))
        change(model)
        # every geom can touch the ground and nothing else
        pairs = np.array([[0, geom] for geom in range(1, model.ngeom)], dtype=np.int32)
        return warp_physics.room(model, pairs)

    # 4 capsules with 2 ends each, 4 rows a contact, 3 joints with limits
    assert needed("hopper") == (8, 8 * 4 + 2 * 3)
    # the torso's sphere and 12 capsules, 8 joints with limits
    assert needed("ant") == (25, 25 * 4 + 2 * 8)

    def elliptic(model: mujoco.MjModel) -> None:
        model.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC

    assert needed("ant", elliptic) == (25, 25 * 3 + 2 * 8)


def test_a_solver_that_warp_does_not_have_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    model = mujoco_task.load_model(environment_class("hopper"))
    model.opt.solver = mujoco.mjtSolver.mjSOL_PGS
    monkeypatch.setattr(mujoco_task, "load_model", lambda task: model)
    with pytest.raises(EnvironmentLoadError, match=r"simulate hopper\.xml: mjSOL_PGS") as raised:
        on_warp("hopper", 1)
    assert 'solver="Newton"' in raised.value.hint


@pytest.mark.parametrize("missing", ["warp", "mujoco_warp"])
def test_a_missing_library_is_one_clear_error(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(
        EnvironmentLoadError, match=r"hopper\.xml on 'cpu' is simulated by mujoco_warp"
    ) as raised:
        on_warp("hopper", 1)
    assert raised.value.hint == f"install it: {INSTALL_GPU}; or use --device cpu"
    assert "--device cpu" in raised.value.hint
