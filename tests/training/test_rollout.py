"""Contents of a rollout: steps before resets, the states that were cut off, `previous_…` across
resets."""

from __future__ import annotations

import torch
from training_environments import Countdown

from eureka_agent.training.distributions import Gaussian
from eureka_agent.training.networks import ObservationStatistics, StackedNetworks
from eureka_agent.training.rollout import Rollout, RolloutCollector


def collect(lengths: list[int], horizon: int, start: int = 0) -> tuple[RolloutCollector, Rollout]:
    collector = RolloutCollector(Countdown(lengths), Gaussian(1), 1, len(lengths), horizon)
    collector.start_member(0, 0, torch.full((len(lengths),), start))
    return collector, iteration(collector)


def iteration(collector: RolloutCollector) -> Rollout:
    networks = StackedNetworks(1, 1, Gaussian(1), (4,), "elu", "cpu").members(0, 1)
    return collector.collect(
        networks,
        ObservationStatistics(1, 1, "cpu"),
        1,
        {"count", "previous_count", "previous_actions"},
    )


def test_values_are_of_the_state_reached_and_previous_ones_of_the_state_before() -> None:
    _, rollout = collect([3], horizon=7)
    # ends at 3, is reset, ends at 3 again; right after a reset the count is 0, and that is what the
    # first step has before it
    assert rollout.arguments["count"].flatten().tolist() == [1, 2, 3, 1, 2, 3, 1]
    assert rollout.arguments["previous_count"].flatten().tolist() == [0, 1, 2, 0, 1, 2, 0]
    assert rollout.observations.flatten().tolist() == [0, 1, 2, 0, 1, 2, 0]
    assert rollout.final_observations.flatten().tolist() == [1, 2, 3, 1, 2, 3, 1]
    assert rollout.last_observations.flatten().tolist() == [1]


def test_the_previous_action_is_zero_right_after_a_reset() -> None:
    collector = RolloutCollector(Countdown([2]), Gaussian(1), 1, 1, 4)
    collector.start_member(0, 0, torch.zeros(1, dtype=torch.int64))
    collector.noise.copy_(torch.tensor([0.5, -0.25, 0.125, 3.0]).view(1, 4, 1, 1))
    rollout = iteration(collector)
    # zero weights and log_std 0: the actions are the noise, clipped by the environment
    assert rollout.actions.flatten().tolist() == [0.5, -0.25, 0.125, 3.0]
    assert rollout.arguments["previous_actions"].flatten().tolist() == [0.0, 0.5, 0.0, 0.125]


def test_an_episode_goes_on_from_one_iteration_to_the_next() -> None:
    collector, _ = collect([5], horizon=3)
    rollout = iteration(collector)
    assert rollout.arguments["count"].flatten().tolist() == [4, 5, 1]
    assert rollout.arguments["previous_count"].flatten().tolist() == [3, 4, 0]


def test_terminations_and_truncations_are_told_apart_and_counted_by_cause() -> None:
    # rows that end by themselves at 2 and 3, and one that is cut off at 6, the longest an episode
    # lasts
    _, rollout = collect([2, 3, 99], horizon=6)
    assert rollout.terminated[0].sum(dim=0).tolist() == [3, 2, 0]
    assert rollout.truncated[0].sum(dim=0).tolist() == [0, 0, 1]
    assert {name: int(flags.sum()) for name, flags in rollout.causes.items()} == {
        "even": 3,
        "odd": 2,
        "time_out": 1,
    }


def test_a_started_member_is_at_the_given_point_of_its_episode() -> None:
    _, rollout = collect([99], horizon=3, start=4)
    # 4 steps in: the second step is the sixth
    assert rollout.observations.flatten().tolist() == [4, 5, 0]
    assert rollout.truncated.flatten().tolist() == [False, True, False]
