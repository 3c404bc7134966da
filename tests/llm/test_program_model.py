"""A program as a model: what it gets, what is read from it, and how it fails."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from model_access import SYSTEM, USER

from eureka_agent.errors import SettingsError
from eureka_agent.llm.access import ModelAccess
from eureka_agent.llm.clients import language_model
from eureka_agent.llm.interface import CompletionRequest, LanguageModelError, ToolSpec

REQUEST = CompletionRequest(messages=(SYSTEM, USER))


def program(folder: Path, body: str) -> str:
    path = folder / "model.py"
    path.write_text(f"import os, sys, time\nfrom pathlib import Path\n{body}\n")
    return f"command:{sys.executable} {path}"


async def test_a_prompt_goes_in_and_a_reply_comes_out(tmp_path: Path) -> None:
    body = "print('I was asked:', sys.stdin.read().split())"
    completion = await language_model(program(tmp_path, body)).complete(REQUEST)
    asked = ["#", "system", "you", "design", "#", "user", "a", "reward,", "please"]
    assert completion.text == f"I was asked: {asked}\n"
    assert completion.cost.prompt_tokens is None  # nobody counts them
    assert completion.cost.seconds > 0


async def test_tools_are_written_for_it(tmp_path: Path) -> None:
    look = ToolSpec("look", "Looks.", {"type": "object", "properties": {}})
    body = "assert '`look`: Looks.' in sys.stdin.read()\nprint('```call\\nlook {}\\n```')"
    request = CompletionRequest(messages=(SYSTEM, USER), tools=(look,))
    completion = await language_model(program(tmp_path, body)).complete(request)
    assert [each.name for each in completion.calls] == ["look"]


async def test_one_that_fails_is_tried_again(tmp_path: Path) -> None:
    told: list[str] = []
    body = (
        "path = Path(__file__).with_name('tries')\n"
        "path.write_text((path.read_text() if path.exists() else '') + 'x')\n"
        "if len(path.read_text()) < 2: sys.exit('no network')\n"
        "print('here')"
    )
    model = language_model(program(tmp_path, body), ModelAccess(on_retry=told.append))
    assert (await model.complete(REQUEST)).text == "here\n"
    assert len(told) == 1
    assert told[0].endswith("ended with status 1: no network: tried again")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("sys.exit(3)", "ended with status 3, 3 times"),
        ("time.sleep(60)", "gave no reply within 0.5 s (--request-timeout), 3 times"),
        ("print('x' * (5 << 20))", "wrote 5,242,881 bytes, expected at most 4,194,304, 3 times"),
    ],
)
async def test_one_that_goes_on_failing_is_one_line(
    tmp_path: Path, body: str, message: str
) -> None:
    model = language_model(program(tmp_path, body), ModelAccess(timeout_s=0.5))
    with pytest.raises(LanguageModelError) as caught:
        await model.complete(REQUEST)
    assert caught.value.message.endswith(message)
    assert "\n" not in caught.value.message


async def test_no_child_outlives_its_request(tmp_path: Path) -> None:
    body = (
        "if os.fork() == 0:\n    time.sleep(600)\n"
        "Path(__file__).with_name('group').write_text(str(os.getpgid(0)))\nprint('here')"
    )
    # the child holds the pipes open: the reply is awaited until the time is up
    model = language_model(program(tmp_path, body), ModelAccess(timeout_s=0.5))
    with pytest.raises(LanguageModelError):
        await model.complete(REQUEST)
    group = int((tmp_path / "group").read_text())
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
    pytest.fail("a child lives on")


@pytest.mark.parametrize("name", ["command:", "command:no-such-program-here", "command:'open"])
def test_a_program_that_is_not_there_is_refused_at_once(name: str) -> None:
    with pytest.raises(SettingsError, match="command:"):
        language_model(name)
