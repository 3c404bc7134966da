"""The exported mix-in on a small class in Isaac Gym's style, against rewards worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from export_runs import ExportTexts, LoadModule
from torch import Tensor

from eureka_agent.records import TaskDescription

SOURCE = """
def compute_reward(cart_position, previous_cart_position, actions, previous_actions):
    moved = 100.0 * (cart_position - previous_cart_position)
    action = 10.0 * actions[:, 0]
    before = previous_actions[:, 0]
    return moved + action + before, {"moved": moved, "action": action, "before": before, "constant": 0.5}
"""


class Cart:
    """Moves by its action. A row ends beyond 3 and starts again at 0 in the step after, as
    IsaacGymEnvs has it."""

    def __init__(self, rows: int) -> None:
        self.rew_buf = torch.zeros(rows)
        self.reset_buf = torch.zeros(rows, dtype=torch.long)
        self.progress_buf = torch.zeros(rows, dtype=torch.long)
        self.extras: dict[str, Any] = {}
        self.position = torch.zeros(rows)
        self.actions = torch.zeros(rows, 1)

    def step(self, actions: Tensor) -> None:
        self.actions[:] = actions.unsqueeze(-1)
        self.position += actions
        self.progress_buf += 1
        self.restart(self.reset_buf.nonzero().squeeze(-1))
        self.compute_reward(self.actions)

    def restart(self, rows: Tensor) -> None:
        self.position[rows] = 0.0
        self.reset_buf[rows] = 0
        self.progress_buf[rows] = 0

    def compute_reward(self, actions: Tensor) -> None:
        """The class's own, whose terminations must stay."""
        self.rew_buf[:] = -1.0
        self.reset_buf[:] = (self.position > 3.0).long()


def rewarded(module: Any, base: type[Cart]) -> Any:
    class Rewarded(module.RewardMixin, base):  # type: ignore[misc, name-defined]
        def reward_variables(self) -> dict[str, Tensor]:
            return {"cart_position": self.position, "actions": self.actions}

    return Rewarded


def test_rewards_are_as_by_hand_also_in_a_row_just_reset(
    export_texts: ExportTexts, load: LoadModule, description: TaskDescription
) -> None:
    task = rewarded(load(export_texts(SOURCE, description), "vec_task"), Cart)(2)
    terms: list[Tensor] = []
    for actions in ([1.0, 2.0], [1.0, 1.5], [1.0, 0.5], [0.25, 0.75]):
        task.step(torch.tensor(actions))
        terms.append(task.rew_buf.clone())
    # row 0 goes on:   positions 1, 2, 3, 3.25; its first step has no step before
    #   100 * 0 + 10 * 1 + 0, 100 * 1 + 10 * 1 + 1, the same, 100 * 0.25 + 10 * 0.25 + 1
    assert [float(step[0]) for step in terms] == [10.0, 111.0, 111.0, 28.5]
    # row 1: 2, 3.5 (ends), reset to 0 with nothing done, 0.75; the action that was under way at the
    # reset counts nowhere
    #   100 * 0 + 10 * 2 + 0, 100 * 1.5 + 10 * 1.5 + 2, 0, 100 * 0.75 + 10 * 0.75 + 0
    assert [float(step[1]) for step in terms] == [20.0, 167.0, 0.0, 82.5]
    components = task.extras["reward_components"]
    assert components["moved"].tolist() == [25.0, 75.0]
    assert components["action"].tolist() == [2.5, 7.5]
    assert components["before"].tolist() == [1.0, 0.0]
    assert components["constant"].tolist() == [0.5, 0.5]
    assert task.reset_buf.tolist() == [1, 0]


def test_wrong_variables_are_told(
    export_texts: ExportTexts, load: LoadModule, description: TaskDescription
) -> None:
    module = load(export_texts(SOURCE, description), "vec_task")

    class Silent(module.RewardMixin, Cart):
        pass

    with pytest.raises(
        NotImplementedError,
        match=r"Silent\.reward_variables; the reward reads cart_position, actions",
    ):
        Silent(2).step(torch.zeros(2))

    class Wrong(module.RewardMixin, Cart):
        def reward_variables(self) -> dict[str, Tensor]:
            return {"cart_position": self.position, "actions": self.position}

    with pytest.raises(ValueError, match=r"'actions' has the shape \(2,\)"):
        Wrong(2).step(torch.zeros(2))
