"""The journal for `eureka show RUN --events`: a plain line or JSON for each entry."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from eureka_agent import wording
from eureka_agent.journal import entries as journal
from eureka_agent.journal.entries import BaseEntry, kind_of
from eureka_agent.journal.state import Recorded
from eureka_agent.records import FinalTraining
from eureka_agent.report.entries import origin
from eureka_agent.report.feedback import feedback_line
from eureka_agent.report.follow import hand_on
from eureka_agent.report.plain import event_line
from eureka_agent.report.state import SearchView
from eureka_agent.text import one_line

LONGEST_LINE = 300
_TIME_CHARACTERS = len("2026-11-21T03:55:00")


def journal_lines(entries: Iterable[Recorded], folder: Path) -> Iterator[str]:
    """A line for each entry: time (UTC), seconds of the run, kind, event."""
    view = SearchView()
    for recorded in entries:
        entry, seconds = recorded.entry, recorded.seconds
        hand_on(recorded, lambda entry, seconds=seconds: view.apply(entry, seconds), folder)
        time = one_line(recorded.time, _TIME_CHARACTERS + 1)[:_TIME_CHARACTERS].replace("T", " ")
        text = one_line(event_line(entry, view) or _other_line(entry), LONGEST_LINE)
        yield f"{time} {seconds:9.1f} s  {kind_of(entry):<22} {text}".rstrip()


def entry_to_json(recorded: Recorded) -> dict[str, Any]:
    """An entry in plain JSON types: its place in the journal, and its own fields apart."""
    return {
        "number": recorded.number,
        "time": recorded.time,
        "seconds": recorded.seconds,
        "kind": kind_of(recorded.entry),
        "version": recorded.entry.version,
        "fields": json.loads(recorded.entry.model_dump_json(exclude={"kind"})),
    }


def _other_line(entry: BaseEntry) -> str:
    """Line of an entry that a search's log omits."""
    match entry:
        case journal.RunCreated():
            return f"made by: {shlex.join(entry.command)}" if entry.command else ""
        case journal.SettingChanged():
            return f"{entry.name} changed from {entry.before} to {entry.now}"
        case journal.Pruned():
            files = wording.plural(entry.files, "file")
            of = f", of {' '.join(entry.attempts)}" if entry.attempts else ""
            return f"{files} removed to free {wording.file_size(entry.size)}{of}"
        case journal.ModelBudgetSpent() if not entry.text:
            return "models are asked again, under other limits"
        case journal.SearchEndedEarly() if not entry.text:
            return "the search goes on where it had ended early"
        case journal.DeadlineReached() | journal.ModelBudgetSpent() | journal.SearchEndedEarly():
            return entry.text
        case journal.BaselinesNotAwaited():
            return f"the time is up, the baselines are not awaited: {entry.limit}"
        case journal.Planned():
            name = f"{entry.iteration + 1}-{entry.sample + 1:02d}"
            parents = f" from {' and '.join(entry.parents)}" if entry.parents else ""
            return f"{name} planned: {wording.words(entry.operator.value)}{parents}"
        case journal.FeedbackGiven():
            return f"{entry.who} {feedback_line(entry.feedback)}"
        case journal.FinalTrained(training=training):
            return _training(training)
        case journal.RandomisedTrained(winner=winner, training=training):
            return f"{winner}+{_training(training)}"
        case journal.RequestStarted():
            return f"request to {entry.model}: {entry.purpose}"
        case journal.RequestBatchPlanned(batch=batch):
            requests = wording.plural(len(batch.requests), "request")
            return f"batch {batch.id} of {requests} to {batch.model} is sent"
        case journal.RequestBatchSent():
            return f"batch {entry.id} is with the provider as {entry.provider_id}"
        case journal.RequestBatchEnded():
            return f"batch {entry.id} has ended, each request with a reply"
    return _attempt_line(entry) or _training_line(entry)


def _attempt_line(entry: BaseEntry) -> str:
    match entry:
        case journal.Proposed():
            return f"{entry.attempt} proposed: {origin(entry.proposal)}"
        case journal.Reviewed():
            findings = wording.plural(len(entry.verdict.findings), "finding")
            return f"{entry.attempt} passed its review: {findings}"
        case journal.RungScored(score=score):
            place = f"{wording.count(score.env_steps)} env steps"
            return f"{entry.attempt} at {place}: fitness {wording.number(score.fitness)}"
        case journal.Analysed():
            return f"{entry.attempt} analysed: {entry.text}"
    return ""


def _training(training: FinalTraining) -> str:
    fitness = None if training.outcome is None else training.outcome.fitness
    result = training.failure or f"fitness {wording.number(fitness)}"
    return f"{training.name} from seed {training.seed}: {result}"


def _training_line(entry: BaseEntry) -> str:
    match entry:
        case journal.TrainingQueued():
            what = f"{entry.training} training of {entry.label}"
            return f"{what} from seed {entry.seed} waits for a slot"
        case journal.TrainingProgress():
            if not entry.points:
                return f"training {entry.job} begins"
            last = entry.points[-1]
            place = f"{wording.count(last.env_steps)} env steps"
            return f"training {entry.job} at {place}: fitness {wording.number(last.fitness)}"
        case journal.TrainingEnded():
            result = f"failed: {entry.failure}" if entry.failure else ""
            result = result or f"fitness {wording.number(entry.fitness)}"
            return f"{entry.training} training of {entry.label} ended: {result}"
    return ""
