"""A control group around one worker: memory and processes of all that it starts, together. Only where this process may make one (as root)."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from dataclasses import dataclass
from pathlib import Path

from eureka_agent.sandbox.wall import Limits

_ROOT = Path("/sys/fs/cgroup")
_PREFIX = "eureka-worker-"
_REMOVAL_SECONDS = 5.0

ENTER = 'for group in $(echo "$EUREKA_GROUPS" | tr : " "); do echo $$ >"$group/cgroup.procs" || exit 125; done; unset EUREKA_GROUPS; exec "$@"'
"""What a shell does to enter the groups that `EUREKA_GROUPS` names, and to become its arguments there."""


@dataclass(frozen=True)
class ControlGroup:
    """The folders of one group: one, or one for each resource in the older form."""

    folders: tuple[Path, ...]

    @classmethod
    def make(cls, limits: Limits) -> ControlGroup | None:
        """A new group with these limits; None where none can be made. Groups that others left behind empty are removed."""
        if os.geteuid() != 0:
            return None  # a group that was delegated to a person is in the service manager's hands
        if (_ROOT / "cgroup.controllers").exists():
            settings = {_ROOT: {"memory.max": limits.memory_bytes, "pids.max": limits.processes}}
        else:
            settings = {
                _ROOT / "memory": {"memory.limit_in_bytes": limits.memory_bytes},
                _ROOT / "pids": {"pids.max": limits.processes},
            }
        name = f"{_PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
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
        """Remove the group, once its processes have gone; whatever is not gone after some seconds stays for another to remove."""
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
    """Groups of drivers that are no more. One with processes, or just made by a driver that lives, stays."""
    for folder in parent.glob(f"{_PREFIX}*"):
        driver = folder.name.removeprefix(_PREFIX).split("-")[0]
        if not Path("/proc", driver).exists():
            with contextlib.suppress(OSError):
                folder.rmdir()
