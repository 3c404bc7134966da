"""Text from a run folder is shown as text: it neither commands the terminal nor counts as this
program's own markup."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path

import pytest
from outcomes import make_outcome
from stored_attempts import store_attempt
from stranger import attempt, edit_settings, eureka, make_run, message

from eureka_agent.journal.entries import RunCreated, RunEnded
from eureka_agent.records import (
    Diagnosis,
    Finding,
    Operator,
    Proposal,
    RunStatus,
    Stage,
    TaskDescription,
    Verdict,
)
from eureka_agent.rewards import CodeReward

CLEAR, TITLE, C1, BIDI = "\x1b[2J", "\x1b]0;owned\x07", "\x9b31m", "\u202e"
EVIL = f"[red]red[/red] [link=http://evil]click[/link] {CLEAR}{TITLE}{C1}{BIDI}\x08:smile:"
COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


@pytest.fixture
def folder(tmp_path: Path, description: TaskDescription) -> Path:
    """A run with such a text wherever one can stand."""
    texts = ("sentence", "doc", "fitness_doc", "environment")  # a task has a plain name
    run = make_run(tmp_path / "runs", description)
    folder = run.folder
    hostile = description.model_copy(update=dict.fromkeys(texts, EVIL) | {"fitness_unit": EVIL})
    (folder / "environment.json").write_text(hostile.model_dump_json())
    edit_settings(folder, sentence=EVIL)
    proposal = Proposal(
        reward=CodeReward(source=f"# {EVIL}\nx = 1", author=EVIL),
        reasoning=EVIL,
        operator=Operator.FRESH,
        parents=(EVIL,),
    )
    finding = Finding(code=EVIL, severity="error", message=EVIL, hint=EVIL)
    diagnosis = Diagnosis(
        fitness=1.0,
        fitness_values=(),
        episode_length_values=(),
        components=(),
        findings=(),
        text=EVIL,
    )
    evil = attempt(
        proposal=proposal,
        stage=Stage.TRAINED,
        reason=EVIL,
        verdict=Verdict(findings=(finding,)),
        diagnosis=diagnosis,
        outcome=make_outcome(1.0),
    )
    store_attempt(run.archive, evil)
    other = attempt(f"9-{EVIL}", iteration=8, stage=Stage.TRAINED, outcome=make_outcome(2.0))
    store_attempt(run.archive, other)
    run.archive.put("evil", message(attempt=EVIL, model=EVIL, role="reviewer"))
    run.archive.append(RunCreated(designer=EVIL, wall=EVIL, devices=(EVIL,)))
    run.archive.append(RunEnded(status=RunStatus.FAILED, message=EVIL))
    with sqlite3.connect(folder / "archive.sqlite") as connection:
        connection.execute("UPDATE journal SET time = ?", (EVIL[:60],))
    run.archive.close()
    return folder


@pytest.mark.parametrize("command", [("show",), ("show", "1-01"), ("show", "--cost"), ("runs",)])
def test_no_command_reaches_the_terminal_and_markup_is_text(
    folder: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    words = command if command == ("runs",) else (command[0], str(folder), *command[1:])
    result = eureka(*words, cwd=tmp_path, COLUMNS="2000")
    assert (result.returncode, result.stderr) == (0, "")
    assert COMMANDS.search(result.stdout) is None
    assert "[red]red[/red]" in result.stdout  # as it was written
    assert "[link=http://evil]click[/link]" in result.stdout
    assert ":smile:" in result.stdout


@pytest.mark.parametrize("command", [("show",), ("show", "1-01"), ("show", "--cost"), ("runs",)])
def test_json_holds_the_text_in_escapes(
    folder: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    words = command if command == ("runs",) else (command[0], str(folder), *command[1:])
    result = eureka(*words, "--format", "json", cwd=tmp_path)
    assert COMMANDS.search(result.stdout) is None
    assert any(EVIL in text for text in _texts(json.loads(result.stdout)))


def _texts(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for key, each in value.items() for text in (key, *_texts(each))]
    if isinstance(value, list):
        return [text for each in value for text in _texts(each)]
    return [value] if isinstance(value, str) else []


def test_an_error_about_a_folder_commands_nothing(folder: Path, tmp_path: Path) -> None:
    (folder / "environment.json").unlink()
    folder.rename(folder.with_name(f"20261121{CLEAR}{C1}"))
    result = eureka("runs", cwd=tmp_path)
    assert "skipped 20261121" in result.stderr
    assert COMMANDS.search(result.stderr) is None


def test_a_question_shows_where_it_asks(folder: Path, tmp_path: Path) -> None:
    edit_settings(folder, env=f"/tmp/{EVIL}".replace("\0", ""), model=[f"openai/{EVIL}"])
    result = eureka("resume", str(folder), cwd=tmp_path)
    assert "run the environment" in result.stderr
    assert COMMANDS.search(result.stderr) is None
