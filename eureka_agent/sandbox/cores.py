"""The processor cores that this process may use, and how workers share them."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
from collections.abc import Sequence
from pathlib import Path

_TOPOLOGY = Path("/sys/devices/system/cpu")
_CONTROL_GROUPS = Path("/sys/fs/cgroup")
_OWN_CONTROL_GROUP = Path("/proc/self/cgroup")


def available_cores() -> tuple[int, ...]:
    """Cores of this process; those of one physical core, and of one socket, side by side."""
    if not hasattr(os, "sched_getaffinity"):  # macOS
        return tuple(range(os.cpu_count() or 1))
    return tuple(sorted(os.sched_getaffinity(0), key=_place))


def usable_cores() -> int:
    """Number of one-thread workers at full speed: cores, or fewer by a container's quota."""
    quota = cpu_quota(_CONTROL_GROUPS, _OWN_CONTROL_GROUP)
    cores = len(available_cores())
    return cores if quota is None else max(1, min(cores, math.ceil(quota)))


def share_cores(cores: Sequence[int], groups: int) -> tuple[tuple[int, ...], ...]:
    """Divide cores into at most `groups` groups of neighbours, almost equal in size."""
    groups = min(groups, len(cores))
    bounds = [len(cores) * group // groups for group in range(groups + 1)]
    return tuple(tuple(cores[first:last]) for first, last in itertools.pairwise(bounds))


def cpu_quota(root: Path, own: Path) -> float | None:
    """Processor time per wall time granted by the control groups (version 2) above this process;
    None: all. `root`: their mount point; `own`: the file that names this process's group."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return None
    inside = next(
        (line.removeprefix("0::").lstrip("/") for line in lines if line.startswith("0::")), ""
    )
    folders = [root / inside, *(root / inside).parents]
    quotas = []
    for folder in folders[: folders.index(root) + 1] if root in folders else [root]:
        with contextlib.suppress(OSError, ValueError):
            granted, period = (folder / "cpu.max").read_text().split()
            quotas.append(float(granted) / float(period))  # "max" is no number: no bound
    return min(quotas, default=None)


def _place(core: int) -> tuple[int, int, int]:
    """Socket, physical core and number, as far as the system tells."""
    socket, physical = 0, core
    with contextlib.suppress(OSError, ValueError):
        topology = _TOPOLOGY / f"cpu{core}" / "topology"
        socket = int((topology / "physical_package_id").read_text())
        physical = int((topology / "core_id").read_text())
    return socket, physical, core
