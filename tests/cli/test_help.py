"""Help: an example for every command, options in groups, and commands that can be pasted."""

from __future__ import annotations

import importlib
import re

import click
import pytest

from eureka_agent.cli.command import OTHER_OPTIONS, Command, Group
from eureka_agent.cli.main import COMMANDS
from eureka_agent.cli.options import OPTION_GROUPS
from eureka_agent.settings import SearchSettings


def commands() -> dict[str, click.Command]:
    """Every command by the words that call it."""
    found: dict[str, click.Command] = {}
    for name, (module, _) in COMMANDS.items():
        command = getattr(importlib.import_module(f"eureka_agent.cli.{module}"), name)
        found[name] = command
        if isinstance(command, click.Group):
            found |= {f"{name} {each}": inner for each, inner in command.commands.items()}
    return found


@pytest.mark.parametrize("name", commands())
def test_every_command_has_an_example_that_can_be_pasted(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EUREKA_PROGRAM", "./eureka")
    command = commands()[name]
    assert isinstance(command, Command | Group)
    help_text = command.get_help(click.Context(command, info_name=f"eureka {name}"))
    assert help_text.startswith(f"Usage: ./eureka {name} ")
    assert re.search(rf"^ .*\./eureka {name}\b", help_text, re.MULTILINE)
    assert not re.search(r"(?<!\./)\beureka [a-z]", help_text)


def test_every_setting_stands_in_one_group() -> None:
    grouped = [name for names in OPTION_GROUPS.values() for name in names]
    assert len(grouped) == len(set(grouped))
    assert set(SearchSettings.model_fields) - {"sentence"} <= set(grouped)


def test_the_help_of_a_search_begins_with_the_ten_options_to_know() -> None:
    command = commands()["search"]
    help_text = command.get_help(click.Context(command, info_name="eureka search"))
    titles = re.findall(r"^([A-Z].*):$", help_text, re.MULTILINE)
    assert titles == [*OPTION_GROUPS, OTHER_OPTIONS]
    assert re.findall(
        r"^  (?:-h, )?(--[a-z-]+)", help_text.partition(f"{OTHER_OPTIONS}:")[2], re.MULTILINE
    ) == ["--format", "--help"]
    first = help_text.partition(f"{titles[0]}:")[2].partition(f"{titles[1]}:")[0]
    assert re.findall(r"^  (--[a-z-]+)", first, re.MULTILINE) == [
        f"--{name.replace('_', '-')}" for name in OPTION_GROUPS[titles[0]]
    ]
    assert len(OPTION_GROUPS[titles[0]]) == 10
