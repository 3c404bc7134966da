"""Arguments, environment variables, and files of this machine that a worker is given."""

from __future__ import annotations

import os
import site
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import eureka_agent
from eureka_agent.boundary.bounds import MARK, PASSED_ON
from eureka_agent.errors import WallError
from eureka_agent.resources import resource_folder
from eureka_agent.sandbox.wall import Limits

HUGE_PAGES = "glibc.malloc.hugetlb=1"
"""Value of GLIBC_TUNABLES for large pages: a batch of simulations has more small pages than a core
caches addresses of. Trainings are 5 to 10 % faster (benchmarks/LOG.md). Other C libraries ignore
it."""
SAME_PRODUCTS = "AUTO"
"""Value of MKL_CBWR with which a product of matrices is the same to the bit wherever they lie in
memory. Without it, MKL's products on AMD's cores depend on the alignment of a population's slot;
they take as long (benchmarks/LOG.md)."""
WORKER_VARIABLES = {
    "MKL_CBWR": SAME_PRODUCTS,
    "PYTHONUNBUFFERED": "1",
    # a reward's set of names has one order in every process
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
SCRATCH = Path("/scratch")
"""The worker's own folder, as mounted for it."""
TEMPORARY_BYTES = 64 << 20
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives")
_PACKAGE = Path(eureka_agent.__file__).resolve().parent


def worker_arguments(scratch: str, limits: Limits, kernels: str) -> list[str]:
    """Arguments of Python for a worker. `scratch`, `kernels`: folders as the worker sees them."""
    return [
        *("-P", "-m", "eureka_agent.worker", "--scratch", scratch),
        *("--data-bytes", str(limits.memory_bytes), "--open-files", str(limits.open_files)),
        *("--file-bytes", str(limits.file_bytes)),
        *(("--cores", ",".join(map(str, limits.cores))) if limits.cores else ()),
        *(("--kernels", kernels) if limits.kernels is not None else ()),
    ]


def worker_environment(scratch: Path, mark: str, visible_gpu: str | None) -> dict[str, str]:
    """Environment of a worker on this machine's Python, without keys. `scratch`: its home, as the
    worker sees it; `mark`: unique value of `MARK`; `visible_gpu`: see `Limits`."""
    environment = {"GLIBC_TUNABLES": HUGE_PAGES}
    environment |= {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    if visible_gpu is not None:
        environment["CUDA_VISIBLE_DEVICES"] = visible_gpu
    paths = (str(_PACKAGE.parent), os.environ.get("PYTHONPATH"))
    return {
        **environment,
        **WORKER_VARIABLES,
        MARK: mark,
        "HOME": str(scratch),
        "TMPDIR": str(scratch),
        # the worker imports whatever the driver can: this package if not installed, own modules
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PYTHONUSERBASE": site.getuserbase(),
    }


@dataclass(frozen=True)
class ReadableFiles:
    """Files that a worker reads under the paths that they have on this machine."""

    bound: tuple[Path, ...]
    """Real files and folders, parents first; one lies in another only on another file system."""
    own: frozenset[Path]
    """Those that are not Python's or the system's: this package and the user's folders."""
    links: tuple[tuple[Path, str], ...]
    """Real place and content of each link that leads there."""
    passed: tuple[Path, ...]
    """Real folders that a `..` leaves on the way."""


def without_system(files: ReadableFiles) -> ReadableFiles:
    """The files without this machine's /usr, for a container with another one. Raises WallError
    where this Python is a part of that."""
    system = tuple(name for name in (*_SYSTEM, *_SYSTEM_FILES) if os.path.lexists(name))
    python = os.path.realpath(sys.base_prefix)
    if any(Path(python).is_relative_to(os.path.realpath(name)) for name in system):
        raise WallError(
            f"with an image of your own a worker cannot take this Python's files from {python!r}",
            "run eureka by a Python outside of /usr, as `uv python install` makes one",
        )
    return replace(
        files,
        bound=tuple(path for path in files.bound if str(path) not in system),
        links=tuple(link for link in files.links if str(link[0]) not in system),
    )


def check_readable(limits: Limits) -> None:
    """Raise WallError for the root folder in `Limits.readable` or PYTHONPATH."""
    for path in (*map(Path, _entries("PYTHONPATH")), *limits.readable):
        real = path.resolve()  # a link may lead there
        if real == real.parent:
            raise WallError(
                f"the sandbox will not show a worker the folder {str(path)!r}",
                "name a smaller folder: in PYTHONPATH, or with --env",
            )


def readable_files(limits: Limits) -> ReadableFiles:
    kernels = () if limits.kernels is None else (limits.kernels,)
    own = {_PACKAGE, resource_folder("envs"), *_modules(_entries("PYTHONPATH"))}
    own |= {*limits.readable, *kernels}
    names = {path.absolute() for path in (*_python(), *own) if path.exists()}
    system = [Path(name) for name in (*_SYSTEM, *_SYSTEM_FILES) if os.path.lexists(name)]
    linked = {path for path in system if path.is_symlink()}
    wanted = {path for path in system if path not in linked} | {path.resolve() for path in names}
    bound = _outermost(wanted)
    links, passed = dict[Path, str](), set[Path]()
    for name in {*names, Path(sys.executable).absolute()}:
        _follow(name, links, passed)

    def is_new(place: Path) -> bool:
        return not any(place.is_relative_to(each) for each in (*bound, *linked))

    new = {place: target for place, target in links.items() if is_new(place)}
    new |= {place: os.readlink(place) for place in linked}
    return ReadableFiles(
        bound=bound,
        own=frozenset(path.resolve() for path in own),
        links=tuple(sorted(new.items())),
        passed=tuple(sorted(filter(is_new, passed))),
    )


def _follow(path: Path, links: dict[Path, str], passed: set[Path]) -> None:
    """Add what the kernel visits on its way along an absolute path that exists: the real place and
    content of each link, and each real folder that a `..` leaves."""
    pending = list(reversed(path.parts[1:]))
    here = Path(path.anchor)
    while pending:
        part = pending.pop()
        if part == "..":
            passed.add(here)
            here = here.parent
        elif (here / part).is_symlink():
            target = links[here / part] = os.readlink(here / part)
            here = Path("/") if os.path.isabs(target) else here
            pending += reversed(Path(target).parts[os.path.isabs(target) :])
        else:
            here = here / part


def _outermost(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Paths outside of each other, or of another file system than the one around them."""
    chosen: list[Path] = []
    for path in sorted(paths):
        outer = [other for other in chosen if path.is_relative_to(other)]
        if not outer or outer[-1].stat().st_dev != path.stat().st_dev:
            chosen.append(path)
    return tuple(chosen)


def _python() -> Iterator[Path]:
    """Folders of the worker's Python, its libraries, and its installed packages."""
    yield from map(Path, {sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix})
    yield Path(os.path.realpath(sys.executable)).parent
    # installed packages, and the folders after them, which .pth files add
    sites = (*site.getsitepackages(), site.getusersitepackages())
    first = next((index for index, entry in enumerate(sys.path) if entry in sites), len(sys.path))
    yield from _modules((*sys.path[first:], *_entries("LD_LIBRARY_PATH")))


def _modules(entries: Iterable[str]) -> Iterator[Path]:
    """Entries of a search path that are absolute, and no folder around this package or a home."""
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


def _entries(variable: str) -> list[str]:
    return [entry for entry in os.environ.get(variable, "").split(os.pathsep) if entry]
