"""Whole searches through the real command line, on an environment folder that is not in the
repository."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine

pytestmark = pytest.mark.slow
Arguments = Callable[..., tuple[str, ...]]


@pytest.fixture(scope="module")
def unbroken(shared_eureka: CommandLine, small: Arguments) -> dict[str, Any]:
    """One search, seen through to its end."""
    result: dict[str, Any] = shared_eureka.json(*small())
    return result


def table(run: dict[str, Any]) -> dict[str, Any]:
    """Results that must not depend on how often a search was interrupted."""
    attempts = [
        (entry["id"], entry["stage"], entry["reason"], entry["fitness"], entry["seed"])
        for entry in run["attempts"]
    ]
    scores = {score["name"]: score["fitness_per_seed"] for score in run["finalists"]}
    return {
        "attempts": attempts,
        "scores": scores,
        "best": run["best"]["id"],
        "human": run["human"]["fitness_per_seed"],
    }


def test_a_search_ends_with_scores_over_seeds_and_its_artefacts(
    unbroken: dict[str, Any], shared_eureka: CommandLine
) -> None:
    assert unbroken["status"] == "finished"
    assert len(unbroken["best"]["seeds"]) == 2
    assert len(unbroken["attempts"]) >= 6
    folder = Path(unbroken["folder"])
    if not folder.is_absolute():
        folder = shared_eureka.folder / folder
    for name in (
        "settings.yaml",
        "environment.json",
        "report.md",
        "report.html",
        "log.txt",
        "best/reward.py",
        "best/policy.safetensors",
    ):
        assert (folder / name).stat().st_size > 0, name
    log = (folder / "log.txt").read_text()
    assert (
        0
        < log.index("fitness is the metric")
        < log.index("uses of the sentence: ")
        < log.index("iteration 1 of")
    )
    trained = [entry["id"] for entry in unbroken["attempts"] if entry["stage"] == "trained"]
    for name in (
        "reward.py",
        "prompt.md",
        "reply.md",
        "verdict.json",
        "curves.csv",
        "diagnosis.md",
        "policy.safetensors",
        "trajectories.npz",
    ):
        assert all(
            (folder / "attempts" / attempt / name).stat().st_size > 0 for attempt in trained
        ), name
    assert not (folder / ".workers").exists()


@pytest.mark.real_starts  # forks of one parent have the same order of sets
def test_the_same_seed_gives_the_same_attempts_with_the_same_fitness(
    unbroken: dict[str, Any], eureka: CommandLine, small: Arguments
) -> None:
    assert table(eureka.json(*small())) == table(unbroken)


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 120.0
    while not condition():
        assert time.monotonic() < deadline, f"no {what} within two minutes"
        time.sleep(0.02)


def trained_in(runs: Path) -> int:
    """Attempts that a run's archive has as trained, read by another process while it is written."""
    (archive,) = list(runs.glob("*/archive.sqlite")) or [None]
    if archive is None:
        return 0
    try:
        with closing(sqlite3.connect(archive, timeout=5.0)) as connection:
            return int(
                connection.execute(
                    "SELECT count(*) FROM attempts WHERE stage = 'trained'"
                ).fetchone()[0]
            )
    except sqlite3.OperationalError:  # not yet migrated
        return 0


def without_repeats(entry: dict[str, Any]) -> dict[str, Any]:
    """An attempt without what another training of it changes."""
    return {key: value for key, value in entry.items() if key not in ("fitness", "trainings")}


@pytest.mark.parametrize(
    "trained", [1, pytest.param(4, marks=[pytest.mark.real_starts, pytest.mark.in_turns(1)])]
)
def test_a_killed_search_resumes_with_nothing_lost_and_nothing_trained_twice(
    unbroken: dict[str, Any], eureka: CommandLine, small: Arguments, trained: int
) -> None:
    process = eureka.popen(*small())
    wait_for(
        lambda: trained_in(eureka.folder / "runs") >= trained or process.poll() is not None,
        "trained attempt",
    )
    assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    folder = eureka.run_folder()
    killed = eureka.json("show", str(folder))
    assert killed["status"] == "stopped"
    before = {entry["id"]: entry for entry in killed["attempts"] if entry["stage"] == "trained"}
    # only what the archive knows of counts as trained: a policy is written a moment before its
    # record
    folders = [folder / "attempts" / attempt for attempt in before]
    folders += [
        folder / "attempts" / attempt / f"seed-{training['seed']}"
        for attempt, entry in before.items()
        for training in entry["trainings"][1:]
    ]
    policies = {each: (each / "policy.safetensors").stat().st_mtime_ns for each in folders}
    eureka("resume", str(folder))
    resumed = eureka.json("show", str(folder))
    assert table(resumed) == table(unbroken)
    after = {entry["id"]: entry for entry in resumed["attempts"]}
    assert len(before) >= trained
    for attempt, entry in before.items():
        assert after[attempt]["trainings"][: len(entry["trainings"])] == entry["trainings"]
        assert without_repeats(after[attempt]) == without_repeats(entry)
    assert {each: (each / "policy.safetensors").stat().st_mtime_ns for each in folders} == policies
    assert (folder / "log.txt").read_text().count(
        "uses of the sentence: "
    ) == 1  # it was read before the training began


