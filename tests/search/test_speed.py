"""The measurement that a budget in wall time begins with, in real workers."""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path

import pytest
from training_pool import TrainingPool

from eureka_agent.designer.interface import given_reward
from eureka_agent.errors import EurekaError
from eureka_agent.fleet.fleet import Fleet
from eureka_agent.fleet.jobs import Population
from eureka_agent.fleet.problem import Problem
from eureka_agent.records import TaskDescription, VariableSpec
from eureka_agent.rewards import baseline
from eureka_agent.sandbox.process_wall import ProcessWall
from eureka_agent.search.capacity import Capacity
from eureka_agent.search.speed import MEASURED_SECONDS, measure_speed
from eureka_agent.settings import SearchSettings, training_part

pytestmark = pytest.mark.slow

POSITION = VariableSpec(
    name="puck_position", shape=(), unit="m", frame="world", doc="position of the puck"
)


def described(description: TaskDescription, puck: Path, reward: str | None) -> TaskDescription:
    return description.model_copy(
        update={
            "environment": str(puck),
            "task": "centre",
            "variables": (POSITION,),
            "human_reward": None,
        }
        | {"sparse_reward": None if reward is None else baseline(reward)}
    )


async def measured(
    puck: Path, description: TaskDescription, scratch: Path, capacity: Capacity
) -> tuple[float, float]:
    """Env steps per second of one worker, and seconds that it took."""
    began = time.monotonic()
    settings = training_part(SearchSettings(env=str(puck)))
    population = Population(Problem(str(puck), "centre"), settings, capacity.slots)
    async with Fleet(ProcessWall(), scratch, capacity.workers) as fleet:
        trainings = capacity.workers * capacity.slots
        speed = await measure_speed(fleet, population, description, capacity.workers, trainings)
    assert 0.0 < speed.start_seconds < time.monotonic() - began - MEASURED_SECONDS
    return speed.steps_per_second, time.monotonic() - began


async def test_what_is_measured_is_what_trainings_then_make(
    puck: Path, description: TaskDescription, tmp_path: Path
) -> None:
    # a task without any reward of its own
    rate, _ = await measured(
        puck, described(description, puck, None), tmp_path / "speed", Capacity(1, 8)
    )
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
    # truth lies
    upper = 8 * 32_768 / (ended - first[0])
    lower = 8 * 32_768 / (ended - first[0] + 1.0)
    assert (
        lower / 2 < rate < upper * 2
    )  # the machine may be busy with something else in one of the two


async def test_a_reward_that_breaks_is_an_error_with_a_way_out(
    puck: Path, description: TaskDescription, tmp_path: Path
) -> None:
    broken = "def compute_reward(puck_position):\n    raise ValueError('broken')\n"
    with pytest.raises(EurekaError, match=r"could not be measured: .*broken") as caught:
        await measured(
            puck, described(description, puck, broken), tmp_path / "speed", Capacity(1, 2)
        )
    assert "--budget in env steps" in caught.value.hint


async def test_an_environment_that_cannot_be_made_is_that_error(
    puck: Path, description: TaskDescription, tmp_path: Path
) -> None:
    copy = tmp_path / "puck"
    shutil.copytree(puck, copy)
    (copy / "env.py").write_text(
        (copy / "env.py").read_text().replace("torch.zeros(num_envs)", "torch.zeroes(1)")
    )
    with pytest.raises(EurekaError, match="zeroes"):
        await measured(copy, described(description, copy, None), tmp_path / "speed", Capacity(1, 2))
