"""A run's verdict in four lines: honest about noise, and with a command that can be pasted."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from outcomes import make_outcome
from rich.console import RenderableType
from told import score

from eureka_agent.posterior import posterior
from eureka_agent.records import Attempt, FinalTraining, RunStatus, Score, Stage
from eureka_agent.report.comparison import belief_in_best, lead, lead_of_best
from eureka_agent.report.markdown import markdown
from eureka_agent.report.run_report import RunReport
from eureka_agent.report.tables import render_end, render_run
from eureka_agent.report.terminal import CleanConsole
from eureka_agent.report.verdict import verdict, why_not_normalized

FOLDER = "runs/20261121-035500_jumper_jump"


def with_scores(report: RunReport, *scores: Score) -> RunReport:
    """The report with these finals; the first score is that of its best attempt."""
    return replace(report, scores=scores)


def alone(report: RunReport) -> RunReport:
    """The report of a run that trained its best attempt and no other: nothing was chosen by its
    scores, so that Welch's interval holds."""
    assert report.best is not None
    return replace(report, attempts=(report.best,))


def test_the_verdict_of_a_finished_run(report: RunReport) -> None:
    found = verdict(report)
    assert found.best == "attempt 2-01 (improve): fitness 2.50 ± 0.50 m over 3 fresh seeds"
    # human 1.9, 2.0, 2.1 and sparse 0.9, 1.0, 1.1 are told apart, so that the human-normalised
    # score says something
    assert (
        found.against
        == "not told apart from human (2.00 m); better than sparse (1.00 m); human-normalised 1.50"
    )
    told = re.match(
        r"95 % interval of the difference: human (\S+) to (\S+) m, sparse (\S+) to (\S+) m; the best"
        r" of its 2 finalists with a probability of ",
        found.certainty,
    )
    assert told is not None
    # of what is expected of the best, from all trainings, less 2 and 1
    belief = belief_in_best(report)
    assert belief is not None
    low_human, high_human, low_sparse, high_sparse = map(float, told.groups())
    assert low_human < belief.expected - 2.0 < high_human
    assert 0.0 < low_sparse < belief.expected - 1.0 < high_sparse
    # of one reward alone Welch's: variances 0.25 and 0.01 over 3 seeds: error sqrt(0.26/3) =
    # 0.2944; degrees of freedom 0.26²/((0.25² + 0.01²)/2) = 2.16, so t = 4.0116 and the margin 1.181
    # about 0.5 and 1.5; twice that is more than all scores, of 0.9 to 3, are apart, which is said
    # where 0 lies within
    others = [each for each in report.scores if each.name != "1-01"]
    assert verdict(with_scores(alone(report), *others)).certainty == (
        "95 % interval of the difference: human too wide to say, sparse 0.319 to 2.68 m"
    )
    assert (found.advice, found.command) == ("export reward and policy", f"eureka export {FOLDER}")


def test_a_reward_that_is_not_better_than_sparse_is_looked_at_next(report: RunReport) -> None:
    found = verdict(
        with_scores(report, score("2-01", 0.0, 4.0, 8.0), score("sparse", 2.0, 4.0, 6.0))
    )
    assert found.against == "not told apart from sparse (4.00 m)"
    assert found.command == f"eureka show {FOLDER} 2-01"
    worse = verdict(
        with_scores(report, score("2-01", 1.0, 1.1, 0.9), score("sparse", 4.0, 4.1, 3.9))
    )
    assert worse.against == "worse than sparse (4.00 m)"


def test_two_seeds_say_which_is_higher_and_no_interval(report: RunReport) -> None:
    settings = report.settings.model_copy(update={"final_seeds": 2})
    few = replace(report, settings=settings)
    found = verdict(with_scores(few, score("2-01", 9.0, 9.1), score("sparse", 1.0, 1.1)))
    assert found.against == "higher than sparse (1.05 m)"
    assert found.certainty == "not sure, no interval: 2 seeds are too few"
    assert (
        found.command == f"eureka resume {FOLDER} --final-seeds 5"
    )  # the two trainings of each are there already
    one = verdict(with_scores(few, score("2-01", 9.0), score("sparse", 9.0)))
    assert one.against == "level with sparse (9.00 m)"
    assert one.certainty == "not sure, no interval: 1 seed is too few"
    failed = verdict(with_scores(few, score("2-01", 9.0, None), score("sparse", 9.5, 9.6)))
    assert failed.best.endswith("over 2 fresh seeds, 1 of which failed")
    assert failed.against == "lower than sparse (9.55 m)"


