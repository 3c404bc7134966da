"""A wall: how a worker is started, what stands between it and the machine, and how it is ended."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

_LEAST_MEMORY_BYTES = 2 << 30


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one worker may use."""

    memory_bytes: int = field(default_factory=lambda: _half_of_memory())
    """Half of the machine's memory, unless said otherwise."""
    open_files: int = 1024
    file_bytes: int = 1 << 30
    """Largest file that it may write."""
    scratch_bytes: int = 1 << 30
    """What its scratch folder may hold, behind walls that can limit that."""
    processes: int = 256
    """Processes and threads at a time, behind walls that can limit them."""
    readable: tuple[Path, ...] = ()
    """Folders of the person's that it reads, under their own absolute paths: the environment's,
    where that is a folder."""
    cores: tuple[int, ...] = ()
    """CPU cores that it runs on; empty: all."""
    visible_gpu: str | None = None
    """The only GPU that it sees, as CUDA_VISIBLE_DEVICES names it; None: those that the driver
    sees."""
    kernels: Path | None = None
    """Folder of compiled kernels, which it may read and of which its cache is to be a copy
    (`fleet/kernels.py`)."""


def shared_limits(workers: int) -> Limits:
    """Limits of each of several workers that together may take half of the machine's memory, though
    none is given too little to work."""
    return Limits(memory_bytes=max(_LEAST_MEMORY_BYTES, _half_of_memory() // workers))


def _half_of_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


class WorkerHandle(Protocol):
    """A started worker: two streams of bytes, and how it ended."""

    @property
    def returncode(self) -> int | None:
        """None while it runs; negative: the signal that ended it."""
        ...

    async def write(self, data: bytes) -> None:
        """Write to its standard input; waits while it reads too little. Raises ConnectionError once
        nobody reads there."""
        ...

    async def read(self, most: int) -> bytes:
        """The next bytes of its standard output, at most so many; empty at the end."""
        ...

    async def wait(self) -> int:
        """Its exit status, once it has ended."""
        ...

    def last_words(self) -> str:
        """The last lines that it wrote to standard error, and what the wall itself knows of its
        end; empty when there is nothing."""
        ...


class Wall(Protocol):
    """Starts and ends worker processes."""

    name: str
    covers: tuple[str, ...]
    """What generated code is kept from, one phrase each."""
    does_not_cover: tuple[str, ...]
    """What it is not kept from, one phrase each; shown to the person."""

    async def start(self, folder: Path, limits: Limits) -> WorkerHandle:
        """Start `python -m eureka_agent.worker`.

        `folder`: an existing empty folder of this worker's alone, gone when it is; whether the
        worker sees it depends on the wall. Nothing passes between driver and worker but the two
        streams. Raises WallError when it cannot be started.
        """
        ...

    async def kill(self, handle: WorkerHandle) -> None:
        """End the worker and all that it started, and wait until it is gone. Nothing happens to one
        that has ended."""
        ...
