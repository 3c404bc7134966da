"""Whole searches with a model behind real HTTP, by the real command, and what happens to them: a
kill, a limit, a key that comes back."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine, wait_for
from model_rewards import answer
from model_server import Asked, HttpFailure, ModelServer, Reply

from eureka_agent.designer.llm_designer import MOST_UNANSWERED

pytestmark = pytest.mark.slow
KEY = "sk-secret-key-of-the-test"
PROMPT_TOKENS, REPLY_TOKENS = 1_000, 200


class Designing:
    """A model that answers; equal prompts are samples of one another."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()
        self.replies = 0

    def __call__(self, asked: Asked) -> Reply:
        prompt = "\n".join(
            f"# {role}\n{text}" for role, text in [("system", asked.system), *asked.turns]
        )
        self._seen[prompt] += 1
        self.replies += 1
        text = answer(prompt, self._seen[prompt])
        return Reply(text=text, prompt_tokens=PROMPT_TOKENS, completion_tokens=REPLY_TOKENS)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(Designing()) as found:
        yield found


@pytest.fixture
def command(
    puck: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[str, ...]]:
    """Arguments of a search on the puck with a model; without finals, which have nothing to do with
    models."""

    def arguments(*more: str, iterations: int = 2, samples: int = 3) -> tuple[str, ...]:
        # a steady search's requests depend on when trainings end
        text = (
            f"--env {puck} --iterations {iterations} --samples {samples} --finalists 0 --confirm 0"
            f" --model openai/test --base-url {server.base_url} --reviewer openai/test"
            " --analyst openai/test --seed 1 --schedule generations"
        )
        return ("search", "bring the puck to the middle", *text.split(), *more)

    return arguments


def stored(folder: Path) -> list[dict[str, object]]:
    # a connection that nobody closes stays open until the garbage collector comes
    with closing(
        sqlite3.connect(f"file:{folder / 'archive.sqlite'}?mode=ro", uri=True)
    ) as connection:
        return [
            json.loads(record)
            for (record,) in connection.execute("SELECT record FROM messages ORDER BY rowid")
        ]


def stages(shown: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each["id"], each["stage"]) for each in shown["attempts"]]


def played_back(
    eureka: CommandLine, command: tuple[str, ...], folder: Path
) -> list[tuple[str, str]]:
    """The stages of the attempts when the replies in this run's folder are played back."""
    eureka.environment["EUREKA_RUNS"] = str(eureka.folder / "replayed")
    arguments = list(command)
    at = arguments.index("--model")
    arguments[at : at + 4] = ["--model", f"replay:{folder / 'messages.jsonl'}"]
    eureka(*arguments)
    return stages(eureka.json("show", "latest"))


def test_a_search_runs_whole_and_accounts_for_every_request(
    eureka: CommandLine, command: Callable[..., tuple[str, ...]], server: ModelServer
) -> None:
    output = eureka(*command())
    folder = eureka.run_folder()
    messages = stored(folder)
    assert len(messages) == len(server.requests)
    assert {message["role"] for message in messages} == {"designer", "reviewer", "analyst"}
    # who reads trainings is shown episodes of them, also where the next generation is designed
    # before they have ended
    read = [str(message["request"]) for message in messages if message["role"] == "analyst"]
    assert all("Worst episode" in request and "Best episode" in request for request in read)
    assert "openai/test was asked" in " ".join(output.split())
    assert "at a cost that is not known" in " ".join(output.split())
    found = eureka.json("show", "latest")
    assert found["designer"] == "openai/test"
    trained = [attempt for attempt in found["attempts"] if attempt["stage"] == "trained"]
    assert len(trained) >= 4
    assert (folder / "best" / "reward.py").read_text().count("compute_reward") == 1
    account = eureka.json("show", "latest", "--cost")
    assert account["total"]["requests"] == len(server.requests)
    assert account["total"]["prompt_tokens"] == PROMPT_TOKENS * len(server.requests)
    assert account["total"]["money"] is None  # nobody knows its price
    assert sum(line["requests"] for line in account["by_attempt"]) == len(server.requests)
    assert sum(line["requests"] for line in account["by_role"]) == len(server.requests)
    # the same replies, played back: nobody is asked, nothing is paid, the same attempts come out
    asked = len(server.requests)
    assert played_back(eureka, command(), folder) == stages(found)
    assert len(server.requests) == asked
    assert eureka.json("show", "latest", "--cost")["total"]["money"] == "0"


def test_killed_after_half_its_requests_and_resumed_it_sends_none_twice(
    eureka: CommandLine, command: Callable[..., tuple[str, ...]], server: ModelServer
) -> None:
    # trainings long enough for the kill to come between the first generation's replies and the
    # second's requests
    process = eureka.popen(*command("--env-steps", "60000"))
    first_generation = 6  # three proposals, each reviewed

    def has_stored() -> bool:
        archives = list((eureka.folder / "runs").glob("*/archive.sqlite"))
        try:
            return bool(archives) and len(stored(archives[0].parent)) >= first_generation
        except sqlite3.OperationalError:  # not made yet
            return False

    wait_for(has_stored, process)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert len(server.requests) == first_generation
    eureka("resume", "latest")
    assert len(server.requests) > first_generation
    messages = stored(eureka.run_folder())
    assert len(messages) == len(server.requests)
    assert eureka.json("show", "latest")["status"] == "finished"


