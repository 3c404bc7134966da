"""A search with racing: who is stopped is archived, costs no later stage, and a killed search stops
the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from raced_trials import RacedTrials, point, restorable
from scripted_search import Fuse, Killed, ScriptedDesigner, ScriptedSearch, reward, rows
from thoroughness import third

from eureka_agent.archive.run_folder import Run, open_run
from eureka_agent.journal.entries import AttemptImported
from eureka_agent.records import Stage
from eureka_agent.search.summary import run_report
from eureka_agent.search.trial import Trial, TrialRequest

MakeRun = Callable[..., Run]

# 10 iterations of 10 × 10 steps with a checkpoint after each: rungs at 400 and 700 env steps
SETTINGS = {
    "iterations": 2,
    "samples": 4,
    "rungs": (0.4, 0.7),
    "confirm": 0,
    "finalists": 2,
    "final_seeds": 1,
    "env_steps": 1000,
    "num_envs": 10,
    "horizon": 10,
}
FITNESS = {
    reward(1): 8.0,
    reward(2): 1.0,
    reward(3): 8.5,
    reward(4): 9.0,
    reward(5): 9.5,
    reward(6): 2.0,
}
FITNESS |= {reward(7): 9.2, reward(8): 9.1, reward(100): 9.0, reward(200): 5.0}
SCRIPT = [reward(weight) for weight in range(1, 9)]
ROWS = [
    ("1-01", "trained", reward(1), 8.0),
    ("1-02", "stopped", reward(2), None),
    ("1-03", "trained", reward(3), 8.5),
    ("1-04", "trained", reward(4), 9.0),
    ("2-01", "trained", reward(5), 9.5),
    ("2-02", "stopped", reward(6), None),
    ("2-03", "trained", reward(7), 9.2),
    ("2-04", "trained", reward(8), 9.1),
]


def search_with(run: Run, fuse: Fuse) -> ScriptedSearch:
    known = sum(attempt.revision == 0 for attempt in run.archive.attempts())
    return ScriptedSearch(
        run, ScriptedDesigner(SCRIPT[known:], fuse=fuse), RacedTrials(FITNESS, fuse), fuse=fuse
    )


async def test_who_is_behind_is_stopped_and_told_of(make_run: MakeRun) -> None:
    run = restorable(make_run(**SETTINGS))
    search = search_with(run, Fuse())
    await search.see_through()
    assert rows(run) == ROWS
    stopped = run.archive.attempt("1-02")
    assert stopped is not None
    # at the first rung the median of 8, 1, 8.5 and 9 is 8.25
    assert stopped.reason == "fitness 1.00, behind the median of 8.25"
    assert stopped.outcome is not None
    assert stopped.outcome.env_steps == 400
    assert [record.fitness for record in stopped.outcome.checkpoints] == [1.0] * 4
    assert stopped.diagnosis is not None
    assert stopped.diagnosis.fitness == 1.0
    assert (
        stopped.diagnosis.endings
        == "16 episodes of 3 steps on average, 16 ended early (left_the_rail 16)"
    )
    assert search.trials.steps["1-02"] == 400
    assert search.trials.steps["1-01"] == 700
    # the next generation is shown it as a weaker attempt, not as a mistake, and it is no parent and
    # no finalist
    told = search.designer.requests[4]
    assert told.failures == ()
    weaker = told.memory[-1]
    assert (weaker.id, weaker.fitness, weaker.progress, weaker.stopped) == (
        "1-02",
        1.0,
        0.4,
        stopped.reason,
    )
    assert [other.stopped for other in told.memory[:-1]] == [""] * (len(told.memory) - 1)
    assert {parent.id for request in search.designer.requests for parent in request.parents} <= {
        "1-04",
        "1-03",
    }
    report = run_report(run)
    assert {score.name for score in report.scores} == {"2-01", "2-03", "human", "sparse"}
    assert report.cost.search_trainings == 8
    # six candidates and four others to the end (the scripted outcome says 10,000 steps), two to the
    # first rung
    assert report.cost.env_steps == 10 * 10_000 + 2 * 400


@pytest.mark.parametrize("settings", [{"racing": False}, {"rungs": ()}, {"checkpoints": 1}])
async def test_without_rungs_nobody_is_stopped(make_run: MakeRun, settings: dict[str, Any]) -> None:
    run = restorable(make_run(**{**SETTINGS, **settings}))
    await search_with(run, Fuse()).see_through()
    assert {attempt.stage for attempt in run.archive.attempts()} == {Stage.TRAINED}


async def test_where_trainings_cannot_pause_there_is_no_race(make_run: MakeRun) -> None:
    run = make_run(**SETTINGS)
    search = search_with(run, Fuse())
    await search.see_through()
    assert {attempt.stage for attempt in run.archive.attempts()} == {Stage.TRAINED}
    assert all(request.pauses == () for request in search.trials.requests)


RUNG_VISITS = 4 + 3 + 4 + 3


@pytest.mark.parametrize(
    ("kind", "number"),
    third(
        [("rung", number) for number in range(1, RUNG_VISITS + 1)]
        + [("trained", number) for number in range(1, 11)]
    ),
)
async def test_killed_and_resumed_the_same_are_stopped(
    make_run: MakeRun, kind: str, number: int
) -> None:
    run = restorable(make_run(**SETTINGS))
    fuse = Fuse(kind, number)
    killed = False
    try:
        async with asyncio.timeout(30):
            await search_with(run, fuse).see_through()
    except* Killed:
        killed = True
    assert killed
    resumed = restorable(open_run(run.folder))
    async with asyncio.timeout(30):
        await search_with(resumed, Fuse()).see_through()
    assert rows(resumed) == ROWS


class FailingTrials(RacedTrials):
    """The second candidate turns NaN behind the first rung."""

    async def run(self, request: TrialRequest) -> Trial:
        if request.reward.source != reward(12):
            return await super().run(request)
        points = tuple(
            point(steps, FITNESS[request.reward.source]) for steps in range(100, 401, 100)
        )
        assert request.on_pause is not None
        assert (
            await request.on_pause(points, Path(f"{FITNESS[request.reward.source]}.policy")) == ""
        )
        return Trial(None, points, None, "went NaN", 0)


async def test_who_failed_behind_a_rung_still_counts_there_when_the_race_is_resumed(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With it the median of 10, 10, 9 and 8.9 is 9.5 and two are stopped; of the other three it
    would be 9, and nobody."""
    for weight, fitness in ((11, 10.0), (12, 10.0), (13, 9.0), (14, 8.9)):
        monkeypatch.setitem(FITNESS, reward(weight), fitness)
    run = restorable(make_run(**{**SETTINGS, "iterations": 1, "finalists": 1}))
    script = [reward(weight) for weight in (11, 12, 13, 14)]
    await ScriptedSearch(run, ScriptedDesigner(script), FailingTrials(FITNESS)).engine.search()
    expected = [("1-01", "trained"), ("1-02", "failed"), ("1-03", "stopped"), ("1-04", "stopped")]
    assert [row[:2] for row in rows(run)] == expected
    for name in ("1-03", "1-04"):  # killed before these two were archived
        attempt = run.archive.attempt(name)
        assert attempt is not None
        run.archive.append(
            AttemptImported(
                record=attempt.model_copy(update={"stage": Stage.ACCEPTED, "outcome": None})
            )
        )
    resumed = restorable(open_run(run.folder))
    await ScriptedSearch(resumed, ScriptedDesigner([]), FailingTrials(FITNESS)).engine.search()
    assert [row[:2] for row in rows(resumed)] == expected
