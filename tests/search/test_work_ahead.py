"""A search that works ahead: the next generation is designed at the last rung, from what is known
there whatever the timing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from outcomes import make_outcome
from planned_attempts import planned
from raced_trials import Jittery, RacedTrials, restorable
from scripted_search import IMPORTING, Fuse, Killed, ScriptedDesigner, ScriptedSearch, reward, rows

from eureka_agent.archive.run_folder import Run, open_run
from eureka_agent.designer.interface import DesignRequest
from eureka_agent.records import Evaluation, Proposal, Repeat, Stage
from eureka_agent.report.events import IterationEnded, IterationStarted
from eureka_agent.search.seeds import derive_seed
from eureka_agent.search.standing import rungs_of, standing
from eureka_agent.search.summary import run_report
from eureka_agent.search.trial import Trial, TrialRequest
from eureka_agent.settings import SearchSettings

MakeRun = Callable[..., Run]

SETTINGS = {
    "iterations": 4,
    "rungs": (0.4, 0.7),
    "samples": 3,
    "confirm": 1,
    "finalists": 1,
    "final_seeds": 1,
    "env_steps": 1000,
    "num_envs": 10,
    "horizon": 10,
}
SCRIPT = [reward(weight) for weight in range(1, 13)]
FITNESS = dict(
    zip(SCRIPT, (5.0, 1.0, 6.0, 7.0, 6.5, 8.0, 2.0, 9.0, 8.5, 9.5, 9.2, 9.4), strict=True)
)
FITNESS |= {reward(100): 6.0, reward(200): 1.0}
# at the first rung 1 is behind the median 5 of 5, 1, 6; 2 behind the median of the third generation
# and those before
STAGES = {
    "1-02": "stopped",
    "3-01": "stopped",
}


def search_with(
    run: Run, trials: RacedTrials | None = None, fuse: Fuse | None = None, **options: Any
) -> ScriptedSearch:
    known = sum(attempt.revision == 0 for attempt in run.archive.attempts())
    designer = ScriptedDesigner(SCRIPT[known:], fuse=fuse)
    return ScriptedSearch(run, designer, trials or RacedTrials(FITNESS, fuse), fuse=fuse, **options)


def asked(search: ScriptedSearch) -> list[list[str]]:
    return [[parent.id for parent in request.parents] for request in search.designer.requests]


async def test_a_generation_is_designed_while_the_one_before_it_trains(make_run: MakeRun) -> None:
    run = restorable(make_run(**{**SETTINGS, "iterations": 2}))
    second_asked_for = asyncio.Event()
    at_that_time: dict[str, Stage] = {}

    class Observant(ScriptedDesigner):
        async def propose(self, request: DesignRequest) -> Proposal:
            if len(self.requests) == 3:
                at_that_time.update(
                    {attempt.id: attempt.stage for attempt in run.archive.attempts()}
                )
                second_asked_for.set()
            return await super().propose(request)

    class Patient(RacedTrials):
        async def before_the_end(self, request: TrialRequest) -> None:
            await second_asked_for.wait()  # for ever, in a search that waits for the end

    events: list[Any] = []
    designer = Observant(SCRIPT)
    async with asyncio.timeout(30):
        await ScriptedSearch(
            run, designer, Patient(FITNESS), observer=events.append
        ).engine.search()
    assert at_that_time == {"1-01": Stage.ACCEPTED, "1-02": Stage.STOPPED, "1-03": Stage.ACCEPTED}
    order = [
        (type(event).__name__, event.iteration)
        for event in events
        if isinstance(event, IterationStarted | IterationEnded)
    ]
    assert order == [
        ("IterationStarted", 0),
        ("IterationStarted", 1),
        ("IterationEnded", 0),
        ("IterationEnded", 1),
    ]


@pytest.mark.parametrize("settings", [{"work_ahead": False}, {"rungs": ()}])
async def test_without_it_a_generation_waits_for_the_end(
    make_run: MakeRun, settings: dict[str, Any]
) -> None:
    run = restorable(make_run(**{**SETTINGS, "iterations": 2, **settings}))
    events: list[Any] = []
    await search_with(run, observer=events.append).engine.search()
    order = [
        event.iteration for event in events if isinstance(event, IterationEnded | IterationStarted)
    ]
    assert order == [0, 0, 1, 1]
    assert all(attempt.midway is None for attempt in run.archive.attempts())


async def test_parents_are_the_best_at_the_last_rung_and_finalists_the_best_at_the_end(
    make_run: MakeRun,
) -> None:
    run = restorable(make_run(**{**SETTINGS, "iterations": 2, "racing": False}))
    trials = RacedTrials(
        FITNESS, at_rungs={SCRIPT[0]: 9.0, SCRIPT[2]: 4.0}
    )  # 5 and 6 at the end, and in the curves
    search = search_with(run, trials)
    trained = await search.engine.search()
    assert asked(search)[3:] == [["1-01"]] * 3
    parent = search.designer.requests[3].parents[0]
    assert (parent.fitness, parent.progress) == (9.0, 0.7)
    assert parent.diagnosis is not None
    assert parent.diagnosis.fitness == 9.0
    assert parent.diagnosis.fitness_values == (5.0,) * 7  # of ten checkpoints those up to 70 %
    # the episodes at that rung, in which the cart is where its score says
    assert (
        "The policy at the last of these points, acting without exploration noise in 16 episodes:"
        " mean fitness 9 s (standard deviation between episodes 0), 9 to 9; 16 ended early"
        " (left_the_rail 16), after 3 steps on average." in parent.diagnosis.text
    )
    assert (
        parent.diagnosis.endings
        == "16 episodes of 3 steps on average, 16 ended early (left_the_rail 16)"
    )
    assert (
        "Worst episode (fitness 9, ended by left_the_rail after 3 steps):\ntime [s]"
        in parent.diagnosis.text
    )
    assert "In both episodes constant: cart_position 9" in parent.diagnosis.text
    assert "Best episode (" in parent.diagnosis.text
    assert not list(run.folder.rglob("midway-*"))
    assert trials.requests[0].pauses == (700,)  # nobody is stopped, so nobody pauses before
    assert [attempt.id for attempt in trained][:3] == ["2-03", "2-01", "2-02"]
    first = run.archive.attempt("1-01")
    assert first is not None
    assert [(score.env_steps, score.fitness) for score in first.rungs] == [(700, 9.0)]
    # all from the same start states
    assert {(seed, episodes) for _, seed, episodes in trials.scored} == {
        (derive_seed(0, "rung"), 16)
    }


async def test_all_attempts_are_compared_at_the_last_rung_and_by_repeats_that_are_known(
    make_run: MakeRun,
) -> None:
    """The first generation's repeats are made while the second trains; the fourth knows them, the
    third must not."""
    run = restorable(make_run(**{**SETTINGS, "racing": False, "confirm": 1, "samples": 2}))
    table = {
        **FITNESS,
        **dict(zip(SCRIPT, (10.0, 1.0, 5.0, 5.0, 5.5, 5.5, 5.0, 5.0), strict=False)),
    }

    class Disappointing(RacedTrials):
        async def run(self, request: TrialRequest) -> Trial:
            trial = await super().run(request)
            if request.kind != "repeat" or request.source != SCRIPT[0] or trial.outcome is None:
                return trial
            return replace(trial, outcome=trial.outcome.model_copy(update={"fitness": 2.0}))

    search = search_with(run, Disappointing(table, at_rungs={SCRIPT[0]: 9.0}))
    await search.engine.search()
    first = run.archive.attempt("1-01")
    assert first is not None
    assert [repeat.iteration for repeat in first.repeats] == [0]
    # 9 at the rung became 10 at the end, so a repeat that ends with 2 counts as 1: a mean of 5, and
    # 3-01 with 5.5 is ahead
    assert asked(search)[2:] == [["1-01"]] * 4 + [["3-01"]] * 2


async def test_what_is_designed_does_not_depend_on_who_trains_faster(make_run: MakeRun) -> None:
    found = []
    for seed in range(8):
        search = search_with(restorable(make_run(**SETTINGS)), Jittery(seed, FITNESS))
        await search.engine.search()
        found.append((search.designer.requests, rows(search.run)))
    assert all(other == found[0] for other in found[1:])
    requests, attempts = found[0]
    assert {row[0]: row[1] for row in attempts if row[1] != "trained"} == STAGES
    assert [[parent.id for parent in request.parents] for request in requests] == [
        *[[]] * 3,
        *[["1-03"]] * 3,
        *[["2-03"]] * 3,
        *[["3-02"]] * 3,
    ]


POINTS = [("rung", number) for number in range(1, 22)] + [
    ("propose", number) for number in range(4, 13)
]
POINTS += [("score", number) for number in range(1, 22)]
POINTS += [("trained", number) for number in range(1, 15)]


@pytest.mark.parametrize(("kind", "number"), POINTS)
async def test_killed_at_any_point_it_designs_and_stops_the_same(
    make_run: MakeRun, kind: str, number: int
) -> None:
    unbroken = search_with(restorable(make_run(**SETTINGS)))
    await unbroken.engine.search()
    run = restorable(make_run(**SETTINGS))
    killed = False
    try:
        async with asyncio.timeout(30):
            await search_with(run, fuse=Fuse(kind, number)).engine.search()
    except* Killed:
        killed = True
    assert killed
    resumed = search_with(restorable(open_run(run.folder)))
    async with asyncio.timeout(30):
        await resumed.engine.search()
    assert rows(resumed.run) == rows(unbroken.run)
    missing = resumed.designer.requests
    assert missing == unbroken.designer.requests[len(unbroken.designer.requests) - len(missing) :]
    assert [attempt.repeats for attempt in resumed.run.archive.attempts()] == [
        attempt.repeats for attempt in unbroken.run.archive.attempts()
    ]


async def test_who_fails_behind_the_last_rung_was_a_parent_and_is_no_finalist(
    make_run: MakeRun,
) -> None:
    class Breaking(RacedTrials):
        async def run(self, request: TrialRequest) -> Any:
            trial = await super().run(request)
            if request.source == SCRIPT[2]:
                return type(trial)(None, trial.points, None, "went NaN", 0)
            return trial

    run = restorable(make_run(**{**SETTINGS, "iterations": 2}))
    search = search_with(run, Breaking(FITNESS))
    trained = await search.engine.search()
    failed = run.archive.attempt("1-03")
    assert failed is not None
    assert (failed.stage, failed.reason) == (Stage.FAILED, "went NaN")
    assert asked(search)[3:] == [["1-03"]] * 3
    assert "1-03" not in [attempt.id for attempt in trained]


@pytest.mark.parametrize("iterations", [0, 1, 9, 10, 11])
async def test_a_training_may_break_off_at_any_time(make_run: MakeRun, iterations: int) -> None:
    """Also before its first checkpoint, of which there is one every ten of the hundred
    iterations."""
    run = restorable(make_run(**{**SETTINGS, "iterations": 2, "env_steps": 10_000, "confirm": 0}))

    class Breaking(RacedTrials):
        async def run(self, request: TrialRequest) -> Trial:
            if request.source != SCRIPT[0]:
                return await super().run(replace(request, pauses=()))
            return Trial(None, self._points(100 * iterations, 5.0), None, "became NaN", 0)

    await search_with(run, Breaking(FITNESS)).engine.search()
    failed = run.archive.attempt("1-01")
    assert failed is not None
    assert (failed.stage, failed.reason) == (Stage.FAILED, "became NaN")
    assert (None if failed.outcome is None else failed.outcome.env_steps) == (
        1000 if iterations >= 10 else None
    )


async def test_when_nothing_comes_of_a_generation_the_one_before_it_still_comes_to_its_end(
    make_run: MakeRun,
) -> None:
    """Its candidates are all that the run has to show, and a resumption would break them off
    again."""
    settings = {**SETTINGS, "iterations": 2, "racing": False, "revisions": 0, "retry_rounds": 0}
    run = restorable(make_run(**settings))
    search = ScriptedSearch(
        run, ScriptedDesigner([*SCRIPT[:3], *[IMPORTING] * 3]), Jittery(1, FITNESS)
    )
    await search.engine.search()
    assert "every proposal of iteration 2 failed, in 1 round of 3" in run_report(run).remarks[0]
    assert [(row[0], row[1]) for row in rows(run)] == [
        *[(f"1-0{number}", "trained") for number in (1, 2, 3)],
        *[(f"2-0{number}", "rejected") for number in (1, 2, 3)],
    ]
    assert {each.id: len(each.repeats) for each in run.archive.attempts() if each.repeats} == {
        "1-03": 1
    }


async def test_a_generation_that_could_not_be_scored_at_all_is_tried_again(
    make_run: MakeRun,
) -> None:
    class Unscored(RacedTrials):
        """No policy of the first three can be scored, at a rung or at the end."""

        async def score(
            self, policy: Path, seed: int, episodes: int, trajectories: Path | None = None
        ) -> Evaluation | None:
            unscored = policy.stem in ("5.0", "1.0", "6.0")
            return None if unscored else await super().score(policy, seed, episodes, trajectories)

        async def run(self, request: TrialRequest) -> Trial:
            trial = await super().run(request)
            if request.source not in SCRIPT[:3]:
                return trial
            return replace(trial, outcome=None, failure="its policy could not be scored")

    run = restorable(make_run(**{**SETTINGS, "iterations": 2, "racing": False}))
    events: list[Any] = []
    await search_with(run, Unscored(FITNESS), observer=events.append).engine.search()
    started = [
        (event.iteration, event.round) for event in events if isinstance(event, IterationStarted)
    ]
    assert started == [(0, 0), (0, 1), (1, 0)]


def test_repeats_are_known_when_even_the_slowest_machine_has_made_them() -> None:
    """Those that follow a generation run beside the next two."""
    made = [Repeat(iteration=after, seed=after, outcome=make_outcome(1.0)) for after in range(3)]
    attempt = planned(0, 0, 5.0).model_copy(update={"repeats": tuple(made)})
    rungs = rungs_of(SearchSettings(iterations=5))
    known = {
        iteration: [
            repeat.iteration
            for each in standing([attempt], iteration, rungs)
            for repeat in each.repeats
        ]
        for iteration in range(2, 6)
    }
    assert known == {2: [], 3: [0], 4: [0, 1], 5: [0, 1, 2]}
