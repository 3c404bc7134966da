"""The critic's trajectory gate: of two recorded episodes, the one with clearly higher fitness must
have the higher return.

This is the Trajectory Preference Evaluation of CARD (Sun et al. 2024), on the episodes of this run:
a reward that prefers failures to successes is sent back without a training. A gate that refuses
most proposals of a generation is wrong about the task, where undiscounted sums may say nothing, and
its findings become warnings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from eureka_agent.critic.findings import finding
from eureka_agent.critic.memory import KnownEpisodes
from eureka_agent.records import Finding, Verdict

CLEAR_DIFFERENCE = 0.25
"""Part of the range of known fitness by which two episodes differ clearly. It is about the spread
of one policy's episodes on hopper and ant, and leaves about half of the pairs
(benchmarks/gate.py)."""
LEAST_RANGE = 0.05
"""Range of fitness, as a part of the largest, below which all episodes count as equally good."""
LEAST_PAIRS = 12
"""Pairs below which the gate finds nothing: about half of those between six episodes, of three
attempts."""
LEAST_ORDERED = 1 / 3
"""Part of the pairs that a reward must order right. Chance gives 0.5 ± 0.09 for 16 episodes
(Kendall's variance of tau); the rewards of the measured searches give at least 0.98
(benchmarks/gate.py). No single term below 0.5 trained well, and few above it (benchmarks/LOG.md).
So a low share says something and a high one little, and the bar is low."""

GATE = "trajectory gate"
"""Name of the critic's step."""
CODE = "G601"
LEAST_JUDGED = 3
"""Proposals that the gate must have judged before it can count as wrong."""


@dataclass(frozen=True)
class RankedEpisode:
    """A recorded episode with its fitness and the reward's return."""

    attempt: str
    episode: str
    fitness: float
    reward_return: float

    def described(self) -> str:
        """`the best episode of 1-05 (fitness 7.9) a return of -500`."""
        return (
            f"the {self.episode} episode of {self.attempt} (fitness {self.fitness:.4g}) a return of"
            f" {self.reward_return:.4g}"
        )


@dataclass(frozen=True)
class Ordering:
    """A reward's order of pairs of episodes."""

    pairs: int
    """Pairs that differ clearly in fitness."""
    right: float
    """Pairs ordered right. Equal returns count half."""
    wrong: tuple[RankedEpisode, RankedEpisode] | None
    """The wrong pair that differs most in fitness, better episode first."""


def ordering(
    episodes: Sequence[KnownEpisodes], returns: Mapping[str, Mapping[str, float | None]]
) -> Ordering:
    """Compare all pairs of episodes that have a return."""
    ranked = [
        RankedEpisode(known.attempt, name, fitness, value)
        for known in episodes
        for name, fitness in known.fitness.items()
        if (value := returns.get(known.attempt, {}).get(name)) is not None
    ]
    values = [each.fitness for each in ranked]
    spread = max(values, default=0.0) - min(values, default=0.0)
    if spread <= LEAST_RANGE * max((abs(value) for value in values), default=0.0):
        return Ordering(0, 0.0, None)
    pairs = [
        (first, second) if first.fitness > second.fitness else (second, first)
        for first, second in combinations(ranked, 2)
        if abs(first.fitness - second.fitness) > CLEAR_DIFFERENCE * spread
    ]
    returns_of = [(better.reward_return, worse.reward_return) for better, worse in pairs]
    right = sum(better > worse for better, worse in returns_of)
    equal = sum(better == worse for better, worse in returns_of)
    wrong = max(
        (pair for pair in pairs if pair[0].reward_return < pair[1].reward_return),
        key=lambda pair: pair[0].fitness - pair[1].fitness,
        default=None,
    )
    return Ordering(len(pairs), right + equal / 2, wrong)


def check_order(
    episodes: Sequence[KnownEpisodes], returns: Mapping[str, Mapping[str, float | None]]
) -> list[Finding]:
    """G601 for a reward that prefers worse episodes; nothing if too few pairs are known."""
    found = ordering(episodes, returns)
    if (
        found.pairs < LEAST_PAIRS
        or found.right >= LEAST_ORDERED * found.pairs
        or found.wrong is None
    ):
        return []
    better, worse = found.wrong
    message = (
        f"of {found.pairs} pairs of recorded episodes, only {found.right:g} have the higher return"
        f" where fitness is clearly higher: {better.described()}, {worse.described()}"
    )
    hint = (
        "make better episodes pay more in sum: look at the signs of the terms, and at what every"
        " further step adds"
    )
    return [finding(CODE, message, hint=hint)]


def judged_by_gate(verdict: Verdict) -> bool:
    """True if the gate judged the reward."""
    return GATE in verdict.steps_run


def refused_by_gate(verdict: Verdict) -> bool:
    """True if the gate refused the reward, even if only as a warning."""
    return any(found.code == CODE for found in verdict.findings)


def only_gate_refused(verdict: Verdict) -> bool:
    """True if the gate's finding is the only error."""
    return {found.code for found in verdict.findings if found.severity == "error"} == {CODE}


def is_wrong(judged: int, refused: int) -> bool:
    """True if the gate refused more than half of enough proposals."""
    return judged >= LEAST_JUDGED and 2 * refused > judged


def with_gate_warnings(verdict: Verdict) -> Verdict:
    """The verdict with the gate's findings as warnings."""
    findings = tuple(
        found.model_copy(update={"severity": "warning"}) if found.code == CODE else found
        for found in verdict.findings
    )
    return verdict.model_copy(update={"findings": findings})
