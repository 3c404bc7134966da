"""A policy's score and trajectories are the same to the bit, whoever is scored with it and wherever
its rows are."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from policy_files import random_policy
from torch import Tensor
from training_environments import Countdown, PointMass

from eureka_agent.errors import EnvironmentLoadError
from eureka_agent.simulation.loading import load_environment
from eureka_agent.simulation.vec_task import VecTask, padded
from eureka_agent.task import Task
from eureka_agent.training.distributions import distribution_of
from eureka_agent.training.evaluation import (
    PolicyRequest,
    Score,
    evaluate_policies,
    evaluate_policy,
    worst_and_best,
)

TASKS = (
    *("cartpole/balance", "cartpole/swingup", "quadcopter/hover", "hopper/run", "ant/run"),
    *("gymnasium:Pendulum-v1/native", "gymnasium:CartPole-v1/native"),
)


class Roundabout(PointMass):
    """Moves by functions that torch rounds differently in what a loop over SIMD registers leaves
    over."""

    def pre_physics_step(self, actions: Tensor) -> None:
        turned = torch.atan2(self.position[:, 1], self.position[:, 0]) + torch.sigmoid(
            self.velocity
        ).sum(dim=1)
        pushes = torch.stack([torch.sinh(0.1 * (index + 1) * turned) for index in range(7)]).sum(
            dim=0
        )
        self.velocity = (
            0.9 * self.velocity + 0.1 * actions + 0.02 * pushes.unsqueeze(-1).clamp(-1.0, 1.0)
        )


def by_angle(position: Tensor, previous_position: Tensor) -> Tensor:
    """Angle turned in a step. Its rounding, too, depends on where it is."""
    now, before = (torch.atan2(place[:, 1], place[:, 0]) for place in (position, previous_position))
    return torch.sigmoid(now - before).pow(1.3)


def policies(environment: type[VecTask]) -> list[PolicyRequest]:
    """Policies of different shapes and numbers of episodes. One of them leaves no trajectories."""
    sizes = environment.num_observations, environment.num_actions
    hidden, episodes, scales = ((64, 64), (32,), (24, 48, 8)), (16, 5, 7, 1, 33, 16), (0.05, 0.6)
    return [
        PolicyRequest(
            random_policy(
                *sizes,
                seed=index,
                hidden=hidden[index % 3],
                scale=scales[index % 2],
                distribution=distribution_of(environment),
            ),
            40 + index,
            episodes[index],
            record=worst_and_best if index != 3 else None,
        )
        for index in range(6)
    ]


def same(one: Score, other: Score) -> bool:
    if one[0] != other[0] or (one[1] is None) != (other[1] is None):
        return False
    return all(
        np.array_equal(values, (other[1] or {})[kind][name])
        for kind, trajectory in (one[1] or {}).items()
        for name, values in trajectory.items()
    )


def scores(
    make: Callable[[int], VecTask],
    task: Task,
    environment: type[VecTask],
    requests: Sequence[PolicyRequest],
) -> list[Score]:
    rows = sum(padded(request.episodes, environment.row_multiple) for request in requests)
    made = make(rows)
    try:
        return evaluate_policies(made, task, requests)
    finally:
        made.close()


def assert_company_makes_no_difference(
    make: Callable[[int], VecTask], task: Task, environment: type[VecTask]
) -> None:
    requests = policies(environment)
    alone = [scores(make, task, environment, [request])[0] for request in requests]
    assert (
        len(
            {score[0].episodes[0].length for score in alone}
            | {score[0].fitness_mean() for score in alone}
        )
        > 1
    )
    draw = random.Random(0)
    for amount in (6, 3, 2):
        chosen = draw.sample(range(6), amount)
        together = scores(make, task, environment, [requests[index] for index in chosen])
        for index, score in zip(chosen, together, strict=True):
            assert same(score, alone[index]), (index, chosen)


@pytest.mark.parametrize("name", TASKS)
def test_company_makes_no_difference(name: str) -> None:
    environment, _, task_name = name.rpartition("/")
    loaded = load_environment(environment)
    _, task = loaded.task(task_name)
    assert_company_makes_no_difference(
        lambda rows: loaded.make(task, rows), task, loaded.environment_class
    )


def test_company_makes_no_difference_where_rounding_goes_by_place() -> None:
    task = Task(sentence="turn", fitness=by_angle, fitness_doc="turns")
    assert_company_makes_no_difference(lambda rows: Roundabout(rows), task, Roundabout)


class Staggered(Countdown):
    """Row i terminates at step i + 1 and notes who was still simulated in every step."""

    row_multiple = 4
    max_episode_length = 99

    def __init__(self, rows: int) -> None:
        super().__init__(list(range(1, rows + 1)))
        self.simulated: list[list[int]] = []

    def simulate(self) -> None:
        assert self.skipped_rows is not None
        self.simulated.append((~self.skipped_rows).nonzero().flatten().tolist())


def count(count: Tensor) -> Tensor:
    return count


def test_rows_are_simulated_until_their_episode_is_over_and_padding_is_not() -> None:
    environment = Staggered(8)
    task = Task(sentence="count", fitness=count, fitness_doc="sum of counts")
    requests = [PolicyRequest(random_policy(1, 1, seed=0), 0, episodes) for episodes in (3, 2)]
    first, second = evaluate_policies(environment, task, requests)
    # rows 0 to 2 and 4 to 5 are in use; row i counts 1 + 2 + … + (i + 1)
    assert environment.simulated == [[0, 1, 2, 4, 5], [1, 2, 4, 5], [2, 4, 5], [4, 5], [4, 5], [5]]
    assert [episode.fitness for episode in first[0].episodes] == [1.0, 3.0, 6.0]
    assert [episode.length for episode in second[0].episodes] == [5, 6]
    assert [episode.fitness for episode in second[0].episodes] == [15.0, 21.0]
    assert environment.skipped_rows is None


@pytest.mark.parametrize(
    ("reduction", "expected"), [("sum", 80 * 81 / 2), ("mean", 40.5), ("last", 80.0), ("max", 80.0)]
)
def test_fitness_over_more_steps_than_are_calculated_at_once(
    reduction: str, expected: float
) -> None:
    environment = Countdown([80, 64, 65])
    environment.max_episode_length = 200
    task = Task(sentence="count", fitness=count, fitness_doc="counts", fitness_reduction=reduction)  # type: ignore[arg-type]
    evaluation, trajectories = evaluate_policy(
        environment, task, random_policy(1, 1, seed=0), 3, record=True
    )
    assert evaluation.episodes[0].fitness == expected
    assert [episode.length for episode in evaluation.episodes] == [80, 64, 65]
    assert trajectories is not None
    assert trajectories["best"]["fitness"].tolist() == list(range(1, 81))


def test_rows_that_do_not_fit_are_refused() -> None:
    task = Task(sentence="count", fitness=count, fitness_doc="counts")
    request = PolicyRequest(random_policy(1, 1, seed=0), 0, 3)
    with pytest.raises(ValueError, match="need 4 rows, found 8"):
        evaluate_policies(Staggered(8), task, [request])
    with pytest.raises(EnvironmentLoadError, match="2 observations"):
        evaluate_policies(Staggered(4), task, [PolicyRequest(random_policy(2, 1, seed=0), 0, 3)])
