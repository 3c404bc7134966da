"""A search whose reader or terminal goes away, and the line that says how to go on."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import CommandLine

pytestmark = pytest.mark.slow
Arguments = Callable[..., tuple[str, ...]]


@pytest.fixture
def tiny(puck: Path) -> tuple[str, ...]:
    """Arguments of the smallest search."""
    flags = ("--iterations", "1", "--samples", "2", "--finalists", "0", "--env-steps", "1024")
    return ("search", "bring the puck to the middle", "--env", str(puck), *flags)


def test_a_search_goes_on_when_its_reader_has_gone(
    eureka: CommandLine, tiny: tuple[str, ...]
) -> None:
    process = eureka.popen(*tiny)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()  # as `| head -1` does
    errors = process.stderr.read()
    assert process.wait(timeout=120) == 0, errors
    assert errors == ""
    shown = eureka.json("show", "latest")
    assert shown["status"] == "finished"
    # the log has the end, which nobody could be shown
    assert "run finished" in (eureka.run_folder() / "log.txt").read_text(encoding="utf-8")


@pytest.fixture
def spaced(tmp_path: Path) -> CommandLine:
    """Runs in a folder whose name a shell would take apart, and rich for markup and for too
    long."""
    folder = tmp_path / f"my [bold]runs {'x' * 80}"
    folder.mkdir()
    eureka = CommandLine(folder)
    eureka.environment["COLUMNS"] = "60"
    return eureka


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_stopped_search_says_how_to_go_on_in_a_line_to_paste(
    spaced: CommandLine, small: Arguments, number: signal.Signals
) -> None:
    process = spaced.popen(*small())
    deadline = time.monotonic() + 60.0
    while not list((spaced.folder / "runs").glob("*/log.txt")):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(number)
    output, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    (line,) = [line for line in output.splitlines() if line.startswith("Stopped.")]
    assert shlex.split(line.partition(":")[2]) == ["eureka", "resume", str(spaced.run_folder())]
    assert spaced.json("show", str(spaced.run_folder()))["status"] == "stopped"


def test_nohup_keeps_a_search_from_a_closed_terminal(
    eureka: CommandLine, tiny: tuple[str, ...]
) -> None:
    command = ["nohup", sys.executable, "-m", "eureka_agent.cli.main", *tiny]
    process = subprocess.Popen(
        command,
        cwd=eureka.folder,
        env=eureka.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGHUP)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
