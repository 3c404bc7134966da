"""Retries of requests to a model, and the circuit breaker of its server. After its last retry a
request's server counts as out: all requests to the model wait, and one at a time tries it. Between
two tries a request holds neither a place nor a share of a budget. A breaker may be shared by
searches; `Retries` are one search's, with its own limit on the wait."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from eureka_agent.llm.failures import ANSWERS, RequestFailedError, Trouble
from eureka_agent.llm.interface import LanguageModelError, RetryObserver
from eureka_agent.wording import rough_duration

ResultT = TypeVar("ResultT")
MOST_DOUBLINGS = 20
"""Bound on the exponent, for outages of days."""
TRUSTED_WAITS = 2
"""First waits that are as long as the server asks. Later ones are at least as long as without: a
limit shared by many requests lasts longer than the server tells each of them."""


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """Waits between tries: each is drawn from half of its mean to one and a half, and the mean
    doubles from the first to the longest."""

    tries: int = 6
    """Tries before an outage. The waits between them double, to about two minutes together."""
    first_wait_s: float = 4.0
    longest_wait_s: float = 60.0
    longest_asked_wait_s: float = 900.0
    """Longest wait that a server may ask for; after a longer one there is no retry."""
    first_contact_tries: int = 3
    """Tries for a server that never answered: its address is most likely wrong."""
    first_contact_wait_s: float = 1.0
    timeout_tries: int = 2
    """Tries that may time out: each takes the whole timeout, and the provider may bill it."""
    first_outage_wait_s: float = 30.0
    longest_outage_wait_s: float = 600.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = random.random
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    """Seconds since 1970, compared with a `retry-after` date."""

    def pause_s(self, first_s: float, longest_s: float, tries: int) -> float:
        """Random wait after so many tries. `first_s`: mean after the first one."""
        mean = min(first_s * 2 ** min(tries - 1, MOST_DOUBLINGS), longest_s)
        return mean * (0.5 + self.random())


@dataclass
class Outage:
    """An outage of a server. Times are the policy's clock's."""

    since: float
    failure: RequestFailedError
    failed_at: float
    next_try: float
    tries: int = 0
    """Failed tries since it began."""


class Breaker:
    """The state of one server's model: it answers, or it is out."""

    def __init__(self, policy: RetryPolicy | None = None) -> None:
        self.policy = policy or RetryPolicy()
        self.outage: Outage | None = None
        self.trying = False
        self.reached = False
        self.queue: dict[object, float] = {}
        """Times of their next try, by waiting request; those that tried last are at the end."""
        self._changed = asyncio.Event()

    def failed(self, failure: RequestFailedError, *, tried: bool = False) -> None:
        """Begin an outage, or note a failed try in it (`tried`)."""
        policy, now = self.policy, self.policy.clock()
        if self.outage is None:
            self.outage = Outage(now, failure, now, now)
        outage = self.outage
        outage.tries += tried
        outage.failure, outage.failed_at = failure, now
        if outage.next_try <= now:  # a search at its limit tries earlier
            first, longest = policy.first_outage_wait_s, policy.longest_outage_wait_s
            wait = policy.pause_s(first, longest, outage.tries + 1)
            outage.next_try = now + max(wait, failure.asked_wait_s(policy.now()) or 0.0)
        self.notify()

    def answered(self) -> None:
        if self.outage is not None:
            self.outage = None
            self.notify()

    def notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def change(self, stop: asyncio.Event, seconds: float | None = None) -> None:
        """Wait for a change of the outage, or so many seconds. Raises CancelledError at a stop."""
        if stop.is_set():
            raise asyncio.CancelledError
        waits: list[asyncio.Future[Any]]
        waits = [asyncio.ensure_future(each.wait()) for each in (self._changed, stop)]
        if seconds is not None:
            waits.append(asyncio.ensure_future(self.policy.sleep(seconds)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
        if stop.is_set():
            raise asyncio.CancelledError


class Breakers:
    """One breaker for each model and address; all searches of a process may share them."""

    def __init__(self, policy: RetryPolicy | None = None) -> None:
        """`policy` is the default one without a value."""
        self._policy = policy
        self._known: dict[tuple[str, str | None], Breaker] = {}

    def of(self, model: str, base_url: str | None = None) -> Breaker:
        """The breaker of `<provider>/<model>` at an address; None: the provider's own."""
        return self._known.setdefault((model, base_url), Breaker(self._policy))


class _HeldError(Exception):
    """A request that was not made, because its server is out."""


class Retries:
    """One search's requests to a model: tried again, and held back while its server is out."""

    def __init__(self, model: str, breaker: Breaker, outage_s: float, tell: RetryObserver) -> None:
        """`outage_s`: longest wait of a request for a server that is out; with 0 it fails after its
        retries. `tell` receives each retry and each outage."""
        self.breaker = breaker
        self._model = model
        self._policy = breaker.policy
        self._outage_s = outage_s
        self._tell = tell
        self._told: tuple[Outage, int] | None = None
        """Outage and number of tries that were told last."""
        self._told_tries = 0
        """Reported tries since its last answer in which the server was not reached."""

    @property
    def is_out(self) -> bool:
        return self.breaker.outage is not None

    async def patiently(
        self, make: Callable[[], Awaitable[ResultT]], stop: asyncio.Event
    ) -> ResultT:
        """Make a request until there is a reply; `make` makes one try, in `trying`. Raises
        LanguageModelError where no further try makes sense, and CancelledError for a request that
        waits for its next try at a stop. A request that begins after an outage has passed the limit
        is made once, without a wait."""
        tries = timeouts = 0
        held_since: float | None = None
        is_held = False
        while True:
            if is_held or self._holds_back():
                held_since = self._policy.clock() if held_since is None else held_since
                tries = timeouts = 0
                await self._wait_in_queue(held_since, stop)
            try:
                return await make()
            except _HeldError:
                is_held = True
                continue
            except RequestFailedError as error:
                failure = error
            tries += 1
            timeouts += failure.trouble is Trouble.TIMEOUT
            pause_s = self._pause_s(failure, tries, timeouts)
            is_held = pause_s is None
            if pause_s is not None:
                if not failure.in_batch:  # a hundred requests would report the same
                    self._report(failure, tries, pause_s)
                await self.breaker.change(stop, pause_s)
            elif not self._is_outage(failure):
                raise self._explained(failure, tries)
            elif not self.is_out:
                self.breaker.failed(failure)

    @contextmanager
    def trying(self) -> Iterator[None]:
        """Watch one try. Raises an error that `patiently` expects where none may be made."""
        breaker, outage = self.breaker, self.breaker.outage
        is_trial = outage is not None
        if outage is not None:
            if breaker.trying or self._policy.clock() < self._next_try(outage):
                raise _HeldError
            breaker.trying = True
        try:
            yield
        except RequestFailedError as failure:
            if failure.trouble in ANSWERS:
                self._answered()
            if not self._is_outage(failure):  # no wait mends it, so all requests are to see it
                self._end()
            elif is_trial:
                breaker.failed(failure, tried=True)
            raise
        except LanguageModelError:
            self._end()
            raise
        else:
            self._answered()
            self._end()
        finally:
            if is_trial:
                breaker.trying = False
                breaker.notify()

    def _next_try(self, outage: Outage) -> float:
        """Time of the next try, which is at the limit at the latest."""
        return min(outage.next_try, outage.since + self._outage_s)

    def _holds_back(self) -> bool:
        outage = self.breaker.outage
        return outage is not None and self._policy.clock() < outage.since + self._outage_s

    def _is_outage(self, failure: RequestFailedError) -> bool:
        mends = failure.passing and not failure.in_batch and not self._is_wrong_address(failure)
        return mends and self._outage_s > 0

    def _is_wrong_address(self, failure: RequestFailedError) -> bool:
        """True for a server that was not reached, and never was before."""
        return failure.trouble is Trouble.UNREACHABLE and not self.breaker.reached

    def _pause_s(self, failure: RequestFailedError, tries: int, timeouts: int) -> float | None:
        """Seconds until the next try; None where none is due before an outage."""
        policy, asked = self._policy, failure.asked_wait_s(self._policy.now())
        first, most = policy.first_wait_s, policy.tries
        if self._is_wrong_address(failure):
            first, most = policy.first_contact_wait_s, policy.first_contact_tries
        if failure.trouble is Trouble.TIMEOUT and timeouts >= policy.timeout_tries:
            return None
        too_long = asked is not None and asked > policy.longest_asked_wait_s
        joins_outage = self.is_out and not failure.in_batch
        if not failure.passing or tries >= most or too_long or joins_outage:
            return None
        own = policy.pause_s(first, policy.longest_wait_s, tries)
        if asked is None:
            return own
        # spread, so that not all requests return at once, and none too early
        asked += min(0.1 * asked, 5.0) * policy.random()
        return asked if tries <= TRUSTED_WAITS else max(asked, own)

    async def _wait_in_queue(self, held_since: float, stop: asyncio.Event) -> None:
        """Wait for the outage's end or a try in it. Raises LanguageModelError at the limit."""
        breaker, place = self.breaker, object()
        try:
            while (outage := breaker.outage) is not None:
                now, limit = self._policy.clock(), outage.since + self._outage_s
                asked_s = outage.failure.asked_wait_s(self._policy.now()) or 0.0
                if (
                    outage.failed_at >= limit
                    # others were answered meanwhile, and this one never was
                    or now >= held_since + self._outage_s < limit
                    or outage.failed_at + asked_s > limit
                ):
                    raise self._given_up(outage, now)
                breaker.queue[place] = self._next_try(outage)
                seconds = breaker.queue[place] - now
                first = next((each for each, at in breaker.queue.items() if at <= now), None)
                if seconds > 0:
                    self._tell_wait(outage, seconds)
                    await breaker.change(stop, seconds)
                elif breaker.trying or place is not first:
                    await breaker.change(stop)
                else:
                    return
            self._end()
        finally:
            breaker.queue.pop(place, None)
            if self.is_out:
                breaker.notify()  # it may be the next one's turn

    def _answered(self) -> None:
        self.breaker.reached, self._told_tries = True, 0

    def _end(self) -> None:
        """End the outage, if there is one, and tell of that once."""
        self.breaker.answered()
        if self._told is not None:
            took = rough_duration(self._policy.clock() - self._told[0].since)
            self._told = None
            self._tell(f"{self._model} answers again after {took}: its requests go on")

    def _report(self, failure: RequestFailedError, tries: int, pause_s: float) -> None:
        if failure.trouble is Trouble.UNREACHABLE:
            # all requests that wait for one server would report the same
            if tries <= self._told_tries:
                return
            reached = self.breaker.reached
            self._told_tries = tries if reached else self._policy.first_contact_tries
        self._tell(f"{failure.line()}, tried again in {rough_duration(pause_s)}")

    def _tell_wait(self, outage: Outage, seconds: float) -> None:
        """Tell of an outage, and of each failed try, once."""
        before, self._told = self._told, (outage, outage.tries)
        why, again = outage.failure.short, f"tried again in {rough_duration(seconds)}"
        if before is None or before[0] is not outage:
            most = f"at most {rough_duration(self._outage_s)} (--outage)"
            self._tell(
                f"{self._model} does not answer ({why}): its requests wait, {most}, {again};"
                " trainings go on"
            )
        elif before[1] != outage.tries:
            self._tell(f"{self._model} still does not answer ({why}), {again}")

    def _explained(self, failure: RequestFailedError, tries: int = 1) -> LanguageModelError:
        wait = failure.asked_wait_s(self._policy.now())
        too_long = wait is not None and wait > self._policy.longest_asked_wait_s
        return failure.explained(tries, wait if too_long else None)

    def _given_up(self, outage: Outage, now: float) -> LanguageModelError:
        error, seconds = self._explained(outage.failure), now - outage.since
        lasted = f"; it has been out for {rough_duration(seconds)}" if seconds >= 1 else ""
        hint = "; ".join(filter(None, (error.hint, "a longer --outage waits more")))
        return LanguageModelError(error.message + lasted, hint)
