"""A run and its attempts as JSON, for `--format json`. Numbers that are not finite become null."""

from __future__ import annotations

import math
from typing import Any

from eureka_agent.records import Attempt, Score, Stage
from eureka_agent.report.run_report import RunCost, RunReport


def to_json(report: RunReport) -> dict[str, Any]:
    """A run in plain JSON types."""
    description = report.description
    human, sparse = report.score("human"), report.score("sparse")
    return {
        "run": report.run_name,
        "folder": str(report.folder),
        "status": report.status.value,
        "message": report.message,
        "budget": list(report.budget),
        "remarks": list(report.remarks),
        "started": report.started,
        "seconds": report.seconds,
        "task": {
            "environment": description.environment,
            "name": description.task,
            "sentence": report.sentence,
            "fitness_doc": description.fitness_doc,
            "fitness_unit": description.fitness_unit,
            "fitness_author": description.fitness_author,
            "fitness_origin": report.fitness_origin,
        },
        "settings": report.settings.model_dump(mode="json"),
        "designer": report.designer,
        "wall": report.wall,
        "devices": list(report.devices),
        "best": best_to_json(report),
        "human": score_to_json(human) if human is not None else None,
        "sparse": score_to_json(sparse) if sparse is not None else None,
        "finalists": [score_to_json(score) for score in report.finalists],
        "attempts": [attempt_to_json(attempt) for attempt in report.attempts],
        "cost": {
            "trainings": report.cost.trainings,
            "search_trainings": report.cost.search_trainings,
            "final_trainings": report.cost.final_trainings,
            "baseline_trainings": report.cost.baseline_trainings,
            "env_steps": report.cost.env_steps,
            "requests": report.cost.requests,
            "prompt_tokens": report.cost.prompt_tokens,
            "completion_tokens": report.cost.completion_tokens,
            "uncounted": report.cost.uncounted,
            "money": _money(report.cost),
        },
        "versions": dict(report.versions),
        "git_commit": report.git_commit,
        "command": report.command_line(),
    }


def _money(cost: RunCost) -> str | None:
    """US dollars as a decimal number in a string; None where unknown."""
    if cost.requests == 0:
        return "0"
    return None if cost.money is None else str(cost.money)


def best_to_json(report: RunReport) -> dict[str, Any] | None:
    """The best attempt with its score over fresh seeds (null where it was not trained again); None
    where nothing trained."""
    if report.best is None:
        return None
    score = report.best_score or Score(
        name=report.best.id, seeds=(), fitness=(), mean=None, std=None
    )
    values = score_to_json(score)
    del values["name"], values["cached"]
    return {
        "id": report.best.id,
        **values,
        "search_fitness": finite(report.best.fitness),
        "operator": report.best.proposal.operator.value,
        "source": str(report.folder / "best" / "reward.py"),
    }


def score_to_json(score: Score) -> dict[str, Any]:
    """A score over seeds."""
    return {
        "name": score.name,
        "mean": finite(score.mean),
        "std": finite(score.std),
        "seeds": list(score.seeds),
        "fitness_per_seed": [finite(value) for value in score.fitness],
        "human_normalized": finite(score.human_normalized),
        "cached": score.cached,
    }


def attempt_to_json(attempt: Attempt) -> dict[str, Any]:
    """An attempt without its source and curves."""
    verdict, diagnosis = attempt.verdict, attempt.diagnosis
    return {
        "id": attempt.id,
        "iteration": attempt.iteration,
        "sample": attempt.sample,
        "revision": attempt.revision,
        "operator": attempt.proposal.operator.value,
        "parents": list(attempt.proposal.parents),
        "designer": attempt.proposal.reward.author,
        "stage": attempt.stage.value,
        "reason": attempt.reason,
        "fitness": finite(attempt.fitness),
        "trainings": _trainings(attempt),
        "rungs": [
            {"env_steps": score.env_steps, "fitness": finite(score.fitness)}
            for score in attempt.rungs
        ],
        "success_rate": attempt.outcome.success_rate if attempt.outcome is not None else None,
        "seed": attempt.seed,
        "retries": attempt.retries,
        "created": attempt.created,
        "findings": [finding.model_dump(mode="json") for finding in verdict.findings]
        if verdict is not None
        else [],
        "diagnosis": [finding.model_dump(mode="json") for finding in diagnosis.findings]
        if diagnosis is not None
        else [],
    }


def _trainings(attempt: Attempt) -> list[dict[str, Any]]:
    """Every training of an attempt in the search, the first one first; `fitness` is null where it
    failed."""
    if attempt.stage not in (Stage.TRAINED, Stage.FAILED, Stage.STOPPED):
        return []
    outcomes = [
        (attempt.seed, attempt.outcome),
        *((repeat.seed, repeat.outcome) for repeat in attempt.repeats),
    ]
    return [
        {"seed": seed, "fitness": None if outcome is None else finite(outcome.fitness)}
        for seed, outcome in outcomes
    ]


def attempt_in_full_to_json(attempt: Attempt, fitness_origin: str = "") -> dict[str, Any]:
    """An attempt with source, reasoning, outcome and the reflection's text, for `eureka show RUN
    ATTEMPT`."""
    return {
        **attempt_to_json(attempt),
        "fitness_origin": fitness_origin,
        "source": attempt.proposal.reward.source,
        "reasoning": attempt.proposal.reasoning,
        "outcome": attempt.outcome.model_dump(mode="json") if attempt.outcome is not None else None,
        "reflection": attempt.diagnosis.text if attempt.diagnosis is not None else "",
    }


def finite(value: float | None) -> float | None:
    """`value`, or None for NaN and infinity, which JSON lacks."""
    return value if value is not None and math.isfinite(value) else None
