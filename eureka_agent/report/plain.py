"""A log of the events and of what is under way, with the elapsed time, for pipes, CI logs and
terminals without cursor control."""

from __future__ import annotations

import math
import re
import textwrap
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType

from rich.console import Console

from eureka_agent import wording
from eureka_agent.journal import entries as journal
from eureka_agent.journal.entries import BaseEntry, RunStarted
from eureka_agent.records import Attempt, Proposal, Repeat, RunStatus, Stage
from eureka_agent.report.entries import first_error, why_stopped
from eureka_agent.report.ledger import format_money
from eureka_agent.report.lines import to_ascii
from eureka_agent.report.metric import metric_sentence
from eureka_agent.report.state import SearchView
from eureka_agent.text import printable

PROGRESS_INTERVAL_S = 60.0
"""Seconds between two lines about what is under way."""
SHORT_INTERVAL_S = 10.0
"""The same in the first minute, and where what runs has changed."""
LINE_WIDTH = 160
"""Characters of a line; what is longer goes on in the next one."""
TIME_WIDTH = len("[    0.0 s] ")
_CODE = re.compile("`[^`]*`")


class PlainLog:
    """Writes what happens, line by line, without colour or cursor movement."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self.view = SearchView()
        self._first_progress = self._last_progress = math.nan
        self._last_counts: tuple[int, ...] = ()

    def __enter__(self) -> PlainLog:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        return None

    def paused(self) -> AbstractContextManager[object]:
        """Nothing is to be done: lines do not hold the terminal."""
        return nullcontext()

    def __call__(self, event: BaseEntry) -> None:
        now = self._clock()
        self.view.apply(event, now)
        if isinstance(event, journal.TrainingProgress):
            self._write_progress(now)
        self._write(event_line(event, self.view), now)
        if isinstance(event, RunStarted):
            self._write(metric_sentence(event.description, event.fitness_origin), now)

    def tick(self) -> None:
        """Tell of what is under way where that is due: to be called every second or so, since a
        search that waits has no events."""
        self._write_progress(self._clock())

    def _write_progress(self, now: float) -> None:
        if math.isnan(self._first_progress):
            self._first_progress = self._last_progress = now
        if self.view.ended is not None or now - self._last_progress < SHORT_INTERVAL_S:
            return
        activity = self.view.activity
        counts = (
            activity.training,
            activity.for_a_slot,
            activity.at_a_rung,
            self.view.requests.pending,
        )
        in_first_minute = now - self._first_progress <= PROGRESS_INTERVAL_S
        if (
            in_first_minute
            or counts != self._last_counts
            or now - self._last_progress >= PROGRESS_INTERVAL_S
        ):
            self._last_progress, self._last_counts = now, counts
            self._write(progress_line(self.view, now), now)

    def _write(self, text: str, now: float) -> None:
        """Write `text` in lines that all begin with the time; no code in it is broken."""
        begin = f"[{self.view.elapsed(now):7.1f} s] "
        whole = _CODE.sub(
            lambda code: code[0].replace(" ", "\0"), " ".join(printable(text).split())
        )
        for line in textwrap.wrap(
            whole,
            LINE_WIDTH,
            initial_indent=begin,
            subsequent_indent=f"{begin}  ",
            break_long_words=False,
            break_on_hyphens=False,
        ):
            line = line.replace("\0", " ") + "\n"
            self._console.file.write(
                line if self._console.encoding.startswith("utf") else to_ascii(line)
            )
        self._console.file.flush()


def progress_line(view: SearchView, now: float) -> str:
    """Progress in one line: trainings, waits and since when, and how far the search is; empty where
    nothing has begun."""
    room = LINE_WIDTH - TIME_WIDTH
    if view.run is None:
        return view.requests.awaited(now, room)
    rate, left, activity = view.steps_per_second, view.seconds_left(now), view.activity
    steps = (
        f"{wording.count(view.env_steps_done)} of {wording.count(view.env_steps_total)} env steps"
    )
    parts = [
        (
            f"{wording.plural(activity.training, 'training')} running"
            if activity.training
            else "nothing is training"
        ),
        activity.waiting(now),
        f"{view.trainings_done} of {view.trainings_total} done",
        steps,
        f"{wording.count(rate)} steps/s" if rate is not None else "",
        f"about {wording.duration(left)} left" if left is not None else "",
    ]
    shortest = view.requests.awaited(now, 0)
    if shortest and len(_line(parts)) + 2 + len(shortest) > room:
        parts.remove(steps)
    awaited = view.requests.awaited(now, room - len(_line(parts)) - 2)
    return f"{_line(parts)}; {awaited}" if awaited else _line(parts)


def _line(parts: list[str]) -> str:
    return ", ".join(filter(None, parts))


def event_line(event: BaseEntry, view: SearchView) -> str:
    """`event` in words; empty for one that is not worth a line. `view` has taken it over
    already."""
    match event:
        case RunStarted():
            verb = "resumes" if event.resumed else "starts"
            place = f"{event.description.environment}, task {event.description.task}"
            return (
                f"run {event.run_name} {verb}: {event.sentence!r} ({place}; designer"
                f" {event.designer}; wall {event.wall})"
            )
        case journal.IterationStarted():
            total = view.run.settings.iterations if view.run is not None else "?"
            again = f", round {event.round + 1}" if event.round else ""
            return (
                f"iteration {event.iteration + 1} of {total}{again}:"
                f" {wording.plural(event.samples, 'proposal')} to make"
            )
        case journal.RequestEnded():
            return (
                ""
                if event.cost is None and view.requests.repeats_first_failure
                else _answered(event)
            )
        case journal.Judged():
            return _judged(view.attempts[event.attempt])
        case journal.Reviewed() if not event.verdict.accepted:
            return _judged(view.attempts[event.attempt])
        case journal.AttemptEnded():
            return _attempt_ended(view.attempts[event.attempt], view.env_steps_per_training)
        case journal.ConfirmationStarted():
            names = ", ".join(event.attempts)
            trainings = wording.plural(event.trainings, "training")
            return f"the best so far are trained again from other seeds: {names} ({trainings})"
        case journal.AttemptRepeated():
            return _repeated(view.attempts[event.attempt], event.repeat)
        case journal.TrainingEnded() if event.training not in ("search", "repeat"):
            result = (
                f"failed: {event.failure}"
                if event.failure
                else f"fitness {wording.number(event.fitness)}"
            )
            what = (
                f"final training of {event.label}"
                if event.training == "final"
                else f"training of the {event.label} reward"
            )
            return (
                f"{what} {f'is taken from {event.taken_from}' if event.taken_from else 'ended'}:"
                f" {result}"
            )
        case journal.TrainingRetried():
            return view.notices[-1].text
        case journal.TrainingResumed():
            steps = event.points[-1].env_steps if event.points else 0
            return f"training of {event.label} goes on at {wording.count(steps)} env steps"
        case journal.IterationEnded():
            best = None if event.best is None else view.attempts.get(event.best)
            summary = (
                f"best so far is {best.id} with fitness {wording.number(best.fitness)}"
                if best
                else "nothing trained yet"
            )
            return f"iteration {event.iteration + 1} ends: {summary}"
        case journal.FinalStarted():
            names = ", ".join(event.attempts)
            return f"final trainings with fresh seeds: {names or 'no finalist'}"
        case journal.Scored():
            score = event.score
            normalized = (
                f", human-normalised {wording.number(score.human_normalized)}"
                if score.human_normalized is not None
                else ""
            )
            origin = " (from the cache)" if score.cached else ""
            seeds = wording.plural(len(score.seeds), "seed")
            return (
                f"{score.name}: {wording.plus_minus(score.mean, score.std)} over"
                f" {seeds}{normalized}{origin}"
            )
        case journal.RunEnded():
            report = f"; report in {event.report_path}" if event.report_path else ""
            # how a stopped run goes on is said below these lines, and by the report
            lines = (
                []
                if event.status is RunStatus.STOPPED
                else [line.strip() for line in event.message.splitlines()]
            )
            message = f": {'; '.join(lines)}" if lines else ""
            return f"run {event.status.value}{message}{report}"
        case journal.Notice():
            return f"warning: {event.text}" if event.level == "warning" else event.text
    return ""


def _answered(event: journal.RequestEnded) -> str:
    request, cost = event.request, event.cost
    if cost is None:
        return f"no reply from {request.model}: {request.purpose}"
    tokens = (
        None
        if cost.prompt_tokens is None or cost.completion_tokens is None
        else cost.prompt_tokens + cost.completion_tokens
    )
    parts = [
        wording.duration(cost.seconds),
        "tokens unknown" if tokens is None else f"{wording.count(tokens)} tokens",
        "cost unknown" if cost.money is None else format_money(cost.money),
    ]
    return f"reply from {request.model}: {request.purpose} ({', '.join(parts)})"


def _judged(attempt: Attempt) -> str:
    if attempt.stage is not Stage.REJECTED:
        return f"{attempt.id} accepted by the critic ({origin(attempt.proposal)})"
    return f"{attempt.id} thrown out by the critic: {first_error(attempt) or attempt.reason}"


def _attempt_ended(attempt: Attempt, env_steps: int) -> str:
    match attempt.stage:
        case Stage.TRAINED:
            return (
                f"{attempt.id} trained: fitness {wording.number(attempt.fitness)}"
                f" ({origin(attempt.proposal)})"
            )
        case Stage.FAILED:
            return f"{attempt.id} failed in training: {attempt.reason}"
        case Stage.STOPPED:
            return f"{attempt.id} stopped {why_stopped(attempt, env_steps)}"
    return ""


def _repeated(attempt: Attempt, repeat: Repeat) -> str:
    if repeat.outcome is None:
        return f"{attempt.id} trained again: failed: {repeat.failure}"
    seeds = wording.plural(len(attempt.fitness_per_seed), "seed")
    mean = f"{wording.number(attempt.fitness)} over {seeds}"
    return (
        f"{attempt.id} trained again: fitness {wording.number(repeat.outcome.fitness)}; mean {mean}"
    )


def origin(proposal: Proposal) -> str:
    """`improve from 1-01`."""
    operator = wording.words(proposal.operator.value)
    parents = " and ".join(proposal.parents)
    return f"{operator} from {parents}" if parents else operator
