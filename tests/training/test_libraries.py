"""PPO of other libraries on our environments: what they are given, and the policies that come
back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from eureka_agent.errors import EurekaError
from eureka_agent.settings import TrainingSettings
from eureka_agent.simulation.loading import load_environment
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.training.distributions import distribution_of
from eureka_agent.training.libraries import acting_by_its_mean, train_with, version_of
from eureka_agent.training.libraries.rewarded import RewardedEnvironment
from eureka_agent.training.policy import Policy

ENVS = 4
SETTINGS = TrainingSettings(env_steps=600, num_envs=ENVS, hidden_sizes=(8, 8), discount=0.9)


def cartpole() -> VecTask:
    loaded = load_environment("cartpole")
    return loaded.make(loaded.task("balance")[1], ENVS, seed=3)


def upright(values: Mapping[str, Tensor]) -> Tensor:
    return values["pole_angle"].cos() - values["previous_pole_angle"].cos()


def rewarded(environment: VecTask) -> RewardedEnvironment:
    return RewardedEnvironment(environment, ("pole_angle", "previous_pole_angle"), upright)


def test_a_step_is_rewarded_for_what_it_reached_and_from_where() -> None:
    ours, alone = rewarded(cartpole()), cartpole()
    alone.reset()  # as ours were, before their first step
    push = torch.ones(ENVS, 1)
    before = alone.read_variables()["pole_angle"].clone()
    fallen = 0
    for _ in range(60):
        step, transition = ours.step(push), alone.advance(push)
        reached = transition.variables["pole_angle"].clone()
        assert torch.equal(step.reward, reached.cos() - before.cos())
        assert torch.equal(step.reached, transition.observations)
        assert torch.equal(step.ended, alone.reset_buf)
        fallen += int(alone.reset_buf.sum())
        assert torch.equal(step.observations, alone.reset_done())
        # after a fall the next step comes from the new start
        before = alone.read_variables()["pole_angle"].clone()
    assert fallen >= ENVS


def policy_of(tensors: Mapping[str, Tensor]) -> Policy:
    played = acting_by_its_mean(dict(tensors))
    return Policy(played, SETTINGS.activation, {}, distribution_of(cartpole()))


def test_stable_baselines_policy_acts_here_as_it_does_there() -> None:
    from stable_baselines3.common.vec_env import VecNormalize

    from eureka_agent.training.libraries import stable_baselines

    environment = VecNormalize(stable_baselines.RewardedVecEnv(rewarded(cartpole())))
    model = stable_baselines.made(environment, SETTINGS, seed=1, n_steps=64)
    model.learn(SETTINGS.env_steps)
    observations = torch.randn(50, 5)
    theirs, _ = model.predict(environment.normalize_obs(observations.numpy()), deterministic=True)
    ours = policy_of(stable_baselines.policy_of(model, environment)).act(observations)
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-4, atol=1e-5)
    assert np.abs(theirs).max() > 0.01


def test_rsl_policy_acts_here_as_it_does_there() -> None:
    from tensordict import TensorDict

    from eureka_agent.training.libraries import rsl

    runner = rsl.made(rewarded(cartpole()), SETTINGS, seed=1)
    rsl.learn(runner, 3)
    tensors = rsl.policy_of(runner)
    # within ten deviations, where ours clip
    observations = torch.randn(50, 5) * tensors["observation_deviation"]
    observations += tensors["observation_mean"]
    act: Any = runner.get_inference_policy()
    with torch.inference_mode():
        theirs = act(TensorDict({"policy": observations}, batch_size=[50]))
    ours = policy_of(tensors).act(observations)
    torch.testing.assert_close(ours, theirs.clamp(-1.0, 1.0), rtol=1e-4, atol=1e-5)
    assert theirs.abs().max() > 0.01


def test_rsl_has_its_own_settings_but_for_those_that_are_named() -> None:
    import inspect

    from rsl_rl.algorithms import PPO

    from eureka_agent.training.libraries import rsl

    others = {"entropy_coefficient": 0.03, "gae_lambda": 0.8, "clip": 0.1, "desired_kl": 0.0}
    others |= {"learning_rate": 5e-4, "max_gradient_norm": 0.3, "epochs": 9, "minibatches": 2}
    learner = rsl.made(rewarded(cartpole()), SETTINGS.model_copy(update=others), seed=1).alg
    for name, argument in inspect.signature(PPO).parameters.items():
        if isinstance(argument.default, (bool, int, float)) and hasattr(learner, name):
            expected = SETTINGS.discount if name == "gamma" else argument.default
            assert getattr(learner, name) == expected, name
    assert learner.schedule == "adaptive"


@pytest.mark.parametrize("part", ["actor", "critic"])
def test_rsl_networks_are_its_own_but_for_what_is_named(part: str) -> None:
    import inspect

    from rsl_rl.models import MLPModel
    from rsl_rl.modules.distribution import GaussianDistribution

    from eureka_agent.training.libraries import rsl

    given = rsl.configuration(SETTINGS.model_copy(update={"initial_action_std": 0.3}))[part]
    noise = given.pop("distribution_cfg", {"class_name": "GaussianDistribution"})
    changed = set()
    for entries, made in ((given, MLPModel), (noise, GaussianDistribution)):
        assert entries.pop("class_name") == made.__name__
        own = inspect.signature(made).parameters
        changed |= {name for name, value in entries.items() if value != own[name].default}
    expected = {"hidden_dims", "activation", "obs_normalization"}
    assert changed == expected | ({"init_std", "std_type"} if part == "actor" else set())


class Signs(VecTask):
    """Guess the sign that is shown."""

    num_observations = 1
    num_actions = 1
    action_choices = (2,)
    max_episode_length = 8
    control_dt = 1.0

    def __init__(self, num_envs: int, device: Any = "cpu", seed: int = 0) -> None:
        super().__init__(num_envs, device, seed)
        self.sign = torch.ones(num_envs)
        self.guess = torch.zeros(num_envs)

    def pre_physics_step(self, actions: Tensor) -> None:
        self.guess = actions[:, 0]

    def compute_observations(self) -> None:
        self.obs_buf[:, 0] = self.sign

    def compute_variables(self) -> dict[str, Tensor]:
        return {"sign": self.sign, "guess": self.guess}

    def reset_idx(self, env_ids: Tensor) -> None:
        drawn = self.random.uniform(env_ids, 1, -1.0, 1.0).squeeze(-1)
        self.sign[env_ids] = drawn.sign()


def right(values: Mapping[str, Tensor]) -> Tensor:
    return ((values["sign"] > 0) == (values["guess"] > 0.5)).float()


def test_stable_baselines_learns_a_choice() -> None:
    settings = SETTINGS.model_copy(update={"env_steps": 6000, "num_envs": 16})
    environment = Signs(16, seed=2)
    tensors = train_with(
        "sb3", RewardedEnvironment(environment, ("sign", "guess"), right), settings, 5
    )
    policy = Policy(tensors, settings.activation, {}, distribution_of(environment))
    assert policy.act(torch.tensor([[1.0], [-1.0]])).flatten().tolist() == [1.0, 0.0]
    assert version_of("sb3").startswith("stable-baselines3 2.")


def test_rsl_has_no_choices() -> None:
    with pytest.raises(EurekaError, match="no discrete actions"):
        train_with("rsl-rl", RewardedEnvironment(Signs(4), ("sign", "guess"), right), SETTINGS, 0)
