"""A packed run is the same run elsewhere, says nothing of the machine, and a hostile file gives one
clear error."""

from __future__ import annotations

import io
import os
import sqlite3
import tarfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from eureka_agent.archive import packing
from eureka_agent.archive.packing import pack, unpack, viewing, zstd
from eureka_agent.archive.run_folder import create_run, open_run
from eureka_agent.errors import RunFolderError
from eureka_agent.journal.entries import Notice, RunEnded
from eureka_agent.records import RunStatus, TaskDescription
from eureka_agent.settings import SearchSettings

Member = tuple[tarfile.TarInfo, bytes]


@pytest.fixture
def folder(tmp_path: Path, description: TaskDescription) -> Path:
    """A run with some files, hidden ones and a link among them."""
    run = create_run(SearchSettings(), description, ["eureka", "search"], parent=tmp_path / "runs")
    run.archive.append(RunEnded(status=RunStatus.FINISHED))
    run.archive.close()
    for name in ("report.md", "attempts/1-01/reward.py", ".lock", ".snapshots/1-01.jsonl"):
        (run.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (run.folder / name).write_text(f"content of {name}\n" * 1000)
    (run.folder / "link").symlink_to("/etc/passwd")
    return run.folder


def journal(folder: Path) -> list[object]:
    with closing(sqlite3.connect(folder / "archive.sqlite")) as connection:
        return connection.execute("SELECT * FROM journal").fetchall()


def members(file: Path) -> list[tarfile.TarInfo]:
    with zstd.open(file) as stream, tarfile.open(fileobj=io.BytesIO(stream.read())) as tar:
        return tar.getmembers()


def test_a_packed_run_is_the_same_run_elsewhere(folder: Path, tmp_path: Path) -> None:
    packed = pack(folder, tmp_path / "run.tar.zst")
    # settings, environment, archive, report, reward: no lock, no states, no link; the code may
    # have changes that are not committed
    assert packed.files == 5 + (folder / "changes.diff").exists()
    opened = unpack(packed.file, tmp_path / "elsewhere")
    assert opened == tmp_path / "elsewhere" / folder.name
    assert open_run(opened).settings == open_run(folder).settings
    assert journal(opened) == journal(folder)
    for name in ("report.md", "attempts/1-01/reward.py", "environment.json"):
        assert (opened / name).read_bytes() == (folder / name).read_bytes()
    assert not (opened / ".snapshots").exists()
    with pytest.raises(RunFolderError, match="is there already"):
        unpack(packed.file, tmp_path / "elsewhere")
    assert unpack(packed.file, tmp_path / "elsewhere", "second").name == "second"


def test_a_packed_run_says_nothing_of_the_machine(folder: Path, tmp_path: Path) -> None:
    files = [pack(folder, tmp_path / f"{name}.tar.zst").file for name in ("one", "two")]
    assert files[0].read_bytes() == files[1].read_bytes()
    for member in members(files[0]):
        assert member.name.startswith(f"{folder.name}/")
        assert (member.uid, member.gid, member.uname, member.gname) == (0, 0, "", "")
        assert member.mode == 0o644


def test_a_packed_run_is_a_stranger_s_to_somebody_else(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = pack(folder, tmp_path / "run.tar.zst")
    with viewing(str(packed.file)) as run:
        assert run.is_own()
        place = run.folder
        assert not (place / "report.md").exists()  # `show` does not read it
    assert not place.exists()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "somebody-else"))
    with viewing(str(packed.file)) as run:
        assert not run.is_own()


