"""Follows a run of another process by its growing journal."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from eureka_agent.archive.database import Archive
from eureka_agent.archive.run_lock import is_held
from eureka_agent.errors import RunFolderError
from eureka_agent.journal.entries import Observer, Pruned, RunEnded
from eureka_agent.journal.state import Recorded, numbered
from eureka_agent.records import RunStatus

POLL_S = 0.5
LONGEST_SILENCE_S = 3600.0
"""Longest plausible time since the last entry, by the clocks of two machines."""


class RunClock:
    """Wall time of a run in seconds: that of the current entry, and running time after the last."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seconds = 0.0
        self._since: float | None = None

    def __call__(self) -> float:
        return self._seconds + (0.0 if self._since is None else self._clock() - self._since)

    def stand(self, seconds: float) -> None:
        """Stop at so many seconds."""
        self._seconds, self._since = seconds, None

    def run(self, seconds: float) -> None:
        """Run from so many seconds on."""
        self._seconds, self._since = seconds, self._clock()


class Follower:
    """Passes all entries of a run to an observer."""

    def __init__(self, folder: Path, observer: Observer, clock: RunClock) -> None:
        self._folder = folder
        self._observer = observer
        self._clock = clock
        self._last: Recorded | None = None

    async def follow(self) -> None:
        """Follow until the run ends. Raises RunFolderError for an unreadable archive."""
        while self.poll():
            await asyncio.sleep(POLL_S)

    def poll(self) -> bool:
        """Pass on new entries; False once no process works on the run."""
        held = is_held(self._folder)  # before the read, which then finds the last entries
        before = self._last
        # opened each time: only a fresh connection can read the file of a process that was killed
        # in a write
        with closing(Archive(self._folder, reading=True)) as archive:
            for recorded in archive.entries(0 if before is None else before.number):
                self._clock.stand(recorded.seconds)
                hand_on(recorded, self._observer, self._folder)
                self._last = recorded
        last = self._last
        if not held:
            if last is None or not isinstance(last.entry, RunEnded | Pruned):  # it was killed
                self._observer(RunEnded(status=RunStatus.STOPPED))
        elif last is not None and last is not before:
            self._clock.run(last.seconds + _silence(last.time))
        return held


def hand_on(recorded: Recorded, observer: Observer, folder: Path) -> None:
    """Pass an entry to an observer. Raises RunFolderError for one on an unknown attempt."""
    try:
        observer(numbered(recorded))
    except KeyError as error:
        damage = f"entry {recorded.number} is about {error}, which no entry before it proposes"
        raise RunFolderError(
            f"the journal of {str(folder)!r} is damaged: {damage}",
            "do not trust who made this folder",
        ) from None


def _silence(time: str) -> float:
    """Seconds since a time in ISO 8601; 0 for an invalid, future or implausible one."""
    try:
        seconds = (datetime.now(UTC) - datetime.fromisoformat(time)).total_seconds()
    except (ValueError, TypeError):
        return 0.0
    return seconds if 0 < seconds < LONGEST_SILENCE_S else 0.0
