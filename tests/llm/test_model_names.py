"""From a model's name to its client: impossible names, keys and addresses, and what is imported
when."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from model_access import Patient, Waits
from model_server import ModelServer

from eureka_agent.errors import SettingsError
from eureka_agent.llm.access import ModelAccess
from eureka_agent.llm.clients import language_model
from eureka_agent.llm.interface import (
    ChatMessage,
    CompletionRequest,
    LanguageModelError,
    message_key,
)

REQUEST = CompletionRequest(
    messages=(ChatMessage("system", "you design"), ChatMessage("user", "a reward, please"))
)
OWN_SDKS = [("openai/gpt-5", "OPENAI"), ("anthropic/claude-sonnet-5", "ANTHROPIC")]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("gpt-5", "'gpt-5' does not say whose it is"),
        ("openai/", "'openai/' is only half a name"),
        ("/gpt-5", "'/gpt-5' is only half a name"),
        ("", "'' does not say whose it is"),
    ],
)
def test_a_name_that_is_none_says_how_to_write_one(model: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message) as caught:
        language_model(model)
    assert "<provider>/<model>, such as openai/gpt-5" in caught.value.hint
    assert "offline" in caught.value.hint


@pytest.mark.parametrize(
    "model", [" openai/gpt-5", "openai/gpt-5 ", "openai / gpt-5", "openai/gpt-5\n"]
)
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
@pytest.mark.parametrize("key", ["sk-…", "sk secret key", "sk-secret\nkey"])
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
@pytest.mark.parametrize(
    "address",
    [
        "not an address",
        "ftp://host/v1",
        "http://",
        "http://[::1/v1",
    ],
)
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


def test_a_message_key_depends_on_all_that_the_reply_depends_on() -> None:
    other = CompletionRequest(messages=(*REQUEST.messages, ChatMessage("user", "again")))
    keys = {
        message_key("openai/a", replace(REQUEST, sample=1)),
        message_key("openai/b", replace(REQUEST, sample=1)),
        message_key("openai/a", replace(REQUEST, sample=2)),
        message_key("openai/a", replace(other, sample=1)),
    }
    assert len(keys) == 4
    assert message_key("openai/a", CompletionRequest(messages=REQUEST.messages, sample=1)) in keys


@pytest.mark.parametrize(
    ("script", "imported"),
    [
        ("import eureka_agent.designer.llm_designer", []),
        (
            "from eureka_agent.llm.clients import language_model; language_model('openai/a')",
            ["openai"],
        ),
        (
            "from eureka_agent.llm.clients import language_model; language_model('anthropic/a')",
            ["anthropic"],
        ),
        ("from eureka_agent.llm.clients import language_model; language_model('deepseek/a')", []),
    ],
)
def test_an_sdk_is_imported_only_when_it_is_asked_for(script: str, imported: list[str]) -> None:
    modules = (
        "import eureka_agent.llm.gateway, eureka_agent.llm.prices, eureka_agent.llm.litellm_client"
    )
    script = (
        f"import sys; {modules}; {script}; print([m for m in ('openai', 'anthropic', 'litellm') if"
        " m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == str(imported)


@pytest.mark.parametrize("package", ["openai", "anthropic", "litellm"])
def test_an_sdk_that_lacks_what_it_needs_is_named(package: str, tmp_path: Path) -> None:
    broken = tmp_path / package
    broken.mkdir()
    (broken / "__init__.py").write_text("import a_package_that_is_missing\n")
    provider = "gemini" if package == "litellm" else package
    script = (
        "from eureka_agent.errors import SettingsError\n"
        "from eureka_agent.llm.clients import language_model\n"
        f"try: language_model('{provider}/a')\n"
        "except SettingsError as error: print(error.message)"
    )
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "OPENAI_API_KEY": "x"}
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, env=environment
    )
    assert package in done.stdout.partition(" cannot be imported: ")[0]
    assert "No module named 'a_package_that_is_missing'" in done.stdout
