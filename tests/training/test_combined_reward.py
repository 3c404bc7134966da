"""--combine sign: the sign of the sparse reward, and a tenth of the designed one's."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import pytest
import torch

from eureka_agent.errors import EnvironmentFaultError, EnvironmentLoadError
from eureka_agent.simulation.loading import LoadedEnvironment, load_environment
from eureka_agent.task import Variable
from eureka_agent.training.member_rewards import SignCombination, sparse_reward
from eureka_agent.training.reward import RewardFunction

VARIABLES = (
    Variable("height", (), "m", "world", "height of the thing"),
    Variable("goal", (), "1", "-", "1 at the goal, for the fitness", private=True),
)


def reward(source: str) -> RewardFunction:
    return RewardFunction.from_source(source, VARIABLES, allow_private=True)


def test_signs_are_added_up_and_the_components_stay() -> None:
    dense = reward("def compute_reward(height):\n    return 7 * height, {'high': 7 * height}\n")
    sparse = reward("def compute_reward(goal):\n    return 3 * goal, {'goal': 3 * goal}\n")
    combined = SignCombination(dense, sparse, "sparse.py")
    assert combined.arguments == ("height", "goal")
    values = {
        "height": torch.tensor([-2.0, 0.0, 5.0, 5.0, math.inf]),
        "goal": torch.tensor([0.0, 1.0, 1.0, -1.0, 0.0]),
    }
    total, components = combined.begin(values, 5.0)()
    assert total[:4].tolist() == pytest.approx([-0.1, 1.0, 1.1, -0.9])
    # what is not finite is found as without the sign
    assert total[4] == math.inf
    assert list(components) == ["high"]
    assert components["high"][:4].tolist() == [-14.0, 0.0, 35.0, 35.0]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("    return goal / 0.0 * 0.0, {}\n", "rewards/sparse.py: the reward is nan"),
        ("    return 1.0 / goal, {}\n", "rewards/sparse.py: the reward is inf"),
        ("    return goal.nothing, {}\n", "rewards/sparse.py, line 2: AttributeError"),
        ("    while True: pass\n", "rewards/sparse.py: one call of the reward took longer"),
    ],
)
def test_a_fault_of_the_sparse_reward_is_not_the_designed_ones(body: str, message: str) -> None:
    dense = reward("def compute_reward(height):\n    return height, {}\n")
    sparse = reward(f"def compute_reward(goal):\n{body}")
    values = {"height": torch.ones(2), "goal": torch.tensor([0.0, 1.0])}
    with pytest.raises(EnvironmentFaultError, match=message):
        SignCombination(dense, sparse, "rewards/sparse.py").begin(values, 0.5)()


def test_a_sparse_reward_that_does_not_load_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "puck"
    shutil.copytree(Path(__file__).parents[2] / "envs/_templates/torch", folder)
    (folder / "rewards/sparse.py").write_text("def compute_reward(\n")
    loaded = load_environment(str(folder))
    _, task = loaded.task(None)
    with pytest.raises(EnvironmentLoadError, match=r"puck/rewards/sparse\.py, line 1: not valid"):
        sparse_reward(loaded, task)


def test_without_a_sparse_reward_there_is_nothing_to_combine() -> None:
    loaded = load_environment("cartpole")
    _, task = loaded.task("balance")
    assert sparse_reward(loaded, task).arguments == ("pole_upright",)

    class Without(LoadedEnvironment):
        def reward_source(self, task: object, kind: object) -> None:  # type: ignore[override]
            return None

    bare = Without(**vars(loaded))
    with pytest.raises(EnvironmentLoadError, match="no sparse reward"):
        sparse_reward(bare, task)
