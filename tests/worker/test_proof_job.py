"""Another library's PPO on our environments: what it is given, and the policies that come back."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from eureka_agent.settings import TrainingSettings
from eureka_agent.simulation.loading import load_environment
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.training.distributions import distribution_of
from eureka_agent.training.policy import Policy
from eureka_agent.worker import proof_job
from eureka_agent.worker.proof_job import RewardedEnvironment

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


def test_stable_baselines_policy_acts_here_as_it_does_there() -> None:
    from stable_baselines3.common.vec_env import VecNormalize

    environment = VecNormalize(proof_job.RewardedVecEnv(rewarded(cartpole())))
    model = proof_job.made(environment, SETTINGS, seed=1, n_steps=64)
    model.learn(SETTINGS.env_steps)
    observations = torch.randn(50, 5)
    theirs, _ = model.predict(environment.normalize_obs(observations.numpy()), deterministic=True)
    tensors = proof_job.policy_of(model, environment)
    policy = Policy(tensors, SETTINGS.activation, {}, distribution_of(cartpole()))
    ours = policy.act(observations)
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-4, atol=1e-5)
    assert np.abs(theirs).max() > 0.01
