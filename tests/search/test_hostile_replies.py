"""A whole search with a model that counts absurdly and writes Markdown of its own: it runs, and can
be shown, resumed and exported."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine
from model_rewards import answer
from model_server import Asked, ModelServer, Raw, Reply, _rendered

pytestmark = pytest.mark.slow
PICTURE = "![seen](https://evil.example/pixel.png) <img src=https://evil.example/pixel.png>"


class Hostile:
    """Rewards with a picture in their reasoning, and numbers of tokens that nobody can count to."""

    def __init__(self) -> None:
        self._asked = 0

    def __call__(self, asked: Asked) -> Raw:
        self._asked += 1
        prompt = "\n".join(
            f"# {role}\n{text}" for role, text in [("system", asked.system), *asked.turns]
        )
        _, _, body = _rendered(asked, Reply(text=f"{PICTURE}\n\n{answer(prompt, self._asked)}"))
        content = json.loads(body)
        content["usage"] = {
            "prompt_tokens": 10**15,
            "completion_tokens": -(10**4000),
            "total_tokens": 1e308,
        }
        content |= {"id": "x" * 100_000, "model": "y" * 100_000, "created": 10**4000}
        return Raw(json.dumps(content).encode())


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(Hostile()) as found:
        yield found


@pytest.fixture
def search(puck: Path, server: ModelServer) -> tuple[str, ...]:
    text = (
        f"--env {puck} --iterations 2 --samples 2 --finalists 0 --confirm 0 --seed 1"
        f" --model openai/test --base-url {server.base_url} --price openai/test=1,2 --max-cost 5"
    )
    return ("search", "bring the puck to the middle", *text.split())


def test_a_run_with_absurd_replies_is_shown_resumed_and_read(
    eureka: CommandLine, search: tuple[str, ...], server: ModelServer
) -> None:
    eureka(*search)
    folder = eureka.run_folder()
    account = eureka.json("show", "latest", "--cost")
    assert account["total"]["uncounted"] == account["total"]["requests"] == len(server.requests)
    assert account["total"]["money"] is None
    assert (account["total"]["prompt_tokens"], account["total"]["completion_tokens"]) == (0, 0)
    report = (folder / "report.md").read_text()
    assert "evil.example" in report
    assert "![seen](" not in report
    assert "<img" not in report
    document = (folder / "report.html").read_text()
    assert "evil.example" in document
    assert "<img" not in document
    assert all(reply.read_text().startswith("```") for reply in folder.glob("attempts/*/reply.md"))

    # an archive that an earlier version wrote has the numbers as they came (longer ones are
    # refused, see tests/cli/test_hostile_folders.py), and its seals are others
    with sqlite3.connect(folder / "archive.sqlite") as archive:
        for table, column in (("messages", "record"), ("messages", "cost"), ("journal", "record")):
            rows = archive.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
            archive.executemany(
                f"UPDATE {table} SET {column} = ? WHERE rowid = ?",
                [
                    (json.dumps(_with_absurd_costs(json.loads(record))), rowid)
                    for rowid, record in rows
                ],
            )
        archive.execute(
            "UPDATE journal SET record = json_set(record, '$.status', 'stopped')"
            " WHERE kind = 'run-ended'"
        )
    asked = len(server.requests)
    assert eureka.json("show", "latest", "--cost")["total"] == account["total"]
    assert eureka.json("show", "latest")["cost"]["uncounted"] == account["total"]["uncounted"]
    eureka("show", "latest")
    eureka("resume", "latest", "--trust")
    assert len(server.requests) == asked
    assert eureka.json("show", "latest", "--cost")["total"] == account["total"]


def _with_absurd_costs(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_absurd_costs(each) for each in value]
    if not isinstance(value, dict):
        return value
    changed = {name: _with_absurd_costs(each) for name, each in value.items()}
    if "prompt_tokens" in changed:
        changed |= {
            "prompt_tokens": 10**15,
            "completion_tokens": -5,
            "cached_tokens": 1.5,
            "money": "1E+3994",
        }
    return changed
