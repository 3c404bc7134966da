"""Markers of drivers with containers: files locked by living drivers, to find what dead ones left.
Imports nothing heavy, as every start of `eureka` looks here."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
from collections.abc import Iterator
from pathlib import Path

from eureka_agent.sandbox.docker.cache import cache_folder

_FOLDER = "drivers"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def marker_folder() -> Path:
    """Folder of the markers."""
    return cache_folder() / _FOLDER


def this_driver() -> dict[str, str]:
    """Unique identity of this process, for the labels of its containers."""
    return {
        "machine": platform.node(),
        "boot": _read(_BOOT),
        "namespace": _pid_namespace(),
        "pid": str(os.getpid()),
        "started": _started(os.getpid()),
    }


def is_gone(driver: dict[str, str]) -> bool:
    """True where a driver of this machine has certainly ended; False where that is unknown."""
    known = driver.get("boot") and driver.get("started")
    if not known or driver.get("machine") != platform.node():
        return False
    if driver["boot"] != _read(_BOOT):
        return True
    if driver.get("namespace") != _pid_namespace():
        return False
    return _started(int(driver["pid"])) != driver["started"]


class Marker:
    """The file of this driver while it has containers; its lock ends with the driver."""

    def __init__(self, host: str) -> None:
        """`host`: of the engine, in the form of DOCKER_HOST."""
        self._host = host
        self._path: Path | None = None
        self._descriptor = -1

    def put(self) -> None:
        """Make the file, if possible: the next search also finds containers by label."""
        if self._path is not None:
            return
        content = json.dumps({"host": self._host, "driver": this_driver()})
        path = marker_folder() / f"{os.getpid()}-{os.urandom(4).hex()}.json"
        # renamed after it is locked, as an unlocked marker is a dead driver's
        draft = path.with_suffix(".draft")
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.write(descriptor, content.encode())
                os.rename(draft, path)
            except OSError:  # a full disk
                os.close(descriptor)
                draft.unlink(missing_ok=True)
                return
            self._path, self._descriptor = path, descriptor

    def take_away(self) -> None:
        """Remove the file, if there is one, after the last container."""
        path, self._path = self._path, None
        if path is not None:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
                os.close(self._descriptor)


@contextlib.contextmanager
def dead_markers() -> Iterator[list[tuple[Path, str, dict[str, str]]]]:
    """Markers of dead drivers, locked meanwhile: file, engine's host, driver."""
    found = []
    descriptors = []
    try:
        for path in _marker_files():
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            except OSError:
                continue
            descriptors.append(descriptor)
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # removed since it was opened, by a driver that may live
                if not os.fstat(descriptor).st_nlink:
                    continue
                content = json.loads(os.read(descriptor, 1 << 16))
                driver = {str(key): str(value) for key, value in content["driver"].items()}
                # several machines may share a home, but not their containers
                if driver["machine"] == platform.node():
                    found.append((path, str(content["host"]), driver))
        yield found
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _marker_files() -> list[Path]:
    try:
        with os.scandir(marker_folder()) as entries:
            return [Path(entry.path) for entry in entries if entry.name.endswith(".json")]
    except OSError:
        return []


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _pid_namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _started(pid: int) -> str:
    """Start of a process in the kernel's ticks since boot; empty without the process, or /proc."""
    # the program's name, in brackets, may hold spaces and brackets
    fields = _read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] not in "ZX" else ""
