"""Limits of wall time: `--budget`, `--max-time`, and `--outage` for a model's server."""

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
    stops_models: bool = True
    """False: models may still be asked beyond it."""


def time_limit(settings: SearchSettings) -> TimeLimit | None:
    """The tighter of `--max-time` and a `--budget` in wall time. Raises SettingsError for one that
    cannot be read."""
    limits = []
    if (
        settings.budget is not None
        and (seconds := parse_budget(settings.budget).seconds) is not None
    ):
        limits.append(TimeLimit(settings.budget, seconds, settings.max_time is not None))
    if settings.max_time is not None:
        limits.append(
            TimeLimit(f"{settings.max_time} (--max-time)", _seconds("max-time", settings.max_time))
        )
    return min(limits, key=lambda limit: limit.seconds, default=None)


def outage_limit(settings: SearchSettings) -> float:
    """Seconds that requests wait for a server that is out; 0 for no wait. Raises SettingsError for
    an `--outage` that cannot be read."""
    if settings.outage.strip() in ("off", "0"):
        return 0.0
    return _seconds("outage", settings.outage, "write 10m, 2h or 1h30m, or off for no wait")


def _seconds(setting: str, text: str, hint: str = "write 90s, 10m, 8h or 1h30m") -> float:
    what = f"--{setting} is {text!r}"
    seconds = wall_time(text, what, hint)
    if seconds is None:
        raise SettingsError(f"{what}: expected a wall time", hint)
    return seconds
