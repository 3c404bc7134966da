"""Log of events and progress with the elapsed time, for pipes, CI logs and dumb terminals."""

from __future__ import annotations

import math
import re
import textwrap
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from rich.console import Console

from eureka_agent import wording
from eureka_agent.feedback_records import Judgement
from eureka_agent.journal import entries as journal
from eureka_agent.journal.entries import BaseEntry, RunStarted
from eureka_agent.records import Attempt, Repeat, RunStatus, Score, Stage
from eureka_agent.report.entries import first_error, measure_of, merit_words, origin
from eureka_agent.report.feedback import feedback_line
from eureka_agent.report.ledger import format_money
from eureka_agent.report.lines import to_ascii
from eureka_agent.report.metric import metric_sentence
from eureka_agent.report.randomisation import randomisation_line
from eureka_agent.report.state import SearchView
from eureka_agent.settings import UNMEASURED
from eureka_agent.text import printable

PROGRESS_INTERVAL_S = 60.0
"""Seconds between two lines of progress."""
SHORT_INTERVAL_S = 10.0
"""The same in the first minute, and after a change of what runs."""
LINE_WIDTH = 160
TIME_WIDTH = len("[    0.0 s] ")
_CODE = re.compile("`[^`]*`")


class PlainLog:
    """Writes events line by line, without colour or cursor movement."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self.view = SearchView()
        self._first_progress = self._last_progress = math.nan
        self._last_counts: tuple[int, ...] = ()

    def __enter__(self) -> PlainLog:
        return self

    def __exit__(self, *exception: object) -> None:
        return None

    def paused(self) -> AbstractContextManager[object]:
        """Do nothing: lines do not hold the terminal."""
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
        """Write progress where it is due; called every second, since waits have no events."""
        self._write_progress(self._clock())

    def _write_progress(self, now: float) -> None:
        if math.isnan(self._first_progress):
            self._first_progress = self._last_progress = now
        since = now - self._last_progress
        if self.view.ended is not None or since < SHORT_INTERVAL_S:
            return
        counts = (len(self.view.running), len(self.view.queued), self.view.requests.pending)
        in_first_minute = now - self._first_progress <= PROGRESS_INTERVAL_S
        if in_first_minute or counts != self._last_counts or since >= PROGRESS_INTERVAL_S:
            self._last_progress, self._last_counts = now, counts
            self._write(progress_line(self.view, now), now)

    def _write(self, text: str, now: float) -> None:
        """Write text in lines that all begin with the time; code in it is not wrapped."""
        begin = f"[{self.view.elapsed(now):7.1f} s] "
        whole = " ".join(printable(text).split())
        lines = textwrap.wrap(
            _CODE.sub(lambda code: code[0].replace(" ", "\0"), whole),
            LINE_WIDTH,
            initial_indent=begin,
            subsequent_indent=f"{begin}  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        written = "".join(f"{line}\n" for line in lines).replace("\0", " ")
        is_unicode = self._console.encoding.startswith("utf")
        self._console.file.write(written if is_unicode else to_ascii(written))
        self._console.file.flush()


def progress_line(view: SearchView, now: float) -> str:
    """Progress in one line: trainings, waits, env steps and time; empty before anything began."""
    room = LINE_WIDTH - TIME_WIDTH
    if view.run is None:
        return view.requests.awaited(now, room)
    rate, left = view.steps_per_second, view.seconds_left(now)
    running, queued = len(view.running), len(view.queued)
    idle = view.phase if view.all_trained else "nothing is training"
    total = wording.count(view.env_steps_total)
    steps = f"{wording.count(view.env_steps_done)} of {total} env steps"
    parts = [
        f"{wording.plural(running, 'training')} running" if running else idle,
        f"{queued} waiting" if queued else "",
        f"{view.trainings_done} of {view.trainings_total} done",
        steps,
        f"{wording.count(rate)} steps/s" if rate is not None else "",
        f"about {wording.duration(left)} left{view.then}" if left is not None else "",
    ]
    shortest = view.requests.awaited(now, 0)
    if shortest and len(_line(parts)) + 2 + len(shortest) > room:
        parts.remove(steps)
    awaited = view.requests.awaited(now, room - len(_line(parts)) - 2)
    return f"{_line(parts)}; {awaited}" if awaited else _line(parts)


def _line(parts: list[str]) -> str:
    return ", ".join(filter(None, parts))


def event_line(event: BaseEntry, view: SearchView) -> str:
    """An event in words; empty for an unimportant one. `view` has applied it already."""
    match event:
        case RunStarted():
            verb = "resumes" if event.resumed else "starts"
            place = f"{event.description.environment}, task {event.description.task}"
            return (
                f"run {event.run_name} {verb}: {event.sentence!r} ({place}; designer"
                f" {event.designer}; wall {event.wall})"
            )
        case journal.IterationStarted():
            total = view.iterations
            again = f", round {event.round + 1}" if event.round else ""
            proposals = wording.plural(event.samples, "proposal")
            return f"iteration {event.iteration + 1} of {total}{again}: {proposals} to make"
        case journal.RequestEnded():
            told = event.cost is None and view.requests.repeats_first_failure
            return "" if told else _answered(event)
        case journal.RequestBatchAwaited():
            requests = wording.plural(event.requests, "request")
            return f"a batch of {requests} is with the provider of {event.model}"
        case journal.RequestBatchEnded() if event.unanswered:
            requests = wording.plural(len(event.unanswered), "request")
            return f"a batch of requests has ended, {requests} of it without a reply"
        case journal.Judged():
            return _judged(view.attempts[event.attempt])
        case journal.Reviewed() if not event.verdict.accepted:
            return _judged(view.attempts[event.attempt])
        case journal.AttemptEnded():
            measured = view.run is None or view.run.settings.fitness not in UNMEASURED
            return _attempt_ended(view.attempts[event.attempt], measured=measured)
        case journal.FeedbackGiven(feedback=Judgement() as judgement):
            return f"{event.who} {feedback_line(judgement)}"
        case journal.ConfirmationStarted():
            names = ", ".join(event.attempts)
            trainings = wording.plural(event.trainings, "training")
            return f"the best so far are trained again from other seeds: {names} ({trainings})"
        case journal.AttemptRepeated():
            return _repeated(view.attempts[event.attempt], event.repeat)
        case journal.TrainingEnded() if event.training not in ("search", "repeat"):
            return _final_ended(event)
        case journal.TrainingRetried():
            return view.notices[-1].text
        case journal.TrainingResumed():
            steps = event.points[-1].env_steps if event.points else 0
            return f"training of {event.label} goes on at {wording.count(steps)} env steps"
        case journal.IterationEnded():
            board = view.attempts.leaderboard
            best = next((each for each in board if each.id == event.best), None)
            summary = "nothing trained yet"
            if best is not None:
                merit = f"{measure_of([best])} {merit_words(best)}"
                summary = f"best so far is {best.id} with {merit}"
            return f"iteration {event.iteration + 1} ends: {summary}"
        case journal.FinalStarted():
            if event.skipped:
                return f"no final trainings: {event.skipped}"
            names = ", ".join(event.attempts)
            return f"final trainings with fresh seeds: {names or 'no finalist'}"
        case journal.FinalRound():
            seeds = [f"{name} up to {number}" for name, number in event.seeds.items()]
            return f"fresh seeds next: {', '.join(seeds)}"
        case journal.Scored():
            return _scored(event.score)
        case journal.OfRandomisation():
            return randomisation_line(event)
        case journal.RunEnded():
            # the commands' own output says how to resume a stopped run
            stopped = event.status is RunStatus.STOPPED
            lines = [] if stopped else [line.strip() for line in event.message.splitlines()]
            message = f": {'; '.join(lines)}" if lines else ""
            report = f"; report in {event.report_path}" if event.report_path else ""
            return f"run {event.status.value}{message}{report}"
        case journal.Notice():
            return f"warning: {event.text}" if event.level == "warning" else event.text
    return ""


def _answered(event: journal.RequestEnded) -> str:
    request, cost = event.request, event.cost
    if cost is None:
        return f"no reply from {request.model}: {request.purpose}"
    tokens = "tokens unknown"
    if cost.prompt_tokens is not None and cost.completion_tokens is not None:
        tokens = f"{wording.count(cost.prompt_tokens + cost.completion_tokens)} tokens"
    money = "cost unknown" if cost.money is None else format_money(cost.money)
    facts = f"{wording.duration(cost.seconds)}, {tokens}, {money}"
    return f"reply from {request.model}: {request.purpose} ({facts})"


def _judged(attempt: Attempt) -> str:
    if attempt.stage is not Stage.REJECTED:
        return f"{attempt.id} accepted by the critic ({origin(attempt.proposal)})"
    return f"{attempt.id} thrown out by the critic: {first_error(attempt) or attempt.reason}"


def _attempt_ended(attempt: Attempt, *, measured: bool) -> str:
    match attempt.stage:
        case Stage.TRAINED:
            fitness = f": fitness {wording.number(attempt.fitness)}" if measured else ""
            return f"{attempt.id} trained{fitness} ({origin(attempt.proposal)})"
        case Stage.FAILED:
            return f"{attempt.id} failed in training: {attempt.reason}"
    return ""


def _repeated(attempt: Attempt, repeat: Repeat) -> str:
    if repeat.outcome is None:
        return f"{attempt.id} trained again: failed: {repeat.failure}"
    fitness = wording.number(repeat.outcome.fitness)
    seeds = wording.plural(len(attempt.fitness_per_seed), "seed")
    mean = f"{wording.number(attempt.fitness)} over {seeds}"
    return f"{attempt.id} trained again: fitness {fitness}; mean {mean}"


def _final_ended(event: journal.TrainingEnded) -> str:
    what = f"training of the {event.label} reward"
    if event.training in ("final", "randomised"):
        what = f"{event.training} training of {event.label}"
    result = f"fitness {wording.number(event.fitness)}"
    if event.failure:
        result = f"failed: {event.failure}"
    end = f"is taken from {event.taken_from}" if event.taken_from else "ended"
    return f"{what} {end}: {result}"


def _scored(score: Score) -> str:
    text = f"{score.name}: {wording.plus_minus(score.mean, score.std)}"
    text += f" over {wording.plural(len(score.seeds), 'seed')}"
    if score.human_normalized is not None:
        text += f", human-normalised {wording.number(score.human_normalized)}"
    return text + (f" ({score.origin})" if score.origin else "")
