"""Limits of all searches of a batch together: time, money and tokens. A full disk, or a Docker
engine that is away: the batch waits."""

from __future__ import annotations

import asyncio
import errno
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from pathlib import Path

from eureka_agent.archive.files import storage_errors
from eureka_agent.batch.file import BatchSettings, seconds_of
from eureka_agent.errors import DiskFullError, WallAwayError, WorkerLostError, lacks_room
from eureka_agent.journal.state import RunState
from eureka_agent.llm.budget import ModelLimits
from eureka_agent.sandbox.wall import Served, Wall
from eureka_agent.search.budget import TimeLimit
from eureka_agent.wording import rough_duration

_OF_THE_BATCH = "of the batch"


def cut_short(run: RunState) -> str:
    """Reason why a run ended before its last generation, where that was the batch's time; else
    empty. Another call of the command goes on with it."""
    reached, started = run.deadline_reached, run.started
    if reached is None or started is None or f"{_OF_THE_BATCH})" not in reached.limit:
        return ""
    return reached.text if len(run.iterations_ended) < started.settings.iterations else ""


class TimeLeft:
    """Time until the batch ends, from the begin of the call."""

    def __init__(
        self, max_time: str | None, stopwatch: Callable[[], float] = time.monotonic
    ) -> None:
        self.max_time = max_time
        self._stopwatch, self._began = stopwatch, stopwatch()
        self._called = f"{datetime.now():%Y-%m-%d %H:%M}"

    def limit(self) -> TimeLimit | None:
        """Wall time that is left; None without a limit."""
        if self.max_time is None:
            return None
        left = self._began + seconds_of(self.max_time) - self._stopwatch()
        # by its text a search knows a limit that it has met before: that of another call is new
        text = f"{self.max_time} from {self._called} (max_time, {_OF_THE_BATCH})"
        return TimeLimit(text, max(0.0, left))

    def is_up(self) -> str:
        """The limit that is reached; empty while there is time."""
        limit = self.limit()
        return limit.text if limit is not None and limit.seconds == 0.0 else ""


def limits_on_models(settings: BatchSettings) -> ModelLimits:
    """Limits of what all searches together may spend on models."""
    origin = {"money": "max_cost of the batch", "tokens": "max_tokens of the batch"}
    return ModelLimits(money=settings.max_cost, tokens=settings.max_tokens, origin=origin)


Trouble = DiskFullError | WallAwayError | WorkerLostError
"""Error for which no search is to blame, and that passes without a change of any."""
_ROOM_BYTES = 32 << 20
"""Room on a disk with which searches go on; some of it is gone again as soon as they do."""
_POLL_S, _MOST_POLL_S = 3.0, 60.0


def trouble_in(error: BaseException) -> Trouble | None:
    """The machine's trouble behind an error; None for another error."""
    if isinstance(error, Trouble):
        return error
    if isinstance(error, OSError) and lacks_room(error):
        written = str(error.filename or "a file")
        return DiskFullError(f"cannot write {written!r}: the disk is full", "free some space")
    return None


class MachineWait:
    """Waits until a machine can be used again."""

    def __init__(
        self,
        wall: Wall,
        folders: Sequence[Path],
        tell: Callable[[str], None],
        stopwatch: Callable[[], float] = time.monotonic,
    ) -> None:
        """`folders`: those that must have room, beside the one for temporary files. `tell` gets a
        line at the begin and the end of each wait."""
        self._wall, self._folders = wall, (*folders, Path(tempfile.gettempdir()))
        self._tell, self._stopwatch = tell, stopwatch
        self._waited_s, self._waits = 0.0, 0

    def achieved(self) -> None:
        """Begin to count anew: the machine has done something that is not to be done again."""
        self._waited_s, self._waits = 0.0, 0

    async def until_usable(
        self, trouble: Trouble, most_s: float, pause: Callable[[float], Awaitable[bool]]
    ) -> bool:
        """Wait, at most so many seconds, with earlier waits since anything was achieved. `pause`
        waits for so many, and returns False once no further wait is wanted; then this returns
        False. Raises `trouble` when the time is over."""
        began, before = self._stopwatch(), self._waited_s
        most = rough_duration(most_s)
        waits = f"{trouble.message}; everything waits for it, at most {most}"
        self._tell(": ".join(filter(None, (waits, trouble.hint))))
        # trouble that the look below does not see comes back as soon as searches go on
        poll_s = min(_POLL_S * 2**self._waits, _MOST_POLL_S)
        returned, self._waits = self._waits > 0, self._waits + 1
        while (still := trouble if returned else await self._trouble()) is not None:
            if self._waited_s >= most_s:
                hint = "; ".join(filter(None, (still.hint, "a longer wait_for_machine waits more")))
                raise type(still)(f"{still.message}; the batch has waited {most} for it", hint)
            if not await pause(poll_s):
                return False
            self._waited_s, returned = before + self._stopwatch() - began, False
        self._tell(f"searches go on after {rough_duration(self._stopwatch() - began)}")
        return True

    async def _trouble(self) -> Trouble | None:
        try:
            for folder in self._folders:
                await asyncio.to_thread(_write_probe, folder)
            if isinstance(self._wall, Served):
                await self._wall.check()
        except (DiskFullError, WallAwayError) as error:
            return error
        return None


def _write_probe(folder: Path) -> None:
    """Raise DiskFullError where there is no room; a quota shows in nothing but writing."""
    with (
        storage_errors(folder),
        tempfile.TemporaryFile(dir=folder, prefix="room-", buffering=0) as probe,
    ):
        for _ in range(_ROOM_BYTES >> 20):
            if probe.write(bytes(1 << 20)) < 1 << 20:
                raise OSError(errno.ENOSPC, "the disk is full")
