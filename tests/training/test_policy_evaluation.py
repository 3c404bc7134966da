"""Saved policies act as trained ones; evaluation counts every row's first episode and nothing
else."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from policy_files import save_policy
from torch import Tensor
from training_environments import Countdown, PointMass

from eureka_agent.errors import RunFolderError
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import Task
from eureka_agent.training.distributions import clipped_gaussian_mean
from eureka_agent.training.evaluation import evaluate_policy, load_trajectories, trajectories_bytes
from eureka_agent.training.policy import Policy, load_policy


def count_itself(count: Tensor, previous_count: Tensor) -> Tensor:
    """1 a step; `previous_count` is one lower than `count`, also on an episode's first step."""
    return count * (count - previous_count)


COUNT_TASK = Task(sentence="count", fitness=count_itself, fitness_doc="sum of counts")


def policy_tensors(observations: int, actions: int, scale: float = 1.0) -> dict[str, Tensor]:
    return {
        "observation_mean": torch.full((observations,), 1.0),
        "observation_deviation": torch.full((observations,), 2.0),
        "policy.0.weight": scale * torch.ones(observations, 3),
        "policy.0.bias": torch.zeros(1, 3),
        "policy.1.weight": torch.ones(3, actions),
        "policy.1.bias": torch.full((1, actions), 0.25),
        "log_std": torch.full((actions,), -20.0),
    }


def test_a_policy_survives_its_file_and_acts_by_hand_computed_means(tmp_path: Path) -> None:
    path = tmp_path / "policy.safetensors"
    save_policy(
        path, policy_tensors(1, 2), {"activation": "tanh", "env": "countdown", "env_steps": "300"}
    )
    policy = load_policy(path)
    assert (policy.metadata["env_steps"], policy.metadata["layer_sizes"]) == ("300", "1,3,2")
    # (x − 1) / 2 through three tanh units, each weighed 1, plus 0.25; clipped to 1
    observations = torch.tensor([[1.0], [0.5], [9.0]])
    expected = [0.25, 3 * math.tanh(-0.25) + 0.25, 1.0]
    torch.testing.assert_close(
        policy.act(observations), torch.tensor([[value, value] for value in expected])
    )


def test_actions_are_the_mean_of_what_training_applied() -> None:
    mean, std = torch.tensor([0.0, 0.6, -3.0, 0.9]), torch.tensor([2.0, 0.7, 0.1, 1e-9])
    noise = torch.randn(400_000, 4, generator=torch.Generator().manual_seed(0))
    sampled = (mean + std * noise).clamp(-1.0, 1.0).mean(dim=0)
    torch.testing.assert_close(clipped_gaussian_mean(mean, std), sampled, rtol=0.0, atol=3e-3)


def test_a_file_that_is_no_policy_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "policy.safetensors"
    path.write_bytes(b"not a tensor in sight")
    with pytest.raises(RunFolderError, match=r"policy\.safetensors"):
        load_policy(path)
    with pytest.raises(RunFolderError, match="cannot read"):
        load_policy(tmp_path / "missing.safetensors")


def test_each_row_counts_for_its_first_episode_only() -> None:
    lengths = [2, 5, 99, 1]
    policy = Policy(policy_tensors(1, 1), "elu", {})
    evaluation, trajectories = evaluate_policy(
        Countdown(lengths), COUNT_TASK, policy, 4, record=True, seed=3
    )
    # the row that would go on to 99 is cut off at 6; fitness is 1 + 2 + … + length
    assert [episode.length for episode in evaluation.episodes] == [2, 5, 6, 1]
    assert [episode.fitness for episode in evaluation.episodes] == [3.0, 15.0, 21.0, 1.0]
    endings = [episode.ended_by for episode in evaluation.episodes]
    assert endings == ["even", "odd", "time_out", "odd"]
    assert evaluation.seed == 3
    assert evaluation.fitness_mean() == 10.0
    assert trajectories is not None
    assert trajectories["worst"]["count"].tolist() == [1.0]
    assert trajectories["best"]["count"].tolist() == [1, 2, 3, 4, 5, 6]
    assert trajectories["best"]["observations"][:, 0].tolist() == [0, 1, 2, 3, 4, 5]
    assert trajectories["best"]["actions"].shape == (6, 1)


def test_trajectories_are_plain_arrays_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "trajectories.npz"
    _, trajectories = evaluate_policy(
        Countdown([2, 4]), COUNT_TASK, Policy(policy_tensors(1, 1), "elu", {}), 2, record=True
    )
    assert trajectories is not None
    path.write_bytes(trajectories_bytes(trajectories))
    with np.load(path, allow_pickle=False) as arrays:
        assert arrays["best/count"].tolist() == [1, 2, 3, 4]
    assert load_trajectories(path)["worst"]["fitness"].tolist() == [1.0, 2.0]
    path.write_bytes(b"PK nonsense")
    with pytest.raises(RunFolderError, match="trajectories"):
        load_trajectories(path)


def test_equal_seeds_give_equal_episodes(point_task: Task) -> None:
    policy = Policy(policy_tensors(4, 2, scale=-0.1), "elu", {})

    def fitness(environment: VecTask, seed: int) -> list[float]:
        evaluation, _ = evaluate_policy(environment, point_task, policy, 8, record=False, seed=seed)
        return [episode.fitness for episode in evaluation.episodes]

    first = fitness(PointMass(8, seed=1), 5)
    assert first == fitness(PointMass(8, seed=2), 5)
    assert first != fitness(PointMass(8, seed=1), 6)
    assert len(set(first)) == 8
