"""One job of a command environment: its folder, its process, and the events that it writes."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import eureka_agent
from eureka_agent.boundary.bounds import MARK, MAX_FILE_BYTES, MAX_LINE_BYTES, PASSED_ON
from eureka_agent.command_file import CommandFile, program, script_of
from eureka_agent.errors import (
    EnvironmentFaultError,
    EurekaError,
    signal_name,
    system_reason,
)
from eureka_agent.records import WrittenFitness
from eureka_agent.simulation import command_events as events
from eureka_agent.task import FitnessReduction
from eureka_agent.text import plain_text

KEPT_BYTES = 4000
"""End of a command's output that is kept for its fault."""
FITNESS_FILE, HELPERS_FILE = "fitness.py", "reward_helpers.py"
_HELPERS = Path(eureka_agent.__file__).parent / "training" / HELPERS_FILE
"""Isaac Gym's helper functions, which rewards may call; it imports torch alone."""
_EVENTS, _REQUESTS = "events.jsonl", "requests"
_PART_BYTES = 1 << 20
_POLL_SECONDS = 0.05
_SHOWN_LINES = 12
_BOUNDS_HINT = "tell curves more seldom, or the values of fewer episodes"
_PORT = re.compile(r"address already in use|EADDRINUSE", re.IGNORECASE)
_OUR_LINE = re.compile(
    r'^ *File "[^"]*/(reward-\d+\.py|fitness\.py)", line (\d{1,6})', re.MULTILINE
)
"""Frame of a reward or a fitness in a traceback of Python."""
_WRITTEN = """

import functools as _functools
_compute_reward = compute_reward


@_functools.wraps(_compute_reward)
def compute_fitness(*arguments, **named):
    return _compute_reward(*arguments, **named)[0]
"""
"""End of a fitness that a model wrote as a reward."""


class CommandDiedError(EurekaError):
    """A command that a signal ended; another try may end otherwise."""


class TrainerFaultError(EurekaError):
    """A command that failed by its own code, or by a library."""


class RewardFaultError(EurekaError):
    """A reward that failed in the simulator, told by the command."""

    def __init__(self, message: str, hint: str = "", line: int | None = None) -> None:
        super().__init__(message, hint)
        self.line = line

    def __str__(self) -> str:
        return self.message if self.line is None else f"line {self.line}: {self.message}"


@dataclass(frozen=True)
class UserCommand:
    """A command environment, ready to be started."""

    folder: Path
    file: CommandFile
    task: str
    fitness: str
    """Source of the fitness."""
    reduction: FitnessReduction

    @property
    def options(self) -> Mapping[str, Any]:
        """Options of the task."""
        return self.file.tasks[self.task].options


def fitness_source(written: WrittenFitness) -> str:
    """A written fitness as a `fitness.py`."""
    return written.source.rstrip() + _WRITTEN


