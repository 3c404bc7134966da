"""What goes wrong between a request and its reply, whichever SDK says so, as one line for the
person at the terminal.

The openai and anthropic SDKs have parallel class trees above httpx and httpx2, and litellm's errors
carry theirs as causes. So an error is read along its chain of causes: a response with a status, a
transport that failed, a body that is no JSON. No SDK is imported here.
"""

from __future__ import annotations

import email.utils
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from eureka_agent.llm.access import shown_address
from eureka_agent.llm.interface import LanguageModelError
from eureka_agent.llm.secrets import PLACEHOLDER, redact
from eureka_agent.text import one_line
from eureka_agent.wording import rough_duration

LONGEST_WORDS = 300
"""Characters of a server's own words that are shown."""
PASSING_STATUSES = frozenset({408, 409, 429})
"""Besides those from 500 on: what may go better in a while."""
SPENT_CODES = frozenset(
    {
        "insufficient_quota",
        "billing_not_active",
        "billing_hard_limit_reached",
        "contract_spend_limit_reached",
        "enforced_spend_limit_reached",
    }
)
"""Codes in a body that comes with a 429, for which no wait helps."""
REFUSAL_CODES = frozenset(
    {"content_filter", "content_policy_violation", "invalid_prompt", "bio_policy"}
)
"""Codes of a filter in front of the model: a refusal, which is data."""
BAD_BODIES = (ValueError, RecursionError)
"""What an SDK lets through of a body that claims to be JSON and is not, or is nested so deeply that
nobody can read it."""


class Trouble(StrEnum):
    """What kind of failure it is."""

    STATUS = "status"
    """The server answered with an error."""
    TIMEOUT = "timeout"
    UNREACHABLE = "unreachable"
    """No connection came about."""
    DROPPED = "dropped"
    """A connection ended before the whole answer was there."""
    NONSENSE = "nonsense"
    """An answer that is not what the wire format has."""
    REDIRECT = "redirect"
    """The server sends us on to another address, which is not followed: the key would go with the
    request."""
    TOO_LONG = "too long"
    """An answer that goes on beyond what any reply has."""
    OTHER = "other"


class RequestFailedError(Exception):
    """A try that brought no reply. It stays inside this package: what comes out is a
    LanguageModelError."""

    def __init__(
        self,
        trouble: Trouble,
        words: str = "",
        *,
        status: int | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
        asked_wait: str | None = None,
    ) -> None:
        """`words`: the server's own; `asked_wait`: a wait that the body asks for, as
        `<seconds>s`."""
        super().__init__(words)
        self.trouble = trouble
        self.words = words
        self.status = status
        self.code = code
        self._headers = {name.lower(): value for name, value in (headers or {}).items()}
        self._asked_wait = asked_wait

    @property
    def passing(self) -> bool:
        """Whether the same request may succeed later."""
        if self.trouble is not Trouble.STATUS:
            return self.trouble in (Trouble.TIMEOUT, Trouble.UNREACHABLE, Trouble.DROPPED)
        if self.code in SPENT_CODES:
            return False
        if (told := self._headers.get("x-should-retry")) in ("true", "false"):
            return told == "true"
        status = self.status or 0
        return status in PASSING_STATUSES or status >= 500

    @property
    def refusal(self) -> bool:
        """Whether a filter in front of the model refused the prompt."""
        return self.trouble is Trouble.STATUS and self.code in REFUSAL_CODES

    def asked_wait_s(self, now: float) -> float | None:
        """Seconds that the server asks to wait, by its headers or its body; None where it asks for
        none. `now`: seconds since 1970."""
        waits = (
            _seconds(self._headers.get("retry-after-ms"), 1e-3),
            _seconds(self._headers.get("retry-after")),
            _until(self._headers.get("retry-after"), now),
            _seconds((self._asked_wait or "").removesuffix("s")),
        )
        return next((wait for wait in waits if wait is not None and wait > 0), None)

    @property
    def short(self) -> str:
        """In a few words, for the line that tells of a further try."""
        return {
            Trouble.STATUS: f"HTTP {self.status}",
            Trouble.TIMEOUT: "no answer in time",
            Trouble.UNREACHABLE: "not reached",
            Trouble.DROPPED: "the connection broke off",
        }.get(self.trouble, str(self.trouble))


class UnusableAnswerError(Exception):
    """Raised below an SDK, which wraps it in an error of its own: what is wrong with an answer that
    nobody should read."""

    def __init__(self, failure: RequestFailedError) -> None:
        super().__init__(str(failure))
        self.failure = failure


_REQUEST_PATHS = ("/chat/completions", "/responses", "/v1/messages")
"""Ends of the addresses that requests go to, behind `--base-url`."""


