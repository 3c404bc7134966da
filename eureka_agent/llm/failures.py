"""Failures of requests to models, of any SDK, as one line for the user. SDKs have parallel class
trees above httpx and httpx2, so an error is read along its chain of causes: a response with a
status, a failed transport, a body that is not JSON. No SDK is imported here."""

from __future__ import annotations

import email.utils
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from eureka_agent.llm.access import PLACEHOLDER, redact, shown_address
from eureka_agent.llm.interface import LanguageModelError
from eureka_agent.text import one_line
from eureka_agent.wording import rough_duration

LONGEST_WORDS = 300
"""Most characters of a server's message that are shown."""
PASSING_STATUSES = frozenset({408, 409, 429})
"""Statuses below 500 of failures that may pass; from 500 on all may."""
SPENT_CODES = (
    *("insufficient_quota", "billing_not_active", "billing_hard_limit_reached"),
    *("contract_spend_limit_reached", "enforced_spend_limit_reached"),
)
"""Codes in the body of a 429 that no wait changes."""
_TYPES = {
    401: ("authentication",),
    402: ("billing",),
    403: ("permission",),
    404: ("notfound",),
    429: ("ratelimit", "ratelimitexceeded", "toomanyrequests", "resourceexhausted"),
    500: ("api", "server", "internal", "internalserver"),
    503: ("unavailable", "serviceunavailable", "engineoverloaded"),
    504: ("timeout", "deadlineexceeded"),
    529: ("overloaded",),
}
_STATUSES = {kind: status for status, kinds in _TYPES.items() for kind in kinds}
"""Status for an error, by its type or code in a body, as `_plain` has it."""
REFUSAL_CODES = ("content_filter", "content_policy_violation", "invalid_prompt", "bio_policy")
"""Codes of a filter in front of the model: a refusal is data."""


class Trouble(StrEnum):
    """Kind of a failure, in words for the line on a retry."""

    STATUS = "an error of the server's"
    TIMEOUT = "no answer in time"
    UNREACHABLE = "not reached"
    DROPPED = "the connection broke off"
    NONSENSE = "an answer in another format"
    REDIRECT = "a redirect, not followed, as it would get the key"
    TOO_LONG = "too long an answer"
    UNDONE = "a request that its batch did not get to"
    OTHER = "another failure"


_PASSING = (Trouble.TIMEOUT, Trouble.UNREACHABLE, Trouble.DROPPED, Trouble.UNDONE)
ANSWERS = (Trouble.STATUS, Trouble.NONSENSE, Trouble.DROPPED)
"""Failures of a server that was reached."""
BAD_BODIES = (ValueError, RecursionError)
"""Errors of a body that is no JSON, or is nested too deeply."""
_EXPLANATIONS: dict[Trouble | int, tuple[str, str]] = {
    Trouble.TIMEOUT: (
        "{where} did not answer within {timeout_s:g} s{again}",
        "--request-timeout allows it more",
    ),
    Trouble.UNREACHABLE: ("cannot reach {where}{told}{again}", "check the address and the network"),
    Trouble.DROPPED: ("the connection to {where} broke off{told}{again}", ""),
    Trouble.NONSENSE: ("{server} answers, but not as {protocol} do{told}", "{address_hint}"),
    Trouble.REDIRECT: (
        "{where} sends us on to {target} (HTTP {status}), which is not followed",
        "if that is the server that you mean, name its address with --base-url",
    ),
    Trouble.TOO_LONG: (
        "{where} answers at greater length than any reply; it was not read",
        "{address_hint}",
    ),
    Trouble.STATUS: ("{where} answers with {short}{wait}{told}{again}", ""),
    401: ("{where} does not accept the key ({short})", "check {key_name}"),  # it may echo the key
    402: ("{where} asks to be paid first ({short}){told}", "check the account"),
    403: ("{where} does not accept the key ({short}){told}", "check {key_name}"),
    404: ("{where} was not found ({short}){told}", "check the model's name; {address_hint}"),
    429: ("{where} refuses more requests ({short}){wait}{told}{again}", "check the quota or wait"),
}
"""Message and next step for a kind of failure, or for an HTTP status."""
_BOUNDS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_SETTINGS = {"temperature": "--temperature", **dict.fromkeys(_BOUNDS, "--reply-tokens")}
"""Flags for what a server's message may name."""