class Looking(Designing):
    """A model that looks at its parent and tries a draft before each of its proposals."""

    def __call__(self, asked: Asked) -> Reply:
        if "# Tools" not in asked.system or len(asked.turns) > 1:
            return super().__call__(asked)
        found = re.search(r"attempt (\d-\d\d)", asked.prompt)
        of = found[1] if found else "1-01"
        look = json.dumps({"attempt": of, "expression": "puck_position.abs()"})
        draft = "def compute_reward(puck_position):\n    return puck_position, {'a': puck_position}"
        text = f"```call\nask {look}\n```\n\n```call\ntry_reward\n{draft}\n```"
        return Reply(text=text, prompt_tokens=PROMPT_TOKENS, completion_tokens=REPLY_TOKENS)


def test_a_model_looks_before_it_writes_and_killed_it_pays_nothing_twice(
    eureka: CommandLine, command: Callable[..., tuple[str, ...]], server: ModelServer
) -> None:
    server.answers = Looking()
    more = ("--designer-tools", "written", "--reviewer", "off", "--env-steps", "30000")
    process = eureka.popen(*command(*more))

    def second_generation_looks() -> bool:
        archives = list((eureka.folder / "runs").glob("*/archive.sqlite"))
        try:
            requests = [str(it["request"]) for it in stored(archives[0].parent)] if archives else []
        except sqlite3.OperationalError:  # not made yet
            return False
        # calls of the second generation have their answers, and no reward yet
        return any("# user\n\n# The reward" in each and "# tool" not in each for each in requests)

    wait_for(second_generation_looks, process)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    eureka("resume", "latest")
    folder = eureka.run_folder()
    messages = stored(folder)
    prompts = [(each.system, *each.turns) for each in server.requests]
    # replies that the kill overtook may be asked for again, others are not
    assert len(prompts) - len(messages) <= 3
    assert len({str(each) for each in prompts}) == len(messages)
    told = [each.turns[-1][1] for each in server.requests if len(each.turns) == 3]
    assert any("`ask` answers" in each and "in the quarters of an episode" in each for each in told)
    assert all("It would be accepted" in each and "random actions" in each for each in told)
    assert any("bad episodes" in each for each in told)
    assert "2-01 asks 1-0" in (folder / "log.txt").read_text()
    # the last wave is told what the first one asked
    assert any("# Asked already" in each.prompt for each in server.requests)
    found = eureka.json("show", "latest")
    assert found["status"] == "finished"
    # played back, the tools answer as they did
    asked = len(server.requests)
    assert played_back(eureka, command(*more), folder) == stages(found)
    assert len(server.requests) == asked


def test_interrupted_it_waits_for_the_replies_under_way(
    eureka: CommandLine, command: Callable[..., tuple[str, ...]], server: ModelServer
) -> None:
    designing = Designing()

    def slowly(asked: Asked) -> Reply:
        if len(server.requests) == 3:
            os.kill(process.pid, signal.SIGINT)
            time.sleep(1.0)  # the model's own time
        return designing(asked)

    server.answers = slowly
    process = eureka.popen(*command("--concurrency", "3"))
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 130, output + errors
    assert len(stored(eureka.run_folder())) == len(server.requests)
    assert "already asked for" in " ".join(output.split())
    eureka("resume", "latest")
    assert len(stored(eureka.run_folder())) == len(server.requests)


def test_a_limit_in_dollars_is_met_within_one_request(
    eureka: CommandLine, command: Callable[..., tuple[str, ...]]
) -> None:
    price = ("--price", "openai/test=1,10")  # $0.001 for a prompt and $0.002 for a reply
    output = eureka(*command("--max-cost", "0.020", *price, "--concurrency", "8", iterations=6))
    account = eureka.json("show", "latest", "--cost")
    one = Decimal("0.003")
    assert Decimal("0.020") - one < Decimal(account["total"]["money"]) < Decimal("0.020") + one
    found = eureka.json("show", "latest")
    assert found["status"] == "finished"
    assert "(--max-cost) are spent" in " ".join(found["budget"])
    assert "ends with what is paid for" in " ".join(output.split())
    assert all(attempt["stage"] not in ("proposed", "accepted") for attempt in found["attempts"])
    # resumed it asks nobody again, and with a higher limit it goes on
    eureka("resume", "latest")
    assert eureka.json("show", "latest", "--cost") == account
    settings = eureka.run_folder() / "settings.yaml"
    settings.write_text(settings.read_text().replace("'0.020'", "'0.050'"))
    eureka("resume", "latest")
    assert Decimal(eureka.json("show", "latest", "--cost")["total"]["money"]) > Decimal("0.030")


