"""Output of `eureka show`, of `eureka runs` and of a search at its end, as rich renderables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from eureka_agent import wording
from eureka_agent.archive.artefacts import HTML_REPORT, POLICY, RANDOMISED, REPORT
from eureka_agent.attempt_words import fitness_per_seed, fitness_words, measure_of, remark
from eureka_agent.invocation import command, show_command
from eureka_agent.randomisation_records import Randomisation
from eureka_agent.ranking import ranked
from eureka_agent.records import Attempt, RunStatus, Stage
from eureka_agent.report import randomisation
from eureka_agent.report.attempt_page import STAGE_STYLES, source_panel
from eureka_agent.report.console import facts_grid, unwrapped
from eureka_agent.report.cost import cost_sentence, remarks
from eureka_agent.report.metric import metric_lines
from eureka_agent.report.run_report import RunReport
from eureka_agent.report.verdict import best_fitness, verdict
from eureka_agent.text import one_line

WIDE_RUNS = 110
"""Columns from which a list of runs has room for their whole names."""
WIDE_ATTEMPTS = 100
"""Columns from which a table of attempts has room for parents and seeds."""
MOST_ATTEMPTS = 40
LONGEST_TASK = 100
_LONG_ADVICE = 60
"""Characters of a next step from which on its command stands on a line of its own."""
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
    table = _RunsTable(reports, sizes)
    marks = {mark: MARKS[mark] for report in reports if (mark := fitness_mark(report))}
    see = f": see `{command('show RUN')}`"
    notes = [Text(f"{mark} {meaning}{see}", style="dim") for mark, meaning in marks.items()]
    return Group(table, *notes) if notes else table


def fitness_mark(report: RunReport) -> str:
    """Mark of a best fitness that is not by the task's own metric, one of `MARKS`; else empty."""
    if report.by_strength is not None or not report.is_measured:
        return STRENGTH_MARK
    return WRITTEN_MARK if report.fitness_origin else ""


class _RunsTable:
    """A table of runs; a narrow one shortens their names and omits the trainings."""

    def __init__(self, reports: Sequence[RunReport], sizes: Sequence[int]) -> None:
        self._reports, self._sizes = reports, sizes

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide = options.max_width >= WIDE_RUNS
        table = _table()
        table.add_column("run", no_wrap=True, style="bold")
        table.add_column("status", no_wrap=True)
        table.add_column("task", ratio=1)
        for title in (
            *(["trained"] if wide else []),
            "best fitness",
            "time",
            *(["size"] if self._sizes else []),
        ):
            table.add_column(title, justify="right", no_wrap=True)
        names = [report.run_name for report in self._reports]
        for place, report in enumerate(self._reports):
            trained = sum(attempt.stage is Stage.TRAINED for attempt in report.attempts)
            table.add_row(
                report.run_name if wide else _short_name(report.run_name, names),
                Text(report.status.value, STATUS_STYLES[report.status]),
                Text(one_line(report.sentence, LONGEST_TASK), overflow="ellipsis", no_wrap=True),
                *([f"{trained}/{len(report.attempts)}"] if wide else []),
                _best_fitness(report),
                wording.duration(report.seconds),
                *([wording.file_size(self._sizes[place])] if self._sizes else []),
            )
        yield table


def _short_name(name: str, names: Sequence[str]) -> str:
    """Time at which a run began, if it is unique: a name's beginning is enough to find a run."""
    time = name.partition("_")[0]
    return time if sum(other.startswith(time) for other in names) == 1 else name


def _best_fitness(report: RunReport) -> str:
    text = best_fitness(report)
    return f"{text} {fitness_mark(report)}".rstrip()


def render_run(report: RunReport) -> RenderableType:
    """A run for `eureka show RUN`: verdict, scores, best reward function, all attempts."""
    parts = _head(report)
    if report.attempts:
        parts += [*_attempts(report), Text()]
    parts += _cost(report)
    parts += [unwrapped(f"more: {file}", "dim") for file in _report_files(report).values()]
    show = f"one attempt: {show_command(report.folder)} ATTEMPT"
    return Group(*parts, unwrapped(show, "dim"))


def render_end(report: RunReport) -> RenderableType:
    """Output at the end of a search: verdict, scores, best reward function, paths, cost."""
    parts = [Text(), *_head(report)]
    if report.best is not None:
        parts.append(unwrapped(f"reward  {report.folder / 'best' / 'reward.py'}"))
        parts.append(unwrapped(f"policy  {report.folder / 'best' / 'policy.safetensors'}"))
    files = _report_files(report) or {"run": report.folder}
    parts += [unwrapped(f"{name:<7} {file}") for name, file in files.items()]
    return Group(*parts, Text(), *_cost(report))


def _report_files(report: RunReport) -> dict[str, Path]:
    """Reports in the run's folder, by the names of their lines."""
    files = {"report": report.folder / REPORT, "browser": report.folder / HTML_REPORT}
    return {name: file for name, file in files.items() if file.is_file()}


