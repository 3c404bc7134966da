from __future__ import annotations

import pytest

from eureka_agent.llm.access import redact


@pytest.mark.parametrize(
    ("name", "struck"),
    [
        ("OPENAI_API_KEY", True),
        ("MY_PROXY_APIKEY", True),
        ("AWS_SECRET_ACCESS_KEY", True),
        ("HF_TOKEN", True),
        ("DATABASE_PASSWORD", True),
        ("GOOGLE_APPLICATION_CREDENTIALS", True),
        ("AWS_BEARER_TOKEN_BEDROCK", True),
        ("AICORE_SERVICE_KEY", True),
        ("SNOWFLAKE_JWT", True),
        ("OPENAI_KEY", True),
        ("TOKENIZERS_PARALLELISM", False),
        ("KEYBOARD", False),
        ("HOME_FOLDER", False),
    ],
)
def test_values_of_variables_named_like_keys_are_struck(
    name: str, struck: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "abcdefgh12345678")
    assert redact("it is abcdefgh12345678.") == (
        "it is <key>." if struck else "it is abcdefgh12345678."
    )


def test_a_switch_is_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USE_API_KEY", "true")
    assert redact("that is true") == "that is true"
