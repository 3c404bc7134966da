"""Batch endpoints of a provider, behind one interface."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from eureka_agent.batch_records import RequestBatch
from eureka_agent.llm.failures import BAD_BODIES, RequestFailedError, Service, Trouble
from eureka_agent.llm.interface import Completion, CompletionRequest

LONGEST_RESULTS_BYTES = 128 << 20
"""Longest file of results, of a hundred requests."""
CLOCK_SKEW_S = 300.0
"""Most difference between this machine's clock and the provider's."""
SENDING_TIMEOUT_S = 600.0
"""Timeout of sending a batch."""

Answer = Completion | RequestFailedError


@dataclass(frozen=True)
class Lookup:
    """Result of looking for a batch in the provider's list."""

    provider_id: str = ""
    """Empty where it was not found."""
    certain: bool = True
    """False where a later look may find it."""


class BatchEndpoints(Protocol):
    """Batch endpoints for one model. All methods raise RequestFailedError and do not retry."""

    requests: Service
    """Description of the model's server, for errors of a request."""
    endpoint: Service
    """Description of the batch endpoints, for errors of a batch."""

    async def send(self, batch: RequestBatch, requests: Mapping[str, CompletionRequest]) -> str:
        """Send requests by custom id. Returns the provider's id of the batch."""
        ...

    async def find(self, batch: RequestBatch) -> Lookup:
        """Look for a batch whose sending was interrupted in the provider's list."""
        ...

    async def answers(self, batch: RequestBatch) -> dict[str, Answer] | None:
        """Replies and failures by custom id once the batch has ended; None before that."""
        ...


def undone(words: str) -> RequestFailedError:
    """Failure of a request that its batch did not get to."""
    return RequestFailedError(Trouble.UNDONE, words)


def is_in_window(batch: RequestBatch, created_at: float) -> bool:
    """True for a batch of the provider's list that was created when this one was sent."""
    latest = batch.planned_at + SENDING_TIMEOUT_S + CLOCK_SKEW_S
    return batch.planned_at - CLOCK_SKEW_S <= created_at <= latest


async def each_listed(pages: AsyncIterable[Any]) -> AsyncIterator[Any]:
    """Batches of an SDK's paginated list. Raises RequestFailedError for an answer that is none."""
    try:
        async for batch in pages:
            yield batch
    except AttributeError:  # the SDKs take any answer for a page
        raise RequestFailedError(Trouble.NONSENSE) from None


def json_lines(text: str) -> Iterator[Any]:
    """Values of JSON lines, without lines that are none."""
    for line in text.splitlines():
        try:
            yield json.loads(line)
        except BAD_BODIES:
            continue
