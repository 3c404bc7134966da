"""Picture of a running search for a terminal of any size, the most interesting first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from eureka_agent import wording
from eureka_agent.attempt_words import episode_length, first_finding, measure_of, merit_words
from eureka_agent.journal.entries import Notice
from eureka_agent.journal.state import RunState
from eureka_agent.journal.under_way import TrainingUnderWay
from eureka_agent.records import Attempt
from eureka_agent.report import progress
from eureka_agent.report.metric import metric_sentence, same_words
from eureka_agent.report.sparkline import common_scale, sparkline

CURVE_WIDTH, BAR_WIDTH = 12, 8
MOST_NOTICES = 2


def search_panel(state: RunState, now: float, height: int) -> RenderableType:
    """The picture for so many lines. `now`: seconds of the run."""
    under_way = state.under_way
    notices = [_notice(each) for each in list(under_way.notices)[-MOST_NOTICES:]]
    if state.started is None:
        return Group(Text("starting", style="dim"), *notices[-1:], *_models(state, now))
    trainings = most_interesting(under_way.running.values())
    board = progress.leaderboard(state)
    # tables have a heading and titles
    wanted = [len(rows) + 2 if rows else 0 for rows in (trainings, board)]
    parts = [*_header(state), *_budget(state, now), *_models(state, now)]  # a line each
    room = max(0, height - len(parts) - len(notices))
    # half of it for each table, and what the other leaves; the first has at least five lines
    first = min(wanted[0], room, max(5, room - wanted[1], room - room // 2))
    second = min(wanted[1], room - first)
    if first > 2:
        parts += _trainings(state, trainings, first - 2)
    if second > 2:
        parts += _leaderboard(board, second - 2)
    return Group(*parts, *notices)


def most_interesting(trainings: Iterable[TrainingUnderWay]) -> list[TrainingUnderWay]:
    """Trainings by fitness, then by env steps."""

    def interest(training: TrainingUnderWay) -> tuple[float, int]:
        return -math.inf if training.fitness is None else training.fitness, training.env_steps

    return sorted(trainings, key=interest, reverse=True)


def _one_line(text: str, style: str = "") -> Text:
    return Text(" ".join(text.split()), style=style, no_wrap=True, overflow="ellipsis")


def _notice(notice: Notice) -> Text:
    return Text(" ".join(notice.text.split()), "yellow" if notice.level == "warning" else "dim")


def _header(state: RunState) -> list[RenderableType]:
    """Task, designer, wall, and a metric that is not obvious."""
    run = state.started
    assert run is not None
    description = run.description
    environment = Path(description.environment).name or description.environment
    facts = f"{environment} · {description.task} · designer: {run.designer} · wall: {run.wall}"
    lines = [_one_line(run.sentence, "bold"), _one_line(f"{facts} · {run.run_name}", "dim")]
    if run.fitness_origin or not same_words(run.sentence, description.sentence):
        metric = metric_sentence(description, run.fitness_origin)
        lines.append(_one_line(metric, "yellow" if run.fitness_origin else "dim"))
    return [*lines]


def _budget(state: RunState, now: float) -> list[RenderableType]:
    """Phase and counts, then trainings, env steps, speed, and time with a bar."""
    total, done = progress.env_steps_total(state), progress.env_steps_done(state)
    rate, left = state.under_way.steps_per_second, progress.seconds_left(state, now)
    parts = [
        f"trainings {progress.trainings_done(state)}/{progress.trainings_total(state)}",
        f"env steps {wording.count(done)}/{wording.count(total)}",
        f"{wording.count(rate)} steps/s" if rate is not None else "",
    ]
    counts = progress.attempt_counts(state)
    head = Text.assemble((progress.phase(state), "bold cyan"), no_wrap=True, overflow="ellipsis")
    for name, text in counts.items():
        head.append(f" · {text}", "yellow" if name == "failed" else "")
    times = f"{done / total if total else 0:4.0%}  {wording.clock_time(now)} elapsed"
    if left is not None:
        times += f", about {wording.clock_time(left)} left{progress.then(state)}"
    bar = Table.grid(padding=(0, 1, 0, 0), expand=True)
    bar.add_column(ratio=1)
    bar.add_column(no_wrap=True)
    bar.add_row(ProgressBar(total or 1, done), times)
    return [head, _one_line(" · ".join(filter(None, parts))), bar]


def _models(state: RunState, now: float) -> list[RenderableType]:
    """Account of the requests to models, and the awaited replies; nothing offline."""
    account = progress.account(state.under_way)
    awaited = progress.awaited(state.under_way, now)
    lines = [_one_line(f"models: {account}")] if account else []
    return [*lines, *([_one_line(awaited, "cyan")] if awaited else [])]


def _table(*columns: str, right: Sequence[str] = (), flexible: str = "") -> Table:
    """Table with these columns, of which one takes what the others leave."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 1), header_style="dim", expand=True)
    for title in columns:
        table.add_column(
            title,
            no_wrap=True,
            overflow="ellipsis",
            justify="right" if title in right else "left",
            ratio=1 if title == flexible else None,
        )
    return table


