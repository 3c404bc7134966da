"""Circuit breakers: while a model's server is out its requests wait, and one at a time tries it.

A breaker belongs to a server's model and may be shared by searches; an `OutageGuard` is one
search's view of it, with the search's own limit on the wait.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from eureka_agent.llm.interface import LanguageModelError, RetryObserver
from eureka_agent.wording import rough_duration

ResultT = TypeVar("ResultT")
MOST_DOUBLINGS = 20
"""Bound on the exponent, for outages of days."""


class ModelOutError(LanguageModelError):
    """A request that failed, or was not made, because the model's server is out."""

    def __init__(self, message: str, hint: str, short: str, asked_wait_s: float = 0.0) -> None:
        """`short`: the failure in a few words; `asked_wait_s`: a wait that the server asks for."""
        super().__init__(message, hint)
        self.short = short
        self.asked_wait_s = asked_wait_s


@dataclass(frozen=True, kw_only=True)
class ProbePolicy:
    """Waits between the tries of a server that is out."""

    first_wait_s: float = 30.0
    """Mean of the first wait; each is drawn from half of its mean to one and a half."""
    longest_wait_s: float = 600.0
    """Bound on that mean, which doubles from try to try."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = random.random
    """Random number from 0 to 1, for the jitter."""
    now: Callable[[], float] = time.monotonic


@dataclass
class Outage:
    """An outage of a server. Times are the policy's."""

    since: float
    error: ModelOutError
    """The last failure."""
    failed_at: float
    next_try: float
    tries: int = 0
    """Failed tries since it began."""


class Breaker:
    """The state of one server's model: it answers, or it is out."""

    def __init__(self, policy: ProbePolicy) -> None:
        self.policy = policy
        self.outage: Outage | None = None
        self.trying = False
        """True while one request tries a server that is out."""
        self.reached = False
        """True once the server has answered anything."""
        self.queue: dict[object, float] = {}
        """Times of their next try, by waiting request; those that tried last are at the end."""
        self._changed = asyncio.Event()

    def failed(self, error: ModelOutError, *, tried: bool) -> None:
        """Begin an outage, or note another failure in it; `tried`: of a try during the outage."""
        now = self.policy.now()
        if self.outage is None:
            self.outage = Outage(now, error, now, now)
        self.outage.tries += tried
        self.outage.error, self.outage.failed_at = error, now
        if self.outage.next_try <= now:
            mean = self.policy.first_wait_s * 2 ** min(self.outage.tries, MOST_DOUBLINGS)
            own = min(mean, self.policy.longest_wait_s) * (0.5 + self.policy.random())
            self.outage.next_try = now + max(own, error.asked_wait_s)
        self.notify()

    def first_in_queue(self, now: float) -> object:
        """The request whose turn it is, among those whose next try is due."""
        return next((each for each, at in self.queue.items() if at <= now), None)

    def answered(self) -> None:
        """End the outage, if there is one."""
        if self.outage is not None:
            self.outage = None
            self.notify()

    def notify(self) -> None:
        """Wake all requests that wait."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def change(self, sleep: Awaitable[None] | None = None) -> None:
        """Wait until an outage begins, ends, or was tried, at most for as long as a sleep takes."""
        events = (self._changed.wait(), *(() if sleep is None else (sleep,)))
        waits = [asyncio.ensure_future(each) for each in events]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()


class Breakers:
    """One breaker for each model and address; all searches of a process may share them."""

    def __init__(self, policy: ProbePolicy | None = None) -> None:
        """`policy` is the default one without a value."""
        self._policy = policy or ProbePolicy()
        self._known: dict[tuple[str, str | None], Breaker] = {}

    def of(self, model: str, base_url: str | None = None) -> Breaker:
        """The breaker of `<provider>/<model>` at an address; None: the provider's own."""
        return self._known.setdefault((model, base_url), Breaker(self._policy))


