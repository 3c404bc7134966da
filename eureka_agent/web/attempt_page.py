"""Pages of one attempt, and of a few side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from eureka_agent import wording
from eureka_agent.archive.artefacts import CURVES, VIDEO, attempt_folder
from eureka_agent.archive.safe_files import inside
from eureka_agent.errors import RunFolderError
from eureka_agent.records import Attempt, CurvePoint, Message
from eureka_agent.report.attempt_page import outcome_words, training_lines
from eureka_agent.report.curves import read_curves_csv
from eureka_agent.report.html.charts import Chart, Curve, Trainings, figure, learning_curves
from eureka_agent.report.html.source import difference_to_parent
from eureka_agent.report.run_report import RunReport
from eureka_agent.web.rendering import code_lines, render, videos_in, without_line
from eureka_agent.web.run_page import address, video_command

MOST_CURVE_BYTES = 4 << 20
MOST_COMPARED = 4
"""Attempts side by side."""
MOST_COMPONENTS = 16
"""Components of a reward in one chart."""
MOST_EPISODES = 100
"""Episodes in the table."""
MOST_MESSAGES = 30
"""Requests on one page."""


@dataclass(frozen=True)
class Shown:
    """All that is known of an attempt, read from the run."""

    attempt: Attempt
    parents: Mapping[str, Attempt]
    """Parents that the run has, by id."""
    messages: tuple[Message, ...]
    points: tuple[CurvePoint, ...]
    curves_fault: str
    """Why its curves cannot be read."""
    videos: tuple[str, ...]


def read_points(folder: Path, attempt: str) -> tuple[tuple[CurvePoint, ...], str]:
    """Curve of an attempt's first training, and why there is none."""
    try:
        file = inside(attempt_folder(folder, attempt), CURVES)
        if not file.is_file():
            return (), ""
        if file.stat().st_size > MOST_CURVE_BYTES:
            return (), f"{CURVES} has more than {MOST_CURVE_BYTES:,} bytes"
        return read_curves_csv(file), ""
    except RunFolderError as error:
        return (), error.message


def curve_charts(points: Sequence[CurvePoint], unit_note: str) -> list[Markup]:
    """Figures of fitness, components and episode length over a training."""
    steps = tuple(point.env_steps for point in points)

    def lines(named: Mapping[str, Sequence[float | None]], label: str) -> Chart | None:
        chart = learning_curves(
            [
                Trainings(
                    name, "best" if name == "reward" else "attempt", (Curve(steps, tuple(v)),)
                )
                for name, v in named.items()
            ],
            unit_note,
        )
        if chart is not None:
            chart["y"] = {"label": label}
        return chart

    names = list(dict.fromkeys(name for point in points for name in point.components))
    components = {
        name: [point.components.get(name) for point in points] for name in names[:MOST_COMPONENTS]
    }
    lengths = {"episode length": [point.episode_length for point in points]}
    return [
        figure(
            lines({"fitness": [point.fitness for point in points]}, f"fitness{unit_note}"),
            "Fitness over the training",
            "With exploration noise, as the training sees it.",
        ),
        figure(
            lines({"reward": [point.reward for point in points], **components}, "mean per step"),
            "Reward and its components",
            "Mean per step of the whole reward and of each of its parts.",
        ),
        figure(lines(lengths, "control steps"), "Episode length"),
    ]


def attempt_page(report: RunReport, shown: Shown) -> str:
    """The page of an attempt."""
    attempt, run = shown.attempt, address(report.run_name)
    findings = attempt.verdict.findings if attempt.verdict is not None else ()
    lines = code_lines(attempt.proposal.reward.source, findings)
    names = [each.id for each in report.attempts]
    place = names.index(attempt.id) if attempt.id in names else None
    evaluation = next(
        (score.evaluation for score in reversed(attempt.rungs) if score.evaluation is not None),
        None,
    )
    return render(
        "attempt.html",
        title=f"attempt {attempt.id}",
        report=report,
        run=run,
        attempt=attempt,
        outcome=outcome_words(attempt, report.settings.env_steps),
        trainings=training_lines(attempt) if attempt.repeats else [],
        lines=lines if attempt.proposal.reward.source.strip() else [],
        elsewhere=without_line(findings, lines),
        differences=differences(attempt, shown.parents),
        charts=curve_charts(shown.points, report.unit_note),
        curves_fault=shown.curves_fault,
        evaluation=evaluation,
        most_episodes=MOST_EPISODES,
        messages=shown.messages[:MOST_MESSAGES],
        more_messages=max(0, len(shown.messages) - MOST_MESSAGES),
        videos=shown.videos,
        making=video_command(report, attempt.id),
        before=names[place - 1] if place else None,
        after=names[place + 1] if place is not None and place + 1 < len(names) else None,
    )


def differences(attempt: Attempt, parents: Mapping[str, Attempt]) -> dict[str, Markup]:
    """Difference of the source to each parent's, by the parent's id."""
    after = wording.without_trailing_comments(attempt.proposal.reward.source)
    return {
        name: difference_to_parent(
            wording.without_trailing_comments(parent.proposal.reward.source), after
        )
        for name, parent in parents.items()
    }


def read_shown(
    folder: Path, attempt: Attempt, parents: Mapping[str, Attempt], messages: tuple[Message, ...]
) -> Shown:
    """An attempt with its files."""
    points, fault = read_points(folder, attempt.id)
    try:
        videos = videos_in(folder, attempt.id)
    except RunFolderError:
        videos = ()
    return Shown(attempt, parents, messages, points, fault, videos)


def compare_page(report: RunReport, shown: Sequence[Shown]) -> str:
    """The page of two to four attempts side by side; differences are to the first."""
    first = shown[0].attempt
    return render(
        "compare.html",
        title="compare " + ", ".join(each.attempt.id for each in shown),
        report=report,
        run=address(report.run_name),
        shown=shown,
        scores={each.attempt.id: report.score(each.attempt.id) for each in shown},
        differences={
            each.attempt.id: differences(each.attempt, {first.id: first}) for each in shown[1:]
        },
        sources={
            each.attempt.id: code_lines(each.attempt.proposal.reward.source, ()) for each in shown
        },
        chart=_curves_compared(report, shown),
        video=VIDEO,
        with_videos=sum(VIDEO in each.videos for each in shown),
        plus_minus=wording.plus_minus,
    )


def _curves_compared(report: RunReport, shown: Sequence[Shown]) -> Markup:
    trainings = [
        Trainings(
            each.attempt.id,
            "attempt",
            (
                Curve(
                    tuple(point.env_steps for point in each.points),
                    tuple(point.fitness for point in each.points),
                ),
            ),
        )
        for each in shown
        if each.points
    ]
    chart = learning_curves(trainings, report.unit_note)
    return figure(chart, "Fitness over the training", "First training of each, with noise.")
