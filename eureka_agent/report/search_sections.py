"""Sections of a report on its search and on the run: curves, lineage, failures, attempts, cost."""

from __future__ import annotations

import shlex

from markupsafe import Markup

from eureka_agent import attempt_words, wording
from eureka_agent.invocation import command, executable
from eureka_agent.llm.replay import REPLAY
from eureka_agent.ranking import ranked
from eureka_agent.records import BASELINES, Attempt, Stage
from eureka_agent.report.blocks import (
    Block,
    DrawingBlock,
    Grid,
    Source,
    Words,
)
from eureka_agent.report.html import charts
from eureka_agent.report.html.training_curves import final_curves, search_curves
from eureka_agent.report.ledger import SUMMED_TIME, ledger_grid
from eureka_agent.report.lineage import lineage
from eureka_agent.report.run_report import RunReport
from eureka_agent.text import one_line

MOST_ATTEMPTS = 100
"""Attempts in the table."""
MOST_EXAMPLES = 20
"""Groups of what failed."""
LONGEST_REASON = 400
CURVES_NOTE = (
    "Fitness with exploration noise. A line is the mean over the trainings of a reward. A band, of"
    " the best and of the baselines, is ± the standard deviation of their trainings."
)
ITERATIONS_NOTE = "The mean of an attempt's trainings in the search, without exploration noise."


# ── the search ────────────────────────────────────────────────────────────────────────────────────


def run_charts(report: RunReport) -> dict[str, Markup]:
    """Figures of curves by name; those without data are empty."""
    unit, own = report.unit_note, report.of_own_reward
    baselines = [score for name in BASELINES if (score := report.score(name)) is not None]
    finals = charts.learning_curves(final_curves(report), unit) if report.finalists else None
    shown = report.is_measured and not (own and finals)
    by_iteration = None if own else charts.fitness_per_iteration(report.attempts, baselines, unit)
    if by_iteration is not None and len(by_iteration["x"]["values"]) == 1:
        by_iteration = None
    return {
        "finals": charts.figure(finals, "Final trainings, from fresh seeds", CURVES_NOTE),
        "search": charts.figure(
            charts.learning_curves(search_curves(report), unit) if shown else None,
            "Best attempts in the search",
            CURVES_NOTE,
        ),
        "iterations": charts.figure(
            by_iteration,
            f"{report.measure.capitalize()} per iteration",
            ITERATIONS_NOTE if report.measure == "fitness" else "",
        ),
    }


def curve_blocks(report: RunReport) -> list[Block]:
    return [DrawingBlock(lambda: Markup().join(run_charts(report).values()))]


def lineage_blocks(report: RunReport) -> list[Block]:
    if len(report.all_attempts) < 2:
        return []
    best = "" if report.best is None else report.best.id
    unit = report.merit_unit_note.replace(" (", " ").rstrip(")")
    tree, left_out = lineage(report.all_attempts, best, unit)
    note = "Which attempt was made from which."
    if left_out:
        note += f" {left_out:,} others are left out: shown are the best with their ancestors."
    return [Words(note, "muted"), Source(tree, language="text")]


