"""Memory of a driver over many searches that end one after the other."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from injector import resident_mb
from proofs import Proof

from eureka_agent.batch.folder import SearchState, searches_of
from eureka_agent.batch.intents import IntentsFile
from eureka_agent.errors import RunFolderError

SEARCHES = 48
GROWTH = 0.05


def many_searches(sandbox: str) -> dict[str, Any]:
    """A batch of small searches, four at a time."""
    return {
        "sandbox": sandbox,
        "at_once": 4,
        "defaults": {
            "env": "cartpole",
            "iterations": 2,
            "samples": 4,
            "env_steps": 4096,
            "finalists": 0,
            "confirm": 0,
            "schedule": "generations",
            "evaluation_episodes": 2,
            "scoring_episodes": 2,
            "novelty": False,
            "video": False,
        },
        "matrix": {"seed": list(range(SEARCHES))},
    }


def flat_memory(start: Callable[[str], subprocess.Popen[bytes]], batch: Path) -> Proof:
    """Run `many_searches`, which `start` starts by the batch's name, and compare the driver's
    memory after a third of them with that towards the end."""
    driver = start(batch.name)
    seen: list[tuple[int, float]] = []
    while driver.poll() is None:
        time.sleep(0.5)
        seen.append((_finished(batch), resident_mb(driver.pid)))
    third = max(mb for finished, mb in seen if finished <= SEARCHES // 3)
    largest = max(mb for _, mb in seen)
    return Proof(
        f"memory of a driver after a third of {SEARCHES} searches, and at most",
        f"{third:.0f} MB, {largest:.0f} MB",
        driver.returncode == 0 and largest <= (1 + GROWTH) * third,
    )


def _finished(batch: Path) -> int:
    try:
        searches = searches_of(IntentsFile(batch))
        return sum(each.state is SearchState.FINISHED for each in searches)
    except RunFolderError:  # not there yet
        return 0
