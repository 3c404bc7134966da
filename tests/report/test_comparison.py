"""Better than the baseline beyond the noise, or not."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from eureka_agent.records import RunStatus, Score
from eureka_agent.report.comparison import compare, compare_scores, mean_chosen_apart, student_t_975, verdict
from eureka_agent.report.run_report import RunCost, RunReport


def score(name: str, *fitness: float | None) -> Score:
    known = [value for value in fitness if value is not None]
    return Score(name=name, seeds=tuple(range(len(fitness))), fitness=fitness, mean=sum(known) / len(known), std=None)


@pytest.mark.parametrize(
    ("degrees", "quantile"), [(1, 12.706), (2.9, 4.303), (10, 2.228), (11, 2.201), (30, 2.042), (120, 1.980)]
)
def test_student_quantiles_are_the_tables(degrees: float, quantile: float) -> None:
    assert student_t_975(degrees) == pytest.approx(quantile, abs=0.005)


def test_welch_interval_by_hand() -> None:
    # means 5 and 2, variances 1 and 1, three each: standard error sqrt(2/3) = 0.81650, 4 degrees of freedom, t = 2.776
    comparison = compare([4.0, 5.0, 6.0], [1.0, 2.0, 3.0])
    assert comparison is not None
    assert comparison.difference == pytest.approx(3.0)
    assert comparison.low == pytest.approx(3.0 - 2.26661, abs=1e-4)
    assert comparison.high == pytest.approx(3.0 + 2.26661, abs=1e-4)
    assert comparison.better
    assert not comparison.worse


def test_unequal_spread_has_fewer_degrees_of_freedom() -> None:
    # variances 100 and 0 over three each: (100/3)² / ((100/3)²/2) = 2 degrees of freedom, t = 4.303, error sqrt(100/3) = 5.7735
    comparison = compare([0.0, 10.0, 20.0], [1.0, 1.0, 1.0])
    assert comparison is not None
    assert comparison.high - comparison.difference == pytest.approx(4.303 * 5.7735, rel=1e-4)


def test_equal_values_without_spread_are_neither_better_nor_worse() -> None:
    comparison = compare([500.0, 500.0], [500.0, 500.0])
    assert comparison is not None
    assert not comparison.better
    assert not comparison.worse


def test_the_mean_of_a_choice_made_without_the_seed_that_scores() -> None:
    # without seed 0 the others sum to 2 and 9, so b (0); without seed 1 to 10 and 4, so a (1); without seed 2 to 10 and 5, so a (1)
    a, b = score("a", 9.0, 1.0, 1.0), score("b", 0.0, 5.0, 4.0)
    assert mean_chosen_apart([a, b]) == pytest.approx(2 / 3)
    # one that is better from every seed is chosen every time: nothing was luck
    assert mean_chosen_apart([a, score("c", 10.0, 6.0, 5.0)]) == pytest.approx(7.0)


def test_the_seed_left_out_does_not_decide_among_equals() -> None:
    # without seed 2 both have 20: half 10, half 4; without the others a is chosen
    assert mean_chosen_apart([score("a", 10.0, 10.0, 10.0), score("b", 10.0, 10.0, 4.0)]) == pytest.approx(27 / 3)


def test_a_choice_among_one_or_from_one_seed_or_with_a_failed_training_has_no_such_mean() -> None:
    assert mean_chosen_apart([score("a", 9.0, 1.0)]) is None
    assert mean_chosen_apart([score("a", 9.0), score("b", 1.0)]) is None
    assert mean_chosen_apart([score("a", 9.0, None), score("b", 1.0, 2.0)]) is None


def test_noise_is_called_noise() -> None:
    sentence = compare_scores(score("1-01", 1.0, 5.0, 9.0), score("sparse", 2.0, 4.0, 6.0))
    assert sentence.startswith("These seeds do not tell it apart from the sparse reward")


def test_worse_is_called_worse() -> None:
    assert compare_scores(score("1-01", 1.0, 1.1, 0.9), score("human", 4.0, 4.1, 3.9)).startswith(
        "It is worse than the human reward"
    )


def test_one_seed_proves_nothing() -> None:
    assert "one seed cannot tell that from noise" in compare_scores(score("1-01", 9.0), score("sparse", 1.0))


def test_a_failed_seed_is_left_out() -> None:
    assert "one seed cannot tell" in compare_scores(score("1-01", 9.0, None), score("sparse", 1.0, 2.0))


def test_the_verdict_of_a_finished_run(report: RunReport) -> None:
    text = verdict(report)
    assert "The best reward function is attempt 2-01 (improve)" in text
    assert "2.50 ± 0.50 m. Fitness is highest point of the foot." in text
    # standard error sqrt(0.25/3 + 0.01/3) = 0.29439; 2.16 degrees of freedom, so t = 4.303: 1.5 ± 1.267
    assert (
        "better than the sparse reward (1.00 ± 0.10) beyond the noise of the seeds: difference 1.50, 95 % interval 0.233 to 2.77"
        in text
    )
    assert "do not tell it apart from the human reward" in text
    assert "13 trainings (4 in the search, 6 final, 3 of baselines), 13.0k env steps and 2 min 5 s" in text
    assert "no LLM was asked" in text


def test_equal_on_every_seed_is_exactly_as_good() -> None:
    sentence = compare_scores(score("1-01", 10.0, 10.0), score("sparse", 10.0, 10.0))
    assert sentence == "It is exactly as good as the sparse reward: 10.00 from every seed."


def test_a_human_reward_below_the_sparse_one_is_said(report: RunReport) -> None:
    human, sparse = report.scores[2], report.scores[3]
    swapped = (*report.scores[:2], human.model_copy(update={"mean": 0.5}), sparse)
    assert "the distance to the human reward, which is below the sparse one here" in verdict(
        replace(report, scores=swapped)
    )
    assert "below the sparse one" not in verdict(report)


def test_a_search_without_final_trainings_warns_of_luck(report: RunReport) -> None:
    text = verdict(replace(report, scores=()))
    assert "favours luck" in text
    assert "sparse" not in text


def test_a_run_in_which_nothing_trained(report: RunReport) -> None:
    text = verdict(replace(report, scores=(), best=None, status=RunStatus.FAILED, message="every proposal failed."))
    assert text.startswith("No reward function was trained to an end")
    # the fixture's five attempts: one rejected, one failed, three that this run pretends not to have
    assert "of 5 attempts, 1 rejected by the critic, 1 failed in training, 3 not done." in text
    assert "below" not in text
    assert "The run is failed: every proposal failed;" in text
    assert "eureka resume runs/20261121-035500_jumper_jump" in text


def test_a_run_that_is_under_way_is_not_said_to_be_resumable(report: RunReport) -> None:
    text = verdict(replace(report, status=RunStatus.RUNNING))
    assert "being worked on right now" in text
    assert "eureka resume" not in text


def test_how_a_stopped_run_goes_on_is_said_once(report: RunReport) -> None:
    """Its message says that too, for the line that Ctrl-C ends with; one of a killed run is of an earlier end."""
    command = "eureka resume runs/20261121-035500_jumper_jump"
    text = verdict(replace(report, status=RunStatus.STOPPED, message=f"go on with: {command}"))
    assert f"The run is stopped; `{command}` goes on with it." in text
    assert text.count(command) == 1


def test_the_command_to_resume_is_quoted_for_the_shell(report: RunReport) -> None:
    text = verdict(replace(report, status=RunStatus.STOPPED, folder=Path("my runs/one")))
    assert "`eureka resume 'my runs/one'`" in text


@pytest.mark.parametrize(
    ("money", "words"), [(None, "at a cost that is not known"), (Decimal("0.1234"), "for $0.1234")]
)
def test_unknown_cost_is_not_called_zero(report: RunReport, money: Decimal | None, words: str) -> None:
    cost = RunCost(requests=4, prompt_tokens=9000, completion_tokens=1000, money=money)
    text = verdict(replace(report, designer="gpt-x", cost=cost))
    assert f"gpt-x was asked 4 times (10.0k tokens) {words}" in text
