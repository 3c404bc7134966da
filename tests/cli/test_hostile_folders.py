"""Archives, settings and files that are made to break whoever opens them: one clear line each, in
little time and memory."""

from __future__ import annotations

import json
import os
import sqlite3
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from jumper import kill_in_a_write
from stored_attempts import entries_of
from stranger import assert_one_clear_error, attempt, eureka, make_run, shown_json

from eureka_agent.archive.artefacts import write_proposal
from eureka_agent.archive.files import copy_file, locked, write_text
from eureka_agent.archive.run_folder import open_run
from eureka_agent.archive.snapshots import SnapshotStore
from eureka_agent.archive.sqlite_files import check_files
from eureka_agent.errors import EurekaError, RunFolderError
from eureka_agent.records import TaskDescription
from eureka_agent.sandbox.client import WorkerClient
from eureka_agent.sandbox.process_wall import ProcessWall
from eureka_agent.search.final import keep_best
from eureka_agent.search.summary import run_report

MOST_SECONDS = 10.0
"""Start of the program included, on a busy machine; without bounds these never end, or take
gigabytes."""
MOST_MEMORY_BYTES = 1_000_000_000


@pytest.fixture
def folder(tmp_path: Path, description: TaskDescription) -> Path:
    run = make_run(tmp_path / "runs", description)
    run.archive.close()
    return run.folder


def sql(folder: Path, script: str, *values: object) -> None:
    with sqlite3.connect(folder / "archive.sqlite") as connection:
        if values:
            connection.execute(script, values)
        else:
            connection.executescript(script)
    connection.close()


def refused(folder: Path, *command: str) -> str:
    began = time.monotonic()
    words = (*(command or ("show",)), str(folder))
    error = assert_one_clear_error(
        eureka(*words, cwd=folder.parent.parent, most_memory=MOST_MEMORY_BYTES)
    )
    assert time.monotonic() - began < MOST_SECONDS
    return error


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
SCHEMAS = {
    "an endless view": (
        f"DROP TABLE journal; CREATE VIEW journal AS {ENDLESS} SELECT i AS number, '' AS time,"
        " 0 AS seconds, 'notice' AS kind, 1 AS version, '' AS attempt, hex(i) AS record FROM n"
    ),
    "a computed column": (
        "DROP TABLE messages; CREATE TABLE messages (key, model, role, attempt,"
        " record AS (hex(zeroblob(400000000)))); INSERT INTO messages VALUES ('a', 'b', 'c', '')"
    ),
    "no table": "DROP TABLE messages",
    "other columns": "DROP TABLE run; CREATE TABLE run (name TEXT, number REAL)",
    "a trigger": "CREATE TRIGGER t AFTER INSERT ON run BEGIN DELETE FROM attempts; END",
    "an index over an expression": "CREATE INDEX i ON journal (hex(zeroblob(length(record))))",
    "tables of a later version": "PRAGMA user_version=9999",
}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_tables_that_this_program_does_not_make(folder: Path, schema: str) -> None:
    sql(folder, SCHEMAS[schema])
    assert "cannot be read as a run's archive: it" in refused(folder)
    with pytest.raises(RunFolderError, match="cannot be read as a run's archive"):
        open_run(folder)  # for writing, which a trigger is made for


PROPOSED, JUDGED = (each.model_dump_json() for each in entries_of(attempt()))
DEEP = "[" * 10_000 + "]" * 10_000
RECORDS = {
    "a whole number of 4000 digits": PROPOSED.replace('"sample":0', f'"sample":{"9" * 4000}'),
    **{
        what: JUDGED.replace('"seconds":0.0', f'"seconds":{number}')
        for what, number in {
            "an infinite number": "1e999",
            "a number that no sum holds": "1.7e308",
            "NaN": "NaN",
        }.items()
    },
}


