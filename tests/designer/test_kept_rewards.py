"""Observations beside a reward that is kept."""

from __future__ import annotations

import pytest

from eureka_agent.designer.observations import kept_reward, with_observation
from eureka_agent.designer.source_tools import difference
from eureka_agent.errors import SettingsError
from eureka_agent.records import TaskDescription
from eureka_agent.rewards import baseline

KEPT = """import torch

SCALE = 2.0


def near(x):
    return torch.exp(-x)


def compute_reward(drawer_opening):
    return near(SCALE * drawer_opening), {}
"""


@pytest.mark.parametrize(
    ("source", "again"),
    [
        ("import torch\n\ndef design_observation(tilt):\n    return tilt\n", ""),
        ("SCALE = 1.0\n\ndef design_observation(tilt):\n    return SCALE * tilt\n", "SCALE"),
        ("def near(x):\n    return x\n\ndef design_observation(a):\n    return near(a)\n", "near"),
        (
            "def compute_reward(a):\n    return a, {}\n\ndef design_observation(a):\n    return a\n",
            "compute_reward",
        ),
    ],
)
def test_an_observation_defines_no_name_of_the_reward(source: str, again: str) -> None:
    problem = with_observation(KEPT, source)[1]
    assert f"defines {again!r} anew" in problem if again else not problem


def test_the_reward_comes_first_and_its_lines_stay() -> None:
    source = (
        "from __future__ import annotations\nimport torch\n\ndef design_observation(a):\n    pass\n"
    )
    joined, _ = with_observation(KEPT, source)
    assert joined.startswith(KEPT)
    assert "__future__" not in joined
    compile(joined, "joined", "exec")


def test_the_human_reward_is_kept_and_without_a_public_one_nothing_is(arm: TaskDescription) -> None:
    private = arm.variables[0].model_copy(update={"name": "inner", "private": True})
    own = {"variables": (*arm.variables, private), "sparse_reward": baseline(KEPT)}
    hidden = baseline("def compute_reward(inner):\n    return inner, {}\n")
    human = baseline(KEPT.replace("SCALE = 2.0", "SCALE = 3.0"))
    both = arm.model_copy(update={**own, "human_reward": human})
    assert kept_reward(both) == human.source
    assert kept_reward(arm.model_copy(update={**own, "human_reward": hidden})) == KEPT
    with pytest.raises(SettingsError, match="reads public variables alone"):
        kept_reward(arm.model_copy(update={**own, "human_reward": None, "sparse_reward": hidden}))


def test_a_difference_names_what_is_seen_and_no_more() -> None:
    before = f"{KEPT}\n\ndef design_observation(tilt, speed):\n    return tilt\n"
    after = f"{KEPT}\n\ndef design_observation(tilt, drawer_opening):\n    return tilt\n"
    assert difference(before, after) == "+ observes drawer_opening; - observes speed"
    assert difference(KEPT, before) == "+ observes tilt; + observes speed"
