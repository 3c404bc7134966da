"""The driver of a batch: it begins searches, does what is asked, and stops what is to stop."""

from __future__ import annotations

import asyncio
import gc
import math
import os
import traceback
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from eureka_agent.archive.run_folder import reading
from eureka_agent.archive.safe_files import open_plain
from eureka_agent.batch.file import BatchSettings, seconds_of
from eureka_agent.batch.folder import (
    STOP_FILE,
    BatchSearch,
    SearchState,
    has_begun,
    has_finished,
    searches_of,
)
from eureka_agent.batch.intents import IntentsFile
from eureka_agent.batch.limits import (
    MachineWait,
    TimeLeft,
    Trouble,
    cut_short,
    limits_on_models,
    trouble_in,
)
from eureka_agent.errors import DiskFullError, EnvironmentLoadError, EurekaError, SettingsError
from eureka_agent.fleet.fleet import Machine
from eureka_agent.fleet.jobs import Share
from eureka_agent.journal import entries
from eureka_agent.llm.breaker import Breakers
from eureka_agent.llm.budget import Budget
from eureka_agent.report.live import LogFile
from eureka_agent.search.deadline import SearchContext
from eureka_agent.search.resumption import is_own
from eureka_agent.search.search import LimitReachedError
from eureka_agent.search.session import resume, start
from eureka_agent.settings import FREE_SETTINGS, SearchSettings, parse_settings
from eureka_agent.wording import plural

TICK_S = 0.5
_PERMANENT = (SettingsError, EnvironmentLoadError)
_Achieved = entries.Proposed | entries.AttemptEnded | entries.AttemptRepeated | entries.FinalTrained


@dataclass(eq=False)
class Active:
    search: BatchSearch
    share: Share = field(default_factory=Share)
    may_ask: asyncio.Event = field(default_factory=asyncio.Event)
    log: LogFile = field(default_factory=LogFile)
    ending: bool = False
    """True once it saves what it has."""
    task: asyncio.Task[None] = field(init=False)

    def end(self) -> None:
        if not self.ending:  # a second cancellation would keep it from saving
            self.task.cancel()
        self.ending = True


