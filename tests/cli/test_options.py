from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from eureka_agent.cli.options import given_settings, settings_options


@pytest.mark.parametrize(
    ("flag", "text", "expected"),
    [
        ("--hidden-sizes", "64,32", (64, 32)),
        ("--rungs", "0.7", (0.7,)),
        ("--rungs", "0.4, 0.7", (0.4, 0.7)),
        ("--rungs", "", ()),  # nobody is compared
    ],
)
def test_lists_of_numbers_are_typed_with_commas(
    flag: str, text: str, expected: tuple[float, ...]
) -> None:
    assert given(flag, text) == {flag[2:].replace("-", "_"): expected}


def test_a_flag_counts_more_than_the_file(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("samples: 5\niterations: 4\n")
    flags = {"samples": 3, "iterations": None, "slots": 2}
    assert given_settings(file, flags) == {"samples": 3, "iterations": 4, "slots": 2}


def command(found: list[dict[str, Any]]) -> click.Command:
    @click.command()
    @settings_options(["hidden_sizes", "rungs"])
    def take(**flags: Any) -> None:
        found.append(given_settings(None, flags))

    return take


def given(*arguments: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = []
    result = CliRunner().invoke(command(found), arguments)
    assert result.exit_code == 0, result.output
    return found[0]
