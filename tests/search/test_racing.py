"""Who is stopped at a rung, and that it does not depend on who comes there first."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Mapping, Sequence

import pytest

from eureka_agent.records import Attempt, Operator, Proposal, RungScore, Stage
from eureka_agent.rewards import CodeReward
from eureka_agent.search.racing import GenerationRace, OpenRace, Rungs, behind, falls_behind
from eureka_agent.settings import TrainingSettings

# 10 iterations of 100 steps, a checkpoint after each
SETTINGS = TrainingSettings(env_steps=1000, num_envs=10, horizon=10, checkpoints=10)
RUNGS = Rungs(SETTINGS, (0.3, 0.5))


def attempt(sample: int, *scores: float) -> Attempt:
    """A candidate with its scores at the first rungs."""
    rungs = tuple(
        RungScore(env_steps=env_steps, fitness=score)
        for env_steps, score in zip(RUNGS.env_steps, scores, strict=False)
    )
    proposal = Proposal(
        reward=CodeReward(source="", author="offline"), reasoning="", operator=Operator.FRESH
    )
    return Attempt(
        id=f"1-{sample + 1:02d}",
        iteration=0,
        sample=sample,
        revision=0,
        proposal=proposal,
        stage=Stage.ACCEPTED,
        seed=0,
        rungs=rungs,
    )


def test_who_is_clearly_behind_by_hand() -> None:
    # median 10; distances 0, 0, 1, 1, 2, 6, their median 1: a spread of 1.4826 and a bar of 10 −
    # 0.74
    values: dict[int, float | None] = {0: 10.0, 1: 11.0, 2: 9.0, 3: 10.0, 4: 12.0, 5: 4.0}
    assert behind(values).keys() == {2, 5}
    assert "fitness 4.00, behind the median of 10.00" in behind(values)[5]


def test_at_most_half_are_stopped_whoever_they_are_compared_with() -> None:
    values: dict[int, float | None] = {0: 1.0, 1: 2.0, 2: 3.0, 3: 4.0, 4: 5.0}
    assert behind(values, [100.0, 101.0, 99.0, 100.0, 102.0, 98.0]).keys() == {0, 1}


def test_small_differences_are_noise() -> None:
    # all within 5 % of the median: half of that is the margin
    assert behind({0: 10.0, 1: 10.0, 2: 10.0, 3: 9.8}) == {}
    assert behind({0: 10.0, 1: 10.0, 2: 10.0, 3: 9.7}).keys() == {3}


def test_who_is_within_the_noise_of_the_seeds_goes_on() -> None:
    # as in the first test: a bar of 10 − 0.74, which noise of 1.5 lowers to 8.5, and noise of 0.5
    # leaves where it is
    values: dict[int, float | None] = {0: 10.0, 1: 11.0, 2: 9.0, 3: 10.0, 4: 12.0, 5: 4.0}
    assert behind(values, noise=1.5).keys() == {5}
    assert behind(values, noise=0.5).keys() == {2, 5}
    assert behind(values, noise=6.0) == {}


def test_negative_fitness_is_compared_as_what_it_is() -> None:
    assert behind({0: -10.0, 1: -11.0, 2: -10.5, 3: -40.0}).keys() == {3}


def test_nothing_is_said_of_who_has_no_fitness_yet() -> None:
    assert behind({0: None, 1: None, 2: 5.0}) == {}
    assert behind({0: None, 1: 9.0, 2: 9.0, 3: 1.0}).keys() == {3}


@pytest.mark.parametrize("margin", [0.0, 0.5, 1.0])
def test_the_best_is_never_stopped_nor_more_than_half(margin: float) -> None:
    generator = random.Random(0)
    for count in (2, 3, 8, 16):
        for _ in range(50):
            values: dict[int, float | None] = {
                place: generator.choice((0.0, generator.gauss())) for place in range(count)
            }
            earlier = [generator.gauss(5.0) for _ in range(generator.randrange(4))]
            stopped = behind(values, earlier, margin)
            best = max(value for value in values.values() if value is not None)
            assert len(stopped) <= count // 2
            assert any(value == best and place not in stopped for place, value in values.items())


async def test_at_the_second_rung_one_must_be_twice_as_far_behind() -> None:
    # median 10, spread 1.4826 (as in the first test): 9 is 0.67 of it behind, more than half and
    # less than the whole
    scores = {0: 10.0, 1: 11.0, 2: 9.0, 3: 10.0, 4: 12.0, 5: 4.0}
    for rung, stopped in ((0, {2, 5}), (1, {5})):
        race = GenerationRace(RUNGS, scores, [[], []])
        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            told = {
                candidate: group.create_task(race.at_rung(attempt(candidate), rung, score))
                for candidate, score in scores.items()
            }
            for candidate in scores if rung else ():
                await race.add_scores(attempt(candidate, 10.0))
        assert {candidate for candidate, task in told.items() if task.result()} == stopped


@pytest.mark.parametrize(
    ("shares", "steps"),
    [((0.3, 0.5), (300, 500)), ((0.25,), (300,)), ((0.5, 0.5), (500,)), ((0.95,), ()), ((), ())],
)
def test_rungs_are_at_checkpoints_before_the_last(
    shares: tuple[float, ...], steps: tuple[int, ...]
) -> None:
    assert Rungs(SETTINGS, shares).env_steps == steps


def test_a_training_with_one_checkpoint_has_no_rung() -> None:
    assert Rungs(SETTINGS.model_copy(update={"checkpoints": 1}), (0.3, 0.5)).places == ()


SCORES = {
    0: (10.0, 20.0),
    1: (11.0, 21.0),
    2: (9.9, 5.0),  # behind at the second rung
    3: (1.0,),  # behind at the first
}


async def race_through(arrival: Sequence[int]) -> dict[int, list[str]]:
    """Everybody comes to both rungs, in this order each time; what each was told there."""
    race = GenerationRace(RUNGS, SCORES, [[], []])
    told: dict[int, list[str]] = {candidate: [] for candidate in SCORES}

    async def run(candidate: int) -> None:
        for rung, score in enumerate(SCORES[candidate]):
            for _ in range(arrival.index(candidate)):
                await asyncio.sleep(0)
            stop = await race.at_rung(attempt(candidate), rung, score)
            told[candidate].append(stop)
            if stop:
                break
        await race.leave(candidate)

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        for candidate in arrival:
            group.create_task(run(candidate))
    return told


async def test_the_order_of_arrival_changes_nothing() -> None:
    expected = await race_through([0, 1, 2, 3])
    assert [bool(told[-1]) for told in expected.values()] == [False, False, True, True]
    assert [len(told) for told in expected.values()] == [2, 2, 2, 1]
    for arrival in itertools.permutations(range(4)):
        assert await race_through(arrival) == expected


async def test_nobody_waits_for_who_has_left() -> None:
    race = GenerationRace(RUNGS, range(4), [[]])
    waiting = [
        asyncio.create_task(race.at_rung(attempt(candidate), 0, 5.0)) for candidate in (0, 1)
    ]
    for left in (2, 3):
        await asyncio.sleep(0)
        assert not waiting[0].done()
        await race.leave(left)  # rejected, say
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        # of three, the second of two equal scores is in the better half in any case
        assert waiting[1].done()
    async with asyncio.timeout(10):
        assert [await task for task in waiting] == ["", ""]


async def test_who_is_in_the_better_half_in_any_case_does_not_wait() -> None:
    race = GenerationRace(RUNGS, range(6), [[]])
    tasks = {
        candidate: asyncio.create_task(race.at_rung(attempt(candidate), 0, score))
        for candidate, score in {0: 3.0, 1: 7.0, 2: None, 3: 5.0, 4: 9.0}.items()
    }
    for _ in range(20):
        await asyncio.sleep(0)
    # with the sixth there may be five scores, of which the worst two may be stopped: 3 and 5 wait,
    # and who has no score
    assert [candidate for candidate, task in tasks.items() if task.done()] == [1, 4]
    await race.leave(5)
    async with asyncio.timeout(10):
        # median 6, distances 3, 1, 1, 3: a spread of 2.97 and a bar of 4.5
        assert [bool(await task) for task in tasks.values()] == [True, False, False, False, False]


async def raced(
    scores: Mapping[int, float | None], earlier: Sequence[float], arrival: Sequence[int]
) -> dict[int, str]:
    """Who was stopped at the only rung, and why."""
    race, told = GenerationRace(RUNGS, scores, [earlier]), dict[int, str]()

    async def run(candidate: int) -> None:
        for _ in range(3 * arrival.index(candidate)):
            await asyncio.sleep(0)
        told[candidate] = await race.at_rung(attempt(candidate), 0, scores[candidate])

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        for candidate in scores:
            group.create_task(run(candidate))
    return {candidate: why for candidate, why in told.items() if why}


async def test_whoever_comes_first_what_is_decided_is_the_same() -> None:
    generator = random.Random(1)
    for _ in range(200):
        scores = {
            place: generator.choice((None, 0.0, generator.gauss()))
            for place in range(generator.randint(2, 9))
        }
        earlier = [generator.gauss() for _ in range(generator.randrange(4))]
        arrival = generator.sample(sorted(scores), len(scores))
        assert await raced(scores, earlier, arrival) == behind(scores, earlier)


async def test_a_race_that_is_taken_up_again_decides_as_before() -> None:
    """Three was stopped and one trained to the end before the kill; two had passed the first rung,
    zero had not come to it."""
    race = GenerationRace(RUNGS, SCORES, [[], []])
    for candidate in (1, 3):
        await race.add_scores(attempt(candidate, *SCORES[candidate]))
        await race.leave(candidate)
    passed = asyncio.create_task(race.at_rung(attempt(2), 0, 9.9))
    async with asyncio.timeout(10):
        assert await race.at_rung(attempt(0), 0, 10.0) == ""
        assert await passed == ""
        second = asyncio.create_task(race.at_rung(attempt(0), 1, 20.0))
        assert (await race.at_rung(attempt(2), 1, 5.0)).startswith("fitness 5.00")
        assert await second == ""


async def test_nobody_is_stopped_before_the_noise_is_known_and_the_better_half_goes_on() -> None:
    scores = {0: 10.0, 1: 11.0, 2: 9.0, 3: 10.0, 4: 12.0, 5: 4.0}
    race = GenerationRace(RUNGS, scores, [[]], noise_is_known=False)
    tasks = {
        each: asyncio.create_task(race.at_rung(attempt(each), 0, score))
        for each, score in scores.items()
    }
    for _ in range(50):
        await asyncio.sleep(0)
    assert [candidate for candidate, task in tasks.items() if task.done()] == [1, 3, 4]
    await race.set_noise([1.5])
    async with asyncio.timeout(10):
        assert {candidate for candidate, task in tasks.items() if await task} == {5}


async def test_earlier_generations_are_compared_with() -> None:
    race = GenerationRace(RUNGS, range(2), [[20.0, 21.0, 22.0]])
    first = asyncio.create_task(race.at_rung(attempt(0), 0, 5.0))
    async with asyncio.timeout(10):
        assert await race.at_rung(attempt(1), 0, 6.0) == ""  # at most half
        assert "behind the median of 20.00" in await first


@pytest.mark.parametrize(
    ("score", "others", "noise", "stopped"),
    [
        # of 4, 9, 10, 11 the median is 9.5, the distances 5.5, 0.5, 0.5, 1.5 and so the spread
        # 1.4826, half of which is 0.74
        (4.0, [9.0, 10.0, 11.0], 0.0, True),
        (4.0, [9.0, 10.0, 11.0], 6.0, False),  # the seeds alone do more
        # median 9.7, distances 0.3, 0.7, 0.3, 1.3: a bar of 9.7 − 0.37
        (9.4, [9.0, 10.0, 11.0], 0.0, False),
        (4.0, [9.0, 10.0], 0.0, False),  # too few to tell
        (None, [9.0, 10.0, 11.0], 0.0, False),
    ],
)
def test_who_comes_alone_is_compared_with_those_before(
    score: float | None, others: list[float], noise: float, stopped: bool
) -> None:
    assert bool(falls_behind(score, others, noise=noise)) is stopped


async def test_in_an_open_race_nobody_waits_for_who_has_not_come() -> None:
    known = [attempt(0, 9.0), attempt(1, 10.0), attempt(2, 11.0), attempt(3)]

    async def noise(checkpoint: int) -> float:
        assert checkpoint == RUNGS.places[0]
        return 0.0

    race = OpenRace(RUNGS, lambda: known, noise)
    assert await race.at_rung(attempt(1), 0, 10.0) == ""
    stop = await race.at_rung(attempt(4), 0, 4.0)
    assert stop == "fitness 4.00, behind the median of 9.50"
