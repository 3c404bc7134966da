"""The template of a command environment, with the adapter that it names, on a real simulator."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml
from job_folders import ADAPTERS

from eureka_agent.simulation.catalogue import write_new_environment
from eureka_agent.training.conformance import check_environment


@pytest.mark.slow
def test_the_template_keeps_the_contract_with_stable_baselines3(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    files = write_new_environment(folder, "command")
    assert any("CHANGE" in path.read_text() for path in files)
    told = yaml.safe_load((folder / "command.yaml").read_text())
    told |= {"interpreter": sys.executable, "variables": {"PYTHONPATH": str(ADAPTERS)}}
    told["tasks"]["swing_up"]["env_steps"] = 8_000
    (folder / "command.yaml").write_text(yaml.safe_dump(told))
    results = check_environment(str(folder), limit_s=120.0)
    assert [each for each in results if each.severity != "ok"] == []
    assert {"fitness", "same seed, same training", "wrong rewards are told"} <= {
        each.name for each in results
    }
