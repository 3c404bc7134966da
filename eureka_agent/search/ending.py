"""What a run takes in wall time, and what is written when it ends, however it does."""

from __future__ import annotations

import shutil
import time

from eureka_agent.archive.artefacts import MESSAGES
from eureka_agent.archive.files import write_file
from eureka_agent.archive.run_folder import Run
from eureka_agent.llm.replay import write_recording
from eureka_agent.records import RunStatus
from eureka_agent.report.events import (
    AttemptEnded,
    Event,
    Observer,
    RequestEnded,
    RunEnded,
    TrainingEnded,
)
from eureka_agent.report.markdown import write_report
from eureka_agent.search.models import recording_of
from eureka_agent.search.summary import run_report

WORKERS_FOLDER = ".workers"
"""Scratch of a run's workers; emptied when the run ends."""
REPORT_FILE = "report.md"


class Stopwatch:
    """Hands events on and adds the time since the last result to the run's, so that a kill loses
    little of it."""

    def __init__(self, run: Run, observer: Observer) -> None:
        self._run = run
        self._observer = observer
        self._since = time.monotonic()

    def seconds(self) -> float:
        """Wall time spent on the run up to now, over all its resumptions."""
        return self._run.seconds + time.monotonic() - self._since

    def add(self) -> None:
        """Add the time since the last call."""
        now = time.monotonic()
        self._run.add_seconds(now - self._since)
        self._since = now

    def __call__(self, event: Event) -> None:
        if isinstance(event, AttemptEnded | TrainingEnded) or (
            isinstance(event, RequestEnded) and event.cost is not None
        ):
            self.add()
        self._observer(event)


def end_run(run: Run, status: RunStatus, message: str, observer: Stopwatch) -> None:
    """Write down how a run stands when this process leaves it: facts, the recording of what models
    said, the report."""
    observer.add()  # before the report, which says how long it took
    run.archive.set_facts({"status": status.value, "message": message})
    shutil.rmtree(run.folder / WORKERS_FOLDER, ignore_errors=True)
    if run.archive.account():
        write_file(run.folder / MESSAGES, lambda draft: write_recording(draft, recording_of(run)))
    report = run_report(run)
    write_file(run.folder / REPORT_FILE, lambda draft: write_report(draft, report))
    observer.add()  # a resumed run's clock goes on from what is shown now
    observer(
        RunEnded(
            status=status,
            scores=report.scores,
            best=report.best,
            report_path=run.folder / REPORT_FILE,
            message=message,
        )
    )


def has_results(run: Run) -> bool:
    """True where a run has anything that took time or money: a proposal, a reply, a training of its
    own."""
    archive = run.archive
    return bool(
        archive.attempts()
        or archive.account()
        or any(not each.cached for each in archive.trainings())
    )


def remove_run(run: Run, message: str, observer: Observer) -> None:
    """Remove the folder of a run that failed before it had any result, so that `latest` is not a
    run of nothing."""
    observer(RunEnded(status=RunStatus.FAILED, message=message))
    run.archive.close()
    shutil.rmtree(run.folder, ignore_errors=True)
