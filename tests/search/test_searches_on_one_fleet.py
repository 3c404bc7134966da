"""Two searches at once on one fleet: each makes the attempts that it makes alone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from eureka_agent.archive.run_folder import Run
from eureka_agent.fleet.fleet import Machine
from eureka_agent.sandbox.process_wall import ProcessWall
from eureka_agent.search.deadline import SearchContext
from eureka_agent.search.session import start

pytestmark = pytest.mark.slow


def settings(puck: Path, seed: int, env_steps: int) -> dict[str, Any]:
    small = {"iterations": 2, "samples": 2, "finalists": 1, "final_seeds": 1, "workers": 1}
    return {"env": str(puck), "seed": seed, "env_steps": env_steps, "num_envs": 16, **small}


async def search(values: dict[str, Any], machine: Machine | None = None) -> Run:
    context = SearchContext(machine)
    return await start(values, None, ["eureka", "search"], lambda entry: None, context=context)


def numbers(run: Run) -> list[tuple[object, ...]]:
    """All that a search found, without wall times and folders."""
    attempts = [
        (each.id, each.stage, each.proposal.reward.source, each.seed, each.fitness_per_seed)
        for each in run.archive.attempts()
    ]
    finals = sorted(
        (each.name, each.seed, None if each.outcome is None else each.outcome.fitness)
        for each in run.archive.trainings()
    )
    return [*attempts, *finals]


@pytest.mark.in_turns(1)
async def test_two_searches_find_what_each_finds_alone(
    puck: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EUREKA_RUNS", str(tmp_path / "shared"))
    # one worker for two populations: they take turns
    both = settings(puck, 1, 8192), settings(puck, 2, 4096)
    async with Machine(ProcessWall(), tmp_path / "workers", workers=1) as machine:
        together = await asyncio.gather(*(search(values, machine) for values in both))
    monkeypatch.setenv("EUREKA_RUNS", str(tmp_path / "alone"))
    for values, run in zip(both, together, strict=True):
        found = numbers(run)
        assert sum(row[1] == "trained" for row in found) >= 2
        assert found == numbers(await search(values))
    assert not list((tmp_path / "workers").rglob("worker-*"))
