"""Is one reward better than another beyond the noise of a few seeds? And a run's verdict in words."""

from __future__ import annotations

import math
import shlex
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eureka_agent.records import RunStatus, Score, Stage
from eureka_agent.report import wording
from eureka_agent.report.ledger import format_money
from eureka_agent.report.run_report import RunReport

STUDENT_T_975 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""0.975 quantile of Student's t for 1 to 10 degrees of freedom."""


def student_t_975(degrees_of_freedom: float) -> float:
    """0.975 quantile of Student's t; degrees of freedom are rounded down, which widens the interval."""
    whole = max(1, math.floor(degrees_of_freedom))
    if whole <= len(STUDENT_T_975):
        return STUDENT_T_975[whole - 1]
    return 1.960 + 2.4 / whole + 3.2 / whole**2  # within 0.005 of the table from 11 on, and falls to the normal's 1.960


@dataclass(frozen=True)
class Comparison:
    """Difference of two means with Welch's 95 % interval (B. L. Welch, 1947)."""

    difference: float
    low: float
    high: float

    @property
    def better(self) -> bool:
        return self.low > 0

    @property
    def worse(self) -> bool:
        return self.high < 0


def compare(ours: Sequence[float], theirs: Sequence[float]) -> Comparison | None:
    """`ours` minus `theirs`, one value per seed; None where either has fewer than two seeds."""
    if len(ours) < 2 or len(theirs) < 2:
        return None
    difference = statistics.fmean(ours) - statistics.fmean(theirs)
    parts = [(statistics.variance(values) / len(values), len(values)) for values in (ours, theirs)]
    variance = sum(part for part, _ in parts)
    if variance == 0:
        return Comparison(difference, difference, difference)
    degrees_of_freedom = variance**2 / sum(part**2 / (size - 1) for part, size in parts)
    margin = student_t_975(degrees_of_freedom) * math.sqrt(variance)
    return Comparison(difference, difference - margin, difference + margin)


def compare_scores(ours: Score, theirs: Score) -> str:
    """A sentence: better, worse, or not told apart, with the numbers."""
    comparison = compare(known_fitness(ours), known_fitness(theirs))
    if comparison is None:
        if ours.mean is None or theirs.mean is None:
            return f"It cannot be compared with the {theirs.name} reward: one of them has no fitness."
        higher = "higher" if ours.mean > theirs.mean else "lower" if ours.mean < theirs.mean else "the same"
        return (
            f"Against the {theirs.name} reward ({wording.number(theirs.mean)}) it is {higher}, "
            "but one seed cannot tell that from noise."
        )
    if comparison.low == comparison.high == 0:
        return f"It is exactly as good as the {theirs.name} reward: {wording.number(ours.mean)} from every seed."
    interval = (
        f"difference {wording.number(comparison.difference)}, 95 % interval {wording.number(comparison.low)} to "
        f"{wording.number(comparison.high)} (Welch)"
    )
    against = f"the {theirs.name} reward ({wording.plus_minus(theirs.mean, theirs.std)})"
    if comparison.better:
        return f"It is better than {against} beyond the noise of the seeds: {interval}."
    if comparison.worse:
        return f"It is worse than {against} beyond the noise of the seeds: {interval}."
    return f"These seeds do not tell it apart from {against}: {interval}."


def mean_chosen_apart(finalists: Sequence[Score]) -> float | None:
    """What choosing the best of several finalists gives when the seed that scores is not among those that choose.

    Every seed in turn is left out, the finalist with the highest mean over the others is taken, and its fitness from that seed counts: a
    leave-one-out estimate, free of the luck that the highest of several means has. None for one finalist, one seed, or a failed training.
    """
    if len(finalists) < 2 or len({score.seeds for score in finalists}) != 1 or len(finalists[0].seeds) < 2:
        return None
    rows = [known_fitness(score) for score in finalists]
    if any(len(row) != len(finalists[0].seeds) for row in rows):
        return None
    left_out = []
    for place in range(len(rows[0])):
        others = [math.fsum(row[:place] + row[place + 1 :]) for row in rows]
        best = max(others)
        # equals are taken equally: the seed left out must not decide among them
        left_out.append(statistics.fmean(row[place] for row, sum_ in zip(rows, others, strict=True) if sum_ == best))
    return statistics.fmean(left_out)


def known_fitness(score: Score) -> list[float]:
    """Fitness of the seeds whose training did not fail."""
    return [value for value in score.fitness if value is not None]


def verdict(report: RunReport) -> str:
    """One paragraph: what won, how sure that is, against whom, and what it cost."""
    return " ".join([*_winner(report), *_metric(report), *_state(report), cost_sentence(report), *_sentences(report)])


def _metric(report: RunReport) -> list[str]:
    """Whose measure it is, where it is not the task's own."""
    if not report.fitness_origin:
        return []
    origin = f"{report.fitness_origin[:1].upper()}{report.fitness_origin[1:]}"
    return [f"{origin}: the scores hold for that fitness only, and there is no human reward to compare them with."]


