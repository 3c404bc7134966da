"""The driver's client of one worker: commands, events, files, faults and the end of the process."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import shlex
import shutil
import tempfile
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from eureka_agent import errors
from eureka_agent.archive.files import storage_errors
from eureka_agent.archive.safe_files import read_plain
from eureka_agent.boundary import bounds
from eureka_agent.boundary.commands import Command, Open, Prepare, Shutdown
from eureka_agent.boundary.events import Evaluated, Event, Fault, Opened, Prepared
from eureka_agent.command_file import (
    CommandFile,
    is_command,
    listed_paths,
    program,
    read_command,
    readable_folders,
)
from eureka_agent.environment_files import (
    ENVIRONMENT_FILE,
    fingerprint_of,
    folder_files,
    source_folders,
)
from eureka_agent.invocation import command
from eureka_agent.records import WrittenFitness
from eureka_agent.resources import resource_folder
from eureka_agent.sandbox.event_reader import EXIT_SECONDS, EventReader
from eureka_agent.sandbox.inbox import Inbox
from eureka_agent.sandbox.wall import LOST, Elsewhere, Limits, Wall, WorkerHandle
from eureka_agent.text import plain_line, plain_text


def raised_by(
    fault: Fault, otherwise: type[errors.EurekaError], environment: str, opening: bool = False
) -> errors.EurekaError:
    """The error for a worker's fault: GpuLostError, EnvironmentFaultError where no reward is to
    blame, else `otherwise`. `environment`: its name for the user; `opening`: there is no reward
    yet."""
    if fault.gpu:
        hint = "`nvidia-smi` and `dmesg` tell why; the same command goes on where it was"
        return errors.GpuLostError(plain_line(fault.message, bounds.LONGEST_FAULT), hint)
    if fault.environment:
        return _environment_fault(fault.message, fault.hint, environment, opening)
    return otherwise(fault.message.strip() or "the worker gave no reason", fault.hint)


def stuck(
    last_words: str, timeout_s: float, environment: str
) -> errors.EnvironmentFaultError | None:
    """The error for a worker that hangs in a call of the environment; else None."""
    _, found, stack = plain_text(last_words).rpartition("Timeout (")
    calls = [line.strip() for line in stack.splitlines() if line.startswith("  File ")]
    if not found or not calls:
        return None
    message = f"it gave no sign of life for {timeout_s:g} s and was killed, in {calls[0]}"
    hint = (
        "look for a call into a library that does not end; an environment that is only slow needs a"
        " larger --training-timeout"
    )
    return _environment_fault(message, hint, environment, opening=False)


def _environment_fault(
    message: str, hint: str, environment: str, opening: bool
) -> errors.EnvironmentFaultError:
    whose = (
        "the environment fails before any reward is called"
        if opening
        else "the environment is at fault, no reward is"
    )
    check = command(shlex.join(["envs", "--check", environment]))
    hint = plain_line(hint, bounds.LONGEST_HINT)
    return errors.EnvironmentFaultError(
        f"{whose}: {plain_line(message, bounds.LONGEST_FAULT)}",
        f"{hint}; `{check}` looks for such faults; then start a new run",
    )


# ── the worker's client ───────────────────────────────────────────────────────────────────────────


START_SECONDS = 300.0
"""Timeout for importing libraries and opening an environment, or for preparing trainings. A cold
disk, a busy machine or the compilation of GPU kernels may need minutes."""
_SHORT_OF_MEMORY = "if the machine is short of memory, use fewer --slots"
_BROKEN = "code in it spoke in its name: look at the environment's files, and at who made them"
_POLL_SECONDS = 1.0
"""Interval at which `receive` checks that the process is alive."""
_STANDSTILL_SECONDS = 0.5
"""Delay of a check from which this process counts as suspended, by Ctrl-Z or with the machine."""
_MOST_SOURCES = 100
_WORKERS_OWN_BYTES = 1 << 30
"""Memory of a worker beside its command's."""
_MOST_PROCESSES = 2048
"""Processes and threads of a worker with a command: JAX starts some for each core."""
_WALL_FOLDER = "wall"
_INBOX_FOLDER = "inbox"
"""Part of a worker's folder that the wall hides from the worker. The process wall hides nothing."""


