"""The same search behind every wall, and what is left of one whose driver was killed."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine

from eureka_agent.archive.run_folder import Run
from eureka_agent.fleet.fleet import Machine
from eureka_agent.sandbox.bubblewrap_wall import unavailable_reason
from eureka_agent.sandbox.process_wall import ProcessWall
from eureka_agent.search.deadline import SearchContext
from eureka_agent.search.session import start

pytestmark = pytest.mark.slow
Arguments = Callable[..., tuple[str, ...]]


@pytest.fixture(scope="module")
def behind_process(shared_eureka: CommandLine, small: Arguments) -> dict[str, Any]:
    """Results of a search in plain processes."""
    return numbers(shared_eureka.json(*small(), "--sandbox", "process"))


def numbers(run: dict[str, Any]) -> dict[str, Any]:
    """All that a search found out, to the last bit, without its times."""
    attempts = [
        {key: entry[key] for key in ("id", "stage", "reason", "fitness", "seed", "operator")}
        for entry in run["attempts"]
    ]
    return {
        "attempts": attempts,
        "finalists": {score["name"]: score["fitness_per_seed"] for score in run["finalists"]},
        "human": run["human"]["fitness_per_seed"],
        "best": run["best"]["id"],
    }


@pytest.mark.parametrize(
    "wall",
    [
        pytest.param("docker", marks=pytest.mark.docker),
        pytest.param(
            "bubblewrap",
            marks=pytest.mark.skipif(
                bool(unavailable_reason()), reason="bubblewrap does not work here"
            ),
        ),
    ],
)
def test_attempts_and_fitness_are_the_same_behind_another_wall(
    eureka: CommandLine, small: Arguments, behind_process: dict[str, Any], wall: str
) -> None:
    run = eureka.json(*small(), "--sandbox", wall)
    assert numbers(run) == behind_process
    assert run["wall"] == wall


@pytest.mark.docker
def test_the_containers_of_a_killed_driver_are_removed_by_later_commands(
    eureka: CommandLine, small: Arguments
) -> None:
    from eureka_agent.sandbox.docker.engine import connect
    from eureka_agent.sandbox.docker.leftovers import DRIVER_LABEL

    engine = connect()
    # others may be at work on this engine: only those that come with this driver count
    before = {container["Id"] for container in engine.client.api.containers(all=True)}

    def containers() -> list[str]:
        found = engine.client.api.containers(all=True, filters={"label": DRIVER_LABEL})
        return [container["Id"] for container in found if container["Id"] not in before]

    # a training without end: the workers are busy and read nothing
    driver = eureka.popen(*small(), "--sandbox", "docker", "--env-steps", "100000000")
    try:
        deadline = time.monotonic() + 120
        while len(containers()) < 3 and time.monotonic() < deadline:
            assert driver.poll() is None, driver.communicate()
            time.sleep(0.05)
    finally:
        driver.send_signal(signal.SIGKILL)
        driver.communicate()
    # the engine may still be creating one at the kill: the next command does not see it yet
    deadline = time.monotonic() + 120
    eureka("runs")
    while containers() and time.monotonic() < deadline:
        eureka("runs")
    assert containers() == []
    engine.close()


def settings(puck: Path, seed: int, env_steps: int) -> dict[str, Any]:
    small = {"iterations": 2, "samples": 2, "finalists": 1, "final_seeds": 1, "workers": 1}
    return {"env": str(puck), "seed": seed, "env_steps": env_steps, "num_envs": 16, **small}


async def search(values: dict[str, Any], machine: Machine | None = None) -> Run:
    context = SearchContext(machine)
    return await start(values, None, ["eureka", "search"], lambda entry: None, context=context)


def numbers_fleet(run: Run) -> list[tuple[object, ...]]:
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


async def test_two_searches_find_what_each_finds_alone(
    puck: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EUREKA_RUNS", str(tmp_path / "shared"))
    # one worker for two populations: they take turns
    both = settings(puck, 1, 4096), settings(puck, 2, 2048)
    async with Machine(ProcessWall(), tmp_path / "workers", workers=1) as machine:
        together = await asyncio.gather(*(search(values, machine) for values in both))
    monkeypatch.setenv("EUREKA_RUNS", str(tmp_path / "alone"))
    for values, run in zip(both, together, strict=True):
        found = numbers_fleet(run)
        assert sum(row[1] == "trained" for row in found) >= 2
        assert found == numbers_fleet(await search(values))
    assert not list((tmp_path / "workers").rglob("worker-*"))
