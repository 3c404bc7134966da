"""An environment's fault crosses the wall unchanged from every role, and ends the driver's work
with rewards."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from faulty_environments import PHYSICS, REWARD, after_steps, line_of, write_lift
from policy_files import save_random_policy
from training_pool import TrainingPool

from eureka_agent.boundary.bounds import LONGEST_FAULT
from eureka_agent.boundary.events import Fault
from eureka_agent.designer.interface import given_reward
from eureka_agent.errors import EnvironmentFaultError, WorkerFaultError
from eureka_agent.fleet.dry_runner import DryRunner
from eureka_agent.fleet.evaluator import Evaluator
from eureka_agent.fleet.jobs import Problem
from eureka_agent.sandbox.client import raised_by
from eureka_agent.sandbox.process_wall import ProcessWall
from eureka_agent.settings import TrainingSettings

SETTINGS = TrainingSettings(
    env_steps=4096, num_envs=8, horizon=16, hidden_sizes=(16,), epochs=1, checkpoints=1
)


async def test_a_dry_runner_that_is_started_says_what_is_wrong(tmp_path: Path) -> None:
    folder = write_lift(tmp_path / "lift", *after_steps(20, "raise OSError('no cable')"))
    runner = DryRunner(ProcessWall(), Problem(str(folder)), tmp_path / "scratch")
    try:
        with pytest.raises(EnvironmentFaultError) as caught:
            await runner.start()
    finally:
        await runner.close()
    line = line_of((folder / "env.py").read_text(), "raise OSError")
    assert caught.value.message == (
        "the environment fails before any reward is called: "
        f"{folder / 'env.py'}, line {line}, in simulate: OSError: no cable"
    )
    assert f"eureka envs --check {folder}`" in caught.value.hint


@pytest.mark.parametrize(
    ("code", "said", "timeout_s"),
    [
        ("raise OSError('no cable')", "in simulate: OSError: no cable", 60.0),
        ("self.height[:] = torch.nan", "the variable 'height' is nan in step", 60.0),
        ("while True: pass", "an iteration of the environment did not end within 2.8 s", 4.0),
        # a call that no signal interrupts
        ("sum(range(10**13))", "it gave no sign of life for 4 s and was killed, in File", 4.0),
    ],
)
async def test_a_late_fault_ends_all_trainings_and_none_is_tried_again(
    tmp_path: Path, code: str, said: str, timeout_s: float
) -> None:
    folder = write_lift(tmp_path / "lift", *after_steps(60, code))
    retried: list[str] = []
    pool = TrainingPool(
        ProcessWall(),
        str(folder),
        None,
        SETTINGS,
        1,
        1,
        tmp_path / "scratch",
        timeout_s=timeout_s,
        on_retry=lambda job, reason: retried.append(job),
    )
    try:
        trainings = [
            pool.train(name, given_reward(REWARD), 0) for name in ("in a slot", "waits for one")
        ]
        results = await asyncio.gather(*trainings, return_exceptions=True)
    finally:
        await pool.close()
    assert retried == []
    line = line_of((folder / "env.py").read_text(), '"height": self' if "nan" in code else code)
    for result in results:
        assert isinstance(result, EnvironmentFaultError)
        assert result.message.startswith("the environment is at fault, no reward is: ")
        assert str(folder / "env.py") in result.message
        assert f"line {line}" in result.message
        assert said in result.message
        assert "Traceback" not in str(result)


async def test_an_evaluator_does_not_put_an_environment_s_fault_on_the_policy(
    tmp_path: Path,
) -> None:
    broken = (
        PHYSICS + "        self.height = self.height.where(self.progress_buf != 41, torch.inf)\n"
    )
    folder = write_lift(tmp_path / "lift", (PHYSICS, broken))
    policies = [
        save_random_policy(tmp_path / f"{seed}.safetensors", 2, 1, seed) for seed in range(3)
    ]
    evaluator = Evaluator(ProcessWall(), Problem(str(folder)), tmp_path / "scratch")
    try:
        results = await asyncio.gather(
            *(evaluator.evaluate(policy, 0, 4) for policy in policies), return_exceptions=True
        )
    finally:
        await evaluator.close()
    assert all(isinstance(result, EnvironmentFaultError) for result in results)
    assert all(
        "the variable 'height' is inf in step 42 of an episode" in str(result) for result in results
    )


def test_what_a_worker_says_of_a_fault_is_bounded_and_printable() -> None:
    """Nothing that a worker sends is trusted: not that its words are few, nor that they are
    text."""
    error = raised_by(
        Fault(job=None, message="\x1b[2J\n" + "x" * 10_000, hint="y" * 10_000, environment=True),
        WorkerFaultError,
        "my lift",
    )
    assert isinstance(error, EnvironmentFaultError)
    assert error.message.isprintable()
    assert len(error.message) < LONGEST_FAULT + 100
    assert re.search("at fault, no reward is: .*x…", error.message)
    assert len(error.hint) < 600
    other = raised_by(Fault(job=None, message="busy", hint="wait"), WorkerFaultError, "lift")
    assert (type(other), other.message, other.hint) == (WorkerFaultError, "busy", "wait")
    silent = raised_by(Fault(job=None, message="\n"), WorkerFaultError, "lift")
    assert silent.message == "the worker gave no reason"
