from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import yaml

from eureka_agent.archive.run_folder import create_run, open_run
from eureka_agent.errors import SettingsError
from eureka_agent.records import TaskDescription
from eureka_agent.search.resumption import check_resumable, driver_scratch
from eureka_agent.settings import SearchSettings


@pytest.fixture
def folder(tmp_path: Path, description: TaskDescription) -> Path:
    return create_run(SearchSettings(env="cart", samples=2), description, [], parent=tmp_path).folder


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


def test_the_scratch_of_a_killed_driver_is_removed_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = (
        "import os, signal; from eureka_agent.search.resumption import driver_scratch\n"
        "with driver_scratch() as folder:\n"
        "    print(folder, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    left = Path(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout.strip())
    assert left.parent == tmp_path
    assert left.is_dir()
    with driver_scratch() as mine:
        assert not left.exists()
        assert mine.is_dir()
        with driver_scratch() as other:  # a live driver's is left alone
            assert mine.is_dir()
            assert other != mine
    assert not mine.exists()
