"""View model as lines for a terminal of any size, the most interesting first."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderResult

from eureka_agent import wording
from eureka_agent.journal.entries import Notice
from eureka_agent.records import Attempt, Stage
from eureka_agent.report.entries import (
    SeedScores,
    TrainingView,
    discard_reason,
    episode_length,
    first_finding,
    measure_of,
    merit_words,
)
from eureka_agent.report.lines import Column, Line, Lines, fit, rows, share_rows, wrapped
from eureka_agent.report.metric import metric_sentence, same_words
from eureka_agent.report.sparkline import common_scale, progress_bar, sparkline
from eureka_agent.report.state import SearchView

WIDE = 100
"""Columns from which tables have their extra columns."""
ROOMY = 20
"""Lines from which long text is wrapped."""
MOST_DISCARDED = 4


class SearchPanel:
    """Draws a `SearchView` at `clock()` into the console's size."""

    def __init__(self, view: SearchView, clock: Callable[[], float]) -> None:
        self.view = view
        self.clock = clock

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        height = options.height or console.height
        # without a line for the cursor and one for the last line feed the title would scroll away
        room = options.max_width, height - 2
        lines = search_lines(self.view, self.clock(), *room, ascii_only=options.ascii_only)
        yield Lines(lines)


def search_lines(
    view: SearchView, now: float, width: int, height: int, *, ascii_only: bool = False
) -> list[Line]:
    """The whole view in at most `height` lines of `width` cells."""
    if view.run is None:
        return [
            [("starting", "dim")],
            *notice_lines(list(view.notices)[-1:], width),
            *model_lines(view, now, width),
        ]
    most = 2 if height >= ROOMY else 1
    lines = header_lines(view, width, most)
    lines += budget_lines(view, now, width, most, ascii_only=ascii_only)
    lines += model_lines(view, now, width)
    trainings = most_interesting(list(view.running.values()))
    finals = list(view.finals.items()) if _finals_begun(view) else []
    discarded = view.attempts.discarded(MOST_DISCARDED)
    notices = list(view.notices)[-2:]
    leaderboard = view.attempts.leaderboard
    # tables have a heading and titles
    wanted = [len(rows) + 2 if rows else 0 for rows in (trainings, leaderboard, finals)]
    wanted += [len(discarded) + 1 if discarded else 0, len(notice_lines(notices, width))]
    given = share_rows(height - len(lines), wanted, [5, 5, 7, 2, 1])
    sections = (
        lambda room: training_lines(view, trainings, width, room, ascii_only=ascii_only),
        lambda room: leaderboard_lines(leaderboard, width, room),
        lambda room: final_lines(view, finals, width, room),
        lambda room: discarded_lines(discarded, width, room),
        lambda room: recent_notices(notices, width, room),
    )
    for section, room in zip(sections, given, strict=True):
        if room > 0:
            lines += section(room)
    return lines[:height]


def header_lines(view: SearchView, width: int, most: int = 2) -> list[Line]:
    """Task, designer, wall, and a metric that is not obvious, in `most` lines each."""
    run = view.run
    assert run is not None
    description = run.description
    environment = Path(description.environment).name or description.environment
    facts = f"{environment} · {description.task} · designer: {run.designer} · wall: {run.wall}"
    if len(facts) + len(run.run_name) + 3 <= width:
        facts += f" · {run.run_name}"
    lines = _styled(run.sentence, "bold", width, most) + _styled(facts, "dim", width, most)
    if run.fitness_origin or not same_words(run.sentence, description.sentence):
        metric = metric_sentence(description, run.fitness_origin)
        lines += _styled(metric, "yellow" if run.fitness_origin else "dim", width, most)
    return lines


def _styled(text: str, style: str, width: int, most: int) -> list[Line]:
    return [[(line, style)] for line in wrapped(text, width, most)]


