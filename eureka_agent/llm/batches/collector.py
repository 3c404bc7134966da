"""Requests of a run that go to their provider in batches, collected until one is worth sending."""

from __future__ import annotations

import asyncio
import itertools
import math
import time
import uuid
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from eureka_agent.batch_records import MOST_REQUESTS, RequestBatch
from eureka_agent.journal.entries import Observer
from eureka_agent.llm.access import RetryPolicy
from eureka_agent.llm.batches.carrier import Carrier, Failed, Outcomes
from eureka_agent.llm.budget import batched_request
from eureka_agent.llm.failures import RequestFailedError, Trouble
from eureka_agent.llm.interface import Completion, CompletionRequest, LanguageModel, Role
from eureka_agent.llm.pauses import PAUSES, Pauses
from eureka_agent.llm.registry import batch_endpoints

LIVE_ROLES = frozenset({Role.READER, Role.METRIC})
"""Roles whose reply a person waits for: they are asked at once."""
MOST_WAITS = 8
"""Longest collection of one batch, in waits for a further request."""
CLOSING_S = 10.0
"""Timeout for batches that are being sent when a run is stopped."""


@dataclass
class _Collection:
    """Requests for the next batch of a model."""

    requests: dict[str, CompletionRequest] = field(default_factory=dict)
    """By their keys."""
    added: asyncio.Event = field(default_factory=asyncio.Event)
    outcomes: asyncio.Task[Outcomes] | None = None


class Batches:
    """Batches of one run's requests."""

    def __init__(
        self,
        record: Observer,
        known: Mapping[str, RequestBatch],
        *,
        collects: bool,
        wait_s: float,
        outage_s: float = math.inf,
        policy: RetryPolicy | None = None,
    ) -> None:
        """`record` stores entries. `known`: batches of earlier processes by requests' keys.
        `collects`: False takes replies from known batches alone. `wait_s`: time without a further
        request after which a batch is sent. `outage_s`: time after which a provider that is
        out is no longer asked for replies; the batch is kept for a resumed run."""
        self._known = dict(known)
        self._collects = collects
        self._wait_s = wait_s
        self._policy = policy or RetryPolicy()
        self._collections: dict[str, _Collection] = {}
        """Not sent yet, by model."""
        self._taken_up: dict[str, asyncio.Task[Outcomes]] = {}
        """Outcomes of known batches by their ids."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._sending: set[asyncio.Task[Any]] = set()
        self._carrier = Carrier(record, wait_s, outage_s, self._policy)

    def takes(self, key: str, request: CompletionRequest) -> bool:
        """True for a request that goes into a batch, or is in one already."""
        return key in self._known or (self._collects and request.role not in LIVE_ROLES)

    async def complete(
        self, key: str, model: LanguageModel, request: CompletionRequest
    ) -> Completion:
        """Return the reply of a batch; requests without one go into the next batch, as often as
        the retry policy allows. Raises LanguageModelError at the end."""
        started = time.monotonic()
        pauses = PAUSES.get(None) or Pauses()
        for tries in itertools.count(1):
            outcome = await pauses.during(lambda: self._outcome(key, model, request))
            if isinstance(outcome, Completion):
                return replace(outcome, batched=True, seconds=time.monotonic() - started)
            failure = outcome.failure
            first_contact = failure.trouble is Trouble.UNREACHABLE and not self._carrier.reached
            most = self._policy.first_contact_tries if first_contact else self._policy.tries
            if outcome.batch is not None:  # it is not asked for again beside that batch
                self._known[key] = outcome.batch
                self._taken_up.pop(outcome.batch.id, None)
            if outcome.batch is not None or not failure.passing or tries >= most:
                raise outcome.service.explain(failure, tries, None)
            if not self._collects:
                break
            if failure.trouble is not Trouble.UNDONE:
                await pauses.sleep(self._pause_s(failure, tries), self._policy.sleep)
        return await model.complete(request)

    async def close(self) -> None:
        """End all work here, after a moment for batches that are being sent. Batches stay at the
        provider."""
        for task in self._tasks:
            task.cancel()
        late = set(self._sending)
        if late:
            _, late = await asyncio.wait(late, timeout=CLOSING_S)
        for task in late:
            task.cancel()
        if ending := self._tasks | late:
            await asyncio.wait(ending)

    def _pause_s(self, failure: RequestFailedError, tries: int) -> float:
        policy = self._policy
        mean = min(policy.first_wait_s * 2 ** (tries - 1), policy.longest_wait_s)
        asked = failure.asked_wait_s(policy.now()) or 0.0
        return max(mean, min(asked, policy.longest_asked_wait_s))

    async def _outcome(
        self, key: str, model: LanguageModel, request: CompletionRequest
    ) -> Completion | Failed:
        known = self._known.pop(key, None)
        if known is not None:
            if known.id not in self._taken_up:
                self._taken_up[known.id] = self._start(
                    self._carrier.take_up(known, batch_endpoints(model))
                )
            return (await asyncio.shield(self._taken_up[known.id]))[key]
        collection = self._collections.get(model.name)
        if collection is None or len(collection.requests) >= MOST_REQUESTS:
            collection = self._collections[model.name] = _Collection()
            collection.outcomes = self._start(self._carry_out(collection, model))
        collection.requests[key] = request
        collection.added.set()
        assert collection.outcomes is not None
        return (await asyncio.shield(collection.outcomes))[key]

    def _start(self, work: Coroutine[Any, Any, Outcomes]) -> asyncio.Task[Outcomes]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        self._sending.discard(task)
        if not task.cancelled():
            task.exception()  # the callers have it, or are gone

    async def _carry_out(self, collection: _Collection, model: LanguageModel) -> Outcomes:
        await self._collect(collection)
        if self._collections.get(model.name) is collection:
            del self._collections[model.name]
        endpoints = batch_endpoints(model)
        batch = RequestBatch(
            id=uuid.uuid4().hex,
            model=model.name,
            requests=tuple(
                batched_request(key, request) for key, request in collection.requests.items()
            ),
            planned_at=self._policy.now(),
        )
        # a stopped run waits a moment for this task, and cancels the one that it is awaited in
        sending = asyncio.create_task(self._carrier.send(batch, collection.requests, endpoints))
        self._sending.add(sending)
        sending.add_done_callback(self._ended)
        sent = await asyncio.shield(sending)
        if isinstance(sent, Failed):
            return dict.fromkeys(collection.requests, sent)
        return await self._carrier.results(sent, endpoints)

    async def _collect(self, collection: _Collection) -> None:
        """Wait until a batch is full, or no request was added for a while."""
        latest = time.monotonic() + MOST_WAITS * self._wait_s
        while len(collection.requests) < MOST_REQUESTS and time.monotonic() < latest:
            collection.added.clear()
            try:
                async with asyncio.timeout(self._wait_s):
                    await collection.added.wait()
            except TimeoutError:
                return
