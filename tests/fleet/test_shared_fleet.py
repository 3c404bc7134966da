"""Searches that share a fleet, and their turns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import cast

from faulty_environments import after_steps, write_lift
from safetensors.numpy import load_file

from eureka_agent.boundary.commands import Train
from eureka_agent.designer.interface import given_reward
from eureka_agent.errors import EnvironmentFaultError
from eureka_agent.fleet.fleet import Fleet
from eureka_agent.fleet.jobs import Population, Problem, Share, TrainingJob, TrainingResult, Turns
from eureka_agent.sandbox.process_wall import ProcessWall
from eureka_agent.settings import TrainingSettings

SETTINGS = TrainingSettings(
    env_steps=1280, num_envs=8, horizon=16, hidden_sizes=(16,), epochs=1, checkpoints=2
)
LONG = SETTINGS.model_copy(update={"env_steps": 20 * SETTINGS.env_steps})
BALANCE = Population(Problem("cartpole", "balance"), SETTINGS, slots=2)
SWINGUP = Population(Problem("cartpole", "swingup"), SETTINGS, slots=2)
REWARD = given_reward(
    "def compute_reward(pole_upright):\n    return pole_upright, {'upright': pole_upright}\n"
)

SECONDS = 60.0
"""Far more than these trainings take. One that is mixed up with another never ends."""

ProcessesOf = Callable[[Path], list[int]]


def numbers(result: TrainingResult) -> tuple[object, ...]:
    """The parts of a result that must not depend on the company."""
    assert result.outcome is not None, result.failure_reason
    assert result.policy is not None
    policy = {name: value.tobytes() for name, value in load_file(result.policy).items()}
    return result.points, result.outcome.model_copy(update={"seconds": 0.0}), policy


async def alone(folder: Path, population: Population, seeds: range) -> list[tuple[object, ...]]:
    """The trainings of one search that has a fleet to itself."""
    async with Fleet(ProcessWall(), folder) as fleet, fleet.trainings(population) as trainings:
        results = [trainings.train(f"job-{seed}", REWARD, seed) for seed in seeds]
        return [numbers(result) for result in await asyncio.gather(*results)]


async def test_two_searches_take_turns_on_one_worker_and_get_what_each_gets_alone(
    tmp_path: Path, workers_of: ProcessesOf
) -> None:
    most = 0

    def count(job: str, points: object) -> None:
        nonlocal most
        most = max(most, len(workers_of(tmp_path / "shared")))

    async with (
        Fleet(ProcessWall(), tmp_path / "shared", workers=1) as fleet,
        fleet.trainings(BALANCE, on_progress=count) as first,
        fleet.trainings(SWINGUP, on_progress=count) as second,
    ):
        # the same names and seeds in both; three trainings, of which two have a slot
        asked = [
            search.train(f"job-{seed}", REWARD, seed)
            for seed in range(3)
            for search in (first, second)
        ]
        async with asyncio.timeout(SECONDS):
            results = [numbers(result) for result in await asyncio.gather(*asked)]
    assert results[0::2] == await alone(tmp_path / "first", BALANCE, range(3))
    assert results[1::2] == await alone(tmp_path / "second", SWINGUP, range(3))
    # a retired worker may still be on its way out when its successor starts
    assert most <= 2


async def test_equal_populations_share_a_worker_and_keep_equal_names_apart(
    tmp_path: Path, workers_of: ProcessesOf
) -> None:
    async with (
        Fleet(ProcessWall(), tmp_path / "shared") as fleet,
        fleet.trainings(BALANCE) as first,
        fleet.trainings(BALANCE) as second,
    ):
        async with asyncio.timeout(SECONDS):
            one, two = await asyncio.gather(
                first.train("job", REWARD, 1), second.train("job", REWARD, 2)
            )
        assert len(workers_of(tmp_path / "shared")) == 1
        results = [numbers(one), numbers(two)]
    assert results == await alone(tmp_path / "alone", BALANCE, range(1, 3))


async def test_a_search_that_comes_later_gets_a_worker_while_the_first_has_work_for_all(
    tmp_path: Path,
) -> None:
    done, trained, most = asyncio.Event(), [0] * 6, 60

    async with (
        Fleet(ProcessWall(), tmp_path, workers=2) as fleet,
        fleet.trainings(BALANCE) as first,
        fleet.trainings(SWINGUP) as second,
    ):

        async def keep_busy(line: int) -> None:
            """One training after the other: six lines for the four slots of two workers."""
            while not done.is_set() and trained[line] < most:
                await first.train(f"job-{line}", REWARD, line)
                trained[line] += 1

        lines = [asyncio.create_task(keep_busy(line)) for line in range(6)]
        await asyncio.sleep(0)  # they come first
        assert (await second.train("job", REWARD, 0)).outcome is not None
        done.set()
        await asyncio.gather(*lines)
    assert max(trained) < most


async def test_a_search_that_ends_leaves_the_other_its_trainings(tmp_path: Path) -> None:
    endless = Population(BALANCE.problem, LONG, slots=2)
    async with Fleet(ProcessWall(), tmp_path / "shared") as fleet, fleet.trainings(endless) as kept:
        going_on = asyncio.create_task(kept.train("job", REWARD, 3))
        async with fleet.trainings(endless) as left:
            dropped = asyncio.create_task(left.train("job", REWARD, 4))
            await asyncio.sleep(0)
        (outcome,) = await asyncio.gather(dropped, return_exceptions=True)
        assert isinstance(outcome, asyncio.CancelledError)
        assert not left.busy
        async with asyncio.timeout(SECONDS):
            assert (await going_on).outcome is not None


async def test_an_environment_s_fault_ends_the_trainings_of_its_own_search_alone(
    tmp_path: Path,
) -> None:
    folder = write_lift(tmp_path / "lift", *after_steps(60, "raise ValueError('broken')"))
    faulty = Population(Problem(str(folder)), SETTINGS, slots=1)
    height = given_reward("def compute_reward(height):\n    return height, {'height': height}\n")
    async with (
        Fleet(ProcessWall(), tmp_path / "shared") as fleet,
        fleet.trainings(faulty) as first,
        fleet.trainings(BALANCE) as second,
    ):
        asked = [
            first.train("in a slot", height, 0),
            first.train("waits for one", height, 1),
            second.train("job", REWARD, 0),
        ]
        *ended, healthy = await asyncio.gather(*asked, return_exceptions=True)
        assert all(isinstance(error, EnvironmentFaultError) for error in ended)
        assert isinstance(healthy, TrainingResult)
        assert numbers(healthy) == (await alone(tmp_path / "alone", BALANCE, range(1)))[0]


async def test_an_evaluator_lives_as_long_as_a_search_uses_it(
    tmp_path: Path, workers_of: ProcessesOf
) -> None:
    async with Fleet(ProcessWall(), tmp_path) as fleet:
        async with fleet.evaluator(BALANCE.problem) as first:
            async with fleet.evaluator(BALANCE.problem) as second:
                assert second is first
                second.warm_up()
            async with asyncio.timeout(60.0):
                while not workers_of(tmp_path):
                    await asyncio.sleep(0.05)
        assert workers_of(tmp_path) == []


def population(env_steps: int = 128, slots: int = 1) -> Population:
    settings = SETTINGS.model_copy(update={"env_steps": env_steps, "checkpoints": 1})
    return Population(Problem("cartpole", "balance"), settings, slots)


class Waiting:
    """Jobs that wait, and get the only slot one after the other."""

    def __init__(self) -> None:
        self.turns, self.jobs, self.number = Turns(), list[TrainingJob](), 0

    def add(self, name: str, share: Share, env_steps: int = 128, priority: int = 0) -> None:
        self.number += 1
        job = TrainingJob(
            name,
            population(env_steps),
            Train(job=name, reward=REWARD, seed=0),
            cast("asyncio.Future[object]", None),  # type: ignore[arg-type]  # nobody waits for it
            (priority, self.number),
            None,
            lambda job, points: None,
            lambda job, reason: None,
            share=share,
        )
        self.turns.arrived(share, self.jobs)
        self.jobs.append(job)

    def start(self, count: int) -> str:
        """Start so many jobs. Returns their names in order."""
        names = ""
        for _ in range(count):
            job = next(self.turns.order(self.jobs))
            self.jobs.remove(job)
            self.turns.started(job)
            names += job.name
        return names


def many(waiting: Waiting, name: str, share: Share, count: int, env_steps: int = 128) -> None:
    for _ in range(count):
        waiting.add(name, share, env_steps)


def test_searches_alternate_however_many_jobs_one_has() -> None:
    waiting, one, other = Waiting(), Share(), Share()
    many(waiting, "a", one, 6)
    many(waiting, "b", other, 3)
    assert waiting.start(8) == "abababaa"


def test_a_search_with_trainings_twice_as_long_gets_half_as_many() -> None:
    waiting = Waiting()
    many(waiting, "a", Share(), 6, env_steps=256)
    many(waiting, "b", Share(), 6)
    # env steps after each: a 256, b 128, b 256, a 512, b 384, b 512, …
    assert waiting.start(9) == "abbabbabb"


def test_a_late_search_claims_nothing_for_the_time_before() -> None:
    waiting = Waiting()
    many(waiting, "a", Share(), 10)
    assert waiting.start(4) == "aaaa"
    many(waiting, "b", Share(), 4)
    # a has 512 env steps; b begins where a's last start was, at 384
    assert waiting.start(4) == "baba"


def test_within_a_search_priority_counts_first() -> None:
    waiting, share = Waiting(), Share()
    waiting.add("low", share, priority=1)
    waiting.add("high", share, priority=0)
    assert waiting.start(2) == "highlow"


def test_a_held_search_starts_nothing() -> None:
    waiting, held = Waiting(), Share(held=True)
    waiting.add("a", held)
    waiting.add("b", Share())
    assert [job.name for job in waiting.turns.order(waiting.jobs)] == ["b"]
