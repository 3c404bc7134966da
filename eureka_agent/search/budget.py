"""Budgets as text: parsed from `--budget`, and written in sentences."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal

from eureka_agent.amounts import SUFFIXES, whole_number
from eureka_agent.errors import SettingsError
from eureka_agent.settings import MOST_ENV_STEPS, SearchSettings

_MOST_SECONDS = 10**9
_EXPECTED = (
    "write wall time such as 90s, 10m, 8h or 1h30m, or env steps such as 500k, 5M, 2G or 5000000; "
    "case matters: 10m is ten minutes, 10M is ten million env steps"
)
_TIME = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?", re.ASCII)


@dataclass(frozen=True)
class SearchBudget:
    """The budget of a whole search, in wall time or in env steps."""

    text: str
    """As the user wrote it."""
    seconds: float | None = None
    env_steps: int | None = None


def parse_budget(text: str) -> SearchBudget:
    """Parse wall time (`"1h30m"`) or env steps (`"500k"`). Raises SettingsError."""
    word, what = text.strip(), f"the budget is {text!r}"
    seconds = wall_time(text, what, _EXPECTED)
    if seconds is not None:
        return SearchBudget(word, seconds=seconds)
    try:
        steps = whole_number(word)
    except ValueError:
        raise SettingsError(f"{what}: expected wall time or env steps", _EXPECTED) from None
    _check_range(what, steps, MOST_ENV_STEPS, "env steps", _EXPECTED)
    return SearchBudget(word, env_steps=steps)


def wall_time(text: str, what: str, hint: str) -> float | None:
    """Seconds of `"1h30m"`; None for no wall time. Raises SettingsError if it is out of range."""
    found = _TIME.fullmatch(text.strip())
    if found is None or not text.strip():
        return None
    hours, minutes, seconds = (Decimal(part or 0) for part in found.groups())
    total = 3600 * hours + 60 * minutes + seconds
    _check_range(what, total, _MOST_SECONDS, "s", hint)
    return float(total)


def _check_range(what: str, amount: Decimal | int, most: int, unit: str, hint: str) -> None:
    if not 1 <= amount <= most:
        raise SettingsError(f"{what}: expected 1 to {most:,} {unit}", hint)


def steps_text(steps: float) -> str:
    """Env steps in the form of a budget, rounded up to two digits: `"480k"`, `"1.7M"`."""
    whole = math.ceil(steps)
    unit = 10 ** max(0, len(str(whole)) - 2)
    whole = math.ceil(whole / unit) * unit
    powers = ((name, 10**power) for name, power in reversed(SUFFIXES.items()))
    suffix, size = next((each for each in powers if whole >= each[1]), ("", 1))
    return f"{whole / size:g}{suffix}"


def time_text(seconds: float) -> str:
    """Wall time in the form of a budget, rounded up to 5 s, minutes, or ten minutes."""
    if seconds <= 120:
        return f"{5 * math.ceil(seconds / 5)}s"
    minutes = math.ceil(seconds / 60)
    if minutes < 120:
        return f"{minutes}m"
    hours, minutes = divmod(10 * math.ceil(minutes / 10), 60)
    return f"{hours}h" + (f"{minutes}m" if minutes else "")


@dataclass(frozen=True)
class TimeLimit:
    """A limit of a search's wall time."""

    text: str
    """As the user wrote it, with the flag unless it is `--budget`."""
    seconds: float
    stops_models: bool = True
    """False: models may still be asked beyond it."""


def time_limit(settings: SearchSettings) -> TimeLimit | None:
    """The tighter of `--max-time` and a `--budget` in wall time. Raises SettingsError."""
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
    """Seconds that requests wait for a server that is out, or 0. Raises SettingsError."""
    if settings.outage.strip() in ("off", "0"):
        return 0.0
    return _seconds("outage", settings.outage, "write 10m, 2h or 1h30m, or off for no wait")


def _seconds(setting: str, text: str, hint: str = "write 90s, 10m, 8h or 1h30m") -> float:
    what = f"--{setting} is {text!r}"
    seconds = wall_time(text, what, hint)
    if seconds is None:
        raise SettingsError(f"{what}: expected a wall time", hint)
    return seconds
