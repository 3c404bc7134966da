"""Speed of trainings on this machine, measured for a few seconds in as many workers as the search
has."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from eureka_agent.errors import EurekaError
from eureka_agent.fleet.fleet import Fleet
from eureka_agent.fleet.jobs import Population
from eureka_agent.invocation import command
from eureka_agent.records import CurvePoint, TaskDescription
from eureka_agent.rewards import RewardSpecification, baseline

MEASURED_SECONDS = 2.5
"""Time over which the env steps of every training are counted. It begins with its first points."""
_NEVER_ENDING_ENV_STEPS = 10**12


@dataclass(frozen=True)
class Speed:
    """Measured speed of trainings on this machine."""

    steps_per_second: float
    """Env steps of one worker while all workers train."""
    start_seconds: float
    """Seconds from the workers' start to their first env steps."""


async def measure_speed(
    fleet: Fleet,
    population: Population,
    description: TaskDescription,
    workers: int,
    trainings: int,
) -> Speed:
    """Train the task's own reward for a few seconds, in this many trainings.

    Raises EurekaError if the trainings cannot be started or end at once.
    """
    began = time.monotonic()
    watch = _Watch(trainings)
    endless = population.settings.model_copy(update={"env_steps": _NEVER_ENDING_ENV_STEPS})
    reward = description.sparse_reward or description.human_reward or _any_reward(description)
    async with fleet.trainings(replace(population, settings=endless), on_progress=watch) as pool:
        training = [
            asyncio.create_task(pool.train(job, reward, seed))
            for seed, job in enumerate(watch.marks)
        ]
        done = asyncio.create_task(watch.done.wait())
        try:
            await asyncio.wait({done, *training}, return_when=asyncio.FIRST_COMPLETED)
            if not done.done():
                result = next(each for each in training if each.done()).result()
                check = command(shlex.join(["envs", "--check", description.environment]))
                raise EurekaError(
                    "the speed of trainings could not be measured:"
                    f" {result.failure_reason or 'a training ended at once'}",
                    f"`{check}` looks for defects of an environment; a --budget in env steps needs"
                    " no measurement",
                )
        finally:
            for task in (done, *training):
                task.cancel()
            await asyncio.gather(done, *training, return_exceptions=True)
    return Speed(watch.steps_per_second() / workers, watch.first_steps_at() - began)


def _any_reward(description: TaskDescription) -> RewardSpecification:
    """A reward for a task without one. Its values do not matter here."""
    name = description.public_variables()[0].name
    return baseline(
        f"def compute_reward({name}):\n"
        f"    size = {name}.reshape({name}.shape[0], -1).abs().sum(dim=-1)\n"
        '    return size, {"size": size}\n'
    )


class _Watch:
    """Records the env steps of each training over time, until each has been observed long
    enough."""

    def __init__(self, trainings: int) -> None:
        self.marks: dict[str, list[tuple[float, int]]] = {
            f"speed@{number}": [] for number in range(trainings)
        }
        self.done = asyncio.Event()

    def __call__(self, job: str, points: Sequence[CurvePoint]) -> None:
        marks = self.marks[job]
        if points:
            if marks and points[-1].env_steps <= marks[-1][1]:  # restarted after a death
                marks.clear()
            marks.append((time.monotonic(), points[-1].env_steps))
        if all(
            marks and marks[-1][0] - marks[0][0] >= MEASURED_SECONDS
            for marks in self.marks.values()
        ):
            self.done.set()

    def steps_per_second(self) -> float:
        """Env steps per second of all trainings together."""
        return sum(
            (marks[-1][1] - marks[0][1]) / (marks[-1][0] - marks[0][0])
            for marks in self.marks.values()
        )

    def first_steps_at(self) -> float:
        """Start of the last training to begin, on the monotonic clock."""
        return max(marks[0][0] for marks in self.marks.values())
