"""Benchmarks read from a search's events where the time went."""

from __future__ import annotations

from typing import cast

import pytest
import where_time_goes
from _searches import Watch

from eureka_agent.journal.entries import BaseEntry, RunStarted
from eureka_agent.journal.progress import TrainingEnded, TrainingQueued


def watched(*events: tuple[float, BaseEntry], seconds: float = 0.0) -> Watch:
    watch = Watch()
    watch.events = list(events)
    watch.seconds = lambda: seconds  # type: ignore[method-assign]
    return watch


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
