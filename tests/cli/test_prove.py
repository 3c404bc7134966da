"""`eureka prove`: a run's rewards trained by a command, through the real command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_folders import REWARD, write_point
from command_line import CommandLine

pytestmark = pytest.mark.slow
AWAY = "def compute_reward(distance):\n    return distance, {'away': distance}\n"


def test_rewards_lead_where_they_led_here(tmp_path: Path) -> None:
    eureka = CommandLine(tmp_path)
    here = write_point(tmp_path / "here")
    write_point(tmp_path / "there", variables={"WORDS": "another folder"})
    (here / "rewards" / "human.py").write_text(AWAY)
    (tmp_path / "mine.py").write_text(REWARD)
    flags = ("--final-seeds", "2", "--baseline-seeds", "2", "--evaluation-episodes", "8")
    run = eureka.json("train", "mine.py", "--env", "./here", *flags)
    asked = "prove", run["folder"], "--with", "./there"
    proved = eureka.json(*asked, "--seeds", "1")
    scores = {score["name"]: score["mean"] for score in proved["scores"]}
    assert set(scores) == {proved["winner"], "human", "sparse"}
    # the points begin about 0.67 m from their targets
    assert scores[proved["winner"]] > -0.6 > scores["human"]
    assert proved["command"] == "there"
    stored = eureka.folder / run["folder"] / "proof" / "there-reach.json"

    # what is stored is not trained again, and one more seed is
    first = stored.read_text()
    again = eureka.json(*asked, "--seeds", "2")
    for score in again["scores"]:
        assert scores[score["name"]] in score["fitness_per_seed"]
        assert len(score["fitness_per_seed"]) == 2
    assert len(stored.read_text()) > len(first)
    assert "by this trainer" in eureka(*asked, "--seeds", "2")
    refused = eureka.popen("prove", run["folder"], "--with", "cartpole")
    assert "is an environment of this program's trainer" in refused.communicate()[1]
    assert "has no attempt '9-99'" in eureka(*asked[:2], "9-99", *asked[2:], status=2)
