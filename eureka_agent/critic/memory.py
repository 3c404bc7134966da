"""What a run has learned before a reward is judged, as far as the critic asks. Whoever runs the
search fills it in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from eureka_agent.rewards import RewardSpecification


@dataclass(frozen=True)
class KnownReward:
    """A reward that this run has trained or is training."""

    attempt: str
    """Attempt id."""
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
    """What a reward is compared with. Empty: every comparison is left out."""

    rewards: tuple[KnownReward, ...] = ()
    """Compared by source."""
    earlier: tuple[KnownReward, ...] = ()
    """Those of them that are compared by value too."""
    episodes: tuple[KnownEpisodes, ...] = ()


@dataclass(frozen=True)
class Totals:
    """Totals of a reward, one a step, on transitions that are the same for every reward that is
    compared. None: not finite."""

    stored: tuple[float | None, ...]
    extreme: tuple[float | None, ...]
    """On states that only broken physics reaches."""


@dataclass(frozen=True)
class Scores:
    """What a reward gives on known episodes."""

    totals: Totals
    returns: Mapping[str, Mapping[str, float | None]]
    """Undiscounted sum of the total over an episode, by attempt and episode; None: not finite."""


NOTHING_KNOWN = Memory()
