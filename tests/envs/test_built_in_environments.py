"""Every built-in environment keeps the contract, and the catalogue tells what is there."""

from __future__ import annotations

import subprocess
import sys

import pytest

from eureka_agent.conformance.check import check_environment
from eureka_agent.simulation.catalogue import list_environments
from eureka_agent.simulation.loading import describe, load_environment

TASKS = [(entry.name, task) for entry in list_environments() for task in entry.tasks]


@pytest.mark.parametrize(("name", "task"), TASKS)
def test_conforms(name: str, task: str) -> None:
    results = check_environment(name, task, rollout_s=0.5)
    # what swings a pole up is seldom found by chance
    assert [
        result
        for result in results
        if result.severity != "ok" and result.name != "fitness tells apart"
    ] == []
    assert all(result.passed for result in results)
    # MuJoCo's physics are checked there; the others run on a GPU and draw themselves
    assert len(results) == (31 if name in ("ant", "hopper") else 32)


@pytest.mark.parametrize(("name", "task"), TASKS)
def test_has_both_baselines_and_documented_variables(name: str, task: str) -> None:
    description = describe(load_environment(name), task)
    assert description.human_reward is not None
    assert description.sparse_reward is not None
    for variable in description.variables:
        assert len(variable.doc) > 15, variable.name
        assert variable.unit not in ("", "?"), variable.name


def test_catalogue_agrees_with_what_is_loaded() -> None:
    entries = list_environments()
    assert [entry.name for entry in entries] == ["ant", "cartpole", "hopper", "quadcopter"]
    for entry in entries:
        loaded = load_environment(entry.name)
        assert list(entry.tasks) == list(loaded.tasks)
        for name, task in loaded.tasks.items():
            assert entry.tasks[name] == task.sentence
        assert entry.doc == describe(loaded).doc


def test_catalogue_imports_no_torch_and_no_simulator() -> None:
    program = (
        "import sys; from eureka_agent.simulation.catalogue import list_environments;"
        " list_environments(); print(sorted({'torch', 'mujoco', 'gymnasium', 'numpy'} &"
        " set(sys.modules)))"
    )
    finished = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert finished.stdout.strip() == "[]"
