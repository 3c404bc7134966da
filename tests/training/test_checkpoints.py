"""Checkpoints: when they are due, what they sum up, and which policy is kept."""

from __future__ import annotations

import pytest
import torch

from eureka_agent.records import CurvePoint
from eureka_agent.summaries import checkpoint_iterations
from eureka_agent.training.snapshot import CheckpointKeeper


def point(env_steps: int, fitness: float | None, episodes: int, reward: float = 0.0) -> CurvePoint:
    numbers = dict.fromkeys(
        (
            "action_saturation",
            "action_std",
            "learning_rate",
            "kl",
            "entropy",
            "value_loss",
            "policy_loss",
            "explained_variance",
        ),
        0.0,
    )
    moments = {"a": reward}
    return CurvePoint(
        env_steps=env_steps,
        fitness=fitness,
        episode_length=None if fitness is None else 10.0,
        episodes=episodes,
        reward=reward,
        components=moments,
        component_magnitudes=moments,
        component_deviations=moments,
        terminations={},
        **numbers,
    )


@pytest.mark.parametrize(
    ("iterations", "checkpoints", "expected"),
    [(10, 5, (2, 4, 6, 8, 10)), (7, 3, (3, 5, 7)), (2, 10, (1, 2)), (1, 1, (1,))],
)
def test_checkpoints_are_evenly_spaced_and_end_with_the_training(
    iterations: int, checkpoints: int, expected: tuple[int, ...]
) -> None:
    assert checkpoint_iterations(iterations, checkpoints) == expected


def test_a_checkpoint_weighs_iterations_by_their_episodes_and_the_best_policy_is_kept() -> None:
    keeper = CheckpointKeeper(iterations=6, checkpoints=3)
    fitness = [(None, 0), (4.0, 1), (10.0, 3), (2.0, 1), (7.0, 2), (None, 0)]
    for index, (value, episodes) in enumerate(fitness):
        assert not keeper.finished
        keeper.add(
            point(100 * (index + 1), value, episodes, reward=float(index)),
            lambda at=index: {"at": torch.tensor(at)},
        )
    assert keeper.finished
    # (10 · 3 + 2 · 1) / 4 = 8 in the middle
    assert [record.fitness for record in keeper.records] == [4.0, 8.0, 7.0]
    assert [record.episodes for record in keeper.records] == [1, 4, 2]
    assert [record.env_steps for record in keeper.records] == [200, 400, 600]
    assert [record.reward for record in keeper.records] == [0.5, 2.5, 4.5]
    assert keeper.best == 1
    assert keeper.policies[keeper.best]["at"].item() == 3


def test_without_any_fitness_the_last_policy_is_kept() -> None:
    keeper = CheckpointKeeper(iterations=2, checkpoints=2)
    for index in range(2):
        keeper.add(point(index, None, 0), lambda at=index: {"at": torch.tensor(at)})
    assert keeper.best == 1
    assert keeper.policies[keeper.best]["at"].item() == 1


def test_a_negative_fitness_is_better_than_none() -> None:
    keeper = CheckpointKeeper(iterations=2, checkpoints=2)
    keeper.add(point(1, -5.0, 1), lambda: {"at": torch.tensor(0)})
    keeper.add(point(2, None, 0), lambda: {"at": torch.tensor(1)})
    assert keeper.best == 0
    assert keeper.policies[keeper.best]["at"].item() == 0


def test_the_policies_of_the_best_few_are_kept_and_no_other_is_copied() -> None:
    keeper = CheckpointKeeper(iterations=6, checkpoints=6, policies=3)
    copied = []

    def policy(at: int) -> dict[str, torch.Tensor]:
        copied.append(at)
        return {"at": torch.tensor(at)}

    kept = []
    for index, fitness in enumerate((None, 3.0, 1.0, 2.0, 0.5, 2.0)):
        keeper.add(point(index, fitness, 1), lambda at=index: policy(at))
        kept.append(sorted(keeper.policies))
    # the fifth is behind all three; the last is as good as the fourth, and takes the place of the
    # third
    assert kept == [[0], [0, 1], [0, 1, 2], [1, 2, 3], [1, 2, 3], [1, 3, 5]]
    assert copied == [0, 1, 2, 3, 5]
    assert {index: tensors["at"].item() for index, tensors in keeper.policies.items()} == {
        1: 1,
        3: 3,
        5: 5,
    }
    assert keeper.best == 1
    again = CheckpointKeeper(iterations=6, checkpoints=6, policies=3)
    again.resume(keeper.iterations, keeper.records, keeper.recent, keeper.policies)
    assert (again.best, again.policies.keys()) == (1, keeper.policies.keys())


def test_checkpoints_under_other_parameters_are_behind_all_later_ones() -> None:
    keeper = CheckpointKeeper(iterations=4, checkpoints=4, policies=2, counts_from=200)
    for place, fitness in enumerate((9.0, 8.0, 1.0, None), 1):
        keeper.add(point(100 * place, fitness, 1), lambda at=place: {"at": torch.tensor(at)})
    assert sorted(keeper.policies) == [2, 3]
    assert keeper.best == 2