@dataclass(frozen=True, kw_only=True)
class Service:
    """A model's server, as errors describe it."""

    name: str
    """Name of the model, `<provider>/<model>`."""
    address: str | None
    """None: the provider's own."""
    key_name: str
    protocol: str
    address_hint: str
    timeout_s: float
    key: str | None = None

    @property
    def where(self) -> str:
        return f"{self.name} at {self.address}" if self.address else self.name

    def clean(self, words: str) -> str:
        """A server's message in one line, without keys, at most `LONGEST_WORDS` characters."""
        text = redact(words)
        if self.key is not None and len(self.key) > 3:
            text = text.replace(self.key, PLACEHOLDER)
        return one_line(text, LONGEST_WORDS)


@dataclass(eq=False)
class RequestFailedError(Exception):
    """A try without a reply. It stays inside this package, which raises LanguageModelError."""

    trouble: Trouble
    words: str = ""
    """The server's message."""
    status: int | None = None
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    """By lower-case name."""
    asked_wait: str = ""
    """A wait in the body, as `<seconds>s`."""
    kind: str = ""
    """Name of an error that the HTTP status does not tell."""
    service: Service | None = None
    """The server that failed, set where a failure leaves its client."""
    in_batch: bool = False
    """True for a request of a batch, which is tried again in the next one."""

    @property
    def passing(self) -> bool:
        """True where a retry may succeed."""
        if self.trouble is not Trouble.STATUS:
            return self.trouble in _PASSING
        if self.code in SPENT_CODES:
            return False
        if (told := self.headers.get("x-should-retry")) in ("true", "false"):
            return told == "true"
        status = self.status or 0
        return status in PASSING_STATUSES or status >= 500

    @property
    def refusal(self) -> bool:
        """True where a filter in front of the model refused the prompt."""
        return self.trouble is Trouble.STATUS and self.code in REFUSAL_CODES

    def asked_wait_s(self, now: float) -> float | None:
        """Seconds that headers or body ask to wait, or None. `now`: seconds since 1970."""
        milliseconds = _seconds(self.headers.get("retry-after-ms", ""), now) or 0.0
        return (
            milliseconds / 1000
            or _seconds(self.headers.get("retry-after", ""), now)
            or _seconds(self.asked_wait.removesuffix("s"), now)
        )

    @property
    def short(self) -> str:
        """Description in a few words, for the line on a retry."""
        http = self.kind or f"HTTP {self.status}"
        return http if self.trouble is Trouble.STATUS else str(self.trouble)

    def line(self) -> str:
        """`<model>: HTTP 429`; for an unreachable server with address and cause."""
        assert self.service is not None
        if self.trouble is not Trouble.UNREACHABLE:
            return f"{self.service.name}: {self.short}"
        words = self.service.clean(self.words)
        return f"{self.service.where} is {self.short}{f' ({words})' if words else ''}"

    def explained(self, tries: int = 1, asked_wait_s: float | None = None) -> LanguageModelError:
        """Describe the last failure of a request. `asked_wait_s`: a wait that is too long."""
        assert self.service is not None
        service, words = self.service, self.service.clean(self.words)
        kind = self.status if self.trouble is Trouble.STATUS else None
        default = _EXPLANATIONS.get(self.trouble, ("{where} failed{told}", ""))
        message, hint = _EXPLANATIONS.get(kind or 0, default)
        values = vars(service) | {
            "where": service.where,
            "server": service.address or service.name,
            "status": self.status,
            "short": self.short,
            "told": f": {words}" if words else "",
            "again": f" ({tries} tries)" if tries > 1 else "",
            "wait": f" and asks to wait {rough_duration(asked_wait_s)}" if asked_wait_s else "",
            "target": service.clean(shown_address(self.words)),
        }
        named = next((flag for name, flag in _SETTINGS.items() if name in words), None)
        advice = f"try it with another {named}, or without" if named else ""
        return LanguageModelError(message.format_map(values), hint.format_map(values) or advice)


