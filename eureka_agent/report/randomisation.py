"""Search over distributions of parameters, in words and tables."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eureka_agent import wording
from eureka_agent.parameters import values_text
from eureka_agent.randomisation_records import (
    CONTROL,
    ParameterPrior,
    Prior,
    Randomisation,
    RandomisedScore,
)
from eureka_agent.report.comparison import FEWEST_SEEDS, Comparison, compare
from eureka_agent.report.run_report import RunReport


@dataclass(frozen=True)
class Row:
    """Trainings under one distribution, in a table with `titles`."""

    name: str
    cells: tuple[str, ...]
    """All cells but the name."""
    is_best: bool


def titles(report: RunReport) -> tuple[str, ...]:
    """Titles of the columns of `rows`."""
    fitness = f"fitness{report.unit_note}"
    return (
        "distribution",
        "parameters in the training",
        f"{fitness} at the defaults",
        "over the safe ranges",
        "worst quarter there",
    )


def rows(report: RunReport, found: Randomisation) -> list[Row]:
    """The trainings under the defaults, then those under each distribution that was trained."""
    names = {CONTROL: "none", **{each.name: each.text for each in found.distributions}}
    return [
        Row(name or "defaults", (text, *_numbers(scores)), is_best=name == found.best)
        for name, text in names.items()
        if (scores := found.scores_of(name))
    ]


def _numbers(scores: Sequence[RandomisedScore]) -> tuple[str, ...]:
    """Mean and spread over the seeds: at the defaults, over the safe ranges, of its worst."""
    held_out = [each.held_out for each in scores if each.held_out is not None]
    return (
        _mean_text(each.fitness for each in scores if each.fitness is not None),
        _mean_text(each.mean for each in held_out),
        _mean_text(each.worst_quarter for each in held_out),
    )


def _mean_text(values: Iterable[float]) -> str:
    known = list(values)
    if not known:
        return wording.MISSING
    deviation = statistics.stdev(known) if len(known) > 1 else None
    return wording.plus_minus(statistics.fmean(known), deviation)


def note(report: RunReport) -> str:
    """Sentences on the conditions of the table."""
    episodes = wording.plural(report.settings.evaluation_episodes, "episode")
    return (
        "All are the best reward, trained from the same seeds for the same env steps; ± is the"
        " standard deviation over the seeds. Over the safe ranges all parameters are drawn anew for"
        f" each of {episodes} of a policy. The best distribution was chosen by other draws than"
        " these; the trainings are the same, so that some of the luck in them is left."
    )


def reasons(found: Randomisation) -> list[str]:
    """A line for each distribution: its reason, its author, and what was changed in it."""
    return [
        ". ".join([f"{each.name} ({each.author}): {each.reason.rstrip('.') or '-'}", *each.notes])
        for each in found.distributions
    ]


# ── the comparison ────────────────────────────────────────────────────────────────────────────────


def comparison(found: Randomisation) -> Comparison | None:
    """The best distribution less the defaults, over the safe ranges; None with too few seeds."""
    if found.best is None:
        return None
    ours, theirs = _means(found, found.best), _means(found, CONTROL)
    return compare(ours, theirs) if min(len(ours), len(theirs)) >= FEWEST_SEEDS else None


def _means(found: Randomisation, name: str) -> list[float]:
    held_out = [each.held_out for each in found.scores_of(name)]
    return [each.mean for each in held_out if each is not None]


def sentence(report: RunReport, found: Randomisation) -> str:
    """Sentences on the best distribution, and whether it helps beyond the noise of its seeds."""
    if found.best is None:
        return f"No distribution is chosen: {found.text or 'the search over them has not ended'}."
    ours, theirs = _means(found, found.best), _means(found, CONTROL)
    if not ours or not theirs:
        return f"The best distribution is {found.best}, which nothing can be compared with."
    unit = f" {report.description.fitness_unit}" if report.unit_note else ""
    values = f"{_mean_text(ours)}{unit} against {_mean_text(theirs)}{unit}"
    result = (
        f"over the whole safe ranges the policies of the best distribution, {found.best}, have"
        f" {values} of those trained at the defaults"
    )
    compared = comparison(found)
    if compared is None:
        seeds = wording.plural(min(len(ours), len(theirs)), "seed is", "seeds are")
        return (
            f"Not sure whether randomising helped: {result}, and {seeds} too few for an interval"
            f" ({FEWEST_SEEDS} give one)."
        )
    interval = f"{wording.number(compared.low)} to {wording.number(compared.high)}"
    rest = f"95 % interval of the difference (Welch): {interval}"
    if compared.better:
        return f"Randomising helped: {result}, better beyond the noise of the seeds. {rest}."
    if compared.worse:
        return f"Randomising did not help: {result}, worse beyond the noise of the seeds. {rest}."
    return f"Randomising did not help beyond noise: {result}, which is not told apart. {rest}."


# ── the prior ─────────────────────────────────────────────────────────────────────────────────────


def prior_sentence(prior: Prior) -> str:
    """Sentence on what a value that works is."""
    base, floor, threshold = map(wording.number, (prior.base, prior.floor, prior.threshold))
    return (
        f"Each parameter alone was set to fixed values, {prior.episodes} episodes each. The policy"
        f" works (█) where it keeps half of what training gained: fitness {threshold} or more,"
        f" after {floor} at its beginning and {base} at the defaults."
    )


def prior_lines(report: RunReport, found: Randomisation) -> list[str]:
    """A line for each parameter: the interval in which the policy works, and all its values."""
    if found.prior is None:
        return []
    safe = {each.name: each for each in report.description.parameters}
    threshold = found.prior.threshold
    return [
        f"{each.name}: {_values_that_work(each, threshold)} works at"
        f" {values_text(each.low, each.high)}"
        f" of {values_text(safe[each.name].low, safe[each.name].high)}; fitness by value:"
        f" {', '.join(_value_text(*pair) for pair in _pairs(each))}"
        for each in found.prior.parameters
    ]


def _values_that_work(prior: ParameterPrior, threshold: float) -> str:
    """`░░██████░`: a mark for each value, by which one sees where the policy works."""
    works = (fitness is not None and fitness >= threshold for _, fitness in _pairs(prior))
    return "".join("█" if each else "░" for each in works)


def _pairs(prior: ParameterPrior) -> list[tuple[float, float | None]]:
    return [(each.value, each.fitness) for each in prior.scores]


def _value_text(value: float, fitness: float | None) -> str:
    return f"{value:g}: {wording.number(fitness)}"
