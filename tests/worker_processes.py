"""Fixtures of the tests of workers: a good reward, and a look at the processes of a scratch folder."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

GOOD = """def compute_reward(pole_upright, actions):
    upright, effort = pole_upright, -0.01 * actions.square().sum(dim=-1)
    return upright + effort, {"upright": upright, "effort": effort}
"""


def _processes_of(scratch: Path) -> list[int]:
    """Processes whose home or argument is in the folder: workers, and whatever they started."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        # root alone may read the variables of a confined process
        for file, name in (("environ", "HOME="), ("cmdline", "--scratch\0")):
            try:
                if f"\0{name}{scratch}".encode() in b"\0" + (entry / file).read_bytes():
                    found.append(int(entry.name))
                    break
            except OSError:
                continue
    return found


def _workers_of(scratch: Path) -> list[int]:
    """The same without those that a worker started."""
    found = _processes_of(scratch)
    parents = {}
    for process in found:
        try:
            parents[process] = int(
                Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1]
            )
        except OSError:
            continue
    return [process for process, parent in parents.items() if parent not in found]


@pytest.fixture
def workers_of() -> Callable[[Path], list[int]]:
    """Process ids of the workers under a scratch folder."""
    return _workers_of


@pytest.fixture
def processes_of() -> Callable[[Path], list[int]]:
    """Process ids of the workers under a scratch folder, and of all that they started."""
    return _processes_of


@pytest.fixture
def wait_until() -> Callable[[Callable[[], bool], float], bool]:
    """Waits for a condition; False when it did not come true within the seconds."""

    def wait(condition: Callable[[], bool], timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True

    return wait


@pytest.fixture
def good_reward() -> str:
    """A reward for the cartpole that nothing is wrong with."""
    return GOOD
