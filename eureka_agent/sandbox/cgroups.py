"""A control group around one worker: memory and processes of all that it starts, together. Only
where this process may make one (as root)."""

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
"""Age from which a group without processes is a leftover: it has been entered within milliseconds,
if ever it was to be."""

ENTER = (
    'for group in $(echo "$EUREKA_GROUPS" | tr : " "); do echo $$ >"$group/cgroup.procs" || exit'
    ' 125; done; unset EUREKA_GROUPS; exec "$@"'
)
"""What a shell does to enter the groups that `EUREKA_GROUPS` names, and to become its arguments
there."""


@dataclass(frozen=True)
class ControlGroup:
    """The folders of one group: one, or one for each resource in the older form."""

    folders: tuple[Path, ...]

    @classmethod
    def make(cls, limits: Limits) -> ControlGroup | None:
        """A new group with these limits; None where none can be made. Groups that others left
        behind empty are removed."""
        if os.geteuid() != 0:
            return None  # a group that was delegated to a person is in the service manager's hands
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
        """Remove the group, once its processes have gone; whatever is not gone after some seconds
        stays for another to remove."""
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
    """Groups that nobody will enter any more. One with processes stays, for the kernel removes none
    such, and so does one that was just made.

    When it was made is in its name. Its driver's number would tell nothing of a driver in another
    container that shares these folders, but the clock is the same for all; the folder's own time is
    not kept by the kernel.
    """
    for folder in parent.glob(f"{_PREFIX}*"):
        made = folder.name.removeprefix(_PREFIX).split("-")[0]
        if made.isdecimal() and time.time() - int(made) > _LEFT_SECONDS:
            with contextlib.suppress(OSError):
                folder.rmdir()