@pytest.mark.parametrize("record", RECORDS)
def test_attempts_that_are_none(folder: Path, record: str) -> None:
    kind = json.loads(PROPOSED if "sample" in RECORDS[record] else JUDGED)["kind"]
    sql(folder, f"UPDATE journal SET record = ? WHERE kind = '{kind}'", RECORDS[record])
    assert "of the journal is broken" in refused(folder, "show", "--events")
    sql(folder, "UPDATE attempts SET brief = ?", RECORDS[record])
    assert "a record of Attempt is broken" in refused(folder)


BEGAN = '{"kind": "run-created", %s}'
ENTRIES = {
    "versions of another type": BEGAN % '"versions": []',
    "too many seconds": BEGAN % '"seconds_before": 1e300',
    "an unknown field": BEGAN % '"more": 1',
    "an unknown kind": '{"kind": "odd"}',
    "another kind than its row says": '{"kind": "run-ended", "status": "failed"}',
    "no JSON": "{",
    "deep JSON": DEEP,
    "a number without end": BEGAN % ('"seconds_before": ' + "12" * 3000),
}


@pytest.mark.parametrize("record", ENTRIES)
def test_entries_that_are_none(folder: Path, record: str) -> None:
    """In this process: the command has a test for every other door."""
    sql(folder, "UPDATE journal SET record = ? WHERE number = 1", ENTRIES[record])
    with pytest.raises(RunFolderError, match="entry 1 of the journal is"):
        run_report(open_run(folder, reading=True))


@pytest.mark.parametrize("value", ["x", -1.0, float("inf")])
def test_times_that_are_none(folder: Path, value: object) -> None:
    sql(folder, "UPDATE journal SET seconds = ?", value)
    with pytest.raises(RunFolderError, match="has an impossible time"):
        run_report(open_run(folder, reading=True))


def test_a_value_of_a_gigabyte(folder: Path) -> None:
    sql(folder, "UPDATE journal SET record = CAST(zeroblob(900000000) AS TEXT) WHERE number = 1")
    assert "too big" in refused(folder)


def test_more_rows_than_memory(folder: Path) -> None:
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400000)"
    sql(
        folder,
        f"{numbers} INSERT INTO messages SELECT 'k' || i, 'm', 'designer', '{{}}', '', '{{}}' FROM n;",
    )
    assert "holds more than" in refused(folder)


def test_a_log_without_end(folder: Path) -> None:
    """A database in WAL mode, whose log would be read through before anything else."""
    sql(folder, "PRAGMA journal_mode=WAL")
    with (folder / "archive.sqlite-wal").open("wb") as log:
        log.truncate(1 << 40)  # takes no room on the disk
    assert "write-ahead log" in refused(folder)


