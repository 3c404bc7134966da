"""Budget for models: checked before each request, with requests in flight included."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from eureka_agent.batch_records import BatchedRequest
from eureka_agent.errors import EurekaError
from eureka_agent.llm.interface import LONGEST_REPLY_TOKENS, CompletionRequest
from eureka_agent.llm.prices import Price
from eureka_agent.records import Cost, Message

CHARACTERS_PER_TOKEN = 4
"""Rule of thumb for English and code, where a server's count is not known."""
IMAGE_TOKENS = 1_600
"""Most tokens of a picture that is scaled to 1.15 megapixels, by any provider's count."""
USUAL_REPLY_TOKENS = 2_000
"""Assumed length of a role's first reply."""


class BudgetSpentError(EurekaError):
    """The next request would exceed the budget. The search ends with what it has paid for."""


@dataclass(frozen=True, kw_only=True)
class ModelLimits:
    """Limits of a run's spending on models; None: unlimited."""

    money: Decimal | None = None
    """US dollars."""
    tokens: int | None = None
    """Tokens of prompts and replies together."""
    origin: Mapping[str, str] = field(
        default_factory=lambda: {"money": "--max-cost", "tokens": "--max-tokens"}
    )
    """Names of the limits where the user wrote them."""

    def named(self) -> dict[str, str]:
        """The limits by the names where the user wrote them."""
        found = {"money": self.money, "tokens": self.tokens}
        return {self.origin[name]: str(value) for name, value in found.items() if value is not None}


@dataclass(frozen=True)
class Amount:
    """Money and tokens."""

    money: Decimal = Decimal(0)
    tokens: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.money + other.money, self.tokens + other.tokens)


@dataclass(eq=False)
class Reservation:
    """Expected and highest cost of a request in flight."""

    expected: Amount
    most: Amount
    shared: Reservation | None = None
    """The reservation in the budget of several runs."""


