"""Whole searches, run as `eureka search` runs them, in a runs folder of their own."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from eureka_agent.archive.run_folder import RUNS_VARIABLE, Run
from eureka_agent.designer.interface import GivenDesigner
from eureka_agent.journal.entries import BaseEntry
from eureka_agent.search.session import start

Result = TypeVar("Result")


class Watch:
    """Notes every event with the seconds since the search was asked for."""

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self.events: list[tuple[float, BaseEntry]] = []

    def __call__(self, event: BaseEntry) -> None:
        self.events.append((self.seconds(), event))

    def seconds(self) -> float:
        """Seconds since the search was requested."""
        return time.perf_counter() - self.began


@contextmanager
def own_runs_folder() -> Iterator[None]:
    """A runs folder that is removed after the block."""
    before = os.environ.get(RUNS_VARIABLE)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[RUNS_VARIABLE] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ[RUNS_VARIABLE]
            else:
                os.environ[RUNS_VARIABLE] = before


def search(
    values: Mapping[str, Any],
    read: Callable[[Run, Watch], Result],
    watch: Watch | None = None,
    given: GivenDesigner | None = None,
) -> Result:
    """Run a search to its end. Returns what `read` makes of it before its folder is removed.
    `values`: settings by name; `given`: a designer in place of that of the settings."""
    with own_runs_folder():
        watch = watch or Watch()
        run = asyncio.run(start(values, given, ["eureka", "search"], watch))
        return read(run, watch)
