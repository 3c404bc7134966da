"""The bubblewrap wall: namespaces of its own, a root made of read-only folders, a filter of system
calls. For machines without an engine."""

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
from eureka_agent.sandbox.process_wall import ProcessHandle, start_process
from eureka_agent.sandbox.readable import named_folders
from eureka_agent.sandbox.wall import Limits, WorkerHandle
from eureka_agent.sandbox.worker_environment import worker_environment
from eureka_agent.seccomp import kernel
from eureka_agent.seccomp.profile import compile_profile, worker_profile
from eureka_agent.seccomp.system_calls import current_architecture

SCRATCH = Path("/scratch")
"""The worker's own folder, as it sees it."""
_TEMPORARY_BYTES = 64 << 20
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives")
_HARDWARE = ("/sys/devices/system/cpu", "/sys/devices/system/node")
"""What the processor can do: without it torch takes the plainest one and is slower."""
_PROBE_SECONDS = 20.0
_PACKAGE = Path(eureka_agent.__file__).resolve().parent


class BubblewrapHandle(ProcessHandle):
    """A worker behind `bwrap`, which is a child process of the driver's and ends with its last
    words."""

    def __init__(self, process: asyncio.subprocess.Process, group: ControlGroup | None) -> None:
        """`group`: removed when it is over."""
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
        """See `Wall.start`. The worker sees nothing of `folder`."""
        named_folders(limits.readable, os.environ)  # those that no wall shows are refused
        environment = worker_environment(SCRATCH, secrets.token_hex(16), limits.visible_gpu)
        worker = [
            *(sys.executable, "-P", "-m", "eureka_agent.worker", "--scratch", str(SCRATCH)),
            *("--data-bytes", str(limits.memory_bytes), "--open-files", str(limits.open_files)),
            *("--file-bytes", str(limits.file_bytes)),
            *(("--processes", str(limits.processes)) if _counts_by_namespace() else ()),
            *(("--cores", ",".join(map(str, limits.cores))) if limits.cores else ()),
            *(("--kernels", str(limits.kernels)) if limits.kernels is not None else ()),
        ]
        group = (
            ControlGroup.make(limits) if self._grouped else None
        )  # no thread: who gives up could not wait for it
        if self._grouped and group is None:
            raise WallError(
                "no control group can be made any more",
                "look into /sys/fs/cgroup, and start the run again",
            )
        try:
            with sandboxed(worker, limits) as (command, descriptors):
                if group is not None:
                    command = ["/bin/sh", "-c", ENTER, "sh", *command]
                    environment["EUREKA_GROUPS"] = ":".join(map(str, group.folders))
                # the environment is bwrap's too: its own is for the worker to read in /proc
                process = await start_process(command, environment, Path("/"), descriptors)
        except BaseException as error:  # also a cancellation: no group stays behind
            if group is not None:
                await asyncio.shield(asyncio.to_thread(group.remove))
            if not isinstance(error, OSError):
                raise
            raise WallError(
                f"cannot start a worker: {error.filename!r}: {system_reason(error)}",
                "free memory, disk or processes",
            ) from None
        return BubblewrapHandle(process, group)

    async def kill(self, handle: WorkerHandle) -> None:
        """See `Wall.kill`. What bwrap started is in a process namespace that ends with it."""
        assert isinstance(handle, BubblewrapHandle)
        handle.end()
        await handle.gone()  # until nobody holds its pipes any more
        if handle.group is not None:
            await asyncio.to_thread(handle.group.remove)


def unavailable_reason() -> str | None:
    """None where this wall works; else the reason and the next step, in one line. Really starts a
    Python behind it."""
    if sys.platform != "linux":
        return "bubblewrap is a program for Linux"
    if (reason := kernel.unavailable_reason()) is not None:
        return reason
    try:
        with sandboxed([sys.executable, "-I", "-S", "-c", "pass"], Limits()) as (
            command,
            descriptors,
        ):
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
    said = (
        " ".join(ended.stderr.decode(errors="replace").split())[-300:]
        or f"exit status {ended.returncode}"
    )
    return f"{said}; {_next_step(said)}"


def _next_step(said: str) -> str:
    if "Unknown option" in said:
        return "install bubblewrap 0.8 or newer"
    if (
        "namespace" in said
        or "uid map" in said
        or "Operation not permitted" in said
        or "Permission denied" in said
    ):
        return (
            "allow user namespaces (sysctl user.max_user_namespaces,"
            " kernel.apparmor_restrict_unprivileged_userns=0), or use another sandbox"
        )
    return "try it by hand: bwrap --unshare-all --ro-bind / / true"


def _binary() -> str:
    found = shutil.which("bwrap")
    if found is None:
        raise WallError(
            "there is no program bwrap", "install the package bubblewrap, or use another sandbox"
        )
    return found


