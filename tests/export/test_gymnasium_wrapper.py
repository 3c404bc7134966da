"""The exported Gymnasium wrapper against environments stepped by hand, and against the trainer's
own environments."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from export_runs import ExportTexts, LoadModule, described
from gymnasium.utils.env_checker import check_env

from eureka_agent.records import TaskDescription, VariableSpec
from eureka_agent.simulation.loading import load_environment
from eureka_agent.training.reward import RewardFunction

PENDULUM = """
def compute_reward(observation, previous_observation, actions, previous_actions):
    upright = observation[:, 0]
    gain = 2.0 * (observation[:, 2] - previous_observation[:, 2])
    effort = -0.1 * actions[:, 0].square()
    change = -(actions[:, 0] - previous_actions[:, 0]).abs()
    return upright + gain + effort + change, {"upright": upright, "gain": gain, "effort": effort, "change": change}
"""


OBSERVED = """
def design_observation(observation, actions):
    return torch.cat([observation[:, :1] + 1.0, 3.0 * actions, observation[:, 2:]], dim=-1)
"""


def test_an_observation_of_the_reward_s_file_is_that_by_hand(
    export_texts: ExportTexts, load: LoadModule
) -> None:
    texts = export_texts(PENDULUM + OBSERVED, described("gymnasium:Pendulum-v1"))
    wrapped = load(texts, "gymnasium_wrapper").ObservationWrapper(gymnasium.make("Pendulum-v1"))
    twin = gymnasium.make("Pendulum-v1")
    first, _ = wrapped.reset(seed=4)
    own, _ = twin.reset(seed=4)
    assert first.tolist() == pytest.approx([own[0] + 1.0, 0.0, own[2]])
    torque = np.array([0.5], np.float32)  # of 2 N m
    seen, own = wrapped.step(torque)[0], twin.step(torque)[0]
    assert seen.tolist() == pytest.approx([own[0] + 1.0, 0.75, own[2]])
    assert seen in wrapped.observation_space
    assert "ObservationWrapper(gymnasium.make(ENVIRONMENT))" in (texts / "example.py").read_text()


def test_pendulum_is_rewarded_as_by_hand(export_texts: ExportTexts, load: LoadModule) -> None:
    module = load(export_texts(PENDULUM, described("gymnasium:Pendulum-v1")), "gymnasium_wrapper")
    wrapped, twin = (
        module.RewardWrapper(gymnasium.make("Pendulum-v1")),
        gymnasium.make("Pendulum-v1"),
    )
    generator = np.random.default_rng(0)
    for seed in (4, 5):  # the second episode must know nothing of the first
        observation, _ = wrapped.reset(seed=seed)
        previous, _ = twin.reset(seed=seed)
        assert observation.tolist() == previous.tolist()
        previous_action = 0.0
        for _ in range(5):
            torque = generator.uniform(-2.0, 2.0, 1).astype(np.float32)
            _, reward, terminated, truncated, info = wrapped.step(torque)
            current, native, *_ = twin.step(torque)
            action = torque[0] / 2.0  # the pendulum takes 2 N m at most
            terms = {
                "upright": current[0],
                "gain": 2.0 * (current[2] - previous[2]),
                "effort": -0.1 * action**2,
                "change": -abs(action - previous_action),
            }
            assert info["reward_components"] == pytest.approx(terms, abs=1e-5)
            assert type(reward) is float
            assert reward == pytest.approx(sum(terms.values()), abs=1e-5)
            assert info["native_reward"] == pytest.approx(native)
            assert (terminated, truncated) == (False, False)
            previous, previous_action = current, action


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("name", ["Pendulum-v1", "CartPole-v1", "Taxi-v4"])
def test_the_vector_form_pays_what_single_environments_are_paid(
    export_texts: ExportTexts, load: LoadModule, name: str, mode: str
) -> None:
    source = PENDULUM
    if name != "Pendulum-v1":
        source = """
