"""Runs that an earlier version wrote can be opened, shown and gone on with. `earlier_versions/` has
two of the last version before the journal: one finished, one killed in the middle of its trainings.
It has three of the last version whose proposals were a source and a designer's name: the same two
kinds, of one search, and a training of a given reward."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import tarfile
from contextlib import closing
from pathlib import Path

import pytest

from eureka_agent.archive.run_folder import open_run
from eureka_agent.designer.given import given_reward
from eureka_agent.errors import RunFolderError
from eureka_agent.journal.entries import AttemptImported, RunCreated, kind_of
from eureka_agent.records import RunStatus, Stage
from eureka_agent.report.as_json import attempt_to_json
from eureka_agent.report.follow import Follower, RunClock
from eureka_agent.report.markdown import markdown
from eureka_agent.rewards import CodeReward
from eureka_agent.search.resumption import check_resumable
from eureka_agent.search.summary import run_overview, run_report
from eureka_agent.simulation.loading import describe, load_environment

EARLIER_VERSIONS = Path(__file__).parent / "earlier_versions"
GIVEN = 'def compute_reward(pole_upright):\n    return pole_upright, {"upright": pole_upright}\n'


def unpacked(name: str, folder: Path) -> Path:
    with tarfile.open(EARLIER_VERSIONS / name) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Runs of the last version before the journal."""
    return unpacked("runs_0004.tar.gz", tmp_path)


@pytest.fixture
def journals(tmp_path: Path) -> Path:
    """Runs of the last version before rewards were specifications."""
    return unpacked("runs_0005.tar.gz", tmp_path)


def test_a_finished_run_is_shown_with_its_figures_and_is_not_changed(runs: Path) -> None:
    folder = runs / "finished"
    before = (folder / "archive.sqlite").read_bytes()
    report = run_report(open_run(folder, reading=True))
    # what the tables held, by `sqlite3 archive.sqlite`
    assert [(each.id, each.stage) for each in report.attempts] == [
        ("1-01", Stage.TRAINED),
        ("1-02", Stage.STOPPED),
        ("1-03", Stage.TRAINED),
    ]
    assert {score.name: score.mean for score in report.scores} == {
        "1-03": pytest.approx(10.000039100646973),
        "human": pytest.approx((10.000039100646973 + 8.465021014213562) / 2),
        "sparse": pytest.approx((10.000039100646973 + 6.815006375312805) / 2),
    }
    assert (report.status, report.designer, report.wall) == (
        RunStatus.FINISHED,
        "offline",
        "process",
    )
    assert report.devices == ("cpu",)
    assert report.seconds == pytest.approx(18.484987220996118)
    assert report.started == "2026-11-23T05:18:10+00:00"
    assert report.git_commit == "5874bd6994d9ecd40b23b034ca1f75bb012f4fc1"
    assert (folder / "archive.sqlite").read_bytes() == before


def test_a_killed_run_is_stopped_and_can_be_gone_on_with(runs: Path) -> None:
    run = open_run(runs / "killed")
    assert run.status is RunStatus.STOPPED
    assert [(each.id, each.stage) for each in run.archive.attempts()] == [
        (f"1-0{sample}", Stage.ACCEPTED) for sample in (1, 2, 3)
    ]
    check_resumable(run)
    kinds = [type(each.entry) for each in run.archive.entries()]
    assert kinds[:4] == [RunCreated, AttemptImported, AttemptImported, AttemptImported]
    assert not run.is_own()  # what was signed is no more
    assert run.sign() == ""
    assert run.is_own(attempts=True)


def test_a_damaged_one_is_refused_in_one_line(runs: Path) -> None:
    with sqlite3.connect(runs / "finished" / "archive.sqlite") as connection:
        connection.execute("UPDATE attempts SET record = '{}' WHERE id = '1-02'")
    with pytest.raises(RunFolderError, match="what an earlier version wrote into it is damaged"):
        open_run(runs / "finished", reading=True)
    with pytest.raises(RunFolderError, match="what an earlier version wrote into it is damaged"):
        open_run(runs / "finished")


