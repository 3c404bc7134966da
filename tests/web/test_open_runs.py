"""Runs that stay open between two looks, and are opened anew where that is needed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from jumper import kill_in_a_write
from page_runs import add_trained, finish, new_run

from eureka_agent.archive.database import Archive
from eureka_agent.errors import RunFolderError
from eureka_agent.web.runs import OpenRun, OpenRuns


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OpenRuns:
    monkeypatch.setenv("EUREKA_RUNS", str(tmp_path / "runs"))
    return OpenRuns()


def names(opened: OpenRun) -> list[str]:
    return [attempt.id for attempt in opened.report().attempts]


def test_a_look_at_an_unchanged_run_reads_nothing_new(runs: OpenRuns, tmp_path: Path) -> None:
    folder, archive = new_run(tmp_path / "runs")
    add_trained(archive, "1-01", 1.0)
    first = runs.use(folder.name, OpenRun.report)
    assert runs.use(folder.name, OpenRun.report) is first
    add_trained(archive, "1-02", 1.0)
    assert runs.use(folder.name, names) == ["1-01", "1-02"]
    finish(archive)


def test_a_run_that_was_killed_in_a_write_and_resumed_is_read_to_its_end(
    runs: OpenRuns, tmp_path: Path
) -> None:
    """Its unfinished write is played back in a copy, which the resumed process does not write to."""
    folder, archive = new_run(tmp_path / "runs")
    add_trained(archive, "1-01", 1.0)
    assert runs.use(folder.name, names) == ["1-01"]
    archive.close()
    killed = tmp_path / "killed"
    kill_in_a_write(folder, killed)
    for path in killed.iterdir():
        shutil.copy(path, folder / path.name)
    assert runs.use(folder.name, names) == ["1-01"]
    with_copy = runs.use(folder.name, lambda opened: opened)
    assert with_copy.run.archive.stands_still
    resumed = Archive(folder)
    add_trained(resumed, "1-02", 2.0)
    assert runs.use(folder.name, names) == ["1-01", "1-02"]
    finish(resumed)


def test_settings_that_were_changed_on_resume_are_read_again(
    runs: OpenRuns, tmp_path: Path
) -> None:
    folder, archive = new_run(tmp_path / "runs")
    finish(archive)
    assert runs.use(folder.name, lambda opened: opened.report().settings.iterations) == 2
    settings = folder / "settings.yaml"
    settings.write_text(settings.read_text().replace("iterations: 2", "iterations: 5"))
    assert runs.use(folder.name, lambda opened: opened.report().settings.iterations) == 5


def test_the_list_keeps_what_it_knows_of_a_run_until_that_changes(
    runs: OpenRuns, tmp_path: Path
) -> None:
    folder, archive = new_run(tmp_path / "runs")
    add_trained(archive, "1-01", 1.0)
    card = runs.card(folder.name)
    assert (card["best"], card["trained"], card["attempts"]) == ("1.00 m", 1, 1)
    assert runs.card(folder.name) is card
    add_trained(archive, "1-02", 2.0)
    assert runs.card(folder.name)["best"] == "2.00 m"
    finish(archive)


@pytest.mark.parametrize("name", ["", "..", "nope", "../runs"])
def test_only_runs_of_the_list_are_opened(runs: OpenRuns, tmp_path: Path, name: str) -> None:
    new_run(tmp_path / "runs")[1].close()
    with pytest.raises(RunFolderError, match="there is no run"):
        runs.use(name, OpenRun.report)
