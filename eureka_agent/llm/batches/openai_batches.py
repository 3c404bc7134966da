"""OpenAI's Batch API: a file of requests, and one or two files of results."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import openai

from eureka_agent.batch_records import RequestBatch
from eureka_agent.llm.batches.interface import (
    CLOCK_SKEW_S,
    LONGEST_RESULTS_BYTES,
    SENDING_TIMEOUT_S,
    Answer,
    Lookup,
    each_listed,
    json_lines,
    undone,
)
from eureka_agent.llm.bounded_http import bodies_up_to
from eureka_agent.llm.failures import (
    BAD_BODIES,
    RequestFailedError,
    Trouble,
    failure_in_body,
    failure_of,
)
from eureka_agent.llm.interface import CompletionRequest
from eureka_agent.llm.openai_client import OpenAIModel
from eureka_agent.llm.replies import part

OWN_ID = "eureka_batch"
"""Key in a batch's metadata."""
ENDED = {
    "completed": "its batch ended without it",
    "expired": "its batch expired before it was asked",
    "cancelled": "its batch was canceled before it was asked",
}
"""Reason of a missing reply, by the status of an ended batch."""
UNDER_WAY = ("validating", "in_progress", "finalizing", "cancelling")
FULL_QUEUE = "token_limit_exceeded"
"""Code of a batch that is refused until others have ended."""
_FAILURES = (openai.OpenAIError, *BAD_BODIES)


class OpenAIBatches:
    """Batch endpoints of OpenAI's, or of a compatible server."""

    def __init__(self, model: OpenAIModel) -> None:
        self._model = model
        self._client = model.client
        self.requests = model.service
        self.endpoint = replace(
            model.service,
            protocol="batches",
            address_hint="the server must have /files and /batches; --no-llm-batch does without",
        )

    async def send(self, batch: RequestBatch, requests: Mapping[str, CompletionRequest]) -> str:
        """Upload the requests and create the batch. Returns its id."""
        url: Any = f"/v1{self._model.path}"
        lines = (
            {"custom_id": name, "method": "POST", "url": url, "body": self._model.options(request)}
            for name, request in requests.items()
        )
        content = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
        try:
            async with asyncio.timeout(SENDING_TIMEOUT_S):
                file = await self._client.files.create(
                    file=(f"{batch.id}.jsonl", content), purpose="batch"
                )
                created = await self._client.batches.create(
                    input_file_id=str(part(file, "id")),
                    endpoint=url,
                    completion_window="24h",
                    metadata={OWN_ID: batch.id},
                )
        except TimeoutError:
            raise RequestFailedError(Trouble.TIMEOUT) from None
        except _FAILURES as error:
            raise failure_of(error) from None
        return _id(created)

    async def find(self, batch: RequestBatch) -> Lookup:
        """Look for the own id in the metadata of recent batches, the newest first."""
        try:
            async for found in each_listed(self._client.batches.list(limit=100)):
                if part(found, "metadata", OWN_ID) == batch.id:
                    return Lookup(_id(found))
                created = part(found, "created_at")
                if isinstance(created, int) and created < batch.planned_at - CLOCK_SKEW_S:
                    break
        except _FAILURES as error:
            raise failure_of(error) from None
        return Lookup()

    async def answers(self, batch: RequestBatch) -> dict[str, Answer] | None:
        """Read the files of results once the batch has ended."""
        try:
            found = await self._client.batches.retrieve(batch.provider_id)
            status = part(found, "status")
            if status == "failed":
                failure = _failure_of_batch(found)
                return dict.fromkeys(batch.custom_ids(), failure)
            if status in UNDER_WAY:
                return None
            if status not in ENDED:
                raise RequestFailedError(Trouble.NONSENSE)
            files = (part(found, "error_file_id"), part(found, "output_file_id"))
            lines = [line for name in files if name for line in await self._lines(str(name))]
        except _FAILURES as error:
            raise failure_of(error) from None
        answers: dict[str, Answer] = dict.fromkeys(batch.custom_ids(), undone(ENDED[status]))
        answers |= {
            name: self._read(line, ENDED[status])
            for line in lines
            if (name := part(line, "custom_id")) in answers
        }
        return answers

    async def _lines(self, file: str) -> Iterable[Any]:
        with bodies_up_to(LONGEST_RESULTS_BYTES):
            content = await self._client.files.content(file)
        return json_lines(content.text)

    def _read(self, line: Any, missing: str) -> Answer:
        """Reply or failure in a line of results. `missing`: reason without either."""
        body, status = part(line, "response", "body"), part(line, "response", "status_code")
        try:
            if status == 200:
                return self._model.read(body)
        except RequestFailedError as failure:
            return failure
        error = failure_in_body(part(body, "error") or part(line, "error"))
        if error is None or error.code in ("batch_expired", "batch_cancelled"):
            return undone(missing)
        status = status if isinstance(status, int) else error.status
        return RequestFailedError(Trouble.STATUS, error.words, status=status, code=error.code)


def _id(batch: Any) -> str:
    found = part(batch, "id")
    if isinstance(found, str) and found:
        return found
    raise RequestFailedError(Trouble.NONSENSE)


def _failure_of_batch(batch: Any) -> RequestFailedError:
    """Failure of a batch whose file was not accepted; no request of it was made."""
    errors = part(batch, "errors", "data") or [None]
    first = failure_in_body(errors[0]) if errors[0] is not None else None
    if first is None:
        return RequestFailedError(Trouble.OTHER, "the batch failed without a reason")
    status = 429 if first.code == FULL_QUEUE else first.status
    return RequestFailedError(Trouble.STATUS, first.words, status=status, code=first.code)
