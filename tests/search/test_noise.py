"""What the seeds of the baselines say of a task's noise, and that racing and the second generation
wait for them whatever the timing."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from outcomes import make_outcome
from raced_trials import Jittery, RacedTrials, restorable
from scripted_search import Fuse, Killed, ScriptedDesigner, ScriptedSearch, reward, rows
from thoroughness import third

from eureka_agent.archive.baseline_cache import BaselineCache
from eureka_agent.archive.run_folder import Run, open_run
from eureka_agent.records import CheckpointRecord, FinalTraining, Outcome
from eureka_agent.search.deadline import Deadline
from eureka_agent.search.noise import training_noise
from eureka_agent.search.seeds import final_seeds
from eureka_agent.search.time_limit import TimeLimit
from eureka_agent.search.trial import Trial, TrialRequest

MakeRun = Callable[..., Run]


def outcome(at_rung: float | None) -> Outcome:
    """With three checkpoints, of which the second counts; in the end all are alike."""
    checkpoints = (checkpoint(0.0), checkpoint(at_rung), checkpoint(9.0))
    return make_outcome(9.0).model_copy(update={"checkpoints": checkpoints})


def checkpoint(fitness: float | None) -> CheckpointRecord:
    return CheckpointRecord(
        env_steps=1, fitness=fitness, episode_length=1.0, episodes=1, reward=0.0, components={}
    )


def trainings(**at_rung: tuple[float | str | None, ...]) -> list[FinalTraining]:
    """By name; a text is a failure."""
    return [
        FinalTraining(
            name=name.replace("a_", "1-0"),
            seed=seed,
            outcome=None if isinstance(value, str) else outcome(value),
        )
        for name, values in at_rung.items()
        for seed, value in enumerate(values)
    ]


def test_the_noise_is_pooled_over_the_seeds_of_both_baselines() -> None:
    # human 6, 8, 10: variance 4 with 2 degrees of freedom; sparse 1, 3: variance 2 with 1: sqrt((8
    # + 2) / 3)
    known = trainings(human=(6.0, 8.0, 10.0), sparse=(1.0, "went NaN", 3.0, None), a_1=(0.0, 100.0))
    assert training_noise(known, 1) == pytest.approx(math.sqrt(10 / 3))
    assert [training_noise(known, place) for place in (0, 2, 3)] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "known", [{}, {"human": (5.0,)}, {"human": (None, None), "sparse": (1.0, "failed")}]
)
def test_without_two_seeds_there_is_no_noise(
    known: dict[str, tuple[float | str | None, ...]],
) -> None:
    assert training_noise(trainings(**known), 1) == 0.0


# ── in a search ───────────────────────────────────────────────────────────────────────────────────

SETTINGS: dict[str, Any] = {"iterations": 2, "samples": 4, "rungs": (0.7,), "confirm": 0, "finalists": 1, "final_seeds": 2, "env_steps": 1000, "num_envs": 10, "horizon": 10}  # fmt: skip
FIRST, _ = final_seeds(2)
HUMAN, SPARSE = reward(100), reward(200)
SCRIPT = [reward(weight) for weight in range(1, 9)]
# at the rung the median of the first four is 8.15 and their distances to it 0.35, 0.35, 0.45 and
# 7.15: a bar of 8.15 − 0.5 * 1.4826 * 0.4 = 7.85
FITNESS = dict(zip(SCRIPT, (8.6, 7.8, 8.5, 1.0, 9.5, 9.4, 9.2, 9.1), strict=True)) | {
    HUMAN: 6.0,
    SPARSE: 1.0,
}


class Noisy:
    """From the first seed the human reward has 8 in its curve, from the other 6: a variance of 2,
    with the sparse reward's 0 pooled to 1."""

    async def run(self, request: TrialRequest) -> Trial:
        trial: Trial = await super().run(request)  # type: ignore[misc]
        if request.reward.source == HUMAN and request.seed == FIRST:
            assert trial.outcome is not None
            curve = tuple(
                each.model_copy(update={"fitness": 8.0}) for each in trial.outcome.checkpoints
            )
            return replace(trial, outcome=trial.outcome.model_copy(update={"checkpoints": curve}))
        return trial


class NoisyTrials(Noisy, RacedTrials):
    pass


class NoisyJitter(Noisy, Jittery):
    pass


def search_with(
    run: Run, trials: RacedTrials, fuse: Fuse | None = None, **options: Any
) -> ScriptedSearch:
    known = sum(attempt.revision == 0 for attempt in run.archive.attempts())
    search = ScriptedSearch(
        run, ScriptedDesigner(SCRIPT[known:], fuse=fuse), trials, fuse=fuse, **options
    )
    search.finals._cache = BaselineCache(
        run.folder, run.description, run.settings
    )  # no other run's
    return search


def stages(run: Run) -> dict[str, str]:
    return {row[0]: row[1] for row in rows(run)}