class CommandJob:
    """A running job. Use it as a context: at its end nothing of it is left."""

    def __init__(
        self,
        command: UserCommand,
        mode: str,
        asked: Mapping[str, Any],
        files: Mapping[str, bytes],
        scratch: Path,
    ) -> None:
        """Start it. `asked`: further entries of `job.json`; `files`: contents by name. Raises
        EnvironmentLoadError without the interpreter, TrainerFaultError where it does not start."""
        self._command = command
        self.folder = Path(tempfile.mkdtemp(prefix=f"{mode}-", dir=scratch))
        # what a simulator compiles is kept for jobs that load no reward; one could change it
        loads_rewards = mode in ("train", "dry_run")
        self._cache = self.folder / "home" if loads_rewards else scratch / "cache"
        self._offset = 0
        self._rest = b""
        self._output = bytearray()
        self._fault: events.ProtocolFaultError | None = None
        """A fault in the events, told once those before it are."""
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._write(mode, asked, files)
            self._process = self._start()
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def _write(self, mode: str, asked: Mapping[str, Any], files: Mapping[str, bytes]) -> None:
        command = self._command
        (self.folder / _REQUESTS).mkdir()
        (self.folder / "home").mkdir()
        job = {
            "protocol": events.PROTOCOL,
            "mode": mode,
            "task": command.task,
            "options": dict(command.options),
            "fitness": {"file": FITNESS_FILE, "reduction": command.reduction},
            **asked,
        }
        contents = {
            FITNESS_FILE: command.fitness.encode(),
            HELPERS_FILE: _HELPERS.read_bytes(),
            **files,
        }
        for name, content in contents.items():
            (self.folder / name).write_bytes(content)
        (self.folder / "job.json").write_text(json.dumps(job, indent=1))

    def _start(self) -> subprocess.Popen[bytes]:
        command, home = self._command, str(self.folder / "home")
        threads = str(command.file.cores)
        environment = {
            **{name: os.environ[name] for name in (*PASSED_ON, MARK) if name in os.environ},
            "HOME": home,
            "TMPDIR": home,
            "XDG_CACHE_HOME": str(self._cache),
            "PYTHONUNBUFFERED": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": "0",
            **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), threads),
            **command.file.variables,
        }
        interpreter = program(command.file, command.folder)
        script = script_of(command.file, command.folder)
        try:
            started = subprocess.Popen(
                [interpreter, script, self.folder],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=command.folder,
                start_new_session=True,
            )
        except OSError as error:
            what = f"cannot start {str(interpreter)!r}: {system_reason(error)}"
            raise TrainerFaultError(what, "look at `interpreter` in command.yaml") from None
        assert started.stdout is not None
        os.set_blocking(started.stdout.fileno(), False)
        return started

    def __enter__(self) -> CommandJob:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill what runs of it, and delete its folder."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    # ── while it runs ─────────────────────────────────────────────────────────────────────────────

    def request(self, name: str) -> None:
        """Ask it for something on the way: `save`, `cancel-<id>`."""
        (self.folder / _REQUESTS / name).touch()

    def poll(self, wait_s: float = _POLL_SECONDS) -> tuple[list[events.CommandEvent], bool]:
        """Events since the last call, after a short wait without any; True at the end of the
        process. Raises ProtocolFaultError, and as `check_end` where the end is a failure."""
        deadline = time.monotonic() + wait_s
        while True:
            if self._fault is not None:
                raise self._fault
            ended = self._process is None or self._process.poll() is not None
            self._read_output()
            found: list[events.CommandEvent] = []
            try:
                found += self._new_events()
            except events.ProtocolFaultError as fault:
                self._fault, ended = fault, False
            if found or ended or (self._fault is None and time.monotonic() >= deadline):
                return found, ended
            time.sleep(min(_POLL_SECONDS, wait_s))

    def run(self, limit_s: float) -> Iterator[events.CommandEvent]:
        """Events to the end. Raises as `poll` and `check_end`, and TrainerFaultError after
        `limit_s` without an event."""
        heard = time.monotonic()
        while True:
            found, ended = self.poll()
            for each in found:
                if isinstance(each, events.FaultEvent):
                    raise self.error_of(each)
                yield each
            if ended:
                self.check_end()
                return
            if found:
                heard = time.monotonic()
            elif time.monotonic() - heard > limit_s:
                what = f"the command gave no sign of life for {limit_s:g} s and was killed"
                raise TrainerFaultError(f"{what}{self.last_words()}", "look where it waits")

    def check_end(self) -> None:
        """Raise CommandDiedError for an end by a signal, TrainerFaultError for a failure."""
        assert self._process is not None
        status = self._process.returncode
        if status == 0:
            return
        if status < 0:
            what = f"the command was ended by {signal_name(-status)}{self.last_words()}"
            hint = "SIGKILL may mean a lack of memory: raise `memory_gib` in command.yaml"
            raise CommandDiedError(what, hint)
        words = self.last_words()
        last = words.strip().rpartition("\n")[2]
        file, line = [("", "0"), *_OUR_LINE.findall(words)][-1]
        if file.startswith("reward-"):  # its script lets a reward's exception through
            raise RewardFaultError(last, line=int(line))
        if file == FITNESS_FILE:
            what = f"the task's fitness, line {line}: {last}"
            raise EnvironmentFaultError(what, "correct the task's `fitness` of command.yaml")
        what = f"the command ended with exit status {status}: {last or 'it printed nothing'}{words}"
        hint = "run the script by hand on a job folder (docs/protocol.md)"
        if "PermissionError" in words:
            hint = "it writes to its job folder alone: list others in `writable` of command.yaml"
        if _PORT.search(words):
            hint = "take a free port (0) in the script, or train one at a time: `slots: 1`"
        raise TrainerFaultError(what, hint)

    def unfinished(self, missing: str) -> TrainerFaultError:
        """The error for a process that ended well without its last event."""
        what = f"the command ended with exit status 0, but without {missing}{self.last_words()}"
        return TrainerFaultError(what, "docs/protocol.md says which events a mode ends with")

    def error_of(self, fault: events.FaultEvent) -> EurekaError:
        """The error for a fault that the command told."""
        if fault.whose == "reward":
            return RewardFaultError(fault.message, fault.hint, fault.line)
        kind = EnvironmentFaultError if fault.whose == "environment" else TrainerFaultError
        return kind(fault.message, fault.hint)

    def last_words(self) -> str:
        """The last lines of its output, after a line end; empty without output."""
        self._read_output()
        text = plain_text(bytes(self._output).decode(errors="replace")).strip()
        return "\n" + "\n".join(text.splitlines()[-_SHOWN_LINES:]) if text else ""

    def file(self, name: str) -> bytes:
        """Content of a file that an event names. Raises ProtocolFaultError."""
        path = self.folder / name
        try:
            if path.is_symlink() or path.stat().st_size > MAX_FILE_BYTES:
                raise OSError(f"it is a link, or has more than {MAX_FILE_BYTES >> 20} MiB")
            return path.read_bytes()
        except OSError as error:
            what = f"the command named the file {name!r}, which cannot be read: {error}"
            raise events.ProtocolFaultError(what, "write it before the event") from None

    def _new_events(self) -> Iterator[events.CommandEvent]:
        path = self.folder / _EVENTS
        if not path.is_file():
            return
        while True:
            with path.open("rb") as file:
                file.seek(self._offset)
                part = file.read(_PART_BYTES)
            self._offset += len(part)
            if self._offset > events.MOST_EVENT_BYTES:
                most = f"{events.MOST_EVENT_BYTES >> 30} GiB"
                what = f"the command wrote more than {most} of events"
                raise events.ProtocolFaultError(what, _BOUNDS_HINT)
            *lines, self._rest = (self._rest + part).split(b"\n")
            if len(self._rest) > MAX_LINE_BYTES:
                most = f"{MAX_LINE_BYTES >> 20} MiB"
                what = f"the command wrote an event longer than {most}"
                raise events.ProtocolFaultError(what, _BOUNDS_HINT)
            yield from (events.read_event(line) for line in lines if line.strip())
            if len(part) < _PART_BYTES:
                return

    def _read_output(self) -> None:
        """Keep the end of what it has printed, and throw the rest away."""
        if self._process is None or self._process.stdout is None or self._process.stdout.closed:
            return
        with contextlib.suppress(BlockingIOError):
            while part := os.read(self._process.stdout.fileno(), _PART_BYTES):
                self._output += part
                del self._output[:-KEPT_BYTES]
