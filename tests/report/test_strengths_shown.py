"""Views sort by strengths where these rank the attempts, and show them as what they are."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console, RenderableType
from told import ended, judged, proposed

from eureka_agent.feedback.agreement import Agreement
from eureka_agent.feedback.standing import preferences_of, with_strengths
from eureka_agent.feedback_records import Comparison, Feedback, Given, Judge, Judgement, Withdrawal
from eureka_agent.journal.entries import FeedbackGiven, IterationEnded, RunStarted
from eureka_agent.records import TaskDescription
from eureka_agent.report.as_json import best_to_json, to_json
from eureka_agent.report.attempt_page import render_attempt
from eureka_agent.report.html.document import html_report
from eureka_agent.report.markdown import markdown
from eureka_agent.report.panels import search_lines
from eureka_agent.report.plain import PlainLog
from eureka_agent.report.run_report import ByModel, ByStrength, RunReport
from eureka_agent.report.state import SearchView
from eureka_agent.report.tables import render_run, render_runs
from eureka_agent.report.verdict import verdict
from eureka_agent.settings import SearchSettings
from eureka_agent.web.run_page import rows_of, run_page

# by fitness 2-01 is first, then 1-01; by the model 2-02, then 1-01
EYE = Judgement(
    comparisons=(
        Comparison(first="2-02", second="2-01", grade=1),
        Comparison(first="2-02", second="1-01", grade=1),
        Comparison(first="2-01", second="1-01", grade=-1),
    )
)
SETTINGS = SearchSettings(
    env="jumper", fitness="judged", model=("openai/eye",), iterations=2, samples=3, env_steps=1000
)
ORIGIN = "no metric is calculated, strengths are judged by openai/eye from pictures"


def given(number: int, feedback: Feedback) -> Given:
    return Given(number=number, time="", who="openai/eye", feedback=feedback)


FEEDBACK = (given(1, Judge(by="model")), given(2, EYE))


@pytest.fixture
def strong(report: RunReport) -> RunReport:
    attempts = with_strengths(report.attempts, FEEDBACK)
    best = attempts[4]
    assert best.strength is not None
    return replace(
        report,
        settings=SETTINGS,
        attempts=attempts,
        scores=(),
        best=best,
        by_strength=ByStrength("model", 3, best.strength.mean, best.strength.deviation, 0.7),
        by_model=ByModel("openai/eye", 3, Agreement(6, 8)),
        fitness_origin=ORIGIN,
    )


def words(report: RunReport, name: str) -> str:
    mean, deviation = preferences_of(report.attempts, FEEDBACK, "model").strength(name)
    return f"{mean:+.2f} ± {deviation:.2f}"


def printed(renderable: RenderableType) -> str:
    console = Console(file=StringIO(), width=160)
    console.print(renderable)
    return " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]


def test_reports_show_strengths_and_no_fitness(strong: RunReport) -> None:
    best = words(strong, "2-02")
    shown = {
        "show": printed(render_run(strong)),
        "report.md": markdown(strong),
        "report.html": "".join(html_report(strong)),
        "page": run_page(strong),
    }
    for place, text in shown.items():
        assert best in text, place
        assert words(strong, "1-01") in text, place
        assert "strength" in text, place
        assert "it agrees with your choices in 6 of 8" in text, place
        assert ORIGIN in text.lower(), place
        for number in ("0.500", "1.50", "2.50"):  # what the metric would have said
            assert f" {number} " not in text, place
            assert f">{number}<" not in text, place
        assert "Fitness per iteration" not in text, place
    assert f"strength {best}, judged by openai/eye in 3 comparisons" in verdict(strong).best
    assert "if the model sees what you would see" in verdict(strong).certainty
    assert strong.best is not None
    alone = printed(render_attempt(strong.best, 1000))
    assert f"strength {best}, judged by a model from pictures" in alone


def test_lists_of_runs_mark_what_is_no_fitness(strong: RunReport, report: RunReport) -> None:
    listed = printed(render_runs([report, strong]))
    assert f"{words(strong, '2-02')} ~" in listed
    assert "2.50 ± 0.50 ~" not in listed
    assert "~ no fitness, but a strength" in listed
    unjudged = replace(strong, best=None, by_strength=None)
    assert "– ~" in printed(render_runs([unjudged]))


def test_tables_are_in_the_order_of_strengths(strong: RunReport, report: RunReport) -> None:
    assert [row.attempt.id for row in rows_of(strong, "best")][:3] == ["2-02", "1-01", "2-01"]
    assert [row.attempt.id for row in rows_of(report, "best")][:3] == ["2-01", "1-01", "2-02"]


def test_json_tells_both_apart(strong: RunReport, report: RunReport) -> None:
    document = to_json(strong)
    one = next(each for each in document["attempts"] if each["id"] == "2-02")
    assert one["fitness"] == 0.5
    assert one["strength"]["by"] == "model"
    assert one["strength"]["mean"] > 0.0
    assert document["judge"]["agreement"] == {"agreed": 6, "pairs": 8}
    assert best_to_json(strong)["strength"] == one["strength"]  # type: ignore[index]
    assert to_json(report)["judge"] is None
    assert {each["strength"] for each in to_json(report)["attempts"]} == {None}


def told(number: int, feedback: Feedback) -> FeedbackGiven:
    return FeedbackGiven(who="openai/eye", feedback=feedback, number=number)


def started(description: TaskDescription, feedback: tuple[Given, ...] = ()) -> RunStarted:
    return RunStarted(
        run_folder=Path("runs/jumper"),
        run_name="20261121-035500_jumper_jump",
        description=description,
        sentence="jump",
        settings=SETTINGS,
        wall="process",
        designer="openai/tiny",
        feedback=feedback,
    )


@pytest.mark.parametrize("before", [True, False])
def test_the_live_view_follows_what_is_said(
    report: RunReport, description: TaskDescription, before: bool
) -> None:
    view = SearchView()
    # of the process itself it comes with the start, of another one's journal before it
    if not before:
        view.apply(told(1, Judge(by="model")), 0.0)
    view.apply(started(description, FEEDBACK[:1] if before else ()), 0.0)
    for each in report.attempts:
        if each.outcome is not None:
            for entry in (proposed(each), judged(each), ended(each)):
                view.apply(entry, 0.0)
    view.apply(told(2, EYE), 0.0)
    assert [each.id for each in view.attempts.leaderboard] == ["2-02", "1-01", "2-01"]
    text = "\n".join("".join(part for part, _ in line) for line in search_lines(view, 1.0, 120, 40))
    board = text.partition("leaderboard")[2]
    assert board.index("strength") < board.index("2-02") < board.index("1-01")
    assert words(report, "2-02") in board
    view.apply(told(3, Withdrawal(of=2)), 0.0)
    assert {each.strength.mean for each in view.attempts.leaderboard if each.strength} == {0.0}
    view.apply(told(4, Judge(by="fitness")), 0.0)
    assert [each.id for each in view.attempts.leaderboard] == ["2-01", "1-01", "2-02"]


def test_the_log_tells_judgements_and_no_fitness(
    report: RunReport, description: TaskDescription
) -> None:
    output = StringIO()
    log = PlainLog(Console(file=output, width=160), lambda: 0.0)
    log(started(description, FEEDBACK[:1]))
    for each in report.attempts:
        if each.outcome is not None:
            for entry in (proposed(each), judged(each), ended(each)):
                log(entry)
    log(told(2, EYE))
    log(IterationEnded(iteration=1, best="2-02"))
    text = " ".join(output.getvalue().split())
    assert "2-02 trained (different)" in text
    assert "openai/eye compares pictures: 2-02 is better than 2-01" in text
    assert f"best so far is 2-02 with strength {words(report, '2-02')}" in text
