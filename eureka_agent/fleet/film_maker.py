"""Videos of policies, in a worker of their own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from eureka_agent.errors import EnvironmentLoadError, EurekaError, WorkerFaultError
from eureka_agent.fleet.jobs import Problem
from eureka_agent.fleet.warm_worker import WarmWorker
from eureka_agent.protocol.commands import Film, FilmedPolicy
from eureka_agent.protocol.events import Filmed
from eureka_agent.sandbox.inbox import DO_NOT_TRUST, check_picture, check_trajectories, check_video
from eureka_agent.sandbox.wall import Limits, Wall

ShownName = Literal["best", "median", "worst"]
_TIMEOUT_SECONDS = 900.0


@dataclass(frozen=True)
class FilmSubject:
    """A policy to show."""

    title: str
    policy: Path


@dataclass(frozen=True, kw_only=True)
class FilmSettings:
    """Choices for a video. See `Film`."""

    seed: int
    episodes: int
    shown: tuple[int | ShownName, ...]
    size: tuple[int, int]
    seconds: float
    gif_seconds: float = 0.0
    fitness: bool = True
    sheet: int = 0

    def last_number(self) -> int:
        """Largest number of an episode that is shown by its number; -1 without one."""
        return max([-1, *(each for each in self.shown if isinstance(each, int))])


class FilmMaker:
    """Makes videos, one after the other."""

    def __init__(
        self, wall: Wall, problem: Problem, scratch: Path, limits: Limits | None = None
    ) -> None:
        """Starts nothing yet."""
        self._environment = problem.environment
        self._worker = WarmWorker(wall, problem, scratch, limits)
        self._warming: asyncio.Task[None] | None = None

    def warm_up(self) -> None:
        """Start the worker before it is needed. What fails there is told by `film`."""
        self._warming = self._warming or asyncio.create_task(self._warm_up())

    async def _warm_up(self) -> None:
        with contextlib.suppress(EurekaError):
            async with self._worker.turn:
                await self._worker.ready()

    async def film(
        self,
        subjects: Sequence[FilmSubject],
        settings: FilmSettings,
        fingerprint: str,
        video: Path,
        gif: Path | None = None,
        trajectories: Path | None = None,
        sheet: Path | None = None,
    ) -> Filmed:
        """Write `video` (mp4) of the subjects' episodes from the same start states, its beginning
        as `gif`, the episodes' variables as `trajectories` (npz), and their moments as `sheet`
        (JPEG).

        Raises EnvironmentLoadError for an environment other than that of `fingerprint`,
        WorkerFaultError with the worker's message where nothing can be drawn or a policy cannot
        be played, WorkerDiedError, EnvironmentFaultError.
        """
        async with self._worker.turn:
            client = await self._worker.ready()
            opened = self._worker.opened
            if opened is not None and opened.description.fingerprint != fingerprint:
                raise EnvironmentLoadError(
                    f"the environment {self._environment!r} or its task has changed since this"
                    " run: its policies may not do there what they did",
                    "undo the changes, or search again",
                )
            job = self._worker.new_job("film")
            policies = []
            for place, subject in enumerate(subjects):
                name = f"{job}-{place}.safetensors"
                await client.give(subject.policy, name)
                policies.append(FilmedPolicy(policy=name, title=subject.title))
            wanted: dict[str, Any] = vars(settings) | {"trajectories": trajectories is not None}
            wanted |= {} if gif is not None else {"gif_seconds": 0.0}
            wanted |= {} if sheet is not None else {"sheet": 0}
            command = Film(job=job, policies=tuple(policies), **wanted)
            answer = await self._worker.ask(command, Filmed, _TIMEOUT_SECONDS, client)
            if not all(0 <= each.policy < len(subjects) for each in answer.episodes):
                raise WorkerFaultError("the worker shows a policy of its own", DO_NOT_TRUST)
            for sent, place_of, check in (
                (answer.video, video, check_video),
                (answer.gif, gif, check_video),
                (answer.trajectories, trajectories, check_trajectories),
                (answer.sheet, sheet, check_picture),
            ):
                if sent is not None and place_of is not None:
                    await client.inbox.take(sent, place_of, check)
            return answer

    async def close(self) -> None:
        """End the worker."""
        if self._warming is not None:
            self._warming.cancel()
            await asyncio.wait({self._warming})
        await self._worker.drop()
