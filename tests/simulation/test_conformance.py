"""The conformance checks: a good folder passes, and each broken one fails on the check that is
about its fault."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from faulty_environments import grouped, table

from eureka_agent.simulation.loading import load_environment
from eureka_agent.training import conformance as check
from eureka_agent.training.conformance import CheckResult
from eureka_agent.training.conformance.checks import Nonconforming, Subject
from eureka_agent.training.conformance.rows import masked_resets

WriteFolder = Callable[..., Path]

ENV, TASK, HUMAN = "env.py", "tasks/go.py", "rewards/human.py"
DRAW = "self.random.uniform(env_ids, 1, -1.0, 1.0)[:, 0]"


def check_environment(
    reference: str, task: str | None = None, limit_s: float = 60.0
) -> list[CheckResult]:
    """All checks, those that take time no longer than needed."""
    return check.check_environment(reference, task, limit_s=limit_s, rollout_s=0.1)


def failures(results: list[CheckResult]) -> dict[str, CheckResult]:
    return {result.name: result for result in results if not result.passed}


def test_a_good_folder_passes_every_check(write_folder: WriteFolder) -> None:
    results = check_environment(str(write_folder()))
    assert {result.severity for result in results} == {"ok"}
    assert len({result.name for result in results}) == len(results) == 22  # no MuJoCo and no GPU
    assert {result.task for result in results if result.name != "loads"} == {"go"}


HIDDEN_STATE = [
    (ENV, "self.limit = limit", "self.limit, self.hidden = limit, [None]"),
    (ENV, "self.velocity", "self.hidden[0]"),
]
"""The velocity is kept where `row_tensors` does not look."""

ON_GPU = (ENV, "control_dt = 0.1", 'control_dt = 0.1\n    device_types = ("cpu", "cuda")')

BROKEN = table(r"""
missing import | loads | env.py, line 5: ModuleNotFoundError | env.py | import torch\n | import torch\nimport no_such_module\n
unknown option | can be made | limt | tasks/go.py | "limit": 4.0 | "limt": 4.0
observation shape | observations after a reset | (8, 5) | env.py | self.obs_buf[:, 0] = self.position | self.obs_buf = torch.zeros(self.num_envs, 5)
variable's name | variables after a reset | missing: ['state']; not declared: ['sate'] | env.py | "state": torch | "sate": torch
variable's type | variables after a reset | torch.float64 | env.py | "position": self.position, | "position": self.position.double(),
variables only after resets | variables after a step | missing: ['position', 'state'] | env.py | self.velocity = self.velocity + 0.1 | self.stepped = True\n        self.velocity = self.velocity + 0.1 | env.py | return {"position" | return {} if hasattr(self, "stepped") else {"position"
termination's type | termination | torch.float32 | env.py | self.position.abs() > self.limit | (self.position.abs() > self.limit).float()
undeclared cause | termination | PointMass ends episodes by 'lost' | env.py | return self.position.abs() > self.limit | return {"lost": self.position.abs() > self.limit}
no time limit | time limit | 0 rows | env.py |     def reset_idx |     def compute_truncation(self):\n        return self.progress_buf < 0\n\n    def reset_idx
division by zero | finite under random actions | in step 7 | env.py | 0.1 * self.velocity | 0.1 * self.velocity / (self.progress_buf != 7)
NaN at the bound | finite under extreme actions | actions all 1 | env.py | 0.1 * actions[:, 0] | 0.1 * actions[:, 0] / ~(actions > 0.999).all()
range too small | variable ranges | under random actions | env.py | (-6.0, 6.0) | (-0.1, 0.1)
reset of all rows | resets | state of other rows | env.py | self.velocity[env_ids] = 0.0 | self.velocity[:] = 0.0
global random numbers | same seed, same trajectory | differ in step 0 | env.py | self.random.uniform(env_ids, 1, -1.0, 1.0)[:, 0] | torch.rand(len(env_ids))
mixed rows | rows are independent | among 8 and | env.py | 0.1 * self.velocity | 0.1 * self.velocity.mean()
hidden state | rows are restored | before and | env.py | self.limit = limit | self.limit, self.hidden = limit, [None] | env.py | self.velocity | self.hidden[0]
a look at a value | steps on a GPU | env.py, line 36: RuntimeError: Tensor.item() | env.py | control_dt = 0.1 | control_dt = 0.1\n    device_types = ("cpu", "cuda") | env.py | 0.1 * self.velocity | 0.1 * self.velocity if self.velocity.sum().item() < 1e9 else 0.0
reward without components | human reward | dict | rewards/human.py | return progress, | return
reward that raises | human reward | human.py, line 3: ZeroDivisionError | rewards/human.py | position - previous | 1 / 0 - previous
sparse reward that is another | sparse reward | ∅ | rewards/sparse.py | return progress, | return 2 * progress,
unknown training setting | task | 'epoch' | tasks/go.py | import Task | import Task, TrainingBudget | tasks/go.py | options= | training=TrainingBudget(overrides={"epoch": 3}), options=
""")


@pytest.mark.parametrize("fault", BROKEN)
def test_a_fault_fails_its_check(write_folder: WriteFolder, fault: str) -> None:
    check, actual, *changes = BROKEN[fault]
    failed = failures(check_environment(str(write_folder(*grouped(changes, 3)))))
    assert next(iter(failed)) == check
    assert actual in failed[check].actual
    assert failed[check].expected
    assert failed[check].hint


@pytest.mark.parametrize(
    "given", ["self.position > 0", "self.position.tolist()", "self.position.numpy()"]
)
def test_a_variable_of_a_wrong_type_is_one_finding(write_folder: WriteFolder, given: str) -> None:
    """It has a range, windows read it, and no later check can do anything with it."""
    folder = write_folder((ENV, '"position": self.position', f'"position": {given}'))
    failed = failures(check_environment(str(folder)))
    assert list(failed) == ["variables after a reset"]


def test_a_class_may_say_that_its_rows_cannot_be_taken_up_again(write_folder: WriteFolder) -> None:
    said = (ENV, "control_dt = 0.1", "control_dt = 0.1\n    restorable = False")
    assert failures(check_environment(str(write_folder(*HIDDEN_STATE, said)))) == {}


def test_a_state_that_a_gpu_s_resets_cannot_put_back_is_found(write_folder: WriteFolder) -> None:
    loaded = load_environment(str(write_folder(*HIDDEN_STATE, ON_GPU)))
    with pytest.raises(
        Nonconforming, match="the same whether a GPU's resets or the CPU's were made"
    ) as raised:
        masked_resets(Subject(loaded, loaded.task(None)[1]))
    assert "against" in raised.value.actual


def test_an_unknown_environment_or_task_is_a_failed_check(write_folder: WriteFolder) -> None:
    for reference, task in (("no_such_environment", None), (str(write_folder()), "no_such_task")):
        results = check_environment(reference, task)
        assert [(result.name, result.passed) for result in results] == [("loads", False)]
