"""Searches played through at a given pace; every time is worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eureka_agent.records import ParameterSpec, TaskDescription
from eureka_agent.search.pace import Pace
from eureka_agent.search.played_machine import Kind, PlayedMachine, Scoring
from eureka_agent.search.wall_time import (
    DRAFT_SECONDS,
    REPLY_SECONDS,
    ROLLOUT_SHARE,
    VIDEO_SECONDS,
    Latency,
    scores_of_randomised,
    scoring_of,
    wall_time,
)
from eureka_agent.settings import SearchSettings
from eureka_agent.training_counts import TrainingCounts

AT_ONCE = Scoring(0.0, 0.0)
NO_MODEL = Latency(1, 0.5, 0.0, 0.0)


def pace(workers: int = 1, *, further: float = 0.5) -> Pace:
    """A second for an update of a training alone."""
    return Pace(
        workers=workers, alone=1.0, further=further, start_seconds=2.0, measured="2026-11-24"
    )


@pytest.mark.parametrize(
    ("trainings", "seconds"),
    [
        (2, 10 + 5),  # each alone in a worker; a pass over two trainings takes 3 + 2 s
        (4, 15 + 7),  # two in each worker, 1.5 s an update
        (5, 25 + 4),  # the fifth begins at 15 s and is alone; the first four are scored by 22 s
    ],
)
def test_trainings_share_workers_and_wait_for_slots(trainings: int, seconds: float) -> None:
    machine = PlayedMachine(pace(2), slots=2, updates=10, scoring=Scoring(3.0, 1.0))
    machine.submit(Kind.CANDIDATE, trainings)
    machine.finish(*Kind)
    assert machine.now == pytest.approx(seconds)


def test_a_later_training_slows_the_one_beside_it() -> None:
    machine = PlayedMachine(pace(), slots=2, updates=10, scoring=Scoring(3.0, 1.0))
    machine.submit(Kind.CANDIDATE, 1)
    machine.submit(Kind.CANDIDATE, 1, after=4.0)
    # the first has 6 updates left, at 1.5 s: it ends at 13 s. The second has 4 left then and ends
    # at 17 s, as does the pass of 4 s over the first
    assert machine.next_scored() == [Kind.CANDIDATE]
    assert machine.now == pytest.approx(17.0)
    machine.finish(Kind.CANDIDATE)
    assert machine.now == pytest.approx(21.0)


def test_baselines_take_the_slots_that_no_candidate_needs() -> None:
    machine = PlayedMachine(pace(), slots=1, updates=10, scoring=AT_ONCE)
    machine.submit(Kind.BASELINE, 1)
    machine.submit(Kind.CANDIDATE, 1)
    assert machine.next_scored() == [Kind.CANDIDATE]
    assert machine.now == pytest.approx(10.0)
    machine.finish(Kind.BASELINE)
    assert machine.now == pytest.approx(20.0)


def settings(**values: object) -> SearchSettings:
    """Trainings of ten updates, with confirmations after the first generation of two."""
    sizes: dict[str, object] = {"env_steps": 160, "num_envs": 4, "horizon": 4, "video": False}
    sizes["strategy"] = "greedy"
    return SearchSettings.model_validate({**sizes, "iterations": 2, "samples": 2, **values})


COUNTS = TrainingCounts(
    candidates=2, confirmations=1, confirmed=1, finals=1, likely_finals=1, baselines=0
)


def seconds_of(search: SearchSettings, latency: Latency = NO_MODEL) -> float:
    return wall_time(search, COUNTS, pace(further=0.0), 4, AT_ONCE, latency)


def test_generations_wait_for_each_other() -> None:
    # twice: 1 s of design, 10 s of candidates; 10 s of confirmation between them; then 10 s of
    # finals; the start
    assert seconds_of(settings()) == pytest.approx(2 * 11 + 10 + 10 + 2)
    assert seconds_of(settings(video=True)) == pytest.approx(44 + VIDEO_SECONDS)
    # fresh rewards need no order of those before, so nothing is confirmed
    assert seconds_of(settings(strategy="best-of-n")) == pytest.approx(34)


def test_finalists_get_a_seed_each_before_the_winner_gets_its_others() -> None:
    counts = replace(COUNTS, finals=9, likely_finals=5)
    found = wall_time(settings(), counts, pace(further=0.0), 4, AT_ONCE, NO_MODEL)
    # three finalists side by side, then two more seeds, 10 s each, in place of one final
    assert found == pytest.approx(44 + 10)


def test_a_later_generation_waits_for_the_analyst_and_then_for_designs() -> None:
    # 5 s for two designs one after the other, in the second generation 7 s more; 3 s of judging
    latency = Latency(1, 2.5, 7.0, 3.0)
    assert seconds_of(settings(), latency) == pytest.approx(2 * (5 + 10 + 3) + 10 + 7 + 10 + 2)


def test_a_later_proposal_waits_for_its_further_drafts() -> None:
    # 3 s for each of two proposals of the second generation
    assert seconds_of(settings(), replace(NO_MODEL, drafts=3.0)) == pytest.approx(44 + 6)


def test_the_second_generation_waits_for_baselines() -> None:
    counts = replace(COUNTS, baselines=3)
    found = wall_time(settings(), counts, pace(further=0.0), 2, AT_ONCE, NO_MODEL)
    # two baselines train from 0 to 10 s, while one candidate after the other is designed in 1 s. The
    # candidates train until 20 s. The third baseline and the confirmation then take until 30 s,
    # and the second generation another 11 s
    assert found == pytest.approx(30 + 11 + 10 + 2)


def test_a_steady_search_designs_when_a_place_is_free() -> None:
    latency = Latency(8, 5.0, 0.0, 0.0)
    # replies at 5 s, trained at 15 s; the next two are designed by 20 s and trained at 30 s, while
    # the confirmation of the first ends at 25 s
    steady = settings(schedule="steady", model=("openai/test",))
    assert seconds_of(steady, latency) == pytest.approx(30 + 10 + 2)
    # one request at a time: the second reply comes at 10 s, so its place goes on 5 s later
    one_by_one = Latency(1, 5.0, 0.0, 0.0)
    assert seconds_of(steady, one_by_one) == pytest.approx(35 + 10 + 2)
    # two replies for each of the later proposals
    assert seconds_of(steady, replace(latency, drafts=5.0)) == pytest.approx(35 + 10 + 2)


@pytest.mark.parametrize("schedule", ["generations", "steady"])
def test_each_of_many_generations_takes_as_long_as_the_one_before(schedule: str) -> None:
    known = [seconds_of(settings(schedule=schedule, iterations=number)) for number in (4, 5, 6)]
    assert known[2] - known[1] == pytest.approx(known[1] - known[0])
    many = seconds_of(settings(schedule=schedule, iterations=1_000_000))
    assert many == pytest.approx(known[0] + 999_996 * (known[1] - known[0]))


def test_models_are_waited_for() -> None:
    search = settings(model=("openai/test",), fitness="judged", samples=4, concurrency=3)
    found = Latency.of(search, designs=True, analyses=True)
    # two comparisons for each of four attempts, four at a time
    assert found == Latency(3, REPLY_SECONDS, REPLY_SECONDS, 2 * REPLY_SECONDS)
    assert Latency.of(search, designs=False, analyses=False).judging == 0.0
    # further drafts are requests one after the other, and none where no fitness compares them
    drafting = settings(model=("openai/test",), drafts=4)
    assert Latency.of(drafting, designs=True, analyses=False).drafts == 3 * REPLY_SECONDS
    assert Latency.of(search, designs=True, analyses=False).drafts == 0.0
    assert Latency.of(settings(), designs=False, analyses=False).drafts == 31 * DRAFT_SECONDS


def test_a_score_steps_whole_episodes(description: TaskDescription) -> None:
    search = settings(kept_policies=3, scoring_episodes=10, evaluation_episodes=20)
    found = scoring_of(search, description, pace(further=0.25))
    # 500 steps; an update alone takes 1 s, of which 0.25 s are for its 4 x 4 samples
    assert found.any == pytest.approx(2 * 500 * ROLLOUT_SHARE * 0.75 / 4)
    assert found.each == pytest.approx((3 * 10 + 20) * 500 * ROLLOUT_SHARE * 0.25 / 16)


def test_distributions_train_after_the_finals_and_are_scored_in_two_passes(
    description: TaskDescription,
) -> None:
    counts = replace(COUNTS, randomised=8)
    one_after_another = wall_time(settings(), counts, pace(further=0.0), 4, AT_ONCE, NO_MODEL)
    # eight trainings of 10 s on four slots
    assert one_after_another == pytest.approx(seconds_of(settings()) + 20)
    mass = ParameterSpec(name="mass", default=1.0, low=0.5, high=2.0)
    described = description.model_copy(update={"parameters": (mass,)})
    search = settings(
        randomise=3, finalists=1, final_seeds=2, scoring_episodes=10, evaluation_episodes=20
    )
    # nine values of the mass, and the policies of three distributions and of the defaults, twice
    episodes = 9 * 10 + 2 * 4 * 2 * 20
    expected = 500 * ROLLOUT_SHARE * (2 * 0.75 / 4 + episodes * 0.25 / 16)
    assert scores_of_randomised(search, described, pace(further=0.25)) == pytest.approx(expected)
