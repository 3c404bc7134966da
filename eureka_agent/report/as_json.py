"""A run and its attempts as JSON, for `--format json`. Numbers that are not finite become null."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from eureka_agent.randomisation_records import RangeScore
from eureka_agent.records import Attempt, Diagnosis, Score, Stage, Verdict
from eureka_agent.report.randomisation import comparison, distributions, sentence
from eureka_agent.report.run_report import RunCost, RunReport


def to_json(report: RunReport) -> dict[str, Any]:
    """A run in plain JSON types."""
    description = report.description
    scores = {score.name: score_to_json(score) for score in report.scores}
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
        "coverage": None if report.coverage is None else asdict(report.coverage),
        "human": scores.get("human"),
        "sparse": scores.get("sparse"),
        "finalists": [scores[score.name] for score in report.finalists],
        "attempts": [attempt_to_json(attempt) for attempt in report.all_attempts],
        "judge": None if report.by_model is None else asdict(report.by_model),
        "randomisation": randomisation_to_json(report),
        "cost": _cost(report.cost),
        "versions": dict(report.versions),
        "git_commit": report.git_commit,
        "command": report.command_line(),
    }


def randomisation_to_json(report: RunReport) -> dict[str, Any] | None:
    """The search over distributions of parameters; None without one."""
    best = report.best
    if best is None or (found := best.randomisation) is None:
        return None
    compared = comparison(report, best)
    return {
        "attempt": best.id,
        "prior": None if found.prior is None else found.prior.model_dump(mode="json"),
        "control": _by_seed(best.range_scores),
        "distributions": [
            {**each.model_dump(mode="json"), **_by_seed(scores)}
            for each, scores in distributions(report)
        ],
        "best": found.best,
        "difference": None if compared is None else asdict(compared),
        "text": sentence(report, best),
    }


def _by_seed(scores: Sequence[RangeScore]) -> dict[str, Any]:
    return {"scores": [each.model_dump(mode="json") for each in scores]}


def _cost(cost: RunCost) -> dict[str, Any]:
    """Cost of a run; money is a decimal number in a string, None where unknown."""
    values = asdict(cost)
    del values["final_restarts"]
    money = None if cost.money is None else str(cost.money)
    return {"trainings": cost.trainings, **values, "money": money if cost.requests else "0"}


def best_to_json(report: RunReport) -> dict[str, Any] | None:
    """The best attempt with its score over fresh seeds; None where nothing was trained."""
    best = report.best
    if best is None:
        return None
    no_score = Score(name=best.id, seeds=(), fitness=(), mean=None, std=None)
    values = score_to_json(report.best_score or no_score)
    del values["name"], values["cached"]
    return {
        "id": best.id,
        **values,
        "search_fitness": finite(best.fitness),
        "strength": None if best.strength is None else best.strength.model_dump(),
        "operator": best.proposal.operator.value,
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
    rungs = [(score.env_steps, score.fitness) for score in attempt.rungs]
    place = {"id", "iteration", "sample", "revision"}
    facts = place | {"stage", "reason", "seed", "retries", "created"}
    return {
        **attempt.model_dump(include=facts, mode="json"),
        **attempt.proposal.model_dump(include={"operator", "parents"}, mode="json"),
        "designer": attempt.proposal.reward.author,
        "fitness": finite(attempt.fitness),
        "strength": None if attempt.strength is None else attempt.strength.model_dump(),
        "trainings": _trainings(attempt),
        "rungs": [{"env_steps": steps, "fitness": finite(fitness)} for steps, fitness in rungs],
        "success_rate": attempt.outcome.success_rate if attempt.outcome is not None else None,
        "findings": _findings(attempt.verdict),
        "diagnosis": _findings(attempt.diagnosis),
    }


def _findings(found: Verdict | Diagnosis | None) -> list[dict[str, Any]]:
    return [] if found is None else [each.model_dump(mode="json") for each in found.findings]


def _trainings(attempt: Attempt) -> list[dict[str, Any]]:
    """All trainings of an attempt in the search, in order; `fitness` is null after a failure."""
    if attempt.stage not in (Stage.TRAINED, Stage.FAILED):
        return []
    repeats = ((repeat.seed, repeat.outcome) for repeat in attempt.repeats)
    return [
        {"seed": seed, "fitness": None if outcome is None else finite(outcome.fitness)}
        for seed, outcome in ((attempt.seed, attempt.outcome), *repeats)
    ]


def attempt_in_full_to_json(attempt: Attempt, fitness_origin: str = "") -> dict[str, Any]:
    """An attempt with source, reasoning, outcome and reflection, for `eureka show RUN ATTEMPT`."""
    return {
        **attempt_to_json(attempt),
        "fitness_origin": fitness_origin,
        "source": attempt.proposal.reward.source,
        "reasoning": attempt.proposal.reasoning,
        "outcome": attempt.outcome.model_dump(mode="json") if attempt.outcome is not None else None,
        "reflection": attempt.diagnosis.whole if attempt.diagnosis is not None else "",
    }


def finite(value: float | None) -> float | None:
    """The value, or None for NaN and infinity, which JSON lacks."""
    return value if value is not None and math.isfinite(value) else None
