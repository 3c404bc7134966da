"""This machine's workers, for any number of searches in one process."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType

from eureka_agent.cluster.ray_cluster import Cluster
from eureka_agent.fleet.devices import Hardware
from eureka_agent.fleet.dry_runner import DryRunner
from eureka_agent.fleet.fleet import Fleet
from eureka_agent.fleet.problem import Problem
from eureka_agent.sandbox.wall import Wall


class Machine:
    """Shares workers between searches: a fleet for each kind of device, a dry runner for each
    problem."""

    def __init__(
        self, wall: Wall, scratch: Path, workers: int = 0, cluster: Cluster | None = None
    ) -> None:
        """Starts nothing yet. At most `workers` train at a time on a kind of device; 0: one on each
        core or GPU. They train on a `cluster`, if there is one."""
        self.cluster = cluster
        self.wall = wall
        self._scratch = scratch
        self._workers = workers
        self._fleets: dict[Hardware, Fleet] = {}
        self._dry_runners: dict[Problem, DryRunner] = {}
        self._users: Counter[Problem] = Counter()
        self._views = itertools.count(1)
        self._starting = asyncio.Lock()

    async def __aenter__(self) -> Machine:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for fleet in self._fleets.values():
            await fleet.close()

    def workers(self, hardware: Hardware) -> int:
        """Workers that train at a time on these devices."""
        if self.cluster is not None:
            return self._workers or self.cluster.places(hardware.kind)
        return self._workers or hardware.places

    def fleet(self, hardware: Hardware) -> Fleet:
        """The fleet on these devices."""
        if hardware not in self._fleets:
            workers = self.workers(hardware)
            scratch = self._scratch / f"fleet-{len(self._fleets)}"
            self._fleets[hardware] = Fleet(
                self.wall,
                scratch,
                workers,
                hardware.devices(workers),
                cluster=self.cluster,
            )
        return self._fleets[hardware]

    @asynccontextmanager
    async def dry_runner(self, problem: Problem, timeout_s: float) -> AsyncIterator[DryRunner]:
        """A started dry runner, whose worker other searches of the problem use too. It ends with
        the last block."""
        self._users[problem] += 1
        try:
            async with self._starting:  # the first caller starts it, or gets the error
                if problem not in self._dry_runners:
                    scratch = self._scratch / "dry-runs"
                    runner = DryRunner(self.wall, problem, scratch, timeout_s)
                    await runner.start()
                    self._dry_runners[problem] = runner
            yield self._dry_runners[problem].view(f"{next(self._views)}-", timeout_s)
        finally:
            self._users[problem] -= 1
            if not self._users[problem] and problem in self._dry_runners:
                await self._dry_runners.pop(problem).close()

    def dispatch(self) -> None:
        """Start the trainings that may start, after a share was released."""
        for fleet in self._fleets.values():
            fleet.dispatch()

    @property
    def under_way(self) -> int:
        """Trainings that run or are about to."""
        return sum(fleet.under_way for fleet in self._fleets.values())
