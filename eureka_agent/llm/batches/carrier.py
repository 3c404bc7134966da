"""The way of a batch to its provider and back. It is recorded before it is sent, and the provider's
id of it as soon as there is one. A process that ends in between leaves a batch whose fate is not
known: it is looked for in the provider's list before any of its requests is made again."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from eureka_agent.batch_records import RequestBatch
from eureka_agent.journal.entries import Notice, Observer
from eureka_agent.journal.progress import (
    RequestBatchAwaited,
    RequestBatchEnded,
    RequestBatchPlanned,
    RequestBatchSent,
)
from eureka_agent.llm.access import RetryPolicy
from eureka_agent.llm.batches.interface import Answer, BatchEndpoints, undone
from eureka_agent.llm.failures import RequestFailedError, Service, Trouble
from eureka_agent.llm.interface import Completion, CompletionRequest
from eureka_agent.llm.replies import refused

INTERVAL_GROWTH = 1.5
MOST_INTERVALS = 20
"""Longest time between two polls, in waits for a further request."""
KEPT_S = 28 * 86_400.0
"""Time for which both providers keep results, with a day to spare."""
_NEVER_SENT = (Trouble.UNREACHABLE, Trouble.REDIRECT)
"""Failures of sending after which the provider cannot have the batch."""


@dataclass(frozen=True)
class Failed:
    """A request without a reply from its batch."""

    failure: RequestFailedError
    service: Service
    """Explains the failure."""
    batch: RequestBatch | None = None
    """A batch that may have the reply nevertheless."""


Outcomes = Mapping[str, Completion | Failed]
"""Outcomes of a batch's requests by their keys."""


