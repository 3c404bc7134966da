"""A run's verdict in four lines: best reward, comparison with baselines, certainty, next step."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import dataclass

from eureka_agent import wording
from eureka_agent.analysis.coverage import EARLY_SHARE, MORE, what_could_help
from eureka_agent.attempt_words import TIME_OUT
from eureka_agent.invocation import command
from eureka_agent.records import BASELINES, Attempt, RunStatus, Score, Stage
from eureka_agent.report import comparison
from eureka_agent.report.run_report import RunReport
from eureka_agent.settings import SearchSettings

SURE_ENOUGH = 0.9
"""Probability of being the best from which no further comparison is advised."""
LESS = 4
"""Divisor of the env steps that is advised where all rewards reach the same fitness."""
MORE_SEEDS = 5
"""Fewest final seeds of the advice: enough for an interval."""
ENOUGH_SEEDS = 10
"""Most final seeds of the advice for a mean above the sparse reward's, but within the noise."""


@dataclass(frozen=True, kw_only=True)
class RunVerdict:
    """Lines of a verdict."""

    best: str
    against: str
    certainty: str
    advice: str
    """Next step, without its command."""
    command: str
    """Command of the next step, to be pasted into a shell."""
    coverage: str = ""
    """Sentence on a lack of coverage; empty where there is none."""

    def lines(self) -> dict[str, str]:
        """The lines by name; the command belongs below the last one."""
        lines = {"best": self.best, "against": self.against, "certainty": self.certainty}
        lines |= {"coverage": self.coverage} if self.coverage else {}
        return lines | {"next": f"{self.advice}:"}


def verdict(report: RunReport) -> RunVerdict:
    """Verdict on a run so far."""
    if not report.settings.iterations and report.status is RunStatus.FINISHED:
        return _on_baselines(report)
    advice, arguments = _next(report)
    return RunVerdict(
        best=_best(report),
        against=_against(report),
        certainty=_certainty(report),
        advice=advice,
        command=command(shlex.join(arguments)),
        coverage="" if report.coverage is None else report.coverage.text,
    )


def _on_baselines(report: RunReport) -> RunVerdict:
    """Verdict on a run that trained the baselines alone."""
    baselines = _baselines(report)
    known = [each for each in baselines if each.mean is not None]
    against = "nothing: one of the two is missing or failed from every seed"
    certainty = "nothing to be sure of"
    if len(known) == len(BASELINES):
        human, sparse = known
        against = (
            f"human is {_relation(report, human, sparse)} sparse ({wording.number(sparse.mean)})"
        )
        interval = _interval(report, human, sparse)
        certainty = f"95 % interval of the difference (Welch): {interval}"
        if interval is None:
            fewest = comparison.FEWEST_SEEDS
            certainty = f"not sure, no interval: fewer than {fewest} seeds of one of them"
        elif not interval:
            certainty = "not sure: the scores differ too much from seed to seed"
    scores = [f"{each.name} {fitness_text(report, each.mean, each.std)}" for each in baselines]
    usual = str(SearchSettings.model_fields["iterations"].default)
    return RunVerdict(
        best=f"no search (--iterations 0): {', '.join(scores) or 'no baseline was trained'}",
        against=against,
        certainty=certainty,
        advice="search for a better reward",
        command=command(shlex.join(report.arguments("--iterations", usual))),
    )


def best_fitness(report: RunReport) -> str:
    """`2.00 ± 0.10 m` over fresh seeds, or the best attempt's fitness in the search, or its
    strength; a dash."""
    score = report.best_score
    if (strong := report.by_strength) is not None:
        return wording.strength(strong.strength, strong.deviation)
    if report.best is None or not report.is_measured:
        return wording.MISSING
    if score is not None and score.mean is not None:
        return fitness_text(report, score.mean, score.std)
    return fitness_text(report, report.best.fitness)


