"""Races on paper: whose score counts at a rung, who is stopped by it, and what the scoring
costs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from _race_curves import PolicyScore, SideBySide, Trained
from _races import Policy, final_fitness, raced, rank_correlations

from eureka_agent.records import CheckpointRecord, CurvePoint
from eureka_agent.settings import TrainingSettings
from eureka_agent.training.checkpoints import CheckpointKeeper
from eureka_agent.training.policy import Policy as TrainedPolicy


def trained(
    fitness: float, curve: Sequence[float | None], scores: Sequence[float] = (), cost: float = 0.01
) -> Trained:
    records = [
        CheckpointRecord(
            env_steps=place,
            fitness=value,
            episode_length=None,
            episodes=1,
            reward=0.0,
            components={},
        )
        for place, value in enumerate(curve)
    ]
    return Trained(
        reward="",
        source="",
        seed=0,
        fitness=fitness,
        checkpoints=tuple(records),
        scores=tuple(
            PolicyScore(fitness=(value - 1.0, value + 1.0), cost=cost) for value in scores
        ),
    )


@pytest.mark.parametrize(
    "curve",
    [
        (None, None, 3.0, 3.0, 2.0, None, 4.0),
        (1.0, None, 0.5, 2.0, 1.9, 2.0),
        (None, -1.0, -2.0),
        (5.0, 4.0),
    ],
)
def test_the_kept_policy_is_the_one_that_the_trainer_keeps(curve: Sequence[float | None]) -> None:
    keeper = CheckpointKeeper(iterations=len(curve), checkpoints=len(curve))
    for place, fitness in enumerate(curve):
        keeper.add(_point(fitness), lambda place=place: {"place": torch.tensor(place)})
        assert trained(0.0, curve).kept(place) == int(keeper.policies[keeper.best]["place"])


def test_a_race_compares_scores_and_counts_what_they_cost() -> None:
    # By the curve at the fifth of ten checkpoints the last one leads; its kept policy there is that
    # of the fourth, which scores worst.
    settings = TrainingSettings(env_steps=512 * 10)
    rising = [float(place) for place in range(10)]
    generation = [
        trained(4.0, rising, [4.0] * 9),
        trained(3.0, rising, [3.9] * 9),
        trained(2.0, rising, [3.8] * 9),
        trained(
            1.0,
            [0.0, 0.0, 0.0, 99.0, 98.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            [4.0, 4.0, 4.0, 0.0, 9.0, 4.0, 4.0, 4.0, 4.0],
        ),
    ]
    stopped_by = {
        by: [
            each
            for each in generation
            if each not in raced(generation, Policy((0.5,), 0.5, by), settings).kept
        ]
        for by in ("curve", "kept", "now")
    }
    assert stopped_by["kept"] == [generation[3]]
    # now: 4, 3.9, 3.8 and 9; median 3.95, spread 0.19 (5 % of it is more than 1.4826 x 0.1), so
    # below 3.85 is behind
    assert stopped_by["now"] == [generation[2]]
    assert stopped_by["curve"] == []
    race = raced(generation, Policy((0.5,), 0.5, "kept"), settings)
    assert race.left == (4,) * 5 + (3,) * 5
    # three and a half trainings and four scores of a hundredth, in place of four
    assert race.share == pytest.approx((3.5 + 0.04) / 4)
    # who is stopped at the first rung is not scored at the second
    assert raced(generation, Policy((0.5, 0.8), 0.5, "kept"), settings).scoring == pytest.approx(
        0.07
    )
    # two policies of the one whose kept policy is an earlier one
    assert raced(generation, Policy((0.5,), 0.5, "both"), settings).scoring == pytest.approx(0.05)


def test_a_policy_that_is_chosen_by_its_score_is_valued_in_other_episodes() -> None:
    # Each score has two episodes, one above and one below. The eighth checkpoint's: 4.5 and 6.5,
    # the final policy's fitness: 5. By the first episode it is not chosen, by the second one it is,
    # and the first one says 4.5.
    rising = [float(place) for place in range(10)]
    one = trained(5.0, rising, [0.0, 0.0, 0.0, 0.0, 9.0, 0.0, 0.0, 5.5, 0.0])
    assert final_fitness(one, (4,), Policy((0.5,), 0.5, "kept")) == 5.0
    assert final_fitness(one, (4,), Policy((0.5,), 0.5, "kept", chosen=2)) == pytest.approx(
        (5.0 + 4.5) / 2
    )
    # what was scored at a rung can be chosen too: 8 and 10
    assert final_fitness(one, (4,), Policy((0.5,), 0.5, "now", chosen=2)) == pytest.approx(9.0)
    settings = TrainingSettings(env_steps=512 * 10)
    race = raced([one, one], Policy((0.5, 0.8), 0.5, "now", chosen=2), settings)
    # two scores at rungs, and of the last two checkpoints only that at the ninth, since the eighth
    # is a rung
    assert race.scoring == pytest.approx(2 * 0.03)


def test_rank_correlations_by_scores_end_before_the_last_checkpoint() -> None:
    rising = (1.0, 2.0, 3.0)
    group = [trained(float(place), rising, (place, -place)) for place in range(4)]
    assert rank_correlations(group, "now") == pytest.approx([1.0, -1.0])
    assert len(rank_correlations(group)) == 3


def test_policies_side_by_side_act_each_in_its_rows() -> None:
    policies = [
        TrainedPolicy(
            {
                "policy.0.weight": torch.full((2, 1), weight),
                "policy.0.bias": torch.zeros(1, 1),
                "log_std": torch.full((1,), -9.0),
                "observation_mean": torch.zeros(2),
                "observation_deviation": torch.ones(2),
            },
            "tanh",
            {},
        )
        for weight in (0.1, -0.2)
    ]
    actions = SideBySide(policies).act(torch.ones(6, 2))
    # a weight of 0.1 on two observations of 1 gives 0.2, one of -0.2 gives -0.4
    assert actions.squeeze(1).tolist() == pytest.approx([0.2] * 3 + [-0.4] * 3, abs=1e-3)


def _point(fitness: float | None) -> CurvePoint:
    names = (
        "action_saturation action_std learning_rate kl entropy value_loss policy_loss"
        " explained_variance"
    )
    return CurvePoint(
        env_steps=1,
        fitness=fitness,
        episode_length=fitness,
        episodes=0 if fitness is None else 1,
        reward=0.0,
        components={},
        component_magnitudes={},
        component_deviations={},
        terminations={},
        **dict.fromkeys(names.split(), 0.0),
    )
