"""Turns of searches on a fleet, counted by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from eureka_agent.designer.interface import given_reward
from eureka_agent.fleet.fleet import Fleet
from eureka_agent.fleet.jobs import Population, Problem, Share, TrainingJob, Turns
from eureka_agent.protocol.commands import Train
from eureka_agent.sandbox.process_wall import ProcessWall
from eureka_agent.settings import TrainingSettings

REWARD = given_reward(
    "def compute_reward(pole_upright):\n    return pole_upright, {'upright': pole_upright}\n"
)
SETTINGS = TrainingSettings(
    env_steps=128, num_envs=8, horizon=16, hidden_sizes=(16,), epochs=1, checkpoints=1
)


def population(env_steps: int = 128, slots: int = 1) -> Population:
    settings = SETTINGS.model_copy(update={"env_steps": env_steps})
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


async def test_trainings_of_two_searches_start_in_turn_and_a_held_one_waits(tmp_path: Path) -> None:
    ended: list[str] = []
    first, second = Share(), Share(held=True)
    async with (
        Fleet(ProcessWall(), tmp_path, workers=1) as fleet,
        fleet.trainings(population(), share=first) as one,
        fleet.trainings(population(), share=second) as other,
    ):

        async def train(names: Sequence[str], held: bool) -> None:
            search = other if held else one
            for name in names:
                result = await search.train(name, REWARD, 0)
                assert result.outcome is not None
                ended.append(name)

        async with asyncio.timeout(60):
            waits = asyncio.create_task(train(["b"], held=True))
            await train(["a0", "a1"], held=False)
            assert ended == ["a0", "a1"]
            assert fleet.under_way == 0
            second.held = False
            fleet.dispatch()
            assert fleet.under_way
            await waits
    assert ended == ["a0", "a1", "b"]
