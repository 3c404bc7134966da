"""`report.md`: the best reward, its comparison and its cost, for a person who reads it later."""

from __future__ import annotations

import shlex
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from eureka_agent import wording
from eureka_agent.invocation import command, executable
from eureka_agent.markup import Markup, code, escaped, fenced, quoted, table
from eureka_agent.records import BASELINES, Attempt, Diagnosis, Outcome, Score, Stage
from eureka_agent.report.cost import cost_sentence, remarks
from eureka_agent.report.entries import (
    early_ends,
    first_error,
    fitness_per_seed,
    fitness_words,
    remark,
    rung_reached,
)
from eureka_agent.report.fitness import fitness_facts
from eureka_agent.report.ledger import SUMMED_TIME, Ledger
from eureka_agent.report.metric import metric_lines
from eureka_agent.report.run_report import RunReport
from eureka_agent.report.sparkline import common_scale, sparkline
from eureka_agent.report.verdict import verdict

BAR_WIDTH = 40
SPREAD_WIDTH = 24


def write_report(path: Path, report: RunReport) -> None:
    """Write the report; an existing one is replaced."""
    path.write_text(markdown(report), encoding="utf-8")


def markdown(report: RunReport) -> str:
    """The whole report."""
    own, description = report.of_own_reward, report.description
    title = wording.title(report.sentence)
    sections = {
        "The written fitness": _written_fitness(report),
        "Scores": _scores(report),
        "Your reward function" if own else "The best reward function": _best(report),
        "Fitness per iteration": "" if own else _iterations(report.attempts),
        "All attempts": _attempts(report),
        "What the critic threw out": _rejected(report.attempts),
        "Cost": _cost(report),
        "Settings": _settings(report),
        "How to reproduce": _reproduce(report),
        "Where the files are": _files(report),
    }
    parts = [
        f"# {escaped(title)}",
        escaped(report.sentence) if title != report.sentence else "",
        " ".join(map(escaped, metric_lines(report))),
        _verdict(report),
        f"Environment {code(description.environment)}, task {code(description.task)}, run"
        f" {code(report.run_name)}, {report.status.value}.",
        *(f"## {heading}\n\n{body}" for heading, body in sections.items() if body),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _verdict(report: RunReport) -> str:
    """The verdict as a list of four lines."""
    found = verdict(report)
    lines = [f"- **{name}**: {escaped(text)}" for name, text in found.lines().items()]
    return "\n".join([*lines, f"- **next**: {escaped(found.advice)}: {code(found.command)}"])


def _written_fitness(report: RunReport) -> str:
    fitness = report.written_fitness
    if fitness is None:
        return ""
    facts = "\n".join(f"- {name}: {escaped(text)}" for name, text in fitness_facts(fitness).items())
    parts = [facts, fenced(fitness.source, "python")]
    if fitness.reasoning.strip():
        parts.append(f"The model's reasoning:\n\n{quoted(fitness.reasoning)}")
    return "\n\n".join(parts)


def _scores(report: RunReport) -> str:
    if not report.scores:
        return ""
    normalized = any(score.human_normalized is not None for score in report.scores)
    note = (
        "Every reward here was trained from the same fresh seeds under the same budget, and each"
        " policy was scored, acting without noise, in a process that never loaded its reward."
    )
    if len(report.finalists) > 1:
        note += " The best has the highest mean of the finalists, which is partly luck."
    if len({len(score.seeds) for score in report.scores}) > 1:
        note += " Some have fewer seeds, the first ones; comparisons use the seeds of each."
    if normalized:
        note += " Human-normalised is (mean − sparse) / |human − sparse|: 0 is the sparse reward."
    if any(score.cached for score in report.scores):
        note += " An earlier run trained the rewards from the cache."
    unit = report.unit_note and f" {escaped(report.unit_note)}"
    human = "human-normalised | " if normalized else ""
    titles = f"reward | fitness{unit}, mean ± std | {human}per seed | seeds"
    rows = [_score_row(score, report, normalized) for score in report.scores]
    return f"{table(titles, rows)}\n\n{note}"


def _score_row(score: Score, report: RunReport, normalized: bool) -> list[str]:
    name = "your reward" if report.of_own_reward else f"attempt {score.name}"
    name = score.name if score.name in BASELINES else name
    if report.best is not None and score.name == report.best.id:
        name = Markup(f"**{name}**")
    return [
        name,
        wording.plus_minus(score.mean, score.std),
        *([wording.number(score.human_normalized)] if normalized else []),
        fitness_per_seed(score),
        ", ".join(map(str, score.seeds)),
    ]


def _best(report: RunReport) -> str:
    best = report.best
    if best is None:
        return ""
    training = "first training" if best.repeats else "training"
    parts = [fenced(wording.without_trailing_comments(best.proposal.reward.source), "python")]
    if report.of_own_reward:
        parts.append(escaped(best.proposal.reasoning))
    elif best.proposal.reasoning.strip():
        parts.append(f"The designer's reasoning:\n\n{quoted(best.proposal.reasoning)}")
    if best.diagnosis is not None:
        parts += _diagnosis(best.diagnosis, training)
    if best.outcome is not None and best.outcome.evaluation_episodes:
        parts.append(_episodes(best.outcome, training))
    return "\n\n".join(parts)


def _diagnosis(diagnosis: Diagnosis, training: str) -> list[str]:
    """Paragraphs on findings and curve."""
    findings = "\n".join(
        f"- **{finding.code}**: {escaped(finding.message)}"
        + (f" Try: {escaped(finding.advice.rstrip('.'))}." if finding.advice else "")
        for finding in diagnosis.findings
    )
    parts = [f"The analyzer found nothing wrong in its {training}."]
    if findings:
        parts = [f"What the analyzer saw in its {training}:\n\n{findings}"]
    values = [value for value in diagnosis.fitness_values if value is not None]
    if values:
        curve = sparkline(diagnosis.fitness_values, BAR_WIDTH)
        first, last, highest = map(wording.number, (values[0], values[-1], max(values)))
        parts.append(
            f"Fitness over its {training}, with exploration noise: `{curve}` from {first} to"
            f" {last}, highest {highest}."
        )
    return parts


def _episodes(outcome: Outcome, training: str) -> str:
    """Sentence on the evaluated episodes of a training."""
    facts = [
        f"fitness {wording.plus_minus(outcome.fitness, outcome.fitness_std)}",
        escaped(early_ends(outcome)),
    ]
    if outcome.success_rate is not None:
        facts.append(f"{outcome.success_rate:.0%} solved the task")
    episodes = wording.plural(outcome.evaluation_episodes, "episode")
    return (
        f"The policy of its {training}, acting without noise in {episodes}:"
        f" {', '.join(filter(None, facts))}."
    )


def _iterations(attempts: Sequence[Attempt]) -> str:
    by_iteration: dict[int, list[Attempt]] = {}
    for attempt in attempts:
        by_iteration.setdefault(attempt.iteration, []).append(attempt)
    fitness = {
        iteration: sorted(each.fitness for each in members if each.fitness is not None)
        for iteration, members in by_iteration.items()
    }
    known = [value for values in fitness.values() for value in values]
    if not known:
        return ""
    lowest, highest = min(0.0, *known), max(0.0, *known)
    span = (highest - lowest) or 1.0
    scale = common_scale(fitness.values(), SPREAD_WIDTH)
    lines = []
    for iteration, values in sorted(fitness.items()):
        broken_off = _broken_off(by_iteration[iteration])
        if not values:
            why = f": {broken_off}" if broken_off else ""
            lines.append(f"{iteration + 1:>3}  nothing trained{why}")
            continue
        bar = "█" * max(1, round((values[-1] - lowest) / span * BAR_WIDTH))
        spread = sparkline(values, SPREAD_WIDTH, scale=scale)
        lines.append(
            f"{iteration + 1:>3}  {bar:<{BAR_WIDTH}}  best {wording.number(values[-1])}, "
            f"median {wording.number(statistics.median(values))}, all {spread}"
            + (f" ({broken_off} left out)" if broken_off else "")
        )
    note = (
        "Each bar is an iteration's best attempt, by the mean of its trainings; `all` draws its"
        " attempts from worst to best, on one scale for all iterations."
    )
    return fenced("\n".join(lines)) + f"\n\n{note}"


def _broken_off(attempts: Sequence[Attempt]) -> str:
    """`2 stopped, 1 failed`: trainings of an iteration without a fitness."""
    stages = Counter(attempt.stage for attempt in attempts if attempt.fitness is None)
    ends = (Stage.STOPPED, Stage.FAILED)
    return ", ".join(f"{stages[stage]} {stage.value}" for stage in ends if stages[stage])


def _attempts(report: RunReport) -> str:
    if not report.attempts:
        return ""
    env_steps = report.settings.env_steps
    rows = [
        [
            attempt.id,
            wording.words(attempt.proposal.operator.value),
            ", ".join(attempt.proposal.parents),
            attempt.stage.value,
            fitness_words(attempt, env_steps),
            str(len(attempt.fitness_per_seed) or ""),
            remark(attempt),
        ]
        for attempt in report.attempts
    ]
    titles = "attempt | operator | parents | stage | fitness | seeds | reason or first finding"
    note = "Fitness is without exploration noise; the curves that findings describe are with it."
    if any(map(rung_reached, report.attempts)):
        note += " A fitness `at` a percentage is the score after that part of a training."
    return f"{table(titles, rows)}\n\n{note}"


def _rejected(attempts: Sequence[Attempt]) -> str:
    rejected = [attempt for attempt in attempts if attempt.stage is Stage.REJECTED]
    codes = Counter(
        finding.code
        for attempt in rejected
        if attempt.verdict is not None
        for finding in attempt.verdict.findings
        if finding.severity == "error"
    )
    summary = ", ".join(f"{escaped(name)} ({amount})" for name, amount in codes.most_common())
    lines = (f"- `{each.id}`: {escaped(first_error(each) or each.reason)}" for each in rejected)
    return (f"Findings by code: {summary}.\n\n" if summary else "") + "\n".join(lines)


def _cost(report: RunReport) -> str:
    retries = report.cost.final_restarts
    for attempt in report.attempts:
        retries += attempt.retries + sum(repeat.retries for repeat in attempt.repeats)
    sentences = [cost_sentence(_escaped_names(report))]
    if retries:
        restarted = wording.plural(retries, "training")
        sentences.append(f"{restarted} started again because a worker died.")
    sentences += map(escaped, remarks(report))
    return " ".join(sentences) + _ledger(report.ledger)


def _escaped_names(report: RunReport) -> RunReport:
    asked = tuple(
        each.model_copy(update={"model": escaped(each.model)}) for each in report.ledger.messages
    )
    return replace(report, designer=escaped(report.designer), ledger=Ledger(asked))


def _ledger(account: Ledger) -> str:
    """Table of requests to models."""
    if account.empty:
        return ""
    lines = (*account.by_role, account.total)
    tokens = "tokens of prompts | of them cached | tokens of replies"
    titles = f"who asked | model | requests | {tokens} | summed time | cost"
    rows = [[line.name, line.model, *line.cells()] for line in lines]
    return f"\n\n{table(titles, rows)}\n\n{SUMMED_TIME}"


def _settings(report: RunReport) -> str:
    """Settings that differ from the task's defaults."""
    description = report.description
    task = {
        "env_steps": description.env_steps,
        "num_envs": description.num_envs,
        **description.training_overrides,
    }
    rows, others = [], 0
    for name, field in type(report.settings).model_fields.items():
        value = _as_text(getattr(report.settings, name))
        default = _as_text(task.get(name, field.default))
        if value == default:
            others += 1
        else:
            rows.append([code(name), code(value), code(default)])
    note = f"{wording.plural(others, 'other setting')} at the default: all are in `settings.yaml`."
    return (table("setting | value | default", rows) + "\n\n" if rows else "") + note


def _as_text(value: object) -> str:
    """Value of a setting in one line; lists and tuples are equal."""
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _reproduce(report: RunReport) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    commit = f"Commit `{report.git_commit}`. " if report.git_commit else ""
    devices = f", trained on {escaped(', then '.join(report.devices))}" if report.devices else ""
    return (
        fenced(report.command_line(), "sh")
        + f"\n\n{commit}Started {report.started}. {versions + '. ' if versions else ''}"
        + f"Designer {escaped(report.designer)}, wall {report.wall}{devices}. Environment"
        f" fingerprint `{report.description.fingerprint[:16]}`."
    )


def _files(report: RunReport) -> str:
    folder = shlex.quote(str(report.folder))
    show, tensorboard = command(f"show {folder}"), f"{executable('tensorboard')} --logdir {folder}"
    best = "your reward with its" if report.of_own_reward else "the best attempt, its prompt,"
    files = {
        "`fitness.py`, `fitness.json`": "the written fitness" if report.written_fitness else "",
        "`best/`": "`reward.py` and `policy.safetensors` of the best reward function",
        f"`attempts/{report.best.id if report.best else ''}/`": (
            f"{best} verdict, curves and policy" if report.best else ""
        ),
        "`attempts/<id>/`": (
            "every attempt, rejected ones included; in `seed-<seed>/` the trainings that confirm it"
        ),
        "`finals/<id>/seed-<seed>/`, `baselines/<name>/seed-<seed>/`": (
            "the final trainings and the baselines"
        ),
        "`archive.sqlite`": (
            "all of it as tables; `settings.yaml`, `environment.json`: what was searched and how"
        ),
    }
    listed = "\n".join(f"- {names}: {content}" for names, content in files.items() if content)
    return (
        f"Everything is in {code(report.folder)}:\n\n{listed}\n\n{code(show)} prints this;"
        f" {code(tensorboard)} draws the curves."
    )
