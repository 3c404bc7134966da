from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import yaml

from eureka_agent.archive.run_folder import create_run, open_run
from eureka_agent.archive.safe_files import driver_scratch
from eureka_agent.errors import SettingsError
from eureka_agent.records import TaskDescription
from eureka_agent.search.resumption import (
    check_resumable,
    record_changes,
    with_changes,
)
from eureka_agent.search.summary import run_report
from eureka_agent.settings import SearchSettings


@pytest.fixture
def folder(tmp_path: Path, description: TaskDescription) -> Path:
    return create_run(
        SearchSettings(env="cart", samples=2), description, [], parent=tmp_path
    ).folder


def edit(folder: Path, **values: object) -> None:
    path = folder / "settings.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **values}))


def test_a_run_may_be_made_longer_and_moved_to_other_cores(folder: Path) -> None:
    edit(folder, iterations=9, device="cpu", workers=1, slots=3, final_seeds=2)
    check_resumable(open_run(folder))


@pytest.mark.parametrize(
    ("name", "value"), [("samples", 3), ("env_steps", 4096), ("seed", 5), ("strategy", "best-of-n")]
)
def test_what_makes_an_attempt_may_not_change(folder: Path, name: str, value: object) -> None:
    edit(folder, **{name: value})
    with pytest.raises(SettingsError, match=f"the setting '{name}'"):
        check_resumable(open_run(folder))


def test_what_a_flag_changes_is_written_down_with_what_it_was(folder: Path) -> None:
    run = open_run(folder)
    run.settings = with_changes(run, {"novelty": False, "max_cost": "5.00", "iterations": 2})
    assert record_changes(run) == [
        "max_cost changed from None to 5.00",
        "novelty changed from True to False",
    ]
    assert run.sign() == ""
    again = open_run(folder)
    assert (again.settings.novelty, str(again.settings.max_cost)) == (False, "5.00")
    assert again.is_own()
    text = (folder / "settings.yaml").read_text()
    assert re.match(r"# 20\S+(Z|\+00:00): ", text)
    assert ": novelty changed from True to False\n" in text
    check_resumable(again)
    assert record_changes(again) == []
    # what was before is known after the next change, too
    again.settings = with_changes(again, {"novelty": True})
    assert record_changes(again) == ["novelty changed from False to True"]
    assert open_run(folder).settings.novelty
    assert (folder / "settings.yaml").read_text().count("# 20") == 3
    told = run_report(again).remarks
    expected = (f"novelty changed from {change}" for change in ("True to False", "False to True"))
    assert told[1:] == tuple(f"when it was resumed, {each}" for each in expected)


def test_a_setting_that_is_given_as_it_was_is_no_change(folder: Path) -> None:
    run = open_run(folder)
    run.settings = with_changes(run, {"samples": 2, "novelty": True})
    before = (folder / "settings.yaml").read_bytes()
    assert record_changes(run) == []
    assert (folder / "settings.yaml").read_bytes() == before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("env", "ant"), ("sentence", "other words"), ("model", ("openai/x",)), ("confirm", 1)],
        *[("hidden_sizes", (8,)), ("blind", True), ("scoring_episodes", 3), ("schedule", "steady")],
    ],
)
def test_every_other_setting_is_refused_with_why(folder: Path, name: str, value: object) -> None:
    run = open_run(folder)
    with pytest.raises(
        SettingsError, match=f"--{name.replace('_', '-')} is .* and cannot become .*: "
    ) as caught:
        with_changes(run, {name: value})
    assert "resume --help" in caught.value.hint
    # as it is typed, not as Python has it
    assert not re.search(r"\('|,\)|None|True|False", caught.value.message)


def test_the_scratch_of_a_killed_driver_is_removed_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = (
        "import os, signal; from eureka_agent.archive.safe_files import driver_scratch\n"
        "with driver_scratch() as folder:\n"
        "    print(folder, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    left = Path(
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True
        ).stdout.strip()
    )
    assert left.parent == tmp_path
    assert left.is_dir()
    with driver_scratch() as mine:
        assert not left.exists()
        assert mine.is_dir()
        with driver_scratch() as other:  # a live driver's is left alone
            assert mine.is_dir()
            assert other != mine
    assert not mine.exists()
