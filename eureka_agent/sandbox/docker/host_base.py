"""A base image made of this machine's own Python: no registry is asked, and numbers come out as
they do here, bit for bit.

A reward's fitness depends on the last bits of `sin` and `exp`, which are the C library's. The same
interpreter on the same C library gives the process wall's figures; that of a stranger's image need
not. What goes in: the interpreter, its standard library, and the shared libraries that these and
the worker's packages load. No shell, no tools, nothing of `/etc` but the names of two users.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

from eureka_agent.errors import OTHER_WALL, WallError, system_reason
from eureka_agent.invocation import command
from eureka_agent.sandbox.docker.archive import Entry
from eureka_agent.sandbox.docker.packages import shared_objects

BASE_NAME = "eureka-worker-base"
PYTHON = "/usr/local/bin/python"
"""Where the image has a link to the interpreter, whatever that is called."""
_NOT_NEEDED = frozenset(
    {
        "site-packages",
        "dist-packages",
        "test",
        "tests",
        "idlelib",
        "tkinter",
        "turtledemo",
        "lib2to3",
        "ensurepip",
    }
)
_BY_LOADER = ("libgcc_s.so.1",)
"""Loaded by the C library by name, when a thread is cancelled: in nobody's list."""
_LDD_FILES = 40
_ETC = {
    "etc/passwd": (
        "root:x:0:0:root:/nonexistent:/nonexistent\nnobody:x:65534:65534:nobody:/nonexistent:/nonexistent\n"
    ),
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}


def host_identity() -> str:
    """What the base image is made of, as a hash that takes no time: versions, and size and time of
    interpreter and C library."""
    executable = _executable()
    parts = [sys.version, sysconfig.get_platform(), sys.base_prefix]
    parts += [_stamp(path) for path in (executable, *_own_libraries())]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def base_tag(identity: str, pins: Iterable[str]) -> str:
    """Name and tag of the base image: which system libraries are in it depends on the packages
    too."""
    return f"{BASE_NAME}:{hashlib.sha256(json.dumps([identity, *pins]).encode()).hexdigest()[:16]}"


def base_settings(libraries: Iterable[Path]) -> list[str]:
    """Dockerfile lines that the imported image gets: where its programs and libraries are found."""
    folders = sorted({str(path.parent) for path in libraries})
    return [
        f"ENV PATH={os.path.dirname(PYTHON)}",
        *([f"ENV LD_LIBRARY_PATH={':'.join(folders)}"] if folders else []),
    ]


def base_files(pins: Iterable[str]) -> tuple[list[Entry], list[str]]:
    """Members of the archive, and the settings that belong to it. Raises WallError where this
    Python is not one to copy."""
    if not sys.platform.startswith("linux"):
        raise WallError(
            "the Docker wall makes its image from this machine's packages, which are for"
            f" {sys.platform!r}",
            "use it on Linux" + OTHER_WALL,
        )
    executable, stdlib = _executable(), Path(sysconfig.get_path("stdlib"))
    if not (executable.is_file() and (stdlib / "os.py").is_file()):
        raise WallError(
            f"this Python cannot be copied into an image: {str(executable)!r} with {str(stdlib)!r}",
            f"name an image to build on: {command('sandbox build --base-image python:3.11-slim')}",
        )
    collected = _Collected()
    compiled = [executable]
    for folder in {stdlib, *_extension_folders()}:
        for path in _tree(folder):
            collected.add_file(path)
            if ".so" in path.suffixes:
                compiled.append(path)
    collected.add_file(executable, mode=0o755)
    own = {folder for path in shared_objects(pins) for folder in (path.parent,)}
    libraries = {
        path
        for path in needed_libraries([*compiled, *shared_objects(pins)])
        if path.parent not in own
    }
    for path in sorted(libraries):
        collected.add_file(path, mode=0o755)
    for name, text in _ETC.items():
        collected.add(Entry(name, data=text.encode(), mode=0o644))
    collected.add(Entry("tmp", mode=0o1777))
    if str(executable) != PYTHON:
        collected.add(Entry(PYTHON.lstrip("/"), link=str(executable)))
    outside = [path for path in libraries if not path.name.startswith("ld-")]
    return collected.entries, base_settings(outside)


