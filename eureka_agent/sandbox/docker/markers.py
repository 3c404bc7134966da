"""Markers of drivers with containers: files by which to find what dead drivers left. Imports
nothing heavy, as every start of `eureka` looks here."""

from __future__ import annotations

import contextlib
import json
import os
import platform
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = "/proc/self/ns/pid"


def marker_folder() -> Path:
    """`$XDG_CACHE_HOME/eureka-agent/drivers`, or below `~/.cache`; it may be missing."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    # the standard says to ignore a relative path
    root = Path(given) if os.path.isabs(given) else Path(os.path.expanduser("~")) / ".cache"
    return root / "eureka-agent" / "drivers"


def this_driver() -> dict[str, str]:
    """Unique identity of this process, for the labels of its containers."""
    return {
        "machine": platform.node(),
        "boot": _read(_BOOT),
        "namespace": os.readlink(_NAMESPACE),
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
    if driver.get("namespace") != os.readlink(_NAMESPACE):
        return False
    return _started(int(driver["pid"])) != driver["started"]


class Marker:
    """The file of this driver while it has containers."""

    def __init__(self, host: str) -> None:
        """`host`: of the engine, in the form of DOCKER_HOST."""
        self._host = host
        self._path: Path | None = None

    def put(self) -> None:
        """Make the file, if possible: the next search also finds containers by label."""
        if self._path is not None:
            return
        self._path = marker_folder() / f"{os.getpid()}-{os.urandom(4).hex()}.json"
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text(json.dumps({"host": self._host, "driver": this_driver()}))
        except OSError:  # a full disk
            self.take_away()

    def take_away(self) -> None:
        """Remove the file, if there is one, after the last container."""
        path, self._path = self._path, None
        if path is not None:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)


def dead_markers() -> list[tuple[Path, str]]:
    """Files of dead drivers, with their engines' addresses; none that is being written."""
    found = []
    for path in marker_folder().glob("*.json"):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            content = json.loads(path.read_text())
            if is_gone(content["driver"]):
                found.append((path, str(content["host"])))
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _started(pid: int) -> str:
    """Start of a process in the kernel's ticks since boot; empty without the process, or /proc."""
    # the program's name, in brackets, may hold spaces and brackets
    fields = _read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] not in "ZX" else ""