def absolute_reference(environment: str) -> str:
    """The argument of `--env`, with a folder's path made absolute."""
    folder = environment_folder(environment)
    return environment if folder is None else str(folder)


def environment_folder(environment: str) -> Path | None:
    """Absolute path of the user's folder that `--env` names; None without one."""
    if not environment:
        return None
    built_in = built_in_folder(environment) is not None
    folder = Path(os.path.expanduser(environment))  # it keeps the name of an unknown user
    is_folder = os.sep in environment or (folder.is_dir() and not built_in)
    return folder.resolve() if is_folder and ":" not in environment else None


def built_in_folder(environment: str) -> Path | None:
    """Folder of a built-in environment; None for another one."""
    folder = resource_folder("envs") / environment
    return folder if (folder / ENVIRONMENT_FILE).is_file() else None


def _with_command(limits: Limits, command: CommandFile, folder: Path) -> Limits:
    """Limits of a worker that starts a command environment's processes."""
    return replace(
        limits,
        readable=(*limits.readable, *readable_folders(command, folder)),
        writable=listed_paths(command, folder, "writable"),
        image=command.image,
        memory_bytes=command.memory_bytes + _WORKERS_OWN_BYTES,
        processes=_MOST_PROCESSES,
        file_bytes=max(limits.file_bytes, command.memory_bytes),
    )


_described: dict[str, str] = {}
"""Descriptions of command environments by themselves, by fingerprint: each is asked once."""