def why_not_normalized(report: RunReport) -> str:
    """Why the best attempt has no human-normalised score, in few words; empty where it has one."""
    score, human, sparse = report.best_score, *map(report.score, BASELINES)
    reasons = {
        "": score is not None and score.human_normalized is not None,
        "no fitness ranks": report.by_strength is not None or not report.is_measured,
        "no human reward": "human" not in report.description.baselines,
        "baselines are off": not report.settings.trains_baselines,
        "not finished": report.status is not RunStatus.FINISHED,
        "nothing trained": report.best is None,
        "no finals": score is None,
        "not trained": human is None or sparse is None,
    }
    return next((reason for reason, holds in reasons.items() if holds), "human ≈ sparse")


def attempt_name(report: RunReport, attempt: Attempt) -> str:
    """`attempt 2-01 (improve)`; a person's own reward has no operator."""
    if report.of_own_reward:
        return f"your reward (attempt {attempt.id})"
    return f"attempt {attempt.id} ({wording.words(attempt.proposal.operator.value)})"


def _best(report: RunReport) -> str:
    best, score = report.best, report.best_score
    if best is None and not report.attempts:
        return "no reward function was proposed"
    if best is None:
        return f"no reward function was trained to an end: {_how_attempts_stand(report)}"
    name = attempt_name(report, best)
    if (strong := report.by_strength) is not None:
        strength = f"strength {wording.strength(strong.strength, strong.deviation)}"
        if strong.by == "model":
            answers = wording.plural(strong.answers, "comparison")
            judge = "a model" if report.by_model is None else report.by_model.model
            return f"{name}: {strength}, judged by {judge} in {answers} of pictures"
        answers = wording.plural(strong.answers, "choice")
        return f"{name}: {strength} after {answers} between clips"
    if score is None or score.mean is None:
        seeds = wording.plural(len(best.fitness_per_seed), "seed")
        return f"{name}: fitness {fitness_text(report, best.fitness)} in the search, over {seeds}"
    failed = sum(value is None for value in score.fitness)
    failures = f", {failed} of which failed" if failed else ""
    seeds = wording.plural(len(score.seeds), "fresh seed")
    return f"{name}: fitness {fitness_text(report, score.mean, score.std)} over {seeds}{failures}"


def _against(report: RunReport) -> str:
    score, baselines = report.best_score, _baselines(report)
    if report.by_strength is not None:
        if report.by_strength.by == "model":
            return "nothing: a model ranks the attempts, and no baseline is among its pictures"
        return "nothing: your choices rank the attempts, and no baseline is among the clips"
    if score is None or score.mean is None or not baselines:
        if report.no_finals:
            reached = (f"{a.name} {fitness_text(report, a.mean, a.std)}" for a in baselines)
            return "; ".join((f"nothing: {report.no_finals}", *reached))
        why = "" if report.status is RunStatus.FINISHED else " so far"
        missing = "it was not trained from fresh seeds" if baselines else "no baseline was trained"
        return f"nothing{why}: {missing}"
    groups: dict[str, list[str]] = {}
    for baseline in baselines:
        them = f"{baseline.name} ({fitness_text(report, baseline.mean)})"
        groups.setdefault(_relation(report, score, baseline), []).append(them)
    parts = [f"{relation} {' and '.join(names)}" for relation, names in groups.items()]
    human, sparse = (None if each is None else each.mean for each in map(report.score, BASELINES))
    if human is not None and sparse is not None:
        if human < sparse:
            parts.append("the human reward is below the sparse one here")
        elif score.human_normalized is not None:
            parts.append(f"human-normalised {wording.number(score.human_normalized)}")
    if report.card is not None:
        parts.append(f"both baselines are from {report.card.origin}")
    if human is not None and human < score.mean:
        parts += _early_ends(report, "human")
    return "; ".join(parts)


def _early_ends(report: RunReport, name: str) -> list[str]:
    """Sentence on a baseline most of whose episodes ended by failure; none for another one."""
    outcomes = [each.outcome for each in report.final_trainings if each.name == name]
    ended = sum((Counter(each.ended_by) for each in outcomes if each), Counter[str]())
    good = (TIME_OUT, *report.description.success_causes)
    early = [(cause, count) for cause, count in ended.most_common() if cause not in good]
    count = sum(number for _, number in early)
    if count <= EARLY_SHARE * ended.total():
        return []
    return [
        f"{count} of the {name} reward's {ended.total()} episodes ended early, by {early[0][0]}"
    ]