class BatchDriver:
    """Runs the searches of a batch on one machine."""

    def __init__(
        self,
        intents: IntentsFile,
        settings: BatchSettings,
        machine: Machine,
        command: list[str],
        budget: Budget | None = None,
        *,
        trust: bool = False,
    ) -> None:
        """`command`: the command line, for the runs' records. `trust`: also go on with runs of
        others."""
        self.intents, self.folder = intents, intents.folder
        self.active: dict[str, Active] = {}
        self._settings, self._limits = settings, intents.now.limits
        self._machine, self._command, self._budget = machine, command, budget
        self._trust = trust
        self._time_left = TimeLeft(settings.max_time)
        self._breakers = Breakers()
        self._waiting_for_machine = MachineWait(
            machine.wall, [self.folder], partial(self.record, "machine")
        )
        self._left_out: set[str] = set()
        """Searches for which no limit leaves room in this call of the command."""
        self._trouble: Trouble | None = None
        """Trouble of the machine that an event met which could not be stored."""
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Work until every search has ended or a limit is reached. A cancellation saves what is
        under way; a second one ends at once. Raises the machine's trouble where it lasts for longer
        than the batch waits."""
        while (trouble := await self._work()) is not None:
            most_s = seconds_of(self._settings.wait_for_machine)
            if not await self._waiting_for_machine.until_usable(trouble, most_s, self._pause):
                return

    async def _work(self) -> Trouble | None:
        """Work as `run` does, or until the machine's trouble, which this returns then."""
        try:
            self._trouble = None
            for name, asked in self.intents.now.searches.items():
                if asked.under_way:  # there was no room to store that it had ended
                    self.intents.record("stopped", search=name, under_way=False)
            while self._trouble is None:
                waiting, paused = self._begin_waiting(), self.intents.now.paused
                self.obey()  # which may end the pause: then they begin in the next turn
                if not self.active and not (paused and waiting):
                    return None
                with suppress(TimeoutError):
                    async with asyncio.timeout(TICK_S):
                        await self._changed.wait()
                self._changed.clear()
                await self._collect()
                if reason := self._time_left.is_up():
                    self.record("limit", f"time is up: {reason}")
                if reason or (self.intents.now.stopping and not self._machine.under_way):
                    await self._end_all()
                    return None
            raise self._trouble
        except BaseException as error:  # a cancellation, a full disk, a dead engine
            await self._end_all()
            trouble = trouble_in(error)
            if trouble is None:
                raise
            return trouble

    async def _pause(self, seconds: float) -> bool:
        """Sleep, and do what is asked. False once the batch is to end."""
        for _ in range(math.ceil(seconds)):
            await asyncio.sleep(1.0)
            self.obey()
            if self.intents.now.stopping or self._time_left.is_up():
                return False
        return True

    def obey(self) -> None:
        self.intents.read()
        if not self.intents.now.stopping and (self.folder / STOP_FILE).exists():
            self.record("", stopping=f"there is a file {STOP_FILE}", unheard=True)
        now = self.intents.now
        if now.limits != self._limits:
            self._limits = now.limits
            self._settings = parse_settings(BatchSettings, now.limits, "the batch")
            self._time_left.max_time = self._settings.max_time
            if self._budget is not None:
                self._budget.change_limits(limits_on_models(self._settings))
            self._left_out.clear()
        for active in self.active.values():
            asked = now.searches[active.search.name]
            held = now.paused or bool(now.stopping) or asked.paused
            (active.may_ask.clear if held else active.may_ask.set)()
            if held != active.share.held:
                active.share.held = held
                self._machine.dispatch()
            if asked.cancelled or {**asked.settings, **asked.retuned} != active.search.settings:
                active.end()  # with other settings it begins again
        count = self._machine.under_way
        if now.unheard or ((now.paused or now.stopping) and count != now.trainings):
            text = f"{now.stopping}; it ends after {plural(count, 'training')} under way"
            kind, text = ("stopping", text) if now.stopping else ("", "")
            self.record(kind, text, unheard=False, trainings=count)

    def record(self, kind: str, text: str = "", search: str | None = None, **changes: Any) -> None:
        """Record what need not be stored at once. A full disk is trouble for later."""
        try:
            self.intents.record(kind, text, search, **changes)
        except DiskFullError as error:
            self._trouble = error

    def _begin_waiting(self) -> list[BatchSearch]:
        """Begin searches while there is room for them. Returns those that still wait."""
        begun = (*self.active, *self._left_out)
        waiting = [
            search
            for search in searches_of(self.intents, running=True)
            if search.state is SearchState.WAITING and search.name not in begun
        ]
        if self.intents.now.stopping or self.intents.now.paused:
            return waiting
        while waiting and len(self.active) < self._settings.at_once:
            search = waiting.pop(0)
            self.intents.record("running", search=search.name, under_way=True, message="")
            active = self.active[search.name] = Active(search)
            active.task = asyncio.create_task(self._search(active))
            active.task.add_done_callback(lambda task: self._changed.set())
        return waiting

    async def _search(self, active: Active) -> None:
        """Run one search and store how it ended. Raises the machine's trouble, for which it is not
        to blame."""
        name = active.search.name
        changes: dict[str, Any] = {"under_way": False, "message": ""}
        try:
            await self._run(active)
            kind = "finished"
        except asyncio.CancelledError:
            kind = "cancelled" if self.intents.now.searches[name].cancelled else "stopped"
        except LimitReachedError as error:
            kind, changes["message"] = "waiting", error.message
            self._left_out.add(name)
        except Exception as error:
            if trouble_in(error) is not None:
                raise
            text = str(error) if isinstance(error, EurekaError) else self._defect(name, error)
            tries = self.intents.now.searches[name].tries + 1
            failed = tries > self._settings.retries or isinstance(error, _PERMANENT)
            kind = "failed" if failed else "retried"
            changes |= {"message": text, "tries": tries, "failed": failed}
        self.intents.record(kind, changes["message"], name, **changes)

    def _defect(self, name: str, error: Exception) -> str:
        """Log a defect in one search, which must not end the night. Returns its message."""
        path, flags = self.folder / "defects.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT
        with suppress(OSError), os.fdopen(open_plain(path, flags), "a") as log:
            log.write(f"{name}:\n{''.join(traceback.format_exception(error))}\n")
        return f"a defect of this program: {error!r}; see defects.log"

    async def _run(self, active: Active) -> None:
        name = active.search.name

        def observe(entry: entries.BaseEntry) -> None:
            active.log(entry)
            if isinstance(entry, _Achieved):
                self._waiting_for_machine.achieved()
            if isinstance(entry, entries.Notice) and entry.level == "warning":
                self.record("warning", entry.text, name)
            elif isinstance(entry, entries.RunStarted):
                self.record("resumed" if entry.resumed else "began", entry.sentence, name)

        context = SearchContext(
            self._machine,
            active.share,
            self._budget,
            active.may_ask.wait,
            self._time_left.limit,
            self._breakers,
            self.folder / name,
        )
        if has_begun(folder := self.folder / name):
            changes = _changes(active.search, folder, self._trust)
            run = await resume(folder, observe, changes, context)
        else:
            run = await start(active.search.settings, None, self._command, observe, None, context)
        run.archive.close()
        if not has_finished(folder):
            with reading(str(folder)) as ended:
                reason = cut_short(ended.archive.facts)
            raise LimitReachedError(reason or "its run has not ended")

    async def _collect(self) -> None:
        for name, active in list(self.active.items()):
            active.log.tick()
            if active.task.done():
                await active.task  # raises what concerns all
                del self.active[name]
                gc.collect()  # it left cycles, and the collector comes seldom by itself

    async def _end_all(self) -> None:
        """Save what is under way and end it; at once on a second cancellation."""
        tasks = [active.task for active in self.active.values()]
        for active in self.active.values():
            active.end()
        while pending := [task for task in tasks if not task.done()]:
            try:
                await asyncio.wait(pending)
            except asyncio.CancelledError:
                for task in pending:
                    task.cancel()
        for task in tasks:
            if not task.cancelled():
                task.exception()  # what keeps one from being recorded is raised already
        self.active.clear()


def _changes(search: BatchSearch, folder: Path, trust: bool) -> dict[str, Any]:
    """Free settings that differ from the run's. Raises SettingsError for the run of somebody else,
    unless there is `trust`."""
    with reading(str(folder)) as run:
        if not trust and not is_own(run, attempts=True):
            raise SettingsError(
                f"the run {str(run.folder)!r} is not your own, and a batch asks nobody",
                "look at it, and give the same command with --trust if you trust who made it",
            )
        asked = parse_settings(SearchSettings, search.settings, "the batch")
        return {
            name: value
            for name, value in search.settings.items()
            if name in FREE_SETTINGS and getattr(asked, name) != getattr(run.settings, name)
        }
