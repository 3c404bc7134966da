"""Anthropic's Message Batches."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from urllib.parse import quote

import anthropic

from eureka_agent.batch_records import RequestBatch
from eureka_agent.llm.anthropic_client import AnthropicModel
from eureka_agent.llm.batches.interface import (
    CLOCK_SKEW_S,
    LONGEST_RESULTS_BYTES,
    SENDING_TIMEOUT_S,
    Answer,
    Lookup,
    each_listed,
    is_in_window,
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
from eureka_agent.llm.replies import part

UNDER_WAY = ("in_progress", "canceling")
MISSING = {
    "expired": "its batch expired before it was asked",
    "canceled": "its batch was canceled before it was asked",
}
"""Reason of a missing reply, by the type of a result."""
_FAILURES = (anthropic.AnthropicError, *BAD_BODIES)


class AnthropicBatches:
    """Batch endpoints of Anthropic's, or of a compatible server."""

    def __init__(self, model: AnthropicModel) -> None:
        self._model = model
        self._client = model.client
        self.requests = model.service
        self.endpoint = replace(
            model.service,
            protocol="Message Batches",
            address_hint="the server must have /v1/messages/batches; --no-llm-batch does without",
        )

    async def send(self, batch: RequestBatch, requests: Mapping[str, CompletionRequest]) -> str:
        """Create the batch. Returns its id."""
        body: Any = [
            {"custom_id": name, "params": self._model.body(request)}
            for name, request in requests.items()
        ]
        try:
            async with asyncio.timeout(SENDING_TIMEOUT_S):
                created = await self._client.messages.batches.create(requests=body)
        except TimeoutError:
            raise RequestFailedError(Trouble.TIMEOUT) from None
        except _FAILURES as error:
            raise failure_of(error) from None
        found = part(created, "id")
        if isinstance(found, str) and found:
            return found
        raise RequestFailedError(Trouble.NONSENSE)

    async def find(self, batch: RequestBatch) -> Lookup:
        """Look for a batch with our custom ids among those of as many requests from that time. The
        list does not show custom ids, only the results do: those under way are waited for."""
        certain = True
        try:
            async for found in each_listed(self._client.messages.batches.list(limit=100)):
                created = part(found, "created_at")
                if not isinstance(created, datetime):
                    continue
                if created.timestamp() < batch.planned_at - CLOCK_SKEW_S:
                    break
                counts = part(found, "request_counts")
                states = ("processing", "succeeded", "errored", "canceled", "expired")
                total = sum(part(counts, state) or 0 for state in states)
                name = part(found, "id")
                if total != len(batch.requests) or not is_in_window(batch, created.timestamp()):
                    continue
                if part(found, "processing_status") in UNDER_WAY:
                    certain = False
                elif any(
                    part(line, "custom_id") in batch.custom_ids()
                    for line in await self._lines(str(name))
                ):
                    return Lookup(str(name))
        except _FAILURES as error:
            raise failure_of(error) from None
        return Lookup(certain=certain)

    async def answers(self, batch: RequestBatch) -> dict[str, Answer] | None:
        """Read the results once the batch has ended."""
        try:
            found = await self._client.messages.batches.retrieve(batch.provider_id)
            status = part(found, "processing_status")
            if status in UNDER_WAY:
                return None
            if status != "ended":
                raise RequestFailedError(Trouble.NONSENSE)
            lines = await self._lines(batch.provider_id)
        except _FAILURES as error:
            raise failure_of(error) from None
        missing = undone("its batch ended without it")
        answers: dict[str, Answer] = dict.fromkeys(batch.custom_ids(), missing)
        answers |= {
            name: self._read(part(line, "result"))
            for line in lines
            if (name := part(line, "custom_id")) in answers
        }
        return answers

    async def _lines(self, provider_id: str) -> list[Any]:
        """Read the results at the client's own address: the SDK would take the server's word for
        it, and send the key there."""
        path = f"/v1/messages/batches/{quote(provider_id, safe='')}/results"
        with bodies_up_to(LONGEST_RESULTS_BYTES):
            return list(json_lines(await self._client.get(path, cast_to=str)))

    def _read(self, result: Any) -> Answer:
        """Reply or failure in a result."""
        kind = part(result, "type")
        if kind == "succeeded":
            try:
                return self._model.read(part(result, "message"))
            except RequestFailedError as failure:
                return failure
        if kind in MISSING:
            return undone(MISSING[kind])
        error = part(result, "error", "error") or part(result, "error")
        return failure_in_body(error) or RequestFailedError(Trouble.NONSENSE)
