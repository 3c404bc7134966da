"""A run's journal as others read it: followed as it grows, and as lines or JSON."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eureka_agent.archive.database import Archive
from eureka_agent.archive.files import is_held
from eureka_agent.archive.sqlite_files import brief_proposal
from eureka_agent.errors import RunFolderError
from eureka_agent.journal.entries import (
    BaseEntry,
    Observer,
    Proposed,
    Pruned,
    RunEnded,
    RunStarted,
    kind_of,
)
from eureka_agent.journal.state import Recorded, RunState
from eureka_agent.records import RunStatus
from eureka_agent.text import one_line

POLL_S = 0.5
LONGEST_SILENCE_S = 3600.0
"""Longest plausible time since the last entry, by the clocks of two machines."""
LONGEST_LINE = 300
_TIME_CHARACTERS = len("2026-11-21T03:55:00")


def folded(entries: Iterable[Recorded], state: RunState, folder: Path) -> Iterator[Recorded]:
    """Entries, each applied to the state, as a view takes them: a thousand prompts and replies are
    much memory. Raises RunFolderError for one on an unknown attempt."""
    for recorded in entries:
        entry: BaseEntry = recorded.entry
        if isinstance(entry, Proposed):
            brief = {"proposal": brief_proposal(entry.proposal), "kept": ()}
            entry = entry.model_copy(update=brief)
        elif isinstance(entry, RunStarted):
            entry = entry.model_copy(update={"state": state, "run_folder": folder})
        seen = Recorded(recorded.number, recorded.time, recorded.seconds, entry)
        try:
            state.apply(seen)
        except KeyError as error:
            damage = f"entry {recorded.number} is about {error}, which no entry before it proposes"
            raise RunFolderError(
                f"the journal of {str(folder)!r} is damaged: {damage}",
                "do not trust who made this folder",
            ) from None
        yield seen


class Follower:
    """Passes all entries of a run that another process works on to an observer."""

    def __init__(self, folder: Path, observer: Observer) -> None:
        self.state = RunState()
        self._folder = folder
        self._observer = observer
        self._last: Recorded | None = None

    async def follow(self) -> None:
        """Follow until the run ends. Raises RunFolderError for an unreadable archive."""
        while self.poll():
            await asyncio.sleep(POLL_S)

    def poll(self) -> bool:
        """Pass on new entries; False once no process works on the run."""
        held = is_held(self._folder)  # before the read, which then finds the last entries
        before = 0 if self._last is None else self._last.number
        # opened each time: only a fresh connection can read the file of a process that was killed
        # in a write
        with closing(Archive(self._folder, reading=True)) as archive:
            for recorded in folded(archive.entries(before), self.state, self._folder):
                self._last = recorded
                if held:  # time has passed since
                    self.state.seconds = recorded.seconds + _silence(recorded.time)
                self._observer(recorded.entry)
        last = self._last
        if not held and (last is None or not isinstance(last.entry, RunEnded | Pruned)):
            self.state.status = RunStatus.STOPPED  # it was killed
            self._observer(RunEnded(status=RunStatus.STOPPED))
        return held


def _silence(time: str) -> float:
    """Seconds since a time in ISO 8601; 0 for an invalid, future or implausible one."""
    try:
        seconds = (datetime.now(UTC) - datetime.fromisoformat(time)).total_seconds()
    except (ValueError, TypeError):
        return 0.0
    return seconds if 0 < seconds < LONGEST_SILENCE_S else 0.0


def journal_lines(entries: Iterable[Recorded], folder: Path) -> Iterator[str]:
    """A line for each entry: time (UTC), seconds of the run, kind, event."""
    state = RunState()
    for recorded in folded(entries, state, folder):
        time = one_line(recorded.time, _TIME_CHARACTERS + 1)[:_TIME_CHARACTERS].replace("T", " ")
        text = one_line(recorded.entry.line(state), LONGEST_LINE)
        kind = kind_of(recorded.entry)
        yield f"{time} {recorded.seconds:9.1f} s  {kind:<22} {text}".rstrip()


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
