"""Requests of a run in batches at their provider, at half the price. They are collected until a
batch is worth sending. A batch is recorded before it is sent, and the provider's id of it as soon
as there is one. A process that ends in between leaves a batch whose fate is not known: it is looked
for in the provider's list before any of its requests is made again."""

from __future__ import annotations

import asyncio
import math
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from eureka_agent.batch_records import MOST_REQUESTS, RequestBatch
from eureka_agent.journal import progress
from eureka_agent.journal.entries import Notice, Observer
from eureka_agent.llm.batch_provider import Answer, BatchProvider, batch_provider, undone
from eureka_agent.llm.breaker import RetryPolicy
from eureka_agent.llm.budget import batched_request
from eureka_agent.llm.failures import RequestFailedError, Trouble
from eureka_agent.llm.interface import Completion, CompletionRequest, LanguageModel, Role

ResultT = TypeVar("ResultT")
Outcomes = Mapping[str, Answer]
"""By the requests' keys."""
LIVE_ROLES = frozenset({Role.READER, Role.METRIC, Role.LABELLER})
"""Roles whose reply a person waits for, or is of use while trainings go on: they are asked at
once."""
MOST_WAITS = 8
"""Longest collection of one batch, in waits for a further request."""
INTERVAL_GROWTH = 1.5
MOST_INTERVALS = 20
"""Longest time between two polls, in waits for a further request."""
_NEVER_SENT = (Trouble.UNREACHABLE, Trouble.REDIRECT)
"""Failures of sending after which the provider cannot have the batch."""


class _KeptError(Exception):
    """A failure to ask for the replies of a batch that may have them, and the batch."""


@dataclass
class _Collection:
    """Requests for the next batch of a model."""

    requests: dict[str, CompletionRequest] = field(default_factory=dict)
    added: asyncio.Event = field(default_factory=asyncio.Event)
    outcomes: asyncio.Future[Outcomes] | None = None


