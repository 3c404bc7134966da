"""Commands of this program as child processes: their output, their errors, and their end."""

from __future__ import annotations

import asyncio
import ctypes
import os
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from subprocess import PIPE

from eureka_agent.errors import EurekaError

# -P: no module is taken from the working folder, in which the agent may write
EUREKA = (sys.executable, "-P", "-m", "eureka_agent.cli.main")
POLL_S = 0.05
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)
_STARTED = re.compile(r"^\[ *[\d.]+ s\] run (\S+) (?:starts|resumes): ", re.MULTILINE)
_ERROR = re.compile(r"^error: (.*?)(?:^ hint: (.*))?\Z", re.MULTILINE | re.DOTALL)


def words(command: str, *positional: str, **options: object) -> list[str]:
    """Command line on which no value can be taken for an option. Options that are empty are left
    out, and those with several values repeated."""
    several = {name: it if isinstance(it, tuple) else (it,) for name, it in options.items()}
    flags = [
        f"--{name.replace('_', '-')}={value}"
        for name, values in several.items()
        for value in values
        if value not in (None, "")
    ]
    return [command, *flags, "--", *positional]


def said_error(errors: str) -> EurekaError:
    """The error that a command ended with, from its standard error."""
    found = _ERROR.search(errors)
    if found is None:
        return EurekaError("the command ended without a result")
    return EurekaError(found[1].strip(), (found[2] or "").strip())


async def printed(arguments: list[str]) -> str:
    """Standard output of a command. Raises its error."""
    process = await asyncio.create_subprocess_exec(
        *EUREKA, *arguments, stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    output, errors = await process.communicate()
    if process.returncode != 0:
        raise said_error(errors.decode(errors="replace"))
    return output.decode(errors="replace")


class Child:
    """A command that trains. It is stopped, saved and resumable, when this process ends, however
    that ends."""

    def __init__(self, arguments: list[str], log: Path) -> None:
        """Start it; its standard error goes to the file `log`."""
        self._log = log
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                [*EUREKA, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                # a client may kill the server's group, and nothing would be saved then
                start_new_session=True,
                preexec_fn=partial(_stop_with, os.getpid()),
            )

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def error(self) -> EurekaError | None:
        """The error that it ended with, if any. One that was stopped has none."""
        failed = not self.is_running and self._process.returncode not in (0, 130)
        return said_error(self._said()) if failed else None

    async def run_name(self) -> str:
        """Name of the run, once it has begun. Raises the error of a command that did not begin."""
        while True:
            is_running = self.is_running  # before the look, which then finds the last lines
            if found := _STARTED.search(self._said()):
                return found[1]
            if not is_running:
                raise said_error(self._said())
            await asyncio.sleep(POLL_S)

    def stop(self) -> None:
        """Stop it as Ctrl-C does. SIGINT itself is ignored below a shell's background jobs."""
        self._process.send_signal(signal.SIGTERM)

    def _said(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")


def _stop_with(parent: int) -> None:
    """Have the kernel stop this process when `parent` ends."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:  # it ended before the call
        os._exit(1)
