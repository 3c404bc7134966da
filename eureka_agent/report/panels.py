"""The view model as lines for a terminal of any size: what is most interesting first, '+n more' for
the rest."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderResult

from eureka_agent import wording
from eureka_agent.journal.entries import Notice
from eureka_agent.records import Stage
from eureka_agent.report.entries import Discarded, LeaderboardEntry, SeedScores, TrainingView
from eureka_agent.report.lines import Column, Line, Lines, fit, rows, share_rows, wrapped
from eureka_agent.report.metric import metric_sentence, same_words
from eureka_agent.report.sparkline import common_scale, progress_bar, sparkline
from eureka_agent.report.state import SearchView

WIDE = 100
"""From this many columns on, tables have their extra columns."""
ROOMY = 20
"""From this many lines on, what is too long for a line is continued on the next one."""
MOST_DISCARDED = 4
"""Attempts that came to nothing: the last of them are named."""


class SearchPanel:
    """Draws a `SearchView` as it is at `clock()` into whatever room the console has."""

    def __init__(self, view: SearchView, clock: Callable[[], float]) -> None:
        self.view = view
        self.clock = clock

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        height = options.height or console.height
        now = self.clock()
        # a line is left for the cursor, and one for the line feed at the end, which else would
        # scroll the title away
        yield Lines(
            search_lines(
                self.view, now, options.max_width, height - 2, ascii_only=options.ascii_only
            )
        )


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
    lines = header_lines(view, width, most) + budget_lines(
        view, now, width, most, ascii_only=ascii_only
    )
    lines += model_lines(view, now, width)
    trainings = most_interesting(list(view.running.values()))
    finals = list(view.finals.items()) if _finals_begun(view) else []
    discarded = view.attempts.discarded(MOST_DISCARDED, view.env_steps_per_training)
    notices = list(view.notices)[-2:]
    wanted = [
        _with_titles(len(trainings)),
        _with_titles(len(view.attempts.leaderboard)),
        _with_titles(len(finals)),
    ]
    wanted += [_with_heading(len(discarded)), len(notice_lines(notices, width))]
    given = share_rows(height - len(lines), wanted, [5, 5, 7, 2, 1])
    sections = (
        lambda room: training_lines(view, trainings, now, width, room, ascii_only=ascii_only),
        lambda room: leaderboard_lines(view.attempts.leaderboard, width, room),
        lambda room: final_lines(view, finals, width, room),
        lambda room: discarded_lines(discarded, width, room),
        lambda room: recent_notices(notices, width, room),
    )
    for section, room in zip(sections, given, strict=True):
        if room > 0:
            lines += section(room)
    return lines[:height]


def header_lines(view: SearchView, width: int, most: int = 2) -> list[Line]:
    """The task in words, who does it where, and whose metric counts where that is not plain; each
    in `most` lines at most."""
    run = view.run
    assert run is not None
    description = run.description
    environment = Path(description.environment).name or description.environment
    facts = f"{environment} · {description.task} · designer: {run.designer} · wall: {run.wall}"
    if len(facts) + len(run.run_name) + 3 <= width:
        facts += f" · {run.run_name}"
    lines: list[Line] = [[(line, "bold")] for line in wrapped(run.sentence, width, most)]
    lines += [[(line, "dim")] for line in wrapped(facts, width, most)]
    if run.fitness_origin or not same_words(run.sentence, description.sentence):
        style = "yellow" if run.fitness_origin else "dim"
        lines += [
            [(line, style)]
            for line in wrapped(metric_sentence(description, run.fitness_origin), width, most)
        ]
    return lines


def budget_lines(
    view: SearchView, now: float, width: int, most: int = 2, *, ascii_only: bool = False
) -> list[Line]:
    """Trainings, env steps, speed and time, with a bar over all env steps; counts in `most` lines
    at most."""
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
        times += f", about {wording.clock_time(left)} left"
    full, empty = progress_bar(share, max(0, width - len(times)), ascii_only=ascii_only)
    counts = [
        (wording.plural(attempts.proposed, "proposal") if attempts.proposed else "", ""),
        (f"{attempts.rejected} thrown out by the critic" if attempts.rejected else "", ""),
        (f"{attempts.failed} failed in training" if attempts.failed else "", "yellow"),
        (f"{attempts.stopped} stopped early" if attempts.stopped else "", "dim"),
    ]
    lines: list[Line] = [[(view.phase, "bold cyan")]]
    for text, style in counts:
        if text:
            fits = sum(len(piece) for piece, _ in lines[-1]) + 3 + len(text) <= width
            if fits or len(lines) == most:
                lines[-1].append((f" · {text}", style))
            else:
                lines.append([(text, style)])
    return [
        *lines,
        *[
            [(line, "")]
            for line in wrapped(" · ".join(part for part in parts if part), width, most)
        ],
        [(full, "green"), (empty, "dim"), (times, "")],
    ]


def model_lines(view: SearchView, now: float, width: int) -> list[Line]:
    """Account of the requests to models so far, and the replies that are awaited; nothing for the
    offline designer."""
    account = view.requests.account()
    awaited = view.requests.awaited(now, width)
    lines: list[Line] = (
        [[(line, "")] for line in wrapped(f"models: {account}", width, 2)] if account else []
    )
    return lines + ([[(fit(awaited, width).rstrip(), "cyan")]] if awaited else [])


def most_interesting(trainings: list[TrainingView]) -> list[TrainingView]:
    """Highest fitness first, then those furthest along."""
    return sorted(
        trainings,
        key=lambda training: (
            -(training.fitness if training.fitness is not None else -math.inf),
            -training.env_steps,
        ),
    )


def training_lines(
    view: SearchView,
    trainings: list[TrainingView],
    now: float,
    width: int,
    room: int,
    *,
    ascii_only: bool = False,
) -> list[Line]:
    """The running trainings with their curves; those shown keep the order in which they started."""
    shown, hidden = _cut(trainings, room - 2)
    order = {job: index for index, job in enumerate(view.running)}
    shown = sorted(shown, key=lambda training: order[training.job])
    # names, which seed, and fitness are shown whole; what is left is for the env steps, the curve
    # and the bar, in this order
    names = max([9, *(len(training.label) for training in shown)])
    roles = max([4, *(len(training.role) for training in shown)])
    left = width - (names + roles + 8 + 11 + 8)
    curve_width = 24 if left >= 24 + 22 else 13 if left >= 15 else 0
    bar_width = max(0, min(20, left - (curve_width + 2 if curve_width else 0) - 1))
    per_training = view.run.settings.env_steps if view.run is not None else 0
    scale = (
        common_scale((training.history.values for training in shown), curve_width)
        if curve_width
        else None
    )
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
        steps = (
            f"{' ' if bar_width else ''}{wording.count(training.env_steps):>5} {min(share, 1):4.0%}"
        )
        row: list[str | Line] = [
            training.label,
            wording.words(training.role),
            wording.number(training.fitness),
        ]
        row += [curve] if curve_width else []
        cells.append(
            [*row, *([[(full, "green"), (empty, "dim"), (steps, "")]] if left >= 0 else [])]
        )
    activity = view.activity
    waiting = f", {text}" if (text := activity.waiting(now)) else ""
    title = f"{wording.plural(activity.training, 'training')} now{waiting}"
    note = " (fitness with exploration noise)"
    lines = [_heading(title + note if len(title + note) <= width - 4 else title, width)]
    return lines + rows(columns, cells, width) + _more(hidden, "training")


def leaderboard_lines(leaderboard: list[LeaderboardEntry], width: int, room: int) -> list[Line]:
    """The best attempts so far."""
    shown, hidden = _cut(leaderboard, room - 2)
    wide = width >= WIDE
    several = any(entry.seeds > 1 for entry in shown)
    columns = [
        Column("rank", 4, right=True),
        Column("attempt", 8, "bold"),
        Column("operator", 16 if wide else 9),
        Column("fitness", 9, "green", right=True),
        *([Column("seeds", 5, right=True)] if several else []),
        Column("length", 6, right=True),
        Column("what the analyzer says", 0, "dim"),
    ]
    cells = []
    for rank, entry in enumerate(shown, start=1):
        operator = wording.words(entry.operator)
        cells.append(
            [
                str(rank),
                entry.id,
                operator if wide else operator.split()[0],
                wording.number(entry.fitness),
                *([str(entry.seeds)] if several else []),
                wording.MISSING if entry.episode_length is None else f"{entry.episode_length:.0f}",
                entry.remark,
            ]
        )
    return [_heading("leaderboard", width), *rows(columns, cells, width), *_more(hidden, "attempt")]


def final_lines(
    view: SearchView, finals: list[tuple[str, SeedScores]], width: int, room: int
) -> list[Line]:
    """Baselines and finalists: the mean over the seeds that are done."""
    shown, hidden = _cut(finals, room - 2)
    cells = [[name, *_final_cells(final)] for name, final in shown]
    wide = width >= 10 + 22 + 16 + 8 + max([5, *(len(row[-1]) for row in cells)])
    columns = [
        Column("reward", 10 if wide else 8, "bold"),
        Column(
            "fitness",
            22 if wide else max([7, *(len(row[1]) for row in cells)]),
            "green",
            right=True,
        ),
        *([Column("human-normalised", 16, right=True)] if wide else []),
        Column("seeds", 0, "dim"),
    ]
    if not wide:
        cells = [[name, fitness, seeds] for name, fitness, _, seeds in cells]
    unit = view.run.description.fitness_unit if view.run is not None else "1"
    title = "trained again with fresh seeds" + (
        f" (fitness in {unit})" if unit not in ("1", "") else ""
    )
    return [_heading(title, width), *rows(columns, cells, width), *_more(hidden, "reward")]


def _final_cells(final: SeedScores) -> list[str]:
    if final.score is not None:
        seeds = wording.plural(len(final.score.seeds), "seed")
        origin = ", from the cache" if final.score.cached else ""
        value = wording.plus_minus(final.score.mean, final.score.std)
        return [value, wording.number(final.score.human_normalized), seeds + origin]
    known = [value for value in final.fitness if value is not None]
    mean = sum(known) / len(known) if known else None
    return [wording.number(mean), "", f"{final.ended} of {final.planned} seeds"]


def discarded_lines(discarded: list[Discarded], width: int, room: int) -> list[Line]:
    """The last attempts that came to nothing, and why; how many there are the view's head says."""
    lines = [_heading("came to nothing", width)]
    for entry in discarded[: max(0, room - 1)]:
        style = (
            "red"
            if entry.stage is Stage.REJECTED
            else "yellow"
            if entry.stage is Stage.FAILED
            else "dim"
        )
        lines.append(
            [
                ("  ", ""),
                (fit(entry.id, 10), style),
                (fit(entry.reason, max(1, width - 12)).rstrip(), ""),
            ]
        )
    return lines


def recent_notices(notices: list[Notice], width: int, room: int) -> list[Line]:
    """The notices, or the last one of them where there is no more room."""
    lines = notice_lines(notices, width)
    return lines if len(lines) <= room else notice_lines(notices[-1:], width, room)


def notice_lines(notices: list[Notice], width: int, most: int = 3) -> list[Line]:
    """The notices, each in `most` lines at most."""
    return [
        [(line, "yellow" if notice.level == "warning" else "dim")]
        for notice in notices
        for line in wrapped(notice.text, width, min(most, 3))
    ]


def _finals_begun(view: SearchView) -> bool:
    return any(final.queued or final.score is not None for final in view.finals.values())


def _with_titles(count: int) -> int:
    return count + 2 if count else 0


def _with_heading(count: int) -> int:
    return count + 1 if count else 0


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