async def test_who_is_within_the_noise_of_the_baselines_is_not_stopped(make_run: MakeRun) -> None:
    quiet, noisy = restorable(make_run(**SETTINGS)), restorable(make_run(**SETTINGS))
    await search_with(quiet, RacedTrials(FITNESS)).see_through()
    await search_with(noisy, NoisyTrials(FITNESS)).see_through()
    assert [stages(quiet)[name] for name in ("1-02", "1-04")] == ["stopped", "stopped"]
    assert [stages(noisy)[name] for name in ("1-02", "1-04")] == [
        "trained",
        "stopped",
    ]  # 8.15 − 1 = 7.15


@pytest.mark.parametrize("settings", [{}, {"racing": False}])
async def test_the_second_generation_is_designed_when_the_baselines_are_known(
    make_run: MakeRun, settings: dict[str, Any]
) -> None:
    run = restorable(make_run(**{**SETTINGS, **settings}))
    known_then: list[int] = []

    class Watching(ScriptedDesigner):
        async def propose(self, request: Any) -> Any:
            known_then.append(len(run.archive.trainings()))
            return await super().propose(request)

    class SlowBaselines(RacedTrials):
        async def before_the_end(self, request: TrialRequest) -> None:
            for _ in range(3000 if request.reward.source in (HUMAN, SPARSE) else 0):
                await asyncio.sleep(0)

    async with asyncio.timeout(30):
        await ScriptedSearch(run, Watching(SCRIPT), SlowBaselines(FITNESS)).see_through()
    assert (known_then[0], min(known_then[4:])) == (0, 4)


@pytest.mark.parametrize("seed", range(6))
async def test_what_is_decided_does_not_depend_on_when_the_baselines_end(
    make_run: MakeRun, seed: int
) -> None:
    whole, jittery = restorable(make_run(**SETTINGS)), restorable(make_run(**SETTINGS))
    await search_with(whole, NoisyTrials(FITNESS)).see_through()
    async with asyncio.timeout(30):
        await search_with(jittery, NoisyJitter(seed, FITNESS)).see_through()
    assert rows(jittery) == rows(whole)


@pytest.mark.parametrize(
    "point",
    third(
        [("rung", 2), ("rung", 4), ("trained", 1), ("trained", 3), ("trained", 5), ("propose", 6)]
    ),
)
async def test_killed_and_resumed_the_same_are_stopped(
    make_run: MakeRun, point: tuple[str, int]
) -> None:
    whole, broken = restorable(make_run(**SETTINGS)), restorable(make_run(**SETTINGS))
    await search_with(whole, NoisyTrials(FITNESS)).see_through()
    fuse = Fuse(*point)
    with pytest.raises(BaseExceptionGroup) as caught:
        await search_with(broken, NoisyJitter(3, FITNESS, fuse), fuse).see_through()
    assert caught.group_contains(Killed)
    again = restorable(open_run(broken.folder))
    async with asyncio.timeout(30):
        await search_with(again, NoisyJitter(4, FITNESS)).see_through()
    assert rows(again) == rows(whole)


async def test_when_the_time_is_up_nobody_waits_and_a_resumed_run_does_not_either(
    make_run: MakeRun,
) -> None:
    class Endless(RacedTrials):
        async def before_the_end(self, request: TrialRequest) -> None:
            if request.reward.source in (HUMAN, SPARSE):
                await finals_began.wait()
            elif request.kind == "final":
                finals_began.set()

    finals_began = asyncio.Event()
    run = restorable(make_run(**SETTINGS, max_time="1m"))
    deadline = Deadline(run, TimeLimit("1m", 60.0), lambda: 60.0, run.archive.append)
    async with asyncio.timeout(30):
        await search_with(run, Endless(FITNESS), deadline=deadline).see_through()
    assert stages(run) == {
        "1-01": "trained",
        "1-02": "stopped",
        "1-03": "trained",
        "1-04": "stopped",
    }
    assert run.archive.state.baselines_not_awaited == "1m"
    assert (
        len(run.archive.trainings()) == 6
    )  # the finalist and the baselines were trained in the end
    again = search_with(run, RacedTrials(FITNESS), deadline=deadline)
    again.engine.baselines = again.finals.known
    assert not await again.engine.baselines_are_known()


async def test_baselines_of_an_earlier_process_count_also_when_the_time_is_up(
    make_run: MakeRun,
) -> None:
    run = restorable(make_run(**SETTINGS, max_time="1m"))
    await search_with(run, RacedTrials(FITNESS)).see_through()
    deadline = Deadline(run, TimeLimit("1m", 60.0), lambda: 60.0, run.archive.append)
    again = search_with(open_run(run.folder), RacedTrials(FITNESS), deadline=deadline)
    again.engine.baselines = again.finals.known
    assert await again.engine.baselines_are_known()
    assert run.archive.state.baselines_not_awaited is None
