"""A refinement that this server works on, with the person at the other end of its forms."""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from eureka_agent.archive.run_folder import open_run
from eureka_agent.errors import EurekaError
from eureka_agent.feedback_records import Reading, Wish
from eureka_agent.invocation import command
from eureka_agent.journal.entries import BaseEntry
from eureka_agent.report.live import LogFile
from eureka_agent.report.progress import Watched
from eureka_agent.search.resumption import is_own
from eureka_agent.search.session import refine
from eureka_agent.search.table import Decision, Table
from eureka_agent.web.runs import Reader, folder_of

TICK_S = 1.0


class Phase(StrEnum):
    """Phase of a session."""

    PREPARING = "preparing"
    ASKING = "asking"
    TRAINING = "training"
    ENDED = "ended"


@dataclass(frozen=True)
class PendingWish:
    """A wish that was read, and that the person has not agreed to yet."""

    number: int
    wish: Wish
    reading: Reading
    correction: str = ""


class RefineSession:
    """One session: a task of the server's event loop, on which all of its methods run."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.phase = Phase.PREPARING
        self.turn = 0
        """Number of phases so far, by which a browser knows whether it shows this one."""
        self.fault: EurekaError | None = None
        """Reason for an end by itself."""
        self.view = Watched()
        self.pending: PendingWish | None = None
        self._folder = folder
        self._table: Table | None = None
        self._log = LogFile()
        self._decision: asyncio.Future[Decision] | None = None
        self._making: dict[tuple[str, ...], asyncio.Task[dict[str, Path]]] = {}
        self._task = asyncio.get_running_loop().create_task(self._work())

    @property
    def table(self) -> Table:
        """The table, while the person is asked. Raises EurekaError at other times."""
        if self._table is None or self.phase is not Phase.ASKING:
            raise EurekaError(
                f"nothing can be said now: the session is {self.phase.value}",
                "reload the page; nothing that was recorded is lost",
            )
        return self._table

    async def decide(self, table: Table) -> Decision:
        """See `table.Person`."""
        self._table = table
        self._decision = asyncio.get_running_loop().create_future()
        self._enter(Phase.ASKING)
        try:
            return await self._decision
        finally:
            self.pending, self._decision = None, None
            # first, so that no page begins another clip meanwhile, which nobody would wait for
            self._enter(Phase.TRAINING)
            await self._stop_making()

    def decided(self, decision: Decision) -> None:
        """Go on as the person decided. Raises EurekaError where nobody is asked."""
        assert self.table  # raises
        if self._decision is not None and not self._decision.done():
            self._decision.set_result(decision)

    def clips(self, names: Sequence[str]) -> dict[str, Path] | None:
        """The clips of these attempts; None while they are being made. Raises EurekaError where
        they cannot be made."""
        key = tuple(names)
        task = self._making.get(key)
        if task is None:
            task = asyncio.get_running_loop().create_task(self.table.clips(key))
            self._making[key] = task
        return task.result() if task.done() else None

    async def close(self) -> None:
        """End it; trainings under way are saved."""
        self._task.cancel()
        await asyncio.wait({self._task})

    def _enter(self, phase: Phase) -> None:
        self.phase = phase
        self.turn += 1

    async def _stop_making(self) -> None:
        tasks = list(self._making.values())
        self._making.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _observe(self, entry: BaseEntry) -> None:
        self._log(entry)
        self.view.see(entry)

    async def _work(self) -> None:
        ticking = asyncio.create_task(self._tick())
        try:
            # imports of a second, which would hold up all pages
            await asyncio.to_thread(importlib.import_module, "choix")
            await refine(self._folder, self._observe, self)
        except EurekaError as error:
            self.fault = error
        except Exception as error:  # the server and its other pages go on
            logging.getLogger(__name__).exception("the session on %s failed", self.name)
            self.fault = EurekaError(
                f"the session failed: {type(error).__name__}: {error}",
                "what was said is recorded; please report this",
            )
        finally:
            ticking.cancel()
            self._table = None
            self._enter(Phase.ENDED)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self._log.tick()


class RefineSessions:
    """The sessions of a server: one at a time, since each has workers of its own."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._last: RefineSession | None = None
        self._closed = False

    def of(self, name: str) -> RefineSession | None:
        """The last session on a run, also one that has ended."""
        last = self._last
        return last if last is not None and last.name == name else None

    async def begin(self, name: str) -> None:
        """Begin a session on a run, where there is none. Raises EurekaError for a run that cannot
        be refined here."""
        await self._reader(lambda: _check(name))
        last = self._last
        if last is not None and last.phase is not Phase.ENDED:
            if last.name == name:
                return
            raise EurekaError(f"this page works on the run {last.name!r}", "end that session first")
        if not self._closed:
            self._last = RefineSession(folder_of(name), name)

    async def close(self) -> None:
        """End the session that is open."""
        self._closed = True
        if self._last is not None:
            with suppress(asyncio.CancelledError):
                await self._last.close()


def _check(name: str) -> None:
    """Raise EurekaError for a run that this person may not go on with unasked."""
    run = open_run(folder_of(name), reading=True)
    try:
        if not is_own(run, attempts=True):
            raise EurekaError(
                f"the run {name!r} is not your own, and refining it would run its code",
                f"look at it first; `{command('refine ' + name)}` says what it would do, and asks",
            )
    finally:
        run.archive.close()
