"""Scoring policies in workers that have never been sent a reward."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import time
from pathlib import Path

from eureka_agent.archive.database import storage_errors
from eureka_agent.errors import WorkerDiedError
from eureka_agent.records import Evaluation
from eureka_agent.sandbox.scratch import take_file
from eureka_agent.sandbox.wall import Limits, Wall
from eureka_agent.sandbox.warm_worker import WarmWorker
from eureka_agent.worker.messages import Evaluate, Evaluated

MOST_WORKERS = 4
"""Each takes some 250 MiB, and trainings that end together are scored while the cores have little else to do."""


class Evaluator:
    """Scores policies, in few workers that are kept open. The score of a policy, a seed and a number of episodes is always the same.

    A further worker is started when the evaluations that wait would take the ones that are there longer than its start does.
    """

    def __init__(
        self,
        wall: Wall,
        environment: str,
        task: str | None,
        scratch_root: Path,
        timeout_s: float = 600.0,
        limits: Limits | None = None,
        most_workers: int = 1,
    ) -> None:
        """Starts nothing yet. `timeout_s`: wall-clock seconds that one evaluation may take; `most_workers`: evaluations at once."""
        self._setup = (wall, environment, task, scratch_root, limits)
        self._timeout_s = timeout_s
        self._most_workers = max(1, min(most_workers, MOST_WORKERS))
        self._jobs = itertools.count(1)
        self._workers: list[WarmWorker] = []
        self._free: asyncio.Queue[WarmWorker] = asyncio.Queue()
        self._waiting = 0
        self._starting: set[asyncio.Task[None]] = set()
        self._start_s = 0.0
        self._evaluation_s = 0.0
        """What the last start and the last evaluation took."""

    def warm_up(self) -> None:
        """Start the first worker, so that the first evaluation need not wait for it."""
        if not self._workers:
            self._add_worker()

    async def evaluate(self, policy: Path, seed: int, episodes: int, trajectories: Path | None = None) -> Evaluation:
        """Episodes of a policy acting without noise; the worst and the best are written to `trajectories` (npz) if that is given.

        Raises WorkerFaultError with the worker's words when the policy cannot be scored, WorkerDiedError when workers died twice over it.
        """
        worker = await self._next_free()
        began = time.monotonic()
        try:
            try:
                return await self._evaluate(worker, policy, seed, episodes, trajectories)
            except WorkerDiedError:
                return await self._evaluate(worker, policy, seed, episodes, trajectories)
        finally:
            self._evaluation_s = time.monotonic() - began
            self._free.put_nowait(worker)
            self._add_worker_where_it_pays()

    async def close(self) -> None:
        """End the workers."""
        self._most_workers = 0
        for task in self._starting:
            task.cancel()
        await asyncio.gather(*self._starting, return_exceptions=True)
        for worker in self._workers:
            await worker.drop()

    # ── how many workers ────────────────────────────────────────────────────────────────────────────────────────────

    async def _next_free(self) -> WarmWorker:
        self._waiting += 1
        try:
            self._add_worker_where_it_pays()
            return await self._free.get()
        finally:
            self._waiting -= 1

    def _add_worker_where_it_pays(self) -> None:
        if self._starting or len(self._workers) >= self._most_workers:
            return
        queue_s = (self._waiting - self._free.qsize()) * self._evaluation_s / max(1, len(self._workers))
        if not self._workers or queue_s > self._start_s:
            self._add_worker()

    def _add_worker(self) -> None:
        worker = WarmWorker(*self._setup)
        self._workers.append(worker)
        task = asyncio.create_task(self._start(worker))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def _start(self, worker: WarmWorker) -> None:
        began = time.monotonic()
        try:
            await worker.ready()
        except Exception:  # noqa: BLE001  (whoever takes the worker starts it again, and hears why it does not start)
            if len(self._workers) > 1:  # the others do without it
                self._workers.remove(worker)
                self._most_workers = len(self._workers)
                return
        self._start_s = time.monotonic() - began
        self._free.put_nowait(worker)

    async def _evaluate(
        self, worker: WarmWorker, policy: Path, seed: int, episodes: int, trajectories: Path | None
    ) -> Evaluation:
        scratch = (await worker.ready()).scratch
        job = f"evaluation-{next(self._jobs)}"
        policy_copy, recorded = scratch / f"{job}.safetensors", scratch / f"{job}.npz"
        command = Evaluate(
            job=job,
            policy=policy_copy.name,
            seed=seed,
            episodes=episodes,
            trajectories=None if trajectories is None else recorded.name,
        )
        try:
            with storage_errors(scratch):
                await asyncio.to_thread(shutil.copyfile, policy, policy_copy)
            answer = await worker.ask(command, self._timeout_s)
            if trajectories is not None:  # by the name that was asked for, whatever the worker says
                await asyncio.to_thread(take_file, scratch, recorded.name, trajectories)
        finally:
            policy_copy.unlink(missing_ok=True)
            recorded.unlink(missing_ok=True)
        assert isinstance(answer, Evaluated)
        return answer.evaluation
