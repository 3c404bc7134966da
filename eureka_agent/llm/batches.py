"""Requests of a run in batches at their provider, at half the price.

They are collected until a batch is worth sending. A batch is recorded before it is sent, and the
provider's id of it as soon as there is one. A process that ends in between leaves a batch whose
fate is not known: it is looked for in the provider's list before any of its requests is made again.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from eureka_agent.batch_records import MOST_REQUESTS, RequestBatch
from eureka_agent.journal.entries import Notice, Observer
from eureka_agent.journal.progress import (
    RequestBatchAwaited,
    RequestBatchEnded,
    RequestBatchPlanned,
    RequestBatchSent,
)
from eureka_agent.llm.batch_providers import Answer, BatchProvider, batch_provider, undone
from eureka_agent.llm.breaker import RetryPolicy
from eureka_agent.llm.budget import batched_request
from eureka_agent.llm.failures import RequestFailedError, Trouble
from eureka_agent.llm.interface import Completion, CompletionRequest, LanguageModel, Role
from eureka_agent.llm.replies import refused

ResultT = TypeVar("ResultT")
Outcomes = Mapping[str, Answer]
"""Replies and failures of a batch's requests by their keys."""
LIVE_ROLES = frozenset({Role.READER, Role.METRIC})
"""Roles whose reply a person waits for: they are asked at once."""
MOST_WAITS = 8
"""Longest collection of one batch, in waits for a further request."""
INTERVAL_GROWTH = 1.5
MOST_INTERVALS = 20
"""Longest time between two polls, in waits for a further request."""
KEPT_S = 28 * 86_400.0
"""Time for which both providers keep results, with a day to spare."""
_NEVER_SENT = (Trouble.UNREACHABLE, Trouble.REDIRECT)
"""Failures of sending after which the provider cannot have the batch."""


class _KeptError(Exception):
    """A failure to ask for the replies of a batch that may have them, and the batch."""


