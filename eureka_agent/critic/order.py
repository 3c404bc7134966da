"""How a reward orders recorded episodes: of two that differ clearly in fitness, the better one
should have the higher return.

This is the Trajectory Preference Evaluation of CARD (Sun et al. 2024), on the episodes of this run.
It decides nothing, since it foretold nothing: of 88 rewards that it would have refused none was
bad, and undiscounted sums say nothing of some tasks (benchmarks/LOG.md). Designers are told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from eureka_agent.critic.memory import KnownEpisodes
from eureka_agent.records import EpisodeOrder

CLEAR_DIFFERENCE = 0.25
"""Part of the range of known fitness by which two episodes differ clearly. It is about the spread
of one policy's episodes on hopper and ant, and leaves about half of the pairs."""
LEAST_RANGE = 0.05
"""Range of fitness, as a part of the largest, below which all episodes count as equally good."""
LEAST_PAIRS = 12
"""Pairs below which nothing is told: about half of those between six episodes, of three
attempts."""


def episode_order(
    episodes: Sequence[KnownEpisodes], returns: Sequence[Mapping[str, float | None]]
) -> EpisodeOrder | None:
    """A reward's order of all pairs of episodes; None for too few. `returns`: by episode, None
    where not finite."""
    ranked = [
        (fitness, value)
        for known, values in zip(episodes, returns, strict=True)
        for name, fitness in known.fitness.items()
        if (value := values.get(name)) is not None
    ]
    fitness = [each for each, _ in ranked]
    spread = max(fitness, default=0.0) - min(fitness, default=0.0)
    if spread <= LEAST_RANGE * max(map(abs, fitness), default=0.0):
        return None
    pairs = [
        (first[1], second[1]) if first[0] > second[0] else (second[1], first[1])
        for first, second in combinations(ranked, 2)
        if abs(first[0] - second[0]) > CLEAR_DIFFERENCE * spread
    ]
    if len(pairs) < LEAST_PAIRS:
        return None
    right = sum(better > worse for better, worse in pairs)
    equal = sum(better == worse for better, worse in pairs)
    return EpisodeOrder(pairs=len(pairs), right=right + equal / 2)
