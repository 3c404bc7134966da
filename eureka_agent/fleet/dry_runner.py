"""Dry runs and scores on stored episodes as the critic asks for them: one warm worker, replaced
when it dies."""

from __future__ import annotations

import asyncio
import itertools
import math
import struct
from collections.abc import Mapping
from pathlib import Path

from eureka_agent.errors import EurekaError, WorkerDiedError, WorkerFaultError
from eureka_agent.fleet.problem import Problem
from eureka_agent.fleet.warm_worker import WarmWorker
from eureka_agent.protocol.bounds import EPISODES_PREFIX
from eureka_agent.protocol.commands import DryRun, Measure, ScoreTransitions
from eureka_agent.protocol.events import DryRunDone, Measured, Opened, Scored
from eureka_agent.records import Finding, Measurements, TaskDescription
from eureka_agent.rewards import RewardSpecification
from eureka_agent.sandbox.inbox import DO_NOT_TRUST
from eureka_agent.sandbox.wall import Limits, Wall

_GRACE_SECONDS = 30.0
"""Time that a busy machine may take over that of a dry run itself."""
_ATTEMPTS = 2
MEASUREMENT_SECONDS = 60.0
"""The built-in environments take a second or two; what takes longer than this is not worth waiting
for."""


class EpisodesFileError(EurekaError):
    """Recorded episodes that cannot be read any more."""


class DryRunner:
    """Runs rewards on recorded and extreme states, one after the other."""

    def __init__(
        self,
        wall: Wall,
        problem: Problem,
        scratch: Path,
        timeout_s: float = 10.0,
        limits: Limits | None = None,
    ) -> None:
        """Starts nothing yet. `timeout_s`: wall-clock seconds that one dry run may take."""
        self._worker = WarmWorker(wall, problem, scratch, limits, rehearse=True)
        self._timeout_s = timeout_s
        self._turn = asyncio.Lock()
        self._jobs = itertools.count(1)
        self._measured: Measurements | None = None

    @property
    def description(self) -> TaskDescription:
        """What the worker said of environment and task, with what it measured; there once `start`
        or a first dry run is done."""
        return self.opened.description.model_copy(update={"measured": self._measured})

    @property
    def opened(self) -> Opened:
        """What the worker found, GPUs included; there once `start` or a first dry run is done."""
        if self._worker.opened is None:
            raise EurekaError("the dry runner has not been started", "await its `start` first")
        return self._worker.opened

    async def start(self) -> TaskDescription:
        """Open the environment and try it out. Raises EurekaError with the worker's words when it
        cannot be loaded, EnvironmentFaultError when it fails."""
        async with self._turn:
            await self._worker.ready()
            return self.description

    async def dry_run(self, reward: RewardSpecification) -> tuple[Finding, ...]:
        """Findings on a reward."""
        async with self._turn:
            reason = ""
            for _ in range(_ATTEMPTS):
                command = DryRun(
                    job=f"dry-run-{next(self._jobs)}",
                    reward=reward,
                    timeout_s=self._timeout_s,
                )
                try:
                    answer = await self._worker.ask(command, self._timeout_s + _GRACE_SECONDS)
                except WorkerDiedError as error:
                    reason = error.message.splitlines()[0]
                    continue
                return answer.findings if isinstance(answer, DryRunDone) else ()
            return (
                Finding(
                    code="D312",
                    severity="error",
                    message=f"its worker died twice over it: {reason}",
                    hint="compute with torch alone",
                ),
            )

    async def measure(self, timeout_s: float = MEASUREMENT_SECONDS, *, scores: bool = True) -> None:
        """Look at start states, and with `scores` at what zero and random actions are worth; the
        description holds it from then on.

        Raises WorkerDiedError or WorkerFaultError where there is no answer.
        """
        async with self._turn:
            command = Measure(job=f"measure-{next(self._jobs)}", scores=scores)
            answer = await self._worker.ask(command, timeout_s)
            if not isinstance(answer, Measured):
                raise WorkerFaultError(
                    f"the worker answered 'measure' with {answer.type!r}", DO_NOT_TRUST
                )
            self._measured = answer.measurements

    async def score(self, reward: RewardSpecification, episodes: Mapping[str, Path]) -> Scored:
        """Totals and returns of a reward on stored episodes, `returns` in the order of `episodes`.

        `episodes`: trajectory files (npz) by a name that stands for the same content always, and
        can be a part of a file's name. Never raises for what the reward does, nor for a file that
        holds no episodes: then `reason` says why there are no numbers.
        """
        async with self._turn:
            job = f"score-{next(self._jobs)}"
            try:
                names = await self._hand_over(episodes)
                command = ScoreTransitions(
                    job=job,
                    reward=reward,
                    transitions=names,
                    timeout_s=self._timeout_s,
                )
                answer = await self._worker.ask(command, self._timeout_s + _GRACE_SECONDS)
            except (WorkerDiedError, WorkerFaultError, EpisodesFileError) as error:
                return Scored(job=job, reason=error.message.splitlines()[0])
            if not isinstance(answer, Scored) or not _is_whole(answer, len(episodes)):
                return Scored(job=job, reason="its worker sent something else than was asked for")
            return answer

    async def _hand_over(self, episodes: Mapping[str, Path]) -> tuple[str, ...]:
        """Names of the files as the worker knows them, which gets those that it does not have
        yet."""
        client = await self._worker.ready()
        names = {name: f"{EPISODES_PREFIX}{name}.npz" for name in episodes}
        for name, path in episodes.items():
            try:
                await client.give(path, names[name], once=True)
            except EurekaError as error:
                raise EpisodesFileError(error.message, "train it again") from None
        client.keeps(names.values())
        return tuple(names.values())

    async def close(self) -> None:
        """End the worker."""
        await self._worker.drop()


def _is_whole(answer: Scored, files: int) -> bool:
    """Whether numbers are there for all files, and are such as a reward's float32 totals give. The
    process that wrote them ran the reward."""
    if answer.reason:
        return not answer.returns and not answer.totals and not answer.extreme_totals
    sums = [value for each in answer.returns for value in each.values()]
    return (
        len(answer.returns) == files
        and all(value is None or math.isfinite(value) for value in sums)
        and all(
            value is None or _is_float32(value)
            for value in (*answer.totals, *answer.extreme_totals)
        )
    )


def _is_float32(value: float) -> bool:
    try:
        return bool(struct.unpack("f", struct.pack("f", value))[0] == value)
    except OverflowError:
        return False
