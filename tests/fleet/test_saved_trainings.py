"""Trainings whose worker or whole search is killed go on from their last saved state and end as if
nothing had happened."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from training_pool import TrainingPool

from eureka_agent.archive.snapshots import FOLDER, SnapshotStore
from eureka_agent.designer.interface import given_reward
from eureka_agent.fleet.evaluator import Evaluator
from eureka_agent.fleet.jobs import Problem, TrainingResult
from eureka_agent.records import CurvePoint, Evaluation
from eureka_agent.sandbox.process_wall import ProcessWall
from eureka_agent.settings import TrainingSettings

pytestmark = pytest.mark.slow

ITERATIONS = 60
SETTINGS = TrainingSettings(
    env_steps=ITERATIONS * 128,
    num_envs=16,
    horizon=8,
    hidden_sizes=(16, 16),
    epochs=2,
    minibatches=2,
    checkpoints=4,
)
LONG = SETTINGS.model_copy(update={"env_steps": 4 * SETTINGS.env_steps})
"""Long enough to be still under way when a test that has seen a third of `SETTINGS` has it
saved."""
REWARD = "def compute_reward(pole_upright):\n    return pole_upright, {'upright': pole_upright}\n"
ProcessesOf = Callable[[Path], list[int]]


class Watched:
    """A pool that saves after every iteration, and what it tells."""

    def __init__(
        self,
        folder: Path,
        store: SnapshotStore | None,
        *,
        slots: int = 2,
        workers: int = 1,
        snapshot_s: float = 0.001,
        settings: TrainingSettings = SETTINGS,
    ) -> None:
        self.points = 0
        self.halfway = asyncio.Event()
        self.resumed: list[tuple[str, int]] = []
        self.retried: list[str] = []
        self.pool = TrainingPool(
            ProcessWall(),
            "cartpole",
            "balance",
            settings,
            slots,
            workers,
            folder,
            on_progress=self._progress,
            on_retry=lambda job, reason: self.retried.append(job),
            on_resume=lambda job, points: self.resumed.append((job, len(points))),
            snapshots=store,
            snapshot_s=snapshot_s,
        )

    def _progress(self, job: str, points: Sequence[CurvePoint]) -> None:
        self.points += len(points)
        if self.points >= ITERATIONS // 3:
            self.halfway.set()


def weights(policy: Path) -> dict[str, bytes]:
    """A policy's tensors. The order of a file's metadata differs from process to process."""
    return {name: value.tobytes() for name, value in load_file(policy).items()}


def numbers(result: TrainingResult) -> tuple[object, ...]:
    """Results that must not depend on interruptions."""
    assert result.outcome is not None, result.failure_reason
    assert result.policy is not None
    outcome = result.outcome.model_copy(update={"seconds": 0.0})
    return result.points, outcome, weights(result.policy)


@pytest.fixture
async def undisturbed(tmp_path: Path) -> tuple[object, ...]:
    watched = Watched(tmp_path / "undisturbed", None)
    try:
        return numbers(await watched.pool.train("job", given_reward(REWARD), 5))
    finally:
        await watched.pool.close()


async def test_a_killed_worker_costs_one_retry_and_no_more_than_since_the_last_state(
    tmp_path: Path, undisturbed: tuple[object, ...], workers_of: ProcessesOf
) -> None:
    """Its successor gives the policies at rungs that have no score yet, and no others."""
    store = SnapshotStore(tmp_path)
    watched = Watched(tmp_path / "workers", store)
    scored, waiting = 5 * 128, 10 * 128
    met: list[tuple[int, bool]] = []

    def on_rung(env_steps: int, policy: Path) -> None:
        met.append((env_steps, policy.is_file()))
        if env_steps == scored:
            policy.unlink()

    try:
        training = asyncio.create_task(
            watched.pool.train("job", given_reward(REWARD), 5, 0, (scored, waiting), on_rung)
        )
        async with asyncio.timeout(60):
            await watched.halfway.wait()
        (worker,) = workers_of(tmp_path / "workers")
        os.kill(worker, signal.SIGKILL)
        result = await training
        assert numbers(result) == undisturbed
    finally:
        await watched.pool.close()
    assert result.retries == 1
    assert watched.retried == ["job"]
    (job, points), *more = watched.resumed
    assert (job, more) == ("job", [])
    assert 0 < points < ITERATIONS
    assert met == [(scored, True), (waiting, True), (waiting, True)]


@pytest.mark.parametrize("told", ['{"iterations": Infinity}', "[" * 100_000, '{"iterations": "x"}'])
def test_a_state_whose_words_are_no_worker_s_is_none(told: str, tmp_path: Path) -> None:
    """It would end every later `eureka resume`."""
    store = SnapshotStore(tmp_path)
    store.put_points("job", [])
    save_file({"x": np.zeros(1, np.float32)}, store.state_path("job"), {"training": told})
    assert store.find("job") is None


def test_only_plain_files_of_the_job_itself_are_its_policies_at_rungs(tmp_path: Path) -> None:
    """Other things in a stranger's run folder are not scored, and do not block the end."""
    store = SnapshotStore(tmp_path)
    store.put_points("job", [])
    state = store.state_path("job")
    save_file({"x": np.zeros(1, np.float32)}, state, {"training": '{"iterations": 0}'})
    for job, env_steps in (("job", 128), ("job", 256), ("job-2", 128), ("another", 384)):
        shutil.copy(state, store.rung_path(job, env_steps))
    store.rung_path("job", 512).symlink_to(state)
    store.rung_path("job", 640).mkdir()
    os.mkfifo(store.rung_path("job", 768))
    (tmp_path / FOLDER / "job.policy.safetensors").write_bytes(b"of an earlier version")
    found = store.find("job")
    assert found is not None
    assert found.rungs == {steps: store.rung_path("job", steps) for steps in (128, 256)}
    store.drop("job")
    assert not any(path.exists() for path in (state, *found.rungs.values()))
    assert store.rung_path("job-2", 128).is_file()


