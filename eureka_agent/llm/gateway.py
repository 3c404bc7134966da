"""The gateway of a run's requests: made once, within the budget, replies stored before use."""

from __future__ import annotations

import asyncio
import itertools
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from eureka_agent.journal.entries import Observer
from eureka_agent.journal.progress import RequestEnded, RequestStarted
from eureka_agent.llm.access import redact
from eureka_agent.llm.batches import RequestBatches
from eureka_agent.llm.budget import Budget, Reservation
from eureka_agent.llm.interface import (
    ChatMessage,
    Completion,
    CompletionRequest,
    LanguageModel,
    MessageStore,
    Role,
    ToolSpec,
    message_key,
    transcript,
)
from eureka_agent.records import Message

PATIENCE_S = 120.0
"""Timeout for replies that are paid for, when a run is stopped."""
_PURPOSES = {
    Role.DESIGNER: "design",
    Role.REVIEWER: "review",
    Role.ANALYST: "analysis",
    Role.READER: "reading of a wish",
    Role.METRIC: "fitness",
    Role.JUDGE: "comparison",
    Role.RANDOMISER: "randomisation",
    Role.LABELLER: "labelling",
}
_NUMBERS = itertools.count()


def purpose(request: CompletionRequest) -> str:
    """Expected reply: `design of 2-03`, `revision 2-03-r1`, `review of 2-03`, `fitness`."""
    if request.role is Role.DESIGNER and "-r" in request.attempt:
        return f"revision {request.attempt}"
    return _PURPOSES[request.role] + (f" of {request.attempt}" if request.attempt else "")


class _RequestWatch:
    """Tells an observer of a request once, however often it is tried."""

    def __init__(self, observer: Observer, model: str, purpose: str) -> None:
        self._observer = observer
        self._event = RequestStarted(number=next(_NUMBERS), model=model, purpose=purpose)
        self._told = False
        self._open = 1
        """The caller and tries that have not ended."""

    def sent(self) -> None:
        self._open += 1
        if not self._told:
            self._told = True
            self._observer(self._event)

    def left(self, message: Message | None = None) -> None:
        """Note the end of a try, or that no further one follows."""
        self._open -= 1
        if self._told and (message is not None or not self._open):
            self._told = False
            self._observer(RequestEnded(request=self._event, cost=message and message.cost))