@dataclass(frozen=True, kw_only=True)
class Service:
    """Whom a client asks, as far as its errors speak of it."""

    name: str
    """The model's, `<provider>/<model>`."""
    address: str | None
    """None: the provider's own."""
    key_name: str
    """Where the key is: its variable."""
    protocol: str
    """What the server is expected to speak."""
    address_hint: str
    timeout_s: float
    key: str | None = None

    def trouble(self, failure: RequestFailedError) -> str:
        """`<model>: HTTP 429`; of a server that is not reached, its address and the cause too."""
        if failure.trouble is not Trouble.UNREACHABLE:
            return f"{self.name}: {failure.short}"
        words = self._clean(failure.words)
        return f"{self._where} is {failure.short}{f' ({words})' if words else ''}"

    @property
    def _where(self) -> str:
        return f"{self.name} at {self.address}" if self.address else self.name

    def explain(
        self, failure: RequestFailedError, tries: int, asked_wait_s: float | None
    ) -> LanguageModelError:
        """The failure of the last of so many tries, as one line with the next step. `asked_wait_s`:
        a wait that is too long for us."""
        where, words = self._where, self._clean(failure.words)
        told = f": {words}" if words else ""
        again = f" ({tries} tries)" if tries > 1 else ""
        wait = "" if asked_wait_s is None else f" and asks to wait {rough_duration(asked_wait_s)}"
        status = failure.status
        message, advice = f"{where} failed{told}", _advice(words)
        match failure.trouble, status:
            case Trouble.TIMEOUT, _:
                message = f"{where} did not answer within {self.timeout_s:g} s{again}"
                advice = "--request-timeout allows it more"
            case Trouble.UNREACHABLE, _:
                message, advice = (
                    f"cannot reach {where}{told}{again}",
                    "check the address and the network",
                )
            case Trouble.DROPPED, _:
                message = f"the connection to {where} broke off{told}{again}"
            case Trouble.NONSENSE, _:
                message = (
                    f"{self.address or self.name} answers, but not as {self.protocol} do{told}"
                )
                advice = self.address_hint
            case Trouble.REDIRECT, _:
                target = self._clean(shown_address(failure.words))
                message = f"{where} sends us on to {target} (HTTP {status}), which is not followed"
                advice = self._redirect_advice(target)
            case Trouble.TOO_LONG, _:
                message = (
                    f"{where} goes on with its answer beyond what any reply has, so it was not read"
                    " to its end"
                )
                advice = self.address_hint
            case Trouble.STATUS, 401:  # the words are often the key
                message, advice = (
                    f"{where} does not accept the key (HTTP 401)",
                    f"check {self.key_name}",
                )
            case Trouble.STATUS, 403:
                message, advice = (
                    f"{where} does not accept the key (HTTP 403){told}",
                    f"check {self.key_name}",
                )
            case Trouble.STATUS, 402:
                message, advice = (
                    f"{where} asks to be paid first (HTTP 402){told}",
                    "check the account",
                )
            case Trouble.STATUS, 404:
                message = f"{where} was not found (HTTP 404){told}"
                advice = f"check the model's name; {self.address_hint}"
            case Trouble.STATUS, 429:
                message = f"{where} refuses more requests (HTTP 429){wait}{told}{again}"
                advice = "check the quota or wait"
            case Trouble.STATUS, _:
                message = f"{where} answers with HTTP {status}{wait}{told}{again}"
        return LanguageModelError(message, advice)

    def _redirect_advice(self, target: str) -> str:
        """The next step after a redirect to `target`."""
        base = next(
            (target.removesuffix(path) for path in _REQUEST_PATHS if target.endswith(path)), None
        )
        if base is None:
            return f"it leads to no address of a model's; {self.address_hint}"
        if self.address is not None and base.rstrip("/") == self.address.rstrip("/"):
            return (
                "it sends every request back to where it came: mend the server, or name another"
                " --base-url"
            )
        return f"if that is the server that you mean: --base-url {base}"

    def _clean(self, words: str) -> str:
        """Somebody else's words in one line, without keys, at most `LONGEST_WORDS` characters."""
        text = redact(words)
        if self.key is not None and len(self.key) > 3:
            text = text.replace(self.key, PLACEHOLDER)
        return one_line(text, LONGEST_WORDS)


def _advice(words: str) -> str:
    """What to change, where a server's words name one of the settings that were sent to it."""
    flags = {
        "temperature": "--temperature",
        "max_tokens": "--reply-tokens",
        "max_completion_tokens": "--reply-tokens",
    }
    flag = next((flag for name, flag in flags.items() if name in words), None)
    return f"try it with another {flag}, or without" if flag else ""


