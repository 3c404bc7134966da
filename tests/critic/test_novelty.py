"""Rewards that count as the same, by source."""

from __future__ import annotations

import pytest

from eureka_agent.critic.memory import KnownReward, find_same_source
from eureka_agent.designer.interface import given_reward

FIRST = '''
import torch
from torch import Tensor

TEMPERATURE = 0.3


def squash(x: Tensor, scale: float) -> Tensor:
    """Between 0 and 1."""
    return torch.exp(-x.abs() / scale)


def compute_reward(pole_angle: Tensor, actions: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    # the pole first
    upright = squash(pole_angle, scale=TEMPERATURE)
    effort: Tensor = -0.01 * torch.relu(actions).sum(dim=-1)
    return upright + effort, {"upright": upright, "effort": effort}
'''
BARE = """
import torch
from torch import Tensor
TEMPERATURE = 0.3
def squash(x, scale):
    return (torch.exp(-x.abs()/scale))
@torch.jit.script
def compute_reward(pole_angle, actions):
    upright = squash(pole_angle, scale=TEMPERATURE)
    effort = -0.01 * torch.relu(actions).sum(dim=-1)
    return upright + effort, {"upright": upright, "effort": effort}
"""
KNOWN = [
    KnownReward("1-02", given_reward("def compute_reward(actions):\n    return actions, {}")),
    KnownReward("1-03", given_reward(FIRST)),
]


def test_layout_comments_and_annotations_do_not_matter() -> None:
    (found,) = find_same_source(BARE, KNOWN)
    assert (found.code, found.severity) == ("N501", "error")
    assert found.message == "the same reward as 1-03 up to layout and comments"
    (found,) = find_same_source(FIRST, KNOWN)
    assert found.message == "the same reward as 1-03"


@pytest.mark.parametrize(
    ("old", "new"),
    [("0.3", "0.4"), ("upright + effort", "upright - effort"), ("torch.exp", "torch.sin")],
)
def test_what_is_computed_matters(old: str, new: str) -> None:
    changed = FIRST.replace(old, new)
    assert changed != FIRST
    assert find_same_source(changed, KNOWN) == []
