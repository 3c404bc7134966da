"""`report.md`: what won, why, and what it cost, for a person who opens the run folder the next
morning."""

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
from eureka_agent.records import BASELINES, Attempt, Outcome, Score, Stage
from eureka_agent.report.cost import cost_sentence, remarks
from eureka_agent.report.entries import early_ends, first_error, fitness_words, remark, rung_reached
from eureka_agent.report.fitness import fitness_facts
from eureka_agent.report.ledger import SUMMED_TIME, Ledger, format_money
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
    description = report.description
    sections = [
        f"# {escaped(wording.title(report.sentence))}",
        escaped(report.sentence) if wording.title(report.sentence) != report.sentence else "",
        " ".join(map(escaped, metric_lines(report))),
        _verdict(report),
        (
            f"Environment {code(description.environment)}, task {code(description.task)}, run"
            f" {code(report.run_name)}, {report.status.value}."
        ),
        _section("The written fitness", _written_fitness(report)),
        _section("Scores", _scores(report)),
        _section(
            "Your reward function" if report.of_own_reward else "The best reward function",
            _best(report),
        ),
        (
            ""
            if report.of_own_reward
            else _section("Fitness per iteration", _iterations(report.attempts))
        ),
        _section("All attempts", _attempts(report)),
        _section("What the critic threw out", _rejected(report.attempts)),
        _section("Cost", _cost(report)),
        _section("Settings", _settings(report)),
        _section("How to reproduce", _reproduce(report)),
        _section("Where the files are", _files(report)),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _verdict(report: RunReport) -> str:
    """The verdict as a list of four lines."""
    found = verdict(report)
    lines = [f"- **{name}**: {escaped(text)}" for name, text in found.lines().items()]
    return "\n".join([*lines, f"- **next**: {escaped(found.advice)}: {code(found.command)}"])


def _section(title: str, body: str) -> str:
    return f"## {title}\n\n{body}" if body else ""


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
    unit = report.description.fitness_unit
    fitness = f"fitness ({escaped(unit)})" if unit not in ("", "1") else "fitness"
    normalized = any(score.human_normalized is not None for score in report.scores)
    titles = [
        "reward",
        f"{fitness}, mean ± std",
        *(["human-normalised"] if normalized else []),
        "per seed",
        "seeds",
    ]
    note = (
        "Every reward here was trained from the same fresh seeds under the same budget, and each"
        " policy was scored, acting without noise, in a process that never loaded its reward."
    )
    if len(report.finalists) > 1:
        note += (
            " The best is the highest mean of the finalists, so its own mean leans to the lucky"
            " side."
        )
    if len({len(score.seeds) for score in report.scores}) > 1:
        note += (
            " Some have fewer seeds than others: theirs are the first ones, and every comparison"
            " counts with the seeds that each has."
        )
    if normalized:
        note += (
            " Human-normalised is (mean − sparse) / |human − sparse|: 0 is the sparse reward, one"
            " unit the distance to the human reward."
        )
    if any(score.cached for score in report.scores):
        note += " What is from the cache was trained by an earlier run."
    return (
        table(titles, [_score_row(score, report, normalized) for score in report.scores])
        + f"\n\n{note}"
    )


def _score_row(score: Score, report: RunReport, normalized: bool) -> list[str]:
    name = "your reward" if report.of_own_reward else f"attempt {score.name}"
    name = score.name if score.name in BASELINES else name
    if report.best is not None and score.name == report.best.id:
        name = Markup(f"**{name}**")
    return [
        name,
        wording.plus_minus(score.mean, score.std),
        *([wording.number(score.human_normalized)] if normalized else []),
        ", ".join("failed" if value is None else wording.number(value) for value in score.fitness)
        + (" (from the cache)" if score.cached else ""),
        ", ".join(str(seed) for seed in score.seeds),
    ]


def _best(report: RunReport) -> str:
    best = report.best
    if best is None:
        return ""
    first = "first " if best.repeats else ""
    parts = [fenced(wording.without_trailing_comments(best.proposal.reward.source), "python")]
    if report.of_own_reward:
        parts.append(escaped(best.proposal.reasoning))
    elif best.proposal.reasoning.strip():
        parts.append(f"The designer's reasoning:\n\n{quoted(best.proposal.reasoning)}")
    if best.diagnosis is not None and best.diagnosis.findings:
        findings = "\n".join(
            f"- **{finding.code}**: {escaped(finding.message)}"
            + (f" Try: {escaped(finding.advice.rstrip('.'))}." if finding.advice else "")
            for finding in best.diagnosis.findings
        )
        parts.append(f"What the analyzer saw in its {first}training:\n\n{findings}")
    elif best.diagnosis is not None:
        parts.append(f"The analyzer found nothing wrong in its {first}training.")
    if best.diagnosis is not None and any(
        value is not None for value in best.diagnosis.fitness_values
    ):
        values = [value for value in best.diagnosis.fitness_values if value is not None]
        curve = sparkline(best.diagnosis.fitness_values, BAR_WIDTH)
        parts.append(
            f"Fitness over its {first}training, with exploration noise: `{curve}` from"
            f" {wording.number(values[0])} to {wording.number(values[-1])}, highest"
            f" {wording.number(max(values))}."
        )
    if best.outcome is not None and best.outcome.evaluation_episodes:
        parts.append(_episodes(best.outcome, first))
    return "\n\n".join(parts)


def _episodes(outcome: Outcome, first: str) -> str:
    """Sentence on the episodes that a training's fitness is the mean of."""
    facts = [
        f"fitness {wording.plus_minus(outcome.fitness, outcome.fitness_std)}",
        escaped(early_ends(outcome)),
    ]
    if outcome.success_rate is not None:
        facts.append(f"{outcome.success_rate:.0%} solved the task")
    episodes = wording.plural(outcome.evaluation_episodes, "episode")
    return (
        f"The policy of its {first}training, acting without noise in {episodes}:"
        f" {', '.join(filter(None, facts))}."
    )


def _iterations(attempts: Sequence[Attempt]) -> str:
    by_iteration: dict[int, list[Attempt]] = {}
    for attempt in attempts:
        by_iteration.setdefault(attempt.iteration, []).append(attempt)
    fitness = {
        iteration: [attempt.fitness for attempt in members if attempt.fitness is not None]
        for iteration, members in by_iteration.items()
    }
    known = [value for values in fitness.values() for value in values]
    if not known:
        return ""
    lowest, highest = min(0.0, *known), max(0.0, *known)
    span = (highest - lowest) or 1.0
    scale = common_scale(map(sorted, fitness.values()), SPREAD_WIDTH)
    lines = []
    for iteration, values in sorted(fitness.items()):
        broken_off = _broken_off(by_iteration[iteration])
        if not values:
            lines.append(
                f"{iteration + 1:>3}  nothing trained{f': {broken_off}' if broken_off else ''}"
            )
            continue
        bar = "█" * max(1, round((max(values) - lowest) / span * BAR_WIDTH))
        spread = sparkline(sorted(values), SPREAD_WIDTH, scale=scale)
        lines.append(
            f"{iteration + 1:>3}  {bar:<{BAR_WIDTH}}  best {wording.number(max(values))}, "
            f"median {wording.number(statistics.median(values))}, all {spread}"
            + (f" ({broken_off} left out)" if broken_off else "")
        )
    return (
        fenced("\n".join(lines))
        + "\n\nEach bar is an iteration's best attempt, by the mean of its trainings; `all` draws"
        " its attempts from worst to best, on one scale for all iterations."
    )


def _broken_off(attempts: Sequence[Attempt]) -> str:
    """`2 stopped, 1 failed`: attempts of an iteration that have no fitness, rejected ones apart."""
    stages = Counter(attempt.stage for attempt in attempts if attempt.fitness is None)
    parts = [
        f"{stages[stage]} {stage.value}" for stage in (Stage.STOPPED, Stage.FAILED) if stages[stage]
    ]
    return ", ".join(parts)


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
            remark(attempt, env_steps),
        ]
        for attempt in report.attempts
    ]
    titles = [
        "attempt",
        "operator",
        "parents",
        "stage",
        "fitness",
        "seeds",
        "reason or first finding",
    ]
    note = (
        "Fitness is of policies that act without exploration noise; what a finding says of a"
        " training's curves is with it."
    )
    if any(map(rung_reached, report.attempts)):
        note += (
            " A fitness `at` a percentage is a policy's score after that part of a training which"
            " did not come to its end."
        )
    return f"{table(titles, rows)}\n\n{note}"


