"""Surroundings of a search that is one of several in its process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from eureka_agent.fleet.fleet import Machine
from eureka_agent.fleet.jobs import Share
from eureka_agent.llm.breaker import Breakers
from eureka_agent.llm.budget import Budget
from eureka_agent.search.budget import TimeLimit


async def _at_once() -> None:
    """Wait for nothing."""


@dataclass(frozen=True)
class SearchContext:
    """Parts and limits that a search shares with others. The default: it has the machine alone."""

    machine: Machine | None = None
    """Workers of all searches; None: it starts its own."""
    share: Share = field(default_factory=Share)
    """Its share of the trainings."""
    budget: Budget | None = None
    """Spending on models by all searches together; None: unlimited."""
    before_request: Callable[[], Awaitable[object]] = _at_once
    """Waits as long as no model is to be asked."""
    time_limit: Callable[[], TimeLimit | None] = lambda: None
    """Wall time from now until all searches end, if that is limited."""
    breakers: Breakers | None = None
    """Which models' servers are out; None: its own."""
    folder: Path | None = None
    """Folder of a new run; None: one in the runs folder, named by the time."""


ALONE = SearchContext()
