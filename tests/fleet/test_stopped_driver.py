"""If a driver stands still for a while, no worker counts as silent because of that."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

DRIVER = """
import asyncio, sys
from pathlib import Path
from eureka_agent.sandbox.process_wall import ProcessWall
from eureka_agent.designer.interface import given_reward
from eureka_agent.fleet.fleet import Fleet
from eureka_agent.fleet.jobs import Population
from eureka_agent.fleet.jobs import Problem
from eureka_agent.settings import TrainingSettings

SETTINGS = TrainingSettings(env_steps=2_000_000, num_envs=8, horizon=16, hidden_sizes=(16,), epochs=1, checkpoints=2)

def on_progress(job, points):
    print("points", flush=True)

async def main():
    population = Population(Problem("cartpole", "balance"), SETTINGS, 1, timeout_s=1.5)
    retried = lambda job, reason: print("retry", reason, flush=True)
    async with (
        Fleet(ProcessWall(), Path(sys.argv[1])) as fleet,
        fleet.trainings(population, None, on_progress, retried) as trainings,
    ):
        await trainings.train("job", given_reward("def compute_reward(pole_upright):\\n    return pole_upright, {}\\n"), 0)

asyncio.run(main())
"""


@pytest.mark.slow
async def test_a_driver_that_was_stopped_for_a_while_does_not_take_its_workers_for_dead(
    tmp_path: Path,
) -> None:
    driver = await asyncio.create_subprocess_exec(
        sys.executable, "-c", DRIVER, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    assert driver.stdout is not None
    try:
        assert await asyncio.wait_for(driver.stdout.readline(), 60) == b"points\n"
        await asyncio.sleep(0.2)  # points come every half a second: now it waits for the next ones
        os.kill(driver.pid, signal.SIGSTOP)  # Ctrl-Z
        await asyncio.sleep(4)  # longer than a worker may be silent
        os.kill(driver.pid, signal.SIGCONT)
        said = [await asyncio.wait_for(driver.stdout.readline(), 60) for _ in range(10)]
    finally:
        driver.kill()
        await driver.communicate()  # to the end of its output, which is closed then
    assert said == [b"points\n"] * 10