def test_a_mean_that_is_higher_within_the_noise_is_given_more_seeds_up_to_ten(
    report: RunReport,
) -> None:
    def command(seeds: int, ours: float) -> str:
        settings = report.settings.model_copy(update={"final_seeds": seeds})
        given = replace(alone(report), settings=settings)
        scores = score("2-01", *[ours - 1, ours, ours + 1]), score("sparse", 1.0, 2.0, 3.0)
        return verdict(with_scores(given, *scores)).command

    # three seeds each with a deviation of 1: the margin is 2.776 x sqrt(2 / 3) = 2.27
    assert command(3, 4.0) == f"eureka resume {FOLDER} --final-seeds 6"
    assert command(6, 4.0) == f"eureka resume {FOLDER} --final-seeds 10"
    assert command(10, 4.0) == f"eureka show {FOLDER} 2-01"
    assert command(3, 1.5) == f"eureka show {FOLDER} 2-01"  # more seeds would not make it better
    assert command(3, 4.3) == f"eureka export {FOLDER}"


def test_a_baseline_of_one_seed_is_given_more(report: RunReport) -> None:
    settings = report.settings.model_copy(update={"final_seeds": 3, "baseline_seeds": 1})
    scores = score("2-01", 9.0, 9.1, 9.2), score("sparse", 1.0)
    assert (
        verdict(with_scores(replace(report, settings=settings), *scores)).command
        == f"eureka resume {FOLDER} --baseline-seeds 5"
    )
    alone = replace(report, settings=settings.model_copy(update={"baselines": False}))
    assert verdict(with_scores(alone, scores[0])).command == f"eureka export {FOLDER}"


def test_an_interval_wider_than_all_scores_is_not_printed(report: RunReport) -> None:
    report = alone(report)
    # variances 100/3 and 0: error sqrt(100/9) = 3.33, t = 4.303, so 28.7 wide; all scores and
    # attempts lie within 0 and 10
    scores = score("2-01", 0.0, 0.0, 10.0), score("sparse", 1.0, 1.0, 1.0)
    found = verdict(with_scores(report, *scores))
    assert found.against == "not told apart from sparse (1.00 m)"
    assert (
        found.certainty
        == "not sure: the scores differ so much from seed to seed that they cannot be told apart"
    )
    # beside one that says something it is named all the same: 14.34 about 3.33 - 20
    both = verdict(with_scores(report, scores[0], score("human", 20.0, 20.0, 20.0), scores[1]))
    assert both.certainty.endswith("difference: human -31.01 to -2.32 m, sparse too wide to say")
    # what the task calls solved belongs to the metric's range
    solved = replace(
        report, description=report.description.model_copy(update={"success_fitness": 50.0})
    )
    assert "sparse -12.01 to 16.68" in verdict(with_scores(solved, *scores)).certainty
    # one that does not hold 0 says something, however wide: margin 4.302653 x 5/3 = 7.1711 about
    # 10.6667
    far = verdict(
        with_scores(report, score("2-01", 10.0, 10.0, 15.0), score("sparse", 1.0, 1.0, 1.0))
    )
    assert "sparse 3.50 to 17.84" in far.certainty


def test_a_human_normalised_score_of_noise_is_left_out(report: RunReport) -> None:
    best = score("2-01", 9.0, 9.1, 9.2)
    noise = with_scores(report, best, score("human", 1.0, 2.0, 3.0), score("sparse", 0.0, 2.0, 3.0))
    assert "human-normalised" not in verdict(noise).against
    known = best.model_copy(update={"human_normalized": 9.1})
    below = with_scores(
        report, known, score("human", 0.0, 0.1, 0.2), score("sparse", 1.0, 1.1, 1.2)
    )
    assert verdict(below).against.endswith("the human reward is below the sparse one here")


def test_rewards_without_any_spread_are_compared_without_an_interval(report: RunReport) -> None:
    report = alone(report)
    equal = verdict(
        with_scores(report, score("2-01", 10.0, 10.0, 10.0), score("sparse", 10.0, 10.0, 10.0))
    )
    assert equal.against == "exactly as good as sparse (10.00 m)"
    higher = verdict(
        with_scores(report, score("2-01", 10.0, 10.0, 10.0), score("sparse", 4.0, 4.0, 4.0))
    )
    assert higher.certainty == "95 % interval of the difference: sparse 6.00 m from every seed"


