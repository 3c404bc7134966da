"""The same search behind every wall, and what is left of one whose driver was killed."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
from command_line import CommandLine

from eureka_agent.sandbox.bubblewrap_wall import unavailable_reason

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
        pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.in_turns(0)]),
        pytest.param(
            "bubblewrap",
            marks=[
                pytest.mark.in_turns(1),
                pytest.mark.skipif(
                    bool(unavailable_reason()), reason="bubblewrap does not work here"
                ),
            ],
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
