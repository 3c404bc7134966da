"""The server of models, and an environment in which nothing leads past it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from model_access import KEYS, LITELLM, WIRES, At, Waits, Wire
from model_server import ModelServer

_FOREIGN = ("PROXY", "OPENAI_", "ANTHROPIC_", "LITELLM_", "GEMINI_", "GOOGLE_API")


@pytest.fixture
def waits() -> Waits:
    return Waits()


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The keys of the test, and no address, proxy or option of the person who runs it. No
    certificate authority is trusted: reading their list takes a tenth of a second for each
    client."""
    for name in os.environ:
        if any(part in name.upper() for part in _FOREIGN):
            monkeypatch.delenv(name)
    for name, key in KEYS.items():
        monkeypatch.setenv(name, key)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))


@pytest.fixture
def model_server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest) -> Wire:
    return {**WIRES, "litellm": LITELLM}[request.param]


@pytest.fixture
def at(wire: Wire, model_server: ModelServer, waits: Waits) -> At:
    return At(wire, model_server, waits)
