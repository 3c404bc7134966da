"""Pages of one attempt, and of a few side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from eureka_agent import wording
from eureka_agent.archive.artefacts import CURVES, VIDEO, attempt_folder
from eureka_agent.archive.run_folder import Run
from eureka_agent.archive.safe_files import inside
from eureka_agent.errors import RunFolderError
from eureka_agent.records import Attempt, CurvePoint, Message
from eureka_agent.report.attempt_page import attempt_document, source_difference
from eureka_agent.report.curves import read_curves_csv
from eureka_agent.report.html.charts import Curve, PlottedTrainings, figure, learning_curves
from eureka_agent.report.html.document import blocks_html, section_html
from eureka_agent.report.run_report import RunReport
from eureka_agent.search.summary import attempt_of
from eureka_agent.web.rendering import code_lines, render, videos_in, without_line
from eureka_agent.web.run_page import address, video_command

MOST_CURVE_BYTES = 4 << 20
MOST_COMPARED = 4
"""Attempts side by side."""


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


def read_shown(run: Run, name: str) -> Shown | None:
    """An attempt with its files; None where the run lacks it."""
    if (attempt := attempt_of(run, name)) is None:
        return None
    parents = {each: attempt_of(run, each) for each in attempt.proposal.parents}
    known = {each: found for each, found in parents.items() if found is not None}
    read = run.archive.messages_of(name), *_read_points(run.folder, name)
    return Shown(attempt, known, *read, videos_in(run.folder, name))


def _read_points(folder: Path, attempt: str) -> tuple[tuple[CurvePoint, ...], str]:
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


def attempt_page(report: RunReport, shown: Shown) -> str:
    """The page of an attempt."""
    attempt = shown.attempt
    document = attempt_document(
        attempt,
        report.settings.env_steps,
        shown.points,
        unit_note=report.unit_note,
        parents=shown.parents,
        messages=shown.messages,
    )
    findings = attempt.verdict.findings if attempt.verdict is not None else ()
    source = attempt.proposal.reward.source
    lines = code_lines(source, findings)
    names = [each.id for each in report.all_attempts]
    place = names.index(attempt.id) if attempt.id in names else None
    return render(
        "attempt.html",
        title=f"attempt {attempt.id}",
        report=report,
        run=address(report.run_name),
        attempt=attempt,
        head=blocks_html(document.head),
        part={each.name: section_html(each) for each in document.sections},
        lines=lines if source.strip() else [],
        elsewhere=without_line(findings, lines),
        curves_fault=shown.curves_fault,
        videos=shown.videos,
        making=video_command(report, attempt.id),
        before=names[place - 1] if place else None,
        after=names[place + 1] if place is not None and place + 1 < len(names) else None,
    )


def compare_page(report: RunReport, shown: Sequence[Shown]) -> str:
    """The page of two to four attempts side by side; differences are to the first."""
    first = shown[0].attempt
    attempts = [each.attempt for each in shown]
    return render(
        "compare.html",
        title="compare " + ", ".join(each.id for each in attempts),
        report=report,
        run=address(report.run_name),
        shown=shown,
        first=first.id,
        scores={each.id: report.score(each.id) for each in attempts},
        differences={each.id: source_difference(first, each) for each in attempts[1:]},
        sources={each.id: code_lines(each.proposal.reward.source, ()) for each in attempts},
        chart=_curves_compared(report, shown),
        video=VIDEO,
        with_videos=sum(VIDEO in each.videos for each in shown),
        plus_minus=wording.plus_minus,
    )


def _curves_compared(report: RunReport, shown: Sequence[Shown]) -> Markup:
    curves = {
        each.attempt.id: Curve(
            tuple(point.env_steps for point in each.points),
            tuple(point.fitness for point in each.points),
        )
        for each in shown
        if each.points
    }
    trainings = [PlottedTrainings(name, "attempt", (curve,)) for name, curve in curves.items()]
    chart = learning_curves(trainings, report.unit_note)
    return figure(chart, "Fitness over the training", "First training of each, with noise.")
