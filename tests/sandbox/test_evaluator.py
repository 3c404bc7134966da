"""Scores that do not depend on which worker gives them, nor on workers that die; and no more workers than pay."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from eureka_agent.errors import EurekaError
from eureka_agent.records import Evaluation
from eureka_agent.sandbox.evaluator import Evaluator
from eureka_agent.sandbox.process_wall import ProcessWall
from eureka_agent.sandbox.training_pool import TrainingPool
from eureka_agent.settings import TrainingSettings

ProcessesOf = Callable[[Path], list[int]]
SETTINGS = TrainingSettings(env_steps=256, num_envs=8, horizon=16, hidden_sizes=(16,), epochs=1, checkpoints=1)
SEEDS = 4


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def policy(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Path]:
    pool = TrainingPool(ProcessWall(), "cartpole", "balance", SETTINGS, 1, 1, tmp_path_factory.mktemp("pool"))
    try:
        good = "def compute_reward(pole_upright):\n    return pole_upright, {'upright': pole_upright}\n"
        result = await pool.train("job", good, 5)
        assert result.policy is not None, result.failure_reason
        yield result.policy
    finally:
        await pool.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scores(policy: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Evaluation]:
    """What one worker gives, one evaluation after the other, by seed."""
    evaluator = Evaluator(ProcessWall(), "cartpole", "balance", tmp_path_factory.mktemp("alone"))
    try:
        return [await evaluator.evaluate(policy, seed, 4) for seed in range(SEEDS)]
    finally:
        await evaluator.close()


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="module")
async def test_a_long_queue_gets_a_second_worker_and_a_short_one_does_not(
    tmp_path: Path, policy: Path, scores: list[Evaluation], processes_of: ProcessesOf
) -> None:
    evaluator = Evaluator(ProcessWall(), "cartpole", "balance", tmp_path / "scratch", most_workers=2)
    try:
        # the first evaluations wait for one worker and are over long before another one could be there
        few = await asyncio.gather(*(evaluator.evaluate(policy, seed, 4) for seed in range(SEEDS)))
        assert len(processes_of(tmp_path)) == 1
        assert few == scores
        # many take longer than a start, but however many there are, no third worker
        amount = 100 + 3 * int(evaluator._start_s / evaluator._evaluation_s)
        many = await asyncio.gather(
            *(evaluator.evaluate(policy, number % SEEDS, 4, tmp_path / f"{number}.npz") for number in range(amount))
        )
        assert len(processes_of(tmp_path)) == 2
        assert many == [scores[number % SEEDS] for number in range(amount)]
    finally:
        await evaluator.close()
    assert processes_of(tmp_path) == []
    assert not any((tmp_path / "scratch").iterdir())


@pytest.mark.asyncio(loop_scope="module")
async def test_a_killed_worker_costs_no_score(
    tmp_path: Path, policy: Path, scores: list[Evaluation], processes_of: ProcessesOf
) -> None:
    evaluator = Evaluator(ProcessWall(), "cartpole", "balance", tmp_path / "scratch", most_workers=2)
    try:
        evaluator.warm_up()
        first = await evaluator.evaluate(policy, 0, 4)
        (worker,) = processes_of(tmp_path)
        evaluations = [asyncio.create_task(evaluator.evaluate(policy, seed, 4)) for seed in range(SEEDS)]
        await asyncio.sleep(0)
        os.kill(worker, signal.SIGKILL)
        assert await asyncio.gather(*evaluations) == scores
        assert first == scores[0]
        assert worker not in processes_of(tmp_path)
    finally:
        await evaluator.close()


async def test_an_environment_that_does_not_open_reaches_everyone_who_waits(
    tmp_path: Path, processes_of: ProcessesOf
) -> None:
    evaluator = Evaluator(ProcessWall(), "cartpol", None, tmp_path, most_workers=2)
    evaluator.warm_up()
    try:
        asked = (evaluator.evaluate(tmp_path / "policy", seed, 4) for seed in range(2))
        results = await asyncio.gather(*asked, return_exceptions=True)
    finally:
        await evaluator.close()
    assert all(isinstance(result, EurekaError) and "'cartpol'" in result.message for result in results)
    assert processes_of(tmp_path) == []
