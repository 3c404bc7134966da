"""Trainings go on from their last saved states after a kill, of the whole search or of one
worker."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine
from test_search_runs import table, wait_for

pytestmark = pytest.mark.slow

LONGER = (
    *[
        "--env-steps",
        "49152",
        "--snapshot-interval",
        "0.1",
        "--workers",
        "1",
        "--iterations",
        "1",
        "--finalists",
    ],
    *["1", "--final-seeds", "1"],
)
"""Trainings of a few seconds, saved ten times a second, in one worker."""


@pytest.fixture(scope="module")
def longer(small: Callable[..., tuple[str, ...]]) -> tuple[str, ...]:
    return (*small(), *LONGER)


@pytest.fixture(scope="module")
def unbroken(shared_eureka: CommandLine, longer: tuple[str, ...]) -> dict[str, Any]:
    result: dict[str, Any] = shared_eureka.json(*longer)
    return result


def saved_states(folder: Path) -> list[Path]:
    return list(folder.glob("runs/*/.snapshots/*.safetensors"))


def training_worker(folder: Path) -> int:
    """The process that trains, by its folder in the run; the evaluator has another.
    What it started lives in the same one."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            scratch = Path(os.readlink(entry / "cwd"))
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        if folder in scratch.parents and scratch.parents[1].name == "trainings":
            found[int(entry.name)] = parent
    (worker,) = (process for process, parent in found.items() if parent not in found)
    return worker


def test_a_killed_search_goes_on_in_mid_training(
    unbroken: dict[str, Any], eureka: CommandLine, longer: tuple[str, ...]
) -> None:
    process = eureka.popen(*longer)
    wait_for(
        lambda: len(saved_states(eureka.folder)) >= 3 or process.poll() is not None, "saved state"
    )
    assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    folder = eureka.run_folder()
    output = eureka("resume", str(folder))
    goes_on = [line for line in output.splitlines() if " goes on at " in line]
    assert len(goes_on) >= 3
    assert table(eureka.json("show", str(folder))) == table(unbroken)
    assert not (folder / ".snapshots").exists()


@pytest.mark.in_turns(2)
def test_a_killed_worker_costs_its_trainings_one_recorded_retry(
    unbroken: dict[str, Any], eureka: CommandLine, longer: tuple[str, ...]
) -> None:
    process = eureka.popen(*longer)
    wait_for(
        lambda: len(saved_states(eureka.folder)) >= 3 or process.poll() is not None, "saved state"
    )
    assert process.poll() is None, process.communicate()
    os.kill(training_worker(eureka.folder), signal.SIGKILL)
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert "starts again: " in output
    assert " goes on at " in output
    run = eureka.json("show", "latest")
    assert table(run) == table(unbroken)
    assert sum(attempt["retries"] for attempt in run["attempts"]) >= 1
    assert max(attempt["retries"] for attempt in run["attempts"]) == 1
