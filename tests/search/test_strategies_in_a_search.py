"""Strategies in the real engine, working ahead: what they plan depends neither on timing nor on
whether the search was killed on its way."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from rung_trials import Jittery
from scripted_search import Fuse, Killed, ScriptedDesigner, ScriptedSearch, reward

from eureka_agent.archive.run_folder import Run, open_run
from eureka_agent.records import Operator
from eureka_agent.search.strategies import Greedy, Islands, Strategy

MakeRun = Callable[..., Run]

SETTINGS = {
    "iterations": 5,
    "samples": 4,
    "rungs": (0.4, 0.7),
    "confirm": 1,
    "finalists": 0,
    "env_steps": 1000,
    "num_envs": 10,
    "horizon": 10,
}
SCRIPT = [reward(weight) for weight in range(1, 21)]
DRAWN = random.Random(4)
AT_THE_END = {source: round(DRAWN.uniform(0, 10), 2) for source in SCRIPT}
AT_RUNGS = {source: round(fitness + DRAWN.gauss(0, 2), 2) for source, fitness in AT_THE_END.items()}
STRATEGIES: dict[str, Callable[[], Strategy]] = {"islands": Islands, "greedy": Greedy}
Row = tuple[str, str, float | None, Operator, tuple[str, ...]]


async def searched(
    run: Run, strategy: Strategy, jitter: int, fuse: Fuse | None = None
) -> list[Row]:
    known = len(run.archive.attempts())
    designer = ScriptedDesigner(SCRIPT[known:], fuse=fuse)
    await ScriptedSearch(
        run, designer, Jittery(jitter, AT_THE_END, fuse, AT_RUNGS), fuse=fuse, strategy=strategy
    ).engine.generations()
    return rows_of(run)


def rows_of(run: Run) -> list[Row]:
    return [
        (each.id, each.stage.value, each.fitness, each.proposal.operator, each.proposal.parents)
        for each in run.archive.attempts()
    ]


@pytest.mark.parametrize("name", STRATEGIES)
async def test_the_same_attempts_whatever_the_timing(make_run: MakeRun, name: str) -> None:
    results = [
        await searched(make_run(**SETTINGS), STRATEGIES[name](), jitter) for jitter in range(3)
    ]
    assert len(results[0]) == 20
    assert results[1] == results[0]
    assert results[2] == results[0]


@pytest.mark.parametrize(
    ("name", "kind", "number"),
    [
        *[("islands", "propose", 18), ("islands", "rung", 9)],
        *[("greedy", "rung", 25), ("greedy", "trained", 6)],
    ],
)
async def test_killed_and_resumed_it_goes_the_same_way(
    make_run: MakeRun, name: str, kind: str, number: int
) -> None:
    unbroken = await searched(make_run(**SETTINGS), STRATEGIES[name](), 0)
    run = make_run(**SETTINGS)
    killed = False
    try:
        await searched(run, STRATEGIES[name](), 1, Fuse(kind, number))
    except* Killed:
        killed = True
    assert killed
    assert rows_of(run) != unbroken
    assert await searched(open_run(run.folder), STRATEGIES[name](), 2) == unbroken
