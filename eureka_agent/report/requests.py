"""Requests to language models in a view: awaited replies, and the account of the others."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from decimal import Decimal

from eureka_agent import wording
from eureka_agent.journal.entries import (
    Asked,
    Observer,
    RequestBatchAwaited,
    RequestBatchEnded,
    RequestEnded,
    RequestStarted,
)
from eureka_agent.llm.interface import CompletionRequest, RequestObserver, Role
from eureka_agent.records import Message
from eureka_agent.report.ledger import Ledger, format_money

_PURPOSES = {
    Role.DESIGNER: "design",
    Role.REVIEWER: "review",
    Role.ANALYST: "analysis",
    Role.READER: "reading of a wish",
    Role.METRIC: "fitness",
    Role.JUDGE: "comparison",
    Role.RANDOMISER: "distributions",
}
_REVISION = "revision"
_PLURALS = {"analysis": "analyses", "fitness": "fitnesses"}


def request_observer(observer: Observer) -> RequestObserver:
    """Observer of a gateway's requests that makes entries of them."""
    numbers = itertools.count()

    def started(model: str, request: CompletionRequest) -> Callable[[Message | None], None]:
        event = RequestStarted(number=next(numbers), model=model, purpose=purpose(request))
        observer(event)
        return lambda reply: observer(RequestEnded(request=event, cost=reply and reply.cost))

    return started


def purpose(request: CompletionRequest) -> str:
    """Expected reply: `design of 2-03`, `revision 2-03-r1`, `review of 2-03`, `fitness`."""
    if request.role is Role.DESIGNER and "-r" in request.attempt:
        return f"{_REVISION} {request.attempt}"
    return _PURPOSES[request.role] + (f" of {request.attempt}" if request.attempt else "")


def asked_before(messages: Sequence[Message]) -> Asked:
    """Account at the start of a process."""
    total = Ledger(tuple(messages)).total
    return Asked(
        requests=total.requests,
        uncounted=total.uncounted,
        tokens=total.prompt_tokens + total.completion_tokens,
        money=total.money,
    )


class Requests:
    """Requests after the entries so far."""

    def __init__(self) -> None:
        self._pending: dict[int, tuple[RequestStarted, float]] = {}
        """Entries with their times on the view's clock."""
        self._batches: dict[str, tuple[RequestBatchAwaited, float]] = {}
        """Batches with the times of their sending on that clock."""
        self._replies = self._tokens = self._uncounted = self._failures = 0
        self._money: Decimal | None = Decimal(0)

    def take_over(self, asked: Asked) -> None:
        """Start with the account of earlier processes."""
        self._pending.clear()
        self._batches.clear()
        self._failures = 0
        self._replies, self._uncounted = asked.requests, asked.uncounted
        self._tokens, self._money = asked.tokens, asked.money

    def start(self, event: RequestStarted, now: float) -> None:
        """Note a request that was sent at `now`."""
        self._pending[event.number] = (event, now)

    def end(self, event: RequestEnded) -> None:
        """Count the reply or the failure."""
        self._pending.pop(event.request.number, None)
        cost = event.cost
        self._failures += cost is None
        if cost is not None:
            self._replies += 1
            self._tokens += (cost.prompt_tokens or 0) + (cost.completion_tokens or 0)
            self._uncounted += cost.prompt_tokens is None or cost.completion_tokens is None
            if self._money is not None:
                self._money = None if cost.money is None else self._money + cost.money

    def start_batch(self, event: RequestBatchAwaited, now: float) -> None:
        """Note a batch that is awaited."""
        self._batches[event.id] = (event, now - event.seconds)

    def end_batch(self, event: RequestBatchEnded) -> None:
        """Forget a batch."""
        self._batches.pop(event.id, None)

    @property
    def pending(self) -> int:
        """Number of awaited replies."""
        return len(self._pending)

    @property
    def repeats_first_failure(self) -> bool:
        """True from the second failure on, where there was no reply: the first was reported."""
        return self._failures > 1 and not self._replies

    def account(self) -> str:
        """`12 replies · 45.2k tokens · $0.1234`; empty before the first request."""
        if not self._replies and not self._pending:
            return ""
        parts = [wording.plural(self._replies, "reply", "replies")]
        if self._replies:
            uncounted = f" and {self._uncounted} uncounted" if self._uncounted else ""
            money = "cost unknown" if self._money is None else format_money(self._money)
            parts += [f"{wording.count(self._tokens)} tokens{uncounted}", money]
        return " · ".join(parts)

    def awaited(self, now: float, width: int) -> str:
        """`2 replies awaited for 0:42: design of 2-03, 2-04`, or numbers for a small `width`; for
        batches `7 requests wait in a batch of openai/gpt-5, since 12 min`."""
        if self._batches:
            return self._in_batches(now)
        if not self._pending:
            return ""
        longest = wording.clock_time(max(now - since for _, since in self._pending.values()))
        head = f"{wording.plural(self.pending, 'reply', 'replies')} awaited for {longest}"
        groups: dict[str, list[str]] = {}
        for request, _ in self._pending.values():
            what, _, attempt = request.purpose.replace(" of ", " ").partition(" ")
            groups.setdefault(what, []).append(attempt)
        named = "; ".join(_named(what, attempts) for what, attempts in groups.items())
        if len(head) + 2 + len(named) <= width:
            return f"{head}: {named}"
        return f"{head}: " + ", ".join(
            wording.plural(len(attempts), what, _PLURALS.get(what, ""))
            for what, attempts in groups.items()
        )

    def _in_batches(self, now: float) -> str:
        parts = []
        for model in {batch.model: None for batch, _ in self._batches.values()}:
            theirs = [each for each in self._batches.values() if each[0].model == model]
            requests = sum(batch.requests for batch, _ in theirs)
            wait = "waits" if requests == 1 else "wait"
            where = "a batch" if len(theirs) == 1 else f"{len(theirs)} batches"
            since = wording.rough_duration(now - min(since for _, since in theirs))
            parts.append(
                f"{wording.plural(requests, 'request')} {wait} in {where} of {model}, since {since}"
            )
        others = self.pending - sum(batch.requests for batch, _ in self._batches.values())
        if others > 0:
            parts.append(f"{wording.plural(others, 'other reply', 'other replies')} awaited")
        return "; ".join(parts)


def _named(what: str, attempts: list[str]) -> str:
    """`design of 2-03, 2-04`."""
    names = ", ".join(filter(None, attempts))
    between = " " if what == _REVISION else " of "
    return f"{what}{between}{names}" if names else what