@dataclass
class _Collection:
    """Requests for the next batch of a model."""

    requests: dict[str, CompletionRequest] = field(default_factory=dict)
    """By their keys."""
    added: asyncio.Event = field(default_factory=asyncio.Event)
    outcomes: asyncio.Future[Outcomes] | None = None


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
        request after which a batch is sent, and first time between two polls. `outage_s`: time
        after which a provider that is out is no longer asked for replies; the batch is kept for a
        resumed run."""
        self._record = record
        self._known = dict(known)
        self._collects = collects
        self._wait_s = wait_s
        self._outage_s = outage_s
        self._policy = policy or RetryPolicy()
        self._reached = False
        """True once a provider has accepted a batch."""
        self._collections: dict[str, _Collection] = {}
        """Not sent yet, by model."""
        self._taken_up: dict[str, asyncio.Future[Outcomes]] = {}
        """Outcomes of known batches by their ids."""
        self._tasks: set[asyncio.Future[Any]] = set()

    def takes(self, key: str, request: CompletionRequest) -> bool:
        """True for a request that goes into a batch, or is in one already."""
        return key in self._known or (self._collects and request.role not in LIVE_ROLES)

    async def complete(
        self, key: str, model: LanguageModel, request: CompletionRequest
    ) -> Completion:
        """Return the reply of a batch; requests without one go into the next batch, as often as
        the retry policy allows. Raises LanguageModelError at the end."""
        started, policy = time.monotonic(), self._policy
        for tries in itertools.count(1):
            try:
                outcome = await self._outcome(key, model, request)
            except _KeptError as kept:  # it is not asked for again beside that batch
                failure, batch = kept.args
                self._known[key] = batch
                self._taken_up.pop(batch.id, None)
                raise failure.explained(tries) from None
            if isinstance(outcome, Completion):
                return outcome.made_in(time.monotonic() - started, batched=True)
            first_contact = outcome.trouble is Trouble.UNREACHABLE and not self._reached
            most = policy.first_contact_tries if first_contact else policy.tries
            if not outcome.passing or tries >= most:
                raise outcome.explained(tries)
            if not self._collects:
                break
            if outcome.trouble is not Trouble.UNDONE:
                mean = min(policy.first_wait_s * 2 ** (tries - 1), policy.longest_wait_s)
                asked = min(outcome.asked_wait_s(policy.now()) or 0.0, policy.longest_asked_wait_s)
                await self._start(policy.sleep(max(mean, asked)))
        return await model.complete(request)

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
                self._taken_up[known.id] = self._start(self._take_up(known, batch_provider(model)))
            return (await asyncio.shield(self._taken_up[known.id]))[key]
        collection = self._collections.get(model.name)
        if collection is None or len(collection.requests) >= MOST_REQUESTS:
            collection = self._collections[model.name] = _Collection()
            collection.outcomes = self._start(self._carry_out(collection, model))
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

    async def _carry_out(self, collection: _Collection, model: LanguageModel) -> Outcomes:
        await self._collect(collection)
        if self._collections.get(model.name) is collection:
            del self._collections[model.name]
        provider = batch_provider(model)
        batch = RequestBatch(
            id=uuid.uuid4().hex,
            model=model.name,
            requests=tuple(
                batched_request(key, request) for key, request in collection.requests.items()
            ),
            planned_at=self._policy.now(),
        )
        sent = await self._send(batch, collection.requests, provider)
        if isinstance(sent, RequestFailedError):
            return dict.fromkeys(collection.requests, sent)
        return await self._results(sent, provider)

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

    async def _send(
        self, batch: RequestBatch, requests: Mapping[str, CompletionRequest], at: BatchProvider
    ) -> RequestBatch | RequestFailedError:
        """Send requests by key. Returns the batch with the provider's id."""
        self._record(RequestBatchPlanned(batch=batch))
        named = {name: requests[key] for name, key in batch.custom_ids().items()}
        try:
            return self._sent(batch, await at.send(batch, named))
        except RequestFailedError as error:
            failure = error
        failure.service = at.service
        self._tell(failure)
        status = failure.status or 0
        is_refused = failure.trouble is Trouble.STATUS and status < 500 and status != 408
        never_sent = is_refused or failure.trouble in _NEVER_SENT
        found = "" if never_sent else await self._found(batch, at)
        return self._sent(batch, found) if found else self._lost(batch, failure, at)

    async def _take_up(self, batch: RequestBatch, at: BatchProvider) -> Outcomes:
        """Outcomes of a batch of an earlier process, which may not have been sent."""
        if not batch.provider_id:
            found = await self._found(batch, at)
            if not found:
                lost = self._lost(batch, undone("its batch was never sent"), at)
                return dict.fromkeys(batch.request_keys, lost)
            batch = self._sent(batch, found)
        return await self._results(batch, at, at_once=True)

    def _sent(self, batch: RequestBatch, provider_id: str) -> RequestBatch:
        self._record(RequestBatchSent(id=batch.id, provider_id=provider_id))
        self._reached = True
        return batch.model_copy(update={"provider_id": provider_id})

    def _lost(
        self, batch: RequestBatch, failure: RequestFailedError, at: BatchProvider
    ) -> RequestFailedError:
        """Record a batch that the provider does not have."""
        self._record(RequestBatchEnded(id=batch.id, unanswered=batch.request_keys))
        failure.service = at.service
        return failure

    async def _found(self, batch: RequestBatch, at: BatchProvider) -> str:
        """The provider's id of a batch, by its list; empty where it is not there."""
        uncertain = (
            f"{batch.model}: it is not known yet if a batch was sent before the run was"
            " interrupted; batches of that time are waited for, so that nothing is paid twice"
        )
        return await self._polled(batch, at, lambda: at.find(batch), 0.0, uncertain)

    async def _results(
        self, batch: RequestBatch, at: BatchProvider, *, at_once: bool = False
    ) -> Outcomes:
        """Outcomes of a sent batch, polled until it has ended. `at_once`: without a wait before the
        first poll."""
        age_s, count = max(0.0, self._policy.now() - batch.planned_at), len(batch.requests)
        awaited = RequestBatchAwaited(id=batch.id, model=batch.model, requests=count, seconds=age_s)
        self._record(awaited)

        async def look() -> dict[str, Answer] | None:
            try:
                return await at.answers(batch)
            except RequestFailedError as failure:
                if failure.status == 404 and self._policy.now() - batch.planned_at > KEPT_S:
                    return dict.fromkeys(batch.custom_ids(), undone("its batch is gone"))
                raise

        answers = await self._polled(batch, at, look, 0.0 if at_once else self._wait_s)
        outcomes: dict[str, Answer] = {}
        for name, key in batch.custom_ids().items():
            answer = outcomes[key] = answers[name]
            if isinstance(answer, RequestFailedError):
                answer.service = at.model.service
                outcomes[key] = refused() if answer.refusal else answer
        unanswered = tuple(key for key in outcomes if not isinstance(outcomes[key], Completion))
        self._record(RequestBatchEnded(id=batch.id, unanswered=unanswered))
        return outcomes

    async def _polled(
        self,
        batch: RequestBatch,
        at: BatchProvider,
        look: Callable[[], Awaitable[ResultT | None]],
        interval: float,
        uncertain: str = "",
    ) -> ResultT:
        """First result of `look`, at growing intervals. `uncertain` is told once while there is
        none. Raises _KeptError where no further poll would help, or they have failed for too
        long."""
        failing_since: float | None = None
        while True:
            await self._policy.sleep(interval)
            interval = max(self._wait_s, interval * INTERVAL_GROWTH)
            interval = min(interval, MOST_INTERVALS * self._wait_s)
            try:
                result = await look()
            except RequestFailedError as failure:
                failure.service = at.service
                now = self._policy.clock()
                if failing_since is None:
                    failing_since = now
                    self._tell(failure)
                if not failure.passing or now - failing_since > self._outage_s:
                    raise _KeptError(failure, batch) from None
                continue
            failing_since = None
            if result is not None:
                return result
            if uncertain:
                self._record(Notice(text=uncertain, level="warning"))
                uncertain = ""

    def _tell(self, failure: RequestFailedError) -> None:
        if failure.passing:
            text = f"{failure.line()}, for a batch of requests; tried again"
            self._record(Notice(text=text, level="warning"))
