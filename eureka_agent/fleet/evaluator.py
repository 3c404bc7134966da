"""Evaluation of policies in workers that never load a reward."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from eureka_agent.boundary.commands import Evaluate, PolicyFile
from eureka_agent.boundary.events import Evaluated, PolicyScore
from eureka_agent.errors import (
    EnvironmentFaultError,
    EurekaError,
    WorkerDiedError,
    WorkerFaultError,
)
from eureka_agent.fleet.jobs import Problem
from eureka_agent.fleet.warm_worker import WarmWorker
from eureka_agent.parameters import DEFAULTS, Distribution
from eureka_agent.records import Evaluation
from eureka_agent.sandbox.client import WorkerClient
from eureka_agent.sandbox.inbox import DO_NOT_TRUST, check_trajectories
from eureka_agent.sandbox.wall import Limits, Wall

MOST_WORKERS = 4
"""Most workers of one evaluator. Each takes some 250 MiB."""
MOST_TOGETHER = 64
"""Most policies in one pass, so that later requests do not wait long."""
_LEAST_SHARE = 4
"""Policies that one worker takes at once: together they take little longer than one."""
_MOST_DEATHS = 2


@dataclass(eq=False)
class _Request:
    policy: Path
    seed: int
    episodes: int
    trajectories: Path | None
    recorded: Literal["extremes", "all"]
    parameters: Distribution
    score: asyncio.Future[Evaluation]
    alone: bool = False
    """True after a shared pass failed without a hint at the faulty policy."""
    deaths: int = 0

    def fail(self, error: Exception) -> None:
        if not self.score.done():
            self.score.set_exception(error)


class Evaluator:
    """Scores policies of one problem in a few workers that stay open. A policy, a seed and a number
    of episodes always give the same score. Queued policies are scored in one pass. A further worker
    starts when the queue would take longer than its start."""

    def __init__(
        self,
        wall: Wall,
        problem: Problem,
        scratch: Path,
        timeout_s: float = 600.0,
        limits: Limits | None = None,
        most_workers: int = 1,
    ) -> None:
        """Starts nothing yet. `timeout_s` is the wall time per policy."""
        self._setup = (wall, problem, scratch, limits)
        self._timeout_s = timeout_s
        self._most_workers = max(1, min(most_workers, MOST_WORKERS))
        self._workers: list[WarmWorker] = []
        self._serving: set[asyncio.Task[None]] = set()
        self._starting = 0
        self._idle = 0
        self._unanswered: set[_Request] = set()
        """All requests without a score, those of a running pass included."""
        self._waiting: deque[_Request] = deque()
        self._work = asyncio.Event()
        self._closed = False
        self._start_s = 0.0
        self._evaluation_s = 0.0
        """Duration of the last pass, per policy."""

    def warm_up(self) -> None:
        """Start the first worker before it is needed."""
        if not self._workers:
            self._add_worker()

    async def evaluate(
        self,
        policy: Path,
        seed: int,
        episodes: int,
        trajectories: Path | None = None,
        parameters: Distribution = DEFAULTS,
        recorded: Literal["extremes", "all"] = "extremes",
    ) -> Evaluation:
        """Score a policy acting without noise. The worst and the best episode, or all, are written
        to `trajectories` (npz). `parameters`: distribution of the environment's parameters. Raises
        WorkerFaultError with the worker's message when the policy cannot be scored, WorkerDiedError
        when two workers died during it, EnvironmentFaultError when the environment's own code
        fails."""
        score: asyncio.Future[Evaluation] = asyncio.get_running_loop().create_future()
        request = _Request(policy, seed, episodes, trajectories, recorded, parameters, score)
        if self._closed:
            score.cancel()
        else:
            self._unanswered.add(request)
            self._put([request])
        try:
            return await score
        finally:
            self._unanswered.discard(request)
            if request in self._waiting:  # the caller gave up
                self._waiting.remove(request)

    async def close(self) -> None:
        self._closed = True
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        for request in self._unanswered:
            request.score.cancel()
        for worker in self._workers:
            await worker.drop()

    # ── the queue ─────────────────────────────────────────────────────────────────────────────────

    def _put(self, requests: Sequence[_Request], first: bool = False) -> None:
        self._waiting = deque([*requests, *self._waiting] if first else [*self._waiting, *requests])
        if self._waiting:
            self._work.set()
        self._add_worker_where_it_pays()

    def _take(self) -> list[_Request]:
        share = max(_LEAST_SHARE, -(-len(self._waiting) // max(1, self._idle)))
        taken: list[_Request] = []
        while self._waiting and len(taken) < min(share, MOST_TOGETHER):
            if taken and (taken[0].alone or self._waiting[0].alone):
                break
            taken.append(self._waiting.popleft())
        if not self._waiting:
            self._work.clear()
        return taken

    def _add_worker_where_it_pays(self) -> None:
        if self._starting or self._closed or len(self._workers) >= self._most_workers:
            return
        queue_s = len(self._waiting) * self._evaluation_s / max(1, len(self._workers))
        if not self._workers or queue_s > self._start_s:
            self._add_worker()

    def _add_worker(self) -> None:
        worker = WarmWorker(*self._setup)
        self._workers.append(worker)
        self._starting += 1
        task = asyncio.create_task(self._serve(worker))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, worker: WarmWorker) -> None:
        """Start a worker and have it score queued requests until the evaluator is closed."""
        if not await self._start(worker):
            return
        while True:
            self._idle += 1
            try:
                await self._work.wait()
                requests = self._take()
            finally:
                self._idle -= 1
            if requests:
                began = time.monotonic()
                await self._score(worker, requests)
                self._evaluation_s = (time.monotonic() - began) / len(requests)
                self._add_worker_where_it_pays()

    async def _start(self, worker: WarmWorker) -> bool:
        """Start a worker. False if it does not start and others are there."""
        began = time.monotonic()
        try:
            await worker.ready()
        except Exception:  # noqa: BLE001  (the first pass starts it again and raises the error)
            if len(self._workers) > 1:
                self._workers.remove(worker)
                self._most_workers = len(self._workers)
                return False
        finally:
            self._starting -= 1
        self._start_s = time.monotonic() - began
        return True

    # ── one pass ──────────────────────────────────────────────────────────────────────────────────

    async def _score(self, worker: WarmWorker, requests: Sequence[_Request]) -> None:
        """Answer the requests. After a pass that failed as a whole, each gets a pass of its own."""
        try:
            await self._pass(worker, requests)
        except Exception as error:  # noqa: BLE001  (it is raised in the callers)
            died = isinstance(error, WorkerDiedError)
            is_fault = isinstance(error, (WorkerFaultError, EnvironmentFaultError))
            unclear = is_fault and len(requests) > 1
            again = []
            for request in requests:
                request.deaths += died
                if unclear or (died and request.deaths < _MOST_DEATHS):
                    request.alone = True
                    again.append(request)
                else:
                    request.fail(error)
            self._put([each for each in again if not each.score.done()], first=True)

    async def _pass(self, worker: WarmWorker, requests: Sequence[_Request]) -> None:
        """Score policies together. Raises EurekaError for the whole pass, not for one policy."""
        client = await worker.ready()
        job = worker.new_job("evaluation")
        names = [f"{job}-{index}" for index in range(len(requests))]
        try:
            among = []
            for request, name in zip(requests, names, strict=True):
                try:
                    among.append((request, await _give(client, request, name)))
                except EurekaError as error:
                    request.fail(error)
            if not among:
                return
            command = Evaluate(job=job, policies=tuple(policy for _, policy in among))
            answer = await worker.ask(command, Evaluated, self._timeout_s * len(among), client)
            if len(answer.scores) != len(among):
                raise WorkerFaultError(f"the worker did not give {len(among)} scores", DO_NOT_TRUST)
            for (request, policy), score in zip(among, answer.scores, strict=True):
                try:
                    await _answer(client, request, policy, score)
                except EurekaError as error:
                    request.fail(error)
        finally:
            for name in names:
                client.inbox.drop(f"{name}.npz")


async def _answer(
    client: WorkerClient, request: _Request, policy: PolicyFile, score: PolicyScore
) -> None:
    """Give a request its score. Raises EurekaError for an invalid one."""
    if score.evaluation is None:
        raise WorkerFaultError(score.fault, score.hint)
    if len(score.evaluation.episodes) != policy.episodes:
        what = f"the worker did not score {policy.episodes} episodes"
        raise WorkerFaultError(what, DO_NOT_TRUST)
    if request.score.done():
        return
    if request.trajectories is not None and policy.trajectories is not None:
        await client.inbox.take(policy.trajectories, request.trajectories, check_trajectories)
    if not request.score.done():
        request.score.set_result(score.evaluation)


async def _give(client: WorkerClient, request: _Request, name: str) -> PolicyFile:
    """Send a policy to a worker. Raises EurekaError when it cannot be read."""
    await client.give(request.policy, f"{name}.safetensors")
    return PolicyFile(
        policy=f"{name}.safetensors",
        seed=request.seed,
        episodes=request.episodes,
        trajectories=None if request.trajectories is None else f"{name}.npz",
        recorded=request.recorded,
        parameters=dict(request.parameters),
    )