class Gateway:
    """Passes requests on to models, a bounded number at a time."""

    def __init__(
        self,
        store: MessageStore,
        budget: Budget,
        concurrency: int,
        observer: Observer = lambda entry: None,
        before_request: Callable[[], Awaitable[object]] | None = None,
        batches: RequestBatches | None = None,
    ) -> None:
        """`store` is looked up before a model is asked. `concurrency`: most requests in flight;
        those in `batches` do not count, since they wait at the provider. `observer` is told of
        each request's begin and end. `before_request` is awaited before a request is made."""
        self._before_request = before_request
        self._store = store
        self._budget = budget
        self._observer = observer
        self._batches = batches
        self._places = asyncio.Semaphore(concurrency)
        self._alone: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """By keys: equal requests at the same time get one reply."""
        self._tries: dict[str, asyncio.Task[Message]] = {}
        """Tries in flight by keys."""
        self._in_batches: set[str] = set()
        self._stop = asyncio.Event()

    def knows(self, model: LanguageModel, request: CompletionRequest) -> bool:
        """True where a reply is stored, so that asking costs nothing."""
        return self._store.find(message_key(model.name, request)) is not None

    async def ask(self, model: LanguageModel, request: CompletionRequest) -> Message:
        """Return a stored reply, made at most once. Raises BudgetSpentError, LanguageModelError."""
        key = message_key(model.name, request)
        async with self._alone[key]:
            if key in self._tries:  # its caller went away
                await asyncio.wait({self._tries[key]})
            known = self._store.find(key)
            if known is not None:
                return known
            watch = _RequestWatch(self._observer, model.name, purpose(request))
            make = partial(self._try, model, request, key, watch)
            try:
                if model.retries is None:
                    return await make()
                return await model.retries.patiently(make, self._stop)
            finally:
                watch.left()

    @property
    def under_way(self) -> int:
        """Requests without an answer, without those in batches or between two tries."""
        return len(self._tries) - len(self._in_batches)

    async def finish(self, timeout_s: float = PATIENCE_S) -> None:
        """Wait for replies in flight, which are stored; give up after the timeout. Batches stay at
        the provider, where a resumed run finds them."""
        self._stop.set()
        if self._batches is not None:
            await self._batches.close()
        pending = set(self._tries.values())
        try:
            if pending:
                _, pending = await asyncio.wait(pending, timeout=timeout_s)
        finally:
            for task in pending:
                task.cancel()

    async def _try(
        self, model: LanguageModel, request: CompletionRequest, key: str, watch: _RequestWatch
    ) -> Message:
        if self._before_request is not None:
            await self._before_request()
        batches = self._batches
        if batches is not None and not batches.takes(key, request):
            batches = None
        # what waits at the provider takes no place
        place = self._places if batches is None else asyncio.Semaphore()
        await place.acquire()
        try:
            reservation = await self._budget.reserve(
                model.name, request, key, batched=batches is not None
            )
        except BaseException:
            place.release()
            raise
        # from here on it is paid for: its reply is stored even if the caller is cancelled
        task = asyncio.create_task(self._make(model, request, key, reservation, watch, batches))
        self._tries[key] = task
        if batches is not None:
            self._in_batches.add(key)
        task.add_done_callback(partial(self._ended, key, place))
        return await asyncio.shield(task)

    async def _make(
        self,
        model: LanguageModel,
        request: CompletionRequest,
        key: str,
        reservation: Reservation,
        watch: _RequestWatch,
        batches: RequestBatches | None,
    ) -> Message:
        message: Message | None = None
        watch.sent()
        try:
            if batches is not None:
                completion = await batches.complete(key, model, request)
            else:
                with nullcontext() if model.retries is None else model.retries.trying():
                    completion = await model.complete(request)
            message = self._message(model.name, request, completion)
            self._store.put(key, message)
            await self._budget.settle(reservation, message)
        finally:
            await self._budget.release(reservation)
            watch.left(message)
        return message

    def _ended(self, key: str, place: asyncio.Semaphore, task: asyncio.Task[Message]) -> None:
        place.release()
        del self._tries[key]
        self._in_batches.discard(key)
        if not task.cancelled():
            task.exception()  # the caller has it, or is gone

    def _message(self, model: str, request: CompletionRequest, completion: Completion) -> Message:
        money = self._budget.money(model, completion.cost)
        return Message(
            role=request.role.value,
            attempt=request.attempt,
            model=model,
            request=_storable(transcript(request.messages)),
            reply=_storable(completion.text),
            reasoning=_storable(completion.reasoning),
            calls=tuple(
                each.model_copy(update={"arguments": _storable(each.arguments)})
                for each in completion.calls
            ),
            finish_reason=completion.finish_reason.value,
            cost=completion.cost.model_copy(update={"money": money}),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
        )


def _storable(text: str) -> str:
    """Remove keys and surrogates, which no file can store."""
    return redact(text).encode("utf-8", "replace").decode()


@dataclass(frozen=True)
class ConfiguredModel:
    """A model with the gateway of its requests, a run's temperature and its bound on replies."""

    model: LanguageModel
    gateway: Gateway
    temperature: float | None = None
    """None: the model's own."""
    reply_tokens: int | None = None
    """None: the model's own."""

    @property
    def name(self) -> str:
        return self.model.name

    async def ask(
        self,
        role: Role,
        *messages: ChatMessage,
        sample: int = 0,
        attempt: str = "",
        tools: tuple[ToolSpec, ...] = (),
    ) -> Message:
        """Return the stored reply to a conversation. `sample`: number of the reply to one prompt;
        `attempt`: its attempt's id; `tools`: may be called. Raises BudgetSpentError,
        LanguageModelError."""
        request = self.request(role, *messages, sample=sample, attempt=attempt, tools=tools)
        return await self.gateway.ask(self.model, request)

    def request(self, role: Role, *messages: ChatMessage, **named: Any) -> CompletionRequest:
        """The request of `ask`."""
        return CompletionRequest(
            messages=messages,
            temperature=self.temperature,
            max_tokens=self.reply_tokens,
            role=role,
            **named,
        )
