"""Scoring policies in a worker that has never been sent a reward."""

from __future__ import annotations

import asyncio
import itertools
import shutil
from pathlib import Path

from eureka_agent.archive.database import storage_errors
from eureka_agent.errors import WorkerDiedError
from eureka_agent.records import Evaluation
from eureka_agent.sandbox.scratch import take_file
from eureka_agent.sandbox.wall import Limits, Wall
from eureka_agent.sandbox.warm_worker import WarmWorker
from eureka_agent.worker.messages import Evaluate, Evaluated


class Evaluator:
    """Scores one policy after the other. The score of a policy, a seed and a number of episodes is always the same."""

    def __init__(
        self,
        wall: Wall,
        environment: str,
        task: str | None,
        scratch_root: Path,
        timeout_s: float = 600.0,
        limits: Limits | None = None,
    ) -> None:
        """Starts nothing yet. `timeout_s`: wall-clock seconds that one evaluation may take."""
        self._worker = WarmWorker(wall, environment, task, scratch_root, limits)
        self._timeout_s = timeout_s
        self._turn = asyncio.Lock()
        self._jobs = itertools.count(1)

    async def evaluate(self, policy: Path, seed: int, episodes: int, trajectories: Path | None = None) -> Evaluation:
        """Episodes of a policy acting without noise; the worst and the best are written to `trajectories` (npz) if that is given.

        Raises WorkerFaultError with the worker's words when the policy cannot be scored, WorkerDiedError when the worker died twice over it.
        """
        async with self._turn:
            try:
                return await self._evaluate(policy, seed, episodes, trajectories)
            except WorkerDiedError:
                return await self._evaluate(policy, seed, episodes, trajectories)

    async def close(self) -> None:
        """End the worker."""
        await self._worker.drop()

    async def _evaluate(self, policy: Path, seed: int, episodes: int, trajectories: Path | None) -> Evaluation:
        scratch = (await self._worker.ready()).scratch
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
            answer = await self._worker.ask(command, self._timeout_s)
            if trajectories is not None:  # by the name that was asked for, whatever the worker says
                await asyncio.to_thread(take_file, scratch, recorded.name, trajectories)
        finally:
            policy_copy.unlink(missing_ok=True)
            recorded.unlink(missing_ok=True)
        assert isinstance(answer, Evaluated)
        return answer.evaluation
