"""The real `eureka` command, run as a person runs it, with a runs folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


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

    def run_folder(self) -> Path:
        """The only run."""
        (archive,) = (self.folder / "runs").glob("*/archive.sqlite")
        return archive.parent
