"""Summaries of curve points, for checkpoints and for broken-off trainings."""

from __future__ import annotations

from collections.abc import Sequence

from eureka_agent.records import CheckpointRecord, CurvePoint


def checkpoint_iterations(iterations: int, checkpoints: int) -> tuple[int, ...]:
    """Iterations (from 1) after which a checkpoint is due, evenly spaced up to the last one; fewer
    than `checkpoints` where there are fewer iterations."""
    count = min(iterations, checkpoints)
    return tuple(-(-iterations * (index + 1) // count) for index in range(count))


def checkpoints_of(
    points: Sequence[CurvePoint], iterations: int, checkpoints: int
) -> tuple[CheckpointRecord, ...]:
    """Checkpoints that a training of so many iterations has reached by these points."""
    due = [end for end in checkpoint_iterations(iterations, checkpoints) if end <= len(points)]
    return tuple(summarize(points[begin:end]) for begin, end in zip([0, *due], due, strict=False))


def summarize(points: Sequence[CurvePoint]) -> CheckpointRecord:
    """Checkpoint of points with the same components: means over episodes, and over steps (all
    iterations have one length)."""
    episodes = sum(point.episodes for point in points)
    return CheckpointRecord(
        env_steps=points[-1].env_steps,
        fitness=_episode_mean([(point.fitness, point.episodes) for point in points]),
        episode_length=_episode_mean([(point.episode_length, point.episodes) for point in points]),
        episodes=episodes,
        reward=_mean([point.reward for point in points]),
        components={
            name: _mean([point.components[name] for point in points if name in point.components])
            for name in points[0].components
        },
    )


def _episode_mean(values: list[tuple[float | None, int]]) -> float | None:
    known = [(value, count) for value, count in values if value is not None]
    episodes = sum(count for _, count in known)
    return sum(value * count for value, count in known) / episodes if episodes else None


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