class WorkerClient:
    """Commands to a worker and its events. Kills one that breaks the protocol."""

    def __init__(self, wall: Wall, handle: WorkerHandle, folder: Path) -> None:
        """See `start`."""
        self.environment = ""
        """The environment that was opened last, as the user named it."""
        self._wall = wall
        self._handle = handle
        self._folder = folder
        self.inbox = Inbox(folder / _INBOX_FOLDER)
        """Files from the worker. A file is there before the event that names it."""
        self._reader = EventReader(wall, handle, self.inbox)
        self._sources: dict[str, Path] = {}
        """Paths of the latest files sent to the worker, by their names there."""
        self._sent_once: set[str] = set()
        """Names of the files sent with `once` that the worker still has."""
        self._kept: dict[str, frozenset[str]] = {}
        """Names of the latest such files, by the purpose that the worker keeps them for."""
        self.last_sign_of_life = time.monotonic()
        """Time of the worker's last progress, in `time.monotonic` seconds. The caller sets it."""
        self.write_timeout_s = START_SECONDS
        """Timeout of a write: a trainer reads between two iterations."""

    @classmethod
    async def start(
        cls, wall: Wall, root: Path, limits: Limits | None = None, environment: str = ""
    ) -> WorkerClient:
        """Start a worker with a new folder under `root`. It may read the folder of `environment`
        and the shared one beside it. Raises EurekaError when it cannot be started."""
        with storage_errors(root):
            root.mkdir(parents=True, exist_ok=True)
            folder = Path(tempfile.mkdtemp(prefix="worker-", dir=root)).resolve()
            (folder / _WALL_FOLDER).mkdir()
        limits = limits or Limits()
        if (own := environment_folder(environment)) is not None:
            limits = replace(limits, readable=(*limits.readable, *source_folders(own)))
            if is_command(own):
                limits = _with_command(limits, read_command(own), own)
        try:
            if limits.image and wall.name != "docker":
                raise errors.WallError(
                    f"command.yaml names the image {limits.image!r}, which the sandbox"
                    f" {wall.name!r} cannot start",
                    "use --sandbox docker, or name an interpreter of this machine",
                )
            handle = await wall.start(folder / _WALL_FOLDER, limits)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return cls(wall, handle, folder)

    @property
    def alive(self) -> bool:
        """False once the process or its stream of events has ended."""
        return self._handle.returncode is None and not self._reader.done

    async def send(self, command: Command) -> None:
        """Send one command. A dead worker gets nothing; `receive` raises the error."""
        await self._write(command.model_dump_json().encode() + b"\n")

    async def give(self, path: Path, name: str, once: bool = False) -> None:
        """Send a file as `name` for later commands; with `once`, only if that name was not sent
        before. Raises EurekaError for a file that cannot be read or is too large."""
        if once and name in self._sent_once:
            return
        try:
            content = await asyncio.to_thread(read_plain, path, bounds.MAX_FILE_BYTES)
        except OSError as error:
            raise errors.EurekaError(
                f"cannot give a worker the file {str(path)!r}: {errors.system_reason(error)}",
                "restore it, or train again",
            ) from None
        self._sources[name] = path
        if len(self._sources) > _MOST_SOURCES:
            del self._sources[next(iter(self._sources))]
        header = bounds.FileHeader(name=name, size=len(content)).model_dump_json().encode()
        await self._write(header + b"\n" + content)
        if once:
            self._sent_once.add(name)

    def keep_only(self, names: Iterable[str], purpose: str) -> None:
        """Note that after the next command the worker has, of the files sent with `once`, only
        these and the latest ones for other purposes."""
        self._kept[purpose] = frozenset(names)
        self._sent_once.intersection_update(itertools.chain(*self._kept.values()))

    async def _write(self, data: bytes) -> None:
        """Write to the worker, or kill it when it does not read in time."""
        try:
            async with asyncio.timeout(self.write_timeout_s):
                await self._handle.write(data)
        except ConnectionError:
            pass
        except TimeoutError:
            self._reader.violation = (
                self._reader.violation or f"it read nothing for {self.write_timeout_s:g} s"
            )
            await self._wall.kill(self._handle)

    async def receive(self, timeout_s: float | None = None) -> Event:
        """The next event. Raises WorkerDiedError at the end of the worker, TimeoutError after
        `timeout_s`, EurekaError when a file from the worker could not be stored."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            began = time.monotonic()
            poll_s = _POLL_SECONDS
            if deadline is not None:
                poll_s = min(poll_s, max(0.0, deadline - began))
            try:
                event = await self._reader.next_event(poll_s)
                break
            except TimeoutError:
                late = time.monotonic() - began - poll_s
                if late > _STANDSTILL_SECONDS:  # the worker's output is still unread
                    self.last_sign_of_life += late
                    deadline = None if deadline is None else deadline + late + _POLL_SECONDS
                if self._handle.returncode is not None:  # a child of it holds the pipe open
                    await self._wall.kill(self._handle)
                elif deadline is not None and time.monotonic() >= deadline:
                    raise
        if event is not None:
            return self._with_own_paths(event)
        if self._reader.failure is not None:
            raise self._reader.failure
        if self._handle.returncode == LOST:
            raise errors.WorkerLostError(f"a worker was lost: {self.last_words()}")
        ending = self.ending()
        last_words = "its last words are above; " if "\n" in ending else ""
        raise errors.WorkerDiedError(
            f"the worker {ending}",
            f"{last_words}{_BROKEN if self._reader.violation else _SHORT_OF_MEMORY}",
        )

    def _with_own_paths(self, event: Event) -> Event:
        """The event, with the driver's paths in its faults: a user cannot see the worker's."""
        if isinstance(event, Fault):
            return event.model_copy(update={"message": self._own_paths(event.message)})
        if isinstance(event, Evaluated):
            scores = (
                score.model_copy(update={"fault": self._own_paths(score.fault)})
                for score in event.scores
            )
            return event.model_copy(update={"scores": tuple(scores)})
        return event

    def _own_paths(self, text: str) -> str:
        for name, path in self._sources.items():
            *before, rest = text.split(f"/{name}'")
            if before:
                quote = "'"
                text = "".join(f"{part.rpartition(quote)[0]}'{path}'" for part in before) + rest
        return text

    async def open(
        self,
        environment: str,
        task: str | None,
        device: str = "cpu",
        timeout_s: float = START_SECONDS,
        fitness: WrittenFitness | None = None,
        rehearse: bool = False,
    ) -> Opened:
        """Load an environment and a task. See `Open` for `fitness` and `rehearse`. Raises
        EurekaError with the worker's message when they cannot be loaded."""
        self.environment = environment
        reference = absolute_reference(environment)
        if isinstance(self._handle, Elsewhere):
            reference = str(self._handle.places.get(Path(reference), reference))
        key, command = "", {}
        folder = environment_folder(environment)
        if folder is not None and is_command(folder):
            key = fingerprint_of(folder_files(folder))
            known = "" if rehearse else _described.get(key, "")
            interpreter = str(program(read_command(folder), folder))
            command = {"described": known, "interpreter": interpreter}
            timeout_s = max(timeout_s, bounds.OPENING_SECONDS)
        await self.send(
            Open(
                environment=reference,
                task=task,
                device=device,
                fitness=fitness,
                rehearse=rehearse,
                **command,
            )
        )
        try:
            event = await self.receive(timeout_s)
        except TimeoutError:
            await self.kill()
            raise errors.WorkerDiedError(
                f"opening the environment {environment!r} took longer than {timeout_s:g} s",
                "try again on a less busy machine, or look for a loop in the environment's"
                " constructor",
            ) from None
        if isinstance(event, Opened):
            if event.described:
                _described[key] = event.described
            return event
        await self.kill()
        if isinstance(event, Fault):
            raise raised_by(event, errors.EurekaError, environment, opening=True)
        raise errors.WorkerDiedError(
            f"the worker answered 'open' with {event.type!r}", "expected 'opened'"
        )

    async def prepare(self, command: Prepare) -> None:
        """Make a population in an opened worker. Raises EurekaError with the worker's message."""
        await self.send(command)
        try:
            event = await self.receive(START_SECONDS)
        except TimeoutError:
            raise errors.WorkerDiedError(
                f"the worker did not prepare a training within {START_SECONDS:g} s",
                "try again on a less busy machine, or use --device cpu",
            ) from None
        if isinstance(event, Fault):
            raise raised_by(event, errors.EurekaError, self.environment)
        if not isinstance(event, Prepared):
            raise errors.WorkerDiedError(
                f"the worker answered 'prepare' with {event.type!r}", "expected 'prepared'"
            )

    def ending(self) -> str:
        """Description of the process's end, with the last lines of its standard error."""
        status = self._handle.returncode
        if self._reader.violation:
            how = f"broke the protocol ({self._reader.violation}) and was killed"
        elif status is None:
            how = "closed its end"
        elif status < 0:
            how = f"was ended by {errors.signal_name(-status)}"
        else:
            how = f"ended with exit status {status}"
        tail = plain_text(self._handle.last_words())
        return f"{how}\n{tail}" if tail else how

    def last_words(self) -> str:
        return self._handle.last_words()

    async def kill(self) -> None:
        await self._wall.kill(self._handle)
        await self._reader.stop()

    async def close(self) -> None:
        """Shut the worker down, or kill it. Leaves nothing, even when cancelled."""
        try:
            if self.alive:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(EXIT_SECONDS):
                        await self.send(Shutdown())  # it blocks while the worker reads nothing
                        await self._handle.wait()
        finally:
            ending = asyncio.ensure_future(self._end())
            try:
                await asyncio.shield(ending)
            except asyncio.CancelledError:
                await asyncio.wait({ending})  # the caller goes on only when the folder is gone
                raise

    async def _end(self) -> None:
        await self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)
