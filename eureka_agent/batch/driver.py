"""The driver of a batch: it starts searches, watches the limits, and stops what is to stop."""

from __future__ import annotations

import asyncio
import gc
import os
import shlex
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from eureka_agent import wording
from eureka_agent.archive.run_folder import reading
from eureka_agent.archive.safe_files import open_plain
from eureka_agent.batch.file import BatchSettings
from eureka_agent.batch.folder import STOP_FILE
from eureka_agent.batch.limits import EnvSteps, TimeLeft, cut_short, limits_on_models
from eureka_agent.batch.machine_trouble import MachineWait, Trouble, trouble_in
from eureka_agent.batch.one_search import Active, kind, run_search, steps_in, used_steps
from eureka_agent.batch.queue import CANCELLING, ENDED, Entry, Event, Queue, State
from eureka_agent.errors import DiskFullError, EnvironmentLoadError, EurekaError, SettingsError
from eureka_agent.fleet.devices import CPU
from eureka_agent.fleet.fleet import Machine
from eureka_agent.fleet.jobs import Share
from eureka_agent.invocation import command
from eureka_agent.journal.entries import (
    AttemptEnded,
    AttemptRepeated,
    BaseEntry,
    FinalTrained,
    Notice,
    Proposed,
    RunStarted,
)
from eureka_agent.llm.breaker import Breakers
from eureka_agent.llm.budget import Budget
from eureka_agent.search.context import SearchContext
from eureka_agent.search.engine import LimitReachedError

TICK_S = 1.0
_PERMANENT = (SettingsError, EnvironmentLoadError)
"""Errors that another try does not mend."""


