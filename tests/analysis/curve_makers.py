"""Curves made by hand."""

from __future__ import annotations

from collections.abc import Sequence

from eureka_agent.analysis.curves import Evidence, gather
from eureka_agent.records import CheckpointRecord, CurvePoint, Evaluation, Outcome, TaskDescription


def point(index: int, **changed: object) -> CurvePoint:
    """An unremarkable iteration of 100 steps, the `index`-th from 0."""
    plain: dict[str, object] = {
        "env_steps": 100 * (index + 1), "fitness": 1.0, "episode_length": 100.0, "episodes": 4, "reward": 1.0,
        "components": {"a": 0.6, "b": 0.4}, "component_magnitudes": {"a": 0.6, "b": 0.4}, "component_deviations": {"a": 0.3, "b": 0.2},
        "terminations": {"time_out": 4}, "action_saturation": 0.1, "action_std": 0.6, "learning_rate": 1e-3, "kl": 0.01, "entropy": 1.0,
        "value_loss": 0.1, "policy_loss": 0.0, "explained_variance": 0.5,
    }  # fmt: skip
    return CurvePoint.model_validate(plain | changed)


def points(count: int = 9, **changed: object) -> list[CurvePoint]:
    """Iterations that are all alike."""
    return [point(index, **changed) for index in range(count)]


def outcome(
    fitness: Sequence[float | None],
    reward: Sequence[float] | None = None,
    components: dict[str, Sequence[float]] | None = None,
) -> Outcome:
    """A training with these values at its checkpoints, 1000 steps apart."""
    rewards = reward if reward is not None else [1.0] * len(fitness)
    parts = components if components is not None else {"a": rewards}
    checkpoints = tuple(
        CheckpointRecord(
            env_steps=1000 * (index + 1),
            fitness=value,
            episode_length=None if value is None else 100.0,
            episodes=0 if value is None else 4,
            reward=rewards[index],
            components={name: values[index] for name, values in parts.items()},
        )
        for index, value in enumerate(fitness)
    )
    known = [(value, index) for index, value in enumerate(fitness) if value is not None]
    best, place = max(known) if known else (None, len(fitness) - 1)
    return Outcome(
        env_steps=1000 * len(fitness),
        seconds=1.0,
        checkpoints=checkpoints,
        best_checkpoint=place,
        training_fitness=best,
    )


def evidence(
    description: TaskDescription,
    fitness: Sequence[float | None] = (1.0,),
    curve: Sequence[CurvePoint] | None = None,
    reward: Sequence[float] | None = None,
    components: dict[str, Sequence[float]] | None = None,
    evaluation: Evaluation | None = None,
    failure: str = "",
) -> Evidence:
    """Checkpoints and points that need not agree: each finding looks at one of them."""
    return gather(
        outcome(fitness, reward, components),
        points() if curve is None else curve,
        evaluation,
        description,
        failure,
    )
