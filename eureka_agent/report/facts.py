"""Facts of a report in plain words, for `report.md` and `report.html`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from eureka_agent import wording
from eureka_agent.archive.artefacts import BEST, HTML_REPORT, VIDEO
from eureka_agent.attempt_words import (
    early_ends,
    fitness_per_seed,
    fitness_words,
    remark,
    rung_reached,
)
from eureka_agent.records import BASELINES, Attempt, Diagnosis, Outcome, Score, Stage
from eureka_agent.report.run_report import RunReport


def score_note(report: RunReport) -> str:
    """Sentences on the conditions of the scores."""
    note = (
        "Every reward here was trained from the same fresh seeds under the same budget, and each"
        " policy was scored, acting without noise, in a process that never loaded its reward."
    )
    if len(report.finalists) > 1:
        note += " The best has the highest mean of the finalists, which is partly luck."
        if any(None in each.fitness for each in report.finalists):
            note += " A failed seed counts as the worst there."
        if len({len(each.seeds) for each in report.finalists}) > 1:
            note += " Finalists with fewer seeds could hardly win any more."
    if len({len(score.seeds) for score in report.scores}) > 1:
        note += " Some have fewer seeds, the first ones; comparisons use the seeds of each."
    if is_normalized(report):
        note += " Human-normalised is (mean − sparse) / |human − sparse|: 0 is the sparse reward."
    if any(score.card for score in report.scores) and report.card is not None:
        note += f" Human and sparse are from {report.card.origin}, and were not trained here."
    elif any(score.cached for score in report.scores):
        note += " An earlier run trained the rewards from the cache."
    return note


def is_normalized(report: RunReport) -> bool:
    """True where a score is human-normalised."""
    return any(score.human_normalized is not None for score in report.scores)


def score_titles(report: RunReport) -> list[str]:
    """Titles of the columns of `score_cells`."""
    human = ["human-normalised"] if is_normalized(report) else []
    return ["reward", f"fitness{report.unit_note}, mean ± std", *human, "per seed", "seeds"]


def score_cells(report: RunReport, score: Score) -> list[str]:
    """A score as cells of a table."""
    name = "your reward" if report.of_own_reward else f"attempt {score.name}"
    return [
        score.name if score.name in BASELINES else name,
        wording.plus_minus(score.mean, score.std),
        *([wording.number(score.human_normalized)] if is_normalized(report) else []),
        fitness_per_seed(score),
        ", ".join(map(str, score.seeds)),
    ]


# ── attempts ──────────────────────────────────────────────────────────────────────────────────────


def attempt_titles(report: RunReport) -> tuple[str, ...]:
    """Titles of the columns of `attempt_cells`."""
    merits = report.measure, "seeds", *(["counted on"] if report.counted_on else [])
    return "attempt", "operator", "parents", "stage", *merits, "reason or first finding"


def attempt_cells(report: RunReport, attempt: Attempt) -> list[str]:
    """An attempt as cells of a table with `attempt_titles`."""
    counted_on = report.counted_on.get(attempt.id)
    return [
        attempt.id,
        wording.words(attempt.proposal.operator.value),
        ", ".join(attempt.proposal.parents),
        attempt.stage.value,
        fitness_words(attempt, report.settings.env_steps),
        str(len(attempt.fitness_per_seed) or ""),
        *(["" if counted_on is None else wording.number(counted_on)] if report.counted_on else []),
        remark(attempt),
    ]


def attempts_note(report: RunReport) -> str:
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
    if any(map(rung_reached, report.attempts)):
        note += " A fitness `at` a percentage is the score after that part of a training."
    return note


def rejected(attempts: Sequence[Attempt]) -> list[Attempt]:
    """Attempts that the critic threw out."""
    return [attempt for attempt in attempts if attempt.stage is Stage.REJECTED]


def errors_by_code(attempts: Sequence[Attempt]) -> Counter[str]:
    """Number of the critic's errors in these attempts, by code."""
    return Counter(
        finding.code
        for attempt in attempts
        if attempt.verdict is not None
        for finding in attempt.verdict.findings
        if finding.severity == "error"
    )


