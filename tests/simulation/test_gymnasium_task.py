"""The Gymnasium adapter against Gymnasium's environments stepped by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

from eureka_agent.errors import EnvironmentLoadError
from eureka_agent.simulation.loading import describe, load_environment
from eureka_agent.training.conformance import check_environment

WriteFolder = Callable[..., Path]


class Script(gymnasium.Env):
    """Scripted steps: what each step gives is written in the action, to show how it is passed
    on."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = gymnasium.spaces.Box(
        np.array([-3.0, -np.inf]), np.array([1.0, np.inf]), (2,), np.float64
    )

    def reset(
        self, *, seed: int | None = None, options: Any = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.start = self.np_random.random()
        odd = {"reward_bonus": 1.0, "name": "x", "two words": 1, "class": 1, 7: 1}
        return np.array([self.start, 0.0], np.float32), {"lives": 3, **odd}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        assert action.dtype == np.float64
        second = float(action[1])
        observation = np.array([np.nan if second == 0.75 else action[0], second], np.float32)
        return (
            observation,
            2.0,
            second == 1.0,
            second == -1.0,
            {"lives": 2, "speed": observation[0] * 0 + np.float32(0.5), "vector": np.ones(2)},
        )


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    gymnasium.register("Script-v0", entry_point=Script, max_episode_steps=5)
    yield
    del gymnasium.registry["Script-v0"]


def make(reference: str, num_envs: int, seed: int = 0) -> Any:
    loaded = load_environment(reference)
    return loaded.make(loaded.task(None)[1], num_envs, seed=seed)


def test_a_rollout_is_that_of_gymnasium() -> None:
    environment = make("gymnasium:Hopper-v5", 3)
    environment.seed_rows(torch.arange(3), torch.full((3,), 5))
    environment.reset()
    # the seed of row 1 is its stream's first number, 24 bits
    twin = make("gymnasium:Hopper-v5", 3)
    twin.seed_rows(torch.arange(3), torch.full((3,), 5))
    seed = int(twin.random.uniform(torch.tensor([1]), 1)[0, 0] * 2**24)
    by_hand = gymnasium.make("Hopper-v5")
    observation, _ = by_hand.reset(seed=seed)
    assert environment.obs_buf[1].tolist() == pytest.approx(observation.tolist(), abs=1e-6)
    generator = torch.Generator().manual_seed(0)
    for _ in range(60):
        actions = torch.randn(3, 3, generator=generator)
        transition = environment.advance(actions)
        observation, reward, terminated, truncated, info = by_hand.step(
            actions[1].clamp(-1, 1).numpy()
        )
        assert transition.observations[1].tolist() == pytest.approx(observation.tolist(), abs=1e-5)
        assert float(transition.variables["native_reward"][1]) == pytest.approx(reward, abs=1e-5)
        assert float(transition.variables["x_velocity"][1]) == pytest.approx(
            info["x_velocity"], abs=1e-5
        )
        assert (bool(transition.terminated[1]), bool(transition.truncated[1])) == (
            terminated,
            truncated,
        )
        if terminated:
            break
        environment.reset_done()
    assert terminated


def test_sizes_and_task_come_from_the_registration() -> None:
    description = describe(load_environment("gymnasium:Hopper-v5"))
    assert (description.num_observations, description.num_actions) == (11, 3)
    assert (description.max_episode_length, description.control_dt) == (1000, 0.008)
    assert description.success_fitness == 3800.0
    assert "hopper" in description.sentence
    assert description.human_reward is None
    assert description.sparse_reward is not None
    assert "native_reward" in description.sparse_reward.source
    assert "hopper" in description.doc.lower()
    assert "Actions, in this order: hip, knee, ankle. Motor torque" in description.details
    private = [variable.name for variable in description.variables if variable.private]
    assert private == ["native_reward"]
    assert not any("reward" in variable.name for variable in description.public_variables())


def test_info_gives_the_numbers_that_can_be_arguments() -> None:
    found = load_environment("gymnasium:Script-v0").environment_class.variables
    names = [variable.name for variable in found]
    assert names == ["observation", "lives", "speed", "native_reward"]
    environment = make("gymnasium:Script-v0", 2)
    values = environment.read_variables()
    # `speed` is not in the info of a reset
    assert (values["lives"].tolist(), values["speed"].tolist()) == ([3.0, 3.0], [0.0, 0.0])
    values = environment.advance(torch.zeros(2, 2)).variables
    assert (values["lives"].tolist(), values["speed"].tolist()) == ([2.0, 2.0], [0.5, 0.5])
    assert values["native_reward"].tolist() == [2.0, 2.0]


def test_box_actions_are_rescaled_where_they_have_bounds() -> None:
    environment = make("gymnasium:Script-v0", 3)
    transition = environment.advance(torch.tensor([[-1.0, 0.5], [0.0, 0.25], [1.0, -0.5]]))
    # the first entry goes from -3 to 1, the second has no bounds
    assert transition.observations.tolist() == [[-3.0, 0.5], [-1.0, 0.25], [1.0, -0.5]]


def test_terminated_truncated_and_the_time_limit_are_told_apart() -> None:
    environment = make("gymnasium:Script-v0", 3)
    transition = environment.advance(torch.tensor([[0.0, 1.0], [0.0, -1.0], [0.0, 0.0]]))
    assert transition.terminated.tolist() == [True, False, False]
    assert transition.truncated.tolist() == [False, True, False]
    environment.reset_done()
    for _ in range(4):
        transition = environment.advance(torch.zeros(3, 2))
        environment.reset_buf[:2] = False
    # row 2 has made 5 steps, the registered limit; the others 4 since their reset
    assert transition.truncated.tolist() == [False, False, True]


def test_discrete_actions_are_choices() -> None:
    environment = make("gymnasium:CartPole-v1", 2)
    assert (environment.num_actions, environment.action_choices) == (1, (2,))
    before = environment.obs_buf[:, 1].clone()
    transition = environment.advance(torch.tensor([[1.0], [0.0]]))
    # choice 0 pushes left, 1 right
    assert (transition.observations[:, 1] > before).tolist() == [True, False]
    assert transition.variables["actions"].tolist() == [1.0, 0.0]
    (actions,) = (each for each in environment.all_variables() if each.name == "actions")
    assert (actions.shape, actions.range) == ((), (0.0, 1.0))
    assert "0 pushes the cart to the left, 1 to the right" in actions.doc


def test_composite_observations_are_flattened() -> None:
    environment = make("gymnasium:Blackjack-v1", 4)
    # one-hot: 32 sums, 11 dealer's cards, 2 for a usable ace
    assert environment.num_observations == 45
    assert environment.obs_buf.sum(dim=1).tolist() == [3.0] * 4
    (whole,) = [each for each in environment.variables if each.name == "observation"]
    assert "of Tuple(Discrete(32), Discrete(11), Discrete(2))" in whole.doc


FOLDER = '''
from eureka_agent.simulation.gymnasium_task import GymnasiumTask
from eureka_agent.task import Variable


class NamedPendulum(GymnasiumTask):
    """A pendulum with names."""

    gymnasium_id = "Pendulum-v1"
    max_episode_length = 100
    named_observations = (
        (Variable("tip", (2,), "m", "world", "x and y of the tip", (-1.0, 1.0)), slice(0, 2)),
        (Variable("spin", (), "rad/s", "joint", "angular velocity", (-8.0, 8.0)), 2),
    )
'''


def test_a_folder_names_parts_of_the_observation(write_folder: WriteFolder) -> None:
    task = (
        "from eureka_agent.task import Task\n"
        "def fitness(spin):\n    return -spin.abs()\n"
        "task = Task(sentence='stand still', fitness=fitness, fitness_doc='spin')\n"
    )
    reward = "def compute_reward(spin):\n    return -spin.abs(), {'spin': -spin.abs()}\n"
    files = {
        "env.py": FOLDER,
        "tasks/go.py": task,
        "rewards/human.py": reward,
        "rewards/sparse.py": reward,
    }
    folder = write_folder(files=files)
    assert all(result.passed for result in check_environment(str(folder), rollout_s=0.2))
    loaded = load_environment(str(folder))
    sizes = loaded.environment_class.max_episode_length, loaded.environment_class.control_dt
    assert sizes == (100, 0.05)
    assert describe(loaded).doc == "A pendulum with names."
    values = loaded.make(loaded.task(None)[1], 2).read_variables()
    assert torch.equal(values["tip"], values["observation"][:, :2])
    assert torch.equal(values["spin"], values["observation"][:, 2])
    channels = [(each.name, each.unit) for each in describe(loaded).observation_channels]
    assert channels == [("tip[0]", "m"), ("tip[1]", "m"), ("spin", "rad/s")]


def test_what_cannot_be_adapted_is_told() -> None:
    # `gymnasium.make` takes a name without its version, whose time limit and threshold it does not
    # tell
    for name, close in (("Hoper-v5", "Hopper-v5"), ("CartPole", "CartPole-v1")):
        with pytest.raises(
            EnvironmentLoadError,
            match=(
                rf"Gymnasium has no environment '{name}'\n  hint: did you mean 'gymnasium:{close}'"
            ),
        ):
            load_environment(f"gymnasium:{name}")


# ── what is told of endings and masses ────────────────────────────────────────────────────────────
