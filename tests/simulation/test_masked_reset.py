"""Resets that are left to the device equal resets by index to the bit, and nothing in them would
wait for a GPU."""

from __future__ import annotations

import pytest
import torch

from eureka_agent.simulation.loading import load_environment
from eureka_agent.simulation.vec_task import VecTask

TASKS = ("cartpole/balance", "cartpole/swingup", "quadcopter/hover", "hopper/run", "ant/run")


def make(reference: str, num_envs: int, device: str = "cpu", seed: int = 3) -> VecTask:
    name, _, task = reference.partition("/")
    loaded = load_environment(name)
    return loaded.make(loaded.task(task)[1], num_envs, device, seed)


@pytest.mark.parametrize("reference", TASKS)
def test_a_masked_reset_is_a_reset_by_index(reference: str) -> None:
    by_index, by_mask = make(reference, 6), make(reference, 6)
    by_mask.resets_by_mask = True
    actions = torch.randn(30, 6, by_index.num_actions, generator=torch.Generator().manual_seed(1))
    for environment in (by_index, by_mask):
        environment.max_episode_length = 11
        # rows end at different times; in most steps none does, in one two do
        environment.progress_buf[:] = torch.tensor([0, 3, 3, 5, 8, 10])
    ended = 0
    for step in actions:
        one, other = by_index.advance(step), by_mask.advance(step)
        assert torch.equal(one.observations, other.observations)
        ended += int(by_index.reset_buf.sum())
        assert torch.equal(by_index.reset_done(), by_mask.reset_done())
        values, others = by_index.read_variables(), by_mask.read_variables()
        assert all(torch.equal(values[name], others[name]) for name in values)
        rows = torch.arange(6)
        state, other_state = by_index.row_state(rows), by_mask.row_state(rows)
        assert state.keys() == other_state.keys()
        assert all(torch.equal(state[name], other_state[name]) for name in state)
    assert ended >= 12


@pytest.mark.parametrize("reference", ["hopper/run", "ant/run"])
def test_sensors_of_rows_that_go_on_outlast_the_next_reset_of_others(reference: str) -> None:
    by_index, by_mask = make(reference, 4), make(reference, 4)
    by_mask.resets_by_mask = True
    for environment in (by_index, by_mask):
        environment.max_episode_length = 3
        environment.progress_buf[:] = torch.tensor([0, 1, 2, 2])
        for _ in range(2):
            environment.advance(torch.ones(4, environment.num_actions))
            environment.reset_done()
        environment.reset_rows(torch.tensor([2]))
    values, others = by_index.read_variables(), by_mask.read_variables()
    assert all(torch.equal(values[name], others[name]) for name in values)


def test_a_device_resets_by_mask_unless_the_state_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    environment = type(make("cartpole/balance", 1))
    assert environment(2, "meta").resets_by_mask
    assert not environment(2, "cpu").resets_by_mask
    monkeypatch.setattr(environment, "restorable", False)
    assert not environment(2, "meta").resets_by_mask
