"""A search on a goal that no policy can reach, through the real command line."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from command_line import CommandLine

pytestmark = pytest.mark.slow


def test_a_goal_out_of_reach_is_told_and_no_reward_is_blamed(
    eureka: CommandLine, puck: Path, tmp_path: Path
) -> None:
    # from 1 m and farther away, at most 0.1 s · (0.3 + 0.57 + 0.81 + 1.03 + 1.23) m/s = 0.39 m
    far = tmp_path / "far"
    shutil.copytree(puck, far)
    source = (far / "env.py").read_text()
    source = source.replace("max_episode_length = 50", "max_episode_length = 5")
    source = source.replace("1, -1.5, 1.5", "1, 1.0, 1.5")
    (far / "env.py").write_text(source)
    flags = ("--iterations", "2", "--samples", "2", "--finalists", "1", "--final-seeds", "2")
    arguments = ("search", "--env", str(far), *flags, "--env-steps", "4096", "--sandbox", "process")
    run = eureka.json(*arguments, "--no-video", "--yes")
    lacking = run["coverage"]
    assert lacking["fitness"] == 0.0
    assert lacking["trainings"] >= 4
    assert set(lacking["baselines"]) == {"human", "sparse"}
    assert run["finalists"] == []
    low, high = lacking["visited"]["puck_position"]
    assert 0.6 <= low < high <= 1.9
    codes = [finding["code"] for attempt in run["attempts"] for finding in attempt["diagnosis"]]
    assert codes.count("never-paid") == sum(each["stage"] == "trained" for each in run["attempts"])
    folder = Path(run["folder"])
    report = (folder / "report.md").read_text()
    assert "never came to what the fitness pays for" in report
    assert "start states nearer to what is paid for" in report
    assert "rewards all ended at a fitness of 0" in report
    assert "What could help: " in (folder / "log.txt").read_text()
    assert "never came to what the fitness pays for" in (folder / "report.html").read_text()
