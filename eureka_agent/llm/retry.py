"""Retries of transient failures: rate limits, server errors, timeouts and lost connections. The
SDKs' own are off, as their rules differ and they report nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import replace

from tenacity import AsyncRetrying, RetryCallState, stop_after_attempt

from eureka_agent.llm.access import Access
from eureka_agent.llm.breaker import ModelOutError
from eureka_agent.llm.failures import RequestFailedError, Service, Trouble
from eureka_agent.llm.forms import Forms
from eureka_agent.llm.interface import Completion
from eureka_agent.llm.pauses import PAUSES, Pauses
from eureka_agent.llm.replies import refused
from eureka_agent.wording import rough_duration

TRUSTED_WAITS = 2
"""First waits that are as long as the server asks. Later ones are at least as long as without: a
limit shared by many requests lasts longer than the server tells each of them."""


class Retries:
    """Makes one model's requests, with retries; explains a final failure in one line."""

    def __init__(self, service: Service, access: Access, forms: Forms) -> None:
        """`forms` learn what the server refuses; the same request is made at once in another."""
        self._service = service
        self._forms = forms
        self._policy = access.retries
        self._tell = access.on_retry
        self._guard = access.guard
        self._reached = False
        """True once the server has answered."""
        self._told_tries = 0
        """Reported tries since its last answer in which the server was not reached."""

    async def complete(self, attempt: Callable[[], Awaitable[Completion]]) -> Completion:
        """Complete a request by calls of `attempt`. Raises LanguageModelError at the end,
        ModelOutError where its server is out."""
        with nullcontext() if self._guard is None else self._guard.trying():
            return await self._complete(attempt)

    async def _complete(self, attempt: Callable[[], Awaitable[Completion]]) -> Completion:
        timeouts = 0
        tries = 0
        last: RequestFailedError | None = None

        async def attempt_in_time() -> Completion:
            nonlocal timeouts, tries, last
            if last is not None and self._is_out:
                raise last
            tries += 1
            known = self._forms.refused
            started = time.monotonic()
            try:
                async with asyncio.timeout(self._service.timeout_s):
                    completion = await attempt()
            except TimeoutError:
                timeouts += 1
                last = RequestFailedError(Trouble.TIMEOUT)
                raise last from None
            except RequestFailedError as failure:
                before = self._forms.refused
                if form := self._forms.learn(failure, known):
                    tries -= 1
                    if form not in before:
                        self._tell(f"{self._service.name} refuses {form}: asked in another form")
                    return await attempt_in_time()
                last = failure
                timeouts += failure.trouble is Trouble.TIMEOUT
                if failure.trouble in (Trouble.STATUS, Trouble.NONSENSE, Trouble.DROPPED):
                    self._answered()
                raise
            self._answered()
            return replace(completion, seconds=time.monotonic() - started)

        def is_due(state: RetryCallState) -> bool:
            failure = _failure(state)
            if failure is None or not failure.passing or self._is_out:
                return False
            if failure.trouble is Trouble.TIMEOUT:
                return timeouts < self._policy.timeout_tries
            if self._is_wrong_address(failure):
                return state.attempt_number < self._policy.first_contact_tries
            asked = failure.asked_wait_s(self._policy.now()) or 0
            return asked <= self._policy.longest_asked_wait_s

        retrying = AsyncRetrying(
            retry=is_due,
            wait=self._wait,
            stop=stop_after_attempt(self._policy.tries),
            sleep=self._sleep,
            before_sleep=self._report,
            reraise=True,
        )
        try:
            return await retrying(attempt_in_time)
        except RequestFailedError as failure:
            if failure.refusal:
                return refused()
            wait = failure.asked_wait_s(self._policy.now())
            too_long = wait is not None and wait > self._policy.longest_asked_wait_s
            error = self._service.explain(failure, tries, wait if too_long else None)
            if failure.passing and not self._is_wrong_address(failure):
                error = ModelOutError(error.message, error.hint, failure.short, wait or 0.0)
            raise error from None

    @property
    def _is_out(self) -> bool:
        return self._guard is not None and self._guard.is_out

    def _is_wrong_address(self, failure: RequestFailedError) -> bool:
        """True for a server that was not reached, and never was before."""
        reached = self._reached or (self._guard is not None and self._guard.reached)
        return failure.trouble is Trouble.UNREACHABLE and not reached

    def _answered(self) -> None:
        self._reached, self._told_tries = True, 0
        if self._guard is not None:
            self._guard.answered()

    async def _sleep(self, seconds: float) -> None:
        await (PAUSES.get(None) or Pauses()).sleep(seconds, self._pause)

    async def _pause(self, seconds: float) -> None:
        sleep = self._policy.sleep
        await (sleep(seconds) if self._guard is None else self._guard.pause(seconds, sleep))

    def _wait(self, state: RetryCallState) -> float:
        """Seconds until the next try."""
        failure = _failure(state)
        policy = self._policy
        first = policy.first_wait_s
        if failure is not None and self._is_wrong_address(failure):
            first = policy.first_contact_wait_s
        mean = min(first * 2 ** (state.attempt_number - 1), policy.longest_wait_s)
        own = mean * (0.5 + policy.random())
        asked = None if failure is None else failure.asked_wait_s(policy.now())
        if asked is None:
            return own
        # spread, so that not all requests return at once, and none too early
        asked += min(0.1 * asked, 5.0) * policy.random()
        return asked if state.attempt_number <= TRUSTED_WAITS else max(asked, own)

    def _report(self, state: RetryCallState) -> None:
        failure = _failure(state)
        if failure is None:
            return
        if failure.trouble is Trouble.UNREACHABLE:
            # all requests that wait for one server would report the same
            if state.attempt_number <= self._told_tries:
                return
            self._told_tries = self._policy.first_contact_tries
            if self._reached:
                self._told_tries = state.attempt_number
        pause = rough_duration(state.upcoming_sleep)
        self._tell(f"{self._service.trouble(failure)}, tried again in {pause}")


def _failure(state: RetryCallState) -> RequestFailedError | None:
    """Failure of the last try; None for a reply, a cancellation, or another error."""
    error = state.outcome.exception() if state.outcome is not None else None
    return error if isinstance(error, RequestFailedError) else None
