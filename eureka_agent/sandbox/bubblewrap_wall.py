"""The bubblewrap wall, without an engine: namespaces, read-only folders, a filter."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from eureka_agent.boundary import filters
from eureka_agent.boundary.profile import compile_profile, worker_profile
from eureka_agent.boundary.system_calls import current_architecture
from eureka_agent.errors import WallError, system_reason
from eureka_agent.sandbox.process_wall import ProcessHandle, cannot_start, start_process
from eureka_agent.sandbox.wall import Limits, WorkerHandle
from eureka_agent.sandbox.worker_environment import (
    SCRATCH,
    TEMPORARY_BYTES,
    check_readable,
    readable_files,
    worker_arguments,
    worker_environment,
)

_HARDWARE = ("/sys/devices/system/cpu", "/sys/devices/system/node")
"""Capabilities of the processor: without them torch falls back to slower code."""
_PROBE_SECONDS = 20.0
_GROUPS = Path("/sys/fs/cgroup")
_GROUP_PREFIX = "eureka-worker-"
_REMOVAL_SECONDS = 5.0
_LEFT_SECONDS = 600.0
"""Age from which an empty group is a leftover: a worker enters its group within milliseconds."""
_ENTER = (
    'for group in $(echo "$EUREKA_GROUPS" | tr : " "); do echo $$ >"$group/cgroup.procs" || exit'
    ' 125; done; unset EUREKA_GROUPS; exec "$@"'
)
"""Shell script that enters the groups in `EUREKA_GROUPS`, then executes its arguments."""


@dataclass(frozen=True)
class ControlGroup:
    """A control group of one worker: memory and processes of all it starts. Needs root."""

    folders: tuple[Path, ...]
    """One, or with version 1 one per resource."""

    @classmethod
    def make(cls, limits: Limits) -> ControlGroup | None:
        """Make a group with these limits; None where that fails. Empty leftovers are removed."""
        if os.geteuid() != 0:
            return None  # the service manager controls groups that are delegated to a user
        memory, processes = limits.memory_bytes, limits.processes
        if (_GROUPS / "cgroup.controllers").exists():
            settings = {_GROUPS: {"memory.max": memory, "pids.max": processes}}
        else:
            settings = {
                _GROUPS / "memory": {"memory.limit_in_bytes": memory},
                _GROUPS / "pids": {"pids.max": processes},
            }
        name = f"{_GROUP_PREFIX}{int(time.time())}-{secrets.token_hex(4)}"
        group = cls(tuple(parent / name for parent in settings))
        try:
            for (parent, values), folder in zip(settings.items(), group.folders, strict=True):
                _remove_empty(parent)
                folder.mkdir()
                for file, value in values.items():
                    (folder / file).write_text(str(value))
        except OSError:
            group.remove()
            return None
        return group

    def remove(self) -> None:
        """Remove the group once its processes are gone; after some seconds it is left behind."""
        deadline = time.monotonic() + _REMOVAL_SECONDS
        for folder in self.folders:
            while folder.is_dir():
                try:
                    folder.rmdir()
                except OSError:
                    if time.monotonic() > deadline:
                        break
                    time.sleep(0.005)


def _remove_empty(parent: Path) -> None:
    """Remove empty groups that are old by the time in their name: the kernel keeps no folder's
    time, and a process id means nothing in another container."""
    for folder in parent.glob(f"{_GROUP_PREFIX}*"):
        made = folder.name.removeprefix(_GROUP_PREFIX).split("-")[0]
        if made.isdecimal() and time.time() - int(made) > _LEFT_SECONDS:
            with contextlib.suppress(OSError):
                folder.rmdir()


class BubblewrapHandle(ProcessHandle):
    """A worker behind `bwrap`, a child process of the driver that exits with the worker."""

    def __init__(self, process: asyncio.subprocess.Process, group: ControlGroup | None) -> None:
        """`group`: removed after the worker."""
        super().__init__(process)
        self.group = group


class BubblewrapWall:
    """Workers in namespaces of their own."""

    name = "bubblewrap"
    covers: tuple[str, ...] = (
        "reading your files, but for the environment, `_shared` and the modules that Python finds",
        "writing anywhere but to a scratch folder in memory, of limited size",
        "the network, and sockets of every kind",
        "API keys and other environment variables",
        "other processes: a worker sees and signals its own alone",
        "system calls that a worker has no use for, and new namespaces",
        "memory, CPU time of dry runs, file sizes and open files",
        "worker processes that hang, crash or outlive the search",
    )

    def __init__(self) -> None:
        self._grouped = os.geteuid() == 0 and _can_group()
        missing: tuple[str, ...] = ()
        if not self._grouped:
            missing = (
                "the memory of all of a worker's processes together: each has a limit of its own",
            )
            if os.geteuid() == 0:
                missing += ("the number of processes: that limit does not hold for root",)
            elif not _counts_by_namespace():
                missing += ("the number of processes: that limit would count all of yours",)
        self.does_not_cover: tuple[str, ...] = (
            *missing,
            "defects of the kernel, which it shares with everything else",
        )

    async def start(self, folder: Path, limits: Limits) -> WorkerHandle:
        """See `Wall.start`. The worker does not see `folder`."""
        check_readable(limits)
        environment = worker_environment(SCRATCH, secrets.token_hex(16), limits.visible_gpu)
        processes = ("--processes", str(limits.processes)) if _counts_by_namespace() else ()
        arguments = worker_arguments(str(SCRATCH), limits, str(limits.kernels))
        worker = [sys.executable, *arguments, *processes]
        # not in a thread, whose group a cancelled start could not remove
        group = ControlGroup.make(limits) if self._grouped else None
        if self._grouped and group is None:
            hint = "look into /sys/fs/cgroup, and start the run again"
            raise WallError("no control group can be made any more", hint)
        try:
            with sandboxed(worker, limits) as (command, descriptors):
                if group is not None:
                    command = ["/bin/sh", "-c", _ENTER, "sh", *command]
                    environment["EUREKA_GROUPS"] = ":".join(map(str, group.folders))
                # bwrap has the same environment: the worker can read bwrap's in /proc
                process = await start_process(command, environment, Path("/"), descriptors)
        except BaseException as error:  # also a cancellation: the group must be removed
            if group is not None:
                await asyncio.shield(asyncio.to_thread(group.remove))
            if not isinstance(error, OSError):
                raise
            raise cannot_start(error) from None
        return BubblewrapHandle(process, group)

    async def kill(self, handle: WorkerHandle) -> None:
        """See `Wall.kill`. The processes behind bwrap are in a namespace that ends with it."""
        assert isinstance(handle, BubblewrapHandle)
        handle.end()
        await handle.gone()
        if handle.group is not None:
            await asyncio.to_thread(handle.group.remove)


def unavailable_reason() -> str | None:
    """None where this wall works, tested with a Python behind it; else reason and next step."""
    if sys.platform != "linux":
        return "bubblewrap is a program for Linux"
    if (reason := filters.unavailable_reason()) is not None:
        return reason
    try:
        probe = [sys.executable, "-I", "-S", "-c", "pass"]
        with sandboxed(probe, Limits()) as (command, descriptors):
            ended = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=worker_environment(SCRATCH, "probe", None),
                cwd="/",
                pass_fds=descriptors,
                timeout=_PROBE_SECONDS,
                check=False,
            )
    except WallError as error:
        return f"{error.message}; {error.hint}"
    except subprocess.TimeoutExpired:
        return f"bwrap did not start a program within {_PROBE_SECONDS:g} s"
    except OSError as error:
        return f"bwrap cannot be started: {system_reason(error)}"
    if ended.returncode == 0:
        return None
    errors = " ".join(ended.stderr.decode(errors="replace").split())[-300:]
    said = errors or f"exit status {ended.returncode}"
    return f"{said}; {_next_step(said)}"


def _next_step(said: str) -> str:
    if "Unknown option" in said:
        return "install bubblewrap 0.8 or newer"
    refusals = ("namespace", "uid map", "Operation not permitted", "Permission denied")
    if any(refusal in said for refusal in refusals):
        return (
            "allow user namespaces (sysctl user.max_user_namespaces,"
            " kernel.apparmor_restrict_unprivileged_userns=0), or use another sandbox"
        )
    return "try it by hand: bwrap --unshare-all --ro-bind / / true"


@contextlib.contextmanager
def sandboxed(program: list[str], limits: Limits) -> Iterator[tuple[list[str], tuple[int, ...]]]:
    """Make the command for a program behind the wall, without control group and the worker's own
    limits, and the descriptors that it inherits. Raises WallError without `bwrap`."""
    if (binary := shutil.which("bwrap")) is None:
        hint = "install the package bubblewrap, or use another sandbox"
        raise WallError("there is no program bwrap", hint)
    architecture = current_architecture()
    if architecture is None:
        raise WallError(str(filters.unavailable_reason()), "use another sandbox")
    profile = _in_memory(compile_profile(worker_profile(), architecture))
    try:
        options = [*_options(limits), "--seccomp", str(profile)]
        # hidden from the worker, which reads command lines in /proc: they name the user's folders
        arguments = _in_memory(b"".join(os.fsencode(option) + b"\0" for option in options))
        try:
            yield [binary, "--args", str(arguments), "--", *program], (arguments, profile)
        finally:
            os.close(arguments)
    finally:
        os.close(profile)


def _in_memory(data: bytes) -> int:
    descriptor = os.memfd_create("bwrap")
    os.write(descriptor, data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _options(limits: Limits) -> list[str]:
    options = [
        "--unshare-all",
        *("--unshare-user", "--disable-userns", "--die-with-parent", "--new-session"),
        *("--cap-drop", "ALL", "--uid", "65534", "--gid", "65534", "--hostname", "worker"),
        *("--proc", "/proc", "--dev", "/dev"),
    ]
    # before folders that may lie below it
    options += ["--size", str(TEMPORARY_BYTES), "--perms", "1777", "--tmpfs", "/tmp"]
    files = readable_files(limits)
    for path in (*map(str, files.bound), *filter(os.path.exists, _HARDWARE)):
        options += ["--ro-bind", path, path]
    options += [option for folder in files.passed for option in ("--dir", str(folder))]
    for place, target in files.links:
        options += ["--symlink", target, str(place)]
    if limits.visible_gpu != "":
        for device in sorted(Path("/dev").glob("nvidia*")):
            options += ["--dev-bind-try", str(device), str(device)]
    options += ["--size", str(limits.scratch_bytes), "--perms", "0700", "--tmpfs", str(SCRATCH)]
    # a worker of root's is root to the kernel, which would let it write the machine's settings in
    # /proc/sys
    options += ["--remount-ro", "/proc"]
    # the root of all this is a file system in memory without a limit
    return [*options, "--remount-ro", "/", "--remount-ro", "/dev", "--chdir", str(SCRATCH)]


def _can_group() -> bool:
    group = ControlGroup.make(Limits())
    if group is None:
        return False
    group.remove()
    return True


def _counts_by_namespace() -> bool:
    """True where the kernel counts processes per user namespace, since Linux 5.14."""
    parts = os.uname().release.split(".")[:2]
    version = tuple(int("".join(filter(str.isdigit, part)) or 0) for part in parts)
    return version >= (5, 14)