def failure_of(error: BaseException) -> RequestFailedError:
    """What an SDK's error says, read along its chain of causes."""
    chain = list(_chain(error))
    for link in chain:
        if isinstance(link, UnusableAnswerError):
            return link.failure
    for link in chain:
        bases = _bases(link)
        if "HTTPStatusError" in bases or ("APIStatusError" in bases and not _by_litellm(link)):
            return _status_failure(link)
    for link in chain:
        bases = _bases(link)
        if bases & {"ConnectError", "ConnectTimeout", "ProxyError", "UnsupportedProtocol"}:
            return RequestFailedError(Trouble.UNREACHABLE, _words_of_error(link))
        if "TimeoutException" in bases:
            return RequestFailedError(Trouble.TIMEOUT)
        if "TransportError" in bases and "LocalProtocolError" not in bases:
            return RequestFailedError(Trouble.DROPPED, _words_of_error(link))
    unreadable = (json.JSONDecodeError, UnicodeDecodeError, RecursionError)
    if any(
        isinstance(link, unreadable) or "APIResponseValidationError" in _bases(link)
        for link in chain
    ):
        return RequestFailedError(Trouble.NONSENSE)
    cause = (
        error.__cause__ if "APIConnectionError" in _bases(error) else None
    )  # which by itself says nothing
    return RequestFailedError(Trouble.OTHER, _words_of_error(cause or error))


def failure_in_body(error: Any) -> RequestFailedError | None:
    """The error that a body with a good status holds in place of a reply; None where it is none."""
    if not isinstance(error, dict | str):
        error = {name: getattr(error, name, None) for name in ("message", "code", "type")}
    words, code, _ = _words_of_body({"error": error})
    if not words:
        return None
    statuses = {"server_error": 500, "rate_limit_exceeded": 429}
    # other codes are a provider's own names and numbers
    number = (
        int(code)
        if code is not None and re.fullmatch(r"[45][0-9]{2}", code)
        else statuses.get(code or "", 400)
    )
    return RequestFailedError(Trouble.STATUS, words, status=number, code=code)


def _status_failure(error: BaseException) -> RequestFailedError:
    """`error`: one with a server's response."""
    response: Any = getattr(error, "response", None)
    try:
        text = str(response.text)
    except (
        AttributeError,
        RuntimeError,
        ValueError,
    ):  # no body, or one that was never read: the status alone tells
        text = ""
    try:
        words, code, wait = _words_of_body(json.loads(text))
    except (ValueError, RecursionError):
        words, code, wait = ("" if text.lstrip().startswith("<") else text), None, None
    headers = dict(getattr(response, "headers", None) or {})
    words = words or str(getattr(response, "reason_phrase", ""))
    status = getattr(response, "status_code", None) or getattr(error, "status_code", None)
    return RequestFailedError(
        Trouble.STATUS, words, status=status, code=code, headers=headers, asked_wait=wait
    )


def _words_of_body(body: Any) -> tuple[str, str | None, str | None]:
    """Message, code and asked wait of an error's body; each provider has its own form."""
    if isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, dict):
        return "", None, None
    error = body.get("error") or body.get("detail") or body
    if not isinstance(error, dict):
        return str(error), None, None
    words = error.get("message") or error.get("detail") or ""
    code = error.get("code") or error.get("type")
    detail = error.get("details")
    if isinstance(detail, dict) and isinstance(
        detail.get("error_code"), str
    ):  # Anthropic's finer name
        code = detail["error_code"]
    waits = (
        [part.get("retryDelay") for part in detail if isinstance(part, dict)]
        if isinstance(detail, list)
        else []
    )
    wait = next((wait for wait in waits if isinstance(wait, str)), None)  # Gemini's
    return str(words), None if code is None else str(code), wait


def _words_of_error(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, its cause, its cause's cause, … up to what a request before it may have failed
    with."""
    seen: set[int] = set()
    link: BaseException | None = error
    while (
        link is not None
        and id(link) not in seen
        and not isinstance(link, LanguageModelError | RequestFailedError)
    ):
        seen.add(id(link))
        yield link
        link = link.__cause__ or link.__context__


def _bases(error: BaseException) -> frozenset[str]:
    return frozenset(base.__name__ for base in type(error).__mro__)


def _by_litellm(error: BaseException) -> bool:
    """litellm makes up responses for what never was one."""
    return type(error).__module__.startswith("litellm")


def _seconds(text: str | None, unit: float = 1.0) -> float | None:
    try:
        seconds = float(text or "") * unit
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) else None


def _until(text: str | None, now: float) -> float | None:
    """Seconds until an HTTP date."""
    parsed = email.utils.parsedate_tz(text or "")
    if parsed is None:
        return None
    try:
        return email.utils.mktime_tz(parsed) - now
    except (ValueError, OverflowError):
        return None
