"""Wall times of searches at a given pace; every time is worked out by hand."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from eureka_agent.errors import EurekaError
from eureka_agent.fleet.fleet import Fleet
from eureka_agent.fleet.jobs import Population, Problem
from eureka_agent.records import ParameterSpec, TaskDescription, VariableSpec
from eureka_agent.rewards import baseline
from eureka_agent.sandbox.process_wall import ProcessWall
from eureka_agent.search.clock import (
    DRAFT_SECONDS,
    MEASURED_SECONDS,
    REPLY_SECONDS,
    ROLLOUT_SHARE,
    VIDEO_SECONDS,
    Pace,
    SearchClock,
    measure_speed,
    plan_capacity,
)
from eureka_agent.settings import SearchSettings, training_part

ONLINE = {"model": ("openai/test",)}
DESIGNER: Any = SimpleNamespace(analyst=None, tools=False)
WITH_ANALYST: Any = SimpleNamespace(analyst="openai/test", tools=False)
Seconds = Callable[..., float]


def settings(**values: object) -> SearchSettings:
    """Trainings of ten updates; two generations of two, with a confirmation between them and one
    final training; offline, a proposal takes 0.05 s."""
    sizes: dict[str, object] = {"env_steps": 160, "num_envs": 4, "horizon": 4, "video": False}
    sizes |= {"strategy": "greedy", "drafts": 1, "iterations": 2, "samples": 2, "confirm": 1}
    sizes |= {"confirm_seeds": 1, "finalists": 1, "final_seeds": 1, "baselines": False}
    return SearchSettings.model_validate({**sizes, **values})


@pytest.fixture
def seconds(description: TaskDescription) -> Seconds:
    """Seconds of a search whose episodes take no time, at a second for an update alone."""

    def of(
        search: SearchSettings,
        *,
        further: float = 0.0,
        places: int = 1,
        baselines: int = 0,
        models: Any = None,
        steps: int = 0,
        parameters: tuple[ParameterSpec, ...] = (),
    ) -> float:
        pace = Pace(alone=1.0, further=further, start_seconds=2.0, measured="2026-11-24")
        changed = {"max_episode_length": steps, "parameters": parameters}
        described = description.model_copy(update=changed)
        clock = SearchClock(described, pace, places, lambda each: baselines, 100.0, models)
        return clock.seconds(search) - 100.0

    return of


def test_generations_wait_for_each_other(seconds: Seconds) -> None:
    # twice: 0.1 s of design and 10 s of candidates; 10 s of confirmation between them; then 10 s of
    # finals; the start
    assert seconds(settings()) == pytest.approx(2 * 10.1 + 10 + 10 + 2)
    assert seconds(settings(video=True)) == pytest.approx(42.2 + VIDEO_SECONDS)
    # fresh rewards need no order of those before, so nothing is confirmed
    assert seconds(settings(strategy="best-of-n")) == pytest.approx(32.2)
    # 31 further drafts of each of two proposals in the second generation
    assert seconds(settings(drafts=32)) == pytest.approx(42.2 + 62 * DRAFT_SECONDS)


@pytest.mark.parametrize(
    ("sizes", "places", "generation"),
    [
        ({}, 1, 15.0),  # two in one worker, 1.5 s an update
        ({}, 2, 10.0),  # each alone in a worker
        ({"slots": 1}, 1, 20.0),  # one after the other
        ({"slots": 2, "samples": 5}, 1, 15.0 + 15.0 + 10.0),
        ({"slots": 2, "samples": 7}, 2, 15.0 + 15.0),  # four at a time, then two and one
        ({"workers": 2, "samples": 3}, 8, 15.0),
    ],
)
def test_trainings_share_workers_and_wait_for_slots(
    seconds: Seconds, sizes: dict[str, int], places: int, generation: float
) -> None:
    search = settings(**{"iterations": 1, "finalists": 0, "confirm": 0, **sizes})
    found = seconds(search, further=0.5, places=places)
    assert found == pytest.approx(0.05 * search.samples + generation + 2)


def test_finalists_get_a_seed_each_before_the_winner_gets_its_others(seconds: Seconds) -> None:
    # 3 seeds of the leader and one of the two others, then one more of those; 10 s each
    search = settings(finalists=3, final_seeds=3, samples=5)
    assert seconds(search) == pytest.approx(2 * 10.25 + 10 + 20 + 2)


def test_models_are_waited_for(seconds: Seconds) -> None:
    def of(models: Any = DESIGNER, **values: object) -> float:
        search = settings(**{**ONLINE, "schedule": "generations", "concurrency": 2, **values})
        return seconds(search, models=models)

    # the second of two proposals is asked for when the first is there
    once = 2 * (2 * REPLY_SECONDS + 10) + 10 + 10 + 2
    assert of() == pytest.approx(once)
    assert of(concurrency=1) == pytest.approx(once)
    assert of(samples=8) == pytest.approx(once + 2 * 2 * REPLY_SECONDS)  # two at a time
    assert of(WITH_ANALYST) == pytest.approx(once + REPLY_SECONDS)
    looking = SimpleNamespace(analyst=None, tools=True)
    assert of(looking) == pytest.approx(once + 2 * REPLY_SECONDS)  # in the second generation
    # further drafts are requests one after the other, in the second generation
    assert of(drafts=4) == pytest.approx(once + 2 * 3 * REPLY_SECONDS)
    # two comparisons for each of four attempts, four at a time, after each generation, and the
    # judge's sub-goals
    judged = of(fitness="judged", samples=2, concurrency=4)
    assert judged == pytest.approx(once + 3 * REPLY_SECONDS)


def test_baselines_train_while_designs_are_awaited_and_then_beside_the_candidates(
    seconds: Seconds,
) -> None:
    # on a machine on which n trainings take n times as long; at last come 10 s of a final one
    search = settings(baselines=True, iterations=1, confirm=0)
    work = {"further": 1.0, "baselines": 4}
    # the work is that of six trainings: the machine is never idle
    assert seconds(search, **work) == pytest.approx(60 + 10 + 2)
    online = search.model_copy(update=ONLINE)
    assert seconds(online, **work, models=DESIGNER) == pytest.approx(60 + 10 + 2)
    # one baseline ends long before the 40 s of design are over
    found = seconds(online, further=1.0, baselines=1, models=DESIGNER)
    assert found == pytest.approx(40 + 20 + 10 + 2)
    assert seconds(settings(iterations=0, baselines=True), **work) == pytest.approx(40 + 2)


def test_a_steady_search_designs_when_a_place_is_free(seconds: Seconds) -> None:
    steady = settings(**ONLINE, schedule="steady", concurrency=8)
    # replies at 20 s, two trained at 35 s; the next two are designed by 55 s and trained at 70 s,
    # but for the confirmation, which trains beside one of the twos and takes it 5 s
    found = seconds(steady, further=0.5, models=DESIGNER)
    assert found == pytest.approx(70 + 5 + 10 + 2)
    # one request at a time: the second reply comes at 40 s
    one_by_one = steady.model_copy(update={"concurrency": 1})
    assert seconds(one_by_one, further=0.5, models=DESIGNER) == pytest.approx(20 + found)


def test_a_score_steps_whole_episodes(seconds: Seconds) -> None:
    sizes = {"kept_policies": 3, "scoring_episodes": 10, "evaluation_episodes": 20}
    search = settings(iterations=1, samples=1, finalists=0, **sizes)
    scores = seconds(search, further=0.25, steps=500) - seconds(search, further=0.25)
    # an update alone takes 1 s, of which 0.25 s are for its 4 x 4 samples; 3 x 10 episodes in a
    # pass, then 20 of the best
    assert scores == pytest.approx(500 * ROLLOUT_SHARE * (2 * 0.75 / 4 + 50 * 0.25 / 16))


def test_distributions_train_after_the_finals_and_are_scored_in_two_passes(
    seconds: Seconds,
) -> None:
    mass = ParameterSpec(name="mass", default=1.0, low=0.5, high=2.0)
    sizes = {"final_seeds": 2, "scoring_episodes": 10, "evaluation_episodes": 20}
    plain, search = settings(**sizes), settings(**sizes, randomise=3)
    # 3 x 2 trainings of 10 s side by side
    assert seconds(search) - seconds(plain) == pytest.approx(10)
    found, without = (seconds(each, further=0.25, steps=500) for each in (search, plain))
    again = seconds(search, further=0.25, steps=500, parameters=(mass,))
    # eight further values of the mass
    assert again - found == pytest.approx(500 * ROLLOUT_SHARE * 8 * 10 * 0.25 / 16)
    assert found > without + 10


@pytest.mark.parametrize(
    ("values", "places", "workers", "slots"),
    [
        # a generation of 8 with the 10 baselines beside it: 18 on two workers
        ({"samples": 8, "finalists": 3, "final_seeds": 5, "baselines": True}, 2, 2, 9),
        # the repeats of the best 4 may train beside 8 candidates
        ({"samples": 8, "confirm": 4, "schedule": "steady"}, 2, 2, 6),
        # with few baselines the finals need most
        ({"samples": 4, "finalists": 3, "final_seeds": 3}, 2, 2, 5),
        ({"iterations": 1, "samples": 1, "finalists": 0}, 8, 1, 1),
        # set by hand
        ({"iterations": 1, "samples": 64, "slots": 4, "workers": 3}, 2, 3, 4),
    ],
)
def test_slots_fit_the_largest_group_that_trains_at_once(
    values: dict[str, object], places: int, workers: int, slots: int
) -> None:
    assert plan_capacity(settings(**values), places) == (workers, slots)


POSITION = VariableSpec(
    name="puck_position", shape=(), unit="m", frame="world", doc="position of the puck"
)


async def measured(
    puck: Path, description: TaskDescription, scratch: Path, trainings: int, reward: str | None
) -> float:
    """Env steps per second of trainings in one worker, for a task with this reward or none."""
    began, settings = time.monotonic(), training_part(SearchSettings(env=str(puck)))
    changed = {"environment": str(puck), "task": "centre", "variables": (POSITION,)}
    changed |= {"human_reward": None, "sparse_reward": reward and baseline(reward)}
    population = Population(Problem(str(puck), "centre"), settings, trainings)
    async with Fleet(ProcessWall(), scratch, 1) as fleet:
        speed, start = await measure_speed(
            fleet, population, description.model_copy(update=changed), trainings
        )
    assert 0.0 < start < time.monotonic() - began - MEASURED_SECONDS
    return speed


@pytest.mark.slow
async def test_what_is_measured_and_its_workers_are_gone(
    puck: Path, description: TaskDescription, tmp_path: Path
) -> None:
    assert await measured(puck, description, tmp_path / "speed", 2, None) > 0.0
    assert not list((tmp_path / "speed").glob("worker-*"))


@pytest.mark.slow
async def test_a_reward_that_breaks_is_an_error_with_a_way_out(
    puck: Path, description: TaskDescription, tmp_path: Path
) -> None:
    broken = "def compute_reward(puck_position):\n    raise ValueError('broken')\n"
    with pytest.raises(EurekaError, match=r"could not be measured: .*broken") as caught:
        await measured(puck, description, tmp_path / "speed", 2, broken)
    assert "--budget in env steps" in caught.value.hint