def workers_of(folder: Path) -> list[int]:
    """Processes whose working data lies in this folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes()
            inside = str(folder).encode() in command or str(folder) in os.readlink(entry / "cwd")
        except OSError:
            continue
        if inside and b"eureka_agent.worker" in command:
            found.append(int(entry.name))
    return found


def saved_states(runs: Path) -> set[str]:
    """Trainings for which a run has a state from which they go on."""
    return {
        path.stem for path in runs.glob("*/.snapshots/*.safetensors") if ".policy" not in path.name
    }


def test_interrupting_stops_cleanly_and_says_how_to_resume(
    eureka: CommandLine, small: Arguments
) -> None:
    # trainings of seconds, so that the interruption comes in the middle of one on any machine
    search = (
        *small(),
        "--iterations",
        "1",
        "--samples",
        "2",
        "--env-steps",
        "32768",
        "--finalists",
        "1",
        "--final-seeds",
        "1",
    )
    search = (*search, "--confirm", "0")
    process = eureka.popen(*search, "--snapshot-interval", "0.1")
    wait_for(
        lambda: bool(saved_states(eureka.folder / "runs")) or process.poll() is not None,
        "state of a training",
    )
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in errors
    folder = eureka.run_folder()
    assert (
        f"eureka resume {folder.relative_to(eureka.folder)}" in output
        or f"eureka resume {folder}" in output
    )
    assert eureka.json("show", str(folder))["status"] == "stopped"
    wait_for(lambda: not workers_of(eureka.folder), "end of the workers")
    assert (folder / "report.md").is_file()
    assert "saving the trainings under way" in (folder / "log.txt").read_text()
    saved = saved_states(eureka.folder / "runs")
    assert saved
    eureka("resume", str(folder))
    resumed = eureka.json("show", str(folder))
    log = (folder / "log.txt").read_text()
    assert all(f"training of {job.partition('@')[0]} goes on at " in log for job in saved)
    assert table(resumed) == table(eureka.json(*search))


def test_a_second_search_takes_the_baselines_from_the_first(
    unbroken: dict[str, Any], shared_eureka: CommandLine, small: Arguments
) -> None:
    second = shared_eureka.json(*small(seed=2))
    assert second["human"]["cached"]
    assert second["sparse"]["cached"]
    assert second["human"]["fitness_per_seed"] == unbroken["human"]["fitness_per_seed"]


def test_a_run_is_evaluated_again_from_its_folder(
    unbroken: dict[str, Any], shared_eureka: CommandLine
) -> None:
    scored = shared_eureka.json("evaluate", unbroken["run"], "--episodes", "16", "--seed", "3")
    assert scored["episodes"] == 16
    assert 0.0 <= scored["mean"] <= 5.0  # an episode has 50 steps of 0.1 s
    assert scored == shared_eureka.json(
        "evaluate", unbroken["run"], "--episodes", "16", "--seed", "3"
    )
    one = shared_eureka("evaluate", unbroken["run"], "--episodes", "1")  # which has no spread
    assert " over 1 episode\n" in one
    assert "±" not in one
    asked = shared_eureka("evaluate", unbroken["run"], "--parameters", "mass=2", status=2)
    assert "the environment has no parameter 'mass' (given: mass=2)" in asked


def test_a_changed_environment_is_not_resumed(
    eureka: CommandLine, small: Arguments, puck: Path, tmp_path: Path
) -> None:
    import shutil

    copy = tmp_path / "puck"
    shutil.copytree(puck, copy)
    flags = [
        "--env",
        str(copy),
        "--iterations",
        "1",
        "--samples",
        "1",
        "--finalists",
        "0",
        "--env-steps",
        "1024",
    ]
    eureka("search", "bring the puck to the middle", *flags)
    (copy / "env.py").write_text(
        (copy / "env.py").read_text().replace("0.3 * actions", "0.2 * actions")
    )
    assert "has changed since the run" in eureka("resume", "latest", status=2)


def test_a_resumed_run_takes_settings_and_refuses_those_that_may_not_change(
    eureka: CommandLine, puck: Path
) -> None:
    flags = ["--iterations", "1", "--samples", "1", "--finalists", "0", "--env-steps", "1024"]
    eureka("search", "bring the puck to the middle", "--env", str(puck), *flags)
    errors = eureka("resume", "latest", "--samples", "2", status=2)
    assert "--samples is 1 in" in errors
    assert "what was designed so far follows from it" in errors
    output = eureka("resume", "latest", "--iterations", "2", "--no-novelty")
    assert "iterations changed from 1 to 2" in output
    assert "novelty changed from True to False" in output
    shown = eureka.json("show", "latest")
    assert {entry["id"].partition("-")[0] for entry in shown["attempts"]} == {"1", "2"}
    assert shown["remarks"][0] == "when it was resumed, iterations changed from 1 to 2"
    # signed again: its own settings bring no question
    assert "--trust" not in eureka("resume", "latest")


def test_a_persons_own_reward_is_trained_and_scored(eureka: CommandLine, puck: Path) -> None:
    (eureka.folder / "mine.py").write_text((puck / "rewards/human.py").read_text())
    run = eureka.json(
        "train", "mine.py", "--env", str(puck), "--final-seeds", "1", "--no-baselines"
    )
    assert [entry["stage"] for entry in run["attempts"]] == ["trained"]
    assert (
        run["best"]["mean"] > 1.0
    )  # of 5 s; standing still at a random place gives 5 s x 0.2 / 3.0 = 0.33 s


def test_a_persons_broken_reward_is_one_clear_error(eureka: CommandLine, puck: Path) -> None:
    (eureka.folder / "broken.py").write_text(
        "def compute_reward(puck_positoin):\n    return puck_positoin, {}\n"
    )
    process = eureka.popen("train", "broken.py", "--env", str(puck))
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    assert (
        "broken.py:1:20 C303 unknown variable 'puck_positoin': did you mean 'puck_position'?"
        in output
    )
    assert "Traceback" not in errors
    assert not list(
        (eureka.folder / "runs").glob("*/archive.sqlite")
    )  # nothing that would be the latest run
