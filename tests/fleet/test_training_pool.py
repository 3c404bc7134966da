"""Results of trainings in real workers do not depend on cancellation, nor on neighbours that die,
hang or escape."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from training_pool import TrainingPool

from eureka_agent.designer.interface import given_reward
from eureka_agent.errors import EurekaError
from eureka_agent.fleet.jobs import TrainingJob, TrainingResult
from eureka_agent.records import CurvePoint
from eureka_agent.sandbox.process_wall import ProcessWall
from eureka_agent.settings import TrainingSettings

pytestmark = pytest.mark.asyncio(loop_scope="module")

Processes = Callable[[Path], list[int]]

# 10 iterations of 8 environments and 16 steps
SETTINGS = TrainingSettings(
    env_steps=1280, num_envs=8, horizon=16, hidden_sizes=(16,), epochs=1, checkpoints=2
)

ENDS_THE_PROCESS = "import os\ndef compute_reward(pole_upright):\n    os._exit(3)\n"


def make_pool(
    scratch: Path, *, slots: int = 3, workers: int = 1, timeout_s: float = 60.0, **rest: object
) -> TrainingPool:
    return TrainingPool(
        ProcessWall(),
        "cartpole",
        "balance",
        SETTINGS,
        slots,
        workers,
        scratch,
        timeout_s=timeout_s,
        **rest,
    )  # type: ignore[arg-type]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TrainingPool]:
    """One pool for the tests whose rewards leave its worker alive."""
    pool = make_pool(tmp_path_factory.mktemp("pool"), slots=2)
    yield pool
    await pool.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def alone(pool: TrainingPool) -> TrainingResult:
    """A training that nothing disturbs."""
    good = "def compute_reward(pole_upright):\n    return pole_upright, {'upright': pole_upright}\n"
    return await pool.train("alone", given_reward(good), seed=5)


def fitness_of(result: TrainingResult) -> tuple[float | None, ...]:
    assert result.outcome is not None, result.failure_reason
    return tuple(point.fitness for point in result.points)


@pytest.mark.slow
async def test_a_worker_that_stands_still_is_replaced(
    tmp_path: Path, alone: TrainingResult, processes_of: Processes, workers_of: Processes
) -> None:
    good = "def compute_reward(pole_upright):\n    return pole_upright, {'upright': pole_upright}\n"
    retried: list[tuple[str, str]] = []
    pool = make_pool(
        tmp_path, timeout_s=1.5, on_retry=lambda job, reason: retried.append((job, reason))
    )
    try:
        await pool.train("warm", given_reward(good), 0)
        (worker,) = workers_of(tmp_path)
        os.kill(worker, signal.SIGSTOP)
        first, second = await asyncio.gather(
            pool.train("first", given_reward(good), 5), pool.train("second", given_reward(good), 6)
        )
    finally:
        await pool.close()
    assert [first.retries, second.retries] == [1, 1]
    assert sorted(job for job, _ in retried) == ["first", "second"]
    assert all("no sign of life for 1.5 s" in reason for _, reason in retried)
    # the same as in a worker where nothing happened
    assert fitness_of(first) == fitness_of(alone)
    assert processes_of(tmp_path) == []


@pytest.mark.parametrize(
    ("source", "code", "said"),
    [
        (ENDS_THE_PROCESS, "raised", "the process that ran it ended by itself with exit status 3"),
        (
            "def compute_reward(pole_upright):\n    return pole_upright / 0, {}",
            "not-a-number",
            "NaN or infinite",
        ),
        ("def compute_reward(pole_uprigt):\n    return pole_uprigt, {}", "contract", "pole_uprigt"),
        pytest.param(
            "def compute_reward(pole_upright):\n    while True:\n        pass",
            "timeout",
            "longer than",
            marks=pytest.mark.slow,
        ),
    ],
)
async def test_a_reward_that_fails_by_itself_costs_nobody_a_retry(
    pool: TrainingPool, good_reward: str, source: str, code: str, said: str
) -> None:
    bad, good = await asyncio.gather(
        pool.train("bad", given_reward(source), 0), pool.train("good", given_reward(good_reward), 0)
    )
    assert (bad.outcome, bad.failure_code, bad.retries) == (None, code, 0)
    assert said in bad.failure_reason
    assert good.outcome is not None
    assert good.retries == 0


async def test_more_jobs_than_slots_go_by_priority_and_then_by_order(
    pool: TrainingPool, good_reward: str
) -> None:
    ended: list[str] = []

    async def train(job: str, priority: int) -> None:
        await pool.train(job, given_reward(good_reward), 0, priority=priority)
        ended.append(job)

    # two slots: a and b take them at once; of the rest the urgent one comes first
    await asyncio.gather(
        *(train(job, 1 if job != "urgent" else 0) for job in ("a", "b", "c", "d", "urgent"))
    )
    assert set(ended[:2]) == {"a", "b"}
    assert set(ended[2:4]) == {"urgent", "c"}
    assert ended[4] == "d"


async def test_a_training_whose_worker_dies_before_it_is_sent_begins_in_the_next(
    tmp_path: Path, good_reward: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = make_pool(tmp_path)
    try:
        first = await pool.train("first", given_reward(good_reward), seed=5)
        (worker,) = pool._dispatcher._workers
        send = worker.send

        async def send_late(job: TrainingJob) -> None:
            assert worker._client is not None
            await worker._client.kill()
            while worker._client is not None:
                await asyncio.sleep(0.01)
            await send(job)

        monkeypatch.setattr(worker, "send", send_late)
        second = await pool.train("second", given_reward(good_reward), seed=5)
    finally:
        await pool.close()
    assert second.retries == 1
    assert fitness_of(second) == fitness_of(first)


async def test_a_cancelled_training_gives_its_slot_back(tmp_path: Path, good_reward: str) -> None:
    seen = asyncio.Event()
    endless = SETTINGS.model_copy(update={"env_steps": 100_000_000})

    def on_progress(job: str, points: tuple[CurvePoint, ...]) -> None:
        seen.set()

    pool = TrainingPool(ProcessWall(), "cartpole", "balance", endless, 1, 1, tmp_path, on_progress)
    try:
        first = asyncio.create_task(pool.train("first", given_reward(good_reward), 0))
        waiting = asyncio.create_task(pool.train("waiting", given_reward(good_reward), 0))
        second = asyncio.create_task(pool.train("second", given_reward(good_reward), 0))
        await asyncio.wait_for(seen.wait(), 30)
        waiting.cancel()
        first.cancel()
        await asyncio.wait({first, waiting})
        seen.clear()
        await asyncio.wait_for(seen.wait(), 30)  # the second one trains now
        assert not second.done()
    finally:
        await pool.close()
    with pytest.raises(asyncio.CancelledError):
        await second


async def test_an_environment_that_is_not_there_reaches_everyone_who_waits(
    tmp_path: Path, good_reward: str
) -> None:
    pool = TrainingPool(ProcessWall(), "cartpol", None, SETTINGS, 2, 2, tmp_path)
    try:
        results = await asyncio.gather(
            *(pool.train(name, given_reward(good_reward), 0) for name in "abc"),
            return_exceptions=True,
        )
    finally:
        await pool.close()
    assert all(
        isinstance(result, EurekaError) and "'cartpol'" in result.message for result in results
    )
