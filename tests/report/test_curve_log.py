"""Curves of trainings in the files of other libraries, written by those libraries."""

from __future__ import annotations

import importlib.util
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eureka_agent.errors import SettingsError
from eureka_agent.journal.entries import Notice
from eureka_agent.records import CurvePoint
from eureka_agent.report.curve_log import CurveLog, check_installed

Points = tuple[CurvePoint, ...]


@pytest.fixture
def points(point: Callable[..., CurvePoint]) -> Points:
    return point(512, None), point(1024, 0.5), point(1536, -2.0)


async def logged(library: str, run: Path, points: Points, trainings: int = 1) -> list[Notice]:
    told: list[Notice] = []
    log = CurveLog((library,), run, told.append)
    for number in range(trainings):
        log.add(f"1-0{number}@7", {"seed": 7, "reward": "def compute_reward"}, points)
    await log.close()
    return told


@pytest.mark.slow
async def test_trackio_gets_every_point_at_its_env_steps(tmp_path: Path, points: Points) -> None:
    assert await logged("trackio", tmp_path, points) == []
    with sqlite3.connect(tmp_path / "logs" / "trackio" / "eureka-agent.db") as database:
        rows = database.execute("select run_name, step, metrics from metrics order by step")
        found = [(run, step, json.loads(metrics)) for run, step, metrics in rows]
    assert [step for _, step, _ in found] == [point.env_steps for point in points]
    assert [values.get("fitness") for _, _, values in found] == [None, 0.5, -2.0]
    assert {run for run, _, _ in found} == {f"{tmp_path.name}/1-00@7"}


@pytest.mark.slow
async def test_wandb_writes_offline_into_the_run(
    tmp_path: Path, points: Points, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WANDB_MODE", raising=False)
    assert await logged("wandb", tmp_path, points) == []
    (file,) = tmp_path.glob("logs/wandb/offline-run-*/*.wandb")
    content = file.read_bytes()
    assert b"1-00@7" in content
    assert b"def compute_reward" in content


async def test_a_library_that_fails_is_told_once(
    tmp_path: Path, points: Points, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_MODE", "no such mode")
    (notice,) = await logged("wandb", tmp_path, points, trainings=2)
    assert notice.text.startswith("no more curves go to wandb: ")


def test_a_missing_library_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(name: str) -> Any:
        return None

    monkeypatch.setattr(importlib.util, "find_spec", nowhere)
    check_installed(["tensorboard"])
    with pytest.raises(SettingsError, match="--log mlflow needs") as caught:
        check_installed(["mlflow"])
    assert "mlflow" in caught.value.hint