@pytest.mark.real_starts  # workers that are forked are no children of the driver's
def test_a_key_that_the_server_echoes_is_kept_nowhere(
    eureka: CommandLine, command: Callable[..., tuple[str, ...]], server: ModelServer
) -> None:
    environments: list[bytes] = []
    designing = Designing()

    def echoing(asked: Asked) -> Reply | HttpFailure:
        if len(server.requests) == 1:
            return HttpFailure(503, f"busy, {asked.headers['authorization']}", retry_after_ms="1")
        if len(server.requests) == 4:
            children = ["ps", "-o", "pid=", "--ppid", str(process.pid)]
            for child in subprocess.run(children, capture_output=True, text=True).stdout.split():
                with suppress(OSError):  # it has ended meanwhile
                    environments.append(Path(f"/proc/{child}/environ").read_bytes())
        reply = designing(asked)
        return Reply(text=f"Your header was {asked.headers['authorization']}.\n\n{reply.text}")

    server.answers = echoing
    eureka.environment |= {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY + "-2"}
    process = eureka.popen(*command())
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, output + errors
    assert all(asked.headers["authorization"] == f"Bearer {KEY}" for asked in server.requests)
    assert environments
    assert not any(KEY.encode() in each for each in environments)
    shown = eureka("show", "latest", "1-01") + eureka("show", "latest", "--cost")
    assert KEY not in output + errors + eureka("show", "latest") + shown
    files = [path for path in eureka.run_folder().rglob("*") if path.is_file()]
    assert {"archive.sqlite", "messages.jsonl", "report.md", "log.txt"} <= {
        path.name for path in files
    }
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
    assert "Your header was Bearer <key>." in (eureka.run_folder() / "messages.jsonl").read_text()


@pytest.mark.parametrize(
    ("more", "answers", "message"),
    [
        (("--max-cost", "1"), (), "the price of openai/test is not known"),
        (("--outage", "soon"), (), "--outage is 'soon': expected a wall time"),
        (("--price", "openai/other=1,2"), (), "does not ask"),
        (("--model", "offline"), (), "cannot be combined"),
        (("--reviewer", "nobody"), (), "does not say whose it is"),
        ((), [HttpFailure(401, f"wrong key {KEY}")], "does not accept the key (HTTP 401)"),
        (("--base-url", "http://me:secret@127.0.0.1:9/v1"), (), "must not hold a password"),
        (("--base-url", "http://127.0.0.1:9/v1", "--request-timeout", "1"), (), "cannot reach"),
    ],
)
def test_bad_input_is_one_clear_line(
    eureka: CommandLine,
    command: Callable[..., tuple[str, ...]],
    server: ModelServer,
    more: tuple[str, ...],
    answers: list[HttpFailure],
    message: str,
) -> None:
    server.answers = answers or Designing()
    eureka.environment["OPENAI_API_KEY"] = KEY
    errors = eureka(*command(*more, iterations=1, samples=1), status=2)
    assert message in errors
    assert KEY not in errors
    assert "secret@" not in errors
    lines = [line for line in errors.splitlines() if line.strip()]
    assert sum(line.startswith("error:") for line in lines) == 1
    assert len(lines) <= 3


@pytest.mark.parametrize(
    "text",
    [
        "奖励函数应当让冰球靠近中心。",
        (
            "```python\nimport os\nos.system('touch /tmp/eureka-was-here')\n\ndef"
            " compute_reward(puck_position):\n    return puck_position, {'a': puck_position}\n```"
        ),
    ],
)
def test_a_model_that_writes_no_usable_code_leaves_recorded_attempts(
    eureka: CommandLine, command: Callable[..., tuple[str, ...]], server: ModelServer, text: str
) -> None:
    server.answers = lambda asked: Reply(text=text)
    errors = eureka(
        *command("--retry-rounds", "0", "--revisions", "1", iterations=1, samples=2), status=1
    )
    assert "every proposal of iteration 1 failed" in errors
    attempts = eureka.json("show", "latest")["attempts"]
    assert [each["id"] for each in attempts] == ["1-01", "1-01-r1", "1-02", "1-02-r1"]
    assert {each["stage"] for each in attempts} == {"rejected"}
    assert all(each["reason"] for each in attempts)
    assert not Path("/tmp/eureka-was-here").exists()
    eureka("show", "latest", "1-01")


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (Reply(ending="cut_off", reasoning="I weigh the terms again and again."), "--reply-tokens"),
        (Reply(reasoning="I think so."), "reasoning alone"),
    ],
)
def test_replies_without_an_answer_end_a_search_that_says_why(
    eureka: CommandLine,
    server: ModelServer,
    command: Callable[..., tuple[str, ...]],
    reply: Reply,
    why: str,
) -> None:
    """It ends after as many requests as tell a fault, not after all retries, and can go on."""
    answers, server.answers = server.answers, [reply]
    failed = eureka(*command(samples=6), status=2)
    folder = eureka.run_folder()
    assert "8 replies in a row hold no reward" in failed
    assert why in failed
    assert len(server.requests) < 3 * MOST_UNANSWERED
    assert why in (folder / "log.txt").read_text()
    assert why in (folder / "report.md").read_text()
    assert reply.reasoning in (folder / "messages.jsonl").read_text()
    server.answers = answers
    eureka("resume", str(folder))
    assert "trained" in eureka("show", str(folder))
