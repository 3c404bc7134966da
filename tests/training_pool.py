"""The trainings of one search on a fleet of its own, as most tests of trainings need them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

from eureka_agent.archive.snapshots import SnapshotStore
from eureka_agent.fleet.devices import CPU, Device
from eureka_agent.fleet.dispatcher import Dispatcher
from eureka_agent.fleet.fleet import Trainings
from eureka_agent.fleet.jobs import Population, Problem, ProgressObserver
from eureka_agent.records import WrittenFitness
from eureka_agent.sandbox.wall import Limits, Wall, shared_limits
from eureka_agent.settings import SNAPSHOT_SECONDS, TrainingSettings


class TrainingPool(Trainings):
    """`Fleet.trainings` of one population; `close` also ends the workers."""

    def __init__(
        self,
        wall: Wall,
        environment: str,
        task: str | None,
        settings: TrainingSettings,
        slots: int,
        workers: int,
        scratch: Path,
        on_progress: ProgressObserver = lambda job, points: None,
        on_retry: Callable[[str, str], None] = lambda job, reason: None,
        on_resume: ProgressObserver = lambda job, points: None,
        timeout_s: float = 120.0,
        limits: Limits | None = None,
        snapshots: SnapshotStore | None = None,
        snapshot_s: float = SNAPSHOT_SECONDS,
        devices: Sequence[Device] = (),
        fitness: WrittenFitness | None = None,
    ) -> None:
        problem = Problem(environment, task, fitness)
        super().__init__(
            Dispatcher(
                wall,
                scratch,
                limits or shared_limits(workers),
                devices or CPU.devices(workers),
                workers,
            ),
            itertools.count(1),
            Population(problem, settings, slots, timeout_s, snapshot_s),
            snapshots,
            on_progress,
            on_retry,
            on_resume,
        )

    async def close(self) -> None:
        """End the workers; policies stay, for tests to read."""
        self._policies.clear()
        await super().close()
        await self._dispatcher.close()
