"""The gateway that all of a run's requests to models pass.

No request is made twice, no reply is used before it is stored, nothing is paid beyond the budget.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

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
"""Longest wait, when a run is stopped, for replies that are paid for."""


def _unobserved(model: str, request: CompletionRequest) -> Callable[[Message | None], None]:
    """Nobody is told."""
    return lambda message: None


class Gateway:
    """Hands requests on to models, a bounded number at a time."""

    def __init__(
        self,
        store: MessageStore,
        budget: Budget,
        concurrency: int,
        on_request: RequestObserver = _unobserved,
    ) -> None:
        """`store` is asked before any model is. `concurrency`: requests in flight at a time."""
        self._store = store
        self._budget = budget
        self._on_request = on_request
        self._places = asyncio.Semaphore(concurrency)
        self._locks: dict[str, asyncio.Lock] = {}
        self._waiting: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[Message]] = set()
        self._pauses = Pauses()

    async def ask(self, model: LanguageModel, request: CompletionRequest) -> Message:
        """The stored reply to a request; one that was made before, in this process or an earlier
        one, is not made again.

        Raises BudgetSpentError where the budget has no room for it, LanguageModelError where there
        is no reply to be had.
        """
        key = message_key(model.name, request)
        async with self._alone(key):
            known = self._store.find(key)
            if known is not None:
                return known
            await self._places.acquire()
            try:
                reservation = await self._budget.reserve(model.name, request)
            except BaseException:
                self._places.release()
                raise
            # from here on it is paid for: its reply is stored even if whoever asks goes away
            task = asyncio.create_task(self._make(model, request, key, reservation))
            self._tasks.add(task)
            task.add_done_callback(self._ended)
            return await asyncio.shield(task)

    @property
    def under_way(self) -> int:
        """Requests that have been sent and not been answered; not those that failed and pause
        before their next try."""
        return len(self._tasks - self._pauses.tasks)

    async def finish(self, timeout_s: float = PATIENCE_S) -> None:
        """Wait for the replies to what has been sent, so that they are stored; give up those that
        take longer. No request is tried again."""
        self._pauses.end()
        pending = set(self._tasks)
        try:
            if pending:
                _, pending = await asyncio.wait(pending, timeout=timeout_s)
        finally:
            for task in pending:
                task.cancel()

    async def _make(
        self, model: LanguageModel, request: CompletionRequest, key: str, reservation: Reservation
    ) -> Message:
        message: Message | None = None
        ended = self._on_request(model.name, request)
        PAUSES.set(self._pauses)  # in this task's own context
        try:
            completion = await model.complete(request)
            message = self._message(model.name, request, completion)
            self._store.put(key, message)
            await self._budget.settle(reservation, message.cost, message.request, message.reply)
        finally:
            self._places.release()
            await self._budget.release(reservation)
            ended(message)
        return message

    def _ended(self, task: asyncio.Task[Message]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # it was told to whoever asked, or nobody asks any more

    @asynccontextmanager
    async def _alone(self, key: str) -> AsyncIterator[None]:
        """Two who ask the same at the same time get one reply."""
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
    """Without keys, and without half characters, which no file takes."""
    return redact(text).encode("utf-8", "replace").decode()