NEVER = 86_400.0
"""Seconds between two saved states, longer than any test."""


async def test_who_is_stopped_goes_on_at_the_step_at_which_it_was_stopped(tmp_path: Path) -> None:
    whole = Watched(tmp_path / "whole", None, settings=LONG)
    try:
        undisturbed = numbers(await whole.pool.train("job", given_reward(REWARD), 5))
    finally:
        await whole.pool.close()
    first = Watched(tmp_path / "first", SnapshotStore(tmp_path), snapshot_s=NEVER, settings=LONG)
    training = asyncio.create_task(first.pool.train("job", given_reward(REWARD), 5))
    async with asyncio.timeout(60):
        await first.halfway.wait()
    assert SnapshotStore(tmp_path).find("job") is None
    made = first.points
    await first.pool.save(30)
    training.cancel()
    await asyncio.wait({training})
    await first.pool.close()

    second = Watched(tmp_path / "second", SnapshotStore(tmp_path), snapshot_s=NEVER, settings=LONG)
    try:
        assert numbers(await second.pool.train("job", given_reward(REWARD), 5)) == undisturbed
    finally:
        await second.pool.close()
    ((_, points),) = second.resumed
    assert ITERATIONS // 3 <= made <= points < LONG.updates


async def test_a_worker_that_makes_no_iteration_is_waited_for_no_longer_than_was_said(
    tmp_path: Path,
) -> None:
    slow = (
        "import time\ndef compute_reward(pole_upright):\n    time.sleep(3)\n    return"
        " pole_upright, {'upright': pole_upright}\n"
    )
    watched = Watched(tmp_path / "workers", SnapshotStore(tmp_path), snapshot_s=NEVER)
    training = asyncio.create_task(watched.pool.train("job", given_reward(slow), 5))
    try:
        async with asyncio.timeout(60):
            while not watched.points:  # after the first iteration the second is under way
                await asyncio.sleep(0.02)
        began = time.monotonic()
        await watched.pool.save(0.2)
        # nor when somebody stops waiting
        saving = asyncio.create_task(watched.pool.save(30))
        while not asks_for_states():
            await asyncio.sleep(0)
        saving.cancel()
        await asyncio.wait({saving})
        assert not asks_for_states()
        assert time.monotonic() - began < 2.0
    finally:
        training.cancel()
        await asyncio.wait({training})
        await watched.pool.close()


def asks_for_states() -> bool:
    """True if a worker is being asked for its states right now."""
    return any("TrainingWorker.save" in repr(task.get_coro()) for task in asyncio.all_tasks())


RUNG = 15 * 128


