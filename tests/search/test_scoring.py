from __future__ import annotations

from typing import Any

import pytest
from outcomes import make_outcome
from planned_attempts import planned

from eureka_agent.records import Attempt, FinalTraining, Operator, Stage, TaskDescription
from eureka_agent.search.attempt_training import rung_env_steps
from eureka_agent.search.scoring import (
    changes,
    evaluation_lines,
    human_normalized,
    score,
    score_table,
    seed_spread,
)
from eureka_agent.search.seeds import derive_seed, final_seeds
from eureka_agent.settings import SearchSettings


def training(name: str, seed: int, fitness: float | None, cached: bool = False) -> FinalTraining:
    outcome = None if fitness is None else make_outcome(fitness)
    return FinalTraining(name=name, seed=seed, outcome=outcome, cached=cached)


def test_mean_and_sample_standard_deviation_over_the_seeds() -> None:
    # values 2, 4, 9: mean 5, squared deviations 9 + 1 + 16 = 26, over n - 1 = 2: 13
    known = [training("1-01", seed, value) for seed, value in ((3, 9.0), (1, 2.0), (2, 4.0))]
    result = score("1-01", [*known, training("other", 1, 100.0)])
    assert result.seeds == (1, 2, 3)
    assert result.fitness == (2.0, 4.0, 9.0)
    assert result.mean == pytest.approx(5.0)
    assert result.std == pytest.approx(13**0.5)


def test_a_failed_seed_is_listed_and_left_out_of_the_mean() -> None:
    result = score("1-01", [training("1-01", 1, None), training("1-01", 2, 4.0)])
    assert result.fitness == (None, 4.0)
    assert result.mean == 4.0
    assert result.std is None


def test_human_normalized_score_by_hand() -> None:
    assert human_normalized(8.0, human=6.0, sparse=2.0) == pytest.approx(1.5)  # (8 - 2) / |6 - 2|
    assert human_normalized(8.0, human=2.0, sparse=6.0) == pytest.approx(
        0.5
    )  # the sparse reward beats the human one: (8 - 6) / |2 - 6|
    assert human_normalized(8.0, human=2.0, sparse=2.0) is None
    assert human_normalized(8.0, human=None, sparse=2.0) is None


def trainings(name: str, *fitness: float) -> list[FinalTraining]:
    return [training(name, seed, value) for seed, value in enumerate(fitness)]


def test_the_table_has_finalists_best_first_then_the_baselines() -> None:
    finalists = [*trainings("1-01", -3.1, -3.0, -2.9), *trainings("2-04", 4.9, 5.0, 5.1)]
    table = score_table(
        [*trainings("human", 5.9, 6.0, 6.1), *finalists, *trainings("sparse", 1.9, 2.0, 2.1)]
    )
    assert [entry.name for entry in table] == ["2-04", "1-01", "human", "sparse"]
    assert [entry.human_normalized for entry in table] == pytest.approx([0.75, -1.25, 1.0, 0.0])


@pytest.mark.parametrize(
    ("human", "sparse"),
    [
        (
            (4.44, 4.45, 4.46),
            (4.43, 4.44, 4.45),
        ),  # 0.01 apart: the margin is 2.776 * 0.01 * sqrt(2 / 3) = 0.023
        (
            (10.0, 10.0, 10.0),
            (9.9, 10.0, 9.98),
        ),  # 0.04 apart, and Welch's margin is 4.303 * 0.0529 / sqrt(3) = 0.13
        ((6.0,), (2.0,)),  # one seed tells nothing
    ],
)
def test_nothing_is_human_normalised_where_human_and_sparse_are_not_told_apart(
    human: tuple[float, ...], sparse: tuple[float, ...]
) -> None:
    table = score_table(
        [*trainings("1-01", 5.0), *trainings("human", *human), *trainings("sparse", *sparse)]
    )
    assert [entry.human_normalized for entry in table] == [None, None, None]


def test_a_finalist_whose_trainings_all_failed_is_last_even_among_negative_scores() -> None:
    table = score_table([training("1-01", 1, None), training("1-02", 1, -9.0)])
    assert [entry.name for entry in table] == ["1-02", "1-01"]


def test_seeds_depend_on_every_part_and_final_seeds_on_none_of_the_run() -> None:
    seeds = {
        derive_seed(0, "training", iteration, sample)
        for iteration in range(10)
        for sample in range(100)
    }
    assert len(seeds) == 1000
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert final_seeds(5)[:3] == final_seeds(3)
    assert not seeds & set(final_seeds(100))


def test_parts_of_a_seed_do_not_run_together() -> None:
    assert derive_seed("repeat", 1, 23) != derive_seed("repeat", 12, 3)


def test_a_finalist_that_failed_from_most_seeds_is_not_the_best_by_the_one_that_is_left() -> None:
    fragile = [training("1-01", 1, 9.0), training("1-01", 2, None), training("1-01", 3, None)]
    table = score_table([*fragile, *trainings("1-02", 6.0, 5.0, 7.0), *trainings("1-03", 1, 2, 3)])
    assert [entry.name for entry in table] == ["1-02", "1-01", "1-03"]  # 9, 1 and 1: 3.7


