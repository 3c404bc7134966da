"""Job folders as eureka-agent writes them, programs run on them, and the events that they left."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
ADAPTERS = ROOT / "adapters"
COMMON = {
    "protocol": 1,
    "task": "swing",
    "options": {},
    "device": "cpu",
    "num_envs": 4,
    "fitness": {"file": "fitness.py", "reduction": "sum"},
}


class JobFolder:
    """One job's folder."""

    def __init__(self, path: Path, fitness: str) -> None:
        self.path = path
        (path / "requests").mkdir(parents=True)
        self.write("fitness.py", fitness)

    def write(self, name: str, text: str) -> None:
        (self.path / name).write_text(text)

    def job(self, mode: str, **fields: Any) -> None:
        """Begin a job in this folder; files of earlier ones stay."""
        (self.path / "events.jsonl").unlink(missing_ok=True)
        self.write("job.json", json.dumps({**COMMON, "mode": mode, **fields}))

    def train(
        self,
        env_steps: int,
        reward: str,
        num_envs: int = 4,
        save_every_s: float = 600,
        **entry: Any,
    ) -> None:
        """Begin a job of one training."""
        self.write("reward.py", reward)
        given = {"id": "a", "reward": "reward.py", "seed": 1, "state": None, "rungs": [], **entry}
        fields = {"env_steps": env_steps, "num_envs": num_envs, "save_every_s": save_every_s}
        self.job("train", trainings=[given], **fields)

    def evaluate(self, policy: str, num_envs: int = 4, **entry: Any) -> None:
        """Begin a job of one evaluation."""
        given = {"id": "p", "policy": policy, "seed": 3, "episodes": 6, "record": [], **entry}
        self.job("evaluate", num_envs=num_envs, policies=[given])

    def run(
        self, script: Path, interpreter: str = sys.executable
    ) -> subprocess.CompletedProcess[str]:
        """Run a program in a process of its own."""
        environment = {**os.environ, "PYTHONPATH": str(ADAPTERS)}
        command = [interpreter, str(script), str(self.path)]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=300
        )

    def call(self, program: str, **changes: Any) -> None:
        """Run one of `programs` in this process, which has imported all already."""
        importlib.import_module(f"programs.{program}").run([str(self.path)], **changes)

    def events(self, kind: str | None = None) -> list[dict[str, Any]]:
        """Events so far, of one kind if it is named."""
        return [each for each in self._events() if kind in (None, each["event"])]

    def _events(self) -> Iterator[dict[str, Any]]:
        file = self.path / "events.jsonl"
        text = file.read_text() if file.exists() else "\n"
        assert text.endswith("\n")
        for line in filter(None, text.splitlines()):
            yield json.loads(line, parse_constant=_refused)


MakeFolder = Callable[..., JobFolder]
"""Makes a folder for jobs with this fitness."""


def _refused(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")
