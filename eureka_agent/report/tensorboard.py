"""Curves as a TensorBoard event file, written without torch or tensorflow."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from eureka_agent.records import CurvePoint

FILE_PREFIX = "events.out.tfevents"
TRAINING_FIELDS = (
    "action_saturation",
    "action_std",
    "learning_rate",
    "kl",
    "entropy",
    "value_loss",
    "policy_loss",
    "explained_variance",
)
"""Fields of `CurvePoint` with the tag `training/<field>`."""


def write_event_file(path: Path, points: Sequence[CurvePoint]) -> None:
    """Write an event file, whose name must begin with `FILE_PREFIX`; a scalar's step is its env
    steps.

    Tags: `fitness`, `episode_length`, `reward`, `component/<name>`, `ended_by/<cause>`,
    `training/<field>`. Unknown values are left out.
    """
    # slow to import: 0.2 s
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.record_writer import RecordWriter

    wall_time = time.time()
    with path.open("wb") as stream:
        writer = RecordWriter(stream)
        writer.write(Event(wall_time=wall_time, file_version="brain.Event:2").SerializeToString())
        for point in points:
            values = [
                Summary.Value(tag=tag, simple_value=value) for tag, value in scalars(point).items()
            ]
            event = Event(wall_time=wall_time, step=point.env_steps, summary=Summary(value=values))
            writer.write(event.SerializeToString())


def scalars(point: CurvePoint) -> Mapping[str, float]:
    """Values of a curve point by TensorBoard tag."""
    values: dict[str, float | None] = {
        "fitness": point.fitness,
        "episode_length": point.episode_length,
        "reward": point.reward,
        **{f"component/{name}": value for name, value in point.components.items()},
        **{f"ended_by/{cause}": float(count) for cause, count in point.terminations.items()},
        **{f"training/{name}": getattr(point, name) for name in TRAINING_FIELDS},
    }
    return {tag: value for tag, value in values.items() if value is not None}
