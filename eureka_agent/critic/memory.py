"""Memory of a run for the critic: known rewards and episodes. The search fills it in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from eureka_agent.rewards import RewardSpecification


@dataclass(frozen=True)
class KnownReward:
    """A reward that this run has trained or is training."""

    attempt: str
    reward: RewardSpecification


@dataclass(frozen=True)
class KnownEpisodes:
    """Recorded episodes of a trained attempt."""

    attempt: str
    path: Path
    """Npz of plain arrays named `<episode>/<variable>`."""
    fitness: Mapping[str, float]
    """By episode."""


@dataclass(frozen=True)
class Memory:
    """Known rewards and episodes that a reward is compared with. An empty part leaves its
    comparison out."""

    rewards: tuple[KnownReward, ...] = ()
    """Rewards to compare by source."""
    earlier: tuple[KnownReward, ...] = ()
    """Rewards to compare by value too."""
    episodes: tuple[KnownEpisodes, ...] = ()
    practice: tuple[KnownEpisodes, ...] = ()
    """Episodes of the same attempts' policies early in their trainings."""


@dataclass(frozen=True)
class Totals:
    """Totals of a reward per step, on the same transitions for all compared rewards. None: not
    finite."""

    stored: tuple[float | None, ...]
    extreme: tuple[float | None, ...]
    """Totals on states that only broken physics reaches."""


@dataclass(frozen=True)
class Scores:
    """Values of a reward on known episodes."""

    totals: Totals
    returns: Mapping[str, Mapping[str, float | None]]
    """Undiscounted sum of the total, by attempt and episode; None: not finite."""


NOTHING_KNOWN = Memory()
