"""The difficulty card of a task, from made-up trainings whose figures follow by hand."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console

from eureka_agent.cards import Card, card_path, read_card
from eureka_agent.records import (
    CheckpointRecord,
    FinalTraining,
    Measurements,
    Outcome,
    TaskDescription,
    UntrainedScore,
)
from eureka_agent.report.environment import render_card
from eureka_agent.search.card import NoCardError, make_card
from eureka_agent.settings import TrainingSettings


def training(name: str, seed: int, curve: Sequence[float | None], fitness: float) -> FinalTraining:
    checkpoints = tuple(
        CheckpointRecord(
            env_steps=100 * (index + 1),
            fitness=value,
            episode_length=None,
            episodes=0,
            reward=0.0,
            components={},
        )
        for index, value in enumerate(curve)
    )
    outcome = Outcome(
        env_steps=400,
        seconds=1.0,
        checkpoints=checkpoints,
        best_checkpoint=3,
        training_fitness=curve[-1],
        fitness=fitness,
    )
    return FinalTraining(name=name, seed=seed, outcome=outcome)


HUMAN = [
    training("human", 1, (None, 3.0, 8.0, 9.0), 10.0),
    training("human", 2, (1.0, 5.0, 10.0, 9.0), 9.0),
    training("human", 3, (1.0, 4.0, 9.0, 10.0), 11.0),
]
SPARSE = [
    training("sparse", 1, (1.0, 1.0, 1.0, 1.0), 1.0),
    training("sparse", 2, (1.0, 1.0, 2.0, 6.0), 5.5),
    training("sparse", 3, (1.0, 1.0, 1.0, 2.0), 2.0),
]


@pytest.fixture
def make(description: TaskDescription) -> Card:
    return card(description, [*HUMAN, *SPARSE])


def card(
    description: TaskDescription,
    trainings: Sequence[FinalTraining],
    success: float | None = 8.0,
    untrained: float = 1.0,
) -> Card:
    random = UntrainedScore(mean=untrained, std=0.0, length=1.0, episodes=4)
    measured = Measurements(random_actions=random)
    changes = {"measured": measured, "success_fitness": success}
    settings = TrainingSettings(env_steps=400, num_envs=4)
    return make_card(description.model_copy(update=changes), trainings, settings, {}, {})


def test_scores_are_means_and_deviations_over_the_seeds(make: Card) -> None:
    assert (make.human.mean, make.human.std) == (10.0, 1.0)
    assert make.sparse.mean == pytest.approx(8.5 / 3)
    assert make.decides == "human"
    assert make.human_learns


def test_a_seed_has_learned_from_half_way_to_a_solved_episode(
    description: TaskDescription,
) -> None:
    """Half way from 1 to 8 is 4.5: of the sparse seeds 1, 5.5 and 2 one is above. Without a solved
    fitness it is half way to the better mean, 10: 5.5, which that seed reaches exactly."""
    trainings = [*HUMAN, *SPARSE]
    assert card(description, trainings).sparse.learned == 1
    assert card(description, trainings).human.learned == 3
    assert card(description, trainings, success=None).sparse.learned == 1
    assert card(description, trainings, success=11.0).sparse.learned == 0


def test_the_curve_is_the_mean_of_the_seeds_with_its_extremes(make: Card) -> None:
    found = [(point.env_steps, point.mean, point.low, point.high) for point in make.human.curve]
    assert found == [
        (100, 1.0, 1.0, 1.0),  # one seed had no episode yet
        (200, 4.0, 3.0, 5.0),
        (300, 9.0, 8.0, 10.0),
        (400, pytest.approx(28 / 3), 9.0, 10.0),
    ]


def test_env_steps_to_the_level_are_those_of_most_of_the_way(make: Card) -> None:
    """The human curve's best point is 9.33; nine tenths of the way from 1 are 8.5, reached at 300.
    The sparse curve ends at 3."""
    assert make.human.env_steps_to_level == 300
    assert make.sparse.env_steps_to_level is None


def test_trainings_of_another_length_than_the_tasks_are_told(description: TaskDescription) -> None:
    shown = io.StringIO()
    longer = description.model_copy(update={"env_steps": 20_000_000})
    found = card(longer, [*HUMAN, *SPARSE])
    assert (found.env_steps, found.budget) == (400, 20_000_000)
    Console(file=shown, width=120).print(render_card(found))
    assert "400 env steps a training (the task has 20.0M)" in shown.getvalue()
    as_planned = description.model_copy(update={"env_steps": 400})
    assert card(as_planned, [*HUMAN, *SPARSE]).budget is None


def test_a_human_reward_that_does_not_learn_has_no_level(description: TaskDescription) -> None:
    poor = [training("human", seed, (1.0, 1.0, 1.1, 1.2), 1.2) for seed in (1, 2, 3)]
    found = card(description, [*poor, *SPARSE])
    assert not found.human_learns
    assert (found.human.learned, found.human.env_steps_to_level) == (0, None)
    assert found.decides == "neither"


def test_a_baseline_that_never_ended_makes_no_card(description: TaskDescription) -> None:
    failed = [FinalTraining(name="sparse", seed=1, outcome=None, failure="nan")]
    with pytest.raises(NoCardError, match="the sparse reward of task"):
        card(description, [*HUMAN, *failed])


def test_another_task_s_card_and_absurd_numbers_are_no_card(tmp_path: Path, make: Card) -> None:
    path = card_path(tmp_path, make.task)
    path.parent.mkdir()
    values = make.model_dump(mode="json")
    path.write_text(json.dumps(values))
    assert read_card(tmp_path, make.task) == make
    path.rename(card_path(tmp_path, "other"))
    assert read_card(tmp_path, "other") is None
    absurd = 10**400
    for changed in (
        {"env_steps": absurd},
        {"budget": absurd},
        {"num_envs": -1},
        {"human": {**values["human"], "env_steps_to_level": absurd}},
        {"sparse": {**values["sparse"], "learned": absurd}},
    ):
        path.write_text(json.dumps({**values, **changed}))
        assert read_card(tmp_path, make.task) is None