def test_a_run_is_packed_as_it_stands_while_it_is_written(folder: Path, tmp_path: Path) -> None:
    before = journal(folder)
    with closing(sqlite3.connect(folder / "archive.sqlite", isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("DELETE FROM journal WHERE number = 1")
        packed = pack(folder, tmp_path / "run.tar.zst")
        writer.execute("ROLLBACK")
    assert journal(unpack(packed.file, tmp_path / "elsewhere")) == before


def test_a_key_of_this_user_is_not_packed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-of-this-user")
    output = tmp_path / "run.tar.zst"
    pack(folder, output)
    output.unlink()
    # across the border of two parts that are read one after the other
    (folder / "log.txt").write_text("x" * (packing._CHUNK_BYTES - 5) + "sk-of-this-user")
    with pytest.raises(RunFolderError) as caught:
        pack(folder, output)
    assert "'log.txt' holds the value of the environment variable SOME_API_KEY" in str(caught.value)
    assert "sk-of-this-user" not in str(caught.value)
    (folder / "log.txt").unlink()
    run = open_run(folder)
    run.archive.append(Notice(text="sk-of-this-user"))
    run.archive.close()
    with pytest.raises(RunFolderError, match=r"'archive\.sqlite' holds the value"):
        pack(folder, output)
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def test_a_folder_of_runs_is_packed_as_one(
    folder: Path, tmp_path: Path, description: TaskDescription
) -> None:
    batch = tmp_path / "nightly"
    for _ in range(2):
        create_run(SearchSettings(), description, [], parent=batch / "searches").archive.close()
    (batch / "summary.md").write_text("all")
    opened = unpack(pack(batch, tmp_path / "nightly.tar.zst").file, tmp_path / "elsewhere")
    assert len(list(opened.glob("searches/*/archive.sqlite"))) == 2
    assert (opened / "summary.md").read_text() == "all"


def test_nothing_is_written_over(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "run.tar.zst"
    output.write_text("mine")
    with pytest.raises(RunFolderError, match="is there already"):
        pack(folder, output)
    assert output.read_text() == "mine"
    with pytest.raises(RunFolderError, match="lies in the folder"):
        pack(folder, folder / "run.tar.zst")


def plain(name: str, content: bytes = b"x", **fields: object) -> Member:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    for field, value in fields.items():
        setattr(member, field, value)
    return member, content


def endless_header() -> bytes:
    """A header that promises 8 MB of further fields."""
    member = tarfile.TarInfo("run/fields")
    member.type, member.size = tarfile.XHDTYPE, 8 << 20
    return member.tobuf() + b"0" * (8 << 20)


def packed_members(*found: Member) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for member, content in found:
            tar.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def link(kind: bytes) -> Member:
    return plain("run/link", b"", type=kind, linkname="/etc/passwd")


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "a symbolic link": (lambda: packed_members(link(tarfile.SYMTYPE)), "is no plain file"),
    "a hard link": (lambda: packed_members(link(tarfile.LNKTYPE)), "is no plain file"),
    "a device": (lambda: packed_members(link(tarfile.CHRTYPE)), "is no plain file"),
    "a pipe": (lambda: packed_members(link(tarfile.FIFOTYPE)), "is no plain file"),
    "an absolute name": (
        lambda: packed_members(plain("/run/a")),
        "is no file of a run|no valid file name",
    ),
    "a way out": (lambda: packed_members(plain("run/../../a")), "is no file of a run"),
    "a hidden file": (lambda: packed_members(plain("run/.lock")), "is no file of a run"),
    "two folders": (
        lambda: packed_members(plain("run/a"), plain("other/a")),
        "is no file of a run",
    ),
    "no folder": (lambda: packed_members(plain("a")), "lies in no folder"),
    "a control character": (lambda: packed_members(plain("run/a\x1b[2J")), "no valid file name"),
    "a file twice": (
        lambda: packed_members(plain("run/a"), plain("run/a")),
        "there is a file of that name",
    ),
    "a file as a folder": (
        lambda: packed_members(plain("run/a"), plain("run/a/b")),
        "expected a folder",
    ),
    "an endless header": (endless_header, "endless header"),
    "a size that no file has": (
        lambda: packed_members(plain("run/a"))[:124] + b"\x80" + b"\x7f" * 11 + b"\0" * 888,
        "cannot be unpacked",
    ),
    "too many bytes": (
        lambda: packed_members(plain("run/a", bytes(packing.LEAST_BOUND_BYTES))),
        "unpacks to more than",
    ),
    "no run": (lambda: packed_members(plain("run/a")), "holds no run"),
    "nothing": (lambda: b"", "cannot be unpacked|holds no run"),
    "no archive": (lambda: b"some text" * 1000, "cannot be unpacked"),
    "another program's database": (
        lambda: packed_members(plain("run/archive.sqlite", b"text")),
        "is not a run",
    ),
}


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_file_gives_one_clear_error(
    hostile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "LEAST_BOUND_BYTES", 16 << 20)
    make, expected = HOSTILE[hostile]
    file = tmp_path / "hostile.tar.zst"
    file.write_bytes(zstd.compress(make()))
    with pytest.raises(RunFolderError, match=expected):
        unpack(file, tmp_path / "runs")
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_file_that_was_cut_off_or_is_none_is_named(folder: Path, tmp_path: Path) -> None:
    whole = pack(folder, tmp_path / "run.tar.zst").file.read_bytes()
    cut = tmp_path / "cut.tar.zst"
    cut.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(RunFolderError, match=r"'.*cut\.tar\.zst' cannot be unpacked"):
        unpack(cut, tmp_path / "elsewhere")
    with pytest.raises(RunFolderError, match="there is no such file"):
        unpack(tmp_path / "none.tar.zst", tmp_path / "elsewhere")
    os.mkfifo(tmp_path / "pipe.tar.zst")
    with pytest.raises(RunFolderError, match="cannot be unpacked"):
        unpack(tmp_path / "pipe.tar.zst", tmp_path / "elsewhere")
