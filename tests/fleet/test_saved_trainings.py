"""Trainings whose worker or whole search is killed go on from their last saved state and end as if
nothing had been."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from training_pool import TrainingPool

from eureka_agent.archive.snapshots import SnapshotStore
from eureka_agent.designer.given import given_reward
from eureka_agent.fleet.devices import CPU, DeviceLeases
from eureka_agent.fleet.evaluator import Evaluator
from eureka_agent.fleet.jobs import PauseObserver, Population, TrainingResult
from eureka_agent.fleet.problem import Problem
from eureka_agent.fleet.training_worker import TrainingWorker
from eureka_agent.protocol.commands import Save
from eureka_agent.protocol.events import AllSaved
from eureka_agent.records import CurvePoint
from eureka_agent.sandbox.process_wall import ProcessWall
from eureka_agent.sandbox.wall import shared_limits
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
LONG = SETTINGS.model_copy(update={"env_steps": 8 * SETTINGS.env_steps})
"""Long enough to be under way still when somebody who has seen a third of `SETTINGS` has it
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


def numbers(result: TrainingResult) -> tuple[object, ...]:
    """What must not depend on interruptions."""
    assert result.outcome is not None, result.failure_reason
    assert result.policy is not None
    policy = {name: value.tobytes() for name, value in load_file(result.policy).items()}
    return result.points, result.outcome.model_copy(update={"seconds": 0.0}), policy


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
    store = SnapshotStore(tmp_path)
    watched = Watched(tmp_path / "workers", store)
    try:
        training = asyncio.create_task(watched.pool.train("job", given_reward(REWARD), 5))
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


@pytest.mark.parametrize(
    "told",
    ['{"iterations": Infinity}', "[" * 100_000, '{"iterations": -1}', "1", '{"iterations": "x"}'],
)
def test_a_state_whose_words_are_no_worker_s_is_none(told: str, tmp_path: Path) -> None:
    """Else it would end every later `eureka resume`."""
    store = SnapshotStore(tmp_path)
    store.put_points("job", [])
    save_file({"x": np.zeros(1, np.float32)}, store.state_path("job"), {"training": told})
    assert store.find("job") is None


async def test_another_process_goes_on_where_the_first_one_was_stopped(
    tmp_path: Path, undisturbed: tuple[object, ...]
) -> None:
    first = Watched(tmp_path / "first", SnapshotStore(tmp_path))
    training = asyncio.create_task(first.pool.train("job", given_reward(REWARD), 5))
    async with asyncio.timeout(60):
        await first.halfway.wait()
    training.cancel()
    await asyncio.wait({training})
    await first.pool.close()

    store = SnapshotStore(tmp_path)
    second = Watched(tmp_path / "second", store)
    try:
        result = await second.pool.train("job", given_reward(REWARD), 5)
        assert numbers(result) == undisturbed
    finally:
        await second.pool.close()
    ((job, points),) = second.resumed
    assert job == "job"
    assert 0 < points < ITERATIONS
    assert result.retries == 0
    # only what is settled is forgotten
    assert store.find("job") is not None
    store.drop("job")
    assert list((tmp_path / ".snapshots").iterdir()) == []


NEVER = 86_400.0
"""Seconds between two states that no test lives to see."""


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


