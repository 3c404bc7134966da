"""Planted faults: a tiny project, real runs of pytest in copies of it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from mutants import load_results, lost, main

CODE = "def double(x):\n    return 2 * x\n\n\ndef triple(x):\n    return 3 * x\n"
TESTS = """import os
import time

import pytest
from eureka_agent.sums import double
from eureka_agent.sums import triple


def test_double():
    if double(1) == 0:
        time.sleep(60)
    assert double(2) == 4


def test_broken():
    assert triple(1) == 4, "fails with and without a fault"
"""
FAULTS = {
    "sums/sign": ("return 2 * x", "return -2 * x", "tests/sums"),
    "sums/unseen": ("return 3 * x", "return 4 - 1 * x", "tests/sums"),
    "sums/gone": ("return 5 * x", "return 0", "tests/sums"),
    "sums/endless": ("return 2 * x", "return 0", "tests/sums"),
    "sums/untested": ("return 2 * x", "return 1", "tests/sums/test_skipped.py"),
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of one module, whose tests see some of its faults; one of them always fails."""
    root = tmp_path / "project"
    files = {
        "eureka_agent/__init__.py": "",
        "eureka_agent/sums.py": CODE,
        "tests/sums/test_sums.py": TESTS,
        "tests/sums/test_skipped.py": "import pytest\n\n\n@pytest.mark.skip\ndef test_it():\n    pass\n",
        "pytest.ini": "[pytest]\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return root


def write_faults(folder: Path, names: list[str]) -> Path:
    folder.mkdir(exist_ok=True)
    tables = []
    for name in names:
        old, new, tests = FAULTS[name]
        values = {"what": "It is wrong.", "file": "eureka_agent/sums.py", "old": old, "new": new}
        lines = [f"{key} = {json.dumps(value)}" for key, value in values.items()]
        tables.append("\n".join([f"[{name.partition('/')[2]}]", *lines, f"tests = ['{tests}']"]))
    (folder / "sums.toml").write_text("\n\n".join(tables))
    return folder


def test_each_fault_is_planted_alone_and_told_by_what_becomes_of_it(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    faults = write_faults(tmp_path / "faults", list(FAULTS))
    stored = tmp_path / "results.json"
    status = main(["--limit", "12", "--jobs", "2", "--results", str(stored)], project, faults)
    results = load_results(stored)
    assert {name: result.outcome for name, result in results.items()} == {
        "sums/sign": "caught",
        "sums/unseen": "survives",
        "sums/gone": "does not apply",
        "sums/endless": "no end",
        "sums/untested": "not tested",
    }
    assert results["sums/sign"].caught_by == ("tests/sums/test_sums.py::test_double",)
    assert "stands 0 times" in results["sums/gone"].reason
    assert status == 1
    assert (project / "eureka_agent/sums.py").read_text() == CODE  # the copies alone had the faults
    out = capsys.readouterr().out
    assert "FAILS WITHOUT ANY FAULT  tests/sums/test_sums.py::test_broken" in out
    assert "DOES NOT APPLY  sums/gone" in out
    # made in parts: what is not tried again stays
    assert main(["*/gone", "--results", str(stored)], project, faults) == 1
    assert load_results(stored) == results


def test_a_fault_that_is_not_caught_any_more_is_lost(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    faults = write_faults(tmp_path / "faults", ["sums/sign"])
    before = tmp_path / "before.json"
    assert main(["--results", str(before)], project, faults) == 0
    results = load_results(before)
    assert lost(results, results, ()) == []
    (project / "tests/sums/test_sums.py").write_text("def test_double():\n    pass\n")
    assert main(["sums", "--against", str(before)], project, faults) == 1
    assert "LOST: sums/sign" in capsys.readouterr().out
    # a fault that was taken out of the list is as lost, one that was not tried now is not
    assert lost({}, results, ()) == ["sums/sign"]
    assert lost({}, results, ["other"]) == []


def test_the_list_says_what_does_not_apply(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    faults = write_faults(tmp_path / "faults", ["sums/sign", "sums/gone"])
    assert main(["--list", "*/sign"], project, faults) == 0
    assert main(["--list"], project, faults) == 1
    assert "DOES NOT APPLY: its old text stands 0 times" in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        main(["nothing"], project, faults)
    assert ended.value.code == 2
