"""The problem that a worker opens: an environment, a task and its fitness."""

from __future__ import annotations

from dataclasses import dataclass

from eureka_agent.records import WrittenFitness


@dataclass(frozen=True)
class Problem:
    """An environment and a task. Workers of one problem can replace each other."""

    environment: str
    """As `--env` names it."""
    task: str | None = None
    """None: the environment's first."""
    fitness: WrittenFitness | None = None
    """Replaces the task's own metric."""
