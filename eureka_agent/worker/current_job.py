"""Which job's generated code is running, in a file that outlives the worker: a driver that finds it dead knows whom to suspect."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eureka_agent.worker.messages import CURRENT_JOB_BYTES, CURRENT_JOB_FILE


class CurrentJob:
    """A small file in the scratch folder, mapped into memory, so that a mark costs no system call."""

    def __init__(self, scratch: Path) -> None:
        with (scratch / CURRENT_JOB_FILE).open("w+b") as file:
            file.truncate(CURRENT_JOB_BYTES)
            self._memory = mmap.mmap(file.fileno(), CURRENT_JOB_BYTES)

    @contextmanager
    def marked(self, job: str) -> Iterator[None]:
        """The block runs generated code of this job."""
        name = job.encode()[:CURRENT_JOB_BYTES]
        self._memory[: len(name)] = name
        try:
            yield
        finally:
            self._memory[: len(name)] = bytes(len(name))
