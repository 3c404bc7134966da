"""docs/run-folder.md names every file of a run, and its query and its Python work on one."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow
PAGE = (Path(__file__).resolve().parents[2] / "docs" / "run-folder.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small finished run with final trainings and baselines."""
    folder = tmp_path_factory.mktemp("run")
    flags = [
        "--iterations",
        "1",
        "--samples",
        "2",
        "--finalists",
        "1",
        "--final-seeds",
        "1",
        "--env-steps",
        "2048",
        "--drafts",
        "2",
        "--env",
        "cartpole",
    ]
    command = [sys.executable, "-m", "eureka_agent.cli.main", "search", "balance the pole", *flags]
    environment = {**os.environ, "EUREKA_RUNS": str(folder)}
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=300)
    (archive,) = folder.glob("*/archive.sqlite")
    return archive.parent


def test_every_file_of_a_run_is_named(run: Path) -> None:
    tree = PAGE.partition("    20261121-")[2].partition("A file that is there is whole")[0]
    names = {path.name for path in run.rglob("*") if path.is_file()}
    names = {"events.out.tfevents" if name.startswith("events.") else name for name in names}
    assert {name for name in names if name not in tree} == set()
    # and none is named that is not there, but for what a search with a model leaves; two come and
    # go
    named = set(
        re.findall(
            r"^ {6,8}([a-z]+\.(?:py|md|json|csv|safetensors|npz|yaml|txt|sqlite))\b",
            tree,
            re.MULTILINE,
        )
    )
    assert len(named) >= 12
    assert named - names <= {"analysis.md", "fitness.py", "fitness.json", "distribution.json"}


def test_the_query_works(run: Path) -> None:
    query = re.search(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    assert query is not None
    with sqlite3.connect(run / "archive.sqlite") as connection:
        rows = connection.execute(query[1]).fetchall()
    assert {row[0] for row in rows} >= {"1-01", "1-02"}


def test_trajectories_are_as_described(run: Path) -> None:
    path = next(run.glob("attempts/*/trajectories.npz"))
    with np.load(path) as episode:
        for name in ("worst", "best"):
            steps = len(episode[f"{name}/fitness"])
            assert episode[f"{name}/pole_angle"].shape == (steps,)
            assert len(episode[f"{name}/observations"]) == steps
