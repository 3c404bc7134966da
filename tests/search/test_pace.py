"""The measurement that a budget in wall time begins with, in real workers."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from training_pool import TrainingPool

from eureka_agent.designer.interface import given_reward
from eureka_agent.errors import EurekaError
from eureka_agent.fleet.fleet import Fleet
from eureka_agent.fleet.jobs import Population, Problem
from eureka_agent.records import TaskDescription, VariableSpec
from eureka_agent.rewards import baseline
from eureka_agent.sandbox.process_wall import ProcessWall
from eureka_agent.search.clock import MEASURED_SECONDS, measure_speed
from eureka_agent.settings import SearchSettings, training_part

pytestmark = pytest.mark.slow

POSITION = VariableSpec(
    name="puck_position", shape=(), unit="m", frame="world", doc="position of the puck"
)


async def measured(
    puck: Path, description: TaskDescription, scratch: Path, trainings: int, reward: str | None
) -> float:
    """Env steps per second of trainings in one worker, for a task with this reward or none."""
    began, settings = time.monotonic(), training_part(SearchSettings(env=str(puck)))
    changed = {"environment": str(puck), "task": "centre", "variables": (POSITION,)}
    changed |= {"human_reward": None, "sparse_reward": reward and baseline(reward)}
    population = Population(Problem(str(puck), "centre"), settings, trainings)
    async with Fleet(ProcessWall(), scratch, 1) as fleet:
        speed, start = await measure_speed(
            fleet, population, description.model_copy(update=changed), trainings
        )
    assert 0.0 < start < time.monotonic() - began - MEASURED_SECONDS
    return speed


async def test_what_is_measured_is_what_trainings_then_make(
    puck: Path, description: TaskDescription, tmp_path: Path
) -> None:
    rate = await measured(puck, description, tmp_path / "speed", 8, None)
    assert not list((tmp_path / "speed").glob("worker-*"))  # its workers are gone
    # eight trainings of 32,768 env steps in one worker, timed from outside; between them is the
    # start of the worker
    settings = training_part(SearchSettings(env=str(puck), env_steps=32_768))
    first: list[float] = []
    pool = TrainingPool(
        ProcessWall(),
        str(puck),
        "centre",
        settings,
        slots=8,
        workers=1,
        scratch=tmp_path / "trainings",
        on_progress=lambda job, points: first.append(time.monotonic()),
    )
    source = (puck / "rewards/sparse.py").read_text()
    try:
        results = await asyncio.gather(
            *(pool.train(f"training-{seed}", given_reward(source), seed) for seed in range(8))
        )
        ended = time.monotonic()
    finally:
        await pool.close()
    assert all(result.outcome is not None for result in results)
    # the first progress comes up to half a second after the first steps: between those two the
    # truth lies, and the machine may be busy with something else in one of the two
    upper = 8 * 32_768 / (ended - first[0])
    lower = 8 * 32_768 / (ended - first[0] + 1.0)
    assert lower / 2 < rate < upper * 2


async def test_a_reward_that_breaks_is_an_error_with_a_way_out(
    puck: Path, description: TaskDescription, tmp_path: Path
) -> None:
    broken = "def compute_reward(puck_position):\n    raise ValueError('broken')\n"
    with pytest.raises(EurekaError, match=r"could not be measured: .*broken") as caught:
        await measured(puck, description, tmp_path / "speed", 2, broken)
    assert "--budget in env steps" in caught.value.hint