def test_a_journal_that_names_another_file_is_not_played_back(folder: Path, tmp_path: Path) -> None:
    """SQLite would remove the file that the journal names. Its magic is 8 bytes before the end;
    before it come checksum, length and name (file format, section 3)."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    name = str(victim).encode()
    checksum = sum(byte if byte < 128 else byte - 256 for byte in name) & 0xFFFFFFFF
    magic = bytes.fromhex("d9d505f920a163d7")
    header = magic + struct.pack(">I8xII", 0, 512, 4096)
    page = struct.pack(">I", 0x40000000 // 4096 + 1)
    end = struct.pack(">II", len(name), checksum) + magic
    (folder / "archive.sqlite-journal").write_bytes(header.ljust(512, b"\0") + page + name + end)
    assert "names another file" in refused(folder)
    with pytest.raises(RunFolderError, match="names another file"):
        open_run(folder)
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("length", [0, 8, 28])
def test_a_journal_that_another_process_has_just_begun_names_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    """Its length is read before its first bytes, which are those that end one with a name."""
    database, journal = (tmp_path / f"archive.sqlite{suffix}" for suffix in ("", "-journal"))
    database.touch()
    journal.write_bytes(bytes.fromhex("d9d505f920a163d7").ljust(512, b"\0"))
    status = journal.stat()
    earlier = os.stat_result((*status[:6], length, *status[7:10]))
    monkeypatch.setattr(os, "fstat", lambda _: earlier)
    check_files(database, writing=False)


def test_a_run_that_was_killed_in_the_middle_of_a_write_is_shown_as_it_was_before(
    folder: Path, tmp_path: Path
) -> None:
    """Only a process that may write could play the run's journal back. A reader does so in a copy,
    and `resume` finds what the killed process left."""
    killed = tmp_path / "runs" / "killed"
    kill_in_a_write(folder, killed)
    before = {path.name: path.read_bytes() for path in killed.iterdir()}
    assert b"half" in before["archive.sqlite"]
    (shown,) = shown_json(killed, tmp_path)["attempts"]
    assert shown["id"] == "1-01"
    assert {path.name: path.read_bytes() for path in killed.iterdir()} == before
    assert open_run(killed).is_own(attempts=True)


YAML = {
    "aliases without end": (
        "env: [&a0 [x, x]" + "".join(f", &a{i + 1} [*a{i}, *a{i}]" for i in range(40)) + "]"
    ),
    "lists without end": "env: " + "[" * 30_000,
    "a large file": "sentence: " + "x" * 100_000_000,
}


@pytest.mark.parametrize("text", YAML)
def test_settings_that_explode(folder: Path, text: str) -> None:
    (folder / "settings.yaml").write_text(YAML[text])
    assert "settings" in refused(folder)


@pytest.mark.parametrize(
    "text", ['{"env_steps": ' + "9" * 5000 + "}", DEEP, "x" * (65 << 20), "[1e999]"]
)
def test_an_environment_that_is_none(folder: Path, text: str) -> None:
    (folder / "environment.json").write_text(text)
    assert "does not describe an environment" in refused(folder)


# ── links, pipes and names ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "make"),
    [
        *(("settings.yaml", "link"), ("environment.json", "pipe"), ("archive.sqlite", "pipe")),
        *(("archive.sqlite", "link"), ("archive.sqlite-journal", "link")),
    ],
)
def test_a_file_of_a_run_that_is_a_link_or_a_pipe_is_not_read(
    folder: Path, tmp_path: Path, name: str, make: str
) -> None:
    path = folder / name
    if path.exists():
        path.rename(tmp_path / "outside")
    else:
        (tmp_path / "outside").touch()
    path.symlink_to(tmp_path / "outside") if make == "link" else os.mkfifo(path)
    assert f"is a {make}" in refused(folder)


def test_a_lock_that_is_a_pipe_or_a_link_is_not_opened(folder: Path, tmp_path: Path) -> None:
    os.mkfifo(folder / ".lock")
    assert eureka("show", str(folder), cwd=tmp_path).returncode == 0
    with pytest.raises(RunFolderError, match="not a plain file"), locked(folder):
        pass
    (folder / ".lock").unlink()
    (tmp_path / "precious").write_text("precious")
    (folder / ".lock").symlink_to(tmp_path / "precious")
    with pytest.raises(RunFolderError, match="link"), locked(folder):
        pass
    assert (tmp_path / "precious").read_text() == "precious"


def test_a_file_with_another_name_elsewhere_is_not_written_to(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    os.link(tmp_path / "precious", folder / ".lock")
    with pytest.raises(RunFolderError, match="hard link"), locked(folder):
        pass
    (folder / ".snapshots").mkdir()
    os.link(tmp_path / "precious", folder / ".snapshots" / "1-01@1.jsonl")
    with pytest.raises(RunFolderError, match="hard link"):
        SnapshotStore(folder).put_points("1-01@1", [])
    assert (tmp_path / "precious").read_text() == "precious"


WRITERS: dict[str, Callable[[Path], object]] = {
    "attempts": lambda folder: write_proposal(folder, attempt()),
    "attempts/1-01": lambda folder: write_proposal(folder, attempt()),
    "best": lambda folder: keep_best(open_run(folder), attempt(), []),
    ".snapshots": lambda folder: SnapshotStore(folder).put_points("1-01@1", []),
}


@pytest.mark.parametrize("name", WRITERS)
def test_nothing_is_written_through_a_folder_that_is_a_link(
    folder: Path, tmp_path: Path, name: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).symlink_to(outside)
    with pytest.raises(RunFolderError, match="is a link"):
        WRITERS[name](folder)
    assert list(outside.iterdir()) == []


def test_a_file_that_is_a_link_is_replaced_and_not_followed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (folder / "report.md").symlink_to(tmp_path / "precious")
    write_text(folder / "report.md", "new")
    assert ((tmp_path / "precious").read_text(), (folder / "report.md").read_text()) == (
        "precious",
        "new",
    )
    (folder / "policy.safetensors").symlink_to(tmp_path / "precious")
    with pytest.raises(RunFolderError, match="link"):
        copy_file(folder / "policy.safetensors", folder / "copy")
    assert not (folder / "copy").exists()


@pytest.mark.parametrize("name", ["../../../outside", "/etc", "..", "a/b", "x\x1b[2J"])
def test_an_attempt_s_name_leads_nowhere_else(folder: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(RunFolderError, match="is no valid file name"):
        write_proposal(folder, attempt(name))
    assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize("command", [("evaluate",), ("export",)])
def test_a_policy_that_is_a_link_is_not_read(
    folder: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (folder / "best").mkdir()
    (folder / "best" / "reward.py").touch()
    (folder / "best" / "policy.safetensors").symlink_to("/etc/passwd")
    assert "policy.safetensors' is a link" in refused(folder, *command)


def test_an_export_does_not_follow_a_link_out_of_the_run(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (folder / "export").symlink_to(tmp_path / "outside")
    assert "export' is a link" in refused(folder, "export")


def test_curves_that_are_a_pipe_or_too_wide(folder: Path, tmp_path: Path) -> None:
    (folder / "attempts" / "1-01").mkdir(parents=True)
    curves = folder / "attempts" / "1-01" / "curves.csv"
    os.mkfifo(curves)
    assert "is a pipe" in assert_one_clear_error(eureka("show", str(folder), "1-01", cwd=tmp_path))
    curves.unlink()
    for text in ("env_steps\n" + "9" * 200_000, "env_steps\n1,2,3\n", "x\n\0\n"):
        curves.write_text(text)
        assert "cannot be read as curves" in assert_one_clear_error(
            eureka("show", str(folder), "1-01", cwd=tmp_path)
        )


async def test_a_worker_is_given_no_file_of_any_size(tmp_path: Path) -> None:
    with (tmp_path / "policy").open("wb") as file:
        file.truncate(1 << 40)  # takes no room on the disk
    client = await WorkerClient.start(ProcessWall(), tmp_path / "scratch")
    try:
        with pytest.raises(EurekaError, match="more than"):
            await client.give(tmp_path / "policy", "policy")
    finally:
        await client.close()


def test_a_runs_folder_that_is_a_link_is_the_user_s_own(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(folder.parent)
    assert eureka("show", str(tmp_path / "linked" / folder.name), cwd=tmp_path).returncode == 0
    write_proposal(tmp_path / "linked" / folder.name, attempt())
    assert (folder / "attempts" / "1-01" / "reward.py").is_file()


def test_one_hostile_run_does_not_hide_the_others(
    folder: Path, tmp_path: Path, description: TaskDescription
) -> None:
    sql(folder, SCHEMAS["an endless view"])
    other = make_run(tmp_path / "runs", description)
    result: subprocess.CompletedProcess[str] = eureka("runs", "--format", "json", cwd=tmp_path)
    assert [entry["run"] for entry in json.loads(result.stdout)["runs"]] == [other.name]
    assert f"skipped {folder.name}" in result.stderr
