"""One log line per event, with the elapsed time, for pipes, CI logs and terminals without cursor control."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType

from rich.console import Console

from eureka_agent.llm.text import printable
from eureka_agent.records import Attempt, Repeat, RunStatus, Stage
from eureka_agent.report import wording
from eureka_agent.report.entries import first_error, remark
from eureka_agent.report.events import (
    AttemptEnded,
    AttemptRepeated,
    ConfirmationStarted,
    Event,
    FinalStarted,
    IterationEnded,
    IterationStarted,
    Judged,
    Notice,
    Proposed,
    RequestEnded,
    RequestStarted,
    RunEnded,
    RunStarted,
    Scored,
    TrainingEnded,
    TrainingProgress,
    TrainingQueued,
    TrainingResumed,
    TrainingRetried,
)
from eureka_agent.report.ledger import format_money
from eureka_agent.report.lines import to_ascii
from eureka_agent.report.metric import metric_sentence
from eureka_agent.report.state import SearchView

PROGRESS_INTERVAL_S = 10.0
"""Seconds between two lines about trainings under way."""


class PlainLog:
    """Writes what happens, line by line, without colour or cursor movement."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self.view = SearchView()
        self._last_progress: float | None = None

    def __enter__(self) -> PlainLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        return None

    def paused(self) -> AbstractContextManager[object]:
        """Lines are written when something happens, so nothing is to be done."""
        return nullcontext()

    def __call__(self, event: Event) -> None:
        now = self._clock()
        self.view.apply(event, now)
        text = self._progress_line(now) if isinstance(event, TrainingProgress) else event_line(event, self.view)
        if text:
            line = f"[{self.view.elapsed(now):7.1f} s] {' '.join(printable(text).split())}\n"
            self._console.file.write(line if self._console.encoding.startswith("utf") else to_ascii(line))
            self._console.file.flush()

    def _progress_line(self, now: float) -> str:
        if self._last_progress is None:
            self._last_progress = now
        if now - self._last_progress < PROGRESS_INTERVAL_S:
            return ""
        self._last_progress = now
        view = self.view
        rate, left = view.steps_per_second, view.seconds_left(now)
        parts = [
            f"{wording.plural(len(view.running), 'training')} running, {len(view.queued)} waiting",
            f"{wording.plural(view.requests.pending, 'reply', 'replies')} awaited" if view.requests.pending else "",
            f"{view.trainings_done} of {view.trainings_total} done",
            f"{wording.count(view.env_steps_done)} of {wording.count(view.env_steps_total)} env steps",
            f"{wording.count(rate)} steps/s" if rate is not None else "",
            f"about {wording.duration(left)} left" if left is not None else "",
        ]
        return ", ".join(part for part in parts if part)


def event_line(event: Event, view: SearchView) -> str:
    """`event` in words; empty for one that is not worth a line. `view` has taken it over already."""
    match event:
        case RunStarted():
            verb = "resumes" if event.resumed else "starts"
            place = f"{event.description.environment}, task {event.description.task}"
            metric = metric_sentence(event.description, event.fitness_origin)
            return f"run {event.run_name} {verb}: {event.sentence!r} ({place}; designer {event.designer}; wall {event.wall}); {metric}"
        case IterationStarted():
            total = view.run.settings.iterations if view.run is not None else "?"
            again = f", round {event.round + 1}" if event.round else ""
            return f"iteration {event.iteration + 1} of {total}{again}: {wording.plural(event.samples, 'proposal')} to make"
        case RequestEnded():
            return _answered(event)
        case Judged():
            return _judged(event.attempt)
        case AttemptEnded():
            return _attempt_ended(event.attempt)
        case ConfirmationStarted():
            names = ", ".join(attempt.id for attempt in event.attempts)
            trainings = wording.plural(event.trainings, "training")
            return f"the best so far are trained again from other seeds: {names} ({trainings})"
        case AttemptRepeated():
            return _repeated(event.attempt, event.repeat)
        case TrainingEnded() if event.kind not in ("search", "repeat"):
            result = f"failed: {event.failure}" if event.failure else f"fitness {wording.number(event.fitness)}"
            what = (
                f"final training of {event.label}" if event.kind == "final" else f"training of the {event.label} reward"
            )
            return f"{what} {f'is taken from {event.taken_from}' if event.taken_from else 'ended'}: {result}"
        case TrainingRetried():
            return view.notices[-1].text
        case TrainingResumed():
            steps = event.points[-1].env_steps if event.points else 0
            return f"training of {event.label} goes on at {wording.count(steps)} env steps"
        case IterationEnded():
            best = event.best
            summary = (
                f"best so far is {best.id} with fitness {wording.number(best.fitness)}"
                if best
                else "nothing trained yet"
            )
            return f"iteration {event.iteration + 1} ends: {summary}"
        case FinalStarted():
            names = ", ".join(attempt.id for attempt in event.attempts)
            return f"final trainings with fresh seeds: {names or 'no finalist'}"
        case Scored():
            score = event.score
            normalized = (
                f", human-normalised {wording.number(score.human_normalized)}"
                if score.human_normalized is not None
                else ""
            )
            origin = " (from the cache)" if score.cached else ""
            seeds = wording.plural(len(score.seeds), "seed")
            return f"{score.name}: {wording.plus_minus(score.mean, score.std)} over {seeds}{normalized}{origin}"
        case RunEnded():
            report = f"; report in {event.report_path}" if event.report_path else ""
            # how a stopped run goes on is said below these lines, and by the report
            lines = [] if event.status is RunStatus.STOPPED else [line.strip() for line in event.message.splitlines()]
            message = f": {'; '.join(lines)}" if lines else ""
            return f"run {event.status.value}{message}{report}"
        case Notice():
            return f"warning: {event.text}" if event.level == "warning" else event.text
        case RequestStarted() | Proposed() | TrainingQueued() | TrainingProgress() | TrainingEnded():
            return ""


def _answered(event: RequestEnded) -> str:
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
        return f"{attempt.id} accepted by the critic ({_origin(attempt)})"
    return f"{attempt.id} thrown out by the critic: {first_error(attempt) or attempt.reason}"


def _attempt_ended(attempt: Attempt) -> str:
    match attempt.stage:
        case Stage.TRAINED:
            note = remark(attempt)
            return f"{attempt.id} trained: fitness {wording.number(attempt.fitness)} ({_origin(attempt)})" + (
                f"; {note}" if note else ""
            )
        case Stage.FAILED:
            return f"{attempt.id} failed in training: {attempt.reason}"
        case Stage.STOPPED:
            steps = attempt.outcome.env_steps if attempt.outcome is not None else 0
            return f"{attempt.id} stopped at {wording.count(steps)} env steps: {attempt.reason}"
    return ""


def _repeated(attempt: Attempt, repeat: Repeat) -> str:
    if repeat.outcome is None:
        return f"{attempt.id} trained again: failed: {repeat.failure}"
    seeds = wording.plural(len(attempt.fitness_per_seed), "seed")
    mean = f"{wording.number(attempt.fitness)} over {seeds}"
    return f"{attempt.id} trained again: fitness {wording.number(repeat.outcome.fitness)}; mean {mean}"


def _origin(attempt: Attempt) -> str:
    operator = wording.words(attempt.proposal.operator.value)
    parents = " and ".join(attempt.proposal.parents)
    return f"{operator} from {parents}" if parents else operator
