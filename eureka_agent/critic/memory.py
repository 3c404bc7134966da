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
    episodes: tuple[KnownEpisodes, ...] = ()
    practice: tuple[KnownEpisodes, ...] = ()
    """Episodes of the same attempts' policies early in their trainings."""


NOTHING_KNOWN = Memory()
