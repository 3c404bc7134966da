"""A refinement that this server works on, with the person at the other end of its forms."""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from eureka_agent.errors import EurekaError
from eureka_agent.feedback_records import Decision
from eureka_agent.journal.entries import BaseEntry, FeedbackGiven, IterationStarted
from eureka_agent.report.live import LogFile
from eureka_agent.report.progress import Watched
from eureka_agent.search.refinement import Refinement
from eureka_agent.search.session import resume

TICK_S = 1.0


Phase = Literal["preparing", "asking", "training", "ended"]


class RefineSession:
    """One session: a task of the server's event loop, on which all of its methods run."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.phase: Phase = "preparing"
        self.turn = 0
        """Number of phases so far, by which a browser knows whether it shows this one."""
        self.fault: EurekaError | None = None
        """Reason for an end by itself."""
        self.view = Watched()
        self._folder = folder
        self._refinement: Refinement | None = None
        self._log = LogFile()
        self._decided = asyncio.Event()
        self._making: dict[tuple[str, ...], asyncio.Task[dict[str, Path]]] = {}
        self._task = asyncio.create_task(self._work())

    @property
    def refinement(self) -> Refinement:
        """The refinement, while the person is asked. Raises EurekaError at other times."""
        if self._refinement is None or self.phase != "asking":
            raise EurekaError(
                f"nothing can be said now: the session is {self.phase}",
                "reload the page; nothing that was recorded is lost",
            )
        return self._refinement

    async def ask(self, refinement: Refinement) -> None:
        """Show the forms until one of them has told a decision; see `refinement.Person`."""
        self._refinement = refinement
        self._decided.clear()
        self._enter("asking")
        try:
            await self._decided.wait()
        finally:
            # first, so that no page begins another clip meanwhile, which nobody would wait for
            self._enter("training")
            making = list(self._making.values())
            self._making.clear()
            for task in making:
                task.cancel()
            await asyncio.gather(*making, return_exceptions=True)

    def clips(self, names: Sequence[str]) -> dict[str, Path] | None:
        """The clips of these attempts; None while they are being made. Raises EurekaError where
        they cannot be made."""
        key = tuple(names)
        if key not in self._making:
            self._making[key] = asyncio.create_task(self.refinement.clips.of(key))
        task = self._making[key]
        return task.result() if task.done() else None

    async def close(self) -> None:
        """End it; trainings under way are saved."""
        self._task.cancel()
        await asyncio.wait({self._task})

    def _enter(self, phase: Phase) -> None:
        self.phase = phase
        self.turn += 1

    def _observe(self, entry: BaseEntry) -> None:
        self._log(entry)
        self.view.see(entry)
        match entry:
            case FeedbackGiven(feedback=Decision()):
                self._decided.set()
            case IterationStarted() if self.phase == "preparing":  # as an earlier process left it
                self._enter("training")

    async def _work(self) -> None:
        ticking = asyncio.create_task(self._tick())
        try:
            # imports of a second, which would hold up all pages
            await asyncio.to_thread(importlib.import_module, "choix")
            await resume(self._folder, self._observe, person=self.ask)
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
            self._refinement = None
            self._enter("ended")

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self._log.tick()
