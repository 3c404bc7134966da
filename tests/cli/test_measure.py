"""`eureka envs --measure` and runs of the baselines alone, with the real command."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from faulty_environments import REWARD, TASK, write_lift

from eureka_agent.cards import read_card

SHORT = (
    'fitness_doc="height of the lift"',
    'fitness_doc="height of the lift", training=TrainingBudget(env_steps=2048, num_envs=8)',
)


@pytest.fixture
def lift(tmp_path: Path) -> Path:
    rewards = {"human": REWARD, "sparse": REWARD.replace("return height,", "return 0 * height,")}
    folder = write_lift(tmp_path / "lift", rewards=rewards)
    task = TASK.replace("import Task", "import Task, TrainingBudget").replace(*SHORT)
    (folder / "tasks" / "up.py").write_text(task)
    return folder


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "eureka_agent.cli.main", *arguments]
    environment = {"EUREKA_RUNS": str(folder.parent / "runs"), "PATH": "/usr/bin:/bin"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, text=True, cwd=folder.parent, env=environment, **pipes)


def eureka(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    process = start(folder, *arguments)
    output, errors = process.communicate(timeout=120)
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


@pytest.mark.slow
def test_a_card_is_measured_written_and_shown_until_the_environment_changes(lift: Path) -> None:
    measured = eureka(lift, "envs", "--measure", "./lift", "--seeds", "3")
    assert measured.returncode == 0, measured.stderr
    card = read_card(lift, "up")
    assert card is not None
    assert f"card: {lift / 'cards' / 'up.json'}" in measured.stdout
    assert len(card.human.fitness) == len(card.sparse.fitness) == 3
    assert card.human.mean is not None
    assert card.sparse.mean is not None
    assert card.human.mean > card.sparse.mean  # it moves up for a reward and stays without one
    assert card.env_steps == 2048
    assert list(card.minutes) != []
    shown = eureka(lift, "envs", "./lift").stdout
    assert "card of task up" in shown
    # a search with more generations, not a measurement
    found = " ".join(eureka(lift, "show", "latest").stdout.split())
    advice = found.partition("search for a better reward: ")[2]
    assert advice.startswith("eureka search 'go up' ")
    assert "have changed since" not in shown
    env = lift / "env.py"
    env.write_text(env.read_text() + "\nGRAVITY = 9.81\n")
    assert "have changed since" in " ".join(eureka(lift, "envs", "./lift").stdout.split())


@pytest.mark.slow
def test_a_stopped_measurement_goes_on_and_then_makes_its_card(lift: Path) -> None:
    measure = ("envs", "--measure", "./lift", "--seeds", "3", "--env-steps", "20000")
    process = start(lift, *measure)
    assert process.stdout is not None
    for line in process.stdout:
        if "trainings run on" in line:
            process.send_signal(signal.SIGINT)
            break
    rest, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "run this again" in rest
    assert read_card(lift, "up") is None
    resumed = eureka(lift, "resume", "latest")
    assert resumed.returncode == 0, resumed.stderr
    assert read_card(lift, "up") is None
    again = eureka(lift, *measure)
    assert again.returncode == 0, again.stderr
    card = read_card(lift, "up")
    assert card is not None
    assert card.env_steps == 20_000
    assert card.minutes == {}  # not those of the run that made the card
