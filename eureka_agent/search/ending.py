"""What a run takes in wall time, and what is written when it ends, however it does."""

from __future__ import annotations

import asyncio
import shutil
import time
from contextlib import suppress

from eureka_agent.archive.artefacts import MESSAGES
from eureka_agent.archive.files import write_file
from eureka_agent.archive.run_folder import Run
from eureka_agent.errors import RunFolderError
from eureka_agent.journal.entries import BaseEntry, Observer, RunEnded
from eureka_agent.llm.replay import write_recording
from eureka_agent.records import RunStatus
from eureka_agent.report.markdown import write_report
from eureka_agent.search.models import recording_of
from eureka_agent.search.summary import run_report

WORKERS_FOLDER = ".workers"
"""Scratch of a run's workers; emptied when the run ends."""
REPORT_FILE = "report.md"


class Recorder:
    """Appends every entry to the run's journal, and then hands it on."""

    def __init__(self, run: Run, observer: Observer) -> None:
        self._run = run
        self._observer = observer
        self._before = run.seconds
        self._since = time.monotonic()
        run.archive.clock = self.seconds

    def seconds(self) -> float:
        """Wall time spent on the run up to now, over all its resumptions."""
        return self._before + time.monotonic() - self._since

    def tell(self, entry: BaseEntry) -> None:
        """Hand on an entry that is recorded."""
        self._observer(entry)

    def __call__(self, entry: BaseEntry) -> None:
        """Record the entry, and tell of it. Raises RunFolderError where it cannot be stored."""
        self._run.archive.append(entry)
        self._observer(entry)

    async def keep_current(self) -> None:
        """Store what waits to be stored every second, for whoever looks on from elsewhere."""
        while True:
            await asyncio.sleep(1.0)
            with suppress(RunFolderError):  # whoever decides next is told
                self._run.archive.flush()


def end_run(run: Run, status: RunStatus, message: str, observer: Recorder) -> None:
    """Write down how a run stands when this process leaves it: its end, the recording of what
    models said, the report."""
    ended = RunEnded(status=status, message=message, report_path=run.folder / REPORT_FILE)
    # before the report, which is made from it; whoever looks on is told when the report is there
    run.archive.append(ended)
    shutil.rmtree(run.folder / WORKERS_FOLDER, ignore_errors=True)
    if run.archive.account():
        write_file(run.folder / MESSAGES, lambda draft: write_recording(draft, recording_of(run)))
    report = run_report(run)
    write_file(run.folder / REPORT_FILE, lambda draft: write_report(draft, report))
    observer.tell(ended)


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
