"""Output of `eureka show`, of `eureka runs` and of a search at its end, as rich renderables."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from eureka_agent import wording
from eureka_agent.invocation import command
from eureka_agent.ranking import ranked
from eureka_agent.records import Attempt, CurvePoint, RunStatus, Score, Stage, Verdict
from eureka_agent.report.console import unwrapped
from eureka_agent.report.cost import cost_sentence, remarks
from eureka_agent.report.entries import early_ends, fitness_words, remark, rung_reached
from eureka_agent.report.metric import metric_lines
from eureka_agent.report.reasoning import reasoning_panel
from eureka_agent.report.run_report import RunReport
from eureka_agent.report.sparkline import common_scale, sparkline
from eureka_agent.report.verdict import verdict
from eureka_agent.text import one_line

CURVE_WIDTH = 24
WIDE_RUNS = 110
"""Columns from which a list of runs has room for their whole names."""
WIDE_ATTEMPTS = 100
"""Columns from which a table of attempts has room for parents and seeds."""
MOST_ATTEMPTS = 80
"""That a table of attempts has lines for."""
LONGEST_TASK = 100
"""Characters of a sentence that a list of runs shows, however wide it is."""
WRITTEN_MARK = "*"
"""Behind a fitness that is not by the task's own metric."""
STAGE_STYLES = {
    Stage.TRAINED: "green",
    Stage.REJECTED: "red",
    Stage.FAILED: "yellow",
    Stage.STOPPED: "blue",
    Stage.PROPOSED: "dim",
    Stage.ACCEPTED: "dim",
}
STATUS_STYLES = {
    RunStatus.FINISHED: "green",
    RunStatus.STOPPED: "yellow",
    RunStatus.FAILED: "red",
    RunStatus.RUNNING: "cyan",
}


def render_runs(reports: Sequence[RunReport]) -> RenderableType:
    """One line a run, newest last."""
    table = _RunsTable(reports)
    if not any(report.fitness_origin for report in reports):
        return table
    note = (
        f"{WRITTEN_MARK} by a fitness that a language model wrote for that run: see"
        f" `{command('show RUN')}`"
    )
    return Group(table, Text(note, style="dim"))


class _RunsTable:
    """A table of runs; a narrow one names them by the shortest beginning that means them, and
    leaves out the trainings."""

    def __init__(self, reports: Sequence[RunReport]) -> None:
        self._reports = reports

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide = options.max_width >= WIDE_RUNS
        table = _table()
        table.add_column("run", no_wrap=True, style="bold")
        table.add_column("status", no_wrap=True)
        table.add_column("task", ratio=1)
        if wide:
            table.add_column("trained", justify="right", no_wrap=True)
        table.add_column("best fitness", justify="right", no_wrap=True)
        table.add_column("time", justify="right", no_wrap=True)
        names = [report.run_name for report in self._reports]
        for report in self._reports:
            trained = sum(attempt.stage is Stage.TRAINED for attempt in report.attempts)
            table.add_row(
                report.run_name if wide else _short_name(report.run_name, names),
                Text(report.status.value, STATUS_STYLES[report.status]),
                Text(one_line(report.sentence, LONGEST_TASK), overflow="ellipsis", no_wrap=True),
                *([f"{trained}/{len(report.attempts)}"] if wide else []),
                _best_fitness(report),
                wording.clock_time(report.seconds),
            )
        yield table


def _short_name(name: str, names: Sequence[str]) -> str:
    """The time at which a run began, where no other has it: the beginning of a name is enough to
    mean it."""
    time = name.partition("_")[0]
    return time if sum(other.startswith(time) for other in names) == 1 else name


def _best_fitness(report: RunReport) -> str:
    score = report.best_score
    if score is not None and score.mean is not None:
        text = wording.plus_minus(score.mean, score.std)
    else:
        text = wording.number(report.best.fitness) if report.best is not None else wording.MISSING
    return f"{text} {WRITTEN_MARK}" if report.fitness_origin else text


