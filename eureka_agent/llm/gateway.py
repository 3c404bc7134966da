"""The gateway of a run's requests: made once, within the budget, replies stored before use."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from eureka_agent.llm.batches.collector import Batches
from eureka_agent.llm.budget import Budget, Reservation
from eureka_agent.llm.interface import (
    Completion,
    CompletionRequest,
    LanguageModel,
    MessageStore,
    RequestObserver,
    message_key,
    transcript,
)
from eureka_agent.llm.pauses import PAUSES, Pauses
from eureka_agent.llm.secrets import redact
from eureka_agent.records import Cost, Message

PATIENCE_S = 120.0
"""Timeout for replies that are paid for, when a run is stopped."""


def _unobserved(model: str, request: CompletionRequest) -> Callable[[Message | None], None]:
    return lambda message: None


class Gateway:
    """Passes requests on to models, a bounded number at a time."""

    def __init__(
        self,
        store: MessageStore,
        budget: Budget,
        concurrency: int,
        on_request: RequestObserver = _unobserved,
        batches: Batches | None = None,
    ) -> None:
        """`store` is looked up before a model is asked. `concurrency`: most requests in flight;
        those in `batches` do not count, since they wait at the provider."""
        self._store = store
        self._budget = budget
        self._on_request = on_request
        self._batches = batches
        self._places = asyncio.Semaphore(concurrency)
        self._locks: dict[str, asyncio.Lock] = {}
        self._waiting: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[Message]] = set()
        self._pauses = Pauses()

    async def ask(self, model: LanguageModel, request: CompletionRequest) -> Message:
        """Return a stored reply, made at most once. Raises BudgetSpentError, LanguageModelError."""
        key = message_key(model.name, request)
        async with self._alone(key):
            known = self._store.find(key)
            if known is not None:
                return known
            batches = self._batches
            if batches is not None and not batches.takes(key, request):
                batches = None
            if batches is None:
                await self._places.acquire()
            try:
                reservation = await self._budget.reserve(
                    model.name, request, key, batched=batches is not None
                )
            except BaseException:
                if batches is None:
                    self._places.release()
                raise
            # from here on it is paid for: its reply is stored even if the caller is cancelled
            task = asyncio.create_task(self._make(model, request, key, reservation, batches))
            self._tasks.add(task)
            task.add_done_callback(self._ended)
            return await asyncio.shield(task)

    @property
    def under_way(self) -> int:
        """Number of requests without an answer, without those that pause before a retry."""
        return len(self._tasks - self._pauses.tasks)

    async def finish(self, timeout_s: float = PATIENCE_S) -> None:
        """Wait for replies in flight, which are stored; give up after the timeout. Batches stay at
        the provider, where a resumed run finds them."""
        self._pauses.end()
        if self._batches is not None:
            await self._batches.close()
        pending = set(self._tasks)
        try:
            if pending:
                _, pending = await asyncio.wait(pending, timeout=timeout_s)
        finally:
            for task in pending:
                task.cancel()

    async def _make(
        self,
        model: LanguageModel,
        request: CompletionRequest,
        key: str,
        reservation: Reservation,
        batches: Batches | None,
    ) -> Message:
        message: Message | None = None
        ended = self._on_request(model.name, request)
        PAUSES.set(self._pauses)  # in this task's own context
        try:
            if batches is None:
                completion = await model.complete(request)
            else:
                completion = await batches.complete(key, model, request)
            message = self._message(model.name, request, completion)
            self._store.put(key, message)
            await self._budget.settle(reservation, message.cost, message.request, message.reply)
        finally:
            if batches is None:
                self._places.release()
            await self._budget.release(reservation)
            ended(message)
        return message

    def _ended(self, task: asyncio.Task[Message]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # the caller has it, or is gone

    @asynccontextmanager
    async def _alone(self, key: str) -> AsyncIterator[None]:
        """Give concurrent equal requests one reply."""
        lock = self._locks.setdefault(key, asyncio.Lock())
        self._waiting[key] += 1
        try:
            async with lock:
                yield
        finally:
            self._waiting[key] -= 1
            if not self._waiting[key]:
                del self._waiting[key], self._locks[key]

    def _message(self, model: str, request: CompletionRequest, completion: Completion) -> Message:
        cost = Cost(
            prompt_tokens=completion.prompt_tokens,
            completion_tokens=completion.completion_tokens,
            cached_tokens=completion.cached_tokens,
            cache_write_tokens=completion.cache_write_tokens,
            batched=completion.batched,
            seconds=completion.seconds,
        )
        return Message(
            role=request.role.value,
            attempt=request.attempt,
            model=model,
            request=_storable(transcript(request.messages)),
            reply=_storable(completion.text),
            finish_reason=completion.finish_reason.value,
            cost=cost.model_copy(update={"money": self._budget.money(model, cost)}),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
        )


def _storable(text: str) -> str:
    """Remove keys and surrogates, which no file can store."""
    return redact(text).encode("utf-8", "replace").decode()
