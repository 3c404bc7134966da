"""Findings of `eureka doctor`, and their wording."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from eureka_agent.cli import doctor as health
from eureka_agent.cli.doctor import Check, doctor, walls

SECRET = "sk-very-secret-value"


def test_keys_are_named_and_never_shown() -> None:
    check = health.keys({"OPENAI_API_KEY": SECRET})
    assert "OPENAI_API_KEY" in check.detail
    assert SECRET not in check.detail
    assert "offline" in health.keys({"OPENAI_API_KEY": ""}).detail


def test_a_missing_package_is_an_error_but_for_that_of_an_extra() -> None:
    missing, found = health.packages(
        ["numpy>=1.26", "no-such-package-here", "neither-here; extra == 'dev'"]
    )
    assert (missing.status, missing.name) == ("error", "package no-such-package-here")
    assert "pip install no-such-package-here" in missing.hint
    assert found.detail.startswith("numpy ")


def test_a_failure_sets_the_exit_status_and_shows_its_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Check("worker", "error", "it does not start", "look here")
    monkeypatch.setattr(
        health, "all_checks", lambda runs, variables: iter([Check("a", "ok", "fine"), broken])
    )
    text = CliRunner().invoke(doctor)
    assert text.exit_code == 1
    assert "FAIL  worker: it does not start\n      look here" in text.output
    values = CliRunner().invoke(doctor, ["--format", "json"])
    assert values.exit_code == 1
    assert json.loads(values.output)["ok"] is False
    assert json.loads(values.output)["checks"][1] == {
        "name": "worker",
        "status": "error",
        "detail": "it does not start",
        "hint": "look here",
    }


@pytest.mark.slow
def test_everything_works_on_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("EUREKA_RUNS", str(tmp_path))
    result = CliRunner().invoke(doctor, ["--format", "json"])
    assert result.exit_code == 0, result.output
    assert SECRET not in result.output
    checks = {check["name"]: check for check in json.loads(result.output)["checks"]}
    assert checks["worker"]["detail"].startswith("starts, opens cartpole and does a dry run")
    assert " torch " in checks["packages"]["detail"]
    assert checks["devices"]["detail"].startswith("cpu")
    assert "with --device auto on cartpole trainings run on " in checks["devices"]["detail"]
    assert checks["sandbox process"]["detail"].startswith("works; does not cover ")
    for name in ("docker", "bubblewrap"):  # there or not, with the reason
        assert checks[f"sandbox {name}"]["detail"].startswith(
            ("works; does not cover ", "cannot be had: ")
        )
    assert checks["sandbox"]["detail"] == "--sandbox auto takes process, as EUREKA_SANDBOX says"


def test_a_wall_that_the_variable_names_and_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EUREKA_SANDBOX", "docker")
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    *others, chosen = walls()
    assert others[0].detail.startswith("cannot be had: no Docker engine runs here")
    assert chosen.status == "error"
    assert (
        chosen.detail == "--sandbox auto takes docker, as EUREKA_SANDBOX says, which cannot be had"
    )
    assert "process" in chosen.hint


def test_auto_in_the_variable_is_the_strongest_wall(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EUREKA_SANDBOX", raising=False)
    *_, without = walls()
    monkeypatch.setenv("EUREKA_SANDBOX", "auto")  # as a search takes it
    *_, chosen = walls()
    assert (chosen.status, chosen.detail) == ("ok", without.detail)


def test_a_disk_without_room_for_a_run_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for free, status in ((0, "error"), ((100 << 20) - 1, "error"), (100 << 20, "ok")):
        monkeypatch.setattr(
            health.shutil,
            "disk_usage",
            lambda folder, free=free: shutil._ntuple_diskusage(9, 9, free),
        )
        assert health.disk(tmp_path).status == status