@dataclass
class _Usage:
    """Settled requests of one model and role, in batches or not."""

    requests: int = 0
    total: Amount = field(default_factory=Amount)
    longest_reply: int = 0
    """Tokens."""

    @property
    def mean(self) -> Amount:
        return Amount(self.total.money / self.requests, self.total.tokens // self.requests)


class Budget:
    """Money and tokens spent on models by one run. A request is made where the limit leaves room
    for its expected cost and those in flight, and where those in flight cannot reach the limit even
    at their highest cost. So a run exceeds its limit by less than one request; without a bound on
    replies, as long as none is longer than all before it and `LONGEST_REPLY_TOKENS`. After the
    first refusal all are refused."""

    def __init__(
        self,
        limits: ModelLimits,
        prices: Mapping[str, Price],
        spent: Iterable[Message] = (),
        *,
        time_is_up: Callable[[], str] = lambda: "",
        closed: str = "",
        on_closed: Callable[[str], object] = lambda reason: None,
        shared: Budget | None = None,
    ) -> None:
        """`spent`: the run's messages so far. `time_is_up`: reason why no request may be made, or
        "". `closed`: reason of an earlier refusal. `on_closed` is called at the first refusal. With
        a limit in money every model needs a price. `shared`: a budget of several runs, which must
        have room too."""
        self.limits = limits
        self._prices = prices
        self._time_is_up = time_is_up
        self._on_closed = on_closed
        self._shared = shared
        self.closed = closed
        """Reason why nothing more may be spent, or ""."""
        self.spent = Amount()
        """Settled so far; tokens that a server did not count are estimated."""
        self._in_flight: list[Reservation] = []
        self._owed: dict[str, Reservation] = {}
        """Requests of an earlier process without a reply yet, by their keys."""
        self._usage: dict[tuple[str, str, bool], _Usage] = {}
        self._changed = asyncio.Condition()
        for message in spent:
            self._count(message)

    def money(self, model: str, cost: Cost) -> Decimal | None:
        """Cost of a request at the run's prices; None for an unknown price or count."""
        price = self._prices.get(model)
        return None if price is None else price.money(cost)

    def change_limits(self, limits: ModelLimits) -> None:
        """Take over other limits, and forget the refusal under those before."""
        self.limits, self.closed = limits, ""

    def owe(self, model: str, request: BatchedRequest) -> None:
        """Count a request that an earlier process sent in a batch; `reserve` takes it over."""
        usage = self._usage.get((model, request.role, True))
        guess = self._estimate(model, request.prompt_tokens, request.reply_tokens, True)
        expected = guess if usage is None else usage.mean
        self._owed[request.key] = Reservation(expected, expected)
        if self._shared is not None:
            self._shared.owe(model, request)

    async def reserve(
        self, model: str, request: CompletionRequest, key: str = "", *, batched: bool = False
    ) -> Reservation:
        """Reserve a request's expected cost, waiting for room. Raises BudgetSpentError."""
        if key in self._owed:
            self._in_flight.append(reservation := self._owed.pop(key))
            if self._shared is not None:
                reservation.shared = await self._shared.reserve(model, request, key, batched=True)
            return reservation
        prompt_tokens = estimated_tokens(request)
        async with self._changed:
            while True:
                bound = request.max_tokens or self._longest_reply(model)
                reason = self.closed or self._time_is_up()
                usage = self._usage.get((model, request.role.value, batched))
                if usage is not None:
                    expected = needed = usage.mean
                else:  # a guess reserves money, but refuses no request
                    usual = min(bound, USUAL_REPLY_TOKENS)
                    expected = self._estimate(model, prompt_tokens, usual, batched)
                    needed = self._estimate(model, prompt_tokens, 0, batched)
                if not reason and self._fits(needed):
                    break
                if not reason and not self._in_flight:
                    reason = self._refusal(needed)
                if reason:
                    self._close(reason)
                    raise BudgetSpentError(f"no more requests to models: {self.closed}")
                await self._changed.wait()
            most = self._estimate(model, prompt_tokens, bound, batched)
            reservation = Reservation(expected, most)
            self._in_flight.append(reservation)
        if self._shared is not None:
            try:
                more = await self._shared.reserve(model, request, key, batched=batched)
                reservation.shared = more
            except BaseException as error:
                await self.release(reservation)
                if isinstance(error, BudgetSpentError):
                    self._close(self._shared.closed)
                raise
        return reservation

    async def settle(self, reservation: Reservation, message: Message) -> None:
        self._count(message)
        if self._shared is not None and reservation.shared is not None:
            await self._shared.settle(reservation.shared, message)
        await self.release(reservation)

    async def release(self, reservation: Reservation) -> None:
        """Drop the reservation of a failed request; no effect after `settle`."""
        async with self._changed:
            if reservation in self._in_flight:
                self._in_flight.remove(reservation)
            self._changed.notify_all()
        if self._shared is not None and reservation.shared is not None:
            await self._shared.release(reservation.shared)

    def _longest_reply(self, model: str) -> int:
        """Most tokens of a reply without a bound, at least that of any reply so far."""
        seen = (usage.longest_reply for (name, *_), usage in self._usage.items() if name == model)
        return max(LONGEST_REPLY_TOKENS, *seen, 0)

    @property
    def _committed(self) -> Amount:
        return sum((each.expected for each in self._owed.values()), self.spent)

    def _fits(self, needed: Amount) -> bool:
        usual = sum((each.expected for each in self._in_flight), self._committed + needed)
        most = sum((each.most for each in self._in_flight), self._committed)
        money, tokens = self.limits.money, self.limits.tokens
        return (money is None or (usual.money <= money and most.money < money)) and (
            tokens is None or (usual.tokens <= tokens and most.tokens < tokens)
        )

    def _refusal(self, needed: Amount) -> str:
        committed = self._committed
        money, tokens = self.limits.money, self.limits.tokens
        if money is not None and committed.money + needed.money > money:
            spent = f"${committed.money:,.4f} of ${money:,.4f} ({self.limits.origin['money']})"
            return f"{spent} are spent, and the next one takes about ${needed.money:,.4f}"
        spent = f"{committed.tokens:,} of {tokens:,} tokens ({self.limits.origin['tokens']})"
        return f"{spent} are spent, and the next one takes about {needed.tokens:,}"

    def _close(self, reason: str) -> None:
        if not self.closed:
            self.closed = reason
            self._on_closed(reason)

    def _count(self, message: Message) -> None:
        """Add a settled request; texts are counted where the server did not."""
        model, cost = message.model, message.cost
        prompt, reply = cost.prompt_tokens, cost.completion_tokens
        if prompt is None or reply is None:
            prompt = len(message.request) // CHARACTERS_PER_TOKEN if prompt is None else prompt
            reply = len(message.reply) // CHARACTERS_PER_TOKEN if reply is None else reply
            amount = self._estimate(model, prompt, reply, cost.batched)
        else:
            money = cost.money if cost.money is not None else self.money(model, cost)
            amount = Amount(money or Decimal(0), prompt + reply)
        usage = self._usage.setdefault((model, message.role, cost.batched), _Usage())
        usage.requests += 1
        usage.total += amount
        usage.longest_reply = max(usage.longest_reply, reply)
        self.spent += amount

    def _estimate(self, model: str, prompt: int, reply: int, batched: bool) -> Amount:
        cost = Cost(prompt_tokens=prompt, completion_tokens=reply, batched=batched)
        return Amount(self.money(model, cost) or Decimal(0), prompt + reply)


def batched_request(key: str, request: CompletionRequest) -> BatchedRequest:
    return BatchedRequest(
        key=key,
        role=request.role.value,
        prompt_tokens=estimated_tokens(request),
        reply_tokens=min(request.max_tokens or USUAL_REPLY_TOKENS, USUAL_REPLY_TOKENS),
    )


def estimated_tokens(request: CompletionRequest) -> int:
    characters = sum(len(message.content) for message in request.messages)
    characters += sum(len(tool.doc) + len(str(tool.schema)) for tool in request.tools)
    pictures = sum(len(message.images) for message in request.messages)
    return characters // CHARACTERS_PER_TOKEN + 1 + IMAGE_TOKENS * pictures
