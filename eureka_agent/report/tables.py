"""Output of `eureka show`, of `eureka runs` and of a search at its end, as rich renderables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from eureka_agent import wording
from eureka_agent.archive.artefacts import HTML_REPORT, REPORT
from eureka_agent.invocation import command, show_command
from eureka_agent.records import RunStatus
from eureka_agent.report.blocks import Section
from eureka_agent.report.run_report import RunReport
from eureka_agent.report.search_sections import attempts_table
from eureka_agent.report.sections import run_document
from eureka_agent.report.terminal import render_block, render_sections, unbroken
from eureka_agent.report.verdict import best_fitness
from eureka_agent.text import one_line

MOST_ATTEMPTS = 40
LONGEST_TASK = 100
WRITTEN_MARK = "*"
STRENGTH_MARK = "~"
MARKS = {
    WRITTEN_MARK: "by a fitness that a language model wrote for that run",
    STRENGTH_MARK: "no fitness, but a strength by choices or by a model that judges",
}
"""Marks of what is not the task's own metric, with their meanings."""
STATUS_STYLES = {
    RunStatus.FINISHED: "green",
    RunStatus.STOPPED: "yellow",
    RunStatus.FAILED: "red",
    RunStatus.RUNNING: "cyan",
}


def render_runs(reports: Sequence[RunReport], sizes: Sequence[int] = ()) -> RenderableType:
    """One line a run, newest last. `sizes`: bytes of each, if they are shown."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("run", no_wrap=True, style="bold")
    table.add_column("status", no_wrap=True)
    table.add_column("task", ratio=1)
    for title in ("best fitness", "time", *(["size"] if sizes else [])):
        table.add_column(title, justify="right", no_wrap=True)
    for place, report in enumerate(reports):
        table.add_row(
            report.run_name,
            Text(report.status.value, STATUS_STYLES[report.status]),
            Text(one_line(report.sentence, LONGEST_TASK), overflow="ellipsis", no_wrap=True),
            f"{best_fitness(report)} {fitness_mark(report)}".rstrip(),
            wording.duration(report.seconds),
            *([wording.file_size(sizes[place])] if sizes else []),
        )
    marks = {mark: MARKS[mark] for report in reports if (mark := fitness_mark(report))}
    see = f": see `{command('show RUN')}`"
    notes = [Text(f"{mark} {meaning}{see}", style="dim") for mark, meaning in marks.items()]
    return Group(table, *notes) if notes else table


def fitness_mark(report: RunReport) -> str:
    """Mark of a best fitness that is not by the task's own metric, one of `MARKS`; else empty."""
    if report.by_strength is not None or not report.is_measured:
        return STRENGTH_MARK
    return WRITTEN_MARK if report.fitness_origin else ""


def render_run(report: RunReport) -> RenderableType:
    """A run for `eureka show RUN`: verdict, scores, best reward function, all attempts."""
    attempts = Section("attempts", "", lambda: attempts_table(report, MOST_ATTEMPTS))
    more = [unbroken(f"more: {file}", "dim") for file in _report_files(report).values()]
    show = unbroken(f"one attempt: {show_command(report.folder)} ATTEMPT", "dim")
    return Group(*_document(report, attempts), *more, show)


def render_end(report: RunReport) -> RenderableType:
    """Output at the end of a search: verdict, scores, best reward function, cost, paths."""
    files = _report_files(report) or {"run": report.folder}
    if report.best is not None:
        best = report.folder / "best"
        files = {"reward": best / "reward.py", "policy": best / "policy.safetensors", **files}
    lines = (unbroken(f"{name:<7} {file}") for name, file in files.items())
    return Group(Text(), *_document(report), *lines)


def _document(report: RunReport, *more: Section) -> list[RenderableType]:
    """The sections of a report that a terminal shows."""
    document = run_document(report)
    title = Text(document.title, style="bold")
    head = [part for words in document.head for part in render_block(words)]
    sections = document.chosen("verdict", "scores", "randomised", "reward")
    last = document.chosen("cost")
    return [title, *head, Text(), *render_sections([*sections, *more, *last])]


def _report_files(report: RunReport) -> dict[str, Path]:
    """Reports in the run's folder, by the names of their lines."""
    files = {"report": report.folder / REPORT, "browser": report.folder / HTML_REPORT}
    return {name: file for name, file in files.items() if file.is_file()}