@contextlib.contextmanager
def sandboxed(program: list[str], limits: Limits) -> Iterator[tuple[list[str], tuple[int, ...]]]:
    """The command that runs a program behind the wall, and the descriptors that it has to inherit.

    The limits that a worker sets for itself and a control group are not in it. Raises WallError
    where there is no `bwrap`.
    """
    binary = _binary()
    architecture = current_architecture()
    if architecture is None:
        raise WallError(str(kernel.unavailable_reason()), "use another sandbox")
    profile = _in_memory(compile_profile(worker_profile(), architecture))
    try:
        options = [*_options(limits), "--seccomp", str(profile)]
        # not in the command line, which the worker reads in /proc: they name the person's folders
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
        "--unshare-user",
        "--disable-userns",
        "--cap-drop",
        "ALL",
        "--die-with-parent",
        "--new-session",
    ]
    options += [
        "--uid",
        "65534",
        "--gid",
        "65534",
        "--hostname",
        "worker",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
    ]
    # before what may lie below it
    options += ["--size", str(_TEMPORARY_BYTES), "--perms", "1777", "--tmpfs", "/tmp"]
    for name in _SYSTEM:
        if Path(name).is_symlink():
            options += ["--symlink", os.readlink(name), name]
        elif Path(name).is_dir():
            options += ["--ro-bind", name, name]
    for path in (*_SYSTEM_FILES, *_HARDWARE):
        options += ["--ro-bind-try", path, path]
    wanted = (
        *_python_folders(),
        *limits.readable,
        *(() if limits.kernels is None else (limits.kernels,)),
    )
    options += _shown(wanted, executable=Path(sys.executable))
    if limits.visible_gpu != "":
        for device in sorted(Path("/dev").glob("nvidia*")):
            options += ["--dev-bind-try", str(device), str(device)]
    options += ["--size", str(limits.scratch_bytes), "--perms", "0700", "--tmpfs", str(SCRATCH)]
    # to the kernel a worker of root's is root: the settings of the whole machine in /proc/sys would
    # be its to write
    options += ["--remount-ro", "/proc"]
    # what holds all of this is itself a file system in memory, without a limit
    return [*options, "--remount-ro", "/", "--remount-ro", "/dev", "--chdir", str(SCRATCH)]


def _shown(wanted: Iterable[Path], executable: Path) -> list[str]:
    """Options that bind the folders at their real places, with the links and folders by which their
    own names and the interpreter's lead there."""
    names = {path.absolute() for path in wanted if path.exists()}
    routes = [route(name) for name in sorted({*names, executable.absolute()})]
    bound = _outermost(Path(os.path.realpath(name)) for name in names)
    there = (*map(Path, (*_SYSTEM, *_SYSTEM_FILES)), *bound)

    def is_new(place: Path) -> bool:
        return not any(place.is_relative_to(folder) for folder in there)

    options = [option for folder in bound for option in ("--ro-bind", str(folder), str(folder))]
    for passed in sorted({folder for found in routes for folder in found.passed if is_new(folder)}):
        options += ["--dir", str(passed)]
    for place, target in sorted(
        {link for found in routes for link in found.links if is_new(link[0])}
    ):
        options += ["--symlink", target, str(place)]
    return options


@dataclass(frozen=True)
class Route:
    """Files that the kernel looks at on its way along a name."""

    links: tuple[tuple[Path, str], ...]
    """Real place and content of each link."""
    passed: tuple[Path, ...]
    """Real folders that a `..` leads out of."""


def route(path: Path) -> Route:
    """The way that the kernel takes from `/` to an absolute path that exists."""
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
    """The real folders that lie in no other one of them, nor in the system's; parents first."""
    chosen = [Path("/usr")]
    for folder in sorted(set(folders)):
        if not any(folder.is_relative_to(other) for other in chosen):
            chosen.append(folder)
    return chosen[1:]


def _python_folders() -> Iterator[Path]:
    """Where the worker's Python, its libraries and the modules that it finds lie; of this package's
    own neighbours the environments alone."""
    yield from map(Path, {sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix})
    yield Path(os.path.realpath(sys.executable)).parent
    yield _PACKAGE
    yield resource_folder("envs")
    # what a person adds; in site-packages .pth files add the folders that come behind it
    packages = [
        index
        for index, entry in enumerate(sys.path)
        if entry in (*site.getsitepackages(), site.getusersitepackages())
    ]
    entries = sys.path[packages[0] :] if packages else []
    for name in ("PYTHONPATH", "LD_LIBRARY_PATH"):
        entries = [*entries, *os.environ.get(name, "").split(os.pathsep)]
    home = Path(
        os.path.realpath(os.path.expanduser("~"))
    )  # never fails, as where a user has no home
    for entry in filter(os.path.isabs, entries):
        # Python drops `..` from a name before it looks, which is another folder than the kernel's
        # where a link comes before it
        for name in dict.fromkeys((entry, os.path.abspath(entry))):
            real = Path(os.path.realpath(name))
            # a whole home folder is none of modules
            if real != _PACKAGE.parent and not home.is_relative_to(real):
                yield Path(name)


def _can_group() -> bool:
    group = ControlGroup.make(Limits())
    if group is None:
        return False
    group.remove()
    return True


def _counts_by_namespace() -> bool:
    """Whether the kernel counts the processes of a user namespace apart from all others of the same
    person: since Linux 5.14."""
    major, minor = (
        int("".join(filter(str.isdigit, part)) or 0) for part in os.uname().release.split(".")[:2]
    )
    return (major, minor) >= (5, 14)
