"""Curve points summed up: the trainer's checkpoints, and the analyzer's where a training broke
off."""

from __future__ import annotations

from collections.abc import Sequence

from eureka_agent.records import CheckpointRecord, CurvePoint


def checkpoint_iterations(iterations: int, checkpoints: int) -> tuple[int, ...]:
    """The iterations (from 1) after which a checkpoint is due, evenly spaced; the last one is the
    last iteration.

    Fewer than `checkpoints` where there are fewer iterations.
    """
    count = min(iterations, checkpoints)
    return tuple(-(-iterations * (index + 1) // count) for index in range(count))


def checkpoints_of(
    points: Sequence[CurvePoint], iterations: int, checkpoints: int
) -> tuple[CheckpointRecord, ...]:
    """The checkpoints that a training of so many iterations has behind it, as its trainer sums them
    up."""
    due = [
        iteration
        for iteration in checkpoint_iterations(iterations, checkpoints)
        if iteration <= len(points)
    ]
    return tuple(summarize(points[begin:end]) for begin, end in zip([0, *due], due, strict=False))


def summarize(points: Sequence[CurvePoint]) -> CheckpointRecord:
    """The points of one checkpoint, which have the same components: means over episodes, and over
    steps (iterations are of one length)."""
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
    episodes = sum(count for value, count in values if value is not None)
    return (
        sum(value * count for value, count in values if value is not None) / episodes
        if episodes
        else None
    )


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