async def test_a_policy_at_a_rung_can_be_scored_and_no_training_waits_for_it(
    tmp_path: Path, undisturbed: tuple[object, ...]
) -> None:
    """It is the policy of a training that ends there. Two trainings of one worker reach it in the
    same iteration."""
    problem, seeds = Problem("cartpole", "balance"), (5, 6)
    watched = Watched(tmp_path / "workers", None)
    short = Watched(
        *(tmp_path / "short", None),
        settings=SETTINGS.model_copy(update={"env_steps": RUNG, "checkpoints": 1}),
    )
    evaluator = Evaluator(ProcessWall(), problem, tmp_path / "evaluator")
    scores: dict[tuple[int, int], asyncio.Task[Evaluation]] = {}

    def train(watched: Watched, seed: int) -> Coroutine[None, None, TrainingResult]:
        def on_rung(env_steps: int, policy: Path) -> None:
            assert (seed, env_steps) not in scores
            scores[seed, env_steps] = asyncio.create_task(evaluator.evaluate(policy, 1, 4))

        name = f"job-{seed}"
        return watched.pool.train(name, given_reward(REWARD), seed, 0, (RUNG, 2 * RUNG), on_rung)

    try:
        results = await asyncio.gather(*(train(watched, seed) for seed in seeds))
        assert scores.keys() == {(seed, rung) for seed in seeds for rung in (RUNG, 2 * RUNG)}
        assert numbers(results[0]) == undisturbed
        for seed in seeds:
            ended = await train(short, seed)  # no rung is at the end
            assert ended.policy is not None
            assert await scores[seed, RUNG] == await evaluator.evaluate(ended.policy, 1, 4)
        all_scores = await asyncio.gather(*scores.values())
        assert len({score.fitness_mean() for score in all_scores}) == 4
    finally:
        await watched.pool.close()
        await short.pool.close()
        await evaluator.close()


@pytest.mark.parametrize(
    ("snapshot_s", "at_rung", "scored", "resumed", "stored", "made"),
    [
        pytest.param(NEVER, True, False, range(1), False, True, id="before any state"),
        pytest.param(0.001, True, False, range(1, 15), True, True, id="before a later state"),
        pytest.param(0.001, False, False, range(15, 60), True, False, id="after a later state"),
        pytest.param(0.001, False, True, range(15, 60), False, False, id="after its score"),
    ],
)
async def test_a_process_killed_after_a_rung_leaves_its_policy_until_it_is_scored(
    tmp_path: Path,
    undisturbed: tuple[object, ...],
    snapshot_s: float,
    at_rung: bool,
    scored: bool,
    resumed: range,
    stored: bool,
    made: bool,
) -> None:
    """A copy of the states is what a kill at that moment leaves. The next process gives the stored
    policy, and makes it again where its state is before the rung."""
    run, left = tmp_path / "run", tmp_path / "left"
    run.mkdir()
    policies: list[dict[str, bytes]] = []

    def kill() -> None:
        shutil.copytree(run / FOLDER, left / FOLDER)

    def on_first(env_steps: int, policy: Path) -> None:
        policies.append(weights(policy))
        if scored:
            policy.unlink()
        if at_rung:
            kill()

    first = Watched(tmp_path / "first", SnapshotStore(run), snapshot_s=snapshot_s)
    try:
        await first.pool.train("job", given_reward(REWARD), 5, 0, (RUNG,), on_first)
    finally:
        await first.pool.close()
    if not at_rung:
        kill()

    met: list[tuple[int, dict[str, bytes], int]] = []

    def on_second(env_steps: int, policy: Path) -> None:
        met.append((env_steps, weights(policy), second.points))

    store = SnapshotStore(left)
    second = Watched(tmp_path / "second", store, snapshot_s=snapshot_s)
    try:
        result = await second.pool.train("job", given_reward(REWARD), 5, 0, (RUNG,), on_second)
        assert numbers(result) == undisturbed
    finally:
        await second.pool.close()
    done = sum(points for _, points in second.resumed)
    assert done in resumed
    # by the points of the second process: none before it begins
    expected = [0] * stored + [15 - done] * made
    (policy,) = policies
    assert met == [(RUNG, policy, points) for points in expected]
    store.drop("job")
    assert list((left / FOLDER).iterdir()) == []


async def test_a_state_that_cannot_be_read_means_the_first_step(
    tmp_path: Path, undisturbed: tuple[object, ...]
) -> None:
    store = SnapshotStore(tmp_path)
    store.put_points("job", ())
    store.state_path("job").write_bytes(b"half a file")
    watched = Watched(tmp_path / "workers", store)
    try:
        assert numbers(await watched.pool.train("job", given_reward(REWARD), 5)) == undisturbed
    finally:
        await watched.pool.close()
    assert watched.resumed == []
