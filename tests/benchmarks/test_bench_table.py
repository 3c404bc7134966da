"""The table of `make bench`: figures that meet their target, that miss it, or that nobody
measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import table

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of results, empty."""
    monkeypatch.setattr(table, "RESULTS", tmp_path)
    return tmp_path


def write(folder: Path, name: str, **figures: Any) -> None:
    (folder / f"{name}.json").write_text(json.dumps({"date": "2026-01-02", **figures}))


def row(beginning: str, since: float = 0.0) -> table.Row:
    (found,) = [each for each in table.rows(since) if each.figure.startswith(beginning)]
    return found


def test_without_results_nothing_is_measured(results: Path) -> None:
    found = table.rows()
    assert {each.value for each in found} == {table.NOT_MEASURED}
    assert {(each.ratio, each.met, each.measured) for each in found} == {(None, None, "")}


def test_a_figure_that_is_to_be_large(results: Path) -> None:
    write(
        results, "two_cores", task="hopper/run", ratio=1.53, ratio_without_startup=1.6, ceiling=1.9
    )
    found = row("hopper/run: training pool")
    assert found.met is False
    assert found.ratio == pytest.approx(0.9)  # 1.53 of 1.7
    assert "1.90 x" in found.note


def test_a_figure_that_is_to_be_small(results: Path) -> None:
    write(results, "worker_memory", peak_bytes=750_000_000, starts_within_limit=False)
    found = row("ant/run, K=16, N=64: peak")
    assert (found.met, found.value) == (True, "0.75 GB")
    assert found.ratio == pytest.approx(2.0)  # 1.5 GB over 0.75
    assert "does not start" in found.note


def test_the_lowest_phase_counts(results: Path) -> None:
    shares = {"environment": 0.02, "policy": 0.01, "reward": 0.0, "rest": 0.01, "saved states": 0.0}
    lines = [
        {"num_envs": 32, "iteration": 3, "of_raw": 0.5, "outside": 0.04, "shares": shares},
        {"num_envs": 32, "iteration": 150, "of_raw": 0.7, "outside": 0.03, "shares": shares},
        {"num_envs": 16, "iteration": 3, "of_raw": 0.45, "outside": 0.08, "shares": shares},
    ]
    write(results, "training_speed", num_envs={"hopper/run": 32}, tasks={"hopper/run": lines})
    found = row("hopper/run, K=16, N=32 (the task's): env steps")
    assert (found.met, found.value) == (False, "50.0%")
    assert "after 150: 70.0%; N=16: 45.0%" in found.note
    found = row("hopper/run, K=16, N=32 (the task's): time outside")
    assert (found.met, found.value) == (True, "4.0%")
    assert "N=16: 8.0%" in found.note
    assert row("ant/run, K=16: env steps").value == table.NOT_MEASURED


def test_the_command_lists_every_benchmark_and_names_an_unknown_one() -> None:
    def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "benchmarks", *arguments]
        return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)

    listed = bench("--list")
    names = [line.split()[0] for line in listed.stdout.splitlines()]
    assert {
        "training_speed",
        "candidates_per_hour",
        "two_cores",
        "worker_memory",
        "model_latency",
    } <= set(names)
    assert "table" not in names
    assert bench("--table").stdout.startswith("figure")
    unknown = bench("nothing")
    assert unknown.returncode == 2
    assert "no benchmark 'nothing'" in unknown.stderr


def test_the_table_of_the_stored_results_is_at_most_100_columns_wide_and_says_what_a_ratio_is() -> (
    None
):
    text = table.render(table.rows())
    assert max(map(len, text.splitlines())) <= 100
    assert text.splitlines()[-1].startswith("ratio: ")
    for each in table.rows():
        assert " ".join(each.note.split()) in " ".join(text.split())
