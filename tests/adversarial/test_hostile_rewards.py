"""Hostile rewards in dry runs and trainings behind every wall, without the critic's reading first.

Inside every wall, each reward has its own process with a filter of system calls. On Linux this
holds whatever the wall, so the process wall has to pass the same tests. One warm worker of each
kind takes all attacks of a wall, one after the other: none may kill it.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from conftest import SECRET, Traps
from hostile_code import ATTACKS, GOT, TRAINED, Attack, filled_in
from safetensors.numpy import load_file
from training_pool import TrainingPool

from eureka_agent.boundary import filters
from eureka_agent.designer.interface import given_reward
from eureka_agent.fleet.dry_runner import DryRunner
from eureka_agent.fleet.jobs import Problem, TrainingResult
from eureka_agent.sandbox.wall import Limits, Wall
from eureka_agent.settings import TrainingSettings

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(
        not filters.available(), reason=f"without the inner filter: {filters.unavailable_reason()}"
    ),
]
LIMITS = Limits(memory_bytes=4 << 30, scratch_bytes=64 << 20)
ENDLESS_SECONDS = 0.6
DRY_RUN_SECONDS = 20.0
MESSAGE_CHARACTERS = 10_000
# 10 iterations of 8 environments and 16 steps
SETTINGS = TrainingSettings(
    env_steps=1280, num_envs=8, horizon=16, hidden_sizes=(16,), epochs=1, checkpoints=2
)
GOOD = """def compute_reward(pole_upright, actions):
    upright, effort = pole_upright, -0.01 * actions.square().sum(dim=-1)
    return upright + effort, {"upright": upright, "effort": effort}
"""


def clean(text: str) -> bool:
    """True if the text can be shown: short, without commands to a terminal, and without what an
    attack was after."""
    return (
        len(text) < MESSAGE_CHARACTERS
        and text.isprintable()
        and GOT not in text
        and SECRET not in text
    )


def numbers(result: TrainingResult) -> dict[int, dict[str, bytes]]:
    """All of a training's policies, by checkpoint and parameter. Their order in a file's header is
    left to chance."""
    return {
        index: {name: array.tobytes() for name, array in load_file(path).items()}
        for index, path in result.policies.items()
    }


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def runner(
    wall: Wall, traps: Traps, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[DryRunner]:
    runner = DryRunner(
        wall,
        Problem("cartpole", "balance"),
        tmp_path_factory.mktemp("dry-runs"),
        DRY_RUN_SECONDS,
        LIMITS,
    )
    await runner.start()
    yield runner
    await runner.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool(
    wall: Wall, traps: Traps, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[TrainingPool]:
    pool = TrainingPool(
        wall,
        "cartpole",
        "balance",
        SETTINGS,
        2,
        1,
        tmp_path_factory.mktemp("trainings"),
        timeout_s=60.0,
        limits=LIMITS,
    )
    yield pool
    await pool.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def alone(pool: TrainingPool) -> TrainingResult:
    """The neighbour's training, without a neighbour."""
    return await pool.train("alone", given_reward(GOOD), seed=5)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
async def test_a_dry_run(attack: Attack, runner: DryRunner, traps: Traps) -> None:
    worker = runner._worker._client
    runner._timeout_s = ENDLESS_SECONDS if attack.endless else DRY_RUN_SECONDS
    began = time.monotonic()
    findings = await runner.dry_run(
        given_reward(filled_in(attack.source, str(traps.canary), traps.port, os.getpid()))
    )
    seconds = time.monotonic() - began
    assert all(clean(finding.message) and clean(finding.hint) for finding in findings), findings
    errors = [finding for finding in findings if finding.severity == "error"]
    if attack.ends:
        assert {finding.code for finding in errors} & set(attack.ends), findings
        assert attack.said in " ".join(finding.message for finding in findings)
    else:
        assert errors == []
    if attack.endless:
        assert seconds < ENDLESS_SECONDS + 5.0
    traps.check()
    assert runner._worker._client is worker
    assert worker is not None
    assert worker.alive


async def test_after_all_of_them_the_worker_judges_as_before(runner: DryRunner) -> None:
    runner._timeout_s = DRY_RUN_SECONDS
    assert await runner.dry_run(given_reward(GOOD)) == ()


@pytest.mark.parametrize("attack", TRAINED, ids=lambda attack: attack.name)
async def test_a_training(
    attack: Attack, pool: TrainingPool, alone: TrainingResult, traps: Traps
) -> None:
    (worker,) = pool._dispatcher._workers
    source = filled_in(attack.source, str(traps.canary), traps.port, os.getpid())
    bad, good = await asyncio.gather(
        pool.train("bad", given_reward(source), 0), pool.train("good", given_reward(GOOD), 5)
    )
    if not attack.failure:
        assert bad.failure_code == ""
    else:
        assert bad.failure_code in (*attack.failure, "")
    assert clean(bad.failure_reason), bad.failure_reason[:300]
    # whatever came of it: the neighbour's numbers are those that it has by itself, bit for bit
    assert good.outcome is not None
    assert good.points == alone.points
    assert alone.outcome is not None
    assert good.outcome.checkpoints == alone.outcome.checkpoints
    assert numbers(good) == numbers(alone)
    assert (good.retries, bad.retries) == (0, 0)
    assert pool._dispatcher._workers == [worker]
    traps.check()
