"""Special features of Anthropic's Messages."""

from __future__ import annotations

import pytest
from eureka_agent.llm.anthropic_client import AnthropicModel
from model_server import ModelServer, Reply

from eureka_agent.llm.access import Access
from eureka_agent.llm.interface import ChatMessage, CompletionRequest

SYSTEM, USER = ChatMessage("system", "you design"), ChatMessage("user", "a reward, please")


async def test_the_system_prompt_is_marked_for_the_cache(model_server: ModelServer) -> None:
    model_server.answers = ["ok"]
    request = CompletionRequest(messages=(SYSTEM, USER), temperature=0.7, max_tokens=500)
    await AnthropicModel("tiny", Access(base_url=model_server.root)).complete(request)
    assert model_server.bodies == [
        {
            "model": "tiny",
            "max_tokens": 500,
            "system": [
                {"type": "text", "text": "you design", "cache_control": {"type": "ephemeral"}}
            ],
            "messages": [{"role": "user", "content": "a reward, please"}],
            "temperature": 0.7,
        }
    ]


async def test_a_bound_on_the_reply_is_always_sent_and_an_empty_system_prompt_never(
    model_server: ModelServer,
) -> None:
    model_server.answers = ["ok"]
    model = AnthropicModel("tiny", Access(base_url=model_server.root))
    await model.complete(CompletionRequest(messages=(ChatMessage("system", " "), USER)))
    assert model_server.bodies == [
        {
            "model": "tiny",
            "max_tokens": 16_000,
            "messages": [{"role": "user", "content": "a reward, please"}],
        }
    ]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("timeout_s", [20.0, 600.0])
@pytest.mark.parametrize("model", ["tiny", "claude-opus-4-20250514"])
async def test_a_long_reply_may_be_asked_for(
    model_server: ModelServer, model: str, timeout_s: float
) -> None:
    """Without a timeout, the SDK refuses a request that may take ten minutes."""
    model_server.answers = ["ok"]
    access = Access(base_url=model_server.root, timeout_s=timeout_s)
    await AnthropicModel(model, access).complete(
        CompletionRequest(messages=(USER,), max_tokens=128_000)
    )
    assert model_server.bodies[0]["max_tokens"] == 128_000


async def test_a_prompts_tokens_are_all_of_them(model_server: ModelServer) -> None:
    """The wire tells 20 fresh ones, 1000 read and 300 written apart."""
    model_server.answers = [
        Reply(text="ok", prompt_tokens=1320, cached_tokens=1000, cache_write_tokens=300)
    ]
    reply = await AnthropicModel("tiny", Access(base_url=model_server.root)).complete(
        CompletionRequest(messages=(USER,))
    )
    assert (reply.prompt_tokens, reply.cached_tokens, reply.cache_write_tokens) == (1320, 1000, 300)


@pytest.mark.parametrize("end", ["", "/", "/v1", "/v1/"])
@pytest.mark.parametrize("by", ["flag", "variable"])
async def test_an_address_with_and_without_its_version(
    model_server: ModelServer, monkeypatch: pytest.MonkeyPatch, end: str, by: str
) -> None:
    model_server.answers = ["ok"]
    if by == "variable":
        monkeypatch.setenv("ANTHROPIC_BASE_URL", model_server.root + end)
    access = Access(base_url=model_server.root + end) if by == "flag" else Access()
    await AnthropicModel("tiny", access).complete(CompletionRequest(messages=(USER,)))
    assert model_server.paths == ["/v1/messages"]
