"""`eureka skill`: every command line of the page is run as it stands, with small sizes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
import yaml
from command_line import CommandLine
from test_help import commands

from eureka_agent.cli.skill import PAGE

TEXT = PAGE.read_text(encoding="utf-8")
LINES = [
    line for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL) for line in block.splitlines()
]
SIZES = {
    "search": "--iterations 1 --env-steps 4096 --samples 2 --confirm 0 --finalists 1"
    " --final-seeds 2 --baseline-seeds 2 --no-video",
    "train": "--env-steps 4096 --final-seeds 2 --baseline-seeds 2",
}
"""Flags before the line's own, of which the last one counts."""


def test_it_is_printed_with_its_front_matter(tmp_path: Path) -> None:
    printed = CommandLine(tmp_path)("skill")
    assert printed == TEXT
    assert len(printed.splitlines()) < 150
    _, front, _ = printed.split("---\n", 2)
    assert list(yaml.safe_load(front)) == ["name", "description"]


@pytest.mark.slow
def test_every_command_line_does_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")  # a plan asks nobody
    eureka = CommandLine(tmp_path)
    (reward,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    (tmp_path / "reward.py").write_text(reward)
    for line in LINES:
        program, name, *words = shlex.split(line)
        assert program == "eureka", line
        assert eureka(name, *SIZES.get(name, "").split(), *words), line
    assert (tmp_path / "taken_away" / "reward.py").is_file()


def test_what_it_names_in_passing_exists() -> None:
    known = commands()
    for words in re.findall(r"`eureka ([^`]+)`", TEXT):
        assert words.split()[0] in known
    flags = {
        flag
        for command in known.values()
        for each in command.params
        if isinstance(each, click.Option)
        for flag in each.opts
    }
    assert set(re.findall(r"`(--[a-z-]+)", TEXT)) <= flags | {"--help"}