def compute_reward(observation, previous_observation, actions, previous_actions, terminated):
    gain = (observation[:, -3:] - previous_observation[:, -3:]).sum(dim=-1)
    return gain + actions - 0.5 * previous_actions - 10.0 * terminated, {"gain": gain, "one": 1.0}
"""
    module = load(export_texts(source, described(f"gymnasium:{name}")), "gymnasium_wrapper")
    autoreset = gymnasium.vector.AutoresetMode(mode)
    vector = module.RewardVectorWrapper(
        gymnasium.make_vec(
            name,
            3,
            vectorization_mode="sync",
            vector_kwargs={"autoreset_mode": autoreset},
            max_episode_steps=11,
        )
    )
    singles = [module.RewardWrapper(gymnasium.make(name, max_episode_steps=11)) for _ in range(3)]
    vector.reset(seed=[5, 6, 7])
    for row, each in enumerate(singles):
        each.reset(seed=5 + row)
    vector.action_space.seed(0)
    ended, ends = [False] * 3, 0
    for _ in range(40):
        actions = vector.action_space.sample()
        _, rewards, _, _, infos = vector.step(actions)
        for row, each in enumerate(singles):
            if ended[row]:
                each.reset()
                ended[row] = False
                if mode == "NextStep":
                    assert rewards[row] == infos["reward_components"]["gain"][row] == 0.0
                    continue
            _, reward, terminated, truncated, info = each.step(actions[row])
            assert rewards[row] == pytest.approx(reward, abs=1e-5)
            assert infos["native_reward"][row] == pytest.approx(info["native_reward"])
            terms = {key: value[row] for key, value in infos["reward_components"].items()}
            assert terms == pytest.approx(info["reward_components"], abs=1e-5)
            ended[row] = terminated or truncated
            ends += ended[row]
    assert ends >= 6


def test_the_vector_form_takes_variables_and_a_mask_of_resets(
    export_texts: ExportTexts, load: LoadModule, description: TaskDescription
) -> None:
    """Without resets of its own, a row whose reset is asked for begins anew alone."""
    module = load(export_texts(OWN, angle_description(description)), "gymnasium_wrapper")

    def variables(env: Any, observations: Any, infos: Any, actions: Any) -> dict[str, Any]:
        return {"angle": observations[:, 0], "tip": 0.0 * observations[:, :2]}

    disabled = {"autoreset_mode": gymnasium.vector.AutoresetMode.DISABLED}
    bare = gymnasium.make_vec("Pendulum-v1", 2, vectorization_mode="sync", vector_kwargs=disabled)
    vector = module.RewardVectorWrapper(bare, variables)
    before, _ = vector.reset(seed=1)
    still = np.zeros((2, 1), np.float32)
    observations, rewards, *_ = vector.step(still)
    assert rewards == pytest.approx(observations[:, 0] - before[:, 0], abs=1e-6)
    kept = observations[0, 0]
    begun, _ = vector.reset(seed=9, options={"reset_mask": np.array([False, True])})
    observations, rewards, *_ = vector.step(still)
    expected = observations[:, 0] - np.array([kept, begun[1, 0]])
    assert rewards == pytest.approx(expected, abs=1e-6)


class Goals(gymnasium.Env):
    """Observes a Dict; the entry named like a variable of every environment has another name as a
    variable."""

    observation_space = gymnasium.spaces.Dict(
        goal=gymnasium.spaces.Dict(position=gymnasium.spaces.Box(-1.0, 1.0, (2,))),
        phase=gymnasium.spaces.Discrete(3),
        actions=gymnasium.spaces.Box(-1.0, 1.0, (1,)),
    )
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))

    def reset(
        self, *, seed: int | None = None, options: Any = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        self.phase = 0
        return self.look(), {}

    def look(self) -> dict[str, Any]:
        position = np.array([0.25, -0.5], np.float32)
        return {
            "goal": {"position": position},
            "phase": self.phase,
            "actions": np.array([0.125], np.float32),
        }

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        self.phase += 1
        return self.look(), 1.0, self.phase == 2, False, {}


def test_entries_of_a_dict_are_found_by_themselves(
    export_texts: ExportTexts, load: LoadModule
) -> None:
    gymnasium.register("Goals-v0", entry_point=Goals)
    try:
        source = """