class RequestBatches:
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
        request after which a batch is sent, and first time between two polls. `outage_s`: time
        after which a provider that is out is no longer asked for replies; the batch is kept for a
        resumed run."""
        self._record = record
        self._known = dict(known)
        self._collects = collects
        self._wait_s = wait_s
        self._outage_s = outage_s
        self._policy = policy or RetryPolicy()
        self._collections: dict[str, _Collection] = {}
        self._taken_up: dict[str, asyncio.Future[Outcomes]] = {}
        self._tasks: set[asyncio.Future[Any]] = set()

    def takes(self, key: str, request: CompletionRequest) -> bool:
        """True for a request that goes into a batch, or is in one already."""
        return key in self._known or (self._collects and request.role not in LIVE_ROLES)

    async def complete(
        self, key: str, model: LanguageModel, request: CompletionRequest
    ) -> Completion:
        """Return the reply of a batch. Raises RequestFailedError for a request that may go into
        another one, and LanguageModelError for one that may have a reply at the provider."""
        started = time.monotonic()
        try:
            outcome = await self._outcome(key, model, request)
        except _KeptError as kept:
            failure, batch = kept.args
            self._known[key] = batch
            self._taken_up.pop(batch.id, None)
            raise failure.explained() from None
        if isinstance(outcome, RequestFailedError):
            outcome.in_batch = True
            raise outcome
        return outcome.made_in(time.monotonic() - started, batched=True)

    async def close(self) -> None:
        """End all work here. Batches stay at the provider."""
        for task in self._tasks:
            task.cancel()
        if ending := set(self._tasks):
            await asyncio.wait(ending)

    async def _outcome(
        self, key: str, model: LanguageModel, request: CompletionRequest
    ) -> Completion | RequestFailedError:
        known = self._known.pop(key, None)
        if known is not None:
            if known.id not in self._taken_up:
                self._taken_up[known.id] = self._start(self._outcomes(known, batch_provider(model)))
            return (await asyncio.shield(self._taken_up[known.id]))[key]
        collection = self._collections.get(model.name)
        if collection is None or len(collection.requests) >= MOST_REQUESTS:
            collection = self._collections[model.name] = _Collection()
            collection.outcomes = self._start(self._collected(collection, model))
        collection.requests[key] = request
        collection.added.set()
        assert collection.outcomes is not None
        return (await asyncio.shield(collection.outcomes))[key]

    def _start(self, work: Awaitable[ResultT]) -> asyncio.Future[ResultT]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Future[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # the callers have it, or are gone

    async def _collected(self, collection: _Collection, model: LanguageModel) -> Outcomes:
        await self._collect(collection)
        if self._collections.get(model.name) is collection:
            del self._collections[model.name]
        requests = collection.requests
        batch = RequestBatch(
            id=uuid.uuid4().hex,
            model=model.name,
            requests=tuple(batched_request(key, each) for key, each in requests.items()),
            planned_at=self._policy.now(),
        )
        return await self._outcomes(batch, batch_provider(model), requests)

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

    async def _outcomes(
        self,
        batch: RequestBatch,
        at: BatchProvider,
        requests: Mapping[str, CompletionRequest] | None = None,
    ) -> Outcomes:
        """Outcomes of a batch. `requests`: by key; None: of an earlier process, maybe not sent."""
        failure, never_sent = undone("its batch was never sent"), False
        failure.service = at.service
        if requests is not None:
            self._record(progress.RequestBatchPlanned(batch=batch))
            named = {name: requests[key] for name, key in batch.custom_ids().items()}
            try:
                batch = self._sent(batch, at, await at.send(batch, named))
            except RequestFailedError as error:
                failure, status = error, error.status or 0
                is_refused = error.trouble is Trouble.STATUS and status < 500 and status != 408
                never_sent = is_refused or error.trouble in _NEVER_SENT
                self._tell(failure, at)
        if not batch.provider_id:
            found = "" if never_sent else await self._polled(batch, at, at.find, 0.0)
            if not found:
                self._record(progress.RequestBatchEnded(id=batch.id, unanswered=batch.request_keys))
                return dict.fromkeys(batch.request_keys, failure)
            batch = self._sent(batch, at, found)
        awaited = progress.RequestBatchAwaited(
            id=batch.id,
            model=batch.model,
            requests=len(batch.requests),
            seconds=max(0.0, self._policy.now() - batch.planned_at),
        )
        self._record(awaited)
        wait_s = 0.0 if requests is None else self._wait_s
        answers = await self._polled(batch, at, at.answers, wait_s)
        outcomes = {key: answers[name] for name, key in batch.custom_ids().items()}
        unanswered = tuple(key for key in outcomes if not isinstance(outcomes[key], Completion))
        self._record(progress.RequestBatchEnded(id=batch.id, unanswered=unanswered))
        return outcomes

    def _sent(self, batch: RequestBatch, at: BatchProvider, provider_id: str) -> RequestBatch:
        at.model.retries.breaker.reached = True
        self._record(progress.RequestBatchSent(id=batch.id, provider_id=provider_id))
        return batch.model_copy(update={"provider_id": provider_id})

    async def _polled(
        self,
        batch: RequestBatch,
        at: BatchProvider,
        look: Callable[[RequestBatch], Awaitable[ResultT | None]],
        interval: float,
    ) -> ResultT:
        """First result of `look`, at growing intervals. Raises _KeptError where no further look
        would help, or they have failed for too long."""
        failing_since: float | None = None
        told = bool(batch.provider_id)
        while True:
            await self._policy.sleep(interval)
            interval = max(self._wait_s, interval * INTERVAL_GROWTH)
            interval = min(interval, MOST_INTERVALS * self._wait_s)
            try:
                result = await look(batch)
            except RequestFailedError as failure:
                failure.service, now = at.service, self._policy.clock()
                if failing_since is None:
                    failing_since = now
                    self._tell(failure, at)
                if not failure.passing or now - failing_since > self._outage_s:
                    raise _KeptError(failure, batch) from None
                continue
            failing_since = None
            if result is not None:
                return result
            if not told:
                told = True
                text = (
                    f"{batch.model}: it is not known yet if a batch was sent before the run was"
                    " interrupted; batches of that time are waited for, so that nothing is paid"
                    " twice"
                )
                self._record(Notice(text=text, level="warning"))

    def _tell(self, failure: RequestFailedError, at: BatchProvider) -> None:
        failure.service = at.service
        if failure.passing:
            text = f"{failure.line()}, for a batch of requests; tried again"
            self._record(Notice(text=text, level="warning"))
