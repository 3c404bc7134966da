"""CSV and TensorBoard files hold what the curve points hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from eureka_agent.records import CurvePoint
from eureka_agent.report.curves import read_curves_csv, write_curves_csv, write_event_file


def test_csv_gives_the_same_points_back(tmp_path: Path, point: Callable[..., CurvePoint]) -> None:
    points = (point(512, None), point(1024, 1 / 3, reward=0.1 + 0.2), point(1536, -2.0))
    write_curves_csv(tmp_path / "curves.csv", points)
    assert read_curves_csv(tmp_path / "curves.csv") == points


def test_tensorboard_reads_the_scalars_at_their_env_steps(
    tmp_path: Path, point: Callable[..., CurvePoint]
) -> None:
    write_event_file(tmp_path / "events.out.tfevents.1-02", [point(512, None), point(1024, 2.5)])
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert [(event.step, event.value) for event in events.Scalars("fitness")] == [(1024, 2.5)]
    assert [(event.step, event.value) for event in events.Scalars("component/height")] == [
        (512, 0.25),
        (1024, 0.25),
    ]
    assert {"reward", "episode_length", "training/explained_variance", "ended_by/fell"} <= set(
        events.Tags()["scalars"]
    )


def test_writing_again_replaces_the_file(tmp_path: Path, point: Callable[..., CurvePoint]) -> None:
    write_event_file(tmp_path / "events.out.tfevents.1-02", [point(512, 1.0)])
    write_event_file(tmp_path / "events.out.tfevents.1-02", [point(512, 3.0)])
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert [event.value for event in events.Scalars("fitness")] == [3.0]