def test_a_finalist_that_got_fewer_seeds_stands_below_all_that_have_more() -> None:
    few = [*trainings("1-01", 7.5), *trainings("1-02", 6.0, 7.0, 8.5), *trainings("1-03", 3, 6, 2)]
    assert [entry.name for entry in score_table(few)] == ["1-02", "1-03", "1-01"]
    # also below one that failed with one of its seeds, but not below one that failed with all
    failed = [training("1-04", seed, None) for seed in (1, 2, 3)]
    fragile = [training("1-05", 1, 1.0), training("1-05", 2, None), training("1-05", 3, 1.0)]
    names = [entry.name for entry in score_table([*few, *failed, *fragile])]
    assert names == ["1-02", "1-03", "1-05", "1-01", "1-04"]


def test_an_evaluation_names_unit_spread_and_threshold(description: TaskDescription) -> None:
    task = description.model_copy(
        update={"fitness_unit": "s", "success_fitness": 7.0, "max_episode_length": 500}
    )
    summary: dict[str, Any] = {"episodes": 256, "mean": 8.76, "std": 0.25, "unit": "s"}
    summary |= {"success_rate": 0.98, "mean_length": 499.6, "ended_by": {"time": 250, "fell": 6}}
    lines = evaluation_lines(summary, task, "")
    assert lines == {
        "fitness": "8.76 ± 0.25 s over 256 episodes (± is the deviation between episodes, not"
        " between seeds)",
        "measures": task.fitness_doc,
        "solved": "98% of the episodes (fitness of 7.00 s or more)",
        "length": "500 of 500 steps on average; ended by: time 250, fell 6",
    }
    alone = {**summary, "std": None, "episodes": 1, "unit": "1", "success_rate": None}
    lines = evaluation_lines(alone, task, "")
    assert lines["fitness"] == "8.76 over 1 episode"
    assert "solved" not in lines


# 10 updates of 100 env steps, a checkpoint after each
SETTINGS = SearchSettings(env="cart", env_steps=1000, num_envs=10, horizon=10, checkpoints=10)


@pytest.mark.parametrize(
    ("settings", "env_steps"),
    [
        ({"rungs": (0.3, 0.5)}, (300, 500)),
        ({"rungs": (0.5, 0.3)}, (300, 500)),
        ({"rungs": (0.25,)}, (300,)),
        ({"rungs": (0.5, 0.45)}, (500,)),
        ({"rungs": (0.95,)}, ()),
        ({"rungs": ()}, ()),
        ({"rungs": (0.3, 0.5), "checkpoints": 1}, ()),
        # checkpoints after 4, 7 and 10 updates
        ({"rungs": (0.4, 0.5), "checkpoints": 3}, (400, 700)),
        # of three updates 0.7 is after the second
        ({"rungs": (0.7,), "env_steps": 300}, ()),
    ],
)
def test_a_rung_is_the_next_checkpoint(
    settings: dict[str, Any], env_steps: tuple[int, ...]
) -> None:
    assert rung_env_steps(SETTINGS.model_copy(update=settings)) == env_steps


def reward(gain: float) -> str:
    return (
        f"GAIN = {gain}\n\ndef compute_reward(position):\n    pull = GAIN * position\n    return"
        " pull, {'pull': pull}\n"
    )


def test_a_child_is_told_with_its_change_and_both_fitnesses() -> None:
    first = planned(1, 0, 24.1, source=reward(1.0))
    better = planned(2, 0, 26.0, Operator.IMPROVE, ["1-0"], source=reward(2.0))
    broken = planned(2, 2, None, Operator.IMPROVE, ["1-0"], source=reward(8.0))
    refused = planned(2, 3, None, Operator.IMPROVE, ["1-0"], stage=Stage.REJECTED)
    crossed = planned(2, 4, 30.0, Operator.CROSSOVER, ["9-9", "1-0"])
    history = [first, better, broken, refused, crossed]
    assert changes(first, history) == (
        "2-2, made from 1-0: GAIN 1 → 8: fitness 24.1 → its training failed: ",
        "2-0, made from 1-0: GAIN 1 → 2: fitness 24.1 → 26 (one training against one training)",
    )
    assert changes(better, history) == (
        (
            "2-0 itself, made from 1-0: GAIN 1 → 2: fitness 24.1 → 26 (one training against one"
            " training)"
        ),
    )


def test_the_spread_between_seeds_is_pooled() -> None:
    once = planned(1, 0, 7.0)
    assert seed_spread([once]) is None

    def repeated(fitness: float, *others: float) -> Attempt:
        attempt = planned(1, 1, fitness)
        repeats = [
            {"iteration": 0, "seed": 1, "outcome": planned(1, 2, other).outcome} for other in others
        ]
        return Attempt.model_validate(attempt.model_dump() | {"repeats": repeats})

    # squares 2 · 1 about 3 with one degree of freedom, and 2 · 4 about 4 with two (2, 4, 6): (2 +
    # 8) / 3
    assert seed_spread([once, repeated(2.0, 4.0), repeated(2.0, 4.0, 6.0)]) == pytest.approx(
        (10 / 3) ** 0.5
    )
