"""Whole searches with `--llm-batch` by the real command, over HTTP: unbroken, killed and stopped."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import time
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
from model_server import Asked, Reply

pytestmark = pytest.mark.slow
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
def server() -> Iterator[BatchServer]:
    with BatchServer(Designing()) as found:
        yield found


@pytest.fixture
def command(
    puck: Path, server: BatchServer, eureka: CommandLine
) -> Callable[[str, int], tuple[str, ...]]:
    """Arguments of a search of so many generations on the puck with a provider's model, without
    finals."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
        eureka.environment.pop(name, None)
        eureka.environment.pop(name.lower(), None)

    def arguments(provider: str, iterations: int) -> tuple[str, ...]:
        model = f"{provider}/test"
        text = (
            f"--env {puck} --iterations {iterations} --samples 3 --env-steps 2000 --finalists 0"
            f" --confirm 0 --seed 1 --schedule generations --model {model} --reviewer off"
            f" --analyst off --base-url {server.base_url} --price {model}=1,10"
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


def check_finished(eureka: CommandLine, server: BatchServer) -> None:
    """Every request was made once, in a batch, and has its reply and half its price."""
    assert eureka.json("show", "latest")["status"] == "finished"
    messages = [
        json.loads(record)
        for (record,) in rows(eureka.run_folder(), "SELECT record FROM messages ORDER BY rowid")
    ]
    made = sum(len(batch.requests) for batch in server.batches)
    assert (len(messages), len(server.requests)) == (made, 0)
    assert made >= 3
    assert sum(server.made.values()) == made
    # half of 1000 x $1 and 200 x $10, for a million tokens
    assert {Decimal(message["cost"]["money"]) for message in messages} == {Decimal("0.0015")}
    total = eureka.json("show", "latest", "--cost")["total"]
    assert (total["batched"], Decimal(total["money"])) == (made, made * Decimal("0.0015"))


def test_a_search_asks_in_batches_at_half_the_price(
    eureka: CommandLine, command: Callable[[str, int], tuple[str, ...]], server: BatchServer
) -> None:
    output = eureka(*command("openai", 1))
    assert "a batch of 3 requests is with the provider of" in " ".join(output.split())
    assert [len(batch.requests) for batch in server.batches][:1] == [3]
    check_finished(eureka, server)
    assert "at half the price" in " ".join(eureka("show", "latest", "--cost").split())


def test_killed_between_sending_and_storing_the_id_it_finds_the_batch(
    eureka: CommandLine, command: Callable[[str, int], tuple[str, ...]], server: BatchServer
) -> None:
    server.held, server.on_creation = True, "stall"
    process = eureka.popen(*command("anthropic", 1))
    wait_for(lambda: bool(server.batches), process)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert has_entry(eureka, "planned")
    assert not has_entry(eureka, "sent")
    server.on_creation = "answer"
    server.end()
    eureka("resume", "latest")
    check_finished(eureka, server)


def test_interrupted_it_stops_at_once_and_the_resumed_run_takes_the_replies(
    eureka: CommandLine, command: Callable[[str, int], tuple[str, ...]], server: BatchServer
) -> None:
    server.held = True
    process = eureka.popen(*command("openai", 2))
    wait_for(lambda: has_entry(eureka, "sent"), process)
    os.kill(process.pid, signal.SIGINT)
    stopped = time.monotonic()
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130, output + errors
    assert time.monotonic() - stopped < 20
    assert "already asked for" not in output
    assert not rows(eureka.run_folder(), "SELECT 1 FROM messages")
    server.end()
    # without the flag the replies of the batch are taken, too; the rest is asked at once
    eureka("resume", "latest", "--no-llm-batch")
    assert eureka.json("show", "latest")["status"] == "finished"
    total = eureka.json("show", "latest", "--cost")["total"]
    assert (total["batched"], total["requests"]) == (3, 3 + len(server.requests))
    assert len(server.batches) == 1


def test_other_models_are_refused_before_anything_starts(eureka: CommandLine) -> None:
    model = "gemini/gemini-2.5-pro"
    eureka.environment["GEMINI_API_KEY"] = "a-key-of-the-test"
    errors = eureka("search", "balance the pole", "--llm-batch", "--model", model, status=2)
    assert "--llm-batch" in errors
    assert model in errors
    assert "leave --llm-batch out" in errors
    assert not (eureka.folder / "runs").exists()