def _heading(title: str) -> Rule:
    return Rule(Text(title, style="bold"), align="left", style="dim")


def _more(hidden: int, what: str) -> list[RenderableType]:
    return [Text(f"  +{wording.plural(hidden, f'more {what}')}", style="dim")] if hidden else []


def _cut(rows: int, room: int) -> int:
    """Number of rows that are shown; the line of `_more` takes one."""
    return rows if rows <= room else max(0, room - 1)


def _trainings(state: RunState, best: list[TrainingUnderWay], room: int) -> list[RenderableType]:
    """Running trainings with their curves, in the order of their starts."""
    chosen = {each.job for each in best[: _cut(len(best), room)]}
    shown = [each for each in state.under_way.running.values() if each.job in chosen]
    steps = state.settings.env_steps if state.settings is not None else 1
    scale = common_scale((each.history.values for each in shown), CURVE_WIDTH)
    table = _table(
        *("candidate", "role", "fitness", "fitness curve", "", "env steps"),
        right=("fitness", "env steps"),
        flexible="role",
    )
    for each in shown:
        share = min(each.env_steps / steps, 1.0)
        table.add_row(
            Text(each.label, style="bold"),
            wording.words(each.role),
            wording.number(each.fitness),
            Text(sparkline(each.history.values, CURVE_WIDTH, scale=scale), style="cyan"),
            ProgressBar(1.0, share, width=BAR_WIDTH),
            f"{wording.count(each.env_steps)} {share:4.0%}",
        )
    queued = len(state.under_way.queued)
    waiting = f", {queued} waiting" if queued else ""
    title = f"{wording.plural(len(best), 'training')} now{waiting} (fitness with exploration noise)"
    return [_heading(title), table, *_more(len(best) - len(shown), "training")]


def _leaderboard(board: list[Attempt], room: int) -> list[RenderableType]:
    """Best attempts so far."""
    shown = board[: _cut(len(board), room)]
    measure, says = measure_of(shown), "what the analyzer says"
    numbers = ("rank", measure, "seeds", "length")
    table = _table(
        *("rank", "attempt", "operator", measure, "seeds", "length", says),
        right=numbers,
        flexible=says,
    )
    for rank, attempt in enumerate(shown, start=1):
        length = episode_length(attempt)
        table.add_row(
            str(rank),
            Text(attempt.id, style="bold"),
            wording.words(attempt.proposal.operator.value),
            Text(merit_words(attempt), style="green"),
            str(len(attempt.fitness_per_seed)),
            wording.MISSING if length is None else f"{length:.0f}",
            Text(first_finding(attempt), style="dim"),
        )
    return [_heading("leaderboard"), table, *_more(len(board) - len(shown), "attempt")]