def _winner(report: RunReport) -> list[str]:
    best = report.best
    if best is None:
        if not report.attempts:
            return ["No reward function was proposed."]
        return [f"No reward function was trained to an end: {_how_attempts_stand(report)}."]
    operator = wording.words(best.proposal.operator.value)
    score = report.best_score
    if score is None or score.mean is None:
        seeds = "one seed" if len(best.fitness_per_seed) == 1 else f"{len(best.fitness_per_seed)} seeds"
        return [
            f"The best reward function is attempt {best.id} ({operator}) with a fitness of {_fitness(report, best.fitness)} "
            f"in the search, from {seeds}: it was not trained again from fresh ones, so this number favours luck."
        ]
    failed = sum(value is None for value in score.fitness)
    failures = f", {wording.plural(failed, 'of them failed', 'of them failed')}" if failed else ""
    sentences = [
        f"The best reward function is attempt {best.id} ({operator}). Trained again with "
        f"{wording.plural(len(score.seeds), 'fresh seed')}{failures}, it reaches a fitness of "
        f"{_fitness(report, score.mean, score.std)}. Fitness is {report.description.fitness_doc.rstrip('.')}."
    ]
    apart = mean_chosen_apart(report.finalists)
    if apart is not None:
        sentences.append(
            f"It is the best of {len(report.finalists)} finalists on these seeds, which favours luck: taking the best of them by the other "
            f"seeds gives {_fitness(report, apart)} on the one left out."
        )
    if best.outcome is not None and best.outcome.success_rate is not None:
        sentences.append(
            f"In the search {best.outcome.success_rate:.0%} of its first policy's episodes solved the task."
        )
    baselines = {name: found for name in ("sparse", "human") if (found := report.score(name)) is not None}
    sentences += [compare_scores(score, baseline) for baseline in baselines.values()]
    if score.human_normalized is not None:
        sentences.append(
            f"Its human-normalised score is {wording.number(score.human_normalized)}: 0 is the sparse reward, and one unit is "
            f"the distance to the human reward{_human_below_sparse(baselines)}."
        )
    return sentences


def _how_attempts_stand(report: RunReport) -> str:
    """How many attempts were rejected, failed, were stopped or are under way."""
    counts = Counter(attempt.stage for attempt in report.attempts)
    parts = {
        "rejected by the critic": counts[Stage.REJECTED],
        "failed in training": counts[Stage.FAILED],
        "stopped in training": counts[Stage.STOPPED],
    }
    parts["not done"] = len(report.attempts) - sum(parts.values())
    amount = wording.plural(len(report.attempts), "attempt")
    return f"of {amount}, " + ", ".join(f"{number} {what}" for what, number in parts.items() if number)


def _state(report: RunReport) -> list[str]:
    if report.status is RunStatus.FINISHED:
        return []
    if report.status is RunStatus.RUNNING:
        return ["The run is being worked on right now, so none of this is final."]
    failed = report.status is RunStatus.FAILED  # else the message, where there is one, says how to go on
    reason = f": {report.message.splitlines()[0].rstrip('.')}" if failed and report.message else ""
    command = shlex.join(["eureka", "resume", str(report.folder)])
    return [f"The run is {report.status.value}{reason}; `{command}` goes on with it."]


def _sentences(report: RunReport) -> list[str]:
    """What a budget came to and what went otherwise, as sentences."""
    return [f"{text[:1].upper()}{text[1:]}." for text in (*report.budget, *report.remarks)]


def cost_sentence(report: RunReport) -> str:
    """What the run has cost, in words."""
    cost = report.cost
    parts = [f"{cost.search_trainings} in the search"]
    if cost.final_trainings:
        parts.append(f"{cost.final_trainings} final")
    if cost.baseline_trainings:
        parts.append(f"{cost.baseline_trainings} of baselines")
    return (
        f"It took {wording.plural(cost.trainings, 'training')} ({', '.join(parts)}), {wording.count(cost.env_steps)} env steps "
        f"and {wording.duration(report.seconds)} of wall time; {model_cost(report)}."
    )


def model_cost(report: RunReport) -> str:
    """Requests, tokens and money; `"no LLM"` for the offline designer."""
    cost = report.cost
    if cost.requests == 0:
        return "no LLM was asked"
    money = "at a cost that is not known" if cost.money is None else f"for {format_money(cost.money)}"
    tokens = f"{wording.count(cost.prompt_tokens + cost.completion_tokens)} tokens"
    if cost.uncounted:
        tokens += f", {wording.plural(cost.uncounted, 'reply', 'replies')} without a count"
    asked = ", ".join(dict.fromkeys(line.model for line in report.ledger.by_role)) or report.designer
    return (
        f"{asked} {'were' if ', ' in asked else 'was'} asked {wording.plural(cost.requests, 'time')} ({tokens}) {money}"
    )


def _fitness(report: RunReport, mean: float | None, deviation: float | None = None) -> str:
    unit = report.description.fitness_unit
    return wording.plus_minus(mean, deviation) + (f" {unit}" if unit not in ("", "1") else "")


def _human_below_sparse(baselines: Mapping[str, Score]) -> str:
    human, sparse = baselines["human"].mean, baselines["sparse"].mean
    below = human is not None and sparse is not None and human < sparse
    return ", which is below the sparse one here" if below else ""
