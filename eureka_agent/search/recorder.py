"""The recorder: it stores every entry in the run's journal before anything reacts to it."""

from __future__ import annotations

import asyncio
import shutil
import time
from contextlib import suppress

from eureka_agent.archive.artefacts import HTML_REPORT, MESSAGES, REPORT
from eureka_agent.archive.files import write_file, write_text
from eureka_agent.archive.run_folder import Run
from eureka_agent.errors import RunFolderError
from eureka_agent.journal.entries import BaseEntry, Notice, Observer, RunEnded
from eureka_agent.llm.replay import write_recording
from eureka_agent.records import RunStatus
from eureka_agent.report.html.document import html_report
from eureka_agent.report.markdown import markdown
from eureka_agent.search.models import recording_of
from eureka_agent.search.summary import run_report


class Recorder:
    """Stores entries and passes them on."""

    def __init__(self, run: Run, observer: Observer) -> None:
        self._run = run
        self.observer = observer
        self._before = run.seconds
        self._since = time.monotonic()
        run.archive.clock = self.seconds
        run.archive.tell = lambda text: observer(Notice(text=text, level="warning"))

    def seconds(self) -> float:
        """Wall time of the run so far, over all its resumptions."""
        return self._before + time.monotonic() - self._since

    def __call__(self, entry: BaseEntry) -> None:
        """Store the entry and pass it on. Raises RunFolderError if it cannot be stored."""
        self._run.archive.append(entry)
        self.observer(entry)

    async def keep_current(self) -> None:
        """Flush the archive every second, for observers in other processes."""
        while True:
            await asyncio.sleep(1.0)
            with suppress(RunFolderError):  # the next decision raises it
                self._run.archive.flush()


WORKERS_FOLDER = ".workers"
"""Scratch of a run's workers, deleted at the run's end."""


def end_run(run: Run, status: RunStatus, message: str, observer: Recorder) -> None:
    """Store how a run ended: its last entry, the recording of replies, the reports."""
    ended = RunEnded(status=status, message=message, report_path=run.folder / REPORT)
    # stored before the report, which reads it, and passed on after it
    run.archive.append(ended)
    shutil.rmtree(run.folder / WORKERS_FOLDER, ignore_errors=True)
    if run.archive.account():
        write_file(run.folder / MESSAGES, lambda draft: write_recording(draft, recording_of(run)))
    report = run_report(run)
    write_text(run.folder / REPORT, markdown(report))
    observer.observer(ended)
    # last, since it takes longest, and the run's recorded time has ended
    write_text(run.folder / HTML_REPORT, html_report(report))


def renew_html_report(run: Run) -> None:
    """Write `report.html` again, if there is one, with the clip that was made since."""
    if (run.folder / HTML_REPORT).is_file():
        write_text(run.folder / HTML_REPORT, html_report(run_report(run)))


def has_results(run: Run) -> bool:
    """True if a run has anything that took time or money."""
    archive = run.archive
    return bool(
        archive.attempts()
        or archive.account()
        or archive.state.open_batches()
        or any(not each.cached for each in archive.trainings())
    )


def remove_run(run: Run, message: str, observer: Observer) -> None:
    """Remove a run that failed without any result, so that `latest` is not an empty run."""
    observer(RunEnded(status=RunStatus.FAILED, message=message))
    run.archive.close()
    shutil.rmtree(run.folder, ignore_errors=True)
