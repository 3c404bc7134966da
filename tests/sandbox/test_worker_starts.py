"""Workers that die at their start."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from pathlib import Path

import pytest
from training_pool import TrainingPool

from eureka_agent.archive.snapshots import SnapshotStore
from eureka_agent.designer.interface import given_reward
from eureka_agent.errors import EurekaError, WorkerDiedError
from eureka_agent.sandbox.process_wall import ProcessWall
from eureka_agent.sandbox.wall import Limits, WorkerHandle
from eureka_agent.settings import TrainingSettings

# 10 iterations of 8 environments and 16 steps
SETTINGS = TrainingSettings(
    env_steps=1280, num_envs=8, horizon=16, hidden_sizes=(16,), epochs=1, checkpoints=2
)
ProcessesOf = Callable[[Path], list[int]]


class DeadlyWall(ProcessWall):
    """Kills some of the workers, counted from 0, as soon as they are started."""

    def __init__(self, doomed: Collection[int]) -> None:
        super().__init__()
        self.started = 0
        self._doomed = doomed

    async def start(self, scratch: Path, limits: Limits) -> WorkerHandle:
        handle = await super().start(scratch, limits)
        if self.started in self._doomed:
            await self.kill(handle)
        self.started += 1
        return handle


def make_pool(wall: ProcessWall, scratch: Path, workers: int, **rest: object) -> TrainingPool:
    return TrainingPool(wall, "cartpole", "balance", SETTINGS, 2, workers, scratch, **rest)  # type: ignore[arg-type]


@pytest.mark.parametrize("workers", [2])
async def test_a_worker_that_is_killed_at_its_start_is_started_again(
    tmp_path: Path, good_reward: str, workers: int, processes_of: ProcessesOf
) -> None:
    wall = DeadlyWall({0})
    pool = make_pool(wall, tmp_path, workers)
    try:
        results = await asyncio.gather(
            *(pool.train(job, given_reward(good_reward), 0) for job in "abc")
        )
    finally:
        await pool.close()
    assert [result.failure_reason for result in results] == ["", "", ""]
    assert [result.retries for result in results] == [0, 0, 0]
    assert wall.started == workers + 1
    assert processes_of(tmp_path) == []


@pytest.mark.parametrize("workers", [2])
async def test_workers_that_die_at_every_start_are_given_up_soon(
    tmp_path: Path, good_reward: str, workers: int
) -> None:
    wall = DeadlyWall(range(100))
    pool = make_pool(wall, tmp_path, workers)
    try:
        results = await asyncio.gather(
            *(pool.train(job, given_reward(good_reward), 0) for job in "abc"),
            return_exceptions=True,
        )
    finally:
        await pool.close()
    assert all(
        isinstance(result, WorkerDiedError) and "SIGKILL" in result.message for result in results
    )
    assert all("above" not in result.hint for result in results)  # it said nothing
    assert wall.started == workers + 1


async def test_a_saved_state_that_is_gone_when_a_worker_is_to_get_it_is_an_error_and_no_endless_wait(
    tmp_path: Path, good_reward: str
) -> None:
    class Vanishing(SnapshotStore):
        """Loses each state right after it was found."""

        def find(self, job: str) -> object:  # type: ignore[override]
            found = super().find(job)
            if found is not None:
                found.state.unlink()
            return found

    store = Vanishing(tmp_path)
    first = make_pool(ProcessWall(), tmp_path / "scratch", 1, snapshots=store, snapshot_s=0.0)
    try:
        await first.train("a", given_reward(good_reward), 0)
        await first.train("warm", given_reward(good_reward), 1)  # the worker is ready
        with pytest.raises(EurekaError, match="there is no such file"):
            await asyncio.wait_for(first.train("a", given_reward(good_reward), 0), 20)
    finally:
        await first.close()
