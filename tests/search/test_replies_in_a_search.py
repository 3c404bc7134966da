"""Whole searches with replies that are hostile, recorded, or come in batches."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from batch_server import BatchServer
from command_line import CommandLine, wait_for
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
    asked = len(server.requests)
    eureka("show", "latest")
    eureka("resume", "latest")
    assert len(server.requests) == asked
    assert eureka.json("show", "latest", "--cost")["total"] == account["total"]


ROOT = Path(__file__).resolve().parents[2]
COMMAND = re.compile(r"^ *\./eureka (search .*--model replay:roll_to)$", re.MULTILINE)
SENTENCE = "bring the ball to the goal on the tray and keep it there; the goal changes every 2.5 s"


@pytest.mark.slow
def test_the_readmes_demo_is_played_back_without_a_key_or_a_server(eureka: CommandLine) -> None:
    found = COMMAND.search((ROOT / "README.md").read_text())
    assert found is not None
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY"):
        eureka.environment.pop(name, None)
    # without what has nothing to do with replies: repeats, finals, and most of the steps
    small = ("--confirm", "0", "--finalists", "0", "--env-steps", "16384", "--no-video")
    output = " ".join(eureka(*shlex.split(found[1]), *small).split())
    assert "replies are played back from roll_to: no model is asked, and nothing is paid" in output
    attempts = eureka.json("show", "latest")["attempts"]
    assert [attempt["stage"] for attempt in attempts] == ["trained"] * 8
    # shorter trainings give other numbers, of which the log tells
    assert "is told other numbers than in the recording, and answers as there" in output
    total = eureka.json("show", "latest", "--cost")["total"]
    assert total["money"] == "0"
    # the model looked before it wrote its later rewards, and the tools answered here
    log = (eureka.run_folder() / "log.txt").read_text()
    assert re.search(r"2-0[1-4] asks 1-0[1-4]: ", log)
    assert total["requests"] > 8


def test_the_pages_give_the_same_command() -> None:
    pages = [ROOT / "README.md", ROOT / "docs" / "language-models.md"]
    assert len({match[1] for page in pages for match in COMMAND.finditer(page.read_text())}) == 1


def test_another_search_is_told_what_it_asks_that_was_not_recorded(eureka: CommandLine) -> None:
    arguments = (
        "search",
        "balance the ball",
        *["--env", "ball_balance", "--task", "balance", "--model", "replay:roll_to"],
    )
    errors = eureka(*arguments, status=2)
    assert "the recording 'roll_to' has no reply to what the designer for attempt" in errors
    assert f"give the settings of the recorded search: '{SENTENCE}' --task roll_to" in errors
    assert "Traceback" not in errors


def test_other_sizes_are_told_apart_before_anything_is_trained_with_the_flags_to_give(
    eureka: CommandLine,
) -> None:
    arguments = (
        "search",
        SENTENCE,
        *["--env", "ball_balance", "--task", "roll_to", "--model", "replay:roll_to"],
    )
    errors = eureka(*arguments, "--no-baselines", status=2)
    assert "the recording 'roll_to' has no reply to what the designer for attempt 1-0" in errors
    assert " hint: give the settings of the recorded search: --samples 4\n" in errors
    assert all(attempt["fitness"] is None for attempt in eureka.json("show", "latest")["attempts"])


PROMPT_TOKENS, REPLY_TOKENS = 1_000, 200


class Designing:
    """A model that answers; equal prompts are samples of one another."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def __call__(self, asked: Asked) -> Reply:
        prompt = "\n".join(
            f"# {role}\n{text}" for role, text in [("system", asked.system), *asked.turns]
        )
        self._seen[prompt] += 1
        text = answer(prompt, self._seen[prompt])
        return Reply(text=text, prompt_tokens=PROMPT_TOKENS, completion_tokens=REPLY_TOKENS)


@pytest.fixture
def server_batch() -> Iterator[BatchServer]:
    with BatchServer(Designing()) as found:
        yield found