class OutageGuard:
    """One search's requests to a model, which wait while its server is out."""

    def __init__(self, model: str, breaker: Breaker, limit_s: float, tell: RetryObserver) -> None:
        """`limit_s`: longest wait of a request for a server that is out. `tell` receives when an
        outage begins and ends, and each failed try."""
        self._model = model
        self._breaker = breaker
        self._limit_s = limit_s
        self._tell = tell
        self._told: tuple[Outage, int] | None = None
        """Outage and number of tries that were told last."""

    @property
    def reached(self) -> bool:
        """True once the server has answered anything."""
        return self._breaker.reached

    @property
    def is_out(self) -> bool:
        """True during an outage."""
        return self._breaker.outage is not None

    def answered(self) -> None:
        """Note that the server has answered, perhaps with an error."""
        self._breaker.reached = True

    async def patiently(self, make: Callable[[], Awaitable[ResultT]]) -> ResultT:
        """Make a request, again after each outage. Raises its LanguageModelError at the limit.

        A request that begins after an outage has passed the limit is made once, without a wait.
        """
        held_since: float | None = None
        while True:
            if held_since is not None or self._holds_back():
                held_since = self._now() if held_since is None else held_since
                await self._wait(held_since)
            try:
                return await make()
            except ModelOutError:
                held_since = self._now() if held_since is None else held_since

    @contextmanager
    def trying(self) -> Iterator[None]:
        """Watch a request with its retries. Raises ModelOutError where none may be made."""
        breaker, outage = self._breaker, self._breaker.outage
        is_trial = outage is not None
        if outage is not None:
            if breaker.trying or self._now() < self._next_try(outage):
                raise ModelOutError(outage.error.message, outage.error.hint, outage.error.short)
            breaker.trying = True
        try:
            yield
        except ModelOutError as error:
            breaker.failed(error, tried=is_trial)
            raise
        except LanguageModelError:  # no wait mends it, so all requests are to see it
            self._end()
            raise
        else:
            self._end()
        finally:
            if is_trial:
                breaker.trying = False
                breaker.notify()

    async def pause(self, seconds: float, sleep: Callable[[float], Awaitable[None]]) -> None:
        """Sleep before a retry, at most until an outage begins."""
        if not self.is_out:
            await self._breaker.change(sleep(seconds))

    def _now(self) -> float:
        return self._breaker.policy.now()

    def _next_try(self, outage: Outage) -> float:
        """Time of the next try, which is at the limit at the latest."""
        return min(outage.next_try, outage.since + self._limit_s)

    def _holds_back(self) -> bool:
        outage = self._breaker.outage
        return outage is not None and self._now() < outage.since + self._limit_s

    async def _wait(self, held_since: float) -> None:
        """Wait for the end of the outage or for a try in it. Raises LanguageModelError at the
        limit."""
        place = object()
        try:
            await self._wait_in_queue(place, held_since)
        finally:
            self._breaker.queue.pop(place, None)
            if self.is_out:
                self._breaker.notify()  # it may be the next one's turn
        if not self.is_out:
            self._end()

    async def _wait_in_queue(self, place: object, held_since: float) -> None:
        breaker = self._breaker
        while (outage := breaker.outage) is not None:
            now, limit = self._now(), outage.since + self._limit_s
            if (
                outage.failed_at >= limit
                # others were answered meanwhile, and this one never was
                or now >= held_since + self._limit_s < limit
                or outage.failed_at + outage.error.asked_wait_s > limit
            ):
                raise self._given_up(outage, now)
            breaker.queue[place] = self._next_try(outage)
            seconds = breaker.queue[place] - now
            if seconds > 0:
                self._tell_wait(outage, seconds)
                await breaker.change(breaker.policy.sleep(seconds))
            elif breaker.trying or place is not breaker.first_in_queue(now):
                await breaker.change()
            else:
                return

    def _end(self) -> None:
        """End the outage, if there is one, and tell of that once."""
        self._breaker.answered()
        if self._told is not None:
            took = rough_duration(self._now() - self._told[0].since)
            self._told = None
            self._tell(f"{self._model} answers again after {took}: its requests go on")

    def _tell_wait(self, outage: Outage, seconds: float) -> None:
        """Tell of an outage, and of each failed try, once."""
        before = None if self._told is None else self._told[0]
        if before is outage and self._told == (outage, outage.tries):
            return
        self._told = outage, outage.tries
        name, why = self._model, outage.error.short
        again = f"tried again in {rough_duration(seconds)}"
        if before is outage:
            self._tell(f"{name} still does not answer ({why}), {again}")
            return
        most = f"at most {rough_duration(self._limit_s)} (--outage)"
        self._tell(
            f"{name} does not answer ({why}): its requests wait, {most}, {again}; trainings go on"
        )

    def _given_up(self, outage: Outage, now: float) -> LanguageModelError:
        error, seconds = outage.error, now - outage.since
        lasted = f"; it has been out for {rough_duration(seconds)}" if seconds >= 1 else ""
        hint = "; ".join(filter(None, (error.hint, "a longer --outage waits more")))
        return LanguageModelError(error.message + lasted, hint)
