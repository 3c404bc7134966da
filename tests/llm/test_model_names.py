"""From a model's name to its client: impossible names, keys and addresses, and what is imported
when."""

from __future__ import annotations

import pytest
from model_access import Patient, Waits
from model_server import ModelServer

from eureka_agent.errors import SettingsError
from eureka_agent.llm.access import ModelAccess
from eureka_agent.llm.clients import language_model
from eureka_agent.llm.interface import ChatMessage, CompletionRequest, LanguageModelError

REQUEST = CompletionRequest(
    messages=(ChatMessage("system", "you design"), ChatMessage("user", "a reward, please"))
)
OWN_SDKS = [("openai/gpt-5", "OPENAI"), ("anthropic/claude-sonnet-5", "ANTHROPIC")]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("gpt-5", "'gpt-5' does not say whose it is"),
        ("openai/", "'openai/' is only half a name"),
        ("", "'' does not say whose it is"),
    ],
)
def test_a_name_that_is_none_says_how_to_write_one(model: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message) as caught:
        language_model(model)
    assert "<provider>/<model>, such as openai/gpt-5" in caught.value.hint
    assert "offline" in caught.value.hint


@pytest.mark.parametrize("model", [" openai/gpt-5", "openai / gpt-5"])
def test_a_name_with_spaces_around_its_parts_is_no_second_name(model: str) -> None:
    """Its price would be looked up under a name that no request has, and --max-cost would limit
    nothing."""
    with pytest.raises(SettingsError, match="has spaces around its parts") as caught:
        language_model(model)
    assert caught.value.hint == "write openai/gpt-5"


@pytest.mark.parametrize(("model", "provider"), OWN_SDKS)
@pytest.mark.parametrize("key", [None, "", "  "])
def test_without_a_key_the_error_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, model: str, provider: str, key: str | None
) -> None:
    monkeypatch.delenv(f"{provider}_API_KEY")
    if key is not None:
        monkeypatch.setenv(f"{provider}_API_KEY", key)
    with pytest.raises(SettingsError, match=f"{provider}_API_KEY is not set") as caught:
        language_model(model)
    assert f"export {provider}_API_KEY" in caught.value.hint
    assert "--base-url" in caught.value.hint
    assert "--model offline" in caught.value.hint


@pytest.mark.parametrize(("model", "provider"), OWN_SDKS)
async def test_a_server_of_ones_own_needs_no_key(
    model_server: ModelServer, monkeypatch: pytest.MonkeyPatch, model: str, provider: str
) -> None:
    monkeypatch.delenv(f"{provider}_API_KEY")
    model_server.answers = ["ok"]
    assert (
        await language_model(model, ModelAccess(base_url=model_server.base_url)).complete(REQUEST)
    ).text == "ok"
    monkeypatch.setenv(f"{provider}_BASE_URL", model_server.base_url)
    assert (await language_model(model).complete(REQUEST)).text == "ok"


@pytest.mark.parametrize(("model", "provider"), OWN_SDKS)
@pytest.mark.parametrize("key", ["sk-…", "sk-secret\nkey"])
def test_a_key_that_no_header_can_hold_is_refused_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, model: str, provider: str, key: str
) -> None:
    """For example, the hint's dots may be copied with the key."""
    monkeypatch.setenv(f"{provider}_API_KEY", key)
    with pytest.raises(
        SettingsError, match=f"{provider}_API_KEY holds characters that no key has"
    ) as caught:
        language_model(model)
    assert key not in str(caught.value)


@pytest.mark.parametrize("model", ["openai/tiny", "anthropic/tiny"])
@pytest.mark.parametrize("address", ["not an address", "ftp://host/v1"])
def test_a_base_url_that_is_none(model: str, address: str) -> None:
    with pytest.raises(SettingsError, match="is no address of a server") as caught:
        language_model(model, ModelAccess(base_url=address))
    assert address in caught.value.message
    assert "http://<host>" in caught.value.hint


@pytest.mark.parametrize(("model", "provider"), OWN_SDKS)
async def test_a_password_in_an_address_is_not_shown(
    model_server: ModelServer,
    waits: Waits,
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    provider: str,
) -> None:
    """The setting refuses one; the environment variable is the person's own."""
    monkeypatch.setenv(f"{provider}_BASE_URL", f"ftp://me:hidden@127.0.0.1:{model_server.port}/v1")
    with pytest.raises(SettingsError) as refused:
        language_model(model)
    monkeypatch.setenv(
        f"{provider}_BASE_URL", f"http://me:hidden@127.0.0.1:{model_server.port}/v1?k=hidden"
    )
    model_server.close()
    with pytest.raises(LanguageModelError) as failed:
        await Patient(model, waits.access(None)).complete(REQUEST)
    assert f"127.0.0.1:{model_server.port}" in failed.value.message
    assert "hidden" not in f"{refused.value} {failed.value}"
