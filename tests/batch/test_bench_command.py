"""`eureka bench` with the real command: run, stopped, gone on with, and read again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import wait_for
from faulty_environments import REWARD, TASK, write_lift

from eureka_agent.simulation.catalogue import find_folder, read_entry

SUITE = """description: a small one
methods:
  best-of-n: {strategy: best-of-n, iterations: 1}
  greedy: {iterations: 2}
seeds: 1
trainings: 4
settings: {confirm: 0, finalists: 1, final_seeds: 3}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rewards = {"human": REWARD, "sparse": REWARD.replace("return height,", "return 0 * height,")}
    lift = write_lift(tmp_path / "environments" / "lift", rewards=rewards)
    task = TASK.replace("import Task", "import Task, TrainingBudget").replace(
        'fitness_doc="height of the lift"',
        'fitness_doc="height of the lift", training=TrainingBudget(env_steps=2048, num_envs=8)',
    )
    (lift / "tasks" / "up.py").write_text(task)
    (tmp_path / "small.yaml").write_text(SUITE)
    return tmp_path


def bench(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "eureka_agent.cli.main", "bench", *arguments]
    environment = {**os.environ, "EUREKA_RUNS": str(folder / "runs")}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=240, cwd=folder, env=environment
    )


@pytest.mark.slow
def test_a_suite_is_run_once_and_read_again(folder: Path) -> None:
    ran = bench(folder, "small.yaml", "--envs", "environments", "--format", "json")
    assert ran.returncode == 0, ran.stderr
    place = folder / "runs" / "bench-small"
    found = json.loads(ran.stdout)
    assert found["suite"] == "small"
    assert [each["method"] for each in found["methods"]] == ["best-of-n", "greedy"]
    assert [each["finished"] for each in found["methods"]] == [1, 1]
    # 4 trainings of 2,048 env steps each
    assert [each["env_steps"] for each in found["methods"]] == [8192, 8192]
    assert {each["task"] for each in found["searches"]} == {"lift-up"}
    assert "| lift-up |" in (place / "bench.md").read_text()
    again = bench(folder, "small.yaml", "--envs", "environments")
    assert again.returncode == 0, again.stderr
    assert "nothing is left to do" in again.stdout
    assert "## Methods" in again.stdout
    # the task's card counts, and no other
    lift = folder / "environments" / "lift"
    card = json.loads((find_folder("cartpole") / "cards" / "balance.json").read_text())
    card = {**card, "task": "up", "human": {**card["human"], "learned": 0}}
    (lift / "cards").mkdir(exist_ok=True)  # the search has made one
    refusals = []
    for changes in (
        {"fingerprint": read_entry(lift).fingerprint("up")},
        {"fingerprint": "of earlier files"},
        {"fingerprint": read_entry(lift).fingerprint("up"), "task": "down"},
    ):
        (lift / "cards" / "up.json").write_text(json.dumps({**card, **changes}))
        read = bench(
            folder, "small.yaml", "--envs", "environments", "--results", "--format", "json"
        )
        refusals.append(json.loads(read.stdout)["tasks"][0]["refusal"])
    own = found["tasks"][0]["refusal"]  # of its baselines
    assert refusals == ["the human reward does not learn it", own, own]
    assert own != refusals[0]
    batch = (place / "batch.yaml").read_bytes()
    more = bench(folder, "small.yaml", "--envs", "environments", "--seeds", "2", "--plan")
    assert "4 searches" in more.stdout
    # another suite of that name
    (folder / "other").mkdir()
    (folder / "other" / "small.yaml").write_text(SUITE.replace("trainings: 4", "trainings: 6"))
    other = bench(folder, "other/small.yaml", "--envs", "environments")
    assert other.returncode == 2
    assert "lift-up-greedy-seed0: samples was 2 and is 3" in other.stderr
    assert "--folder FOLDER" in other.stderr
    assert (place / "batch.yaml").read_bytes() == batch


@pytest.mark.slow
def test_ctrl_c_names_the_command_that_goes_on(folder: Path) -> None:
    task = folder / "environments" / "lift" / "tasks" / "up.py"
    task.write_text(task.read_text().replace("2048", "2000000000"))
    flags = ["--envs", "environments", "--seeds", "1", "--folder", "my place"]
    command = [sys.executable, "-m", "eureka_agent.cli.main", "bench", "small.yaml", *flags]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder
    )
    wait_for(lambda: list((folder / "my place").glob("*/archive.sqlite")), process)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    again = "eureka bench small.yaml --envs environments --seeds 1 --folder 'my place'"
    assert f"Stopped. Go on with:  {again}\n" in output
    results = bench(folder, "small.yaml", *flags, "--results")
    assert f"This command goes on with it:\n\n```sh\n{again}\n```" in results.stdout
    assert "eureka resume" not in results.stdout
    answered = subprocess.run(
        [sys.executable, "-m", "eureka_agent.cli.main", "batch", "stop", "my place"],
        capture_output=True,
        text=True,
        cwd=folder,
    )
    assert "eureka batch 'my place/batch.yaml' --folder 'my place'" in answered.stderr


def test_what_is_refused_or_only_planned_writes_nothing(folder: Path) -> None:
    (folder / "broken.yaml").write_text(SUITE.replace("iterations: 1", "iteratons: 1"))
    refused = bench(folder, "broken.yaml", "--envs", "environments")
    assert "line 3, methods.best-of-n.iteratons: unknown setting" in refused.stderr
    flag = bench(folder, "small.yaml", "--task", "nowhere", "--plan")
    assert "there is no environment 'nowhere'" in flag.stderr
    (folder / "environments" / "lift" / "env.py").write_bytes(b"x = 1\0")
    unreadable = bench(folder, "small.yaml", "--envs", "environments")
    assert "lift/env.py' is no Python" in unreadable.stderr.replace("', line 1 is", "' is")
    for ran in (refused, flag, unreadable):
        assert ran.returncode == 2
        assert "Traceback" not in ran.stderr
    assert not list((folder / "runs").glob("bench-*"))


def test_the_suites_are_listed(folder: Path) -> None:
    listed = bench(folder)
    assert listed.returncode == 0, listed.stderr
    assert "quick" in listed.stdout
    assert "held-out" in listed.stdout
