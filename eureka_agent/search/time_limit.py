"""Limits of wall time by `--budget` or `--max-time`."""

from __future__ import annotations

from dataclasses import dataclass

from eureka_agent.errors import SettingsError
from eureka_agent.search.budget import parse_budget, wall_time
from eureka_agent.settings import SearchSettings


@dataclass(frozen=True)
class TimeLimit:
    """A limit of a search's wall time."""

    text: str
    """As the user wrote it, with the flag unless it is `--budget`."""
    seconds: float


def time_limit(settings: SearchSettings) -> TimeLimit | None:
    """The tighter of `--max-time` and a `--budget` in wall time. Raises SettingsError for one that
    cannot be read."""
    limits = []
    if (
        settings.budget is not None
        and (seconds := parse_budget(settings.budget).seconds) is not None
    ):
        limits.append(TimeLimit(settings.budget, seconds))
    if settings.max_time is not None:
        limits.append(TimeLimit(f"{settings.max_time} (--max-time)", _seconds(settings.max_time)))
    return min(limits, key=lambda limit: limit.seconds, default=None)


def _seconds(max_time: str) -> float:
    what, hint = f"--max-time is {max_time!r}", "write 90s, 10m, 8h or 1h30m"
    seconds = wall_time(max_time, what, hint)
    if seconds is None:
        raise SettingsError(f"{what}: expected a wall time", hint)
    return seconds