def _head(report: RunReport) -> list[RenderableType]:
    parts: list[RenderableType] = [_title(report), Text(), *_verdict(report), Text()]
    if report.scores:
        parts += [render_scores(report), Text()]
    if report.randomisation is not None:
        parts += [*_randomisation(report, report.randomisation), Text()]
    if report.best is not None:
        parts += [source_panel(report.best), Text()]
    return parts


def _title(report: RunReport) -> Text:
    description, style = report.description, "yellow" if report.fitness_origin else ""
    return Text.assemble(
        (wording.title(report.sentence), "bold"),
        f"\n{description.environment} · {description.task} · {report.run_name} · ",
        (report.status.value, STATUS_STYLES[report.status]),
        *((f"\n{line}", style) for line in metric_lines(report)),
    )


def _verdict(report: RunReport) -> list[RenderableType]:
    """The verdict's lines; the command is not wrapped, so that it can be pasted."""
    found = verdict(report)
    lines = {
        name: Text(text, style="bold" if name == "best" else "")
        for name, text in found.lines().items()
    }
    start = Text.assemble(("next       ", "dim"), f"{found.advice}: ")
    if len(found.advice) > _LONG_ADVICE:  # is wrapped; the command has a line of its own
        lines["next"], start = Text(f"{found.advice}:"), Text()
    advice = start.append(found.command, "bold")
    advice.no_wrap, advice.overflow = True, "ignore"
    return [facts_grid(lines, "dim"), advice]


def _attempts(report: RunReport) -> list[RenderableType]:
    """All attempts; of very many the best, or the last where none was trained."""
    attempts, env_steps = report.attempts, report.settings.env_steps
    if len(attempts) <= MOST_ATTEMPTS:
        return [_AttemptsTable(attempts, env_steps)]
    best = ranked(attempts)
    shown = (best or attempts[::-1])[:MOST_ATTEMPTS]
    which = f"the {'best' if best else 'last'} {len(shown)} of {len(attempts):,} attempts"
    everything = show_command(report.folder, "--format", "json")
    note = unwrapped(f"{which}; all of them: report.md, or {everything}", "dim")
    return [_AttemptsTable(shown, env_steps), note]


def _cost(report: RunReport) -> list[RenderableType]:
    return [Text(text, style="dim") for text in (cost_sentence(report), *remarks(report))]


def render_scores(report: RunReport) -> Table:
    """Finalists and baselines with mean, spread and human-normalised score."""
    table = _table()
    table.add_column("reward", style="bold", no_wrap=True)
    normalized = any(score.human_normalized is not None for score in report.scores)
    for title in (f"fitness{report.unit_note}", *(["human-normalised"] if normalized else [])):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("per seed")
    for score in report.scores:
        best = report.best is not None and score.name == report.best.id
        mark = f" ({'yours' if report.of_own_reward else 'best'})" if best else ""
        table.add_row(
            score.name + mark,
            wording.plus_minus(score.mean, score.std),
            *([wording.number(score.human_normalized)] if normalized else []),
            fitness_per_seed(score),
            style="green" if best else "",
        )
    return table


def _randomisation(report: RunReport, found: Randomisation) -> list[RenderableType]:
    """Sentence and table on the distributions of parameters."""
    sentence = Text(randomisation.sentence(report, found))
    known = randomisation.rows(report, found)
    if not known:
        return [sentence]
    table = _table()
    first, _, *numbers = randomisation.titles(report)
    table.add_column(first, style="bold", no_wrap=True)
    for title in numbers:
        table.add_column(title, justify="right")
    for row in known:
        table.add_row(row.name, *row.cells[1:], style="green" if row.is_best else "")
    texts = facts_grid({each.name: Text(each.text) for each in found.distributions}, "dim")
    policy = report.folder / RANDOMISED / POLICY
    where = [unwrapped(f"its policy: {policy}", "dim")] if policy.is_file() else []
    return [table, Text(), texts, Text(), sentence, *where]


class _AttemptsTable:
    """A line or more for every attempt; a narrow table omits parents and seeds."""

    def __init__(self, attempts: Sequence[Attempt], env_steps: int) -> None:
        """`env_steps`: those of a whole training."""
        self._attempts, self._env_steps = attempts, env_steps

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide = options.max_width >= WIDE_ATTEMPTS
        table = _table()
        table.add_column("attempt", style="bold", no_wrap=True)
        for title in ("operator", "parents", "stage") if wide else ("operator", "stage"):
            table.add_column(title, no_wrap=True)
        measure = measure_of(self._attempts)
        for title in (measure, "seeds") if wide else (measure,):
            table.add_column(title, justify="right", no_wrap=True)
        table.add_column("reason or first finding", ratio=1)
        for attempt in self._attempts:
            table.add_row(
                attempt.id,
                wording.words(attempt.proposal.operator.value),
                *([" ".join(attempt.proposal.parents)] if wide else []),
                Text(attempt.stage.value, STAGE_STYLES[attempt.stage]),
                fitness_words(attempt, self._env_steps),
                *([str(len(attempt.fitness_per_seed) or "")] if wide else []),
                Text(remark(attempt)),
            )
        yield table


def _table() -> Table:
    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", expand=False)
