"""Evaluation of a stored policy on further episodes."""

from __future__ import annotations

import statistics
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eureka_agent import wording
from eureka_agent.archive.run_folder import Run
from eureka_agent.fleet.evaluator import Evaluator
from eureka_agent.fleet.jobs import Problem
from eureka_agent.parameters import Distribution
from eureka_agent.records import Evaluation, TaskDescription
from eureka_agent.sandbox.choose import choose_wall
from eureka_agent.search.scoring import episode_statistics


async def rescore(
    run: Run,
    policy: Path,
    seed: int,
    episodes: int,
    parameters: Distribution,
    trajectories: Path | None = None,
) -> Evaluation:
    """Evaluate a policy file of `run` in a worker of its own."""
    with tempfile.TemporaryDirectory(prefix="eureka-") as scratch:
        evaluator = Evaluator(
            choose_wall(run.settings.sandbox),
            Problem(run.settings.env, run.description.task, run.written_fitness),
            Path(scratch),
        )
        try:
            return await evaluator.evaluate(policy, seed, episodes, trajectories, parameters)
        finally:
            await evaluator.close()


def evaluation_lines(
    summary: Mapping[str, Any], description: TaskDescription, fitness_origin: str
) -> dict[str, str]:
    """The summary for the user, as lines by their labels."""
    unit = "" if summary["unit"] in ("", "1") else f" {summary['unit']}"
    fitness = f"{wording.plus_minus(summary['mean'], summary['std'])}{unit}"
    spread = " (± is the deviation between episodes, not between seeds)"
    origin = f"{fitness_origin}: " if fitness_origin else ""
    lines = {
        "fitness": f"{fitness} over {wording.plural(summary['episodes'], 'episode')}"
        + ("" if summary["std"] is None else spread),
        "measures": f"{origin}{description.fitness_doc}",
    }
    if summary["success_rate"] is not None:
        threshold = f"{wording.number(description.success_fitness)}{unit}"
        lines["solved"] = (
            f"{summary['success_rate']:.0%} of the episodes (fitness of {threshold} or more)"
        )
    ends = ", ".join(f"{name} {count}" for name, count in summary["ended_by"].items())
    lines["length"] = (
        f"{summary['mean_length']:.0f} of {description.max_episode_length} steps on average; ended"
        f" by: {ends}"
    )
    return lines


def evaluation_summary(evaluation: Evaluation, description: TaskDescription) -> dict[str, Any]:
    """Mean, spread, success rate, length and ends of the episodes."""
    fitness = episode_statistics(evaluation, description.success_fitness)
    return {
        "episodes": len(evaluation.episodes),
        "seed": evaluation.seed,
        "mean": fitness.mean,
        "std": fitness.std,
        "unit": description.fitness_unit,
        "success_rate": fitness.success_rate,
        "mean_length": statistics.fmean(episode.length for episode in evaluation.episodes),
        "ended_by": dict(
            Counter(episode.ended_by for episode in evaluation.episodes).most_common()
        ),
    }