class Carrier:
    """Sends, finds and polls the batches of a run."""

    def __init__(
        self, record: Observer, wait_s: float, outage_s: float, policy: RetryPolicy
    ) -> None:
        """`record` stores entries. `wait_s`: first time between two polls. `outage_s`: longest time
        for which polls may fail."""
        self._record = record
        self._wait_s = wait_s
        self._outage_s = outage_s
        self._policy = policy
        self.reached = False
        """True once a provider has accepted a batch."""

    async def send(
        self,
        batch: RequestBatch,
        requests: Mapping[str, CompletionRequest],
        endpoints: BatchEndpoints,
    ) -> RequestBatch | Failed:
        """Send requests by key. Returns the batch with the provider's id."""
        self._record(RequestBatchPlanned(batch=batch))
        named = {name: requests[key] for name, key in batch.custom_ids().items()}
        try:
            provider_id = await endpoints.send(batch, named)
        except RequestFailedError as failure:
            self._tell(endpoints, failure)
            status = failure.status or 0
            is_refused = failure.trouble is Trouble.STATUS and status < 500 and status != 408
            if failure.trouble in _NEVER_SENT or is_refused:
                return self._lost(batch, failure, endpoints)
            found = await self._found(batch, endpoints)
            if isinstance(found, Failed):
                return found
            if not found:
                return self._lost(batch, failure, endpoints)
            provider_id = found
        return self._sent(batch, provider_id)

    def _sent(self, batch: RequestBatch, provider_id: str) -> RequestBatch:
        self._record(RequestBatchSent(id=batch.id, provider_id=provider_id))
        self.reached = True
        return batch.model_copy(update={"provider_id": provider_id})

    def _lost(
        self, batch: RequestBatch, failure: RequestFailedError, endpoints: BatchEndpoints
    ) -> Failed:
        """Record a batch that the provider does not have."""
        self._record(RequestBatchEnded(id=batch.id, unanswered=batch.request_keys))
        return Failed(failure, endpoints.endpoint)

    async def take_up(self, batch: RequestBatch, endpoints: BatchEndpoints) -> Outcomes:
        """Outcomes of a batch of an earlier process, which may not have been sent."""
        if not batch.provider_id:
            found = await self._found(batch, endpoints)
            if not isinstance(found, Failed) and not found:
                found = self._lost(batch, undone("its batch was never sent"), endpoints)
            if isinstance(found, Failed):
                return dict.fromkeys(batch.request_keys, found)
            batch = self._sent(batch, found)
        return await self.results(batch, endpoints, at_once=True)

    async def _found(self, batch: RequestBatch, endpoints: BatchEndpoints) -> str | Failed:
        """The provider's id of a batch, by its list; empty where it is not there."""
        told = False
        failing_since: float | None = None
        for interval in self._intervals(at_once=True):
            await self._policy.sleep(interval)
            try:
                lookup = await endpoints.find(batch)
            except RequestFailedError as failure:
                failing_since = failing_since or time.monotonic()
                if self._ends_polls(failure, failing_since):
                    return Failed(failure, endpoints.endpoint, batch)
                self._tell(endpoints, failure)
                continue
            failing_since = None
            if lookup.provider_id or lookup.certain:
                return lookup.provider_id
            if not told:
                told = True
                text = (
                    f"{batch.model}: it is not known yet if a batch was sent before the run was"
                    " interrupted; batches of that time are waited for, so that nothing is paid"
                    " twice"
                )
                self._record(Notice(text=text, level="warning"))
        raise AssertionError("the intervals have no end")

    async def results(
        self, batch: RequestBatch, endpoints: BatchEndpoints, *, at_once: bool = False
    ) -> Outcomes:
        """Outcomes of a sent batch, polled until it has ended. `at_once`: without a wait before the
        first poll."""
        age_s = max(0.0, self._policy.now() - batch.planned_at)
        self._record(
            RequestBatchAwaited(
                id=batch.id, model=batch.model, requests=len(batch.request_keys), seconds=age_s
            )
        )
        failing_since: float | None = None
        for interval in self._intervals(at_once=at_once):
            await self._policy.sleep(interval)
            try:
                answers = await endpoints.answers(batch)
            except RequestFailedError as failure:
                is_old = self._policy.now() - batch.planned_at > KEPT_S
                if failure.status == 404 and is_old:
                    return dict.fromkeys(
                        batch.request_keys,
                        self._lost(batch, undone("its batch is gone"), endpoints),
                    )
                if failing_since is None:
                    failing_since = time.monotonic()
                    self._tell(endpoints, failure)
                if self._ends_polls(failure, failing_since):
                    failed = Failed(failure, endpoints.endpoint, batch)
                    return dict.fromkeys(batch.request_keys, failed)
                continue
            failing_since = None
            if answers is not None:
                return self._read(batch, answers, endpoints)
        raise AssertionError("the intervals have no end")

    def _ends_polls(self, failure: RequestFailedError, failing_since: float) -> bool:
        """True where no further poll would help, or they have failed for too long."""
        return not failure.passing or time.monotonic() - failing_since > self._outage_s

    def _read(
        self, batch: RequestBatch, answers: Mapping[str, Answer], endpoints: BatchEndpoints
    ) -> Outcomes:
        outcomes = {
            key: _outcome(answers[name], endpoints) for name, key in batch.custom_ids().items()
        }
        unanswered = tuple(key for key, each in outcomes.items() if isinstance(each, Failed))
        self._record(RequestBatchEnded(id=batch.id, unanswered=unanswered))
        return outcomes

    def _intervals(self, *, at_once: bool) -> Iterator[float]:
        """Growing times between two polls."""
        interval = self._wait_s
        if at_once:
            yield 0.0
        while True:
            yield interval
            interval = min(interval * INTERVAL_GROWTH, MOST_INTERVALS * self._wait_s)

    def _tell(self, endpoints: BatchEndpoints, failure: RequestFailedError) -> None:
        if failure.passing:
            text = f"{endpoints.endpoint.trouble(failure)}, for a batch of requests; tried again"
            self._record(Notice(text=text, level="warning"))


def _outcome(answer: Answer, endpoints: BatchEndpoints) -> Completion | Failed:
    if isinstance(answer, Completion):
        return answer
    return refused() if answer.refusal else Failed(answer, endpoints.requests)
