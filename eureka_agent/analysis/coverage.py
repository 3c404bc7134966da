"""Coverage: trainings that never came to what the fitness pays for. A better reward may not help
there: Eureka's loop on a humanoid, where none of 24 candidates walked, lacked states, not terms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from eureka_agent import wording
from eureka_agent.analysis.curves import Evidence
from eureka_agent.analysis.events import Episode
from eureka_agent.records import BASELINES, Attempt, DiagnosisFinding, Score, Stage, TaskDescription

CODE = "never-paid"
EARLY_SHARE = 0.5
"""Share of the evaluated episodes from which an early end is named as an obstacle."""
MORE = 4
"""Factor of the env steps that is proposed."""
_NUMBERS_SHOWN = 8
_ALWAYS_THERE = ("actions", "terminated", "succeeded")


def never_paid(evidence: Evidence) -> list[DiagnosisFinding]:
    """The fitness was the same number at every checkpoint and in every evaluated episode, and the
    task is not solved: nothing that it pays for ever happened."""
    read = set(evidence.description.fitness_variables) - set(_ALWAYS_THERE)
    if evidence.failure or not read or not (evidence.evaluation and evidence.evaluation.episodes):
        return []
    episodes = evidence.evaluation.episodes
    values = {each.fitness for each in evidence.checkpoints} - {None}
    values |= {each.fitness for each in episodes}
    if len(values) != 1 or not evidence.checkpoints:
        return []
    value, solved = episodes[0].fitness, evidence.description.success_fitness
    if value >= solved if solved is not None else value != 0.0:
        return []
    seen = ranges_text(evidence.visited)
    message = (
        f"Fitness was {wording.number(value)} at every checkpoint and in all {len(episodes)}"
        f" evaluated episodes: nothing that it pays for ever happened."
        + (f" In the recorded ones {seen}." if seen else "")
    )
    good = evidence.good_ends()
    early = Counter(each.ended_by for each in episodes if each.ended_by not in good)
    often = early.total() > EARLY_SHARE * len(episodes)
    return [
        DiagnosisFinding(
            code=CODE,
            message=message,
            advice="pay for each small step on the way to it, from the start states on",
            cause=early.most_common(1)[0][0] if often else None,
            value=value,
        )
    ]


def visited(
    episodes: Mapping[str, Episode], description: TaskDescription
) -> dict[str, tuple[float, float]]:
    """Lowest and highest value of each number that the fitness reads, over the recorded episodes:
    `{"goal_distance": (0.19, 0.42), "position[0]": …}`."""
    found: dict[str, tuple[float, float]] = {}
    for name in description.fitness_variables:
        arrays = [episode[name] for episode in episodes.values() if name in episode]
        if name in _ALWAYS_THERE or not arrays:
            continue
        values = np.concatenate([each.astype(np.float64) for each in arrays])
        columns = {"": values} if values.ndim == 1 else {}
        if values.ndim == 2:
            columns = {f"[{place}]": values[:, place] for place in range(values.shape[1])}
        for place, column in columns.items():
            if len(column) and np.isfinite(column).all():
                found[f"{name}{place}"] = float(column.min()), float(column.max())
    return dict(list(found.items())[:_NUMBERS_SHOWN])


def ranges_text(ranges: Mapping[str, tuple[float, float]]) -> str:
    """`goal_distance was 0.19 to 0.42, success 0`; empty without any."""
    parts: list[str] = []
    for name, (low, high) in ranges.items():
        first, last = wording.number(low), wording.number(high)
        span = first if first == last else f"{first} to {last}"
        parts.append(f"{name}{'' if parts else ' was'} {span}")
    return ", ".join(parts)


@dataclass(frozen=True)
class Coverage:
    """Lack of coverage: no training of a search came to what the fitness pays for."""

    fitness: float
    """Fitness of all trainings."""
    trainings: int
    baselines: tuple[str, ...]
    """Baselines that did not reach it either."""
    visited: Mapping[str, tuple[float, float]]
    """Lowest and highest value of each number that the fitness reads, over recorded episodes."""
    proposals: tuple[str, ...]
    """Changes that could help where no reward does."""

    @property
    def fact(self) -> str:
        """Sentence on the trainings, without the baselines."""
        return self._said(wording.plural(self.trainings, "training"))

    @property
    def text(self) -> str:
        others = " and ".join(f"the {name} reward" for name in self.baselines)
        who = wording.plural(self.trainings, "training")
        return self._said(f"{who}, and those of {others}," if others else who)

    def _said(self, who: str) -> str:
        seen = ranges_text(self.visited)
        return (
            f"{who} never came to what the fitness pays for: it was"
            f" {wording.number(self.fitness)} from first to last"
            + (f"; in recorded episodes {seen}" if seen else "")
        )


def coverage(
    attempts: Sequence[Attempt], scores: Sequence[Score], description: TaskDescription, steps: int
) -> Coverage | None:
    """Lack of coverage of these attempts (also in brief) and the baselines; None where any of them
    came to what the fitness pays for. `steps`: env steps of a training."""
    trained = [each for each in attempts if each.stage is Stage.TRAINED]
    findings = [_finding(each) for each in trained]
    found = [each for each in findings if each is not None]
    fitness = {value for each in trained for value in each.fitness_per_seed}
    baselines = [each for each in scores if each.name in BASELINES and each.mean is not None]
    others = {value for each in baselines for value in each.fitness if value is not None}
    if not found or len(found) < len(trained) or len(fitness | others) != 1:
        return None
    seen: dict[str, tuple[float, float]] = {}
    for each in trained:
        for name, (low, high) in (each.diagnosis.visited if each.diagnosis else {}).items():
            lowest, highest = seen.get(name, (low, high))
            seen[name] = min(low, lowest), max(high, highest)
    return Coverage(
        fitness=fitness.pop(),
        trainings=sum(len(each.fitness_per_seed) for each in trained),
        baselines=tuple(each.name for each in baselines),
        visited=seen,
        proposals=what_could_help(trained, description, steps),
    )


def nothing_told_apart(attempts: Sequence[Attempt], description: TaskDescription) -> str:
    """Sentence on attempts whose trainings all ended at one fitness that none had to learn, so that
    final trainings would tell nothing; empty for others, and where strengths rank."""
    trained = [each for each in attempts if each.stage is Stage.TRAINED and each.outcome]
    values = [value for each in trained for value in each.fitness_per_seed]
    if len(trained) < 2 or len(set(values)) != 1 or any(each.strength for each in trained):
        return ""
    solved = description.success_fitness
    begun = [each.outcome.checkpoints[0].fitness for each in trained if each.outcome]
    rose = any(first is not None and first < values[0] for first in begun)
    if rose if solved is None else values[0] >= solved:
        return ""
    count = wording.plural(len(values), "training")
    return (
        f"the {count} of {len(trained)} rewards all ended at a fitness of"
        f" {wording.number(values[0])}, so fresh seeds would tell none of them apart"
    )


def _finding(attempt: Attempt) -> DiagnosisFinding | None:
    findings = () if attempt.diagnosis is None else attempt.diagnosis.findings
    return next((each for each in findings if each.code == CODE), None)


def what_could_help(
    attempts: Sequence[Attempt], description: TaskDescription, steps: int
) -> tuple[str, ...]:
    """Changes that could help where no reward does. `steps`: env steps of a training."""
    found = [each for each in map(_finding, attempts) if each is not None]
    causes = Counter(each.cause for each in found if each.cause is not None)
    seconds = description.max_episode_length * description.control_dt
    if causes.total() > EARLY_SHARE * len(found):
        time = f"start states farther from {causes.most_common(1)[0][0]}, which ends most episodes"
    else:
        time = f"longer episodes (now {seconds:g} s)"
    return (
        "start states nearer to what is paid for, in a part of the episodes, and a curriculum that"
        " moves them back",
        time,
        f"more env steps (now {steps:,})",
    )
