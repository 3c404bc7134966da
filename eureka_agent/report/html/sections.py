"""Contents of a report's sections that `report.md` has not, as plain data."""

from __future__ import annotations

import base64
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from eureka_agent import wording
from eureka_agent.archive.artefacts import BEST, VIDEO
from eureka_agent.archive.safe_files import open_plain
from eureka_agent.attempt_words import discard_reason, measure_of, merit_words, origin
from eureka_agent.designer.differences import difference
from eureka_agent.ranking import ranked
from eureka_agent.records import Attempt, Diagnosis, Stage
from eureka_agent.report.attempt_page import COMPARED
from eureka_agent.report.facts import errors_by_code, rejected
from eureka_agent.report.run_report import RunReport
from eureka_agent.text import one_line

MOST_ROWS = 100
"""Attempts in the table."""
MOST_EXAMPLES = 10
"""Examples of what failed, and groups of them."""
LONGEST_REASON = 400
LARGEST_CLIP = 8 << 20
"""Bytes of a clip that the document holds."""
_PART = 3 << 16
"""Bytes of a clip in memory; a multiple of 3, so that the parts of its base64 make a whole."""


# ── what won ──────────────────────────────────────────────────────────────────────────────────────


def tiles(report: RunReport) -> list[tuple[str, str]]:
    """Most important numbers with their names."""
    found = []
    best, unit = report.best, report.description.fitness_unit
    suffix = "" if unit in ("", "1") else f" {unit}"
    score = report.best_score
    if best is not None and best.strength is not None:
        how = COMPARED[best.strength.by]
        found.append((merit_words(best), f"strength of the best, attempt {best.id}, {how}"))
    elif score is not None and score.mean is not None:
        name = "your reward" if report.of_own_reward else f"best, attempt {score.name}"
        found.append((f"{wording.plus_minus(score.mean, score.std)}{suffix}", name))
    elif best is not None:
        value = f"{wording.number(best.fitness)}{suffix}" if report.is_measured else wording.MISSING
        found.append((value, f"best, attempt {best.id}"))
    for name in ("human", "sparse"):
        baseline = report.score(name)
        if baseline is not None and baseline.mean is not None:
            fitness = wording.plus_minus(baseline.mean, baseline.std)
            found.append((f"{fitness}{suffix}", f"{name} reward"))
    trained = sum(attempt.stage is Stage.TRAINED for attempt in report.attempts)
    if not report.of_own_reward:
        found.append((f"{trained:,} of {len(report.attempts):,}", "attempts trained"))
    found.append((wording.duration(report.seconds), "wall time"))
    if report.cost.money:
        found.append((wording.money(report.cost.money), "for models"))
    return found


def parent_of(report: RunReport) -> Attempt | None:
    """First parent of the best attempt; None for one that was made from none."""
    parents = report.best.proposal.parents if report.best is not None else ()
    return next((each for each in report.attempts if each.id in parents[:1]), None)


def making(best: Attempt, parent: Attempt | None) -> str:
    """Sentence on how the best attempt was made."""
    author = one_line(best.proposal.reward.author, LONGEST_REASON)
    who = "the offline designer" if author == "offline" else author
    sentence = f"Attempt {best.id} ({origin(best.proposal)}), by {who}."
    if parent is not None:
        measure, before = measure_of([parent]), merit_words(parent)
        change = difference(parent.proposal.reward.source, best.proposal.reward.source)
        sentence += f" Compared with {parent.id}, which had {measure} {before}: {change}."
    return sentence


@dataclass(frozen=True)
class Term:
    """A term of the reward over its training."""

    name: str
    share: float
    """Share of the reward's size, 0 to 1."""
    words: str


def terms(diagnosis: Diagnosis | None) -> list[Term]:
    """Terms of a reward, the largest share first."""
    components = () if diagnosis is None else diagnosis.components
    order = sorted(components, key=lambda component: -component.share)
    return [Term(each.name, each.share, _payment(each.values, each.mean)) for each in order]