@pytest.mark.parametrize("stop", ["", "slow"])
async def test_who_is_stopped_at_a_pause_is_decided_about_when_it_is_resumed(
    tmp_path: Path, undisturbed: tuple[object, ...], stop: str
) -> None:
    """Without a slot, and without a step made twice."""
    asked, never = asyncio.Event(), asyncio.Event()
    met: list[tuple[int, bool]] = []

    async def at_first(points: tuple[CurvePoint, ...], policy: Path | None) -> str:
        asked.set()
        await never.wait()
        return ""

    async def at_second(points: tuple[CurvePoint, ...], policy: Path | None) -> str:
        met.append((points[-1].env_steps, policy is not None and policy.is_file()))
        return stop

    pauses = (15 * 128,)
    first = Watched(tmp_path / "first", SnapshotStore(tmp_path), snapshot_s=NEVER)
    training = asyncio.create_task(
        first.pool.train("job", given_reward(REWARD), 5, pauses=pauses, on_pause=at_first)
    )
    async with asyncio.timeout(60):
        await asked.wait()
    await first.pool.save(30)
    training.cancel()
    await asyncio.wait({training})
    await first.pool.close()
    store = SnapshotStore(tmp_path)
    second = Watched(tmp_path / "second", store, snapshot_s=NEVER)
    try:
        result = await second.pool.train(
            "job", given_reward(REWARD), 5, pauses=pauses, on_pause=at_second
        )
        assert met == [(15 * 128, True)]
        assert second.resumed == [("job", 15)]
        if stop:
            assert (result.failure_code, result.failure_reason, len(result.points)) == (
                "stopped",
                "slow",
                15,
            )
            assert second.pool._dispatcher._workers == []
        else:
            assert numbers(result) == undisturbed
    finally:
        await second.pool.close()
    store.drop("job")
    assert list((tmp_path / ".snapshots").iterdir()) == []


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
    """Whether a worker is asked for its states right now."""
    return any("TrainingWorker.save" in repr(task.get_coro()) for task in asyncio.all_tasks())


async def test_at_a_pause_there_is_a_policy_to_be_scored_until_it_is_decided(
    tmp_path: Path, undisturbed: tuple[object, ...]
) -> None:
    watched = Watched(tmp_path / "workers", SnapshotStore(tmp_path))
    evaluator = Evaluator(ProcessWall(), Problem("cartpole", "balance"), tmp_path / "evaluator")
    met: list[tuple[int, Path, float]] = []

    async def at_pause(points: tuple[CurvePoint, ...], policy: Path | None) -> str:
        assert policy is not None
        evaluation = await evaluator.evaluate(policy, 1, 4)
        met.append((points[-1].env_steps, policy, evaluation.fitness_mean()))
        return "" if len(met) < 2 else "slow"

    try:
        steps = (15 * 128, 30 * 128)
        result = await watched.pool.train(
            "job", given_reward(REWARD), 5, pauses=steps, on_pause=at_pause
        )
        went_on = await watched.pool.train("job", given_reward(REWARD), 5)
    finally:
        await watched.pool.close()
        await evaluator.close()
    assert (result.failure_code, result.failure_reason) == ("stopped", "slow")
    assert tuple(each[0] for each in met) == steps
    assert all(0.0 < fitness <= 10.0 for _, _, fitness in met)
    assert not any(policy.exists() for _, policy, _ in met)
    assert numbers(went_on) == undisturbed


async def test_who_paused_in_one_worker_goes_on_in_another_that_has_a_slot(
    tmp_path: Path, undisturbed: tuple[object, ...]
) -> None:
    """Two that paused in the same worker, which has one slot, meet before either can go on."""
    meeting = tmp_path / "meeting"
    watched = Watched(tmp_path / "workers", SnapshotStore(tmp_path), slots=1, workers=2)
    paused: set[str] = set()
    all_paused = asyncio.Event()

    def reward(job: str) -> str:
        return f"""import os, time
def compute_reward(pole_upright):
    if os.path.exists({str(meeting)!r}):
        open({str(tmp_path / job)!r}, "w").close()
        while not all(os.path.exists(each) for each in open({str(meeting)!r}).read().split("|")):
            time.sleep(0.01)
    return pole_upright, {{"upright": pole_upright}}
"""

    def at_pause(job: str) -> PauseObserver:
        async def decide(points: tuple[CurvePoint, ...], policy: Path | None) -> str:
            paused.add(job)
            if len(paused) == 4:
                home = max(watched.pool._dispatcher._workers, key=lambda worker: len(worker.jobs))
                names = [each.name for each in home.jobs.values()][:2]
                draft = tmp_path / "draft"
                draft.write_text("|".join(str(tmp_path / each) for each in names))
                draft.rename(meeting)
                all_paused.set()
            await all_paused.wait()
            return "" if str(tmp_path / job) in meeting.read_text().split("|") else "not needed"

        return decide

    try:
        async with asyncio.timeout(60):
            results = await asyncio.gather(
                *(
                    watched.pool.train(
                        job,
                        given_reward(reward(job)),
                        5,
                        pauses=(15 * 128,),
                        on_pause=at_pause(job),
                    )
                    for job in ("job-1", "job-2", "job-3", "job-4")
                )
            )
    finally:
        await watched.pool.close()
    assert sorted(result.failure_code for result in results) == ["", "", "stopped", "stopped"]
    assert [numbers(result) for result in results if not result.failure_code] == [
        undisturbed,
        undisturbed,
    ]
    assert watched.retried == []