def _rejected(attempts: Sequence[Attempt]) -> str:
    rejected = [attempt for attempt in attempts if attempt.stage is Stage.REJECTED]
    if not rejected:
        return ""
    codes = Counter(
        finding.code
        for attempt in rejected
        if attempt.verdict is not None
        for finding in attempt.verdict.findings
        if finding.severity == "error"
    )
    summary = ", ".join(f"{escaped(name)} ({amount})" for name, amount in codes.most_common())
    lines = "\n".join(
        f"- `{attempt.id}`: {escaped(first_error(attempt) or attempt.reason)}"
        for attempt in rejected
    )
    return (f"Findings by code: {summary}.\n\n" if summary else "") + lines


def _cost(report: RunReport) -> str:
    repeats = [repeat for attempt in report.attempts for repeat in attempt.repeats]
    retries = sum(made.retries for made in report.attempts) + sum(made.retries for made in repeats)
    retries += report.cost.final_restarts
    restarts = (
        f" {wording.plural(retries, 'training')} started again because a worker died."
        if retries
        else ""
    )
    asked = tuple(
        each.model_copy(update={"model": escaped(each.model)}) for each in report.ledger.messages
    )
    words = replace(report, designer=escaped(report.designer), ledger=Ledger(asked))
    told = "".join(f" {escaped(text)}" for text in remarks(report))
    return cost_sentence(words) + restarts + told + _ledger(report.ledger)


