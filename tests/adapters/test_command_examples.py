"""The examples of command environments: their files here, and all of them in a Python that has the
simulator (`make test-adapters`)."""

from __future__ import annotations

import ast
import json
import math
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from job_folders import ADAPTERS, PROGRAMS, ROOT, JobFolder, MakeFolder

from eureka_agent.command_file import TaskOfCommand, read_command, script_of

EXAMPLES = ROOT / "examples" / "commands"
PYTHONS = {
    "robosuite_lift": "EUREKA_ROBOSUITE_PYTHON",
    "dm_control_walker": "EUREKA_DM_CONTROL_PYTHON",
    "maniskill_push_cube": "EUREKA_MANISKILL_PYTHON",
}
NO_VULKAN = ("rendering device", "supported physical device", "ErrorIncompatibleDriver")


def functions(path: Path) -> set[str]:
    return {node.name for node in ast.parse(path.read_text()).body if hasattr(node, "name")}


@pytest.mark.parametrize("folder", sorted(EXAMPLES.iterdir()), ids=lambda each: each.name)
def test_an_example_has_the_files_that_it_names(folder: Path) -> None:
    command = read_command(folder)
    script = script_of(command, folder).read_text()
    ast.parse(script)
    assert command.interpreter.startswith("~/venvs/")  # none of the machine it was written on
    for task in command.tasks.values():
        assert "compute_fitness" in functions(folder / task.fitness)
        assert "compute_reward" in functions(folder / task.sparse_reward)


@dataclass
class Example:
    """An example, and the Python of its simulator."""

    folder: Path
    python: str
    task: str
    told: TaskOfCommand

    def job(self, made: JobFolder, mode: str, **fields: Any) -> list[dict[str, Any]]:
        """Do a job in a process; its events."""
        fitness = {"file": "fitness.py", "reduction": self.told.fitness_reduction}
        options = {"task": self.task, "options": self.told.options}
        made.job(mode, fitness=fitness, num_envs=2, **options, **fields)
        process = made.run(self.folder / "train.py", self.python)
        events = made.events()
        if any(words in each.get("message", "") for each in events for words in NO_VULKAN):
            pytest.skip("there is no Vulkan device that ManiSkill takes")
        assert process.returncode == 0, process.stderr[-3000:]
        return events

    def made(self, folder: MakeFolder, name: str = "job") -> JobFolder:
        return folder((self.folder / self.told.fitness).read_text(), name)


@pytest.fixture(params=sorted(PYTHONS))
def example(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Example:
    name = request.param
    python = os.environ.get(PYTHONS[name])
    if not python:
        pytest.skip(f"{PYTHONS[name]} names no Python")
    command = read_command(EXAMPLES / name)
    for variable, value in command.variables.items():
        monkeypatch.setenv(variable, value)
    task, told = next(iter(command.tasks.items()))
    return Example(EXAMPLES / name, python, task, told)


@pytest.mark.slow
def test_a_description_has_words_for_every_variable_and_values_of_its_shape(
    folder: MakeFolder, example: Example
) -> None:
    made = example.made(folder)
    described, *episodes = example.job(made, "describe", episodes=2, most_steps=20)
    shapes = {each["name"]: tuple(each["shape"]) for each in described["variables"]}
    assert all(each["doc"] and each["unit"] for each in described["variables"])
    # then the driver can make the human reward of them
    assert {shapes[each["name"]] for each in described["native_terms"]} == {()}
    assert len(episodes) == 4
    for episode in episodes:
        assert episode["length"] == 20
        for name, shape in shapes.items():
            assert np.shape(episode["values"][name]) == (20, *shape)
            assert np.shape(episode["start"][name]) == shape
        assert any(episode["start"][name] != episode["values"][name][0] for name in shapes)
        for each in described["variables"]:
            if "range" in each:
                values = [episode["start"][each["name"]], *episode["values"][each["name"]]]
                assert each["range"][0] <= np.min(values) <= np.max(values) <= each["range"][1]


@pytest.mark.slow
def test_native_terms_add_up_to_the_reward_of_each_step_and_the_task_can_be_done(
    example: Example,
) -> None:
    command = [example.python, str(PROGRAMS / "native_terms.py")]
    process = subprocess.run(
        [*command, str(example.folder / "train.py"), example.task],
        env={**os.environ, "PYTHONPATH": str(ADAPTERS)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if any(words in process.stderr for words in NO_VULKAN):
        pytest.skip("there is no Vulkan device that ManiSkill takes")
    assert process.returncode == 0, process.stderr[-3000:]
    lines = [line[5:] for line in process.stdout.splitlines() if line.startswith("told ")]
    steps = [json.loads(line) for line in lines]
    assert len({step["reward"] for step in steps}) > 10
    # the reward is that of the state that the step reached: so are the values
    for step in steps:
        assert step["sum"] == pytest.approx(step["reward"], abs=1e-6)
    last = steps[-1]
    if example.task == "lift":
        assert {step["grasp"] for step in steps} == {step["lift"] for step in steps} == {0.0, 1.0}
        assert last["cube_height"] > 0.1
        for step in steps:
            found = np.subtract(step["cube_position"], step["gripper_position"])
            np.testing.assert_allclose(step["gripper_to_cube"], found, atol=1e-6)
    elif example.task == "push_cube":
        assert last["native_reward"] == 1.0
        assert math.dist(last["cube_position"][:2], last["goal_position"][:2]) < 0.1


@pytest.mark.slow
def test_a_policy_is_trained_scored_and_filmed_and_equal_seeds_play_the_same(
    folder: MakeFolder, example: Example
) -> None:
    made = example.made(folder)
    made.write("reward.py", (example.folder / example.told.sparse_reward).read_text())
    entry = {"id": "a", "reward": "reward.py", "seed": 1, "state": None, "rungs": []}
    events = example.job(made, "train", env_steps=500, save_every_s=600, trainings=[entry])
    assert (events[-1]["event"], events[-1]["env_steps"] >= 500) == ("trained", True)
    assert any(each["event"] == "curve" for each in events)
    policy = {"policy": events[-1]["policies"][-1]["policy"], "episodes": 2, "record": [0, 1]}
    seeds = [{"id": str(number), "seed": seed, **policy} for number, seed in enumerate((3, 3, 4))]
    played = example.job(made, "evaluate", policies=seeds)
    episodes = [each for each in played if each["event"] == "episode"]
    assert all(math.isfinite(each["fitness"]) for each in episodes)
    by = [[{**each, "by": ""} for each in episodes if each["by"] == name] for name in "012"]
    assert by[0] == by[1]
    assert by[0][0]["start"] != by[2][0]["start"]
    assert by[0][0]["start"] != by[0][1]["start"]
    film = {"id": "a", "seed": 3, **policy, "record": [0]}
    (event,) = example.job(made, "film", policies=[film], size=[64, 48], most_steps=4, every=2)
    pictures = np.fromfile(made.path / event["pictures"], np.uint8).reshape(-1, 48, 64, 3)
    assert len(pictures) >= 2
    assert all(len(np.unique(each)) > 20 for each in pictures)
