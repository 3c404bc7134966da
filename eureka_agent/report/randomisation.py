"""The best reward under distributions of parameters, in words and tables."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from eureka_agent import wording
from eureka_agent.archive.artefacts import POLICY, RANDOMISED
from eureka_agent.parameters import values_text
from eureka_agent.randomisation_records import Prior, RandomisedParameters, RangeScore
from eureka_agent.records import Attempt
from eureka_agent.report.blocks import Block, Grid, Items, Words
from eureka_agent.report.comparison import FEWEST_SEEDS, Comparison, compare
from eureka_agent.report.run_report import RunReport

_NOTE = (
    "All are the best reward, trained from the same seeds for the same env steps; ± is the standard"
    " deviation over the seeds. Over the safe ranges all parameters are drawn anew for each of {}"
    " of a policy. The best distribution was chosen by other draws than these; the trainings are"
    " the same, so that some of the luck in them is left."
)
_TOLD = {
    "better than": ("helped", "better beyond the noise of the seeds"),
    "worse than": ("did not help", "worse beyond the noise of the seeds"),
    "not told apart from": ("did not help beyond noise", "which is not told apart"),
}
"""Verb and end of the sentence, by a comparison's relation."""


def distributions(report: RunReport) -> list[tuple[RandomisedParameters, tuple[RangeScore, ...]]]:
    """Distributions for the best reward, each with the scores of its policies."""
    best = "" if report.best is None else report.best.id
    return [
        (each.proposal.distribution, each.range_scores)
        for each in report.randomised
        if each.proposal.distribution is not None and each.proposal.parents == (best,)
    ]


def randomisation_blocks(report: RunReport) -> list[Block]:
    """The section of a report."""
    winner = report.best
    if winner is None or (found := winner.randomisation) is None:
        return []
    blocks: list[Block] = [Words(sentence(report, winner))]
    under = distributions(report)
    scored = [(winner.id, "defaults", "none", winner.range_scores)]
    scored += [(f"{winner.id}+{each.name}", each.name, each.text, known) for each, known in under]
    if scored := [each for each in scored if each[-1]]:
        titles = ["distribution", "parameters in the training"]
        titles += [f"fitness{report.unit_note} at the defaults"]
        titles += ["over the safe ranges", "worst quarter there"]
        rows = [[name, text, *_numbers(scores)] for _, name, text, scores in scored]
        blocks.append(Grid(titles, rows, f"{winner.id}+{found.best}", [each[0] for each in scored]))
        episodes = wording.plural(report.settings.evaluation_episodes, "episode")
        blocks.append(Words(_NOTE.format(episodes), "muted"))
        reasons = [(each, each.reason.rstrip(".") or "-") for each, _ in under]
        lines = ((f"{each.name} ({each.author}): {why}", *each.notes) for each, why in reasons)
        blocks.append(Items([". ".join(line) for line in lines]))
        policy = report.folder / RANDOMISED / POLICY
        blocks += [Words(f"Its policy: `{policy}`")] if policy.is_file() else []
    return [*blocks, *(_prior_blocks(report, found.prior) if found.prior is not None else [])]


def _numbers(scores: Sequence[RangeScore]) -> tuple[str, ...]:
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


# ── the comparison ────────────────────────────────────────────────────────────────────────────────


def _compared(report: RunReport, winner: Attempt) -> tuple[list[float], list[float]]:
    """Fitness over the safe ranges of each policy of the best distribution, and of the control."""
    best = None if winner.randomisation is None else winner.randomisation.best
    scores = {each.name: scores for each, scores in distributions(report)}
    ours = scores.get(best or "", ())
    return _means(ours), _means(winner.range_scores)


def _means(scores: Sequence[RangeScore]) -> list[float]:
    return [each.held_out.mean for each in scores if each.held_out is not None]


def comparison(report: RunReport, winner: Attempt) -> Comparison | None:
    """The best distribution less the defaults, over the safe ranges; None with too few seeds."""
    ours, theirs = _compared(report, winner)
    return compare(ours, theirs) if min(len(ours), len(theirs)) >= FEWEST_SEEDS else None


def sentence(report: RunReport, winner: Attempt) -> str:
    """Sentences on the best distribution, and whether it helps beyond the noise of its seeds."""
    found = winner.randomisation
    if found is None or found.best is None:
        why = "" if found is None else found.text
        return f"No distribution is chosen: {why or 'the search over them has not ended'}."
    ours, theirs = _compared(report, winner)
    if not ours or not theirs:
        return f"The best distribution is {found.best}, which nothing can be compared with."
    unit = f" {report.description.fitness_unit}" if report.unit_note else ""
    result = (
        f"over the whole safe ranges the policies of the best distribution, {found.best}, have"
        f" {_mean_text(ours)}{unit} against {_mean_text(theirs)}{unit} of those trained at the"
        " defaults"
    )
    compared = comparison(report, winner)
    if compared is None:
        seeds = wording.plural(min(len(ours), len(theirs)), "seed is", "seeds are")
        return (
            f"Not sure whether randomising helped: {result}, and {seeds} too few for an interval"
            f" ({FEWEST_SEEDS} give one)."
        )
    verb, end = _TOLD[compared.relation]
    interval = f"{wording.number(compared.low)} to {wording.number(compared.high)}"
    rest = f"95 % interval of the difference (Welch): {interval}"
    return f"Randomising {verb}: {result}, {end}. {rest}."


# ── the prior ─────────────────────────────────────────────────────────────────────────────────────


def _prior_blocks(report: RunReport, prior: Prior) -> list[Block]:
    """What works, and for each parameter the interval in which the policy works, and all its
    values with marks by which one sees it: `░░██████░`."""
    base, floor, threshold = map(wording.number, (prior.base, prior.floor, prior.threshold))
    safe = {each.name: each for each in report.description.parameters}
    lines = []
    for each in prior.parameters:
        known = [(score.value, score.fitness) for score in each.scores]
        works = (value is not None and value >= prior.threshold for _, value in known)
        values = ", ".join(f"{value:g}: {wording.number(fitness)}" for value, fitness in known)
        lines.append(
            f"{each.name}: {''.join('█' if one else '░' for one in works)} works at"
            f" {values_text(each.low, each.high)}"
            f" of {values_text(safe[each.name].low, safe[each.name].high)}; fitness by value:"
            f" {values}"
        )
    words = (
        f"Each parameter alone was set to fixed values, {prior.episodes} episodes each. The policy"
        f" works (█) where it keeps half of what training gained: fitness {threshold} or more,"
        f" after {floor} at its beginning and {base} at the defaults."
    )
    return [Words(words), Items(lines)]