def compute_reward(goal_position, phase, observed_actions, actions):
    goal = goal_position.sum(dim=-1)
    return goal + 10.0 * phase + observed_actions[:, 0] + actions[:, 0], {"goal": goal}
"""
        module = load(export_texts(source, described("gymnasium:Goals-v0")), "gymnasium_wrapper")
        environment = module.RewardWrapper(gymnasium.make("Goals-v0"))
        environment.reset()
        # 0.25 - 0.5, the phase reached, the entry, the action
        observation, _ = environment.reset()
        found = module.policy_observation(environment.observation_space, observation)
        flat = gymnasium.spaces.flatten(environment.observation_space, observation)
        assert found.tolist() == flat.tolist()
        # one without numbers is left out
        entries = [*environment.observation_space.items(), ("note", gymnasium.spaces.Text(4))]
        space = gymnasium.spaces.Dict(entries)
        assert module.policy_observation(space, {**observation, "note": "so"}).tolist() == (
            flat.tolist()
        )
        expected = [-0.25 + 10.0 * phase + 0.125 + 0.5 for phase in (1, 2)]
        assert [environment.step(np.array([0.5], np.float32))[1] for _ in range(2)] == expected
    finally:
        del gymnasium.registry["Goals-v0"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Hopper-v5", "CartPole-v1"])
def test_rewards_are_those_of_training(
    export_texts: ExportTexts, load: LoadModule, name: str
) -> None:
    loaded = load_environment(f"gymnasium:{name}")
    speed = "x_velocity - 0.5 * previous_x_velocity" if name == "Hopper-v5" else "observation[:, 2]"
    product = "actions * previous_actions"
    product = product if name == "CartPole-v1" else f"({product}).sum(dim=-1)"
    arguments = "x_velocity, previous_x_velocity" if name == "Hopper-v5" else "observation"
    source = f"""
def compute_reward({arguments}, actions, previous_actions):
    total = {speed} - {product}
    return total, {{"total": total}}
"""
    reward = RewardFunction.from_source(source, loaded.environment_class.all_variables())
    module = load(export_texts(source, described(f"gymnasium:{name}")), "gymnasium_wrapper")
    wrapped = module.RewardWrapper(gymnasium.make(name))
    training = loaded.make(loaded.task(None)[1], 1, seed=0)
    rows = torch.tensor([0])
    training.seed_rows(rows, torch.tensor([7]))
    seed = int(
        training.random.uniform(rows, 1)[0, 0] * 2**24
    )  # what a reset of this stream seeds Gymnasium with
    training.seed_rows(rows, torch.tensor([7]))
    training.reset()
    wrapped.reset(seed=seed)
    before = {key: value.clone() for key, value in training.read_variables().items()}
    generator = torch.Generator().manual_seed(0)
    for _ in range(30):
        drawn = torch.rand(1, training.num_actions, generator=generator)
        actions = training.actions_from(drawn)
        transition = training.advance(actions)
        values = {
            **transition.variables,
            **{f"previous_{key}": value for key, value in before.items()},
        }
        expected, _ = reward(values)
        taken = actions[0, 0] if training.action_choices else actions[0]
        action = module.environment_action(wrapped.action_space, taken.numpy())
        _, total, terminated, _, _ = wrapped.step(action)
        assert total == pytest.approx(float(expected[0]), abs=1e-4)
        assert terminated == bool(transition.terminated[0])
        before = {key: value.clone() for key, value in transition.variables.items()}
        if terminated:
            break


def angle_description(description: TaskDescription) -> TaskDescription:
    """An environment that is not Gymnasium's, with the pendulum's angle and tip as variables."""
    angle = VariableSpec(
        name="angle", shape=(), unit="rad", frame="world", doc="of the pendulum | 0 is upright"
    )
    tip = VariableSpec(name="tip", shape=(2,), unit="m", frame="world", doc="position of the tip")
    actions, *_ = description.variables
    return description.model_copy(update={"variables": (actions, angle, tip)})


OWN = """
def compute_reward(angle, previous_angle, tip, actions):
    total = (angle - previous_angle) + tip.sum(dim=-1) + 10.0 * actions[:, 0]
    return total, {"total": total}