def render_run(report: RunReport) -> RenderableType:
    """A run for `eureka show RUN`: verdict, scores, best reward function, all attempts."""
    parts: list[RenderableType] = [_title(report), Text(), *_verdict(report), Text()]
    if report.scores:
        parts += [render_scores(report), Text()]
    if report.best is not None:
        parts += [_source_panel(report.best), Text()]
    if report.attempts:
        parts += [*_attempts(report), Text()]
    parts += _cost(report)
    if _report_file(report).is_file():
        parts.append(unwrapped(f"more: {_report_file(report)}", "dim"))
    parts.append(
        unwrapped(
            f"one attempt: {command(shlex.join(['show', str(report.folder)]))} ATTEMPT", "dim"
        )
    )
    return Group(*parts)


def _attempts(report: RunReport) -> list[RenderableType]:
    """All attempts; of very many the best, or the last where none was trained."""
    attempts, env_steps = report.attempts, report.settings.env_steps
    if len(attempts) <= MOST_ATTEMPTS:
        return [_AttemptsTable(attempts, env_steps)]
    best = ranked(attempts)
    shown = (best or attempts[::-1])[:MOST_ATTEMPTS]
    which = f"the {'best' if best else 'last'} {len(shown)} of {len(attempts):,} attempts"
    everything = command(shlex.join(["show", str(report.folder), "--format", "json"]))
    note = unwrapped(f"{which}; all of them: report.md, or {everything}", "dim")
    return [_AttemptsTable(shown, env_steps), note]


def _verdict(report: RunReport) -> list[RenderableType]:
    """The verdict's lines; the last one is not broken, so that its command can be pasted."""
    found = verdict(report)
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for name, text in found.lines().items():
        table.add_row(name, Text(text, style="bold" if name == "best" else ""))
    advice = Text.assemble(("next       ", "dim"), f"{found.advice}: ", (found.command, "bold"))
    advice.no_wrap, advice.overflow = True, "ignore"
    return [table, advice]


def _cost(report: RunReport) -> list[RenderableType]:
    """Lines on what the run has taken, and on its budget."""
    return [Text(text, style="dim") for text in (cost_sentence(report), *remarks(report))]


def _report_file(report: RunReport) -> Path:
    return report.folder / "report.md"


def render_end(report: RunReport) -> RenderableType:
    """Output at the end of a search: the verdict, the scores, the best reward function, the paths,
    the cost."""
    parts: list[RenderableType] = [Text(), _title(report), Text(), *_verdict(report), Text()]
    if report.scores:
        parts += [render_scores(report), Text()]
    if report.best is not None:
        parts += [_source_panel(report.best), Text()]
    if report.best is not None:
        parts.append(unwrapped(f"reward  {report.folder / 'best' / 'reward.py'}"))
        parts.append(unwrapped(f"policy  {report.folder / 'best' / 'policy.safetensors'}"))
    has_report = _report_file(report).is_file()
    parts.append(
        unwrapped(f"report  {_report_file(report)}" if has_report else f"run     {report.folder}")
    )
    return Group(*parts, Text(), *_cost(report))


def render_scores(report: RunReport) -> Table:
    """Finalists and baselines with mean, spread and human-normalised score."""
    unit = report.description.fitness_unit
    table = _table()
    table.add_column("reward", style="bold", no_wrap=True)
    table.add_column(
        "fitness" + (f" ({unit})" if unit not in ("", "1") else ""), justify="right", no_wrap=True
    )
    normalized = any(score.human_normalized is not None for score in report.scores)
    if normalized:
        table.add_column("human-normalised", justify="right", no_wrap=True)
    table.add_column("per seed")
    for score in report.scores:
        best = report.best is not None and score.name == report.best.id
        table.add_row(
            f"{score.name} ({'yours' if report.of_own_reward else 'best'})" if best else score.name,
            wording.plus_minus(score.mean, score.std),
            *([wording.number(score.human_normalized)] if normalized else []),
            _per_seed(score),
            style="green" if best else "",
        )
    return table


def _per_seed(score: Score) -> str:
    values = ", ".join(
        "failed" if value is None else wording.number(value) for value in score.fitness
    )
    return values + (" (from the cache)" if score.cached else "")


