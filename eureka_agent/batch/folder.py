"""The folder of a batch: its searches, whose states follow from intents and run folders."""

from __future__ import annotations

import json
import shlex
import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any

from eureka_agent.archive.database import Archive
from eureka_agent.archive.files import FILE_NAME, is_held
from eureka_agent.archive.run_folder import BATCH_FILE, list_batches, list_runs, runs_folder
from eureka_agent.batch.intents import IntentsFile, SearchIntent
from eureka_agent.batch.limits import cut_short
from eureka_agent.batch.matrix import PlannedSearch
from eureka_agent.errors import RunFolderError, SettingsError, did_you_mean
from eureka_agent.invocation import command
from eureka_agent.records import RunStatus
from eureka_agent.settings import FREE_SETTINGS
from eureka_agent.wording import plural, value_text

STOP_FILE = "STOP"
BATCH_COPY = "batch.yaml"


class SearchState(StrEnum):
    """State of a search in a batch."""

    WAITING = "waiting"
    RUNNING = "running"
    PAUSED = "paused"  # under way, but nothing new begins in it
    CANCELLING = "cancelling"  # under way until its trainings are saved
    STOPPED = "stopped"  # saved when the batch ended; the next call goes on with it
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"  # by a person; only `eureka batch resume` goes on with it


UNDER_WAY = (SearchState.RUNNING, SearchState.PAUSED, SearchState.CANCELLING)
ENDED = (SearchState.FINISHED, SearchState.FAILED, SearchState.CANCELLED)
"""States from which a batch does not go on by itself."""


@dataclass(frozen=True)
class BatchSearch:
    name: str
    settings: Mapping[str, Any]
    """Settings by name, as the batch file gives them, and those that were retuned."""
    state: SearchState
    message: str
    """The last error, or how to go on."""


def searches_of(intents: IntentsFile, running: bool | None = None) -> tuple[BatchSearch, ...]:
    """All searches of a batch. `running`: True while a process works on it; None: look."""
    works = is_held(intents.folder) if running is None else running
    return tuple(
        BatchSearch(
            name, {**each.settings, **each.retuned}, *_state(intents.folder, name, each, works)
        )
        for name, each in intents.now.searches.items()
    )


def _state(folder: Path, name: str, asked: SearchIntent, works: bool) -> tuple[SearchState, str]:
    """The state of a search, and what there is to say about it."""
    if works and asked.under_way:
        state = SearchState.PAUSED if asked.paused else SearchState.RUNNING
        return (SearchState.CANCELLING if asked.cancelled else state), asked.message
    if has_finished(folder / name):
        return SearchState.FINISHED, ""
    if not asked.in_file:
        return SearchState.CANCELLED, "it is not in the batch file any more"
    if asked.cancelled:
        again = command(shlex.join(["batch", "resume", str(folder), name]))
        return SearchState.CANCELLED, f"`{again}` brings it back"
    if asked.failed:
        return SearchState.FAILED, asked.message
    stopped = not (works or asked.message) and (folder / name / FILE_NAME).is_file()
    return (SearchState.STOPPED if stopped else SearchState.WAITING), asked.message


def has_finished(run: Path) -> bool:
    """True for the run of a search that has ended, and not for want of the batch's time."""
    try:
        found = (run / FILE_NAME).stat()
        return _finished(run, found.st_mtime_ns, found.st_size)
    except (OSError, RunFolderError):  # the next try says what is wrong with it
        return False


@lru_cache(maxsize=10_000)
def _finished(run: Path, changed_ns: int, size: int) -> bool:
    """The same for an archive that was changed last at a time: none is read twice."""
    with closing(Archive(run, reading=True)) as archive:
        return archive.facts.status is RunStatus.FINISHED and not cut_short(archive.facts)


def counted(states: Iterable[str]) -> str:
    return ", ".join(f"{number} {state}" for state, number in Counter(states).items())


def state_in_words(searches: Sequence[BatchSearch], *, running: bool) -> str:
    """`Running: 3 of 12 searches have ended`, `Finished`, or `Finished: 2 finished, 1 failed`."""
    states = [each.state for each in searches]
    ended = sum(state in ENDED for state in states)
    if ended < len(states):
        return (
            f"{'Running' if running else 'Stopped'}: {ended} of {len(states)} searches have ended"
        )
    return "Finished" if {*states} <= {SearchState.FINISHED} else f"Finished: {counted(states)}"


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
    is_run = (folder / FILE_NAME).is_file()
    if is_run or (not (folder / BATCH_FILE).is_file() and list_runs(folder)):
        holds = "is a run of its own" if is_run else "holds runs and no batch"
        raise RunFolderError(f"{str(folder)!r} {holds}", "name another folder with --folder")


def plan_searches(intents: IntentsFile, searches: Sequence[PlannedSearch]) -> None:
    """Record the searches of the batch file, and their settings. Raises SettingsError with
    every difference in those that have begun, and records nothing then."""
    known = intents.now.searches
    # as the file has them
    planned = {each.name: json.loads(json.dumps(each.values, default=str)) for each in searches}
    if listed := differences_of(intents, planned):
        raise SettingsError(
            f"the batch file has changed for searches that have begun:{listed}",
            "put the old values back, or give the changed searches another name: they run beside"
            " the old ones",
        )
    if planned == {name: each.settings for name, each in known.items() if each.in_file}:
        return
    now = {
        name: SearchIntent(settings=values, cancelled=name in known and known[name].cancelled)
        for name, values in planned.items()
    }
    left = {name: each for name, each in known.items() if name not in planned}
    now |= {name: each.model_copy(update={"in_file": False}) for name, each in left.items()}
    intents.record("planned", plural(len(planned), "search", "searches"), searches=now)


def has_begun(run: Path) -> bool:
    """True if a search has a run. What a killed process left of a run that was not yet complete is
    removed."""
    if (run / FILE_NAME).is_file():
        return True
    if run.is_dir():
        shutil.rmtree(run, ignore_errors=True)
    return False


def differences_of(
    intents: IntentsFile,
    planned: Mapping[str, Mapping[str, Any]],
    free: Collection[str] = FREE_SETTINGS,
) -> str:
    """A line for each setting that differs in a search that has begun, but for those that are free
    to change. `planned`: settings by the name of the search."""
    lines = []
    for name, now in planned.items():
        if not (intents.folder / name / FILE_NAME).is_file() or name not in intents.now.searches:
            continue
        before = intents.now.searches[name].settings
        for key in sorted({*before, *now} - {*free}):
            old, new = before.get(key), now.get(key)
            if old != new:
                lines.append(f"\n  {name}: {key} was {value_text(old)} and is {value_text(new)}")
    return "".join(lines)
