from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from scripted_models import DictionaryStore, ScriptedModel

from eureka_agent.errors import RunFolderError
from eureka_agent.llm.budget import Budget, ModelLimits
from eureka_agent.llm.gateway import Gateway
from eureka_agent.llm.interface import (
    ChatMessage,
    CompletionRequest,
    LanguageModelError,
    ToolSpec,
)
from eureka_agent.llm.replay import Recording, ReplayModel, read_recording, write_recording
from eureka_agent.records import Message, ToolCall

MESSAGE = {
    "key": "a",
    "role": "designer",
    "attempt": "1-01",
    "model": "m",
    "request": "?",
    "reply": "!",
    "created": "",
}


def request(
    attempt: str, fitness: float, sample: int = 0, task: str = "to run"
) -> CompletionRequest:
    system = ChatMessage("system", f"The task is {task}.")
    text = ChatMessage("user", f"Improve this reward.\nIts fitness is {fitness}.")
    return CompletionRequest(messages=(system, text), attempt=attempt, sample=sample)


@pytest.fixture
async def recording(tmp_path: Path) -> Recording:
    """Two requests, written to a file and read again."""
    store = DictionaryStore()
    gateway = Gateway(store, Budget(ModelLimits(), {}), 1)
    model = ScriptedModel(reply=lambda request: f"reply to {request.attempt} ✓\u2028\u0085\x0c")
    for attempt, fitness in (("2-01", 1.5), ("2-02", 2.5)):
        await gateway.ask(model, request(attempt, fitness))
    path = tmp_path / "recorded.jsonl"
    write_recording(
        path, Recording("recorded", store.messages, {"model": ["openai/tiny"], "temperature": None})
    )
    found = read_recording(path)
    assert found.messages == store.messages
    assert found.settings == {"model": ["openai/tiny"], "temperature": None}
    return found


async def test_the_same_request_gets_the_same_reply_and_costs_nothing(recording: Recording) -> None:
    reply = await ReplayModel("openai/tiny", recording).complete(request("2-02", 2.5))
    assert (reply.text, reply.cost.prompt_tokens, reply.cost.completion_tokens) == (
        "reply to 2-02 ✓\u2028\u0085\x0c",
        0,
        0,
    )


async def test_another_request_is_an_error(recording: Recording) -> None:
    with pytest.raises(LanguageModelError) as caught:
        await ReplayModel("openai/tiny", recording).complete(request("2-02", 2.5, task="to hop"))
    told = "'recorded' has no reply to what the designer for attempt 2-02 asks: another task, seed"
    assert told in caught.value.message
    for name, attempt in (("openai/tiny", "2-03"), ("openai/other", "2-01")):
        with pytest.raises(LanguageModelError, match="no reply to what the designer"):
            await ReplayModel(name, recording).complete(request(attempt, 9.5))
    with pytest.raises(LanguageModelError, match="no reply to what the designer"):
        await ReplayModel("openai/tiny", recording, "--seed 2").complete(request("2-01", 1.25))


async def test_numbers_of_another_machine_get_the_reply_of_the_same_attempt(
    recording: Recording,
) -> None:
    told: list[str] = []
    model = ReplayModel("openai/tiny", recording, tell=told.append)
    assert (await model.complete(request("2-02", 2.25))).text.startswith("reply to 2-02")
    assert told == [
        "the designer of 2-02 is told other numbers than in the recording, and answers as there"
    ]
    # a further turn of its conversation was not recorded
    later = request("2-02", 2.25)
    call = ToolCall(id="a", name="ask", arguments="{}")
    messages = (*later.messages, ChatMessage("assistant", "", calls=(call,)))
    with pytest.raises(LanguageModelError, match="no reply to what the designer"):
        await model.complete(replace(later, messages=messages))


async def test_where_no_tool_may_be_called_now_the_answer_after_the_calls_is_played() -> None:
    call = ToolCall(id="a", name="ask", arguments="{}")
    about = "\n# Environment\n\na hopper that is to run\n"
    record = {name: value for name, value in MESSAGE.items() if name != "key"}

    def stored(**changes: object) -> Message:
        told = {**record, "attempt": "2-03", "request": f"# system\nLook first.\n{about}\n# user"}
        return Message.model_validate({**told, **changes})

    recording = Recording(
        "recorded", {"1": stored(calls=(call,)), "2": stored(reply="the reward")}, {}
    )
    model = ReplayModel("m", recording)
    system = ChatMessage("system", f"Answer at once.\n{about}")
    asked = CompletionRequest(messages=(system, ChatMessage("user", "Improve")), attempt="2-03")
    assert (await model.complete(asked)).text == "the reward"
    with_tools = replace(asked, tools=(ToolSpec("ask", "asks", {}),))
    assert (await model.complete(with_tools)).calls == (call,)
    other = ChatMessage("system", "Answer at once.\n\n# Environment\n\na hopper that is to jump\n")
    with pytest.raises(LanguageModelError, match="no reply to what the designer"):
        await model.complete(replace(asked, messages=(other,)))


@pytest.mark.parametrize(
    "text",
    [
        "[1]",
        '{"settings": {}}\n{"key": "a"}',
        '{"settings": {}}\n{',
        "[" * 100_000,
        '{"settings": {}}\n' + json.dumps({**MESSAGE, "finish_reason": "weird"}),
    ],
    ids=lambda text: text[-20:],
)
@pytest.mark.usefixtures("no_collection")
def test_a_file_that_is_no_recording(tmp_path: Path, text: str) -> None:
    path = tmp_path / "broken.jsonl"
    path.write_text(text)
    with pytest.raises(RunFolderError, match=r"broken\.jsonl' is no recording"):
        read_recording(path)
