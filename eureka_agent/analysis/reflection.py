"""Eureka's reward reflection (Ma et al. 2023): a training at ten checkpoints."""

from __future__ import annotations

from collections.abc import Sequence

from eureka_agent.analysis.curves import Evidence
from eureka_agent.records import ComponentSummary
from eureka_agent.wording import MISSING, significant


def summarize_components(evidence: Evidence) -> tuple[ComponentSummary, ...]:
    """Summarise each component over the checkpoints, in the reward's order."""
    shares = evidence.shares()
    summaries = []
    for name in evidence.component_names():
        values = tuple(
            each.components[name] for each in evidence.checkpoints if name in each.components
        ) or (0.0,)
        summaries.append(
            ComponentSummary(
                name=name,
                values=values,
                maximum=max(values),
                mean=sum(values) / len(values),
                minimum=min(values),
                share=shares[name],
            )
        )
    return tuple(summaries)


def reflection(evidence: Evidence, components: Sequence[ComponentSummary]) -> str:
    """The reflection as a table: a row for each component, reward, fitness and episode length."""
    if not evidence.checkpoints:
        return "The training ended before its first checkpoint."
    description = evidence.description
    rows: list[tuple[str, list[float | None]]] = [
        (component.name, list(component.values)) for component in components
    ]
    first, last = _end_shares(evidence)
    shares = {name: f"  ({first[name]:.0%} → {last[name]:.0%})" for name in first}
    rows.append(("reward", [each.reward for each in evidence.checkpoints]))
    rows.append(
        (f"fitness [{description.fitness_unit}]", [each.fitness for each in evidence.checkpoints])
    )
    rows.append(("episode length", [each.episode_length for each in evidence.checkpoints]))
    width = max(len(name) for name, _ in rows)
    lines = [
        "The training, in which exploration noise costs fitness: means of"
        f" {len(evidence.checkpoints)} parts of {evidence.checkpoints[-1].env_steps} environment"
        " steps, one seed. Components and reward: a step; in brackets a component's share of the"
        f" reward's size in the first and the last part. Fitness: {description.fitness_doc}."
        f" Episode length: control steps, {description.max_episode_length} at most."
    ]
    lines += [
        f"{name:<{width}}  {' '.join(number(value) for value in values)}{shares.get(name, '')}"
        for name, values in rows
    ]
    return "\n".join(lines)


def _end_shares(evidence: Evidence) -> tuple[dict[str, float], dict[str, float]]:
    """Components' shares of the reward's magnitude at the first and last checkpoint."""
    ends = [each.env_steps for each in evidence.checkpoints]
    first = [point for point in evidence.points if point.env_steps <= ends[0]]
    start = ends[-2] if len(ends) > 1 else 0
    last = [point for point in evidence.points if start < point.env_steps <= ends[-1]]
    return (evidence.shares(first), evidence.shares(last)) if first and last else ({}, {})


def number(value: float | None) -> str:
    """Three significant digits; a dash for None."""
    return significant(value, 3, MISSING)
