"""Records of the batches in which requests wait at a model's provider."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, FiniteFloat

from eureka_agent.records import Count, Record

MOST_REQUESTS = 100
"""Most requests of one batch."""


class BatchedRequest(Record):
    """A request in a batch."""

    key: str
    """Content-addressed key, under which its reply will be stored."""
    role: str
    prompt_tokens: Count
    """Estimate for the budget of a resumed run, like the next one."""
    reply_tokens: Count


class RequestBatch(Record):
    """A batch of requests to one model."""

    id: str
    """The run's own id, which the provider keeps with the batch."""
    model: str
    requests: Annotated[tuple[BatchedRequest, ...], Field(max_length=MOST_REQUESTS)]
    planned_at: Annotated[FiniteFloat, Field(ge=0)]
    """Seconds since 1970."""
    provider_id: str = ""
    """The provider's id; empty while it is not known."""
    unanswered: tuple[str, ...] = ()
    """Keys of requests without a reply at the batch's end."""

    @property
    def request_keys(self) -> tuple[str, ...]:
        """Keys of the requests."""
        return tuple(each.key for each in self.requests)

    def custom_ids(self) -> dict[str, str]:
        """The requests' keys by their ids within the batch."""
        return {f"{self.id}-{number}": each.key for number, each in enumerate(self.requests)}
