"""A worker that stays open between jobs and is replaced when it dies."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from eureka_agent.boundary import commands, events
from eureka_agent.boundary.commands import Film, FilmedPolicy
from eureka_agent.boundary.events import Filmed
from eureka_agent.environment_files import fingerprints
from eureka_agent.errors import EnvironmentLoadError, EurekaError, WorkerDiedError, WorkerFaultError
from eureka_agent.fleet.jobs import Problem
from eureka_agent.records import Record
from eureka_agent.sandbox.client import (
    WorkerClient,
    absolute_reference,
    built_in_folder,
    environment_folder,
    raised_by,
)
from eureka_agent.sandbox.inbox import DO_NOT_TRUST, check_picture, check_trajectories, check_video
from eureka_agent.sandbox.wall import Limits, Wall

AnsweredCommand = (
    commands.DryRun
    | commands.ScoreTransitions
    | commands.GiveCredit
    | commands.AskSteps
    | commands.Evaluate
    | commands.Film
    | commands.MeasureTask
)
Answer = TypeVar("Answer", bound=Record)


class WarmWorker:
    """Starts a worker on demand. It serves one caller at a time: who takes the `turn`."""

    def __init__(
        self,
        wall: Wall,
        problem: Problem,
        scratch: Path,
        limits: Limits | None = None,
        rehearse: bool = False,
    ) -> None:
        """Starts nothing yet. See `Open` for `rehearse`."""
        self._rehearse = rehearse
        self._wall = wall
        self._problem = problem
        self._scratch = scratch
        self._limits = limits or Limits()
        self._client: WorkerClient | None = None
        self._jobs = itertools.count(1)
        self.turn = asyncio.Lock()
        self.opened: events.Opened | None = None
        """The worker's answer to `Open`; None before the first `ready`."""

    def new_job(self, kind: str) -> str:
        return f"{kind}-{next(self._jobs)}"

    async def ready(self) -> WorkerClient:
        """A live worker with the environment open. Raises EurekaError when it cannot be loaded."""
        if self._client is not None and self._client.alive:
            return self._client
        await self.drop()
        problem = self._problem
        self._client = await WorkerClient.start(
            self._wall, self._scratch, self._limits, problem.environment
        )
        try:
            opened = await self._client.open(
                problem.environment, problem.task, fitness=problem.fitness, rehearse=self._rehearse
            )
            self.opened = await asyncio.to_thread(_with_own_facts, opened, problem)
        except BaseException:  # also a cancellation: no half-open worker stays behind
            await self.drop()
            raise
        return self._client

    async def ask(
        self,
        command: AnsweredCommand,
        expected: type[Answer],
        timeout_s: float,
        client: WorkerClient | None = None,
    ) -> Answer:
        """Send a command and wait for its answer. `client` is the worker that has the files of the
        command, if it names any. Raises WorkerDiedError when the worker dies or the timeout passes,
        WorkerFaultError with its message when it reports a fault or answers with another event,
        EnvironmentFaultError for a fault of the environment. A dead worker is dropped, as is one
        whose caller gave up."""
        client = client or await self.ready()
        deadline = time.monotonic() + timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                await client.send(command)  # it blocks while the worker reads nothing
            while True:
                event = await client.receive(max(0.0, deadline - time.monotonic()))
                if isinstance(event, events.Fault) and event.job in (command.job, None):
                    raise raised_by(event, WorkerFaultError, client.environment)
                if getattr(event, "job", None) == command.job:
                    if isinstance(event, expected):
                        return event
                    what = f"the worker answered {command.type!r} with {event.type!r}"
                    raise WorkerFaultError(what, DO_NOT_TRUST)
        except TimeoutError:
            await self.drop()
            raise WorkerDiedError(
                f"the worker gave no answer to {command.type!r} within {timeout_s:g} s and was"
                " killed",
                "look whether the machine is overloaded",
            ) from None
        except BaseException as error:
            if isinstance(error, WorkerDiedError) or not isinstance(error, EurekaError):
                await self.drop()
            raise

    async def drop(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()


def _with_own_facts(opened: events.Opened, problem: Problem) -> events.Opened:
    """The worker's answer, in which the driver's own words stand where settings, keys and files are
    named by them: an environment could tell another one's. Raises EnvironmentLoadError."""
    told, fitness = opened.description, problem.fitness
    facts: dict[str, object] = {
        "environment": absolute_reference(problem.environment),
        "task": problem.task or told.task,
        "fitness_author": "" if fitness is None else fitness.author,
    }
    folder = environment_folder(problem.environment) or built_in_folder(problem.environment)
    if folder is not None:
        found, facts["files"] = fingerprints(folder, problem.task or told.task)
        facts["fingerprint"] = found if fitness is None else f"{found}+{fitness.fingerprint}"
    return opened.model_copy(update={"description": told.model_copy(update=facts)})


ShownName = Literal["best", "median", "worst"]
_TIMEOUT_SECONDS = 900.0


@dataclass(frozen=True)
class FilmSubject:
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
    moments: tuple[float, ...] = ()
    by_change: bool = False
    two_sides: bool = False

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
        (JPEG). Raises EnvironmentLoadError for an environment other than that of `fingerprint`,
        WorkerFaultError with the worker's message where nothing can be drawn or a policy cannot be
        played, WorkerDiedError, EnvironmentFaultError."""
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
            wanted |= {} if sheet is not None else {"sheet": 0, "moments": ()}
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
        if self._warming is not None:
            self._warming.cancel()
            await asyncio.wait({self._warming})
        await self._worker.drop()
