"""Whole searches behind every wall, beside one another, and where environment or disk fail."""

from __future__ import annotations

import asyncio
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine
from faulty_environments import REWARD, after_steps, write_lift
from model_server import ModelServer
from small_disk import small_disk as mounted_disk

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


def test_no_model_is_asked_where_the_environment_fails_at_once(
    eureka: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    eureka.environment["OPENAI_API_KEY"] = "sk-of-the-test"
    folder = write_lift(tmp_path / "lift", *after_steps(60, "self.height[:] = torch.nan"))
    with ModelServer([REWARD]) as server:
        model = ("--model", "openai/test", "--base-url", server.base_url)
        errors = eureka("search", "go up", "--env", str(folder), *model, status=2)
        assert server.requests == []
    assert "the environment fails before any reward is called" in errors
    assert "the variable 'height' is nan in step " in errors
    assert "of an episode of random actions" in errors
    assert not list((eureka.folder / "runs").glob("*/archive.sqlite"))


def test_a_goal_out_of_reach_is_told_and_no_reward_is_blamed(
    eureka: CommandLine, puck: Path, tmp_path: Path
) -> None:
    # from 1 m and farther away, at most 0.1 s · (0.3 + 0.57 + 0.81 + 1.03 + 1.23) m/s = 0.39 m
    far = tmp_path / "far"
    shutil.copytree(puck, far)
    source = (far / "env.py").read_text()
    source = source.replace("max_episode_length = 50", "max_episode_length = 5")
    source = source.replace("1, -1.5, 1.5", "1, 1.0, 1.5")
    (far / "env.py").write_text(source)
    flags = ("--iterations", "2", "--samples", "2", "--finalists", "1", "--final-seeds", "2")
    arguments = ("search", "--env", str(far), *flags, "--env-steps", "4096", "--sandbox", "process")
    run = eureka.json(*arguments, "--no-video", "--yes")
    lacking = run["coverage"]
    assert lacking["fitness"] == 0.0
    assert lacking["trainings"] >= 4
    assert set(lacking["baselines"]) == {"human", "sparse"}
    assert run["finalists"] == []
    low, high = lacking["visited"]["puck_position"]
    assert 0.6 <= low < high <= 1.9
    codes = [finding["code"] for attempt in run["attempts"] for finding in attempt["diagnosis"]]
    assert codes.count("never-paid") == sum(each["stage"] == "trained" for each in run["attempts"])
    folder = Path(run["folder"])
    report = (folder / "report.md").read_text()
    assert "never came to what the fitness pays for" in report
    assert "start states nearer to what is paid for" in report
    assert "rewards all ended at a fitness of 0" in report
    assert "What could help: " in (folder / "log.txt").read_text()
    assert "never came to what the fitness pays for" in (folder / "report.html").read_text()


@pytest.fixture
def small_disk(eureka: CommandLine) -> Iterator[Path]:
    """The runs folder on a file system of its own, too small for a search."""
    folder = eureka.folder / "runs"
    with mounted_disk(folder, "300k") as mounted:
        if not mounted:
            pytest.skip("no file system can be mounted here")
        yield folder


def test_a_full_disk_is_one_clear_error_and_the_run_resumes(
    eureka: CommandLine, small: Callable[..., tuple[str, ...]], small_disk: Path
) -> None:
    errors = eureka(*small(), status=2)
    assert "error:" in errors
    assert "eureka resume" in errors
    assert "space" in errors
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    eureka("resume", str(eureka.run_folder()))
    assert eureka.json("show", "latest")["status"] == "finished"
