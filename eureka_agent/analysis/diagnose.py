"""Diagnosis of a training from outcome, curves and episodes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eureka_agent.analysis.coverage import visited
from eureka_agent.analysis.curves import gather
from eureka_agent.analysis.findings import all_findings
from eureka_agent.analysis.reflection import summarize_components
from eureka_agent.analysis.text import designer_text, endings_text
from eureka_agent.analysis.trajectories import episodes_text, read_trajectories
from eureka_agent.records import CurvePoint, Diagnosis, Evaluation, Outcome, TaskDescription


def diagnose(
    outcome: Outcome | None,
    points: Sequence[CurvePoint],
    evaluation: Evaluation | None,
    description: TaskDescription,
    failure: str = "",
    trajectories: Path | None = None,
) -> Diagnosis:
    """Diagnose a training. `outcome`: None for one that broke off (see `failure`); `trajectories`:
    npz of worst and best episode. Raises RunFolderError."""
    episodes = read_trajectories(trajectories) if trajectories is not None else {}
    seen = visited(episodes, description)
    evidence = gather(outcome, points, evaluation, description, failure, seen)
    components = summarize_components(evidence)
    findings = all_findings(evidence)
    fitness = evidence.score
    if fitness is None and outcome is not None:
        fitness = outcome.training_fitness
    episode_parts = episodes_text(episodes, evaluation, description)
    return Diagnosis(
        fitness=fitness,
        fitness_values=tuple(each.fitness for each in evidence.checkpoints),
        episode_length_values=tuple(each.episode_length for each in evidence.checkpoints),
        components=components,
        findings=findings,
        visited=seen,
        endings=endings_text(evidence),
        text=designer_text(evidence, components, findings, episode_parts),
    )