def training_name(attempt: Attempt) -> str:
    """Name of the training that an attempt's diagnosis is of."""
    return "first training" if attempt.repeats else "training"


def episodes_sentence(outcome: Outcome, training: str, *, measured: bool = True) -> str:
    """Sentence on the evaluated episodes of a training. `measured`: by a metric."""
    fitness = f"fitness {wording.plus_minus(outcome.fitness, outcome.fitness_std)}"
    facts = [fitness if measured else "", early_ends(outcome)]
    if outcome.success_rate is not None:
        facts.append(f"{outcome.success_rate:.0%} solved the task")
    episodes = wording.plural(outcome.evaluation_episodes, "episode")
    return (
        f"The policy of its {training}, acting without noise in {episodes}:"
        f" {', '.join(filter(None, facts))}."
    )


def findings_sentence(diagnosis: Diagnosis, training: str) -> str:
    """Introduction of the analyzer's findings."""
    if diagnosis.findings:
        return f"What the analyzer saw in its {training}:"
    return f"The analyzer found nothing wrong in its {training}."


# ── the run ───────────────────────────────────────────────────────────────────────────────────────


def restarts(report: RunReport) -> str:
    """Sentence on trainings whose worker died; empty without any."""
    retries = report.cost.final_restarts
    for attempt in report.attempts:
        retries += attempt.retries + sum(repeat.retries for repeat in attempt.repeats)
    restarted = wording.plural(retries, "training")
    return f"{restarted} started again because a worker died." if retries else ""


def changed_settings(report: RunReport) -> tuple[list[tuple[str, str, str]], str]:
    """Name, value and default of each setting that differs from the task's defaults, and a sentence
    on the others."""
    own = report.description.training_on(report.devices[-1] if report.devices else "cpu")
    rows = []
    fields = type(report.settings).model_fields
    for name, field in fields.items():
        value = _as_text(getattr(report.settings, name))
        default = _as_text(own.get(name, field.default))
        if value != default:
            rows.append((name, value, default))
    others = wording.plural(len(fields) - len(rows), "other setting")
    return rows, f"{others} at the default: all are in `settings.yaml`."


def _as_text(value: object) -> str:
    """Value of a setting in one line; lists and tuples are equal."""
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def provenance(report: RunReport) -> list[str]:
    """Sentences on code, time, versions, designer, wall and devices of a run."""
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    devices = f", trained on {', then '.join(report.devices)}" if report.devices else ""
    sentences = [
        f"Commit {report.git_commit}" if report.git_commit else "",
        f"Started {report.started}",
        versions,
        f"Designer {report.designer}, wall {report.wall}{devices}",
        f"Environment fingerprint {report.description.fingerprint[:16]}",
    ]
    return [f"{sentence}." for sentence in sentences if sentence]


def run_files(report: RunReport) -> list[tuple[tuple[str, ...], str]]:
    """Names of files and folders in a run's folder, and their content with code in backticks."""
    video = (report.folder / BEST / VIDEO).is_file()
    best = "your reward with its" if report.of_own_reward else "the best attempt, its prompt,"
    files: list[tuple[tuple[str, ...], str]] = [
        ((HTML_REPORT,), "this report with charts and lineage, in one file for a browser"),
    ]
    if report.written_fitness:
        files.append((("fitness.py", "fitness.json"), "the written fitness"))
    clip = f", and `{VIDEO}`, a clip of that policy" if video else ""
    content = f"`reward.py` and `policy.safetensors` of the best reward function{clip}"
    files.append(((f"{BEST}/",), content))
    if report.best:
        files.append(((f"attempts/{report.best.id}/",), f"{best} verdict, curves and policy"))
    return [
        *files,
        (
            ("attempts/<id>/",),
            "every attempt, rejected ones included; in `seed-<seed>/` trainings that confirm it",
        ),
        (
            ("finals/<id>/seed-<seed>/", "baselines/<name>/seed-<seed>/"),
            "the final trainings and the baselines",
        ),
        (
            ("archive.sqlite",),
            "all of it as tables; `settings.yaml`, `environment.json`: what was searched and how",
        ),
    ]
