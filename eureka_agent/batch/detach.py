"""Start of a batch in the background. There is no third state: it runs, or it failed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from eureka_agent.archive.files import storage_errors
from eureka_agent.archive.safe_files import open_plain
from eureka_agent.errors import EurekaError
from eureka_agent.invocation import PROGRAM

OUTPUT = "output.txt"
"""Output of a detached batch, in its folder; its last line is `done`."""


class NotDetachedError(EurekaError):
    """A batch that did not start in the background."""


def detach(arguments: list[str], folder: Path) -> str:
    """Start `eureka` with these arguments in a session of its own. Returns its line once it runs.
    Raises NotDetachedError with its message where it does not."""
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        output = os.fdopen(open_plain(folder / OUTPUT, flags), "ab")
    reading, writing = os.pipe()
    with output, os.fdopen(reading) as line:
        begin = output.tell()
        process = subprocess.Popen(
            [sys.executable, "-m", "eureka_agent.cli.main", *arguments, "--ready-fd", str(writing)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            pass_fds=(writing,),
            env={**os.environ, PROGRAM: os.environ.get(PROGRAM) or sys.argv[0]},  # for its hints
        )
        os.close(writing)
        ready = line.readline().strip()
    if ready:
        return ready
    status = process.wait()
    with (folder / OUTPUT).open("rb") as written:
        written.seek(begin)
        said = written.read().decode(errors="replace").strip()
    if status == 0:  # nothing is left to do
        return said
    raise NotDetachedError(f"the batch did not start:\n{said}", "nothing runs in the background")
