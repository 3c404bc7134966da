"""What a person asks of a batch: a change of its file, which the process at work hears."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from eureka_agent.archive.files import is_held, locked
from eureka_agent.batch.file import BatchSettings
from eureka_agent.batch.folder import (
    BATCH_COPY,
    ENDED,
    UNDER_WAY,
    BatchSearch,
    SearchState,
    searches_of,
)
from eureka_agent.batch.intents import IntentsFile
from eureka_agent.batch.matrix import OF_THE_BATCH
from eureka_agent.errors import EurekaError, SettingsError, did_you_mean
from eureka_agent.invocation import command
from eureka_agent.settings import FREE_SETTINGS, SearchSettings, parse_settings

_TIMEOUT_S = 10.0


class NobodyListensError(EurekaError):
    """A batch that no process works on, or none that answers."""


def ask_batch(
    folder: Path, action: str, search: str | None = None, changes: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Ask for one of `intents.REQUESTS`, which may be repeated, and wait until it is heard. Returns
    the batch's status then. `changes`: settings to retune.

    Where no process works on the batch, `resume` lets a search wait in it, and others raise
    NobodyListensError. Raises EurekaError for what makes no sense.
    """
    with ExitStack() as stack:
        if not (running := is_held(folder)):
            if action != "resume":
                message = f"nobody works on the batch {folder.name!r}"
                raise NobodyListensError(message, f"go on with it: `{_again(folder)}`")
            stack.enter_context(locked(folder, "batch", "give the same command again"))
        intents = IntentsFile(folder)
        known = {each.name: each for each in searches_of(intents, running)}
        if search is not None and search not in known:
            raise EurekaError(f"no search {search!r} in this batch", did_you_mean(search, known))
        chosen = None if search is None else known[search]
        match action:
            case "cancel":
                for each in known.values() if chosen is None else [chosen]:
                    if each.state not in ENDED:
                        intents.record(action, search=each.name, cancelled=True, paused=False)
            case "stop" if not intents.now.stopping:
                intents.record(action, stopping="a person asked for it")
            case "pause":
                if chosen is not None and chosen.state not in UNDER_WAY:
                    message = f"the search {search!r} is {chosen.state}, and only one that"
                    hint = "cancel it, if it is not to begin"
                    raise EurekaError(f"{message} is under way can pause", hint)
                intents.record(action, search=search, paused=True)
            case "resume" if chosen is not None and chosen.state is not SearchState.FINISHED:
                back: dict[str, Any] = dict.fromkeys(("cancelled", "failed", "paused"), False)
                intents.record(action, search=search, tries=0, **back)
            case "resume" if chosen is None and running:
                intents.record(action, paused=False)
            case "retune":
                _retune(intents, chosen, changes or {})
        end = time.monotonic() + _TIMEOUT_S
        while running and intents.now.unheard and is_held(folder):
            if time.monotonic() > end:
                raise NobodyListensError(
                    f"the process that works on {folder.name!r} has not answered for"
                    f" {_TIMEOUT_S:.0f} s",
                    "what you ask for is written down: it is done when that process goes on",
                )
            time.sleep(0.05)
            intents.read()
        return _status(intents, running)


def _retune(intents: IntentsFile, chosen: BatchSearch | None, changes: Mapping[str, Any]) -> None:
    """Record other settings of a search, or other limits. Raises SettingsError for what cannot
    change."""
    text = ", ".join(f"{name} = {value}" for name, value in changes.items())
    if chosen is not None:
        for name in changes:
            if name not in FREE_SETTINGS:
                known = did_you_mean(name, FREE_SETTINGS)
                raise SettingsError(f"{name!r} cannot change in a search that has begun", known)
        parse_settings(SearchSettings, {**chosen.settings, **changes}, "the request")
        retuned = {**intents.now.searches[chosen.name].retuned, **changes}
        intents.record("retune", text, chosen.name, retuned=retuned)
        return
    limits = intents.now.limits
    # where the batch began without one, no price is known and no spending counted
    new = {"max_cost", "max_tokens"} - set(limits)
    if fixed := [name for name in changes if name in OF_THE_BATCH or name in new]:
        hint = "stop the batch, change the file and start it again"
        raise SettingsError(f"{fixed[0]} cannot change while the batch runs", hint)
    parse_settings(BatchSettings, {**limits, **changes}, "the request")
    intents.record("retune", text, limits={**limits, **changes})


def status(folder: Path) -> dict[str, Any]:
    """The state of a batch for views: does a process work on it, and how do its searches stand."""
    return _status(IntentsFile(folder), is_held(folder))


def _status(intents: IntentsFile, running: bool) -> dict[str, Any]:
    now = intents.now
    return {
        "batch": intents.folder.name,
        "folder": str(intents.folder),
        "running": running,
        "paused": running and now.paused,
        "stopping": now.stopping if running else "",
        "trainings": now.trainings if running and (now.paused or now.stopping) else None,
        "again": None if running else _again(intents.folder),
        "searches": {each.name: each.state.value for each in searches_of(intents, running)},
    }


def _again(folder: Path) -> str:
    return command(shlex.join(["batch", str(folder / BATCH_COPY), "--folder", str(folder)]))
