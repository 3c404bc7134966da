"""A mistake on the command line gives one line with the mistake, the value and what was expected,
and one with the next step."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from eureka_agent.amounts import EXAMPLES
from eureka_agent.cli.main import main

MISTAKES = {
    "search x --itertions 3": ("there is no option '--itertions'", "did you mean '--iterations'?"),
    "search x --quality 3": ("there is no option '--quality'", "see `eureka search --help`"),
    "shw latest": ("there is no command 'shw'", "did you mean 'show'?"),
    "search x --env": ("--env needs a value, and none follows", "see `eureka search --help`"),
    "search x --no-novelty=3": ("--no-novelty takes no value", "see `eureka search --help`"),
    "search x --samples many": (
        f"--samples is 'many', expected a whole number {EXAMPLES}",
        "see `eureka search --help`",
    ),
    "search x --strategy greddy": (
        "--strategy is 'greddy', expected auto, greedy, best-of-n, islands or map-elites",
        "see `eureka search --help`",
    ),
    "search x --hidden-sizes 64,big": (
        (
            "--hidden-sizes is '64,big', expected whole numbers with commas between them, such as"
            " 64,64"
        ),
        "see `eureka search --help`",
    ),
    "search x --config nothing.yaml": (
        "cannot read the settings file 'nothing.yaml': there is no such file or folder",
        "check the path",
    ),
    "search x --config broken.yaml": (
        "cannot read the settings in 'broken.yaml': line 2 is not YAML: 'task: hop: high'",
        "write one `name: value` a line",
    ),
    "search x --config key.yaml": (
        "unknown setting 'sampels' in key.yaml",
        "did you mean 'samples'?",
    ),
    "search balance the pole --env cartpole --rungs 0.3,0.6 --no-novelty": (
        "the task is 3 words, expected one sentence",
        (
            "put it in quotes: eureka search 'balance the pole' --env cartpole --no-novelty --rungs"
            " 0.3,0.6"
        ),
    ),
    "search": (
        "no task is given",
        "say what the policy is to do, and where (`eureka envs` lists environments): eureka search"
        ' "hover at the goal" --env quadcopter',
    ),
    "show": ("RUN is missing", "it is called as: eureka show [OPTIONS] RUN [ATTEMPT]"),
    "show latest --events --follow": (
        "--events and --follow exclude each other",
        "give one of them",
    ),
    "show latest 1-01 --events": (
        "--events is for a whole run, not for one attempt",
        "leave out '1-01'",
    ),
    "show latest --follow --format json": (
        "--follow has no JSON: it shows what changes",
        "what happened until now: eureka show latest --events --format json",
    ),
    "show 20261121-115500_jmup": (
        "no run '20261121-115500_jmup' in 'FOLDER/runs'",
        "did you mean '20261121-115500_jump'?",
    ),
    "show 2-03": (
        "no run '2-03' in 'FOLDER/runs'",
        "an attempt is named behind its run: eureka show latest 2-03",
    ),
    "envs ant --check folder": ("ENVIRONMENT and --check were given together", "give one of them"),
    "envs --check folder --time-limit 0": (
        "--time-limit is 0, expected a number from 0.1 to 86400.0",
        "see `eureka envs --help`",
    ),
    "train nothing.py": (
        "cannot read the reward function 'nothing.py': there is no such file or folder",
        "name a Python file that defines compute_reward",
    ),
}
FILES = {
    "broken.yaml": "env: hopper\ntask: hop: high\n",
    "key.yaml": "sampels: 4\n",
    "runs/20261121-115500_jump/archive.sqlite": "",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "folder").mkdir()
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EUREKA_RUNS", raising=False)
    return tmp_path


def typed(line: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    """Exit status of the command line."""
    monkeypatch.setattr(sys, "argv", ["eureka", *line])
    with pytest.raises(SystemExit) as ended:
        main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_is_named_in_the_program_s_own_words(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    assert typed(line.split(), monkeypatch) == 2
    message, hint = (words.replace("FOLDER", str(folder)) for words in MISTAKES[line])
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", f"error: {message}\n hint: {hint}\n")


def test_without_a_run_it_is_said_where_runs_are_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EUREKA_RUNS", raising=False)
    assert typed(["show", "latest"], monkeypatch) == 2
    shown = capsys.readouterr().err
    assert f"error: no run 'latest': there is none in '{tmp_path}/runs' yet\n" in shown
    assert "in the folder that the search was started in" in shown
    assert "EUREKA_RUNS" in shown


def test_a_task_without_its_command_is_one_for_a_search(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed(["balance the pole", "--env", "cartpole"], monkeypatch) == 2
    assert (
        capsys.readouterr().err
        == "error: there is no command 'balance the pole'\n hint: a task in plain words goes to"
        " search: eureka search 'balance the pole' --env cartpole\n"
    )
