"""The worker program over its pipes, as any driver meets it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from safetensors.torch import load

from eureka_agent.boundary.bounds import FileHeader
from eureka_agent.boundary.commands import (
    Cancel,
    Command,
    DryRun,
    Evaluate,
    Open,
    PolicyFile,
    Prepare,
    Train,
)
from eureka_agent.boundary.events import (
    EVENT,
    CurvePoints,
    DryRunDone,
    Event,
    Fault,
    Opened,
    Prepared,
    Trained,
)
from eureka_agent.designer.interface import given_reward
from eureka_agent.settings import TrainingSettings

PRINTS = """import os, sys
print('{"type": "prepared"}', flush=True)
def compute_reward(pole_upright):
    os.write(1, b'{"type": "prepared"}\\n')
    return pole_upright, {"upright": pole_upright, "input": len(sys.stdin.read())}
"""
SETTINGS = TrainingSettings(
    env_steps=128, num_envs=8, horizon=16, hidden_sizes=(16,), epochs=1, checkpoints=1
)


class RawWorker:
    def __init__(self, scratch: Path) -> None:
        self.log = scratch / "log"
        with self.log.open("wb") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "eureka_agent.worker", "--scratch", str(scratch)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def ask(self, command: Command) -> Event:
        self.write(command.model_dump_json().encode() + b"\n")
        return self.read()

    def read(self) -> Event:
        assert self.process.stdout is not None
        return EVENT.validate_json(self.process.stdout.readline())

    def read_file(self, size: int) -> bytes:
        assert self.process.stdout is not None
        return self.process.stdout.read(size)


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawWorker]:
    """One worker for all tests of this file, in their order."""
    worker = RawWorker(tmp_path_factory.mktemp("scratch"))
    yield worker
    worker.process.kill()
    worker.process.wait()


def test_commands_before_open_are_refused(worker: RawWorker) -> None:
    answer = worker.ask(DryRun(job="early", reward=given_reward(""), timeout_s=1.0))
    assert isinstance(answer, Fault)
    assert answer.job == "early"
    assert "before 'open'" in answer.message


def test_a_fault_names_what_is_wrong_with_the_environment_and_the_worker_goes_on(
    worker: RawWorker,
) -> None:
    answer = worker.ask(Open(environment="cartpole", task="balanc"))
    assert isinstance(answer, Fault)
    assert "'balanc'" in answer.message
    assert "'balance'" in answer.hint
    opened = worker.ask(Open(environment="cartpole", task="balance"))
    assert isinstance(opened, Opened)
    assert "pole_upright" in {variable.name for variable in opened.description.variables}


def test_what_a_dry_run_prints_and_reads_is_not_the_protocol(worker: RawWorker) -> None:
    answer = worker.ask(DryRun(job="prints", reward=given_reward(PRINTS), timeout_s=10.0))
    assert isinstance(answer, DryRunDone)
    assert not [finding for finding in answer.findings if finding.severity == "error"]


def test_a_worker_that_loaded_a_reward_scores_nothing(worker: RawWorker) -> None:
    assert worker.ask(Prepare(settings=SETTINGS, slots=1, snapshot_s=60.0)) == Prepared()
    progress = worker.ask(Train(job="prints", reward=given_reward(PRINTS), seed=0))
    assert isinstance(progress, CurvePoints)
    sent = worker.read()
    assert isinstance(sent, FileHeader)
    assert load(worker.read_file(sent.size))["log_std"].shape == (1,)
    trained = worker.read()
    assert isinstance(trained, Trained)
    answer = worker.ask(
        Evaluate(
            job="score", policies=(PolicyFile(policy=trained.policies[0], seed=0, episodes=1),)
        )
    )
    assert isinstance(answer, Fault)
    assert "has loaded a reward" in answer.message
    assert "prepared" not in worker.log.read_text()  # what a reward prints in training goes nowhere


def test_a_cancelled_training_makes_room_for_the_next(worker: RawWorker) -> None:
    settings = SETTINGS.model_copy(update={"env_steps": 200 * 128})
    assert worker.ask(Prepare(settings=settings, slots=1, snapshot_s=60.0)) == Prepared()
    reward = given_reward("def compute_reward(pole_upright):\n    return pole_upright, {}\n")
    for command in (
        Train(job="first", reward=reward, seed=0),
        Train(job="second", reward=reward, seed=0),
        Cancel(job="first"),
    ):
        worker.write(command.model_dump_json().encode() + b"\n")
    while not isinstance(event := worker.read(), Trained):
        if isinstance(event, FileHeader):
            worker.read_file(event.size)
    assert event.job == "second"


def test_it_ends_when_the_driver_closes_its_end(worker: RawWorker) -> None:
    assert worker.process.stdin is not None
    worker.process.stdin.close()
    assert worker.process.wait(10) == 0