def needed_libraries(files: Iterable[Path]) -> set[Path]:
    """Shared libraries that the loader finds for programs and libraries, and the loader itself.
    Raises WallError without `ldd`."""
    names = [str(path) for path in files]
    found: set[Path] = set()
    for first in range(0, len(names), _LDD_FILES):
        try:
            result = subprocess.run(
                ["ldd", *names[first : first + _LDD_FILES]],
                capture_output=True,
                text=True,
                env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
                check=False,
            )
        except OSError as error:
            raise WallError(
                f"cannot list the libraries of this Python: 'ldd': {system_reason(error)}",
                "install it (Debian: libc-bin), or name an image:"
                f" {command('sandbox build --base-image python:3.11-slim')}",
            ) from None
        found |= {
            Path(os.path.normpath(path))
            for path in re.findall(r"^\t(?:.* => )?(/.*) \(0x", result.stdout, re.M)
        }
    for folder in {path.parent for path in found}:
        found |= {folder / name for name in _BY_LOADER if (folder / name).is_file()}
    return {path for path in found if path.is_file()}


class _Collected:
    """Members of an archive, each once, with the folders and the links between folders that lead to
    them."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._names: set[str] = set()

    def add(self, entry: Entry) -> None:
        if entry.name in self._names:
            return
        parent = os.path.dirname(entry.name)
        if parent:
            self._add_folder("/" + parent)
        self._names.add(entry.name)
        self.entries.append(entry)

    def add_file(self, path: Path, mode: int = 0o644) -> None:
        """A file under its own path; a link's target under the link's name."""
        folder = self._add_folder(str(path.parent))
        self.add(Entry(f"{folder}/{path.name}".lstrip("/"), source=path, mode=mode))

    def _add_folder(self, folder: str) -> str:
        """The folder's real path, with every link on the way to it (`/lib` is one to
        `/usr/lib`)."""
        real = "/"
        for part in Path(folder).parts[1:]:
            step = os.path.join(real, part)
            if os.path.islink(step):
                target = os.path.realpath(step)
                self._add_folder(target)
                self._remember(Entry(step.lstrip("/"), link=target))
                real = target
            else:
                self._remember(Entry(step.lstrip("/")))
                real = step
        return real

    def _remember(self, entry: Entry) -> None:
        if entry.name not in self._names:
            self._names.add(entry.name)
            self.entries.append(entry)


def _executable() -> Path:
    return Path(os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable))


def _extension_folders() -> list[Path]:
    return [
        Path(entry) for entry in sys.path if entry.endswith("lib-dynload") and os.path.isdir(entry)
    ]


def _own_libraries() -> list[Path]:
    """The C library, the mathematical one and the loader of this very process."""
    try:
        text = Path("/proc/self/maps").read_text()
    except OSError:
        return []
    found = {line.split(maxsplit=5)[-1].strip() for line in text.splitlines() if "/" in line}
    return sorted(
        Path(name)
        for name in found
        if re.search(r"/(libc|libm|ld-[^/]*|libpython[^/]*)[.-][^/]*$", name)
    )


def _stamp(path: Path) -> str:
    try:
        status = path.stat()
    except OSError:
        return str(path)
    return f"{path} {status.st_size} {status.st_mtime_ns}"


def _tree(root: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(
            name for name in folders if name not in _NOT_NEEDED and not name.startswith("config-")
        )
        for name in sorted(files):
            path = Path(folder) / name
            # windows on a screen: two dozen libraries for a module that no worker opens
            if not name.endswith(".a") and not name.startswith("_tkinter.") and path.is_file():
                yield path
