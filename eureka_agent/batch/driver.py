"""The driver of a batch: it starts searches, watches the limits, and stops what is to stop."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from eureka_agent.archive.run_folder import Run, reading
from eureka_agent.archive.storage_errors import FILE_NAME
from eureka_agent.batch.allocation import PromisingFirst
from eureka_agent.batch.file import BatchSettings
from eureka_agent.batch.folder import STOP_FILE, has_begun
from eureka_agent.batch.limits import EnvSteps, TimeLeft, cut_short
from eureka_agent.batch.queue import Entry, Event, Queue, State
from eureka_agent.errors import EnvironmentLoadError, EurekaError, SettingsError
from eureka_agent.fleet.devices import CPU
from eureka_agent.fleet.machine import Machine
from eureka_agent.fleet.share import Share
from eureka_agent.journal.entries import BaseEntry, Notice, RunStarted
from eureka_agent.llm.breaker import Breakers
from eureka_agent.llm.budget import Budget
from eureka_agent.records import RunStatus
from eureka_agent.report.log_file import LogFile
from eureka_agent.search.context import SearchContext
from eureka_agent.search.engine import LimitReachedError
from eureka_agent.search.resumption import is_own
from eureka_agent.search.session import resume, start
from eureka_agent.search.summary import run_overview
from eureka_agent.settings import FREE_SETTINGS, SearchSettings, TrainingSettings, parse_settings

TICK_S = 1.0
_PERMANENT = (SettingsError, EnvironmentLoadError)
"""Errors that another try does not mend."""


@dataclass(eq=False)
class Active:
    """A search that is under way."""

    entry: Entry
    share: Share
    may_ask: asyncio.Event
    """Set while models may be asked."""
    log: LogFile = field(default_factory=LogFile)
    ending: State | None = None
    """State that it gets when it is cancelled; None while nobody cancels it."""
    paused: bool = False
    task: asyncio.Task[None] = field(init=False)


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
    ) -> None:
        """`command`: the command line, for the runs' records. `trust`: also go on with runs of
        others. `observer` gets each event once it is stored."""
        self.queue = queue
        self.settings = settings
        self._machine = machine
        self._command = command
        self._observer = observer
        self._budget = budget
        self._trust = trust
        self._time_left = time_left or TimeLeft(settings)
        self._env_steps = EnvSteps(settings.env_steps)
        self._allocation = PromisingFirst()
        self._breakers = Breakers()
        self.active: dict[str, Active] = {}
        self.paused = False
        """True while nothing new begins in any search."""
        self.stopping = ""
        """Reason why the batch ends as soon as nothing is under way; empty while it goes on."""
        self._left_out: set[str] = set()
        """Searches that do not begin in this call: no limit leaves room for them."""
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Work until every search has ended or a limit is reached. A cancellation saves what is
        under way; a second one ends at once."""
        self._count_used_steps()
        try:
            while True:
                self._begin_waiting()
                if not self.active:
                    return
                await self._something_happens()
                await self._collect()
                for active in self.active.values():
                    active.log.tick()
                if reason := self._time_left.is_up():
                    self.record("limit", f"time is up: {reason}")
                    await self._end_all()
                    return
                if not self.stopping and (self.queue.folder / STOP_FILE).exists():
                    self.stop(f"there is a file {STOP_FILE}")
                if self.stopping and not self._machine.busy:
                    await self._end_all()
                    return
        except BaseException:  # a cancellation, or a full disk
            await self._end_all()
            raise

    # ── what a person asks for ────────────────────────────────────────────────────────────────────

    def stop(self, reason: str) -> None:
        """Begin nothing more; end when the trainings under way have ended."""
        self.stopping = reason
        self.record("stopping", reason)
        self._hold()

    def pause(self, search: str | None = None) -> None:
        """Begin nothing more in a search, or in all."""
        if search is None:
            self.paused = True
        else:
            self.active[search].paused = True
            self.queue.set_state(search, State.PAUSED)
        self.record("paused", search=search)
        self._hold()

    def resume(self, search: str | None = None) -> None:
        """Go on with a search, or with all."""
        if search is None:
            self.paused = False
        elif search in self.active:
            self.active[search].paused = False
            self.queue.set_state(search, State.RUNNING)
        else:
            self.queue.set_state(search, State.WAITING)
            self._left_out.discard(search)
        self.record("resumed", search=search)
        self._hold()

    def cancel(self, search: str) -> None:
        """End a search now. Its trainings are saved, and only `resume` goes on with it."""
        if search in self.active:
            self._end(self.active[search], State.CANCELLED)
        else:
            self.queue.set_state(search, State.CANCELLED, "cancelled before it began")
            self._changed.set()

    def retune(self, search: str, changes: Mapping[str, Any]) -> None:
        """Change settings of a search that may change; one under way is saved and goes on with
        them."""
        entry = next(each for each in self.queue.entries() if each.name == search)
        self.queue.change_settings(search, {**entry.settings, **changes})
        text = ", ".join(f"{name} = {value}" for name, value in changes.items())
        self.record("retuned", text, search)
        if search in self.active:
            self._end(self.active[search], State.WAITING)

    def retune_batch(self, settings: BatchSettings) -> None:
        """Take over other limits of the batch from now on."""
        self.settings = settings
        self._env_steps.limit = settings.env_steps
        self._time_left = TimeLeft(settings)
        self._left_out.clear()
        self.record("retuned", "limits of the batch")
        self._changed.set()

    def _hold(self) -> None:
        """Hold or release the searches under way, by what was asked for."""
        for active in self.active.values():
            active.share.held = self.paused or active.paused or bool(self.stopping)
            if active.share.held:
                active.may_ask.clear()
            else:
                active.may_ask.set()
        self._machine.dispatch()
        self._changed.set()

    def record(self, kind: str, text: str = "", search: str | None = None) -> None:
        """Store an event and pass it on."""
        self._observer(self.queue.record(kind, text, search))

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
            share, may_ask = Share(), asyncio.Event()
            may_ask.set()
            active = Active(entry, share, may_ask)
            self.active[entry.name] = active
            self._set_state(entry.name, State.RUNNING, tries=entry.tries)
            active.task = asyncio.create_task(self._search(active))
            active.task.add_done_callback(lambda task: self._changed.set())

    def _next(self, waiting: list[Entry]) -> Entry:
        """The first of the file; while as many kinds of populations as workers are under way, the
        first that shares one of them: it fills their slots."""
        kinds = {_kind(active.entry) for active in self.active.values()}
        if len(kinds) >= self._machine.workers(CPU):
            same = next((entry for entry in waiting if _kind(entry) in kinds), None)
            if same is not None:
                return same
        return waiting[0]

    async def _search(self, active: Active) -> None:
        """Run one search and store how it ended."""
        name, tries = active.entry.name, active.entry.tries
        try:
            await self._run(active)
        except asyncio.CancelledError:
            self._set_state(name, active.ending or State.STOPPED)
        except LimitReachedError as error:
            self._left_out.add(name)
            self._set_state(name, State.WAITING, error.message)
        except EurekaError as error:
            self._failed(name, str(error), tries, final=isinstance(error, _PERMANENT))
        except Exception as error:  # noqa: BLE001  (a defect in one search must not end the night)
            with suppress(OSError), (self.queue.folder / "defects.log").open("a") as log:
                log.write(f"{name}:\n{''.join(traceback.format_exception(error))}\n")
            text = f"a defect of this program: {error!r}; see defects.log"
            self._failed(name, text, tries, final=False)
        else:
            self._set_state(name, State.FINISHED)

    def _failed(self, name: str, message: str, tries: int, *, final: bool) -> None:
        if final or tries >= self.settings.retries:
            self._set_state(name, State.FAILED, message, tries + 1)
        else:
            self._set_state(name, State.WAITING, message, tries + 1)

    async def _run(self, active: Active) -> None:
        name = active.entry.name
        folder = self.queue.folder / name

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
            folder,
        )
        if not has_begun(self.queue.folder, active.entry):
            values = active.entry.settings
            run = await start(values, None, self._command, observe, None, context)
            run.archive.close()
        elif (changes := self._changes(active.entry)) is not None:
            run = await resume(folder, observe, changes, context)
            run.archive.close()
        with reading(str(folder)) as run:
            self._env_steps.ended(name, _used_steps(run))
            reason = cut_short(run)
        if reason:
            raise LimitReachedError(reason)

    def _changes(self, entry: Entry) -> dict[str, Any] | None:
        """Free settings that differ from the run's; None for a run that has finished with them."""
        with reading(str(self.queue.folder / entry.name)) as run:
            if not self._trust and not is_own(run, attempts=True):
                raise SettingsError(
                    f"the run {str(run.folder)!r} is not your own, and a batch asks nobody",
                    "look at it, and give the same command with --trust if you trust who made it",
                )
            asked = parse_settings(SearchSettings, entry.settings, "the batch")
            changes = {
                name: entry.settings[name]
                for name in entry.settings
                if name in FREE_SETTINGS and getattr(asked, name) != getattr(run.settings, name)
            }
            finished = run.status is RunStatus.FINISHED and not cut_short(run)
        return None if finished and not changes else changes

    def _observe(self, search: str, entry: BaseEntry) -> None:
        """Pass on what concerns the batch."""
        if isinstance(entry, Notice) and entry.level == "warning":
            self.record("warning", entry.text, search)
        elif isinstance(entry, RunStarted):
            self.record("resumed" if entry.resumed else "began", entry.sentence, search)
        if self._allocation.observe(search, entry) and self.settings.allocation == "promising":
            shares = {name: active.share for name, active in self.active.items()}
            for name, text in self._allocation.changes(shares):
                self.record("allocation", text, name)

    async def _something_happens(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(TICK_S):
                await self._changed.wait()
        self._changed.clear()

    async def _collect(self) -> None:
        """Forget searches that have ended."""
        for name, active in list(self.active.items()):
            if active.task.done():
                await active.task  # a full disk may have kept it from being recorded
                del self.active[name]

    def _end(self, active: Active, state: State) -> None:
        active.ending = state
        active.task.cancel()

    async def _end_all(self) -> None:
        """Save what is under way and end it; at once on a second cancellation."""
        for active in self.active.values():
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

    def _count_used_steps(self) -> None:
        for entry in self.queue.entries():
            if (self.queue.folder / entry.name / FILE_NAME).is_file():
                with reading(str(self.queue.folder / entry.name)) as run:
                    self._env_steps.ended(entry.name, _used_steps(run))


def _used_steps(run: Run) -> int:
    return run_overview(run, costs=False).cost.env_steps


def _kind(entry: Entry) -> tuple[object, ...]:
    """Settings by which two searches can share workers."""
    names = ("env", "task", "device", *TrainingSettings.model_fields)
    return tuple(str(entry.settings.get(name)) for name in names)
