"""Every built-in environment keeps the contract, and the catalogue tells what is there."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from eureka_agent import resources
from eureka_agent.cards import read_card
from eureka_agent.cli.envs import envs
from eureka_agent.report.environment import OUTDATED
from eureka_agent.simulation.catalogue import list_environments
from eureka_agent.simulation.loading import describe, load_environment
from eureka_agent.simulation.mujoco_task import MujocoTask
from eureka_agent.training.conformance import check_environment

TASKS = [(entry.name, task) for entry in list_environments() for task in entry.tasks]
FIRST = [(entry.name, next(iter(entry.tasks))) for entry in list_environments()]


@pytest.mark.parametrize(("name", "task"), FIRST)
def test_conforms(name: str, task: str) -> None:
    results = check_environment(name, task, rollout_s=0.5)
    # what swings a pole up is seldom found by chance
    rare = "fitness tells apart"
    assert [each for each in results if each.severity != "ok" and each.name != rare] == []
    assert all(result.passed for result in results)
    found = load_environment(name).environment_class
    optional = bool(found.parameters), bool(found.caption_variables)
    assert len(results) == 24 - issubclass(found, MujocoTask) + sum(optional)


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
    names = [entry.name for entry in entries]
    assert names == [
        *("allegro_hand", "ant", "ball_balance", "cabinet", "cartpole", "craft", "doorkey"),
        *("hopper", "humanoid", "metaworld", "quadcopter", "quadruped", "shadow_hand"),
    ]
    for entry in entries:
        loaded = load_environment(entry.name)
        assert list(entry.tasks) == list(loaded.tasks)
        for name, task in loaded.tasks.items():
            assert entry.tasks[name] == task.sentence
            assert entry.rewards[name] == task.rewards
            assert entry.fingerprint(name) == describe(loaded, name).fingerprint
        assert entry.doc == describe(loaded).doc


def test_no_card_is_older_than_its_task() -> None:
    measured = {
        (entry.name, name): (entry, card)
        for entry in list_environments()
        for name in entry.tasks
        if (card := read_card(entry.folder, name)) is not None
    }
    assert ("cartpole", "swingup") in measured
    changed = [
        each
        for each, (entry, card) in measured.items()
        if card.fingerprint != entry.fingerprint(each[1])
    ]
    assert changed == [], "measure them again: eureka envs --measure"


def test_the_list_marks_a_card_whose_files_have_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "_data" / "envs" / "cartpole"
    shutil.copytree(
        next(each.folder for each in list_environments() if each.name == "cartpole"), copy
    )
    monkeypatch.setattr(resources, "_PACKAGE", tmp_path)

    def swingup() -> str:
        listed = CliRunner().invoke(envs, [], terminal_width=200).output
        return next(line for line in listed.splitlines() if "swingup" in line)

    card = read_card(copy, "swingup")
    assert card is not None
    assert f"{card.human.mean:.2f}" in swingup()
    assert OUTDATED not in swingup()
    reward = copy / "rewards" / "swingup_human.py"
    reward.write_text(f"{reward.read_text()}\n")
    assert f"{card.human.mean:.2f}" not in swingup()
    assert OUTDATED in swingup()


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
