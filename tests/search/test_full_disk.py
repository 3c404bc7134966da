"""A disk that fills up in the middle of a search: one clear error, and the run goes on when there
is space again."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command_line import CommandLine
from small_disk import small_disk as mounted_disk

pytestmark = pytest.mark.slow


@pytest.fixture
def small_disk(eureka: CommandLine) -> Iterator[Path]:
    """The runs folder on a file system of its own, too small for a search."""
    folder = eureka.folder / "runs"
    with mounted_disk(folder, "300k") as mounted:
        if not mounted:
            pytest.skip("no file system can be mounted here")
        yield folder


def test_a_full_disk_is_one_clear_error_and_the_run_resumes(
    eureka: CommandLine, small: Callable[..., tuple[str, ...]], small_disk: Path
) -> None:
    errors = eureka(*small(), status=2)
    assert "error:" in errors
    assert "eureka resume" in errors
    assert "space" in errors
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    eureka("resume", str(eureka.run_folder()))
    assert eureka.json("show", "latest")["status"] == "finished"
