"""A control group of one worker: memory and processes of all it starts. Needs root."""

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
_LEFT_SECONDS = 600.0
"""Age from which an empty group is a leftover: a worker enters its group within milliseconds."""

ENTER = (
    'for group in $(echo "$EUREKA_GROUPS" | tr : " "); do echo $$ >"$group/cgroup.procs" || exit'
    ' 125; done; unset EUREKA_GROUPS; exec "$@"'
)
"""Shell script that enters the groups in `EUREKA_GROUPS`, then executes its arguments."""


@dataclass(frozen=True)
class ControlGroup:
    """Folders of one group: one, or with version 1 one per resource."""

    folders: tuple[Path, ...]

    @classmethod
    def make(cls, limits: Limits) -> ControlGroup | None:
        """Make a group with these limits; None where that fails. Empty leftovers are removed."""
        if os.geteuid() != 0:
            return None  # the service manager controls groups that are delegated to a user
        if (_ROOT / "cgroup.controllers").exists():
            settings = {_ROOT: {"memory.max": limits.memory_bytes, "pids.max": limits.processes}}
        else:
            settings = {
                _ROOT / "memory": {"memory.limit_in_bytes": limits.memory_bytes},
                _ROOT / "pids": {"pids.max": limits.processes},
            }
        name = f"{_PREFIX}{int(time.time())}-{secrets.token_hex(4)}"
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
    for folder in parent.glob(f"{_PREFIX}*"):
        made = folder.name.removeprefix(_PREFIX).split("-")[0]
        if made.isdecimal() and time.time() - int(made) > _LEFT_SECONDS:
            with contextlib.suppress(OSError):
                folder.rmdir()