def budget_lines(
    view: SearchView, now: float, width: int, most: int = 2, *, ascii_only: bool = False
) -> list[Line]:
    """Counts, in `most` lines at most, then trainings, env steps, speed and time with a bar."""
    total, done = view.env_steps_total, view.env_steps_done
    share = done / total if total else 0.0
    rate = view.steps_per_second
    left = view.seconds_left(now)
    attempts = view.attempts
    parts = [
        f"trainings {view.trainings_done}/{view.trainings_total}",
        f"env steps {wording.count(done)}/{wording.count(total)}",
        f"{wording.count(rate)} steps/s" if rate is not None else "",
    ]
    times = f" {share:4.0%}  {wording.clock_time(view.elapsed(now))} elapsed"
    if left is not None:
        times += f", about {wording.clock_time(left)} left{view.then}"
    full, empty = progress_bar(share, max(0, width - len(times)), ascii_only=ascii_only)
    counts = [
        (wording.plural(attempts.proposed, "proposal") if attempts.proposed else "", ""),
        (f"{attempts.rejected} thrown out by the critic" if attempts.rejected else "", ""),
        (f"{attempts.failed} failed in training" if attempts.failed else "", "yellow"),
    ]
    lines: list[Line] = [[(view.phase, "bold cyan")]]
    for text, style in counts:
        if text:
            fits = sum(len(piece) for piece, _ in lines[-1]) + 3 + len(text) <= width
            if fits or len(lines) == most:
                lines[-1].append((f" · {text}", style))
            else:
                lines.append([(text, style)])
    lines += _styled(" · ".join(filter(None, parts)), "", width, most)
    return [*lines, [(full, "green"), (empty, "dim"), (times, "")]]


def model_lines(view: SearchView, now: float, width: int) -> list[Line]:
    """Account of the requests to models, and the awaited replies; nothing offline."""
    account = view.requests.account()
    awaited = view.requests.awaited(now, width)
    lines = _styled(f"models: {account}", "", width, 2) if account else []
    return lines + ([[(fit(awaited, width).rstrip(), "cyan")]] if awaited else [])


def most_interesting(trainings: list[TrainingView]) -> list[TrainingView]:
    """Trainings by fitness, then by env steps."""

    def interest(training: TrainingView) -> tuple[float, int]:
        return -math.inf if training.fitness is None else training.fitness, training.env_steps

    return sorted(trainings, key=interest, reverse=True)


def training_lines(
    view: SearchView,
    trainings: list[TrainingView],
    width: int,
    room: int,
    *,
    ascii_only: bool = False,
) -> list[Line]:
    """Running trainings with their curves, in the order of their starts."""
    shown, hidden = _cut(trainings, room - 2)
    order = {job: index for index, job in enumerate(view.running)}
    shown = sorted(shown, key=lambda training: order[training.job])
    # names, roles and fitness are shown in full; the rest of the width is for env steps, curve and
    # bar, in this order
    names = max([9, *(len(training.label) for training in shown)])
    roles = max([4, *(len(training.role) for training in shown)])
    left = width - (names + roles + 8 + 11 + 8)
    curve_width = 24 if left >= 24 + 22 else 13 if left >= 15 else 0
    bar_width = max(0, min(20, left - (curve_width + 2 if curve_width else 0) - 1))
    per_training = view.run.settings.env_steps if view.run is not None else 0
    scale = common_scale((training.history.values for training in shown), curve_width)
    columns = [
        Column("candidate", names, "bold"),
        Column("role", 0),
        Column("fitness", 8, right=True),
        *([Column("fitness curve", curve_width, "cyan")] if curve_width else []),
        *([Column("env steps", bar_width + 12 if bar_width else 11)] if left >= 0 else []),
    ]
    cells: list[list[str | Line]] = []
    for training in shown:
        share = training.env_steps / per_training if per_training else 0.0
        full, empty = progress_bar(share, bar_width, ascii_only=ascii_only)
        curve = sparkline(training.history.values, curve_width, scale=scale, ascii_only=ascii_only)
        steps = f"{wording.count(training.env_steps):>5} {min(share, 1):4.0%}"
        if bar_width:
            steps = f" {steps}"
        row: list[str | Line] = [training.label, wording.words(training.role)]
        row += [wording.number(training.fitness), *([curve] if curve_width else [])]
        if left >= 0:
            row.append([(full, "green"), (empty, "dim"), (steps, "")])
        cells.append(row)
    waiting = f", {len(view.queued)} waiting" if view.queued else ""
    title = f"{wording.plural(len(view.running), 'training')} now{waiting}"
    note = " (fitness with exploration noise)"
    lines = [_heading(title + note if len(title + note) <= width - 4 else title, width)]
    return lines + rows(columns, cells, width) + _more(hidden, "training")