class _AttemptsTable:
    """Every attempt with what there is to say of it, broken between words; a narrow one leaves
    parents and seeds out."""

    def __init__(self, attempts: Sequence[Attempt], env_steps: int) -> None:
        """`env_steps`: those of a whole training."""
        self._attempts, self._env_steps = attempts, env_steps

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide = options.max_width >= WIDE_ATTEMPTS
        table = _table()
        table.add_column("attempt", style="bold", no_wrap=True)
        for title in ("operator", "parents", "stage") if wide else ("operator", "stage"):
            table.add_column(title, no_wrap=True)
        for title in ("fitness", "seeds") if wide else ("fitness",):
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
                Text(remark(attempt, self._env_steps)),
            )
        yield table


def render_attempt(
    attempt: Attempt,
    env_steps: int,
    points: Sequence[CurvePoint] = (),
    folder: Path | None = None,
    fitness_origin: str = "",
) -> RenderableType:
    """One attempt: where it came from, source, verdict, curves, reflection.

    `env_steps`: those of a whole training. `points`: the attempt's curves, where it was trained.
    """
    parents = ", ".join(attempt.proposal.parents)
    origin = wording.words(attempt.proposal.operator.value) + (
        f" from {parents}" if parents else ""
    )
    facts = [origin, f"designer {attempt.proposal.reward.author}", f"seed {attempt.seed}"]
    if attempt.retries:
        facts.append(f"started again {wording.plural(attempt.retries, 'time')}")
    heading = Text.assemble(
        (f"attempt {attempt.id}", "bold"),
        "  ",
        (attempt.stage.value, STAGE_STYLES[attempt.stage]),
        f"  {_outcome_words(attempt, env_steps)}",
    )
    if fitness_origin:
        facts.append(fitness_origin)
    parts: list[RenderableType] = [heading, Text(" · ".join(facts), style="dim")]
    if attempt.repeats:
        parts += [
            Text(_training_words(attempt, place), style="dim")
            for place in range(1 + len(attempt.repeats))
        ]
    parts.append(Text())
    if attempt.reason:
        parts += [Text(attempt.reason, style=STAGE_STYLES[attempt.stage]), Text()]
    parts.append(_source_panel(attempt, whole=True))
    if attempt.proposal.reasoning.strip():
        parts.append(reasoning_panel(attempt.proposal.reasoning))
    if attempt.verdict is not None:
        parts.append(_verdict_panel(attempt.verdict))
    if points:
        parts.append(
            Panel(
                render_curves(points),
                title="curves over the training, with exploration noise",
                title_align="left",
                border_style="dim",
            )
        )
    if attempt.diagnosis is not None:
        parts.append(
            Panel(
                Text(attempt.diagnosis.text.strip()),
                title="diagnosis",
                title_align="left",
                border_style="dim",
            )
        )
    if folder is not None:
        parts.append(unwrapped(f"files: {folder}", "dim"))
    return Group(*parts)


def _outcome_words(attempt: Attempt, env_steps: int) -> str:
    outcome = attempt.outcome
    if outcome is None or outcome.fitness is None:
        return (
            ""
            if rung_reached(attempt) is None
            else f"fitness {fitness_words(attempt, env_steps)} of its training"
        )
    if attempt.repeats:
        return (
            f"fitness {wording.number(attempt.fitness)} over"
            f" {wording.plural(len(attempt.fitness_per_seed), 'seed')}"
        )
    spread = f"over {wording.plural(outcome.evaluation_episodes, 'episode')}"
    success = f", {outcome.success_rate:.0%} solved" if outcome.success_rate is not None else ""
    early = f", {text}" if (text := early_ends(outcome)) else ""
    return (
        f"fitness {wording.plus_minus(outcome.fitness, outcome.fitness_std)}"
        f" {spread}{success}{early}"
    )


