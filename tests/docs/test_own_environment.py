"""The page on one's own environment, followed to the letter."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from eureka_agent.simulation.gymnasium_task import GymnasiumTask
from eureka_agent.simulation.mujoco_lookups import MujocoLookups
from eureka_agent.simulation.mujoco_task import MujocoTask
from eureka_agent.simulation.mujoco_views import (
    Actuator,
    Contact,
    Frame,
    FreeJoint,
    Joint,
    Sensor,
)
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import Channel, Constant, Parameter, Task, TrainingBudget, Variable

PAGE = Path(__file__).resolve().parents[2] / "docs" / "your-own-environment.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each block of code in the file that its first line names."""
    folder = tmp_path_factory.mktemp("page")
    blocks = re.findall(r"```python\n# (boat/\S+)\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    assert [name for name, _ in blocks] == [
        "boat/env.py",
        "boat/tasks/cross.py",
        "boat/rewards/human.py",
        "boat/rewards/sparse.py",
    ]
    for name, text in blocks:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_the_page_keeps_to_the_rules_of_the_repository(folder: Path) -> None:
    first_party = 'lint.isort.known-first-party = ["eureka_agent"]'  # as it is in the clone
    project = str(PAGE.parents[1] / "pyproject.toml")
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--config",
        project,
        "--config",
        first_party,
        "boat",
    ]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def public_names(cls: type) -> set[str]:
    """Attributes and methods that a class itself declares."""
    return {
        name
        for name in (*vars(cls), *vars(cls).get("__annotations__", {}))
        if not name.startswith("_")
    }


DECLARED = [
    *(VecTask, MujocoTask, GymnasiumTask, Task, TrainingBudget),
    *(Variable, Constant, Parameter, Channel),
]
LOOKED_UP = [MujocoLookups, Joint, FreeJoint, Frame, Contact, Sensor, Actuator]


@pytest.mark.parametrize("cls", DECLARED)
def test_everything_that_may_be_declared_is_named(cls: type) -> None:
    page = PAGE.read_text()
    named = {name for code in re.findall(r"`([^`\n]+)`", page) for name in re.findall(r"\w+", code)}
    computed = {name for name in public_names(cls) if isinstance(vars(cls).get(name), property)}
    assert sorted(public_names(cls) - computed - named) == []


@pytest.mark.parametrize("cls", LOOKED_UP)
def test_everything_that_may_be_read_by_name_is_named(cls: type) -> None:
    named = set(re.findall(r"`(\w+)[`(\[]", PAGE.read_text()))
    assert sorted(public_names(cls) - {"model", "device"} - named) == []


ARM = """
<mujoco>
  <worldbody>
    <body><joint name="shoulder_pan"/><geom name="base" size="0.1"/>
      <body pos="0 0 0.2"><joint name="shoulder_lift"/><geom name="left_pad" size="0.1"/>
        <body pos="0 0 0.2"><joint name="elbow"/><geom name="right_pad" size="0.1"/></body>
      </body>
    </body>
    <body name="cube" pos="2 0 0"><freejoint name="cube_root"/><geom size="0.1"/></body>
  </worldbody>
</mujoco>
"""


def test_the_blocks_on_names_work_as_they_stand(tmp_path: Path) -> None:
    section = PAGE.read_text().partition("### MuJoCo: everything by name")[2].partition("\n### ")[0]
    blocks = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
    methods = [textwrap.indent(block, "    ") for block in blocks]
    source = [
        "import torch",
        "from eureka_agent.simulation.mujoco_task import MujocoTask",
        "class Robot(MujocoTask):",
        '    model_file, control_dt, max_episode_length = "arm.xml", 0.002, 10',
        "    num_observations, num_actions = 1, 0",
        "    def compute_observations(self): pass",
        *methods,
    ]
    (tmp_path / "arm.xml").write_text(ARM)
    (tmp_path / "robot.py").write_text("\n".join(source))
    spec = importlib.util.spec_from_file_location("robot_of_the_page", tmp_path / "robot.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    robot = module.Robot(5)
    robot.reset()
    values = robot.compute_variables()
    for comment, name in ((r"\(num_envs, 3\)", "arm_positions"), (r"\(num_envs,\)", "cube_held")):
        assert re.search(rf'"{name}": .*# {comment}', section)
    shapes = {name: tuple(value.shape) for name, value in values.items()}
    assert shapes == {
        "arm_positions": (5, 3),
        "cube_position_w": (5, 3),
        "pad_forces_w": (5, 2, 3),
        "cube_held": (5,),
    }
    # `place` puts it around 0.8 m
    assert float((values["cube_position_w"][:, 2] - 0.8).abs().max()) <= 0.1


def test_what_the_tables_name_is_there() -> None:
    """The first column of each table, against the classes of its heading."""
    tables = PAGE.read_text().partition("## All that an environment may declare")[2]
    sections = re.split(r"^### ", tables, flags=re.MULTILINE)[1:]
    of_heading = {
        "Every kind": VecTask,
        "MuJoCo": MujocoTask,
        "Gymnasium": GymnasiumTask,
        "A task": Task,
    }
    found = 0
    for section in sections:
        cls = next(cls for heading, cls in of_heading.items() if section.startswith(heading))
        known = {name for base in cls.__mro__ for name in public_names(base)}
        for row in re.findall(r"^\| (.*?) \|", section, flags=re.MULTILINE):
            for name in re.findall(r"`(\w+)", row):
                if name not in ("Task",):
                    assert name in known, f"{name} in {section.splitlines()[0]}"
                    found += 1
    assert found > 40


def eureka(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "EUREKA_RUNS": str(folder / "runs")}
    command = [sys.executable, "-m", "eureka_agent.cli.main", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )


@pytest.mark.slow
def test_the_boat_keeps_the_contract(folder: Path) -> None:
    result = eureka(folder, "envs", "--check", "boat")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "boat keeps the contract" in result.stdout


@pytest.mark.slow
def test_the_boat_is_searched_and_its_designer_took_up_the_buoy(folder: Path) -> None:
    flags = [
        "--iterations",
        "1",
        "--samples",
        "4",
        "--confirm",
        "0",
        "--finalists",
        "1",
        "--final-seeds",
        "1",
        "--no-baselines",
        "--format",
        "json",
    ]
    result = eureka(
        folder, "search", "steer the boat to the buoy and stay there", "--env", "boat", *flags
    )
    assert result.returncode == 0, result.stderr
    best = json.loads(result.stdout)["best"]
    # a boat that stands still where it starts is never within 1 m of a buoy 8 m away: its fitness
    # is 0 s
    assert best["mean"] > 0.5
    reward = next((folder / "runs").glob("*/best/reward.py")).read_text()
    assert "buoy_position" in reward
