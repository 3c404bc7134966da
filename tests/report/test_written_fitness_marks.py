"""A reader of scores is told once whose measure they are, if it is not the task's own."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console, RenderableType

from eureka_agent.records import RunStatus, WrittenFitness
from eureka_agent.report.attempt_page import attempt_document, render_attempt
from eureka_agent.report.markdown import markdown
from eureka_agent.report.run_report import RunReport
from eureka_agent.report.tables import render_end, render_run, render_runs
from eureka_agent.report.verdict import verdict
from eureka_agent.settings import SearchSettings

ORIGIN = "fitness written by openai/tiny, accepted by a person at the start"
FITNESS = WrittenFitness(
    sentence="jump as high as you can",
    source="def compute_reward(height):\n    return height, {'height': height}\n",
    doc="highest point of the foot",
    unit="m",
    reduction="max",
    success_fitness=1.25,
    author="openai/tiny",
    reasoning="Height is height.",
)


@pytest.fixture
def written(report: RunReport) -> RunReport:
    """The same run by a written fitness: its scores are the same, and it has no human baseline."""
    description = report.description.model_copy(
        update={"fitness_author": "openai/tiny", "human_reward": None}
    )
    scores = tuple(
        score.model_copy(update={"human_normalized": None})
        for score in report.scores
        if score.name != "human"
    )
    return replace(
        report,
        description=description,
        scores=scores,
        written_fitness=FITNESS,
        fitness_origin=ORIGIN,
    )


def printed(renderable: RenderableType) -> str:
    console = Console(file=StringIO(), width=120)
    console.print(renderable)
    return " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]


def test_every_report_says_it_once_and_others_never(report: RunReport, written: RunReport) -> None:
    assert written.best is not None
    for say in (
        lambda run: markdown(run),
        lambda run: printed(render_run(run)),
        lambda run: printed(render_end(run)),
        lambda run: printed(
            render_attempt(attempt_document(run.best, 1000, fitness_origin=run.fitness_origin))
        ),
    ):
        assert say(written).lower().count(ORIGIN) == 1
        assert "fitness written by" not in say(report).lower()


def test_a_report_begins_with_whose_metric_it_is(report: RunReport, written: RunReport) -> None:
    begin = (
        "Fitness written by openai/tiny, accepted by a person at the start: highest point of the"
        " foot."
    )
    stopped = replace(written, attempts=(), scores=(), best=None, status=RunStatus.STOPPED)
    for run in (written, stopped):
        assert begin in [line for line in markdown(run).splitlines() if line][1]
        assert begin in printed(render_run(run))
        assert "The scores hold for that fitness only" in printed(render_run(run))
        assert "own words" not in markdown(run)  # it measures the person's
    assert "human" not in verdict(written).against
    assert "own task 'jump'" in markdown(report)


def test_the_report_shows_the_fitness_itself(report: RunReport, written: RunReport) -> None:
    text = markdown(written)
    assert f"```python\n{FITNESS.source}```" in text
    assert text.index("## The written fitness") < text.index("## Scores")
    for part in (
        "- **measures**: highest point of the foot",
        "best step of an episode",
        "- **solved**: from 1.25 m on",
        "> Height",
    ):
        assert part in text
    assert "The written fitness" not in markdown(report)
    assert (
        "--fitness written"
        in replace(written, command=(), settings=SearchSettings(fitness="written")).command_line()
    )


def test_the_list_of_runs_marks_what_cannot_be_compared(
    report: RunReport, written: RunReport
) -> None:
    listed = printed(render_runs([report, written]))
    assert listed.count("2.50 ± 0.50 m *") == 1
    assert listed.count("2.50 ± 0.50") == 2
    assert "* by a fitness that a language model wrote for that run" in listed
    assert "*" not in printed(render_runs([report]))
