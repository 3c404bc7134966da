"""How benchmarks read a search's events: who would have won when, and what the time went to."""

from __future__ import annotations

from typing import Any, cast

import pytest
import racing_time
import where_time_goes
from _searches import Watch

from eureka_agent.journal.entries import (
    AttemptEnded,
    AttemptRepeated,
    BaseEntry,
    Proposed,
    RunStarted,
    TrainingEnded,
    TrainingQueued,
)
from eureka_agent.records import Attempt, Operator, Outcome, Proposal, Repeat, Stage
from eureka_agent.rewards import CodeReward


def outcome(fitness: float) -> Outcome:
    return Outcome(
        env_steps=10,
        seconds=1.0,
        checkpoints=(),
        best_checkpoint=0,
        training_fitness=fitness,
        fitness=fitness,
    )


def attempt(sample: int, fitness: float, *repeats: float) -> Attempt:
    return Attempt(
        id=f"1-{sample}",
        iteration=1,
        sample=sample,
        revision=0,
        proposal=Proposal(
            reward=CodeReward(source="", author="offline"), reasoning="", operator=Operator.FRESH
        ),
        stage=Stage.TRAINED,
        seed=sample,
        outcome=outcome(fitness),
        repeats=tuple(Repeat(iteration=1, seed=9, outcome=outcome(value)) for value in repeats),
    )


def trained(seconds: float, one: Attempt) -> list[tuple[float, BaseEntry]]:
    proposed = Proposed(
        attempt=one.id,
        iteration=one.iteration,
        sample=one.sample,
        revision=one.revision,
        proposal=one.proposal,
        seed=one.seed,
    )
    ended = AttemptEnded(attempt=one.id, stage=one.stage, outcome=one.outcome)
    return [(1.0, proposed), (seconds, ended)]


def watched(*events: tuple[float, BaseEntry], seconds: float = 0.0) -> Watch:
    watch = Watch()
    watch.events = list(events)
    watch.seconds = lambda: seconds  # type: ignore[method-assign]
    return watch


def test_a_second_training_takes_back_what_a_lucky_first_one_gave() -> None:
    lucky = attempt(0, 10.0, 2.0)
    watch = watched(
        *trained(5.0, attempt(0, 10.0)),
        *trained(6.0, attempt(1, 7.0)),
        (9.0, AttemptRepeated(attempt="1-0", repeat=lucky.repeats[0])),
        *trained(11.0, attempt(2, 9.0)),
    )
    found = racing_time.winners(watch)
    assert found == [(5.0, 10.0), (9.0, 7.0), (11.0, 9.0)]  # (10 + 2) / 2 is behind 7
    assert racing_time.reached(found, 9.0, to_stay=False) == 5.0
    assert racing_time.reached(found, 9.0, to_stay=True) == 11.0
    assert racing_time.reached(found, 7.0, to_stay=True) == 5.0


def test_times_are_compared_at_the_fitness_that_both_arms_reached() -> None:
    racing = {"seconds": 30.0, "winners": [(4.0, 1.0), (10.0, 8.0)], "final_fitness": None}
    without = {"seconds": 60.0, "winners": [(16.0, 3.0), (40.0, 9.0)], "final_fitness": None}
    found = racing_time.compare({"racing": racing, "without": without})
    assert found["end"] == 0.5
    assert (
        found["first"] == found["to_stay"] == pytest.approx(10.0 / 40.0)
    )  # 8 is reached at 10 s and at 40 s
    assert found["difference"] == -1.0
    fresh = {
        "racing": {**racing, "final_fitness": 6.0},
        "without": {**without, "final_fitness": 5.5},
    }
    assert racing_time.compare(fresh)["difference"] == 0.5


def test_seeds_are_summed_up_by_geometric_means_and_a_paired_interval() -> None:
    def pair(ratio: float, difference: float) -> dict[str, Any]:
        racing = {
            "seconds": ratio * 10.0,
            "winners": [(ratio * 10.0, 5.0 + difference)],
            "final_fitness": None,
        }
        without = {"seconds": 10.0, "winners": [(10.0, 5.0)], "final_fitness": None}
        return {"racing": racing, "without": without}

    found = racing_time.summarize({"1": pair(0.5, 1.0), "2": pair(2.0, -1.0), "3": pair(1.0, 0.0)})
    assert found["end"] == pytest.approx(1.0)
    assert found["difference"] == pytest.approx(0.0)
    assert found["difference_half_width"] == pytest.approx(
        4.30 / 3**0.5
    )  # deviation 1, three seeds
    assert "difference_half_width" not in racing_time.summarize({"1": pair(0.5, 1.0)})


def test_every_moment_of_a_search_is_counted_once() -> None:
    queued = TrainingQueued(job="a@1", label="a", training="search", seed=1)
    ended = TrainingEnded(job="a@1", label="a", training="search", fitness=1.0)
    started = cast("RunStarted", RunStarted.__new__(RunStarted))
    watch = watched((2.0, started), (3.0, queued), (13.0, ended), seconds=15.0)
    stopwatch = where_time_goes.Stopwatch(watch)
    stopwatch.intervals = [
        where_time_goes.Interval("design", 2.0, 3.0),
        where_time_goes.Interval("job a@1", 3.0, 10.0),
        where_time_goes.Interval("start of workers", 3.0, 5.0),
        where_time_goes.Interval("evaluation", 10.5, 13.0),
        where_time_goes.Interval("critic", 9.0, 11.0),
    ]
    stopwatch.lives = cast(
        "dict[where_time_goes.TrainingWorker, list[float]]", {"the only one": [5.0, 15.0]}
    )
    found = {what: seconds for what, seconds in stopwatch.phases().items() if seconds}
    assert found == pytest.approx(
        {
            "start": 2.0,
            "design": 1.0,
            "start of workers": 2.0,  # 3 to 5: nobody trains yet
            "training": 5.0,  # 5 to 10, also while the critic works
            "critic": 0.5,  # 10 to 10.5
            "evaluation": 2.5,
            "end": 2.0,
        }
    )