class BatchDriver:
    """Runs the waiting searches of a queue on one machine."""

    def __init__(
        self,
        queue: Queue,
        settings: BatchSettings,
        machine: Machine,
        command: list[str],
        observer: Callable[[Event], None],
        budget: Budget | None = None,
        time_left: TimeLeft | None = None,
        trust: bool = False,
        watch: Callable[[str, BaseEntry], None] = lambda search, entry: None,
    ) -> None:
        """`command`: the command line, for the runs' records. `trust`: also go on with runs of
        others. `observer` gets each event once it is stored, `watch` the name of a search with each
        entry of its journal."""
        self.queue = queue
        self.settings = settings
        self._machine = machine
        self._command = command
        self._observer = observer
        self._budget = budget
        self._trust = trust
        self._watch = watch
        self._time_left = time_left or TimeLeft(settings)
        self._env_steps = EnvSteps(settings.env_steps)
        self._breakers = Breakers()
        self.active: dict[str, Active] = {}
        self.paused = False
        """True while nothing new begins in any search."""
        self.paused_searches: set[str] = set()
        """Searches in which nothing new begins, also when they are begun again."""
        self.stopping = ""
        """Reason why the batch ends as soon as nothing is under way; empty while it goes on."""
        self._waiting_for_machine = MachineWait(
            machine.wall, [queue.folder], partial(self.record, "machine")
        )
        self._trouble: Trouble | None = None
        """Trouble of the machine that an event met which could not be stored."""
        self._left_out: set[str] = set()
        """Searches that do not begin in this call: no limit leaves room for them."""
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Work until every search has ended or a limit is reached. A cancellation saves what is
        under way; a second one ends at once. Raises the machine's trouble where it lasts
        for longer than the batch waits."""
        for name, steps in used_steps(self.queue):
            self._env_steps.ended(name, steps)
        while (trouble := await self._work()) is not None:
            most_s = self.settings.machine_wait_s
            if not await self._waiting_for_machine.until_usable(trouble, most_s, self._pause):
                return

    async def _work(self) -> Trouble | None:
        """Work as `run` does, or until the machine's trouble, which this returns then."""
        try:
            self._requeue()
            while True:
                if self._trouble is not None:
                    raise self._trouble
                self._begin_waiting()
                if not self.active:
                    return None
                await self._something_happens()
                await self._collect()
                for active in self.active.values():
                    active.log.tick()
                if reason := self._time_left.is_up():
                    self.record("limit", f"time is up: {reason}")
                    await self._end_all()
                    return None
                self._look_for_stop_file()
                if self.stopping and not self.trainings_under_way:
                    await self._end_all()
                    return None
        except BaseException as error:  # a cancellation, a full disk, a dead engine
            await self._end_all()
            trouble = trouble_in(error)
            if trouble is None:
                raise
            return trouble

    def _look_for_stop_file(self) -> None:
        if not self.stopping and (self.queue.folder / STOP_FILE).exists():
            self.stop(f"there is a file {STOP_FILE}")

    async def _pause(self, seconds: float) -> bool:
        """Sleep. False once the batch is to end."""
        await asyncio.sleep(seconds)
        self._look_for_stop_file()
        return not self.stopping and not self._time_left.is_up()

    def _requeue(self) -> None:
        """Queue what was under way when the machine's trouble came."""
        self._trouble = None
        for entry in self.queue.entries():
            if entry.state in (State.RUNNING, State.PAUSED, State.STOPPED):
                self._set_state(entry.name, State.WAITING, tries=entry.tries)

    # ── what a person asks for ────────────────────────────────────────────────────────────────────

    def stop(self, reason: str) -> None:
        """Begin nothing more; end when the trainings under way have ended."""
        self.stopping = reason
        waits_for = wording.plural(self.trainings_under_way, "training")
        self.record("stopping", f"{reason}; it ends after {waits_for} under way")
        self._hold()

    @property
    def trainings_under_way(self) -> int:
        """Trainings that run or are about to."""
        return self._machine.under_way

    def state_in_words(self, entry: Entry) -> str:
        """The state of a search, or `CANCELLING`."""
        active = self.active.get(entry.name)
        cancelled = active is not None and active.ending is State.CANCELLED
        return CANCELLING if cancelled and entry.state not in ENDED else entry.state.value

    def pause(self, search: str | None = None) -> None:
        """Begin nothing more in a search, or in all."""
        if search is None:
            self.paused = True
        else:
            self.paused_searches.add(search)
            self.queue.set_state(search, State.PAUSED)
        self.record("paused", search=search)
        self._hold()

    def resume(self, search: str | None = None) -> None:
        """Go on with a search, or with all."""
        if search is None:
            self.paused = False
        else:
            self.paused_searches.discard(search)
            self._left_out.discard(search)
            active = self.active.get(search)
            if active is not None and active.ending is not None:
                active.ending = State.WAITING  # it begins again once it is saved
            self._set_state(search, State.WAITING if active is None else State.RUNNING)
        self.record("resumed", search=search)
        self._hold()

    def cancel(self, search: str) -> None:
        """End a search now. Its trainings are saved, and only `resume` goes on with it."""
        self.paused_searches.discard(search)
        if search in self.active:
            self._end(self.active[search], State.CANCELLED)
        else:
            self._set_state(search, State.CANCELLED, self._way_back(search))
            self._changed.set()

    def _way_back(self, search: str) -> str:
        again = command(shlex.join(["batch", "resume", str(self.queue.folder), search]))
        return f"`{again}` brings it back"

    def retune(self, search: str, changes: Mapping[str, Any]) -> None:
        """Change settings of a search that may change; one under way is saved and goes on with
        them."""
        self.queue.change_settings(search, {**self.queue.entry(search).settings, **changes})
        text = ", ".join(f"{name} = {value}" for name, value in changes.items())
        self.record("retuned", text, search)
        if search in self.active and self.active[search].ending is None:
            self._end(self.active[search], State.WAITING)

    def retune_batch(self, settings: BatchSettings) -> None:
        """Take over other limits of the batch from now on."""
        self.settings = settings
        self._env_steps.limit = settings.env_steps
        self._time_left.change(settings)
        if self._budget is not None:
            self._budget.change_limits(limits_on_models(settings))
        self._left_out.clear()
        self.record("retuned", "limits of the batch")
        self._changed.set()

    def _hold(self) -> None:
        """Hold or release the searches under way, by what was asked for."""
        for active in self.active.values():
            self._hold_search(active)
        self._machine.dispatch()
        self._changed.set()

    def _hold_search(self, active: Active) -> None:
        paused = self.paused or active.entry.name in self.paused_searches
        active.share.held = paused or bool(self.stopping)
        if active.share.held:
            active.may_ask.clear()
        else:
            active.may_ask.set()

    def record(self, kind: str, text: str = "", search: str | None = None) -> None:
        """Store an event and pass it on, also where there is no room to store it."""
        try:
            event = self.queue.record(kind, text, search)
        except DiskFullError as error:
            self._trouble = error
            event = Event(time.time(), search, kind, text)
        self._observer(event)

    def _set_state(self, search: str, state: State, message: str = "", tries: int = 0) -> None:
        self._observer(self.queue.set_state(search, state, message, tries))

    # ── searches ──────────────────────────────────────────────────────────────────────────────────

    def _begin_waiting(self) -> None:
        if self.stopping or self.paused:
            return
        waiting = [
            entry
            for entry in self.queue.entries()
            if entry.state is State.WAITING and entry.name not in self._left_out
        ]
        while waiting and len(self.active) < self.settings.at_once:
            entry = self._next(waiting)
            waiting.remove(entry)
            active = Active(entry, Share(), asyncio.Event())
            self._hold_search(active)
            self.active[entry.name] = active
            state = State.PAUSED if entry.name in self.paused_searches else State.RUNNING
            self._set_state(entry.name, state, tries=entry.tries)
            active.task = asyncio.create_task(self._search(active))
            active.task.add_done_callback(lambda task: self._changed.set())

    def _next(self, waiting: list[Entry]) -> Entry:
        """The first of the file; while as many kinds of populations as workers are under way, the
        first that shares one of them: it fills their slots."""
        kinds = {kind(active.entry) for active in self.active.values()}
        if len(kinds) >= self._machine.workers(CPU):
            same = next((entry for entry in waiting if kind(entry) in kinds), None)
            if same is not None:
                return same
        return waiting[0]

    async def _search(self, active: Active) -> None:
        """Run one search and store how it ended. Raises the machine's trouble, for which it is not
        to blame."""
        name, tries = active.entry.name, active.entry.tries
        try:
            await self._run(active)
        except asyncio.CancelledError:
            ending = active.ending or State.STOPPED
            self._set_state(name, ending, self._way_back(name) if ending in ENDED else "")
        except LimitReachedError as error:
            self._left_out.add(name)
            self._set_state(name, State.WAITING, error.message)
        except Exception as error:
            if trouble_in(error) is not None:
                raise
            text = str(error) if isinstance(error, EurekaError) else self._defect(name, error)
            self._failed(name, text, tries, final=isinstance(error, _PERMANENT))
        else:
            self._set_state(name, State.FINISHED)

    def _defect(self, name: str, error: Exception) -> str:
        """Log a defect in one search, which must not end the night. Returns its message."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        with (
            suppress(OSError),
            os.fdopen(open_plain(self.queue.folder / "defects.log", flags), "a") as log,
        ):
            log.write(f"{name}:\n{''.join(traceback.format_exception(error))}\n")
        return f"a defect of this program: {error!r}; see defects.log"

    def _failed(self, name: str, message: str, tries: int, *, final: bool) -> None:
        if final or tries >= self.settings.retries:
            self._set_state(name, State.FAILED, message, tries + 1)
        else:
            self._set_state(name, State.WAITING, message, tries + 1)

    async def _run(self, active: Active) -> None:
        name = active.entry.name

        def observe(entry: BaseEntry) -> None:
            active.log(entry)
            self._observe(name, entry)

        context = SearchContext(
            self._machine,
            active.share,
            self._budget,
            active.may_ask.wait,
            self._time_left.limit,
            lambda settings, generations: self._env_steps.claim(name, settings, generations),
            self._breakers,
            self.queue.folder / name,
        )
        await run_search(active.entry, context, self._command, observe, trust=self._trust)
        with reading(str(self.queue.folder / name)) as run:
            self._env_steps.ended(name, steps_in(run))
            reason = cut_short(run)
        if reason:
            raise LimitReachedError(reason)

    def _observe(self, search: str, entry: BaseEntry) -> None:
        """Pass on what concerns the batch."""
        self._watch(search, entry)
        if isinstance(entry, Proposed | AttemptEnded | AttemptRepeated | FinalTrained):
            self._waiting_for_machine.achieved()
        if isinstance(entry, Notice) and entry.level == "warning":
            self.record("warning", entry.text, search)
        elif isinstance(entry, RunStarted):
            self.record("resumed" if entry.resumed else "began", entry.sentence, search)

    async def _something_happens(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(TICK_S):
                await self._changed.wait()
        self._changed.clear()

    async def _collect(self) -> None:
        """Forget searches that have ended."""
        for name, active in list(self.active.items()):
            if active.task.done():
                await active.task  # raises what concerns all
                del self.active[name]
                gc.collect()  # it left cycles, and the collector comes seldom by itself

    def _end(self, active: Active, state: State) -> None:
        if active.ending is None:  # a second cancellation would keep it from saving
            active.task.cancel()
        active.ending = state

    async def _end_all(self) -> None:
        """Save what is under way and end it; at once on a second cancellation."""
        for active in self.active.values():
            if active.ending is None:
                self._end(active, State.STOPPED)
        tasks = [active.task for active in self.active.values()]
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
