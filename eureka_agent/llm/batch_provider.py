"""Batches of requests at a provider, at half the price: OpenAI's and Anthropic's."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from urllib.parse import quote

from eureka_agent.batch_records import RequestBatch
from eureka_agent.errors import SettingsError
from eureka_agent.llm.clients import SdkModel
from eureka_agent.llm.failures import BAD_BODIES, RequestFailedError, Trouble, failure_in_body
from eureka_agent.llm.interface import Completion, CompletionRequest, LanguageModel
from eureka_agent.llm.replies import decoded, listed, part, refused
from eureka_agent.records import known_tokens

LONGEST_RESULTS_BYTES = 128 << 20
CLOCK_SKEW_S = 300.0
"""Most difference between this machine's clock and the provider's."""
CALL_TIMEOUT_S = 600.0
KEPT_S = 28 * 86_400.0
"""Time for which both providers keep results, with a day to spare."""
OWN_ID = "eureka_batch"
FULL_QUEUE = "token_limit_exceeded"
"""Code of a batch that OpenAI refuses until others have ended."""
_MESSAGES = "/v1/messages/batches"
_UNDER_WAY = {"validating", "in_progress", "finalizing", "cancelling", "canceling"}
_MISSING = {
    "ended": "its batch ended without it",
    "completed": "its batch ended without it",
    "expired": "its batch expired before it was asked",
    "cancelled": "its batch was canceled before it was asked",
    "canceled": "its batch was canceled before it was asked",
    "failed": "the batch failed without a reason",
    "gone": "its batch is gone",
}
"""Reason of a missing reply, by the status of an ended batch or of a result."""

Answer = Completion | RequestFailedError


class BatchProvider:
    """Batches of one model. All methods raise RequestFailedError. OpenAI takes a file of requests,
    gives one or two files of results, and keeps our id with a batch. Anthropic's list of batches
    does not show custom ids, only the results do."""

    def __init__(self, model: SdkModel) -> None:
        self.model = model
        self._is_openai = model.name.startswith("openai/")
        if self._is_openai:
            self._path, self._status, self._after = "/batches", "status", "after"
            protocol, paths = "batches", "/files and /batches"
        else:
            self._path, self._status, self._after = _MESSAGES, "processing_status", "after_id"
            protocol, paths = "Message Batches", _MESSAGES
        hint = f"the server must have {paths}; --no-llm-batch does without"
        self.service = replace(model.service, protocol=protocol, address_hint=hint)

    async def send(self, batch: RequestBatch, requests: Mapping[str, CompletionRequest]) -> str:
        """Send requests by custom id. Returns the provider's id of the batch."""
        bodies = {name: self.model.body(request) for name, request in requests.items()}
        if not self._is_openai:
            body = [{"custom_id": name, "params": each} for name, each in bodies.items()]
            return _id(await self._call("post", self._path, body={"requests": body}))
        url = f"/v1{self.model.wire.path}"
        lines = (
            {"custom_id": name, "method": "POST", "url": url, "body": each}
            for name, each in bodies.items()
        )
        content = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
        uploaded = await self._call(
            "post",
            "/files",
            body={"purpose": "batch"},
            files=[("file", (f"{batch.id}.jsonl", content))],
            options={"headers": {"Content-Type": "multipart/form-data"}},
        )
        about = {
            "input_file_id": _id(uploaded),
            "endpoint": url,
            "completion_window": "24h",
            "metadata": {OWN_ID: batch.id},
        }
        return _id(await self._call("post", self._path, body=about))

    async def find(self, batch: RequestBatch) -> str | None:
        """Look for a batch whose sending was interrupted in the provider's list. Returns its id
        there; empty where it is missing, None where a later look may find it."""
        found: str | None = ""
        async for each in self._listed():
            created = _created(each)
            if created is not None and created < batch.planned_at - CLOCK_SKEW_S:
                break
            is_ours = await self._is_ours(batch, each, created)
            if is_ours:
                return _id(each)
            found = None if is_ours is None else found
        return found

    async def answers(self, batch: RequestBatch) -> dict[str, Answer] | None:
        """Replies and failures by custom id once the batch has ended; None before that."""
        path = f"{self._path}/{quote(batch.provider_id, safe='')}"
        try:
            found = await self._call("get", path)
        except RequestFailedError as failure:
            if failure.status != 404 or time.time() - batch.planned_at < KEPT_S:
                raise
            found = {"id": batch.provider_id, self._status: "gone"}
        status = str(part(found, self._status))
        if status in _UNDER_WAY:
            return None
        if status not in _MISSING:
            raise RequestFailedError(Trouble.NONSENSE)
        missing = _failure_of_batch(found) if status == "failed" else undone(_MISSING[status])
        answers: dict[str, Answer] = dict.fromkeys(batch.custom_ids(), missing)
        for line in [] if status == "gone" else await self._results(found):
            if (name := str(part(line, "custom_id"))) in answers:
                answers[name] = self._read(line, missing)
        for name, answer in answers.items():
            if isinstance(answer, RequestFailedError):
                answer.service = self.model.service
                answers[name] = refused() if answer.refusal else answer
        return answers

    async def _call(self, method: str, path: str, **options: Any) -> Any:
        return decoded(await self.model.call(method, path, CALL_TIMEOUT_S, **options))

    async def _listed(self) -> AsyncIterator[Any]:
        """Batches of the provider's list, the newest first."""
        begin: dict[str, str] = {}
        while True:
            params = {"limit": 100, **begin}
            page = await self._call("get", self._path, options={"params": params})
            batches = listed(page, "data")
            for each in batches:
                yield each
            if not batches or part(page, "has_more") is not True:
                return
            begin = {self._after: _id(batches[-1])}

    async def _is_ours(self, batch: RequestBatch, found: Any, created: float | None) -> bool | None:
        """True for a batch of the list that is this one; None where that cannot be known yet. Of
        Anthropic's those of that time with as many requests may be it, and the results tell."""
        if self._is_openai:
            return bool(part(found, "metadata", OWN_ID) == batch.id)
        states = ("processing", "succeeded", "errored", "canceled", "expired")
        counts = (known_tokens(part(found, "request_counts", state)) or 0 for state in states)
        latest = batch.planned_at + CALL_TIMEOUT_S + CLOCK_SKEW_S
        if sum(counts) != len(batch.requests) or created is None or created > latest:
            return False
        if part(found, self._status) in _UNDER_WAY:
            return None
        names = batch.custom_ids()
        return any(str(part(line, "custom_id")) in names for line in await self._results(found))

    async def _results(self, found: Any) -> list[Any]:
        """Results of an ended batch, without lines that are none. Paths are at the client's own
        address: a server that names another one would get the key sent there."""
        paths = [f"{self._path}/{quote(_id(found), safe='')}/results"]
        if self._is_openai:
            files = (part(found, "error_file_id"), part(found, "output_file_id"))
            paths = [f"/files/{quote(str(name), safe='')}/content" for name in files if name]
        values = []
        for path in paths:
            body = await self.model.call("get", path, CALL_TIMEOUT_S, LONGEST_RESULTS_BYTES)
            for line in body.splitlines():
                try:
                    values.append(json.loads(line))
                except BAD_BODIES:
                    continue
        return values

    def _read(self, line: Any, missing: RequestFailedError) -> Answer:
        if self._is_openai:
            body, status = part(line, "response", "body"), part(line, "response", "status_code")
            kind = "succeeded" if status == 200 else ""
            error = failure_in_body(part(body, "error") or part(line, "error"))
            if error is None or error.code in ("batch_expired", "batch_cancelled"):
                error = missing
            elif isinstance(status, int):
                error = RequestFailedError(Trouble.STATUS, error.words, status, error.code)
        else:
            result = part(line, "result")
            body, kind = part(result, "message"), part(result, "type")
            error = failure_in_body(part(result, "error", "error") or part(result, "error"))
            if kind in ("expired", "canceled"):
                error = undone(_MISSING[kind])
        if kind != "succeeded":
            return error or RequestFailedError(Trouble.NONSENSE)
        try:
            return self.model.wire.read(body)
        except RequestFailedError as failure:
            return failure


