"""Failures of requests to models, of any SDK, as one line for the user. SDKs have parallel class
trees above httpx and httpx2, so an error is read along its chain of causes: a response with a
status, a failed transport, a body that is not JSON. No SDK is imported here."""

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
"""Most characters of a server's message that are shown."""
PASSING_STATUSES = frozenset({408, 409, 429})
"""Statuses below 500 of failures that may pass; from 500 on all may."""
SPENT_CODES = frozenset(
    (
        *("insufficient_quota", "billing_not_active", "billing_hard_limit_reached"),
        *("contract_spend_limit_reached", "enforced_spend_limit_reached"),
    )
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
REFUSAL_CODES = frozenset(
    ("content_filter", "content_policy_violation", "invalid_prompt", "bio_policy")
)
"""Codes of a filter in front of the model: a refusal is data."""


class Trouble(StrEnum):
    """Kind of a failure."""

    STATUS = "status"
    """An error of the server's."""
    TIMEOUT = "timeout"
    UNREACHABLE = "unreachable"
    DROPPED = "dropped"
    """Connection lost within the answer."""
    NONSENSE = "nonsense"
    """Answer in another format."""
    REDIRECT = "redirect"
    """Redirect to another address, not followed, as it would get the key."""
    TOO_LONG = "too long"
    UNDONE = "undone"
    """Request that its batch did not get to."""
    OTHER = "other"


_PASSING = (Trouble.TIMEOUT, Trouble.UNREACHABLE, Trouble.DROPPED, Trouble.UNDONE)


class RequestFailedError(Exception):
    """A try without a reply. It stays inside this package, which raises LanguageModelError."""

    def __init__(
        self,
        trouble: Trouble,
        words: str = "",
        *,
        status: int | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
        asked_wait: str | None = None,
        kind: str = "",
    ) -> None:
        """`words`: the server's message; `asked_wait`: a wait in the body, as `<seconds>s`; `kind`:
        name of an error that the HTTP status does not tell."""
        super().__init__(words)
        self.trouble = trouble
        self.words = words
        self.status = status
        self.code = code
        self._headers = {name.lower(): value for name, value in (headers or {}).items()}
        self._asked_wait = asked_wait
        self._kind = kind

    @property
    def passing(self) -> bool:
        """True where a retry may succeed."""
        if self.trouble is not Trouble.STATUS:
            return self.trouble in _PASSING
        if self.code in SPENT_CODES:
            return False
        if (told := self._headers.get("x-should-retry")) in ("true", "false"):
            return told == "true"
        status = self.status or 0
        return status in PASSING_STATUSES or status >= 500

    @property
    def refusal(self) -> bool:
        """True where a filter in front of the model refused the prompt."""
        return self.trouble is Trouble.STATUS and self.code in REFUSAL_CODES

    def asked_wait_s(self, now: float) -> float | None:
        """Seconds that headers or body ask to wait, or None. `now`: seconds since 1970."""
        waits = (
            _seconds(self._headers.get("retry-after-ms"), 1e-3),
            _seconds(self._headers.get("retry-after")),
            _until(self._headers.get("retry-after"), now),
            _seconds((self._asked_wait or "").removesuffix("s")),
        )
        return next((wait for wait in waits if wait is not None and wait > 0), None)

    @property
    def short(self) -> str:
        """Description in a few words, for the line on a retry."""
        return {
            Trouble.STATUS: self._kind or f"HTTP {self.status}",
            Trouble.TIMEOUT: "no answer in time",
            Trouble.UNREACHABLE: "not reached",
            Trouble.DROPPED: "the connection broke off",
        }.get(self.trouble, str(self.trouble))


class UnusableAnswerError(Exception):
    """An answer that must not be read, raised below an SDK, which may wrap it in its own error."""

    def __init__(self, failure: RequestFailedError) -> None:
        super().__init__(str(failure))
        self.failure = failure


BAD_BODIES = (UnusableAnswerError, ValueError, RecursionError)
"""Errors that an SDK may let pass: of an answer that was not read to its end, and of a body that is
no JSON, or is nested too deeply."""

_REQUEST_PATHS = ("/chat/completions", "/responses", "/v1/messages")


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

    def trouble(self, failure: RequestFailedError) -> str:
        """`<model>: HTTP 429`; for an unreachable server with address and cause."""
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
        """Describe the last failure; `asked_wait_s`: a wait that is too long."""
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
                message = f"cannot reach {where}{told}{again}"
                advice = "check the address and the network"
            case Trouble.DROPPED, _:
                message = f"the connection to {where} broke off{told}{again}"
            case Trouble.NONSENSE, _:
                found = self.address or self.name
                message = f"{found} answers, but not as {self.protocol} do{told}"
                advice = self.address_hint
            case Trouble.REDIRECT, _:
                target = self._clean(shown_address(failure.words))
                message = f"{where} sends us on to {target} (HTTP {status}), which is not followed"
                advice = self._redirect_advice(target)
            case Trouble.TOO_LONG, _:
                message = f"{where} answers at greater length than any reply; it was not read"
                advice = self.address_hint
            case Trouble.STATUS, 401 | 403:  # the words of a 401 are often the key
                words = told if status == 403 else ""
                message = f"{where} does not accept the key ({failure.short}){words}"
                advice = f"check {self.key_name}"
            case Trouble.STATUS, 402:
                message = f"{where} asks to be paid first ({failure.short}){told}"
                advice = "check the account"
            case Trouble.STATUS, 404:
                message = f"{where} was not found ({failure.short}){told}"
                advice = f"check the model's name; {self.address_hint}"
            case Trouble.STATUS, 429:
                message = f"{where} refuses more requests ({failure.short}){wait}{told}{again}"
                advice = "check the quota or wait"
            case Trouble.STATUS, _:
                message = f"{where} answers with {failure.short}{wait}{told}{again}"
        return LanguageModelError(message, advice)

    def _redirect_advice(self, target: str) -> str:
        """Next step after a redirect to `target`."""
        bases = (target.removesuffix(path) for path in _REQUEST_PATHS if target.endswith(path))
        base = next(bases, None)
        if base is None:
            return f"it leads to no address of a model's; {self.address_hint}"
        if self.address is not None and base.rstrip("/") == self.address.rstrip("/"):
            return (
                "it redirects every request to itself: mend the server, or name another --base-url"
            )
        return f"if that is the server that you mean: --base-url {base}"

    def _clean(self, words: str) -> str:
        """A server's message in one line, without keys, at most `LONGEST_WORDS` characters."""
        text = redact(words)
        if self.key is not None and len(self.key) > 3:
            text = text.replace(self.key, PLACEHOLDER)
        return one_line(text, LONGEST_WORDS)


def _advice(words: str) -> str:
    """Change of a setting that a server's message names; else empty."""
    flags = {
        "temperature": "--temperature",
        "max_tokens": "--reply-tokens",
        "max_completion_tokens": "--reply-tokens",
        "max_output_tokens": "--reply-tokens",
    }
    flag = next((flag for name, flag in flags.items() if name in words), None)
    return f"try it with another {flag}, or without" if flag else ""


def failure_of(error: BaseException) -> RequestFailedError:
    """Read an SDK's error along its chain of causes."""
    chain = list(_chain(error))
    for link in chain:
        if isinstance(link, UnusableAnswerError):
            return link.failure
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
    if any(
        isinstance(link, unreadable) or "APIResponseValidationError" in _bases(link)
        for link in chain
    ):
        return RequestFailedError(Trouble.NONSENSE)
    # an APIConnectionError has no message of its own
    cause = error.__cause__ if "APIConnectionError" in _bases(error) else None
    return RequestFailedError(Trouble.OTHER, _words_of_error(cause or error))


def failure_of_body(body: Any) -> RequestFailedError | None:
    """Read the error of a whole body with a good status; None for a body without one."""
    names = ("object", "type", "error", "error_type")
    fields = body if isinstance(body, dict) else {name: getattr(body, name, None) for name in names}
    is_error = "error" in (fields.get("object"), fields.get("type"))
    error = fields.get("error") or (body if is_error else None)
    if isinstance(error, str):
        error = {"message": error, "type": fields.get("error_type")}
    return failure_in_body(error)


def failure_in_body(error: Any) -> RequestFailedError | None:
    """Read an error in a body with a good status; None where there is none."""
    if not isinstance(error, dict | str):
        error = {name: getattr(error, name, None) for name in ("message", "code", "type", "status")}
    words, code, _, status = _words_of_body({"error": error})
    if not words and code is None:
        return None
    kind = "an error" if code is None else f"the error {one_line(code, 60)!r}"
    if status is None and code is not None and re.fullmatch("[45][0-9]{2}", code):
        status, kind = int(code), ""
    return RequestFailedError(
        Trouble.STATUS, words or str(code), status=status or 400, code=code, kind=kind
    )


def _status_failure(error: BaseException) -> RequestFailedError:
    """The failure for an error with a server's response."""
    response: Any = getattr(error, "response", None)
    try:
        text = str(response.text)
    except (AttributeError, RuntimeError, ValueError):  # no body, or one that was never read
        text = ""
    try:
        words, code, wait, told = _words_of_body(json.loads(text))
    except (ValueError, RecursionError):
        words, code, wait = ("" if text.lstrip().startswith("<") else text), None, None
        told = None
    headers = dict(getattr(response, "headers", None) or {})
    words = words or str(getattr(response, "reason_phrase", ""))
    status = getattr(response, "status_code", None) or getattr(error, "status_code", None)
    kind = ""
    # servers say `api_error` and the like of any error that has no type of its own
    if told not in (None, 500, status):
        kind, status = f"HTTP {status}, {one_line(str(code), 60)}", told
    return RequestFailedError(
        Trouble.STATUS, words, status=status, code=code, headers=headers, asked_wait=wait, kind=kind
    )


def _words_of_body(body: Any) -> tuple[str, str | None, str | None, int | None]:
    """Message, code, asked wait and the type's status of an error's body; each provider has its own
    form."""
    if isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, dict):
        return "", None, None, None
    error = body.get("error") or body.get("detail") or body
    if not isinstance(error, dict):
        return str(error), None, None, _STATUSES.get(_plain(body.get("error_type")))
    words = error.get("message") or error.get("detail") or ""
    code = error.get("code") or error.get("type")
    detail = error.get("details")
    if isinstance(detail, dict) and isinstance(detail.get("error_code"), str):
        code = detail["error_code"]  # Anthropic's finer code
    parts = detail if isinstance(detail, list) else []  # Gemini's
    waits = (each.get("retryDelay") for each in parts if isinstance(each, dict))
    wait = next((each for each in waits if isinstance(each, str)), None)
    kinds = [detail.get("error_code") if isinstance(detail, dict) else None, error.get("type")]
    kinds += [error.get("code"), error.get("status")]
    status = next((_STATUSES[_plain(kind)] for kind in kinds if _plain(kind) in _STATUSES), None)
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