def test_the_interval_of_a_chosen_reward_has_its_own_noise_and_the_baseline_s() -> None:
    # 400 scores of 4 and 6, so the mean of 5 is known to 0.05; the baseline's of 2 to sqrt(1/3) =
    # 0.577, times Student's 4.303 of two degrees of freedom: 3 ± 2.48
    found = posterior([[4.0, 6.0] * 200, [-1.0, 1.0] * 200])
    wide = lead(found, 0, [1.0, 2.0, 3.0])
    assert wide.difference == pytest.approx(3.0, abs=0.01)
    assert (wide.low, wide.high) == pytest.approx((0.52, 5.48), abs=0.4)
    # a baseline without noise: 3 ± 1.96 x 0.05
    narrow = lead(found, 0, [2.0, 2.0, 2.0])
    assert (narrow.low, narrow.high) == pytest.approx((2.9, 3.1), abs=0.02)


def test_luck_among_many_rewards_is_taken_from_a_lead(
    report: RunReport, attempt: Callable[..., Attempt]
) -> None:
    # fifteen others from 0 to 1.4, and a best of three seeds around 2: what is expected of it lies
    # between its own mean and theirs, so its lead over the sparse reward's 1 is below 1
    others = [attempt(f"1-{place:02}", Stage.TRAINED, place / 10) for place in range(15)]
    assert report.best is not None
    many = replace(report, attempts=(*others, report.best))
    ours, sparse = score("2-01", 1.0, 2.0, 3.0), score("sparse", 1.0, 1.0, 1.0)
    found = lead_of_best(with_scores(many, ours, sparse), sparse)
    assert found is not None
    assert 0.0 < found.difference < 1.0
    # from two seeds of either there is none
    assert lead_of_best(with_scores(many, score("2-01", 2.0, 2.1), sparse), sparse) is None


def test_finalists_that_came_to_the_same_are_told_so(
    report: RunReport, attempt: Callable[..., Attempt]
) -> None:
    """A probability of 33 % would say that two others are likely to be better."""
    best, level, lower = (
        attempt(name, Stage.TRAINED, fitness)
        for name, fitness in (("2-01", 10.0), ("1-01", 10.0), ("1-02", 4.0))
    )
    same = replace(
        report, attempts=(best, level, lower), best=best, chosen=("2-01", "1-01", "1-02")
    )
    certainty = verdict(with_scores(same, score("2-01", 10.0, 10.0, 10.0))).certainty
    assert certainty.startswith(
        "no better than 1-01: the same fitness from every seed (further seeds may be expected to"
    )
    assert "probability" not in certainty
    below = verdict(with_scores(same, score("2-01", 10.0, 10.0, 9.9))).certainty
    assert "no better than" not in below
    assert "the best of its 3 finalists with a probability of" in below


def test_the_luck_of_a_choice_is_told(report: RunReport) -> None:
    # means 11/3 and 3, both with seeds that differ by far more
    crossing = with_scores(
        report,
        score("2-01", 9.0, 1.0, 1.0),
        score("1-01", 0.0, 5.0, 4.0),
        score("sparse", 0.0, 0.1, 0.2),
    )
    found = belief_in_best(crossing)
    assert found is not None
    assert 0.5 < found.chance < 0.7
    assert 3.0 < found.expected < 11 / 3
    said = f"the best of its 2 finalists with a probability of {found.chance:.0%}"
    further = f"(further seeds may be expected to give {found.expected:.2f} m)"
    assert (
        f"{said} {further}; another hour of search (374 more rewards) "
        in verdict(crossing).certainty
    )
    apart = with_scores(report, score("2-01", 9.0, 9.1, 8.9), score("1-01", 1.0, 1.1, 0.9))
    sure = belief_in_best(apart)
    assert sure is not None
    assert sure.chance > 0.95


def test_what_another_hour_buys_ends_at_the_fitness_of_a_solved_task(report: RunReport) -> None:
    apart = with_scores(report, score("2-01", 6.0, 6.4, 5.8), score("1-01", 1.0, 1.1, 0.9))
    free = belief_in_best(apart)
    assert free is not None
    assert free.more == round(3600 * apart.cost.trainings / apart.seconds)
    assert free.gain > 0.1
    sees = apart.settings.model_copy(update={"design": "observation"})
    told = verdict(replace(apart, settings=sees)).certainty
    assert f"another hour of search ({free.more:,} more observations)" in told
    description = report.description.model_copy(update={"success_fitness": free.expected + 0.1})
    bounded = belief_in_best(replace(apart, description=description))
    assert bounded is not None
    assert bounded.gain == pytest.approx(0.1)
    solved = report.description.model_copy(update={"success_fitness": 4.0})
    assert verdict(replace(apart, description=solved)).certainty.endswith("gain nothing")