def _ledger(account: Ledger) -> str:
    """Table of requests to models, below the sentence."""
    if account.empty:
        return ""
    rows = [
        [
            line.name,
            line.model,
            f"{line.requests:,}",
            f"{line.prompt_tokens:,}",
            f"{line.cached_tokens:,}",
            f"{line.completion_tokens:,}",
            wording.duration(line.seconds),
            format_money(line.money),
        ]
        for line in (*account.by_role, account.total)
    ]
    titles = [
        "who asked",
        "model",
        "requests",
        "tokens of prompts",
        "of them cached",
        "tokens of replies",
        "summed time",
        "cost",
    ]
    return f"\n\n{table(titles, rows)}\n\n{SUMMED_TIME}"


def _settings(report: RunReport) -> str:
    """Settings that are not what this task has by default, and where the others are."""
    description = report.description
    task = {
        "env_steps": description.env_steps,
        "num_envs": description.num_envs,
        **description.training_overrides,
    }
    rows, others = [], 0
    for name, field in type(report.settings).model_fields.items():
        value, default = getattr(report.settings, name), task.get(name, field.default)
        if _as_text(value) == _as_text(default):
            others += 1
        else:
            rows.append([code(name), code(_as_text(value)), code(_as_text(default))])
    note = (
        f"{wording.plural(others, 'other setting')} as this task has them by default: all are in"
        " `settings.yaml`."
    )
    return (table(["setting", "value", "default"], rows) + "\n\n" if rows else "") + note


def _as_text(value: object) -> str:
    """A setting's value: lists and tuples are equal, and many values are one line."""
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
    best = (
        f"- `attempts/{report.best.id}/`:"
        f" {'your reward with its' if report.of_own_reward else 'the best attempt, its prompt,'}"
        " verdict, curves and policy\n"
        if report.best
        else ""
    )
    fitness = (
        "- `fitness.py`, `fitness.json`: the written fitness\n"
        if report.written_fitness is not None
        else ""
    )
    return (
        f"Everything is in {code(report.folder)}:\n\n{fitness}- `best/`: `reward.py` and"
        f" `policy.safetensors` of the best reward function\n{best}- `attempts/<id>/`: every"
        " attempt, rejected ones included; in `seed-<seed>/` the trainings that confirm it\n-"
        " `finals/<id>/seed-<seed>/`, `baselines/<name>/seed-<seed>/`: the final trainings and the"
        " baselines\n- `archive.sqlite`: all of it as tables; `settings.yaml`, `environment.json`:"
        f" what was searched and how\n\n{code(show)} prints this; {code(tensorboard)} draws the"
        " curves."
    )
