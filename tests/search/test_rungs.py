"""Rungs are checkpoints of a training before its last one."""

from __future__ import annotations

from typing import Any

import pytest

from eureka_agent.search.attempt_training import rung_env_steps
from eureka_agent.settings import SearchSettings

# 10 updates of 100 env steps, a checkpoint after each
SETTINGS = SearchSettings(env="cart", env_steps=1000, num_envs=10, horizon=10, checkpoints=10)


@pytest.mark.parametrize(
    ("settings", "env_steps"),
    [
        ({"rungs": (0.3, 0.5)}, (300, 500)),
        ({"rungs": (0.5, 0.3)}, (300, 500)),
        ({"rungs": (0.25,)}, (300,)),
        ({"rungs": (0.5, 0.45)}, (500,)),
        ({"rungs": (0.95,)}, ()),
        ({"rungs": ()}, ()),
        ({"rungs": (0.3, 0.5), "checkpoints": 1}, ()),
        # checkpoints after 4, 7 and 10 updates
        ({"rungs": (0.4, 0.5), "checkpoints": 3}, (400, 700)),
        # of three updates 0.7 is after the second
        ({"rungs": (0.7,), "env_steps": 300}, ()),
    ],
)
def test_a_rung_is_the_next_checkpoint(
    settings: dict[str, Any], env_steps: tuple[int, ...]
) -> None:
    assert rung_env_steps(SETTINGS.model_copy(update=settings)) == env_steps