def batch_provider(model: LanguageModel) -> BatchProvider:
    """Batches of a model. Raises SettingsError for a provider without."""
    if isinstance(model, SdkModel):
        return BatchProvider(model)
    raise SettingsError(
        f"--llm-batch cannot hold for {model.name!r}: it is not asked in batches",
        "leave --llm-batch out, or name models of openai/ and anthropic/ alone",
    )


def undone(words: str) -> RequestFailedError:
    """Failure of a request that its batch did not get to."""
    return RequestFailedError(Trouble.UNDONE, words)


def _failure_of_batch(batch: Any) -> RequestFailedError:
    """Failure of a batch whose file was not accepted; no request of it was made."""
    errors = part(batch, "errors", "data") or [None]
    first = failure_in_body(errors[0]) if errors[0] is not None else None
    if first is None:
        return RequestFailedError(Trouble.OTHER, _MISSING["failed"])
    status = 429 if first.code == FULL_QUEUE else first.status
    return RequestFailedError(Trouble.STATUS, first.words, status, first.code)


def _id(thing: Any) -> str:
    found = part(thing, "id")
    if isinstance(found, str) and found:
        return found
    raise RequestFailedError(Trouble.NONSENSE)


def _created(batch: Any) -> float | None:
    found = part(batch, "created_at")
    try:
        return found if isinstance(found, int) else datetime.fromisoformat(str(found)).timestamp()
    except ValueError:
        return None