def test_a_failed_final_training_counts_as_the_worst(report: RunReport) -> None:
    shorter = with_scores(report, score("2-01", 5.0, 5.2, 5.1), score("1-01", 5.2, 5.1))
    failed = with_scores(report, score("2-01", 5.0, 5.2, 5.1), score("1-01", 5.2, 5.1, None))
    without, counted = belief_in_best(shorter), belief_in_best(failed)
    assert without is not None
    assert counted is not None
    assert counted.chance > without.chance + 0.1


def test_a_task_that_every_reward_solves_is_said_to_be_too_easy(report: RunReport) -> None:
    def next_of(
        ours: tuple[float, ...], theirs: tuple[float, ...], solved: float | None = None
    ) -> tuple[str, str]:
        description = report.description.model_copy(update={"success_fitness": solved})
        given = replace(
            alone(report),
            description=description,
            command=("eureka", "search", "jump high", "--env-steps", "1000", "--env", "jumper"),
        )
        found = verdict(with_scores(given, score("2-01", *ours), score("sparse", *theirs)))
        return found.advice, found.command

    # the fixture's trainings have 1000 env steps
    less = "eureka search 'jump high' --env jumper --env-steps 250"
    advice, command = next_of((10.0, 10.0, 10.0), (10.0, 10.0, 10.0))
    assert advice.startswith("the task is too easy to tell rewards apart")
    assert "`eureka envs jumper`" in advice
    assert command == less
    # 0.04 apart, within the noise, and all of them solved: more seeds would not tell more
    assert next_of((10.0, 10.0, 10.0), (9.9, 10.0, 9.98), 9.5)[1] == less
    assert next_of((10.0, 10.0, 10.0), (9.9, 10.0, 9.98), 9.95)[1] != less
    # the same everywhere, and far from solved, or nothing learned at all
    assert next_of((2.0, 2.0, 2.0), (2.0, 2.0, 2.0), 9.5)[1] == f"eureka show {FOLDER} 2-01"
    assert next_of((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))[1] == f"eureka show {FOLDER} 2-01"


def test_a_persons_own_reward_is_called_theirs(report: RunReport) -> None:
    assert report.best is not None
    given = report.best.proposal.model_copy(update={"reasoning": "Taken from reward.py."})
    best = report.best.model_copy(update={"proposal": given})
    own = with_scores(
        replace(report, designer="given", attempts=(best,), best=best),
        score("2-01", 3.0, 4.0, 5.0),
        score("sparse", 1.0, 1.1, 0.9),
    )
    assert verdict(own).best.startswith("your reward (attempt 2-01): fitness 4.00 ± 1.00 m")
    text = markdown(own)
    assert "## Your reward function" in text
    assert "| **2-01 (yours)** | 4.00 ± 1.00 |" in text
    assert "Taken from reward.py." in text
    for wrong in ("partly luck", "designer's reasoning", "best attempt", "Fitness per iteration"):
        assert wrong not in text
    searched = with_scores(report, score("2-01", 3.0, 4.0, 5.0), score("1-01", 1.0, 1.0, 1.0))
    assert "partly luck" in markdown(searched)
    assert "fewer seeds could hardly win" not in markdown(searched)
    fewer = with_scores(report, score("2-01", 3.0, 4.0, 5.0), score("1-01", 1.0))
    assert "fewer seeds could hardly win" in markdown(fewer)
    assert "partly luck" not in markdown(with_scores(report, score("2-01", 3.0, 4.0, 5.0)))


def test_a_search_without_final_trainings_warns_of_luck(
    report: RunReport, confirm: Callable[..., Attempt]
) -> None:
    found = verdict(replace(report, scores=()))
    assert found.best == "attempt 2-01 (improve): fitness 2.50 m in the search, over 1 seed"
    assert found.against == "nothing: no baseline was trained"
    assert "favours luck" in found.certainty
    assert report.best is not None
    again = replace(report, scores=(), best=confirm(report.best, 3.5))
    assert verdict(again).best.endswith("fitness 3.00 m in the search, over 2 seeds")


