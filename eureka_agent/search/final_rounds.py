"""Rounds of final trainings: which finalists get another fresh seed.

A search is over when it knows its winner. Whatever a round has shown is weighed with all that is
known of all rewards (`eureka_agent.posterior`). The leader gets all its seeds at once, since
trainings side by side take less time than one after the other. Another finalist gets one more, but
not where it is expected to gain next to nothing over the leader, or came to the same fitness from
every seed. Once a finalist has all seeds it is the one to beat, so that of rewards that are as good
none gets the seeds of the others; one that is expected to beat it gets all of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from eureka_agent.posterior import posterior
from eureka_agent.ranking import are_level

LEAST_GAIN = 0.25
"""Expected gain over the leader, counting what is below it as 0, in deviations between seeds, above
which a finalist gets another seed (benchmarks/LOG.md)."""


def next_round(
    scores: Mapping[str, Sequence[float]], trained: Mapping[str, int], seeds: int
) -> dict[str, int]:
    """Fresh seeds that finalists are to have after the next round, for those that get any; empty
    once one has all and no other is likely to beat it.

    `scores` of all trained rewards by name, at least one of each, in the search and at the end;
    `trained`: number of fresh seeds of each finalist so far; `seeds` that the winner has.
    """
    names = list(scores)
    found = posterior(list(scores.values()))
    means = dict(zip(names, found.means, strict=True))
    done = [name for name, number in trained.items() if number >= seeds]
    best = max(trained, key=lambda name: means[name])
    leader = max(done, key=lambda name: means[name], default=best)
    ahead = found.draws - found.draws[:, [names.index(leader)]]
    gains = dict(zip(names, np.maximum(ahead, 0.0).mean(axis=0), strict=True))
    least = LEAST_GAIN * float(np.sqrt((found.noise**2).mean()))
    gains |= {name: 0.0 for name in trained if are_level(scores[name], scores[leader])}
    return {
        name: seeds if name == best else number + 1
        for name, number in trained.items()
        if number < seeds and (name == leader or gains[name] > least)
    }
