"""Faults of environments are told from those of rewards, policies and the machine."""

from __future__ import annotations

import math
import re
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from faulty_environments import PHYSICS, RESET, TASK, after_steps, line_of, write_lift
from policy_files import random_policy
from torch import Tensor
from training_environments import PointMass

from eureka_agent.errors import EnvironmentFaultError
from eureka_agent.settings import TrainingSettings
from eureka_agent.simulation.loading import load_environment
from eureka_agent.simulation.user_modules import TimeLimitError, time_limit
from eureka_agent.task import Task
from eureka_agent.training.environment_faults import is_gpu_failure
from eureka_agent.training.evaluation import PolicyRequest, evaluate_policies
from eureka_agent.training.policy import Policy
from eureka_agent.training.reward import RewardFunction
from eureka_agent.training.trainer import MemberFailed, MemberFinished, Trainer


class Spy:
    """A reward that notes whether it was called."""

    arguments = ("height", "motion")
    observation = None

    def __init__(self) -> None:
        self.rows = 0

    def begin(
        self, values: Mapping[str, Tensor], timeout_s: float
    ) -> Callable[[], tuple[Tensor, dict[str, Tensor]]]:
        self.rows += len(values["height"])
        assert all(bool(value.isfinite().all()) for value in values.values())
        return lambda: (values["height"], {"height": values["height"]})


def train(folder: Path, settings: TrainingSettings, **arguments: Any) -> Spy:
    """Train on a lift to the end."""
    loaded = load_environment(str(folder))
    _, task = loaded.task(None)
    trainer = Trainer(lambda rows: loaded.make(task, rows), task, settings, 1, **arguments)
    spy = Spy()
    trainer.submit("job", spy, 0)
    try:
        while trainer.busy:
            assert not any(isinstance(event, MemberFailed) for event in trainer.iterate())
    except EnvironmentFaultError as error:
        error.rows = spy.rows  # type: ignore[attr-defined]
        raise
    return spy


@pytest.mark.parametrize(
    ("code", "part", "said"),
    [
        ("self.velocity[3] = torch.nan", '"motion"', r"the variable 'motion', column 0 is nan in step \d+ of an episode"),
        ("self.height[3] = -torch.inf", '"height": self.height', r"the variable 'height' is -inf in step \d+"),
        ("self.velocity[3] = 1e30", '"motion"', r"the variable 'motion', column 0 is 1e\+30 in step"),
    ],
)  # fmt: skip
def test_a_number_that_breaks_late_is_named_with_its_line_and_step(
    tmp_path: Path, small_settings: TrainingSettings, code: str, part: str, said: str
) -> None:
    """An iteration has 128 steps of 16 environments, 8 each. So the 21st step is the fifth of the
    third iteration."""
    folder = write_lift(tmp_path / "lift", *after_steps(20, code))
    with pytest.raises(EnvironmentFaultError) as caught:
        train(folder, small_settings)
    line = line_of((folder / "env.py").read_text(), part)
    line = (
        line if part != '"motion"' else line_of((folder / "env.py").read_text(), '"motion": torch')
    )
    message = caught.value.message
    assert message.startswith(f"{folder / 'env.py'}, line {line}: the variable")
    assert re.search(said, message)
    assert re.search(r"under the action \[-?[01]\.\d+\]", message)
    # trained before: two whole iterations of 128 steps, and four steps of 16 environments
    assert "after 320 env steps" in message
    # the reward saw the two iterations before, and nothing of the third
    assert caught.value.rows == 256  # type: ignore[attr-defined]


def test_an_observation_that_no_reward_reads_is_looked_at_as_well(
    tmp_path: Path, small_settings: TrainingSettings
) -> None:
    broken = "self.obs_buf[:, 1] = self.velocity.where(self.progress_buf != 5, torch.nan)"
    folder = write_lift(tmp_path / "lift", ("self.obs_buf[:, 1] = self.velocity", broken))
    with pytest.raises(
        EnvironmentFaultError, match=r"the observation, column 1 is nan in step 5 of an episode"
    ) as caught:
        train(folder, small_settings)
    line = line_of((folder / "env.py").read_text(), "def compute_observations")
    assert f"line {line}: " in caught.value.message


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise ValueError('no cable')", "in simulate: ValueError: no cable"),
        ("self.velocity = self.missing", "in simulate: AttributeError: 'Lift' object has no attribute 'missing'"),
        ("while True: pass", "in simulate: an iteration of the environment did not end within 0.4 s"),
    ],
)  # fmt: skip
def test_code_that_raises_or_never_ends_is_named_with_its_line(
    tmp_path: Path, small_settings: TrainingSettings, code: str, said: str
) -> None:
    folder = write_lift(tmp_path / "lift", *after_steps(20, code))
    with pytest.raises(EnvironmentFaultError) as caught:
        train(folder, small_settings, iteration_limit=0.4)
    line = line_of((folder / "env.py").read_text(), code)
    assert caught.value.message == f"{folder / 'env.py'}, line {line}, {said}"
    assert ("--training-timeout" in caught.value.hint) == ("did not end" in said)


