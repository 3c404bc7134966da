"""The bubblewrap wall, without an engine: namespaces, read-only folders, a filter."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import site
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import eureka_agent
from eureka_agent.errors import WallError, system_reason
from eureka_agent.resources import resource_folder
from eureka_agent.sandbox.cgroups import ENTER, ControlGroup
from eureka_agent.sandbox.process_wall import ProcessHandle, cannot_start, start_process
from eureka_agent.sandbox.readable import named_folders
from eureka_agent.sandbox.wall import Limits, WorkerHandle
from eureka_agent.sandbox.worker_environment import worker_arguments, worker_environment
from eureka_agent.seccomp import kernel
from eureka_agent.seccomp.profile import compile_profile, worker_profile
from eureka_agent.seccomp.system_calls import current_architecture

SCRATCH = Path("/scratch")
"""The worker's own folder, as mounted for it."""
_TEMPORARY_BYTES = 64 << 20
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives")
_HARDWARE = ("/sys/devices/system/cpu", "/sys/devices/system/node")
"""Capabilities of the processor: without them torch falls back to slower code."""
_PROBE_SECONDS = 20.0
_PACKAGE = Path(eureka_agent.__file__).resolve().parent


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
        "reading your files, but for the environment's folder and the modules that Python finds",
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
        named_folders(limits.readable, os.environ)  # raises for folders that no wall shows
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
                    command = ["/bin/sh", "-c", ENTER, "sh", *command]
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
    if (reason := kernel.unavailable_reason()) is not None:
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


def _binary() -> str:
    found = shutil.which("bwrap")
    if found is None:
        hint = "install the package bubblewrap, or use another sandbox"
        raise WallError("there is no program bwrap", hint)
    return found


@contextlib.contextmanager
def sandboxed(program: list[str], limits: Limits) -> Iterator[tuple[list[str], tuple[int, ...]]]:
    """Make the command for a program behind the wall, without control group and the worker's own
    limits, and the descriptors that it inherits. Raises WallError without `bwrap`."""
    binary = _binary()
    architecture = current_architecture()
    if architecture is None:
        raise WallError(str(kernel.unavailable_reason()), "use another sandbox")
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
    options += ["--size", str(_TEMPORARY_BYTES), "--perms", "1777", "--tmpfs", "/tmp"]
    for name in _SYSTEM:
        if Path(name).is_symlink():
            options += ["--symlink", os.readlink(name), name]
        elif Path(name).is_dir():
            options += ["--ro-bind", name, name]
    for path in (*_SYSTEM_FILES, *_HARDWARE):
        options += ["--ro-bind-try", path, path]
    kernels = () if limits.kernels is None else (limits.kernels,)
    wanted = (*_python_folders(), *limits.readable, *kernels)
    options += _shown(wanted, executable=Path(sys.executable))
    if limits.visible_gpu != "":
        for device in sorted(Path("/dev").glob("nvidia*")):
            options += ["--dev-bind-try", str(device), str(device)]
    options += ["--size", str(limits.scratch_bytes), "--perms", "0700", "--tmpfs", str(SCRATCH)]
    # a worker of root's is root to the kernel, which would let it write the machine's settings in
    # /proc/sys
    options += ["--remount-ro", "/proc"]
    # the root of all this is a file system in memory without a limit
    return [*options, "--remount-ro", "/", "--remount-ro", "/dev", "--chdir", str(SCRATCH)]


def _shown(wanted: Iterable[Path], executable: Path) -> list[str]:
    """Options that bind folders at their real places, with the links on the way there."""
    names = {path.absolute() for path in wanted if path.exists()}
    routes = [route(name) for name in sorted({*names, executable.absolute()})]
    bound = _outermost(Path(os.path.realpath(name)) for name in names)
    there = (*map(Path, (*_SYSTEM, *_SYSTEM_FILES)), *bound)

    def is_new(place: Path) -> bool:
        return not any(place.is_relative_to(folder) for folder in there)

    options = [option for folder in bound for option in ("--ro-bind", str(folder), str(folder))]
    for passed in sorted({folder for found in routes for folder in found.passed if is_new(folder)}):
        options += ["--dir", str(passed)]
    links = {link for found in routes for link in found.links if is_new(link[0])}
    for place, target in sorted(links):
        options += ["--symlink", target, str(place)]
    return options


@dataclass(frozen=True)
class Route:
    """Files that the kernel visits on its way along a path."""

    links: tuple[tuple[Path, str], ...]
    """Real place and content of each link."""
    passed: tuple[Path, ...]
    """Real folders that a `..` leaves."""


def route(path: Path) -> Route:
    """Follow the kernel's way from `/` along an absolute path that exists."""
    pending = list(reversed(path.parts[1:]))
    here, links, passed = Path(path.anchor), list[tuple[Path, str]](), list[Path]()
    while pending:
        part = pending.pop()
        if part == "..":
            passed.append(here)
            here = here.parent
        elif (here / part).is_symlink():
            target = os.readlink(here / part)
            links.append((here / part, target))
            here = Path("/") if os.path.isabs(target) else here
            pending += reversed(Path(target).parts[os.path.isabs(target) :])
        else:
            here = here / part
    return Route(tuple(links), tuple(passed))


def _outermost(folders: Iterable[Path]) -> list[Path]:
    """Real folders outside of each other and of the system's; parents first."""
    chosen = [Path("/usr")]
    for folder in sorted(set(folders)):
        if not any(folder.is_relative_to(other) for other in chosen):
            chosen.append(folder)
    return chosen[1:]


def _python_folders() -> Iterator[Path]:
    """Folders of the worker's Python, its libraries, and the modules that it may import."""
    yield from map(Path, {sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix})
    yield Path(os.path.realpath(sys.executable)).parent
    yield _PACKAGE
    yield resource_folder("envs")
    # installed packages, and the folders after them, which .pth files add
    packages = [
        index
        for index, entry in enumerate(sys.path)
        if entry in (*site.getsitepackages(), site.getusersitepackages())
    ]
    entries = sys.path[packages[0] :] if packages else []
    for name in ("PYTHONPATH", "LD_LIBRARY_PATH"):
        entries = [*entries, *os.environ.get(name, "").split(os.pathsep)]
    # never fails, also for a user without a home
    home = Path(os.path.realpath(os.path.expanduser("~")))
    for entry in filter(os.path.isabs, entries):
        # Python removes `..` from a name before it looks there; after a link that is another folder
        # than the kernel's
        for name in dict.fromkeys((entry, os.path.abspath(entry))):
            real = Path(os.path.realpath(name))
            # a whole home folder is not a folder of modules
            if real != _PACKAGE.parent and not home.is_relative_to(real):
                yield Path(name)


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