@pytest.fixture
def command(
    puck: Path, server_batch: BatchServer, eureka: CommandLine
) -> Callable[[str, int], tuple[str, ...]]:
    """Arguments of a search of so many generations on the puck with a provider's model, without
    finals."""

    def arguments(provider: str, iterations: int) -> tuple[str, ...]:
        model = f"{provider}/test"
        text = (
            f"--env {puck} --iterations {iterations} --samples 3 --env-steps 2000 --finalists 0"
            f" --confirm 0 --seed 1 --schedule generations --model {model} --reviewer off"
            f" --analyst off --base-url {server_batch.base_url} --price {model}=1,10"
            " --llm-batch --llm-batch-wait 0.2"
        )
        return ("search", "bring the puck to the middle", *text.split())

    return arguments


def rows(folder: Path, statement: str) -> list[Any]:
    # a connection that nobody closes stays open until the garbage collector comes
    with closing(
        sqlite3.connect(f"file:{folder / 'archive.sqlite'}?mode=ro", uri=True)
    ) as connection:
        return connection.execute(statement).fetchall()


def has_entry(eureka: CommandLine, kind: str) -> bool:
    try:
        return bool(
            rows(eureka.run_folder(), f"SELECT 1 FROM journal WHERE kind = 'request-batch-{kind}'")
        )
    except (ValueError, sqlite3.OperationalError):  # there is no run yet
        return False


def check_finished(eureka: CommandLine, server_batch: BatchServer) -> None:
    """Every request was made once, in a batch, and has its reply and half its price."""
    assert eureka.json("show", "latest")["status"] == "finished"
    messages = [
        json.loads(record)
        for (record,) in rows(eureka.run_folder(), "SELECT record FROM messages ORDER BY rowid")
    ]
    made = sum(len(batch.requests) for batch in server_batch.batches)
    assert (len(messages), len(server_batch.requests)) == (made, 0)
    assert made >= 3
    assert sum(server_batch.made.values()) == made
    # half of 1000 x $1 and 200 x $10, for a million tokens
    assert {Decimal(message["cost"]["money"]) for message in messages} == {Decimal("0.0015")}
    total = eureka.json("show", "latest", "--cost")["total"]
    assert (total["batched"], Decimal(total["money"])) == (made, made * Decimal("0.0015"))


def test_a_search_asks_in_batches_at_half_the_price(
    eureka: CommandLine, command: Callable[[str, int], tuple[str, ...]], server_batch: BatchServer
) -> None:
    output = eureka(*command("openai", 1))
    assert "a batch of 3 requests is with the provider of" in " ".join(output.split())
    assert [len(batch.requests) for batch in server_batch.batches][:1] == [3]
    check_finished(eureka, server_batch)
    assert "at half the price" in " ".join(eureka("show", "latest", "--cost").split())


def test_killed_between_sending_and_storing_the_id_it_finds_the_batch(
    eureka: CommandLine, command: Callable[[str, int], tuple[str, ...]], server_batch: BatchServer
) -> None:
    server_batch.held, server_batch.on_creation = True, "stall"
    process = eureka.popen(*command("anthropic", 1))
    wait_for(lambda: bool(server_batch.batches), process)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert has_entry(eureka, "planned")
    assert not has_entry(eureka, "sent")
    server_batch.on_creation = "answer"
    server_batch.end()
    eureka("resume", "latest")
    check_finished(eureka, server_batch)


def test_other_models_are_refused_before_anything_starts(eureka: CommandLine) -> None:
    model = "gemini/gemini-2.5-pro"
    eureka.environment["GEMINI_API_KEY"] = "a-key-of-the-test"
    errors = eureka("search", "balance the pole", "--llm-batch", "--model", model, status=2)
    assert "--llm-batch" in errors
    assert model in errors
    assert "leave --llm-batch out" in errors
    assert not (eureka.folder / "runs").exists()