"""


def angle_variables(env: gymnasium.Env, observation: Any, info: Any, action: Any) -> dict[str, Any]:
    return {
        "angle": math.atan2(observation[1], observation[0]),
        "tip": observation[:2],
        "unread": "text",
    }


def test_a_function_of_the_users_gives_the_variables(
    export_texts: ExportTexts, load: LoadModule, description: TaskDescription
) -> None:
    folder = export_texts(OWN, angle_description(description))
    module = load(folder, "gymnasium_wrapper")
    environment = module.RewardWrapper(gymnasium.make("Pendulum-v1"), angle_variables)
    observation, _ = environment.reset(seed=0)
    before = math.atan2(observation[1], observation[0])
    for torque in (2.0, -1.0):
        observation, reward, *_ = environment.step(np.array([torque], np.float32))
        angle = math.atan2(observation[1], observation[0])
        assert reward == pytest.approx(
            angle - before + observation[0] + observation[1] + 10.0 * torque / 2.0, abs=1e-5
        )
        before = angle
    readme = (folder / "README.md").read_text()
    assert (
        "| `previous_angle` | (batch,) | rad | world | of the pendulum \\| 0 is upright |" in readme
    )
    assert '{"angle": …, "tip": …}' in readme


def test_wrong_variables_are_told(
    export_texts: ExportTexts, load: LoadModule, description: TaskDescription
) -> None:
    module = load(export_texts(OWN, angle_description(description)), "gymnasium_wrapper")

    def environment(**values: Any) -> gymnasium.Env:
        return module.RewardWrapper(gymnasium.make("Pendulum-v1"), lambda *_: values)

    with pytest.raises(KeyError, match="the reward reads 'angle'"):
        environment(tip=np.zeros(2)).reset(seed=0)
    flat = environment(angle=0.0, tip=0.0)
    flat.reset(seed=0)
    with pytest.raises(ValueError, match=r"'tip' has the shape \(\), expected \(2,\)"):
        flat.step(np.zeros(1, np.float32))


def test_actions_go_to_the_environment_and_back(
    export_texts: ExportTexts, load: LoadModule
) -> None:
    module = load(export_texts(PENDULUM, described("gymnasium:Pendulum-v1")), "gymnasium_wrapper")
    # the second entry has no upper bound, the third is fixed
    low, high = np.array([-3.0, 0.0, 0.5]), np.array([1.0, np.inf, 0.5])
    box = gymnasium.spaces.Box(low, high, (3,), np.float64)
    module.SHAPES["actions"] = (3,)
    assert module.environment_action(box, [0.5, -0.75, 0.3]).tolist() == [0.0, 0.25, 0.5]
    assert module.policy_action(box, np.array([0.0, 0.25, 0.5])).tolist() == [0.5, -0.75, 0.0]
    one_ulp = gymnasium.spaces.Box(np.float32([-0.3]), np.float32([1.1]))
    assert one_ulp.contains(module.environment_action(one_ulp, np.float32([-1.0])))


@pytest.mark.filterwarnings(
    "ignore:.*wrapper applied to it", "ignore:.*symmetric and normalized space"
)
def test_the_wrapper_passes_gymnasiums_own_checks(
    export_texts: ExportTexts, load: LoadModule
) -> None:
    module = load(export_texts(PENDULUM, described("gymnasium:Pendulum-v1")), "gymnasium_wrapper")
    check_env(module.RewardWrapper(gymnasium.make("Pendulum-v1")), skip_render_check=True)


def test_a_linter_finds_nothing_in_the_files(export_texts: ExportTexts) -> None:
    folder = export_texts(PENDULUM, described("gymnasium:Pendulum-v1"))
    rules = ["--isolated", "--select=E,F,W,I,B,UP", "--line-length=120"]
    command = [sys.executable, "-m", "ruff", "check", *rules, "."]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stdout
