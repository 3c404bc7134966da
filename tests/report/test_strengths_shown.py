"""Views sort by strengths where these rank the attempts, and show them as what they are."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console, RenderableType
from told import Story, ended, judged, proposed, started

from eureka_agent.analysis.standing import Agreement, preferences_of, with_strengths
from eureka_agent.feedback_records import Comparison, Feedback, Given, Judge, Judgement, Withdrawal
from eureka_agent.journal.entries import FeedbackGiven
from eureka_agent.records import Attempt, TaskDescription
from eureka_agent.report.as_json import best_to_json, to_json
from eureka_agent.report.attempt_page import attempt_document, render_attempt
from eureka_agent.report.html.document import html_report
from eureka_agent.report.markdown import markdown
from eureka_agent.report.progress import leaderboard
from eureka_agent.report.run_report import ByModel, ByStrength, RunReport
from eureka_agent.report.tables import render_run
from eureka_agent.report.verdict import verdict
from eureka_agent.settings import SearchSettings
from eureka_agent.web.run_page import run_page

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
        by_model=ByModel("openai/eye", 3, Agreement(6, 8), ("it stands", "<b>it jumps")),
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
        "report.html": html_report(strong),
        "page": run_page(strong),
    }
    for place, text in shown.items():
        assert best in text, place
        assert words(strong, "1-01") in text, place
        assert "strength" in text, place
        assert "it agrees with your choices in 6 of 8" in text, place
        goals = "by the sub-goals (1) it stands; (2) <b>it jumps; it agrees"
        plain = html.unescape(text).replace("\\", "")  # without what the formats escape
        assert goals in plain, place
        assert ORIGIN in text.lower(), place
        for number in ("0.500", "1.50", "2.50"):  # what the metric would have said
            assert f" {number} " not in text, place
            assert f">{number}<" not in text, place
        assert "Fitness per iteration" not in text, place
    assert f"strength {best}, judged by openai/eye in 3 comparisons" in verdict(strong).best
    assert "if the model sees what you would see" in verdict(strong).certainty
    assert strong.best is not None
    alone = printed(render_attempt(attempt_document(strong.best, 1000)))
    assert f"strength {best}, judged by a model from pictures" in alone


def test_json_tells_both_apart(strong: RunReport, report: RunReport) -> None:
    document = to_json(strong)
    one = next(each for each in document["attempts"] if each["id"] == "2-02")
    assert one["fitness"] == 0.5
    assert one["strength"]["by"] == "model"
    assert one["strength"]["mean"] > 0.0
    assert document["judge"]["sub_goals"] == ("it stands", "<b>it jumps")
    assert document["judge"]["agreement"] == {"agreed": 6, "pairs": 8}
    assert best_to_json(strong)["strength"] == one["strength"]  # type: ignore[index]
    assert to_json(report)["judge"] is None
    assert {each["strength"] for each in to_json(report)["attempts"]} == {None}


def said(feedback: Feedback) -> FeedbackGiven:
    return FeedbackGiven(who="openai/eye", feedback=feedback)


@pytest.fixture
def story(
    report: RunReport, description: TaskDescription, attempt: Callable[..., Attempt]
) -> Story:
    """The report's run, whose attempts a model compares."""
    story = Story(attempt)
    story.tell(said(Judge(by="model")), started(description, SETTINGS))
    return story


def tell_attempts(story: Story, report: RunReport) -> None:
    for each in report.attempts:
        if each.outcome is not None:
            story.tell(proposed(each), judged(each), ended(each))


def test_the_live_view_follows_what_is_said(report: RunReport, story: Story) -> None:
    tell_attempts(story, report)
    story.tell(said(EYE))
    assert [each.id for each in leaderboard(story.state)] == ["2-02", "1-01", "2-01"]
    board = "\n".join(story.picture(120, 40)).partition("leaderboard")[2]
    assert board.index("strength") < board.index("2-02") < board.index("1-01")
    assert words(report, "2-02") in board
    story.tell(said(Withdrawal(of=story.entries[-1].number)))
    assert {each.strength.mean for each in leaderboard(story.state) if each.strength} == {0.0}
    story.tell(said(Judge(by="fitness")))
    assert [each.id for each in leaderboard(story.state)] == ["2-01", "1-01", "2-02"]