def failure_of(error: BaseException) -> RequestFailedError:
    """Read an SDK's error along its chain of causes."""
    chain = list(_chain(error))
    for link in chain:
        if isinstance(link, RequestFailedError):  # raised below an SDK, which wraps it
            return link
    for link in chain:
        bases = _bases(link)
        invented = type(link).__module__.startswith("litellm")  # a response that never came
        if "HTTPStatusError" in bases or ("APIStatusError" in bases and not invented):
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
    if any(isinstance(link, unreadable) for link in chain):
        return RequestFailedError(Trouble.NONSENSE)
    # an APIConnectionError has no message of its own
    cause = error.__cause__ if "APIConnectionError" in _bases(error) else None
    return RequestFailedError(Trouble.OTHER, _words_of_error(cause or error))


def failure_of_body(body: Any) -> RequestFailedError | None:
    """Read the error of a whole body with a good status; None for a body without one."""
    if not isinstance(body, dict):
        return None
    is_error = "error" in (body.get("object"), body.get("type"))
    error = body.get("error") or (body if is_error else None)
    if isinstance(error, str):
        error = {"message": error, "type": body.get("error_type")}
    return failure_in_body(error)


def failure_in_body(error: Any) -> RequestFailedError | None:
    """Read an error in a body with a good status; None where there is none."""
    if not isinstance(error, dict | str):
        return None
    words, code, _, status = _words_of_body({"error": error})
    if not words and code is None:
        return None
    kind = "an error" if code is None else f"the error {one_line(code, 60)!r}"
    if status is None and code is not None and re.fullmatch("[45][0-9]{2}", code):
        status, kind = int(code), ""
    return RequestFailedError(Trouble.STATUS, words or str(code), status or 400, code, kind=kind)


def _status_failure(error: BaseException) -> RequestFailedError:
    response: Any = getattr(error, "response", None)
    try:
        text = str(response.text)
    except (AttributeError, RuntimeError, ValueError):  # no body, or one that was never read
        text = ""
    try:
        words, code, wait, told = _words_of_body(json.loads(text))
    except BAD_BODIES:
        words, code, wait, told = ("" if text.lstrip().startswith("<") else text), None, "", None
    words = words or str(getattr(response, "reason_phrase", ""))
    status = getattr(response, "status_code", None) or getattr(error, "status_code", None)
    kind = ""
    # servers say `api_error` and the like of any error that has no type of its own
    if told not in (None, 500, status):
        kind, status = f"HTTP {status}, {one_line(str(code), 60)}", told
    found = dict(getattr(response, "headers", None) or {})
    headers = {name.lower(): value for name, value in found.items()}
    return RequestFailedError(Trouble.STATUS, words, status, code, headers, wait, kind)


def _words_of_body(body: Any) -> tuple[str, str | None, str, int | None]:
    """Message, code, asked wait and the type's status of an error's body, of any provider."""
    if isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, dict):
        return "", None, "", None
    error = body.get("error") or body.get("detail") or body
    if not isinstance(error, dict):
        return str(error), None, "", _STATUSES.get(_plain(body.get("error_type")))
    detail = error.get("details")
    fine = detail.get("error_code") if isinstance(detail, dict) else None  # Anthropic's
    code = fine if isinstance(fine, str) else error.get("code") or error.get("type")
    parts = detail if isinstance(detail, list) else []  # Gemini's
    waits = (each.get("retryDelay") for each in parts if isinstance(each, dict))
    wait = next((each for each in waits if isinstance(each, str)), "")
    kinds = (fine, error.get("type"), error.get("code"), error.get("status"))
    status = next((_STATUSES[_plain(kind)] for kind in kinds if _plain(kind) in _STATUSES), None)
    words = error.get("message") or error.get("detail") or ""
    return str(words), None if code is None else str(code), wait, status


def _plain(kind: object) -> str:
    """`overloaded` for `overloaded_error`, `OVERLOADED` and `OverloadedError`."""
    return re.sub(r"[^a-z]", "", str(kind).lower()).removesuffix("error")


def _words_of_error(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and its causes, up to the failure of an earlier request."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen and not isinstance(link, LanguageModelError):
        seen.add(id(link))
        yield link
        link = link.__cause__ or link.__context__


def _bases(error: BaseException) -> frozenset[str]:
    return frozenset(base.__name__ for base in type(error).__mro__)


def _seconds(text: str, now: float) -> float | None:
    """Seconds, or those until an HTTP date; None for no time after now."""
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(text).timestamp() - now
        except (ValueError, TypeError, OverflowError):
            return None
    return seconds if math.isfinite(seconds) and seconds > 0 else None
