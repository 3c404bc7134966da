"""CSV and TensorBoard files hold what the curve points hold."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from eureka_agent.records import CurvePoint
from eureka_agent.report.curves import read_curves_csv, write_curves_csv, write_event_file


def test_csv_gives_the_same_points_back(tmp_path: Path, point: Callable[..., CurvePoint]) -> None:
    points = (point(512, None), point(1024, 1 / 3, reward=0.1 + 0.2), point(1536, -2.0))
    write_curves_csv(tmp_path / "curves.csv", points)
    assert read_curves_csv(tmp_path / "curves.csv") == points


def test_csv_columns_are_named(tmp_path: Path, point: Callable[..., CurvePoint]) -> None:
    write_curves_csv(tmp_path / "curves.csv", [point(512, 1.0)])
    header, row = (tmp_path / "curves.csv").read_text().splitlines()
    cells = dict(zip(header.split(","), row.split(","), strict=True))
    assert cells["env_steps"] == "512"
    assert cells["components/effort"] == "-0.125"
    assert cells["terminations/fell"] == "3"


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


@pytest.mark.slow
def test_writing_an_event_file_imports_neither_torch_nor_tensorflow(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from eureka_agent.report.curves import"
        f" write_event_file;write_event_file(Path({str(tmp_path / 'events.out.tfevents.x')!r}),"
        " []);sys.exit(any(name in sys.modules for name in ('torch', 'tensorflow')))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
