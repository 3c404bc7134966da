"""Address and key of a model, and the removal of keys from what is shown. Imports no SDK."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from eureka_agent.errors import SettingsError
from eureka_agent.llm.interface import RetryObserver

if TYPE_CHECKING:
    from eureka_agent.llm.breaker import Breaker

KEY_VARIABLES = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
"""Environment variables with the keys of the providers that have an SDK here."""
NO_KEY = "none"
PLACEHOLDER = "<key>"
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_SECRET_NAMES = re.compile(
    r"(KEY|SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIAL|JWT)S?(_|$)", re.IGNORECASE
)
_SHORTEST_SECRET = 8
"""Shortest key; a shorter value is a common word and would be removed everywhere."""


def _ignore(reason: str) -> None:
    """Ignore retries."""


@dataclass(frozen=True, kw_only=True)
class ModelAccess:
    """Address, interface, timeout and circuit breaker of a model."""

    base_url: str | None = None
    """None: the provider's own address, or the one in its environment variable."""
    api: Literal["auto", "chat", "responses"] = "auto"
    """Interface of openai/: auto is Responses at OpenAI's own address, else Chat Completions."""
    tools: Literal["native", "written"] = "native"
    """Form of tools; a server that refuses native ones gets written ones."""
    timeout_s: float = 600.0
    """Timeout of a whole reply: models that reason take minutes."""
    on_retry: RetryObserver = _ignore
    breaker: Breaker | None = None
    """Breaker that searches share; None: one of its own."""
    outage_s: float = 0.0
    """Longest wait for a server that is out; 0: an outage ends a request after its retries."""


DEFAULT_ACCESS = ModelAccess()


def redact(text: str) -> str:
    """Replace the values of environment variables that are named like keys. The longest goes
    first, so that one that begins with another is replaced as a whole."""
    values = {value.strip() for name, value in os.environ.items() if _SECRET_NAMES.search(name)}
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= _SHORTEST_SECRET:
            text = text.replace(value, PLACEHOLDER)
    return text


def checked_key(model: str, variable: str, *, needed: bool) -> str | None:
    """The key for a model. Raises SettingsError for a missing or invalid one."""
    key = os.environ.get(variable, "").strip() or None
    if key is not None and not (key.isascii() and key.isprintable() and " " not in key):
        raise SettingsError(
            f"{variable} holds characters that no key has",
            f"copy the key again: export {variable}=<the key, without quotes, spaces or dots in its"
            " place>",
        )
    if key is None and needed:
        raise missing_key(model, variable)
    return key


def missing_key(model: str, *variables: str) -> SettingsError:
    """The error for a model whose key is in none of the variables that may hold it."""
    return SettingsError(
        f"model {model!r} needs a key and {' or '.join(variables)} is not set",
        f"export {variables[-1]}=…, name a server of your own with --base-url, or use --model"
        " offline",
    )


def usable_address(address: str | None) -> str | None:
    """Return the address of a server. Raises SettingsError for an invalid one."""
    if address is None:
        return None
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not address.isprintable() or " " in address:
        raise SettingsError(
            f"{shown_address(address)!r} is no address of a server",
            "write --base-url http://<host>:<port>/v1, or https://…",
        )
    return address


def shown_address(address: str) -> str:
    """The address without user, password and query, which may hold a key."""
    return re.sub(r"(//)[^/?#]*@|[?#].*", r"\1", address, flags=re.DOTALL)


def ask_loopback_directly() -> None:
    """Exempt this machine from proxies: HTTP libraries read `no_proxy` for each new client."""
    if not any(os.environ.get(name) for name in (*_PROXIES, *(name.lower() for name in _PROXIES))):
        return
    exempt = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    hosts = [host.strip() for host in exempt.split(",") if host.strip()]
    missing = [host for host in _LOOPBACK if host not in hosts]
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = ",".join(hosts + missing)
