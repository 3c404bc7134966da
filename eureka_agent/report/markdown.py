"""`report.md`: the best reward, its comparison and its cost, for a person who reads it later."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from eureka_agent import wording
from eureka_agent.attempt_words import discard_reason
from eureka_agent.invocation import command, executable
from eureka_agent.markup import Markup, code, escaped, fenced, quoted, table
from eureka_agent.records import Attempt, Diagnosis, Score
from eureka_agent.report import facts, randomisation
from eureka_agent.report.cost import cost_sentence, remarks
from eureka_agent.report.fitness import fitness_facts
from eureka_agent.report.iterations import iterations
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
        "Under other parameters": _randomisation(report),
        "Your reward function" if own else "The best reward function": _best(report),
        f"{report.measure.capitalize()} per iteration": "" if own else _iterations(report),
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
    told = "\n".join(f"- {name}: {escaped(text)}" for name, text in fitness_facts(fitness).items())
    parts = [told, fenced(fitness.source, "python")]
    if fitness.reasoning.strip():
        parts.append(f"The model's reasoning:\n\n{quoted(fitness.reasoning)}")
    return "\n\n".join(parts)


def _scores(report: RunReport) -> str:
    if not report.scores:
        return ""
    rows = [_score_row(report, score) for score in report.scores]
    titles = " | ".join(map(escaped, facts.score_titles(report)))
    return f"{table(titles, rows)}\n\n{facts.score_note(report)}"


def _score_row(report: RunReport, score: Score) -> list[str]:
    name, *cells = facts.score_cells(report, score)
    is_best = report.best is not None and score.name == report.best.id
    return [Markup(f"**{name}**") if is_best else name, *cells]


def _randomisation(report: RunReport) -> str:
    found = report.randomisation
    if found is None:
        return ""
    parts: list[str] = [escaped(randomisation.sentence(report, found))]
    if rows := randomisation.rows(report, found):
        titles = " | ".join(map(escaped, randomisation.titles(report)))
        shown = [
            [Markup(f"**{row.name}**") if row.is_best else row.name, *row.cells] for row in rows
        ]
        parts += [table(titles, shown), escaped(randomisation.note(report))]
        parts.append("\n".join(f"- {escaped(line)}" for line in randomisation.reasons(found)))
    if found.prior is not None:
        lines = "\n".join(f"- {escaped(line)}" for line in randomisation.prior_lines(report, found))
        parts.append(f"{escaped(randomisation.prior_sentence(found.prior))}\n\n{lines}")
    return "\n\n".join(filter(None, parts))


def _best(report: RunReport) -> str:
    best = report.best
    if best is None:
        return ""
    training = facts.training_name(best)
    parts = [fenced(wording.without_trailing_comments(best.proposal.reward.source), "python")]
    if report.of_own_reward:
        parts.append(escaped(best.proposal.reasoning))
    elif best.proposal.reasoning.strip():
        parts.append(f"The designer's reasoning:\n\n{quoted(best.proposal.reasoning)}")
    if best.diagnosis is not None:
        parts += _diagnosis(best.diagnosis, training, measured=report.is_measured)
    if best.outcome is not None and best.outcome.evaluation_episodes:
        measured = report.is_measured
        sentence = facts.episodes_sentence(best.outcome, training, measured=measured)
        parts.append(escaped(sentence))
    return "\n\n".join(parts)


def _diagnosis(diagnosis: Diagnosis, training: str, *, measured: bool) -> list[str]:
    """Paragraphs on findings and curve."""
    findings = "\n".join(
        f"- **{finding.code}**: {escaped(finding.message)}"
        + (f" Try: {escaped(finding.advice.rstrip('.'))}." if finding.advice else "")
        for finding in diagnosis.findings
    )
    parts = [facts.findings_sentence(diagnosis, training), *([findings] if findings else [])]
    values = [value for value in diagnosis.fitness_values if value is not None]
    if values and measured:
        curve = sparkline(diagnosis.fitness_values, BAR_WIDTH)
        first, last, highest = map(wording.number, (values[0], values[-1], max(values)))
        parts.append(
            f"Fitness over its {training}, with exploration noise: `{curve}` from {first} to"
            f" {last}, highest {highest}."
        )
    return parts


def _iterations(report: RunReport) -> str:
    by_iteration = iterations(report.attempts)
    by = "the mean of its trainings" if report.measure == "fitness" else "its strength"
    known = [value for each in by_iteration for value in each.fitness]
    if not known:
        return ""
    lowest, highest = min(0.0, *known), max(0.0, *known)
    span = (highest - lowest) or 1.0
    scale = common_scale((each.fitness for each in by_iteration), SPREAD_WIDTH)
    lines = []
    for each in by_iteration:
        if each.best is None:
            why = f": {each.broken_off}" if each.broken_off else ""
            lines.append(f"{each.number:>3}  nothing trained{why}")
            continue
        bar = "█" * max(1, round((each.best - lowest) / span * BAR_WIDTH))
        spread = sparkline(each.fitness, SPREAD_WIDTH, scale=scale)
        lines.append(
            f"{each.number:>3}  {bar:<{BAR_WIDTH}}  best {wording.number(each.best)}, "
            f"median {wording.number(each.median)}, all {spread}"
            + (f" ({each.broken_off} left out)" if each.broken_off else "")
        )
    note = (
        f"Each bar is an iteration's best attempt, by {by}; `all` draws its"
        " attempts from worst to best, on one scale for all iterations."
    )
    return fenced("\n".join(lines)) + f"\n\n{note}"


def _attempts(report: RunReport) -> str:
    if not report.attempts:
        return ""
    rows = [facts.attempt_cells(report, attempt) for attempt in report.attempts]
    titles = " | ".join(facts.attempt_titles(report))
    return f"{table(titles, rows)}\n\n{facts.attempts_note(report)}"


def _rejected(attempts: Sequence[Attempt]) -> str:
    rejected = facts.rejected(attempts)
    codes = facts.errors_by_code(rejected)
    summary = ", ".join(f"{escaped(name)} ({amount})" for name, amount in codes.most_common())
    lines = (f"- `{each.id}`: {escaped(discard_reason(each))}" for each in rejected)
    return (f"Findings by code: {summary}.\n\n" if summary else "") + "\n".join(lines)


def _cost(report: RunReport) -> str:
    sentences = [cost_sentence(_escaped_names(report)), facts.restarts(report)]
    sentences += map(escaped, remarks(report))
    return " ".join(filter(None, sentences)) + _ledger(report.ledger)


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
    changed, note = facts.changed_settings(report)
    rows = [list(map(code, row)) for row in changed]
    return (table("setting | value | default", rows) + "\n\n" if rows else "") + note


def _reproduce(report: RunReport) -> str:
    words = " ".join(map(escaped, facts.provenance(report)))
    return f"{fenced(report.command_line(), 'sh')}\n\n{words}"


def _files(report: RunReport) -> str:
    folder = shlex.quote(str(report.folder))
    show, tensorboard = command(f"show {folder}"), f"{executable('tensorboard')} --logdir {folder}"
    listed = "\n".join(
        f"- {', '.join(map(code, names))}: {content}" for names, content in facts.run_files(report)
    )
    return (
        f"Everything is in {code(report.folder)}:\n\n{listed}\n\n{code(show)} prints this;"
        f" {code(tensorboard)} draws the curves."
    )
