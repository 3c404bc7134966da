"""The folder of a batch: its lock, and the queue brought up to date with the batch file."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from eureka_agent.archive.files import FILE_NAME
from eureka_agent.archive.run_folder import BATCH_FILE, list_batches, list_runs, runs_folder
from eureka_agent.batch.matrix import PlannedSearch
from eureka_agent.batch.queue import ENDED, Entry, Queue, State
from eureka_agent.errors import EurekaError, RunFolderError, did_you_mean
from eureka_agent.invocation import command
from eureka_agent.search.typed_settings import value_text
from eureka_agent.settings import FREE_SETTINGS

STOP_FILE = "STOP"
BATCH_COPY = "batch.yaml"
"""Copy of the batch file, as it was last started."""
NOT_IN_FILE = "it is not in the batch file any more"


class BatchChangedError(EurekaError):
    """A batch file in which searches that have begun have other settings."""


def find_batch(word: str) -> Path:
    """Folder of a batch by its path or its name in the runs folder. Raises RunFolderError."""
    for folder in (Path(word), runs_folder() / word):
        if (folder / BATCH_FILE).is_file():
            return folder
    names = [folder.name for folder in list_batches()]
    hint = did_you_mean(word, names) if names else f"start one: `{command('batch FILE')}`"
    raise RunFolderError(f"there is no batch {word!r}", hint)


def check_folder(folder: Path) -> None:
    """Raise RunFolderError for a folder that holds something else."""
    if (folder / FILE_NAME).is_file():
        raise RunFolderError(
            f"{str(folder)!r} is a run of its own", "name another folder with --folder"
        )
    if folder.is_dir() and not (folder / BATCH_FILE).is_file() and list_runs(folder):
        raise RunFolderError(
            f"{str(folder)!r} holds runs and no batch", "name another folder with --folder"
        )


def bring_up_to_date(queue: Queue, searches: Sequence[PlannedSearch]) -> None:
    """Queue new searches, take over settings that may change, and requeue what has failed or was
    stopped. Raises BatchChangedError with every difference, and changes nothing then."""
    known = {entry.name: entry for entry in queue.entries()}
    planned = {search.name: search.values for search in searches}
    differences = [
        difference
        for name, values in planned.items()
        if name in known and has_begun(queue.folder, known[name])
        for difference in differences_of(name, known[name].settings, values)
    ]
    if differences:
        listed = "".join(f"\n  {difference}" for difference in differences)
        raise BatchChangedError(
            f"the batch file has changed for searches that have begun:{listed}",
            "put the old values back, or give the changed searches another name: they run beside"
            " the old ones",
        )
    for name, values in planned.items():
        if name in known and values != known[name].settings:
            queue.change_settings(name, values)
            queue.record("changed", "settings of the file", name)
    queue.add([(name, values) for name, values in planned.items() if name not in known])
    for entry in known.values():
        if entry.name not in planned:
            if entry.state not in ENDED:
                queue.set_state(entry.name, State.CANCELLED, NOT_IN_FILE)
        elif entry.state in (State.FAILED, State.RUNNING, State.PAUSED, State.STOPPED):
            queue.set_state(entry.name, State.WAITING, entry.message)
        elif entry.state is State.CANCELLED and entry.message == NOT_IN_FILE:
            queue.set_state(entry.name, State.WAITING)
        elif entry.state is State.FINISHED and not has_begun(queue.folder, entry):
            queue.set_state(entry.name, State.WAITING, "its run folder is gone")


def bring_back(queue: Queue, search: str | None) -> None:
    """Queue a cancelled search again; None: all of them, where no other search is left. Raises
    EurekaError for an unknown one."""
    entries = queue.entries() if search is None else (queue.entry(search),)
    if search is None and any(entry.state not in ENDED for entry in entries):
        return
    for entry in entries:
        if entry.state is State.CANCELLED:
            queue.set_state(entry.name, State.WAITING)


def has_begun(folder: Path, entry: Entry) -> bool:
    """True if the search has a run. What a killed process left of a run that was not yet complete
    is removed."""
    run = folder / entry.name
    if (run / FILE_NAME).is_file():
        return True
    if run.is_dir():
        shutil.rmtree(run, ignore_errors=True)
    return False


def differences_of(
    name: str, before: Any, now: Any, free: Collection[str] = FREE_SETTINGS
) -> list[str]:
    """Differences between two settings of a search, but of those that are free to change."""
    found = []
    for key in sorted({*before, *now}):
        old, new = before.get(key), now.get(key)
        if key in free or old == new:
            continue
        shown = [value_text(value) if value is not None else "not set" for value in (old, new)]
        found.append(f"{name}: {key} was {shown[0]} and is {shown[1]}")
    return found