def test_proposals_of_an_earlier_journal_have_rewards(journals: Path) -> None:
    # what its rows held, by `sqlite3 archive.sqlite "SELECT record FROM journal"`
    folder = journals / "finished"
    with closing(sqlite3.connect(folder / "archive.sqlite")) as connection:
        rows = connection.execute("SELECT record FROM journal WHERE kind = 'proposed'").fetchall()
    stored = [json.loads(record)["proposal"] for (record,) in rows]
    finished, killed = open_run(folder, reading=True), open_run(journals / "killed")
    for run in (finished, killed):
        rewards = [each.proposal.reward for each in run.archive.attempts()]
        assert rewards == [
            CodeReward(source=each["source"], author=each["designer"]) for each in stored
        ]
    assert [(each.id, each.stage) for each in run_report(finished).attempts] == [
        ("1-01", Stage.STOPPED),
        ("1-02", Stage.TRAINED),
    ]
    check_resumable(killed)


def test_a_journal_of_races_is_shown_with_who_was_stopped(journals: Path) -> None:
    folder = journals / "finished"
    assert "\nracing: true\n" in (folder / "settings.yaml").read_text()
    with closing(sqlite3.connect(folder / "archive.sqlite")) as connection:
        rows = connection.execute("SELECT number, kind FROM journal ORDER BY number").fetchall()
    retired = [kind for _, kind in rows if kind in ("rung-decided", "training-waits")]
    assert (retired.count("rung-decided"), retired.count("training-waits")) == (2, 3)
    known = [(number, kind) for number, kind in rows if kind not in retired]
    run, followed = open_run(folder, reading=True), []
    assert [(each.number, kind_of(each.entry)) for each in run.archive.entries()] == known
    Follower(folder, followed.append, RunClock()).poll()
    assert [kind_of(entry) for entry in followed] == [kind for _, kind in known]
    # 2560 of 3000 env steps
    row = "| 1-01 | fresh |  | stopped | 0.320 at 85 % |  | fitness 0.320, behind the median of 0.385 |"
    assert row in markdown(run_report(run))
    assert [(each.id, each.stage) for each in run_overview(run).attempts] == [
        ("1-01", Stage.STOPPED),
        ("1-02", Stage.TRAINED),
    ]
    stopped = run.archive.attempt("1-01")
    assert stopped is not None
    assert attempt_to_json(stopped)["rungs"] == [
        {"env_steps": 2560, "fitness": pytest.approx(0.32)}
    ]


@pytest.mark.slow
def test_a_killed_run_with_the_setting_racing_is_resumed_to_its_end(journals: Path) -> None:
    # the environment's file has changed since: this is about the settings
    path = journals / "killed" / "environment.json"
    content = json.loads(path.read_text())
    content["fingerprint"] = describe(load_environment("cartpole"), content["task"]).fingerprint
    path.write_text(json.dumps(content))
    command = [sys.executable, "-m", "eureka_agent.cli.main", "resume", str(journals / "killed")]
    result = subprocess.run([*command, "--trust"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    run = open_run(journals / "killed", reading=True)
    assert run.status is RunStatus.FINISHED
    assert run.archive.state.changes == ()
    for attempt in run.archive.attempts():
        assert attempt.stage is Stage.TRAINED
        # checkpoints come every 512 env steps; this is the first after 0.7 of 3072
        assert [score.env_steps for score in attempt.rungs] == [2560]


def test_a_given_reward_of_an_earlier_journal_and_the_baselines_keep_their_trust(
    journals: Path,
) -> None:
    run = open_run(journals / "given")
    (attempt,) = run.archive.attempts()
    assert attempt.proposal.reward == given_reward(GIVEN)
    assert run.archive.state.began.given_source == GIVEN
    assert set(run.description.baselines) == {"human", "sparse"}
    assert all(each.trusted for each in run.description.baselines.values())