def test_a_run_in_which_nothing_trained(report: RunReport) -> None:
    found = verdict(
        replace(
            report,
            scores=(),
            best=None,
            status=RunStatus.FAILED,
            message="every proposal failed.\n hint",
        )
    )
    # the fixture's five attempts: one rejected, one failed, three that this run pretends not to
    # have
    assert (
        found.best
        == "no reward function was trained to an end: of 5 attempts, 1 rejected by the critic, 1"
        " failed in training, 3 not done"
    )
    assert (found.advice, found.command) == (
        "the run is failed: every proposal failed; go on",
        f"eureka resume {FOLDER}",
    )


def test_a_run_that_is_under_way_is_not_said_to_be_resumable(report: RunReport) -> None:
    found = verdict(replace(report, status=RunStatus.RUNNING))
    assert "being worked on right now" in found.advice
    assert found.command == f"eureka show {FOLDER}"


@pytest.mark.parametrize("render", [render_run, render_end])
def test_the_command_is_one_line_to_paste_however_narrow_the_terminal(
    report: RunReport, render: Callable[[RunReport], RenderableType]
) -> None:
    folder = Path("my runs") / ("x" * 100)
    console = CleanConsole(file=StringIO(), width=40)
    console.print(render(replace(report, status=RunStatus.STOPPED, folder=folder)))
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    (line,) = [line for line in lines if line.startswith("eureka resume")]
    assert shlex.split(line) == ["eureka", "resume", str(folder)]


def test_a_missing_comparison_with_the_human_reward_has_its_reason(report: RunReport) -> None:
    def reason(**changes: object) -> str:
        return why_not_normalized(replace(report, **changes))  # type: ignore[arg-type]

    alike = tuple(each.model_copy(update={"human_normalized": None}) for each in report.scores)
    without_human = report.description.model_copy(update={"human_reward": None})
    off = report.settings.model_copy(update={"baselines": False})
    assert reason() == ""
    assert reason(scores=alike) == "human ≈ sparse"
    assert reason(scores=alike[:1]) == "not trained"
    assert reason(scores=alike[1:]) == "no finals"
    assert reason(scores=(), best=None) == "nothing trained"
    assert reason(scores=(), best=None, status=RunStatus.STOPPED) == "not finished"
    assert reason(scores=alike[:1], settings=off) == "baselines are off"
    assert reason(scores=alike[:1], description=without_human) == "no human reward"


def _ended(name: str, seed: int, **ended_by: int) -> FinalTraining:
    outcome = make_outcome(0.0).model_copy(update={"ended_by": ended_by})
    return FinalTraining(name=name, seed=seed, outcome=outcome)


@pytest.mark.parametrize(
    ("endings", "said"),
    [
        (({"torso_low": 60, "time_out": 4}, {"torso_low": 30, "tilted": 34}), True),
        (({"torso_low": 20, "time_out": 44}, {"torso_low": 44, "time_out": 20}), False),  # half
    ],
)
def test_a_human_reward_that_ends_its_episodes_early_is_explained(
    report: RunReport, endings: tuple[dict[str, int], ...], said: bool
) -> None:
    trainings = tuple(_ended("human", seed, **ended) for seed, ended in enumerate(endings))
    scores = score("2-01", 9.0, 9.1, 9.2), score("human", 0.0, 0.1), score("sparse", 1, 1.1, 1.2)
    found = verdict(replace(with_scores(report, *scores), final_trainings=trainings))
    told = "124 of the human reward's 128 episodes ended early, by torso_low"
    assert (told in found.against) is said
    below = with_scores(report, score("2-01", 0.0, 0.0, 0.1), score("human", 1.0, 1.1))
    assert "ended early" not in verdict(replace(below, final_trainings=trainings)).against


def test_a_search_whose_rewards_all_come_to_the_same_says_what_could_help(
    report: RunReport,
) -> None:
    why = "the 8 trainings of 8 rewards all ended at a fitness of 0"
    alike = replace(report, scores=(score("human", 3.0, 3.2),), no_finals=why)
    found = verdict(alike)
    assert found.against == f"nothing: {why}; human 3.10 ± 0.14 m"
    assert found.certainty == "none: all attempts came to the same fitness, so none is the best"
    assert "start states nearer to what is paid for" in found.advice
    assert "--env-steps" in found.command
    assert "another observation" not in found.advice
    designed = alike.settings.model_copy(update={"design": "both"})
    assert "another observation" in verdict(replace(alike, settings=designed)).advice