def leaderboard_lines(leaderboard: list[Attempt], width: int, room: int) -> list[Line]:
    """Best attempts so far."""
    shown, hidden = _cut(leaderboard, room - 2)
    wide = width >= WIDE
    merits = [merit_words(attempt) for attempt in shown]
    several = any(len(attempt.fitness_per_seed) > 1 for attempt in shown)
    columns = [
        Column("rank", 4, right=True),
        Column("attempt", 8, "bold"),
        Column("operator", 16 if wide else 9),
        Column(measure_of(shown), max([9, *map(len, merits)]), "green", right=True),
        *([Column("seeds", 5, right=True)] if several else []),
        Column("length", 6, right=True),
        Column("what the analyzer says", 0, "dim"),
    ]
    cells = []
    for rank, attempt in enumerate(shown, start=1):
        operator, length = attempt.proposal.operator.value, episode_length(attempt)
        cells.append(
            [
                str(rank),
                attempt.id,
                wording.words(operator) if wide else operator.split("_")[0],
                merits[rank - 1],
                *([str(len(attempt.fitness_per_seed))] if several else []),
                wording.MISSING if length is None else f"{length:.0f}",
                first_finding(attempt),
            ]
        )
    return [_heading("leaderboard", width), *rows(columns, cells, width), *_more(hidden, "attempt")]


def final_lines(
    view: SearchView, finals: list[tuple[str, SeedScores]], width: int, room: int
) -> list[Line]:
    """Baselines and finalists with their means over the trained seeds."""
    shown, hidden = _cut(finals, room - 2)
    cells = [[name, *_final_cells(final)] for name, final in shown]
    wide = width >= 10 + 22 + 16 + 8 + max([5, *(len(row[-1]) for row in cells)])
    fitness_width = 22 if wide else max([7, *(len(row[1]) for row in cells)])
    columns = [
        Column("reward", 10 if wide else 8, "bold"),
        Column("fitness", fitness_width, "green", right=True),
        *([Column("human-normalised", 16, right=True)] if wide else []),
        Column("seeds", 0, "dim"),
    ]
    if not wide:
        cells = [[name, fitness, seeds] for name, fitness, _, seeds in cells]
    unit = view.run.description.fitness_unit if view.run is not None else "1"
    title = "trained again with fresh seeds"
    if unit not in ("1", ""):
        title += f" (fitness in {unit})"
    return [_heading(title, width), *rows(columns, cells, width), *_more(hidden, "reward")]


def _final_cells(final: SeedScores) -> list[str]:
    if final.score is not None:
        seeds = wording.plural(len(final.score.seeds), "seed")
        origin = f", {final.score.origin}" if final.score.origin else ""
        value = wording.plus_minus(final.score.mean, final.score.std)
        return [value, wording.number(final.score.human_normalized), seeds + origin]
    known = [value for value in final.fitness if value is not None]
    mean = sum(known) / len(known) if known else None
    seeds = f"{final.ended} of {final.planned} seeds" if final.planned else "from the card"
    return [wording.number(mean), "", seeds]


def discarded_lines(discarded: list[Attempt], width: int, room: int) -> list[Line]:
    """Last discarded attempts with their reasons; the view's head has their number."""
    lines = [_heading("discarded", width)]
    styles = {Stage.REJECTED: "red", Stage.FAILED: "yellow"}
    for attempt in discarded[: max(0, room - 1)]:
        reason = discard_reason(attempt)
        name = (fit(attempt.id, 10), styles.get(attempt.stage, "dim"))
        lines.append([("  ", ""), name, (fit(reason, max(1, width - 12)).rstrip(), "")])
    return lines


def recent_notices(notices: list[Notice], width: int, room: int) -> list[Line]:
    """The notices, or only the last one where there is no room."""
    lines = notice_lines(notices, width)
    return lines if len(lines) <= room else notice_lines(notices[-1:], width, room)


def notice_lines(notices: list[Notice], width: int, most: int = 3) -> list[Line]:
    """The notices, each in `most` lines at most."""
    lines: list[Line] = []
    for notice in notices:
        style = "yellow" if notice.level == "warning" else "dim"
        lines += _styled(notice.text, style, width, min(most, 3))
    return lines


def _finals_begun(view: SearchView) -> bool:
    return any(final.queued or final.score is not None for final in view.finals.values())


def _heading(title: str, width: int) -> Line:
    title = fit(title, max(1, width - 4)).rstrip()
    return [("── ", "dim"), (title, "bold"), (" " + "─" * max(0, width - len(title) - 4), "dim")]


def _cut(entries: list, room: int) -> tuple[list, int]:
    if len(entries) <= room:
        return entries, 0
    shown = max(0, room - 1)
    return entries[:shown], len(entries) - shown


def _more(hidden: int, what: str) -> list[Line]:
    return [[(f"  +{wording.plural(hidden, f'more {what}')}", "dim")]] if hidden else []
