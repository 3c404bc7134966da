"""The recording that comes with the package plays back, by the command that the README gives."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from command_line import CommandLine

ROOT = Path(__file__).resolve().parents[2]
COMMAND = re.compile(r"^ *\./eureka (search .*--model replay:cartpole)$", re.MULTILINE)


@pytest.mark.slow
def test_the_readmes_demo_is_played_back_without_a_key_or_a_server(eureka: CommandLine) -> None:
    found = COMMAND.search((ROOT / "README.md").read_text())
    assert found is not None
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY"):
        eureka.environment.pop(name, None)
    # without what has nothing to do with replies: repeats and finals
    output = eureka(*shlex.split(found[1]), "--confirm", "0", "--finalists", "0")
    assert (
        "replies are played back from cartpole: no model is asked, and nothing is paid"
        in " ".join(output.split())
    )
    attempts = eureka.json("show", "latest")["attempts"]
    assert [attempt["stage"] for attempt in attempts] == ["trained"] * 4
    total = eureka.json("show", "latest", "--cost")["total"]
    # four proposals, on which the critic has no warning
    assert (total["requests"], total["money"]) == (4, "0")


def test_the_pages_give_the_same_command() -> None:
    pages = [ROOT / "README.md", ROOT / "docs" / "language-models.md"]
    assert len({match[1] for page in pages for match in COMMAND.finditer(page.read_text())}) == 1


def test_another_search_is_told_what_it_asks_that_was_not_recorded(eureka: CommandLine) -> None:
    arguments = (
        "search",
        "swing the pole up",
        *["--env", "cartpole", "--task", "swingup", "--model", "replay:cartpole"],
    )
    errors = eureka(*arguments, status=2)
    assert "the recording 'cartpole' has no reply to what the designer for attempt" in errors
    assert "give the settings of the recorded search: 'balance the pole' --task balance" in errors
    assert "Traceback" not in errors


def test_other_sizes_are_told_apart_before_anything_is_trained_with_the_flags_to_give(
    eureka: CommandLine,
) -> None:
    arguments = (
        "search",
        "balance the pole",
        *["--env", "cartpole", "--model", "replay:cartpole", "--no-baselines"],
    )
    errors = eureka(*arguments, status=2)
    assert "the recording 'cartpole' has no reply to what the designer for attempt 1-0" in errors
    flags = "--strategy best-of-n --iterations 1 --samples 4"
    assert f" hint: give the settings of the recorded search: {flags}\n" in errors
    assert all(attempt["fitness"] is None for attempt in eureka.json("show", "latest")["attempts"])