def failure_blocks(report: RunReport) -> list[Block]:
    """Rejections by code, failed trainings by reason, findings on trainings by code."""
    found: dict[str, list[str]] = {}
    for attempt in report.all_attempts:
        if attempt.stage is Stage.REJECTED:
            code = (
                attempt_words.first_error(attempt).partition(":")[0].partition(" ")[0] or "no code"
            )
            told = f"{attempt.id}: {attempt_words.discard_reason(attempt)}"
            found.setdefault(f"thrown out by the critic: {code}", []).append(told)
        if attempt.stage is Stage.FAILED:
            found.setdefault(f"failed: {attempt.reason}", []).append(attempt.id)
        for repeat in attempt.repeats:
            if repeat.failure:
                found.setdefault(f"failed again: {repeat.failure}", []).append(attempt.id)
        # what is known of a person's one reward stands above
        if attempt.diagnosis is not None and not report.of_own_reward:
            messages = {each.code: each.message for each in attempt.diagnosis.findings}
            for code, message in messages.items():
                told = f"{attempt.id}: {message}"
                found.setdefault(f"seen in trainings: {code}", []).append(told)
    for training in report.final_trainings:
        if training.failure:
            name = f"{training.name} (seed {training.seed})"
            found.setdefault(f"failed in the end: {training.failure}", []).append(name)
    order = sorted(found.items(), key=lambda item: -len(item[1]))
    rows = [
        [
            one_line(reason, LONGEST_REASON),
            f"{len(names):,} ×",
            one_line("; ".join(names[:2]), LONGEST_REASON)
            + (f" … and {len(names) - 2:,} more" if len(names) > 2 else ""),
        ]
        for reason, names in order[:MOST_EXAMPLES]
    ]
    more = len(order) - len(rows)
    rest = [Words(f"And {more} other reasons.", "muted")] if more > 0 else []
    return [Grid(("reason", "times", "attempts"), rows, numbers=("times",)), *rest] if rows else []


def shown_attempts(report: RunReport, most: int = MOST_ATTEMPTS) -> list[Attempt]:
    """Attempts of the table: all in order, or of very many the best, then those without a
    fitness."""
    if len(report.all_attempts) <= most:
        return list(report.all_attempts)
    best = ranked(report.attempts)
    names = {attempt.id for attempt in best}
    return [*best, *(each for each in report.all_attempts if each.id not in names)][:most]


def attempt_blocks(report: RunReport) -> list[Block]:
    return [] if report.of_own_reward else attempts_table(report)


def attempts_table(report: RunReport, most: int = MOST_ATTEMPTS) -> list[Block]:
    """The attempts, and what their numbers mean."""
    shown, counted_on = shown_attempts(report, most), report.counted_on
    titles = ["attempt", "operator", "stage", report.measure, "seeds"]
    titles += [*(["counted on"] if counted_on else []), "reason or first finding"]
    rows = [
        [
            attempt.id,
            wording.words(attempt.proposal.operator.value),
            attempt.stage.value,
            attempt_words.fitness_words(attempt, report.settings.env_steps),
            str(len(attempt.fitness_per_seed) or ""),
            *([wording.number(counted_on.get(attempt.id))] if counted_on else []),
            attempt_words.remark(attempt),
        ]
        for attempt in shown
    ]
    best = "" if report.best is None else report.best.id
    numbers = (report.measure, "seeds", "counted on")
    ids = [each.id for each in shown]
    grid = Grid(titles, rows, best, ids, numbers, ("seeds", "counted on"))
    if not rows:
        return []
    note = _attempts_note(report)
    if len(rows) < len(report.all_attempts):
        note = f"The first {len(rows)} of {len(report.all_attempts):,}, best first. {note}"
    return [grid, Words(note, "muted")]


def _attempts_note(report: RunReport) -> str:
    """Sentences on the fitness in a table of attempts."""
    note = "Fitness is without exploration noise; the curves that findings describe are with it."
    if report.counted_on:
        note += (
            " Attempts are ranked by the fitness that can be counted on: the mean over many more"
            " seeds is above it with a probability of about 84 %. The fewer seeds an attempt has,"
            " the more its mean is drawn towards that of all attempts, and then lowered."
        )
    if report.measure != "fitness":
        note = (
            "A strength follows from comparisons (Bradley and Terry 1952): one more means preferred"
            " 73 times of 100."
        )
    if any(map(attempt_words.rung_reached, report.attempts)):
        note += " A fitness `at` a percentage is the score after that part of a training."
    return note


# ── the run ───────────────────────────────────────────────────────────────────────────────────────


def cost_blocks(report: RunReport) -> list[Block]:
    blocks: list[Block] = [Words(" ".join(cost_lines(report)))]
    if report.ledger.messages:
        account = report.ledger
        grid = ledger_grid("who asked", (*account.by_role, account.total))
        blocks += [grid, Words(SUMMED_TIME, "muted")]
    return blocks


