"""How a model is reached, and how patient its client is. Imports no SDK."""

from __future__ import annotations

import asyncio
import os
import random
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from eureka_agent.errors import SettingsError
from eureka_agent.llm.interface import RetryObserver

CONNECT_TIMEOUT_S = 10.0
"""Longest wait for a connection, which no model's thinking lengthens."""
KEY_VARIABLES = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
"""Environment variables with the keys of the providers that have an SDK here."""
NO_KEY = "none"
"""Sent to a server of one's own that asks for no key: SDKs insist on one."""
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """When a request is made again: one policy for all providers, whose SDKs make none by
    themselves."""

    tries: int = 6
    """In all. The waits between them double, about two minutes together."""
    first_wait_s: float = 4.0
    """Mean of the first wait; each is drawn from half of its mean to one and a half."""
    longest_wait_s: float = 60.0
    """Bound on that mean. What a server asks for may be longer."""
    longest_asked_wait_s: float = 900.0
    """A server that asks for a longer wait than this is not waited for."""
    first_contact_tries: int = 3
    """Tries for a server that cannot be reached and never was: most likely its address is wrong."""
    first_contact_wait_s: float = 1.0
    timeout_tries: int = 2
    """Tries that may end without an answer: each takes the whole timeout, and the provider may bill
    it."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = random.random
    """From 0 to 1, for the jitter."""
    now: Callable[[], float] = time.time
    """Seconds since 1970, which a `retry-after` date is compared with."""


def _ignore(reason: str) -> None:
    """Nobody is told of retries."""


@dataclass(frozen=True, kw_only=True)
class Access:
    """How a model is reached."""

    base_url: str | None = None
    """None: the provider's own address, or the one in its environment variable."""
    api: Literal["auto", "chat", "responses"] = "auto"
    """For openai/ alone: auto is Responses at OpenAI's own address, Chat Completions elsewhere."""
    timeout_s: float = 600.0
    """Longest wait for a whole reply: models that reason take minutes."""
    on_retry: RetryObserver = _ignore
    retries: RetryPolicy = RetryPolicy()


DEFAULT_ACCESS = Access()


def key_in(variable: str) -> str | None:
    """The key in this environment variable, None where there is none. Raises SettingsError for one
    that cannot be sent."""
    key = os.environ.get(variable, "").strip()
    if key and not (key.isascii() and key.isprintable() and " " not in key):
        raise SettingsError(
            f"{variable} holds characters that no key has",
            f"copy the key again: export {variable}=<the key, without quotes, spaces or dots in its"
            " place>",
        )
    return key or None


def checked_key(model: str, variable: str, address: str | None, *, needed: bool) -> str | None:
    """The key for a model that is asked at `address`, None: at its provider's own. Raises
    SettingsError for a key that is needed and missing, and for an address that is none."""
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
    """The address of a server. Raises SettingsError for what is none."""
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
    """An address without a user, password or query, which may hold a key."""
    return re.sub(r"(//)[^/?#]*@|[?#].*", r"\1", address, flags=re.DOTALL)


def ask_loopback_directly() -> None:
    """See to it that no request to this machine goes through a proxy: every HTTP library asks
    `no_proxy` when it makes a client."""
    if not any(os.environ.get(name) for name in (*_PROXIES, *(name.lower() for name in _PROXIES))):
        return
    exempt = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    hosts = [host.strip() for host in exempt.split(",") if host.strip()]
    missing = [host for host in _LOOPBACK if host not in hosts]
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = ",".join(hosts + missing)
