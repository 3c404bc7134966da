"""Interface of walls: start and end of workers, their limits, and what is covered."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

LOST = 1 << 16
"""Exit status of a worker that is gone with its machine or its engine; no process has it."""
VISIBLE_GPUS = "CUDA_VISIBLE_DEVICES"
_LEAST_MEMORY_BYTES = 2 << 30
KEPT_BYTES = 4096
FLOOD_BYTES = 64 << 20
"""Most bytes of standard error: a worker that writes more has a loop, and keeps the driver busy."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of one worker."""

    memory_bytes: int = field(default_factory=lambda: _half_of_memory())
    """By default half of the machine's memory."""
    open_files: int = 1024
    file_bytes: int = 1 << 30
    scratch_bytes: int = 1 << 30
    """Size of its scratch folder, behind walls that can limit it."""
    processes: int = 256
    """Most processes and threads, behind walls that can limit them."""
    readable: tuple[Path, ...] = ()
    """Folders of the user that it reads under the same paths, such as the environment's."""
    writable: tuple[Path, ...] | None = None
    """Behind the wall `process`: the only folders beside its own that it writes to, where the
    kernel can hold that. None: it is not held to any."""
    image: str = ""
    """Docker image whose files it sees in place of this machine's /usr; "" for none."""
    cores: tuple[int, ...] = ()
    visible_gpu: str | None = None
    """Its only GPU, named as in CUDA_VISIBLE_DEVICES; None: those of the driver."""
    kernels: Path | None = None
    """Readable folder of compiled kernels, copied to its cache (`fleet/devices.py`)."""


def shared_limits(workers: int) -> Limits:
    """Limits of several workers that share half of the machine's memory, with a minimum each."""
    return Limits(memory_bytes=max(_LEAST_MEMORY_BYTES, _half_of_memory() // workers))


def _half_of_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


class LastWords:
    """The last `KEPT_BYTES` of a worker's standard error."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._written = 0

    @property
    def flooded(self) -> bool:
        """True after more than `FLOOD_BYTES`: the reader should end the worker."""
        return self._written > FLOOD_BYTES

    def add(self, data: bytes) -> None:
        self._written += len(data)
        self._kept += data
        del self._kept[:-KEPT_BYTES]

    def text(self) -> str:
        """The kept end; not safe for a terminal (`plain_text`)."""
        words = [self._kept.decode(errors="replace").strip()]
        if self.flooded:
            limit = f"{FLOOD_BYTES >> 20} MiB"
            words.append(f"it wrote more than {limit} to standard error and was killed")
        return "\n".join(filter(None, words))


class WorkerHandle(Protocol):
    """A started worker: two byte streams, and its exit status."""

    @property
    def returncode(self) -> int | None:
        """None while it runs; negative: the signal that ended it; `LOST`: gone with its machine."""
        ...

    async def write(self, data: bytes) -> None:
        """Write to its standard input. Raises ConnectionError once it is closed."""
        ...

    async def read(self, most: int) -> bytes:
        """Read at most so many bytes of its standard output; empty at the end."""
        ...

    async def wait(self) -> int: ...

    def last_words(self) -> str:
        """End of its standard error, and the wall's knowledge of its end; may be empty."""
        ...


@runtime_checkable
class Elsewhere(Protocol):
    """A handle of a worker that has folders of the user at other paths."""

    @property
    def places(self) -> Mapping[Path, Path]:
        """Paths in the worker, by absolute ones on this machine."""
        ...


@runtime_checkable
class Served(Protocol):
    """A wall of a service of this machine, which may be away for a while."""

    async def check(self) -> None:
        """Raise WallAwayError while it does not answer; then remove workers of unknown end."""
        ...


class Wall(Protocol):
    """Starts and ends worker processes."""

    name: str
    covers: tuple[str, ...]
    """Covered threats, one phrase each."""
    does_not_cover: tuple[str, ...]
    """Threats that are not covered, one phrase each, shown to the user."""

    async def start(self, folder: Path, limits: Limits) -> WorkerHandle:
        """Start `python -m eureka_agent.worker`, which exchanges nothing but two streams with the
        driver. `folder`: existing, empty, deleted with the worker. Raises WallError."""
        ...

    async def kill(self, handle: WorkerHandle) -> None:
        """End the worker and all its processes, and wait for that; no effect on an ended one."""
        ...