async def test_a_pause_is_asked_about_again_where_its_answer_was_not_heard(
    tmp_path: Path, undisturbed: tuple[object, ...]
) -> None:
    """Killed while it waits there, a training comes to the pause once more, with a policy to be
    scored: it may not be found behind it."""
    policies: list[bool] = []
    asked, never = asyncio.Event(), asyncio.Event()

    async def at_first(points: tuple[CurvePoint, ...], policy: Path | None) -> str:
        asked.set()
        await never.wait()
        return ""

    async def at_second(points: tuple[CurvePoint, ...], policy: Path | None) -> str:
        policies.append(policy is not None and policy.is_file())
        return ""

    pauses = (15 * 128,)
    first = Watched(tmp_path / "first", SnapshotStore(tmp_path))
    training = asyncio.create_task(
        first.pool.train("job", given_reward(REWARD), 5, pauses=pauses, on_pause=at_first)
    )
    async with asyncio.timeout(60):
        await asked.wait()
    training.cancel()
    await asyncio.wait({training})
    await first.pool.close()
    second = Watched(tmp_path / "second", SnapshotStore(tmp_path))
    try:
        result = await second.pool.train(
            "job", given_reward(REWARD), 5, pauses=pauses, on_pause=at_second
        )
    finally:
        await second.pool.close()
    assert numbers(result) == undisturbed
    assert policies == [True]


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


async def test_a_decision_that_comes_while_states_are_stored_does_not_keep_the_others_from_it(
    tmp_path: Path,
) -> None:
    """A pause's policy is gone once it is decided what becomes of the training, which has a slot
    again and is saved with the running ones."""
    store = SnapshotStore(tmp_path)
    population = Population(Problem("cartpole"), SETTINGS, 2)
    lease = DeviceLeases(CPU.devices(1)).take()
    worker = TrainingWorker(population, ProcessWall(), tmp_path, shared_limits(1), lease)
    sent: list[str] = []

    class Client:
        async def send(self, command: Save) -> None:
            sent.append(command.type)
            await worker._take(AllSaved(), lambda: None)

    async def store_state(job: object, snapshot: str, store: SnapshotStore) -> None:
        kept.append(snapshot)
        worker._paused.pop("second", None)
        (tmp_path / "second.policy").unlink(missing_ok=True)

    kept: list[str] = []
    stand_in: Any = worker
    stand_in._client, stand_in._files, worker.ready = (
        Client(),
        SimpleNamespace(store_state=store_state),
        True,
    )
    for name in ("first", "second"):
        (tmp_path / f"{name}.policy").write_text(name)
        stand_in.jobs[name] = SimpleNamespace(name=name, snapshots=store)
        policy = tmp_path / f"{name}.policy"
        stand_in._paused[name] = SimpleNamespace(policy=policy, snapshot=f"{name}.state")
    await worker.save()
    assert (kept, sent) == (["first.state"], ["save"])
