"""Address, key and retry policy of a model. Imports no SDK."""

from __future__ import annotations

import asyncio
import os
import random
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from eureka_agent.errors import SettingsError
from eureka_agent.llm.breaker import OutageGuard
from eureka_agent.llm.interface import RetryObserver
from eureka_agent.llm.secrets import redact

CONNECT_TIMEOUT_S = 10.0
"""Timeout of a connection, which a model's thinking does not lengthen."""
KEY_VARIABLES = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
"""Environment variables with the keys of the providers that have an SDK here."""
NO_KEY = "none"
"""Key for a server without keys, as SDKs insist on one."""
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """Retry policy for all providers, whose SDKs do not retry."""

    tries: int = 6
    """Tries in all. The waits between them double, to about two minutes together."""
    first_wait_s: float = 4.0
    """Mean of the first wait; each is drawn from half of its mean to one and a half."""
    longest_wait_s: float = 60.0
    """Bound on that mean; a server may ask for a longer wait."""
    longest_asked_wait_s: float = 900.0
    """Longest wait that a server may ask for; after a longer one there is no retry."""
    first_contact_tries: int = 3
    """Tries for a server that never answered: its address is most likely wrong."""
    first_contact_wait_s: float = 1.0
    timeout_tries: int = 2
    """Tries that may time out: each takes the whole timeout, and the provider may bill it."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = random.random
    """Random number from 0 to 1, for the jitter."""
    now: Callable[[], float] = time.time
    """Seconds since 1970, compared with a `retry-after` date."""


def _ignore(reason: str) -> None:
    """Ignore retries."""


@dataclass(frozen=True, kw_only=True)
class Access:
    """Address, interface, timeout, retries and circuit breaker of a model."""

    base_url: str | None = None
    """None: the provider's own address, or the one in its environment variable."""
    api: Literal["auto", "chat", "responses"] = "auto"
    """Interface of openai/: auto is Responses at OpenAI's own address, else Chat Completions."""
    timeout_s: float = 600.0
    """Timeout of a whole reply: models that reason take minutes."""
    on_retry: RetryObserver = _ignore
    retries: RetryPolicy = RetryPolicy()
    guard: OutageGuard | None = None
    """None: an outage of its server ends a request after its retries."""


DEFAULT_ACCESS = Access()


def key_in(variable: str) -> str | None:
    """The key in an environment variable, or None. Raises SettingsError for an invalid one."""
    key = os.environ.get(variable, "").strip()
    if key and not (key.isascii() and key.isprintable() and " " not in key):
        raise SettingsError(
            f"{variable} holds characters that no key has",
            f"copy the key again: export {variable}=<the key, without quotes, spaces or dots in its"
            " place>",
        )
    return key or None


def checked_key(model: str, variable: str, address: str | None, *, needed: bool) -> str | None:
    """The key for a model. Raises SettingsError for a missing key or an invalid address."""
    key = key_in(variable)
    if key is None and needed:
        raise SettingsError(
            f"model {model!r} needs a key and {variable} is not set",
            f"export {variable}=…, name a server of your own with --base-url, or use --model"
            " offline",
        )
    if address is not None:
        usable_address(address)
    return key


def usable_address(address: str) -> str:
    """Return the address of a server. Raises SettingsError for an invalid one."""
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


@contextmanager
def usable_server(provider: str, address: str | None, sdk_error: type[Exception]) -> Iterator[None]:
    """Turn errors of an SDK that makes a client into SettingsError."""
    try:
        yield
    except (sdk_error, ValueError, ImportError) as error:  # a proxy may need a missing package
        where = provider if address is None else repr(shown_address(address))
        what = f"cannot use the server {where}: {redact(str(error))}"
        raise SettingsError(what, "see --base-url") from None


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
