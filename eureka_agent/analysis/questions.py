"""Questions to stored episodes, such as "speed where goal_distance < 0.1": statistics of an
expression's values over the steps that meet a condition."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from eureka_agent import wording
from eureka_agent.analysis.curves import number
from eureka_agent.analysis.events import (
    Episode,
    events_of,
    finite_mean,
    length_of,
    numbers_of,
    parts_between,
    quarter_means,
    slices_of,
)
from eureka_agent.base_record import Record
from eureka_agent.errors import EurekaError
from eureka_agent.records import TaskDescription
from eureka_agent.task import FitnessReduction

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
QUARTERS = 4
Floats = npt.NDArray[np.float64]


REDUCTIONS: dict[FitnessReduction, Callable[[Floats], float]] = {
    "sum": np.sum,
    "mean": np.mean,
    "max": np.max,
    "last": lambda values: values[-1],
}
"""Fitness of an episode from that of its steps."""


class QuestionError(EurekaError):
    """An expression that cannot be asked."""


class QuestionAnswer(Record):
    """Statistics of an expression over the steps that meet a condition. None stands for a mean of
    no steps."""

    expression: str
    where: str
    episodes: int
    steps: int
    """All stored ones."""
    chosen: int
    """Steps that meet the condition, with a finite value."""
    is_condition: bool
    """The expression is true or false, so that means are shares."""
    mean: float | None
    std: float | None
    quantiles: tuple[float, ...]
    """At `QUANTILES`; empty for a condition."""
    by_quarter: tuple[float | None, ...]
    """Means in the quarters of an episode."""
    by_part: tuple[float | None, ...]
    """Means in the quarters of the parts between events; empty without events."""
    worst: float | None
    """Mean in the worst quarter of the episodes by fitness, at least one."""
    best: float | None
    """Mean in the best quarter of them."""
    worst_share: float
    """Share of the steps that meet the condition, in these worst ones."""
    best_share: float
    fitness: float | None
    """Mean fitness of the steps that meet the condition."""
    other_fitness: float | None
    """Mean fitness of the others."""


def answer(
    asked: tuple[str, str],
    values: Sequence[float | None],
    met: Sequence[float | None] | None,
    episodes: Mapping[str, Episode],
    description: TaskDescription,
) -> QuestionAnswer:
    """The answer to an expression and a condition. `values`, `met`: of each step, episode after
    episode; `met` is None without a condition. Raises QuestionError where they are not of these
    episodes."""
    lengths = [length_of(each) for each in episodes.values()]
    if len(values) != sum(lengths) or (met is not None and len(met) != len(values)):
        raise QuestionError("the values are of other steps than those of the episodes")
    whole = numbers_of(values)
    chosen = np.isfinite(whole)
    if met is not None:
        chosen &= np.array([bool(each) for each in met])
    slices = slices_of(lengths)
    rates = [_rate(it, length) for it, length in zip(episodes.values(), lengths, strict=True)]
    fitness = [_fitness(each, description) for each in rates]
    order = sorted(range(len(slices)), key=lambda each: (fitness[each] is None, fitness[each] or 0))
    known = [each for each in order if fitness[each] is not None]
    some = max(1, len(known) // QUARTERS)
    worst, best = (
        np.concatenate([np.zeros(0, int), *(np.arange(len(whole))[slices[it]] for it in part)])
        for part in (known[:some], known[-some:] if known else [])
    )
    met_alone = np.where(chosen, whole, np.nan)
    picked = whole[chosen]
    is_condition = bool(len(picked)) and bool(np.isin(picked, (0.0, 1.0)).all())
    quantiles = () if is_condition or not len(picked) else tuple(np.quantile(picked, QUANTILES))
    rate = np.concatenate(rates)
    return QuestionAnswer(
        expression=asked[0],
        where=asked[1],
        episodes=len(lengths),
        steps=len(whole),
        chosen=len(picked),
        is_condition=is_condition,
        mean=finite_mean(picked),
        std=float(picked.std()) if len(picked) else None,
        quantiles=quantiles,
        by_quarter=quarter_means(met_alone, slices),
        by_part=quarter_means(met_alone, _parts(episodes, slices, description)),
        worst=finite_mean(met_alone[worst]),
        best=finite_mean(met_alone[best]),
        worst_share=float(chosen[worst].mean()) if len(worst) else 0.0,
        best_share=float(chosen[best].mean()) if len(best) else 0.0,
        fitness=finite_mean(rate[chosen]),
        other_fitness=finite_mean(rate[~chosen]),
    )


def _rate(episode: Episode, steps: int) -> Floats:
    rate = episode.get("fitness")
    if rate is None or rate.shape != (steps,):
        return np.full(steps, np.nan)
    return rate.astype(np.float64)


def fitness_of(episode: Episode, description: TaskDescription) -> float | None:
    """Fitness of an episode; None where a step has none."""
    return _fitness(_rate(episode, length_of(episode)), description)


def _fitness(rate: Floats, description: TaskDescription) -> float | None:
    if not len(rate) or not np.isfinite(rate).all():
        return None
    return float(REDUCTIONS[description.fitness_reduction](rate))


def _parts(
    episodes: Mapping[str, Episode], slices: Sequence[slice], description: TaskDescription
) -> list[slice]:
    """Parts of the episodes between their events; none where there is no event."""
    parts, public = [], description.public_variables()
    for episode, whole in zip(episodes.values(), slices, strict=True):
        steps = whole.stop - whole.start
        jumps = [each.step for each in events_of(episode, public)]
        parts += [
            slice(whole.start + part.start, whole.start + part.stop)
            for part in parts_between(jumps, steps)
        ]
    return parts


def answer_lines(answer: QuestionAnswer) -> list[str]:
    """The answer in words."""

    def value(each: float | None) -> str:
        return f"{each:.0%}" if answer.is_condition and each is not None else number(each)

    def listed(each: Sequence[float | None]) -> str:
        return ", ".join(map(value, each))

    part = answer.chosen / answer.steps if answer.steps else 0.0
    lines = [
        f"{answer.chosen} of {answer.steps} steps ({part:.0%}) of"
        f" {wording.plural(answer.episodes, 'episode')}"
    ]
    if not answer.chosen:
        return lines
    spread = "" if answer.is_condition else f" ± {number(answer.std)}"
    lines.append(f"mean {value(answer.mean)}{spread}")
    if answer.quantiles:
        pairs = zip(QUANTILES, answer.quantiles, strict=True)
        lines.append("below: " + ", ".join(f"{each:.0%} {number(found)}" for each, found in pairs))
    lines.append(f"in the quarters of an episode: {listed(answer.by_quarter)}")
    if answer.by_part:
        lines.append(f"in the quarters of the parts between jumps: {listed(answer.by_part)}")
    shares = (
        (f" ({answer.worst_share:.0%} of their steps)", f" ({answer.best_share:.0%})")
        if answer.where
        else ("", "")
    )
    lines.append(
        f"in the worst quarter of the episodes {value(answer.worst)}{shares[0]}, in the best"
        f" {value(answer.best)}{shares[1]}"
    )
    if answer.where:
        lines.append(
            f"fitness a step there {number(answer.fitness)}, elsewhere"
            f" {number(answer.other_fitness)}"
        )
    return lines
