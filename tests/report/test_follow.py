"""A run that another process works on, watched from its journal."""

from __future__ import annotations

import io
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from jumper import kill_in_a_write
from rich.console import Console
from told import ended, judged, progress, proposed

from eureka_agent.archive.database import ENTRIES_AT_ONCE, Archive
from eureka_agent.archive.files import is_held, locked
from eureka_agent.archive.run_folder import Run, create_run
from eureka_agent.errors import RunFolderError
from eureka_agent.journal.entries import (
    BaseEntry,
    IterationStarted,
    Judged,
    Notice,
    RunEnded,
    RunStarted,
)
from eureka_agent.journal.progress import TrainingEnded, TrainingProgress, TrainingQueued
from eureka_agent.records import Attempt, RunStatus, Stage, TaskDescription, Verdict
from eureka_agent.report.follow import Follower
from eureka_agent.report.live import PlainLog
from eureka_agent.settings import SearchSettings


@pytest.fixture
def run(tmp_path: Path, description: TaskDescription, settings: SearchSettings) -> Iterator[Run]:
    made = create_run(settings, description, [], parent=tmp_path)
    yield made
    made.archive.close()


class Told:
    """Records what a follower is told, with the time of the run."""

    def __init__(self, run: Run) -> None:
        self.entries: list[BaseEntry] = []
        self.seconds: list[float] = []
        self.follower = Follower(run.folder, self)

    def __call__(self, entry: BaseEntry, /) -> None:
        self.entries.append(entry)
        self.seconds.append(self.follower.state.seconds)


def start(run: Run, **values: object) -> RunStarted:
    return RunStarted(
        run_name=run.name,
        description=run.description,
        sentence="jump",
        settings=run.settings,
        wall="process",
        designer="offline",
    ).model_copy(update=values)


def test_what_is_new_is_told_once_with_the_time_of_the_run(run: Run) -> None:
    told = Told(run)
    run.archive.clock = lambda: 7.0
    with locked(run.folder):
        run.archive.append(start(run))
        assert told.follower.poll()
        assert [type(each).__name__ for each in told.entries] == ["RunCreated", "RunStarted"]
        assert 7.0 <= told.seconds[1] < 9.0  # a time has whole seconds
        assert told.follower.poll()
        run.archive.clock = lambda: 70.0
        run.archive.append(IterationStarted(iteration=0, round=0, samples=3))
        assert told.follower.poll()
    assert 70.0 <= told.seconds[2] < 72.0
    run.archive.append(RunEnded(status=RunStatus.FAILED, message="no luck"))
    assert not told.follower.poll()
    assert told.entries[3:] == [RunEnded(status=RunStatus.FAILED, message="no luck")]


def test_a_run_whose_process_was_killed_is_told_as_stopped(run: Run) -> None:
    run.archive.append(start(run))
    told = Told(run)
    assert not told.follower.poll()
    assert told.entries[2:] == [RunEnded(status=RunStatus.STOPPED)]
    assert told.follower.state.status is RunStatus.STOPPED  # nothing passes any more


def test_a_run_that_is_killed_in_the_middle_of_a_write_is_followed_to_its_end(
    run: Run, tmp_path: Path
) -> None:
    run.archive.append(start(run))
    told = Told(run)
    with locked(run.folder):
        assert told.follower.poll()
    run.archive.append(IterationStarted(iteration=0, round=0, samples=3))
    run.archive.close()
    killed = tmp_path / "killed"
    kill_in_a_write(run.folder, killed)
    for path in killed.iterdir():
        shutil.copy(path, run.folder / path.name)
    assert not told.follower.poll()
    assert told.entries[2:] == [
        IterationStarted(iteration=0, round=0, samples=3),
        RunEnded(status=RunStatus.STOPPED),
    ]


def test_an_entry_on_an_attempt_that_nobody_proposed_is_one_clear_error(run: Run) -> None:
    entry = Judged(attempt="9-99", verdict=Verdict())
    with sqlite3.connect(run.folder / "archive.sqlite") as connection:
        connection.execute(
            "INSERT INTO journal VALUES (2, '', 0.0, 'judged', 1, '9-99', ?, '')",
            (entry.model_dump_json(),),
        )
    connection.close()
    with pytest.raises(RunFolderError, match="entry 2 is about '9-99'"):
        Follower(run.folder, PlainLog(Console(file=io.StringIO()))).poll()