def _payment(values: Sequence[float], mean: float) -> str:
    """`pays 0.993 per step on average, from 0.930 at first to 1.00 at the end`."""
    verb = "pays" if mean > 0 else "costs" if mean < 0 else "is"
    words = f"{verb} {wording.number(abs(mean))} per step on average"
    if len(values) > 1:
        first, last = wording.number(values[0]), wording.number(values[-1])
        words += f", from {first} at first to {last} at the end"
    return words


# ── what failed ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Failures:
    """One kind of failure."""

    heading: str
    groups: list[tuple[str, int, str]]
    """Reason or code, number of attempts, and examples."""
    left_out: int
    """Groups that are not shown."""


def failures(report: RunReport) -> list[Failures]:
    """Rejections by code, failed trainings by reason, findings on trainings by code."""
    attempts = report.attempts
    errors: dict[str, list[str]] = {}
    thrown_out = rejected(attempts)
    for attempt in thrown_out:
        codes = errors_by_code([attempt])
        for code in codes or ["no code"]:
            errors.setdefault(code, []).append(f"{attempt.id}: {discard_reason(attempt)}")
    broken: dict[str, list[str]] = {}
    for attempt in attempts:
        if attempt.stage is Stage.FAILED:
            reason = f"{attempt.stage.value}: {one_line(attempt.reason, LONGEST_REASON)}"
            broken.setdefault(reason, []).append(attempt.id)
        for repeat in attempt.repeats:
            if repeat.failure:
                reason = f"failed when repeated: {one_line(repeat.failure, LONGEST_REASON)}"
                broken.setdefault(reason, []).append(attempt.id)
    randomised = () if report.randomisation is None else report.randomisation.trainings
    for where, trainings in (
        ("in a final training", report.final_trainings),
        ("under other parameters", randomised),
    ):
        for training in trainings:
            if training.failure:
                reason = f"failed {where}: {one_line(training.failure, LONGEST_REASON)}"
                broken.setdefault(reason, []).append(f"{training.name} (seed {training.seed})")
    seen: dict[str, list[str]] = {}
    for attempt in attempts:
        if report.of_own_reward or attempt.diagnosis is None:
            continue  # what is known of a person's one reward stands above
        findings = attempt.diagnosis.findings
        for code, message in {each.code: each.message for each in findings}.items():
            seen.setdefault(code, []).append(f"{attempt.id}: {message}")
    found = (
        _grouped("Thrown out by the critic", errors, 2, "\n"),
        _grouped("Trainings that ended without a result", broken, MOST_EXAMPLES, ", "),
        _grouped("What the analyzer saw in the trainings", seen, 1, "\n"),
    )
    return [each for each in found if each.groups]


def _grouped(
    heading: str, members: dict[str, list[str]], examples: int, separator: str
) -> Failures:
    counts = Counter({reason: len(names) for reason, names in members.items()})
    groups = []
    for reason, count in counts.most_common(MOST_EXAMPLES):
        shown = [one_line(each, LONGEST_REASON) for each in members[reason][:examples]]
        more = [f"… and {count - len(shown):,} more"] if count > len(shown) else []
        groups.append((reason, count, separator.join([*shown, *more])))
    return Failures(heading, groups, max(0, len(counts) - MOST_EXAMPLES))


def shown_attempts(attempts: Sequence[Attempt]) -> list[Attempt]:
    """Attempts of the table: best first, then those without a fitness, at most `MOST_ROWS`."""
    best = ranked(attempts)
    names = {attempt.id for attempt in best}
    return [*best, *(each for each in attempts if each.id not in names)][:MOST_ROWS]


# ── the clip ──────────────────────────────────────────────────────────────────────────────────────


def clip_of(report: RunReport) -> tuple[Path, int] | None:
    """Path and bytes of the best reward's clip; None without one."""
    path = report.folder / BEST / VIDEO
    with suppress(OSError):
        descriptor = open_plain(path)
        try:
            return path, os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)
    return None


def clip_parts(path: Path) -> Iterator[str]:
    """A clip as parts of its base64."""
    with os.fdopen(open_plain(path), "rb") as file:
        while part := file.read(_PART):
            yield base64.b64encode(part).decode()