def _compared(report: RunReport, ours: Score, theirs: Score) -> comparison.ScoreComparison | None:
    """The comparison of two rewards, of which the best one was chosen by its scores."""
    if ours.name in BASELINES:
        return comparison.compare_scores(ours, theirs)
    return comparison.lead_of_best(report, theirs)


def _relation(report: RunReport, ours: Score, theirs: Score) -> str:
    """`better than`; for too few seeds only the comparison of the means."""
    if ours.mean is None or theirs.mean is None:
        return "not compared with"
    compared = _compared(report, ours, theirs)
    if compared is None:
        if ours.mean == theirs.mean:
            return "level with"
        return "higher than" if ours.mean > theirs.mean else "lower than"
    if compared.low == compared.high == 0:
        return "exactly as good as"
    return compared.relation


def _certainty(report: RunReport) -> str:
    score = report.best_score
    if report.best is None:
        return "nothing to be sure of"
    if (strong := report.by_strength) is not None:
        eye = ", if the model sees what you would see" if strong.by == "model" else ""
        return f"it is the best with a probability of {strong.chance:.0%}{eye}"
    if report.no_finals:
        return "none: all attempts came to the same fitness, so none is the best"
    if score is None or score.mean is None:
        return "not sure: it was not trained again from fresh seeds, so its fitness favours luck"
    parts = []
    baselines = [baseline for baseline in _baselines(report) if baseline.mean is not None]
    fewest = min(len(comparison.known_fitness(each)) for each in (score, *baselines))
    if fewest < comparison.FEWEST_SEEDS:
        few = wording.plural(fewest, "seed is", "seeds are") + " too few"
        parts.append(f"not sure, no interval: {few}")
    intervals = {baseline.name: _interval(report, score, baseline) for baseline in baselines}
    told = [
        f"{name} too wide to say" if text == "" else text
        for name, text in intervals.items()
        if text is not None
    ]
    if any(intervals.values()):
        parts.append(f"95 % interval of the difference: {', '.join(told)}")
    elif told:
        parts.append(
            "not sure: the scores differ so much from seed to seed that they cannot be told apart"
        )
    belief = comparison.belief_in_best(report)
    if belief is not None:
        further = f"further seeds may be expected to give {fitness_text(report, belief.expected)}"
        standing = (
            f"no better than {', '.join(belief.level)}: the same fitness from every seed"
            if belief.level
            else f"the best of its {belief.finalists} finalists with a probability of"
            f" {belief.chance:.0%}"
        )
        parts.append(f"{standing} ({further})")
        what = "observation" if report.settings.design == "observation" else "reward"
        hour = wording.plural(belief.more, f"more {what}")
        gained = fitness_text(report, belief.gain)
        chance = (
            f"has an even chance to gain {gained}" if belief.gain else "would probably gain nothing"
        )
        parts.append(f"another hour of search ({hour}) {chance}")
    return "; ".join(parts) or "one reward alone: there is nothing to tell it apart from"


def _interval(report: RunReport, ours: Score, theirs: Score) -> str | None:
    """`sparse 0.233 to 2.77 m`; empty for one too wide to say, None without an interval."""
    compared = _compared(report, ours, theirs)
    if compared is None:
        return None
    if not compared.better and not compared.worse and compared.width > _range(report):
        return ""
    if compared.width == 0:
        return f"{theirs.name} {fitness_text(report, compared.difference)} from every seed"
    low, high = wording.number(compared.low), fitness_text(report, compared.high)
    return f"{theirs.name} {low} to {high}"


def _range(report: RunReport) -> float:
    """Range of the fitness of all trainings, and of the fitness of a solved episode."""
    values = [value for score in report.scores for value in comparison.known_fitness(score)]
    values += [value for attempt in report.attempts for value in attempt.fitness_per_seed]
    if report.description.success_fitness is not None:
        values.append(report.description.success_fitness)
    return max(values) - min(values)


