"""A worker that stays open between jobs and is replaced when it dies."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from eureka_agent.environment_files import fingerprints
from eureka_agent.errors import EurekaError, WorkerDiedError, WorkerFaultError
from eureka_agent.fleet.jobs import Problem
from eureka_agent.protocol.commands import (
    DryRun,
    Evaluate,
    Film,
    GiveCredit,
    Measure,
    Prove,
    ScoreTransitions,
)
from eureka_agent.protocol.events import (
    Credited,
    DryRunDone,
    Evaluated,
    Fault,
    Filmed,
    Measured,
    Opened,
    Proved,
    Scored,
)
from eureka_agent.sandbox.client import (
    WorkerClient,
    absolute_reference,
    built_in_folder,
    environment_folder,
)
from eureka_agent.sandbox.wall import Limits, Wall
from eureka_agent.sandbox.worker_faults import raised_by

Answer = DryRunDone | Scored | Credited | Evaluated | Filmed | Proved | Measured


class WarmWorker:
    """Starts a worker on demand. It serves one caller at a time."""

    def __init__(
        self,
        wall: Wall,
        problem: Problem,
        scratch: Path,
        limits: Limits | None,
        rehearse: bool = False,
    ) -> None:
        """Starts nothing yet. See `Open` for `rehearse`."""
        self._rehearse = rehearse
        self._wall = wall
        self._problem = problem
        self._scratch = scratch
        self._limits = limits or Limits()
        self._client: WorkerClient | None = None
        self.opened: Opened | None = None
        """The worker's answer to `Open`; None before the first `ready`."""

    async def ready(self) -> WorkerClient:
        """A live worker with the environment open. Raises EurekaError when it cannot be loaded."""
        if self._client is not None and self._client.alive:
            return self._client
        await self.drop()
        self._client = await WorkerClient.start(
            self._wall, self._scratch, self._limits, self._problem.environment
        )
        try:
            opened = await self._client.open(
                self._problem.environment,
                self._problem.task,
                fitness=self._problem.fitness,
                rehearse=self._rehearse,
            )
            self.opened = await asyncio.to_thread(_with_own_facts, opened, self._problem)
        except BaseException:  # also a cancellation: no half-open worker stays behind
            await self.drop()
            raise
        return self._client

    async def ask(
        self,
        command: DryRun | ScoreTransitions | GiveCredit | Evaluate | Film | Prove | Measure,
        timeout_s: float,
        client: WorkerClient | None = None,
    ) -> Answer:
        """Send a command and wait for its answer. `client` is the worker that has the files of the
        command, if it names any.

        Raises WorkerDiedError when the worker dies or the timeout passes, WorkerFaultError with its
        message when it reports a fault, EnvironmentFaultError for a fault of the environment. A
        dead worker is dropped, as is one whose caller gave up.
        """
        client = client or await self.ready()
        deadline = time.monotonic() + timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                await client.send(command)  # it blocks while the worker reads nothing
            while True:
                event = await client.receive(max(0.0, deadline - time.monotonic()))
                if isinstance(event, Answer) and event.job == command.job:
                    return event
                if isinstance(event, Fault) and event.job in (command.job, None):
                    raise raised_by(event, WorkerFaultError, client.environment)
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
        """End the worker if there is one."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()


def _with_own_facts(opened: Opened, problem: Problem) -> Opened:
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
