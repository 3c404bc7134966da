"""The critic's trajectory gate: of two recorded episodes, the one with clearly higher fitness must
have the higher return.

Trajectory Preference Evaluation of CARD (Sun et al. 2024), on the episodes that this run has
recorded: a reward that prefers failures to successes is sent back without any training. A gate that
refuses most proposals of a generation is wrong about the task (its undiscounted sums may say
nothing there), and its findings become warnings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from eureka_agent.critic.findings import finding
from eureka_agent.critic.memory import KnownEpisodes
from eureka_agent.records import Finding, Verdict

CLEAR_DIFFERENCE = 0.25
"""Part of the range of known fitness by which two episodes differ clearly: about the spread of one
policy's episodes on hopper and ant, whose order says little. It leaves about half of the pairs
(benchmarks/gate.py)."""
LEAST_RANGE = 0.05
"""Range of fitness, as a part of the largest, below which all episodes count as equally good: what
racing takes for noise too."""
LEAST_PAIRS = 12
"""Pairs below which the gate says nothing: about half of those between six episodes, which are
three attempts."""
LEAST_ORDERED = 1 / 3
"""Part of the pairs that a reward must order right. By chance it is a half, give or take 0.09 for
16 episodes (Kendall's variance of tau); the measured searches' rewards order at least 0.98
(benchmarks/gate.py). Of single terms and their opposites none below a half came to anything when it
was trained, most of those above it neither (benchmarks/LOG.md): so a low share says something, a
high one little, and the bar stands well on the clear side."""

GATE = "trajectory gate"
"""Name of the critic's step."""
CODE = "G601"
LEAST_JUDGED = 3
"""Proposals of a generation that the gate must have judged before it is said to be wrong."""


@dataclass(frozen=True)
class RankedEpisode:
    """An episode with what it was worth and what the reward gives for it."""

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
    """How a reward orders pairs of episodes."""

    pairs: int
    """That differ clearly in fitness."""
    right: float
    """A pair with equal returns counts half."""
    wrong: tuple[RankedEpisode, RankedEpisode] | None
    """Of the pairs ordered wrong the one that differs most in fitness, better one first."""


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
    right = sum(
        (
            0.5
            if better.reward_return == worse.reward_return
            else float(better.reward_return > worse.reward_return)
        )
        for better, worse in pairs
    )
    wrong = max(
        (pair for pair in pairs if pair[0].reward_return < pair[1].reward_return),
        key=lambda pair: pair[0].fitness - pair[1].fitness,
        default=None,
    )
    return Ordering(len(pairs), right, wrong)


def check_order(
    episodes: Sequence[KnownEpisodes], returns: Mapping[str, Mapping[str, float | None]]
) -> list[Finding]:
    """G601 for a reward that prefers worse episodes; nothing where too few pairs are known."""
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
    """True where a reward came as far as the gate."""
    return GATE in verdict.steps_run


def refused_by_gate(verdict: Verdict) -> bool:
    """True where the gate found fault, also where that was made a warning."""
    return any(found.code == CODE for found in verdict.findings)


def only_gate_refused(verdict: Verdict) -> bool:
    """True where nothing but the gate's finding stands against a reward."""
    return {found.code for found in verdict.findings if found.severity == "error"} == {CODE}


def is_wrong(judged: int, refused: int) -> bool:
    """True where the gate refused more than half of the proposals that it judged, and these were
    enough to tell."""
    return judged >= LEAST_JUDGED and 2 * refused > judged


def with_gate_warnings(verdict: Verdict) -> Verdict:
    """The verdict with the gate's findings as warnings."""
    findings = tuple(
        found.model_copy(update={"severity": "warning"}) if found.code == CODE else found
        for found in verdict.findings
    )
    return verdict.model_copy(update={"findings": findings})
