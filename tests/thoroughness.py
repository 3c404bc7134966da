"""Number of cases of one kind that run: a share that differs from commit to commit, or all of them."""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

EVERYTHING = os.environ.get("EUREKA_TESTS_ALL") == "1"
"""True under `make test-all`: all kill points, all attacks on all walls, and no start is a fork."""
_ROOT = Path(__file__).resolve().parents[1]
_SHARES = 3

Case = TypeVar("Case")


def third(cases: Sequence[Case]) -> list[Case]:
    """Every third of the cases, from the place that follows from the commit, so that three commits
    or so meet all of them. All of them in a copy without git, such as those of
    `benchmarks/mutants.py`."""
    turn = _turn()
    return list(cases if turn is None else cases[turn::_SHARES])


def is_its_turn(turn: int) -> bool:
    """True if the long tests of this turn (0 to 2) run at this commit."""
    return _turn() in (None, turn)


def _turn() -> int | None:
    """Number of this commit's share; None where everything runs."""
    commit = _commit()
    return None if EVERYTHING or commit is None else int(commit, 16) % _SHARES


@functools.cache
def _commit() -> str | None:
    if not (_ROOT / ".git").exists():
        return None
    try:
        said = subprocess.run(
            ["git", "-C", str(_ROOT), "rev-parse", "HEAD"], capture_output=True, text=True
        )
    except FileNotFoundError:
        return None
    return said.stdout.strip() or None
