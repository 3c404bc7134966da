"""Scores depend neither on which worker gives them nor on workers that die. No more workers start
than pay off."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from policy_files import save_random_policy
from training_pool import TrainingPool

from eureka_agent.designer.interface import given_reward
from eureka_agent.errors import (
    EnvironmentFaultError,
    EurekaError,
    WorkerDiedError,
    WorkerFaultError,
)
from eureka_agent.fleet.evaluator import Evaluator
from eureka_agent.fleet.jobs import Problem
from eureka_agent.fleet.warm_worker import WarmWorker
from eureka_agent.records import Evaluation
from eureka_agent.sandbox.process_wall import ProcessWall
from eureka_agent.settings import TrainingSettings

ProcessesOf = Callable[[Path], list[int]]
SETTINGS = TrainingSettings(
    env_steps=256, num_envs=8, horizon=16, hidden_sizes=(16,), epochs=1, checkpoints=1
)
SEEDS = 4


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def policy(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Path]:
    pool = TrainingPool(
        ProcessWall(), "cartpole", "balance", SETTINGS, 1, 1, tmp_path_factory.mktemp("pool")
    )
    try:
        good = (
            "def compute_reward(pole_upright):\n    return pole_upright, {'upright':"
            " pole_upright}\n"
        )
        result = await pool.train("job", given_reward(good), 5)
        assert result.policy is not None, result.failure_reason
        yield result.policy
    finally:
        await pool.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scores(policy: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Evaluation]:
    """Scores by seed from one worker, one evaluation after the other."""
    evaluator = Evaluator(
        ProcessWall(), Problem("cartpole", "balance"), tmp_path_factory.mktemp("alone")
    )
    try:
        return [await evaluator.evaluate(policy, seed, 4) for seed in range(SEEDS)]
    finally:
        await evaluator.close()


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="module")
async def test_a_long_queue_gets_a_second_worker_and_a_short_one_does_not(
    tmp_path: Path,
    policy: Path,
    scores: list[Evaluation],
    processes_of: ProcessesOf,
    workers_of: ProcessesOf,
) -> None:
    evaluator = Evaluator(
        ProcessWall(), Problem("cartpole", "balance"), tmp_path / "scratch", most_workers=2
    )
    try:
        # the first evaluations wait for one worker and are over long before another one could be
        # there
        few = await asyncio.gather(*(evaluator.evaluate(policy, seed, 4) for seed in range(SEEDS)))
        assert len(workers_of(tmp_path)) == 1
        assert few == scores
        # many take longer than a start, but however many there are, no third worker
        amount = 100 + 3 * int(evaluator._start_s / evaluator._evaluation_s)
        many = await asyncio.gather(
            *(
                evaluator.evaluate(policy, number % SEEDS, 4, tmp_path / f"{number}.npz")
                for number in range(amount)
            )
        )
        assert len(workers_of(tmp_path)) == 2
        assert many == [scores[number % SEEDS] for number in range(amount)]
    finally:
        await evaluator.close()
    assert processes_of(tmp_path) == []
    assert not any((tmp_path / "scratch").iterdir())


@pytest.mark.asyncio(loop_scope="module")
async def test_a_killed_worker_costs_no_score(
    tmp_path: Path, policy: Path, scores: list[Evaluation], workers_of: ProcessesOf
) -> None:
    evaluator = Evaluator(
        ProcessWall(), Problem("cartpole", "balance"), tmp_path / "scratch", most_workers=2
    )
    try:
        evaluator.warm_up()
        first = await evaluator.evaluate(policy, 0, 4)
        (worker,) = workers_of(tmp_path)
        evaluations = [
            asyncio.create_task(evaluator.evaluate(policy, seed, 4)) for seed in range(SEEDS)
        ]
        await asyncio.sleep(0)
        os.kill(worker, signal.SIGKILL)
        assert await asyncio.gather(*evaluations) == scores
        assert first == scores[0]
        assert worker not in workers_of(tmp_path)
    finally:
        await evaluator.close()


TRAP = """
import os
import signal

from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import Variable


