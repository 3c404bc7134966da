"""Dry runs, measurements and scores on stored episodes, for the critic, in one warm worker."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from eureka_agent.boundary import events
from eureka_agent.boundary.bounds import EPISODES_PREFIX, MOST_CREDITED
from eureka_agent.boundary.commands import (
    AskSteps,
    DryRun,
    GiveCredit,
    MeasureTask,
    ScoreTransitions,
)
from eureka_agent.errors import EurekaError, WorkerDiedError, WorkerFaultError
from eureka_agent.fleet.jobs import Problem
from eureka_agent.fleet.warm_worker import WarmWorker
from eureka_agent.records import Credit, Finding, Measurements, TaskDescription
from eureka_agent.rewards import RewardSpecification
from eureka_agent.sandbox.wall import Limits, Wall

_GRACE_SECONDS = 30.0
_ATTEMPTS = 2
MEASUREMENT_SECONDS = 60.0
"""Timeout of a measurement, which takes a second or two for the built-in environments."""


class EpisodesFileError(EurekaError):
    """Recorded episodes that cannot be read."""


_OnEpisodes = TypeVar("_OnEpisodes", events.TransitionsScored, events.StepsAsked)
_NO_ANSWER = (WorkerDiedError, WorkerFaultError, EpisodesFileError)


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
        """Starts nothing yet. `timeout_s` is the wall time of one dry run."""
        self._worker = WarmWorker(wall, problem, scratch, limits, rehearse=True)
        self._timeout_s = timeout_s
        self._measured: Measurements | None = None
        self._prefix = ""
        """Begin of the names of its files in the worker."""
        self._owns_worker = True

    def view(self, prefix: str, timeout_s: float) -> DryRunner:
        """A dry runner with the same worker, which it does not end; `prefix` marks its files."""
        view = copy.copy(self)
        view._prefix, view._timeout_s, view._owns_worker = prefix, timeout_s, False
        return view

    @property
    def description(self) -> TaskDescription:
        """Environment and task with measurements, after `start` or a first dry run."""
        return self.opened.description.model_copy(update={"measured": self._measured})

    @property
    def opened(self) -> events.Opened:
        """The worker's answer to `Open`. It is there after `start` or a first dry run."""
        if self._worker.opened is None:
            raise EurekaError("the dry runner has not been started", "await its `start` first")
        return self._worker.opened

    async def start(self) -> TaskDescription:
        """Open the environment and rehearse a dry run. Raises EurekaError with the worker's message
        when it cannot be loaded, EnvironmentFaultError when it fails."""
        async with self._worker.turn:
            await self._worker.ready()
            return self.description

    async def dry_run(self, reward: RewardSpecification) -> tuple[Finding, ...]:
        timeout_s, reason = self._timeout_s, ""
        async with self._worker.turn:
            for _ in range(_ATTEMPTS):
                job = self._worker.new_job("dry-run")
                command = DryRun(job=job, reward=reward, timeout_s=timeout_s)
                try:
                    answer = await self._worker.ask(
                        command, events.DryRunDone, timeout_s + _GRACE_SECONDS
                    )
                except WorkerDiedError as error:
                    reason = error.message.splitlines()[0]
                else:
                    return answer.findings
        what, hint = f"its worker died twice over it: {reason}", "compute with torch alone"
        return (Finding(code="D312", severity="error", message=what, hint=hint),)

    async def measure(self, timeout_s: float = MEASUREMENT_SECONDS, *, scores: bool = True) -> None:
        """Measure start states, and with `scores` the scores of zero and random actions, for
        `description`. Raises WorkerDiedError or WorkerFaultError."""
        async with self._worker.turn:
            command = MeasureTask(job=self._worker.new_job("measure"), scores=scores)
            answer = await self._worker.ask(command, events.TaskMeasured, timeout_s)
            self._measured = answer.measurements

    async def score(
        self, reward: RewardSpecification, episodes: Mapping[str, Path]
    ) -> events.TransitionsScored:
        """Returns of a reward on stored episodes, in the order of `episodes`. `episodes` are
        trajectory files (npz) by name. A name always has the same content and can be a part of a
        file name. A failing reward and a file without episodes raise nothing; `reason` tells why
        there are no numbers."""
        kinds = ScoreTransitions, events.TransitionsScored
        answer = await self._on_episodes(*kinds, reward, episodes, "scores")
        # the process that wrote them ran the reward, so they are not trusted
        sums = [value for each in answer.returns for value in each.values()]
        is_whole = len(answer.returns) == (0 if answer.reason else len(episodes)) and all(
            value is None or math.isfinite(value) for value in sums
        )
        if is_whole:
            return answer
        return events.TransitionsScored(job=answer.job, reason="its worker sent an invalid answer")

    async def credits(
        self, rewards: Sequence[RewardSpecification], episodes: Mapping[str, Path]
    ) -> list[Credit | None]:
        """Credit that rewards, whose sources the critic accepts, give to the steps of stored
        episodes, as in `score`; None for one that has none."""
        found: list[Credit | None] = []
        for begin in range(0, len(rewards), MOST_CREDITED):
            part = tuple(rewards[begin : begin + MOST_CREDITED])
            most_s = (1 + len(part)) * self._timeout_s + _GRACE_SECONDS
            credits: Sequence[Credit | None] = ()
            async with self._worker.turn:
                try:
                    names = await self._send_episodes(episodes, "credit")
                    command = GiveCredit(
                        job=self._worker.new_job("credit"),
                        rewards=part,
                        transitions=names,
                        timeout_s=self._timeout_s,
                    )
                    credits = (await self._worker.ask(command, events.Credited, most_s)).credits
                except _NO_ANSWER:
                    pass
            found += credits if len(credits) == len(part) else [None] * len(part)
        return found

    async def ask(
        self, reward: RewardSpecification, episodes: Mapping[str, Path]
    ) -> events.StepsAsked:
        """Total and terms of a reward, whose source the critic accepts, in each step of stored
        episodes, as in `score`; `reason` tells why there are none."""
        kinds = AskSteps, events.StepsAsked
        answer = await self._on_episodes(*kinds, reward, episodes, "questions")
        if any(len(each) != len(answer.total) for each in answer.terms.values()):
            return events.StepsAsked(job=answer.job, reason="its worker sent an invalid answer")
        return answer

    async def _on_episodes(
        self,
        kind: type[ScoreTransitions] | type[AskSteps],
        expected: type[_OnEpisodes],
        reward: RewardSpecification,
        episodes: Mapping[str, Path],
        purpose: str,
    ) -> _OnEpisodes:
        """The answer to a command on stored episodes; one with a reason where there is none."""
        job, timeout_s = self._worker.new_job(purpose), self._timeout_s
        async with self._worker.turn:
            try:
                names = await self._send_episodes(episodes, purpose)
                command = kind(job=job, reward=reward, transitions=names, timeout_s=timeout_s)
                return await self._worker.ask(command, expected, timeout_s + _GRACE_SECONDS)
            except _NO_ANSWER as error:
                return expected(job=job, reason=error.message.splitlines()[0])

    async def _send_episodes(self, episodes: Mapping[str, Path], purpose: str) -> tuple[str, ...]:
        """Send the files that the worker lacks. Returns the names of these episodes there."""
        client = await self._worker.ready()
        names = {name: f"{EPISODES_PREFIX}{self._prefix}{name}.npz" for name in episodes}
        for name, path in episodes.items():
            try:
                await client.give(path, names[name], once=True)
            except EurekaError as error:
                raise EpisodesFileError(error.message, "train it again") from None
        client.keep_only(names.values(), purpose)
        return tuple(names.values())

    async def close(self) -> None:
        """End the worker, unless it is another's."""
        if self._owns_worker:
            await self._worker.drop()