def cost_lines(report: RunReport) -> list[str]:
    """Sentences on trainings, time and requests, on restarts, budget and deviations from it."""
    cost = report.cost
    again = sum(len(attempt.repeats) for attempt in report.attempts)
    what = "your reward" if report.of_own_reward else "proposals"
    kinds = {
        f"of {what}": cost.search_trainings - again,
        "to train the best of them again": again,
        "final": cost.final_trainings,
        "of baselines": cost.baseline_trainings,
        "under distributions of parameters": cost.randomised_trainings,
    }
    parts = [f"{number} {kind}" for kind, number in kinds.items() if number or kind == f"of {what}"]
    sentence = (
        f"It took {wording.plural(cost.trainings, 'training')} ({', '.join(parts)}),"
        f" {wording.count(cost.env_steps)} env steps and {wording.duration(report.seconds)} of wall"
        f" time; {model_cost(report)}."
    )
    retries = cost.final_restarts
    for attempt in report.all_attempts:
        retries += attempt.retries + sum(repeat.retries for repeat in attempt.repeats)
    restarted = wording.plural(retries, "training")
    restarts = f"{restarted} started again because a worker died." if retries else ""
    remarks = (f"{text[:1].upper()}{text[1:]}." for text in (*report.budget, *report.remarks))
    return list(filter(None, (sentence, restarts, *remarks)))


def model_cost(report: RunReport) -> str:
    """Requests, tokens and money; the replies of a replay."""
    cost = report.cost
    if cost.requests == 0:
        return "no LLM was asked"
    if report.settings.model[0].startswith(REPLAY):
        replies = wording.plural(cost.requests, "recorded reply was", "recorded replies were")
        return f"{replies} played back"
    money = (
        "at a cost that is not known" if cost.money is None else f"for {wording.money(cost.money)}"
    )
    tokens = f"{wording.count(cost.prompt_tokens + cost.completion_tokens)} tokens"
    if cost.uncounted:
        tokens += f", {wording.plural(cost.uncounted, 'reply', 'replies')} without a count"
    models = ", ".join(dict.fromkeys(line.model for line in report.ledger.by_role))
    asked = models or report.designer
    times = wording.plural(cost.requests, "time")
    return f"{asked} {'were' if ', ' in asked else 'was'} asked {times} ({tokens}) {money}"


def reproduction_blocks(report: RunReport) -> list[Block]:
    """Command, versions, and the settings that differ from the task's defaults."""
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    facts = report.description.command
    commands = ", ".join(f"{name} {it}" for name, it in facts.versions.items()) if facts else ""
    devices = f", trained on {', then '.join(report.devices)}" if report.devices else ""
    sentences = [
        f"Commit {report.git_commit}" if report.git_commit else "",
        f"Started {report.started}",
        versions,
        f"Command with {commands}" if commands else "",
        f"Designer {report.designer}, wall {report.wall}{devices}",
        f"Environment fingerprint {report.description.fingerprint[:16]}",
    ]
    folder = shlex.quote(str(report.folder))
    show, curves = command(f"show {folder}"), f"{executable('tensorboard')} --logdir {folder}"
    own = report.description.training_on(report.devices[-1] if report.devices else "cpu")
    fields, rows = type(report.settings).model_fields, []
    for name, field in fields.items():
        value = _as_text(getattr(report.settings, name))
        default = _as_text(own.get(name, field.default))
        if value != default:
            rows.append([name, value, default])
    others = wording.plural(len(fields) - len(rows), "other setting")
    return [
        Source(report.command_line(), language="sh"),
        Words(" ".join(f"{sentence}." for sentence in sentences if sentence)),
        Grid(("setting", "value", "default"), rows),
        Words(f"{others} at the default: all are in `settings.yaml`."),
        Words(
            f"Everything is in `{report.folder}`. `{show}` prints this; `{curves}` draws curves."
        ),
    ]


def _as_text(value: object) -> str:
    """Value of a setting in one line; lists and tuples are equal."""
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
