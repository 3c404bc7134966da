"""A clock of its own for outages, and a model behind a circuit breaker on it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

from eureka_agent.llm.access import ModelAccess
from eureka_agent.llm.breaker import Breakers, Retries, RetryPolicy
from eureka_agent.llm.budget import Budget, ModelLimits
from eureka_agent.llm.clients import language_model
from eureka_agent.llm.gateway import Gateway
from eureka_agent.llm.interface import LanguageModel, MessageStore

TRIES = 2
"""Tries of a request before its server counts as out."""


class Clock:
    """Time that passes where everybody sleeps: no request is in flight."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.runs = asyncio.Event()
        """Sleeps end only while this is set."""
        self.runs.set()
        self.gateways: list[Gateway] = []
        self._ends: list[float] = []

    def sleep(self, seconds: float) -> Coroutine[None, None, None]:
        return self._sleep_until(self.now + seconds) if seconds else asyncio.sleep(0)

    async def _sleep_until(self, end: float) -> None:
        self._ends.append(end)
        try:
            idle = 0
            while idle < 5:  # others may be about to make a request, or to sleep
                await asyncio.sleep(0.001)
                busy = any(each.under_way for each in self.gateways)
                waits = busy or end > min(self._ends) or not self.runs.is_set()
                idle = 0 if waits else idle + 1
        finally:
            self._ends.remove(end)
        self.now = max(self.now, end)

    def breakers(self) -> Breakers:
        """Breakers without jitter: 30 s, 60 s, 120 s, …, and no pauses before an outage."""
        policy = RetryPolicy(
            tries=TRIES,
            first_wait_s=0.0,
            first_contact_wait_s=0.0,
            sleep=self.sleep,
            random=lambda: 0.5,
            clock=lambda: self.now,
        )
        return Breakers(policy)


class Search:
    """One search's model and gateway."""

    def __init__(
        self,
        clock: Clock,
        breakers: Breakers,
        base_url: str,
        *,
        store: MessageStore,
        limit_s: float = 600.0,
        name: str = "openai/tiny",
        concurrency: int = 8,
        timeout_s: float = 20.0,
    ) -> None:
        self.told: list[str] = []
        access = ModelAccess(
            base_url=base_url,
            timeout_s=timeout_s,
            on_retry=self._told,
            breaker=breakers.of(name, base_url),
            outage_s=limit_s,
        )
        self.model: LanguageModel = language_model(name, access)
        assert self.model.retries is not None
        self.retries: Retries = self.model.retries
        budget = Budget(ModelLimits(tokens=10**9), {})
        self.gateway = Gateway(store, budget, concurrency)
        clock.gateways.append(self.gateway)

    def _told(self, line: str) -> None:
        """Note what is told of an outage, without the retries before it."""
        if not line.endswith("tried again in 0 s"):
            self.told.append(line)
