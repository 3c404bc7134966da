"""The real `eureka` command, run as a person runs it, with a runs folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from eureka_agent.batch.folder import searches_of
from eureka_agent.batch.intents import IntentsFile


def wait_for(condition: Callable[[], object], process: subprocess.Popen[str]) -> None:
    """Wait until a running process has come to something."""
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


class Told:
    """Lines of a running command's output, as they come."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.lines: list[str] = []
        self._process = process
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def says(self, text: str, since: int = 0) -> bool:
        """True if a line has this text; `since`: number of lines to leave out."""
        return any(text in line for line in self.lines[since:])

    def end(self) -> int:
        """Wait for the end of the command. Returns its exit status."""
        status = self._process.wait(300.0)
        self._reader.join()
        return status

    def _read(self) -> None:
        assert self._process.stdout is not None
        self.lines.extend(iter(self._process.stdout.readline, ""))


def states_and_tries(batch: Path) -> list[tuple[str, int]]:
    """State and failed tries of each search of a batch, in its order."""
    intents = IntentsFile(batch)
    tries = [each.tries for each in intents.now.searches.values()]
    return [(each.state.value, n) for each, n in zip(searches_of(intents), tries, strict=True)]


class CommandLine:
    """The real `eureka` command with a runs folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {**os.environ, "EUREKA_RUNS": str(folder / "runs")}

    def popen(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "eureka_agent.cli.main", *arguments]
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *arguments: str, status: int = 0) -> str:
        process = self.popen(*arguments)
        output, errors = process.communicate(timeout=300)
        assert process.returncode == status, f"{output}\n{errors}"
        assert "Traceback" not in errors
        return output if status == 0 else errors

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--format", "json"))

    def found(self, run: Path) -> list[object]:
        """All that a run's search found, without times and folders."""
        document = self.json("show", str(run))
        keys = ("id", "stage", "seed", "fitness", "trainings")
        attempts = [tuple(str(each[key]) for key in keys) for each in document["attempts"]]
        human = document["human"]
        baseline = None if human is None else human["fitness_per_seed"]
        return [*attempts, document["best"]["fitness_per_seed"], baseline]

    def run_folder(self) -> Path:
        """The only run."""
        (archive,) = (self.folder / "runs").glob("*/archive.sqlite")
        return archive.parent