def _next(report: RunReport) -> tuple[str, list[str]]:
    """Next step in words, and the command's arguments."""
    folder = str(report.folder)
    if report.status is RunStatus.RUNNING:
        advice = "the run is being worked on right now, so nothing is final; look again"
        return advice, ["show", folder]
    if report.status is not RunStatus.FINISHED:
        failed = report.status is RunStatus.FAILED and report.message
        reason = f": {report.message.splitlines()[0].rstrip('.')}" if failed else ""
        return f"the run is {report.status.value}{reason}; go on", ["resume", folder]
    best, score = report.best, report.best_score
    if best is None:
        return "see what became of every attempt", ["show", folder]
    if report.by_strength is not None and report.by_strength.chance < SURE_ENOUGH:
        return "compare clips, and say what you want", ["refine", folder]
    if report.no_finals or report.coverage is not None:
        steps = report.settings.env_steps
        help_ = what_could_help(report.attempts, report.description, steps)
        help_ = ("another observation", *help_) if report.settings.design != "reward" else help_
        advice = f"change the training, not the reward: {'; '.join(help_)}, as here"
        return advice, report.arguments("--env-steps", str(MORE * report.settings.env_steps))
    if score is None or score.mean is None:
        return "export reward and policy", ["export", folder]
    sparse = report.score("sparse")
    compared = None if sparse is None else comparison.lead_of_best(report, sparse)
    not_better = compared is not None and not compared.better
    if sparse is not None and not_better and _too_easy(report, score, sparse):
        tasks = command(shlex.join(["envs", report.settings.env]))
        advice = (
            f"the task is too easy to tell rewards apart; take a harder one (`{tasks}`), or train"
            " for less"
        )
        fewer_steps = max(1, report.settings.env_steps // LESS)
        return advice, report.arguments("--env-steps", str(fewer_steps))
    unsure = not_better and compared is not None and compared.difference > 0
    more = _more_seeds(report.settings, ENOUGH_SEEDS if unsure else comparison.FEWEST_SEEDS)
    if more:
        return "rule out luck with more seeds", ["resume", folder, *more]
    if not_better:
        return "see why it is not better than sparse", ["show", folder, best.id]
    return "export reward and policy", ["export", folder]


def _too_easy(report: RunReport, ours: Score, theirs: Score) -> bool:
    """True where every seed of both solves the task, or all have the same fitness but 0, which may
    mean that nothing was learned."""
    values = comparison.known_fitness(ours) + comparison.known_fitness(theirs)
    solved = report.description.success_fitness
    if solved is not None:
        return min(values) >= solved
    shown = {wording.number(value) for value in values}
    return len(shown) == 1 and shown != {wording.number(0.0)}


def _more_seeds(settings: SearchSettings, enough: int) -> list[str]:
    """Flags for more seeds of finalists and baselines; empty where they have enough."""
    numbers = {"--final-seeds": settings.final_seeds}
    if settings.baselines and settings.baseline_seeds is not None:
        numbers["--baseline-seeds"] = settings.baseline_seeds
    flags: list[str] = []
    for flag, number in numbers.items():
        if number < enough:
            flags += [flag, str(max(MORE_SEEDS, min(2 * number, enough)))]
    return flags


def _baselines(report: RunReport) -> list[Score]:
    return [score for name in BASELINES if (score := report.score(name)) is not None]


def _how_attempts_stand(report: RunReport) -> str:
    """Numbers of attempts by their end."""
    counts = Counter(attempt.stage for attempt in report.attempts)
    parts = {
        "rejected by the critic": counts[Stage.REJECTED],
        "failed in training": counts[Stage.FAILED],
    }
    parts["not done"] = len(report.attempts) - sum(parts.values())
    amount = wording.plural(len(report.attempts), "attempt")
    named = ", ".join(f"{number} {what}" for what, number in parts.items() if number)
    return f"of {amount}, {named}"


def fitness_text(report: RunReport, mean: float | None, deviation: float | None = None) -> str:
    """`2.00 ± 0.10 m`; a dash for an unknown mean."""
    unit = report.description.fitness_unit if mean is not None else ""
    return wording.plus_minus(mean, deviation) + (f" {unit}" if unit not in ("", "1") else "")
