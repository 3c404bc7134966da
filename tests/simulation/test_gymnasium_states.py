"""States of Gymnasium's own environments, read from one instance and put into another."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from eureka_agent.simulation.loading import load_environment

pytestmark = pytest.mark.filterwarnings("ignore:.*out of date")
KNOWN = ("Ant-v5", "Hopper-v5", "Acrobot-v1", "Pendulum-v1")


def make(reference: str, rows: int, seed: int) -> Any:
    loaded = load_environment(reference)
    return loaded.make(loaded.task(None)[1], rows, seed=seed)


def continues(reference: str, steps: int = 15) -> None:
    """Rows 0 and 2 of one instance, put into rows 3 and 1 of one that has never been reset."""
    first, second = make(reference, 3, seed=1), make(reference, 4, seed=2)
    generator = torch.Generator().manual_seed(5)
    first.reset()
    for _ in range(steps):
        uniform = torch.rand(3, first.num_actions, generator=generator)
        first.advance(first.actions_from(uniform))
        first.reset_done()
    taken, put = torch.tensor([0, 2]), torch.tensor([3, 1])
    state = first.row_state(taken)
    # what happens to the first instance afterwards must not reach the state
    saved = {name: value.clone() for name, value in state.items()}
    second.load_row_state(put, saved)
    second.reset_rows(torch.tensor([0, 2]))
    assert torch.equal(first.progress_buf[taken], second.progress_buf[put])
    for _ in range(40):
        uniform = torch.rand(3, first.num_actions, generator=generator)
        moved = torch.rand(4, first.num_actions, generator=generator)
        moved[put] = uniform[taken]
        one = first.advance(first.actions_from(uniform))
        other = second.advance(second.actions_from(moved))
        assert torch.equal(one.observations[taken], other.observations[put])
        for name, values in one.variables.items():
            assert torch.equal(values[taken], other.variables[name][put]), name
        assert torch.equal(one.terminated[taken], other.terminated[put])
        assert torch.equal(one.truncated[taken], other.truncated[put])
        first.reset_done()
        second.reset_done()


@pytest.mark.parametrize("name", KNOWN)
def test_rows_continue_to_the_bit_in_another_instance(name: str) -> None:
    assert load_environment(f"gymnasium:{name}").environment_class.restorable
    continues(f"gymnasium:{name}")
