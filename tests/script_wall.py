"""A worker gone bad: a script of a test's in its place."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
from pathlib import Path

from eureka_agent.sandbox.process_wall import ProcessHandle, ProcessWall
from eureka_agent.sandbox.wall import Limits, WorkerHandle


class ScriptWall(ProcessWall):
    """Starts a Python script in the worker's place."""

    def __init__(self, script: str) -> None:
        super().__init__()
        self._script = textwrap.dedent(script)
        self.started = 0

    async def start(self, folder: Path, limits: Limits) -> WorkerHandle:
        self.started += 1
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-S", "-c", self._script),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"HOME": str(folder)},
            start_new_session=True,
        )
        return ProcessHandle(process)