def test_a_follower_and_the_archive_come_to_the_same_state(
    run: Run, attempt: Callable[..., Attempt]
) -> None:
    """What a decision rests on is the same for one who has seen every entry; only texts are cut."""
    trained = attempt("1-01", Stage.TRAINED, 1.5)
    told = Told(run)
    for entry in (
        start(run),
        IterationStarted(iteration=0, round=0, samples=3),
        proposed(trained),
        judged(trained),
        TrainingQueued(job="1-01@7", label="1-01", training="search", seed=7),
        TrainingProgress(job="1-01@7", points=(progress(500, 1.0),)),
        TrainingEnded(job="1-01@7", label="1-01", training="search", fitness=1.5),
        ended(trained),
        RunEnded(status=RunStatus.STOPPED),
        start(run, resumed=True),
    ):
        run.archive.append(entry)
    told.follower.poll()
    seen, archived = told.follower.state, Archive(run.folder, reading=True).state
    assert seen.by_id["1-01"].proposal.reasoning == ""
    assert [each.fitness for each in seen.attempts()] == [1.5]
    for name in ("created", "iterations_ended", "plans", "finalists", "by_training", "feedback"):
        assert getattr(seen, name) == getattr(archived, name), name


def test_a_journal_of_many_parts_is_read_in_order_and_holds_no_writer_up(run: Run) -> None:
    most = 2 * ENTRIES_AT_ONCE + 10
    for number in range(2, most + 1):
        run.archive.append(Notice(text=str(number)))
    run.archive.flush()
    reader = Archive(run.folder, reading=True)
    entries = reader.entries()
    numbers = [next(entries).number]
    run.archive.append(IterationStarted(iteration=0, round=0, samples=3))  # else: locked, for 10 s
    numbers += [each.number for each in entries]
    reader.close()
    assert numbers == list(range(1, most + 2))


def said(text: str) -> list[str]:
    """The lines of a log without times, and without those on what is under way."""
    lines = [line.partition("] ")[2] for line in text.splitlines() if line.startswith("[")]
    return [line.partition("; report in")[0] for line in lines if " done, " not in line]


@pytest.mark.slow
def test_a_search_is_followed_while_it_writes_and_neither_disturbs_the_other(
    tmp_path: Path,
) -> None:
    """A real search, whose journal is read again and again without a pause."""
    environment = {**os.environ, "EUREKA_RUNS": str(tmp_path / "runs")}
    eureka = [sys.executable, "-m", "eureka_agent.cli.main"]
    flags = "--env cartpole --sandbox process --iterations 1 --samples 2 --env-steps 2048"
    flags += " --num-envs 16 --finalists 0 --no-baselines --confirm 0 --workers 1"
    with (tmp_path / "output").open("w") as output:
        search = subprocess.Popen(
            [*eureka, "search", "balance the pole", *flags.split()],
            env=environment,
            cwd=tmp_path,
            stdout=output,
            stderr=output,
        )
    try:
        folder = None
        while folder is None:
            assert search.poll() is None, (tmp_path / "output").read_text()
            found = [path.parent for path in tmp_path.glob("runs/*/.lock")]
            folder = next(iter(found), None)
        follow = [*eureka, "show", str(folder), "--follow"]
        onlooker = subprocess.Popen(follow, env=environment, stdout=subprocess.PIPE, text=True)
        left = subprocess.Popen(follow, env=environment, stdout=subprocess.PIPE, text=True)
        assert left.stdout is not None
        assert " s] run " in left.stdout.readline()
        left.send_signal(signal.SIGINT)
        numbers: list[int] = []
        while is_held(folder) or not numbers:
            archive = Archive(folder, reading=True)
            numbers += [each.number for each in archive.entries(len(numbers))]
            archive.close()
        seen, _ = onlooker.communicate(timeout=60)
        assert search.wait(60) == 0, (tmp_path / "output").read_text()
        assert (left.wait(10), onlooker.returncode) == (130, 0)
        assert left.stdout.read().endswith("No longer watched; the search goes on.\n")
    finally:
        search.kill()
        search.wait()
    assert "locked" not in (tmp_path / "output").read_text()
    archive = Archive(folder, reading=True)
    numbers += [each.number for each in archive.entries(len(numbers))]
    archive.close()
    assert numbers == list(range(1, len(numbers) + 1))
    log = (folder / "log.txt").read_text()
    assert said(seen) == said(log)
    assert said(log)[-1] == "run finished"
    assert re.search(r"^report +\S+/report\.md$", seen, re.MULTILINE)
