"""The page of a batch: its searches, what they found so far, and the last events."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from eureka_agent.archive.files import is_held
from eureka_agent.archive.run_folder import BATCH_FILE, list_batches
from eureka_agent.batch.folder import searches_of, state_in_words
from eureka_agent.batch.intents import IntentsFile
from eureka_agent.batch.summary import LEGEND, NUMBERS, Summary, by_column, counts
from eureka_agent.errors import EurekaError, RunFolderError
from eureka_agent.invocation import command
from eureka_agent.web.rendering import render
from eureka_agent.web.run_page import address

SHOWN_EVENTS = 30


def links() -> list[tuple[str, str, str]]:
    """Address, name and state of every batch, newest first."""
    folders = sorted(list_batches(), key=_changed, reverse=True)
    return [
        (f"/batches/{quote(folder.name, safe='')}", folder.name, _state(folder))
        for folder in folders
    ]


def _changed(folder: Path) -> float:
    try:
        return (folder / BATCH_FILE).stat().st_mtime
    except OSError:
        return 0.0


def _state(folder: Path) -> str:
    try:
        running = is_held(folder)
        return state_in_words(searches_of(IntentsFile(folder), running), running=running)
    except EurekaError as error:
        return error.message


class Batches:
    """Makes pages of batches; rows of searches that have ended are read once."""

    def __init__(self) -> None:
        self._summaries: dict[str, Summary] = {}

    def page(self, name: str) -> str:
        """HTML of a batch. Raises RunFolderError for one that is not there."""
        folder = next((each for each in list_batches() if each.name == name), None)
        if folder is None:
            raise RunFolderError(f"there is no batch {name[:100]!r} here", "the list has all")
        intents, running = IntentsFile(folder), is_held(folder)
        searches = searches_of(intents, running)
        rows = self._summaries.setdefault(name, Summary(folder)).rows(searches)
        events = intents.now.events[: -SHOWN_EVENTS - 1 : -1]
        return render(
            "batch.html",
            title=name,
            state=state_in_words(searches, running=running),
            running=running,
            totals=counts(rows),
            numbers=NUMBERS,
            cells=by_column,
            legend=LEGEND,
            rows=[(address(f"{name}:{row.search}") if row.task else "", row) for row in rows],
            events=[(_iso(event.time), event) for event in events],
            steer=command("batch --help"),
        )


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