def test_a_fitness_that_is_no_number_on_sound_states_is_the_task_s(
    tmp_path: Path, small_settings: TrainingSettings
) -> None:
    task = TASK.replace("return height", "return height / (height < 0.5)")
    folder = write_lift(tmp_path / "lift", task=task)
    with pytest.raises(
        EnvironmentFaultError, match="the task's fitness became NaN or infinite"
    ) as caught:
        train(folder, small_settings)
    assert caught.value.message.startswith(f"{folder / 'tasks' / 'up.py'}, line 4: ")


def test_actions_that_are_nan_are_no_fault_of_the_environment(
    small_settings: TrainingSettings, point_task: Task
) -> None:
    """A reward's damage to a policy is told of its training alone. The one beside it goes on to the
    same numbers as by itself."""

    def finished(broken: bool) -> MemberFinished:
        trainer = Trainer(PointMass, point_task, small_settings, 2)
        reward = "def compute_reward(position):\n    return position[:, 0], {}\n"
        for job in ("first", "second"):
            trainer.submit(job, RewardFunction.from_source(reward, PointMass.all_variables()), 0)
        trainer.iterate()
        if broken:
            trainer._population.networks.parameters[0] = torch.nan
        events = [event for _ in range(3) for event in trainer.iterate()]
        failed = [event for event in events if isinstance(event, MemberFailed)]
        assert [(each.job, each.code) for each in failed] == (
            [("first", "not-a-number")] if broken else []
        )
        assert all("the policy's actions became NaN" in each.reason for each in failed)
        (end,) = (
            event for event in events if isinstance(event, MemberFinished) and event.job == "second"
        )
        return end

    alone, beside = finished(False), finished(True)
    assert all(torch.equal(alone.policy[name], beside.policy[name]) for name in alone.policy)


# ── evaluations ───────────────────────────────────────────────────────────────────────────────────


def evaluate(folder: Path, *policies: Policy) -> list[float]:
    """Mean fitness of each."""
    loaded = load_environment(str(folder))
    _, task = loaded.task(None)
    environment = loaded.make(task, 32 * len(policies))
    requests = [PolicyRequest(policy, 0, 4) for policy in policies]
    return [
        evaluation.fitness_mean()
        for evaluation, _ in evaluate_policies(environment, task, requests)
    ]


def test_an_evaluation_names_the_step_in_which_a_state_breaks(tmp_path: Path) -> None:
    broken = (
        PHYSICS + "        self.height = self.height.where(self.progress_buf != 41, torch.inf)\n"
    )
    folder = write_lift(tmp_path / "lift", (PHYSICS, broken))
    said = (
        r"the variable 'height' is inf in step 42 of an episode \(of an evaluation, without noise\)"
        r" under the action \["
    )
    with pytest.raises(EnvironmentFaultError, match=said):
        evaluate(folder, random_policy(2, 1, seed=0))


def test_states_of_episodes_that_are_over_are_nobody_s_fault(tmp_path: Path) -> None:
    """Rows whose episode is over may hold anything."""
    ended = PHYSICS + "        self.height = self.height.where(self.height < 0.5, 6.0)\n"
    reset = (
        RESET
        + "        if self.skipped_rows is not None:\n            self.height[self.skipped_rows] ="
        " torch.nan\n"
    )
    folder = write_lift(tmp_path / "lift", (PHYSICS, ended), (RESET, reset))
    (mean,) = evaluate(folder, random_policy(2, 1, seed=0))
    assert math.isfinite(mean)


# ── limits ────────────────────────────────────────────────────────────────────────────────────────


def test_a_limit_within_another_gives_the_outer_one_back() -> None:
    began = time.monotonic()

    def never_ends() -> None:
        with time_limit(0.3):
            with time_limit(10.0):
                pass
            while time.monotonic() < began + 5.0:
                pass

    with pytest.raises(TimeLimitError, match=r"longer than 0\.3 s"):
        never_ends()
    assert time.monotonic() - began < 4.0


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (torch.AcceleratorError("CUDA error: unspecified launch failure"), True),
        (RuntimeError("Warp CUDA error 719: unspecified launch failure"), True),
        (torch.AcceleratorError("CUDA error: device-side assert triggered"), False),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), False),
        (RuntimeError("CUDA error: out of memory"), False),
        (RuntimeError("The size of tensor a (3) must match the size of tensor b (4)"), False),
    ],
)
def test_a_failing_gpu_is_told_from_faults_of_code_and_lack_of_memory(
    error: RuntimeError, expected: bool
) -> None:
    assert is_gpu_failure(error) is expected


def test_a_block_that_swallows_the_first_alarm_meets_another() -> None:
    alarms = []

    def stubborn() -> None:
        while True:
            try:
                while True:
                    pass
            except BaseException:
                alarms.append(True)
                if len(alarms) == 2:
                    raise

    def limited() -> None:
        with time_limit(0.05):
            stubborn()

    with pytest.raises(TimeLimitError, match=r"longer than 0\.05 s"):
        limited()
    assert len(alarms) == 2
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
