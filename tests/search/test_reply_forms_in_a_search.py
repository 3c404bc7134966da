"""A whole search whose model sends each reply in another form: the answers are trained, and nothing
else."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from command_line import CommandLine
from model_server import Asked, ModelServer, Reply
from reply_forms import FORMS, GOOD

from eureka_agent.archive.database import Archive
from eureka_agent.records import Stage

pytestmark = pytest.mark.slow
SERVERS = ("vllm", "llama", "ollama", "lmstudio")
SENT = [form for form in FORMS if form.name.startswith(SERVERS) and not form.source]
"""Forms of four servers whose answer, if they have one, is `GOOD`."""


class Habits:
    """A model whose n-th new proposal has the n-th form, and a weight by which it is known. Asked
    again, it answers plainly."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sent = self._again = 0

    def __call__(self, asked: Asked) -> Reply:
        with self._lock:
            if len(asked.turns) > 1 or "# Once more" in asked.prompt:
                self._again += 1
                return Reply(text=f"```python\n{_good(500 + self._again)}```")
            form = SENT[self._sent]
            self._sent += 1
        return Reply(
            text=form.text.replace("CENTRE_WEIGHT = 0.2", _weight(self._sent)),
            reasoning=form.thoughts,
            ending="cut_off" if form.cut_off else "stop",
        )


def _weight(number: int) -> str:
    return f"CENTRE_WEIGHT = 0.{number + 1000}"


def _good(number: int) -> str:
    return GOOD.replace("CENTRE_WEIGHT = 0.2", _weight(number))


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(Habits()) as found:
        yield found


def test_a_search_trains_the_answer_of_each_form(
    eureka: CommandLine, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(SENT) >= 25
    eureka.environment |= {"OPENAI_API_KEY": "x"}
    options = [
        *[
            "--env",
            "cartpole",
            "--model",
            "openai/x",
            "--max-tokens",
            "9000000",
            "--iterations",
            "1",
        ],
        *[
            "--revisions",
            "1",
            "--env-steps",
            "500",
            "--finalists",
            "0",
            "--confirm",
            "0",
            "--reviewer",
            "off",
        ],
        *["--analyst", "off", "--no-novelty"],
    ]
    eureka(
        "search",
        "balance the pole",
        *options,
        "--samples",
        str(len(SENT)),
        "--base-url",
        server.base_url,
    )
    attempts = Archive(eureka.run_folder()).attempts()
    trained = {each.proposal.reward.source for each in attempts if each.stage is Stage.TRAINED}
    known = {_good(number) for number in range(2_000)}
    assert len(trained) == len(SENT)
    assert trained <= known