def _training_words(attempt: Attempt, place: int) -> str:
    """One of an attempt's trainings; 0 is the first one, to which curves and diagnosis belong."""
    if place == 0:
        fitness = (
            wording.number(attempt.outcome.fitness)
            if attempt.outcome is not None
            else wording.MISSING
        )
        return (
            f"first training, seed {attempt.seed}: fitness {fitness} (curves and diagnosis below)"
        )
    repeat = attempt.repeats[place - 1]
    result = (
        f"failed: {repeat.failure}"
        if repeat.outcome is None
        else f"fitness {wording.number(repeat.outcome.fitness)}"
    )
    again = f", started again {wording.plural(repeat.retries, 'time')}" if repeat.retries else ""
    return (
        f"trained again after iteration {repeat.iteration + 1}, seed {repeat.seed}: {result}{again}"
    )


def render_curves(points: Sequence[CurvePoint]) -> Table:
    """Every curve as a sparkline with its first, last and highest value; reward and components,
    which add up to it, on one scale."""
    curves: dict[str, list[float | None]] = {
        "fitness": [point.fitness for point in points],
        "episode length": [point.episode_length for point in points],
        "reward": [point.reward for point in points],
    }
    for name in dict.fromkeys(name for point in points for name in point.components):
        curves[f"component {name}"] = [point.components.get(name) for point in points]
    parts = [name for name in curves if name == "reward" or name.startswith("component ")]
    scale = common_scale((curves[name] for name in parts), CURVE_WIDTH)
    if any(point.action_std is not None for point in points):
        curves["action std"] = [point.action_std for point in points]
    else:  # choices have none
        curves["entropy"] = [point.entropy for point in points]
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(no_wrap=True)
    for _ in range(3):
        table.add_column(justify="right", no_wrap=True)
    table.add_row("", "", *(Text(title, style="dim") for title in ("first", "last", "highest")))
    for name, values in curves.items():
        known = [value for value in values if value is not None]
        numbers = [known[0], known[-1], max(known)] if known else [None] * 3
        curve = sparkline(values, CURVE_WIDTH, scale=scale if name in parts else None)
        table.add_row(
            name, Text(curve, style="cyan"), *(wording.number(value) for value in numbers)
        )
    return table


def render_findings(result: Verdict) -> RenderableType:
    """The critic's findings, a line each with its hint below, like a linter's."""
    lines = []
    for finding in result.findings:
        place = f"{finding.line}:{finding.column or 0} " if finding.line is not None else ""
        style = "red" if finding.severity == "error" else "yellow"
        lines.append(Text.assemble(place, (finding.code, style), f" {finding.message}"))
        if finding.hint:
            lines.append(Text(f"    {finding.hint}", style="dim"))
    return Group(*lines)


def _verdict_panel(result: Verdict) -> Panel:
    word = "accepted" if result.accepted else "thrown out"
    steps = f"steps: {', '.join(result.steps_run)}" if result.steps_run else ""
    body = (
        Group(render_findings(result), Text(steps, style="dim"))
        if result.findings
        else Text(f"no findings; {steps}")
    )
    return Panel(body, title=f"critic: {word}", title_align="left", border_style="dim")


def _source_panel(attempt: Attempt, *, whole: bool = False) -> Panel:
    title = Text(
        f"reward function of attempt {attempt.id}"
    )  # as a string it would be read as markup
    source = attempt.proposal.reward.source.rstrip()
    if not source:
        return Panel(
            Text("the designer's reply held no code", style="dim"), title=title, title_align="left"
        )
    shown = source if whole else wording.without_trailing_comments(source)
    syntax = Syntax(shown, "python", theme="ansi_dark", background_color="default", word_wrap=True)
    hidden = sum(line.startswith("#") for line in source.splitlines()[len(shown.splitlines()) :])
    subtitle = f"and {wording.plural(hidden, 'line')} of comments" if hidden else None
    return Panel(syntax, title=title, title_align="left", subtitle=subtitle, subtitle_align="left")


def _title(report: RunReport) -> Text:
    description = report.description
    return Text.assemble(
        (wording.title(report.sentence), "bold"),
        f"\n{description.environment} · {description.task} · {report.run_name} · ",
        (report.status.value, STATUS_STYLES[report.status]),
        *(
            (f"\n{line}", "yellow" if report.fitness_origin else "")
            for line in metric_lines(report)
        ),
    )


def _table() -> Table:
    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", expand=False)
