"""The plain Gymnasium robots that benchmarks compare with equal the built-in ones: same start,
actions, observation, reward and end."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from _plain_environments import PLAIN
from _recorded_batch import batch_of

from eureka_agent.simulation.loading import load_environment
from eureka_agent.simulation.mujoco_task import MujocoTask
from eureka_agent.training.reward import RewardFunction


@pytest.mark.parametrize("robot", ["hopper", "ant"])
def test_plain_robots_are_the_built_in_ones(robot: str) -> None:
    plain = PLAIN[robot]()
    observation, _ = plain.reset(seed=1)
    loaded = load_environment(robot)
    _, task = loaded.task(None)
    ours = loaded.make(task, 1)
    assert isinstance(ours, MujocoTask)
    ours.reset()
    source = loaded.reward_source(task, "human")
    assert source is not None
    reward = RewardFunction.from_source(source, ours.all_variables(), allow_private=True)

    def start_alike() -> None:
        ids = torch.tensor([0])
        ours.reset_rows(ids)
        ours.qpos[0] = torch.from_numpy(plain.data.qpos)
        ours.qvel[0] = torch.from_numpy(plain.data.qvel)
        batch_of(ours).forward(ids.numpy())

    start_alike()
    generator = np.random.default_rng(2)
    ends = 0
    for step in range(1, 301):
        if step % 100 == 0 and robot == "ant":  # random actions alone never tip it over
            plain.reset()
            plain.data.qpos[2:7] = (
                (2.0, 0.1, 1.0, 0.0, 0.0) if step == 100 else (0.31, 1.0, 0.0, 0.0, 0.0)
            )
            start_alike()
        action = generator.uniform(-1.0, 1.0, plain.model.nu).astype(np.float32)
        observation, paid, terminated, _, _ = plain.step(action)
        transition = ours.advance(torch.from_numpy(action).unsqueeze(0))
        total, _ = reward({name: transition.variables[name] for name in reward.arguments})
        assert terminated == bool(transition.terminated)
        np.testing.assert_allclose(observation, transition.observations[0].numpy(), atol=1e-4)
        assert paid == pytest.approx(float(total), abs=1e-4)
        if terminated:
            ends += 1
            plain.reset()
            start_alike()
    assert ends > 0
