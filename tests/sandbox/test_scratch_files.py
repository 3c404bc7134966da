"""A worker names files: nothing but a plain file of its own scratch folder is ever opened."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from eureka_agent.errors import EurekaError
from eureka_agent.sandbox.scratch import ScratchFileError, job_under_way, stderr_tail, take_file
from eureka_agent.sandbox.wall import STDERR_NAME
from eureka_agent.worker.messages import CURRENT_JOB_FILE


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    folder = tmp_path / "scratch"
    (folder / "inner").mkdir(parents=True)
    (tmp_path / "secret").write_text("key")
    (folder / "plain").write_bytes(b"12345")
    (folder / "..name").write_bytes(b"678")
    (folder / "with space").write_bytes(b"")
    (folder / "inner" / "plain").write_bytes(b"678")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "linked_folder").symlink_to(tmp_path)
    os.link(tmp_path / "secret", folder / "hard_link")
    os.mkfifo(folder / "pipe")
    return folder


@pytest.mark.parametrize("name", ["plain", "..name", "with space"])
def test_a_plain_file_is_taken_out(scratch: Path, tmp_path: Path, name: str) -> None:
    taken = take_file(scratch, name, tmp_path / "out" / "copy")
    assert taken.read_bytes() == (scratch / name).read_bytes()


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../secret",
        "inner/../../secret",
        "/etc/passwd",
        "link",
        "linked_folder/secret",
        "hard_link",
        "pipe",
        "inner",
        "inner/plain",
        "./plain",
        "missing",
        "plain\0",
        "plain/x",
        "x" * 5000,
    ],
)
def test_everything_else_is_refused_by_name(scratch: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(ScratchFileError) as caught:
        take_file(scratch, name, tmp_path / "out")
    assert repr(name) in caught.value.message
    assert not (tmp_path / "out").exists()


def test_a_file_over_the_bound_is_refused(scratch: Path, tmp_path: Path) -> None:
    assert take_file(scratch, "plain", tmp_path / "out", max_bytes=5).read_bytes() == b"12345"
    with pytest.raises(ScratchFileError, match="more than 4 bytes"):
        take_file(scratch, "plain", tmp_path / "again", max_bytes=4)
    assert not (tmp_path / "again").exists()


def test_a_copy_that_cannot_be_written_is_one_clear_error(scratch: Path, tmp_path: Path) -> None:
    with pytest.raises(EurekaError, match=r"secret'.*(exists|Not a directory)"):
        take_file(scratch, "plain", tmp_path / "secret" / "copy")


def test_the_tail_of_standard_error_is_bounded(tmp_path: Path) -> None:
    assert stderr_tail(tmp_path) == ""
    (tmp_path / STDERR_NAME).write_bytes(b"a" * 100_000 + b"\nlast words\xff\n")
    tail = stderr_tail(tmp_path)
    assert tail.endswith("last words\ufffd")
    assert len(tail) < 5000


@pytest.mark.parametrize(("name", "read"), [(STDERR_NAME, stderr_tail), (CURRENT_JOB_FILE, job_under_way)])
def test_a_link_in_the_place_of_a_known_file_is_not_followed(
    tmp_path: Path, name: str, read: Callable[[Path], str]
) -> None:
    (tmp_path / "secret").write_text("key")
    (tmp_path / name).symlink_to(tmp_path / "secret")
    assert read(tmp_path) == ""