class Trap(VecTask):
    \"\"\"Kills the process for actions near 1, raises for actions near -1.\"\"\"

    variables = (Variable("count", (), "1", "-", "steps since the reset"),)
    num_observations = 1
    num_actions = 1
    max_episode_length = 3
    control_dt = 1.0

    def pre_physics_step(self, actions):
        if (actions > 0.99).any():
            os.kill(os.getpid(), signal.SIGKILL)
        if (actions < -0.99).any():
            raise ArithmeticError("too far to the left")

    def compute_observations(self):
        self.obs_buf[:, 0] = self.progress_buf.float()

    def compute_variables(self):
        return {"count": self.progress_buf.float()}

    def reset_idx(self, env_ids):
        pass
"""
TRAP_TASK = """
from eureka_agent.task import Task


def fitness(count):
    return count


task = Task(sentence="count", fitness=fitness, fitness_doc="sum of counts")
"""


@pytest.fixture
def trap(tmp_path: Path) -> str:
    folder = tmp_path / "trap"
    (folder / "tasks").mkdir(parents=True)
    (folder / "env.py").write_text(TRAP)
    (folder / "tasks" / "count.py").write_text(TRAP_TASK)
    return str(folder)


async def test_who_fails_among_others_fails_alone(tmp_path: Path, trap: str) -> None:
    evaluator = Evaluator(ProcessWall(), Problem(trap), tmp_path / "scratch", most_workers=2)
    biases = {"good": 0.0, "deadly": 9.0, "raising": -9.0, "fine": 0.2}
    files = [
        save_random_policy(tmp_path / name, 1, 1, seed=0, bias=bias)
        for name, bias in biases.items()
    ]
    (tmp_path / "rubbish").write_bytes(b"no policy")
    files += [tmp_path / "rubbish", tmp_path / "missing"]
    try:
        results = await asyncio.gather(
            *(evaluator.evaluate(file, 0, 2) for file in files), return_exceptions=True
        )
        good, deadly, raising, fine, rubbish, missing = results
        assert isinstance(deadly, WorkerDiedError)
        assert "SIGKILL" in deadly.message
        # the environment's own code: nobody is blamed for it, and others' scores are not lost with
        # it
        assert isinstance(raising, EnvironmentFaultError)
        assert "in pre_physics_step: ArithmeticError: too far to the left" in raising.message
        assert isinstance(rubbish, WorkerFaultError)
        assert rubbish.message.startswith(f"cannot read the policy '{files[4]}': ")
        assert isinstance(missing, EurekaError)
        assert "there is no such file" in missing.message
        for score in (good, fine):
            assert isinstance(score, Evaluation)
            assert [episode.fitness for episode in score.episodes] == [6.0, 6.0]  # 1 + 2 + 3
        # nobody is held against the next ones
        assert await evaluator.evaluate(files[0], 0, 2) == good
    finally:
        await evaluator.close()
    assert not any((tmp_path / "scratch").iterdir())


@pytest.mark.asyncio(loop_scope="module")
async def test_who_waits_together_is_scored_in_one_pass(
    tmp_path: Path, policy: Path, scores: list[Evaluation], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    ask = WarmWorker.ask

    async def noted(self: WarmWorker, command: Any, *others: Any) -> Any:
        sizes.append(len(command.policies))
        return await ask(self, command, *others)

    monkeypatch.setattr(WarmWorker, "ask", noted)
    evaluator = Evaluator(ProcessWall(), Problem("cartpole", "balance"), tmp_path / "scratch")
    try:
        together = await asyncio.gather(
            *(
                evaluator.evaluate(policy, seed, 4, tmp_path / f"{seed}.npz")
                for seed in range(SEEDS)
            )
        )
        assert together == scores
        assert sizes == [SEEDS]
        # one who gave up is not scored, and does not hold up the others
        tasks = [asyncio.create_task(evaluator.evaluate(policy, seed, 4)) for seed in range(SEEDS)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(results[1], asyncio.CancelledError)
        assert [results[0], *results[2:]] == [scores[0], *scores[2:]]
        last = asyncio.create_task(evaluator.evaluate(policy, 0, 4))
        await asyncio.sleep(0)
    finally:
        await evaluator.close()
    for waiting in (last, asyncio.create_task(evaluator.evaluate(policy, 0, 4))):
        with pytest.raises(asyncio.CancelledError):
            await waiting
