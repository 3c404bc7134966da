"""A small environment folder to write and to break, a point mass pushed along a line; and the
gripper of the tests of MuJoCo."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from gripper import MJCF, Gripper

ENVIRONMENT = '''
"""A point mass on a line."""

import torch

from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import Variable


class PointMass(VecTask):
    """A point mass on a line.

    More about it.
    """

    variables = (
        Variable("position", (), "m", "world", "position on the line", (-6.0, 6.0)),
        Variable("state", (2,), "1", "world", "position and velocity"),
    )
    num_observations = 2
    num_actions = 1
    max_episode_length = 50
    control_dt = 0.1

    def __init__(self, num_envs, device="cpu", seed=0, *, limit=5.0):
        super().__init__(num_envs, device, seed)
        self.limit = limit
        self.position = torch.zeros(num_envs, device=self.device)
        self.velocity = torch.zeros(num_envs, device=self.device)

    def pre_physics_step(self, actions):
        self.velocity = self.velocity + 0.1 * actions[:, 0]

    def simulate(self):
        self.position = self.position + 0.1 * self.velocity

    def compute_observations(self):
        self.obs_buf[:, 0] = self.position
        self.obs_buf[:, 1] = self.velocity

    def compute_variables(self):
        return {"position": self.position, "state": torch.stack((self.position, self.velocity), dim=1)}

    def compute_termination(self):
        return self.position.abs() > self.limit

    def reset_idx(self, env_ids):
        self.position[env_ids] = self.random.uniform(env_ids, 1, -1.0, 1.0)[:, 0]
        self.velocity[env_ids] = 0.0
'''

TASK = """
from eureka_agent.task import Task


def fitness(position, previous_position):
    return position - previous_position


task = Task(sentence="go right", fitness=fitness, fitness_doc="metres to the right", options={"limit": 4.0})
"""

REWARD = """
def compute_reward(position, previous_position):
    progress = position - previous_position
    return progress, {"progress": progress}
"""

FILES = {
    "env.py": ENVIRONMENT,
    "tasks/go.py": TASK,
    "rewards/human.py": REWARD,
    "rewards/sparse.py": REWARD,
}

WriteFolder = Callable[..., Path]


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def write_folder(tmp_path: Path) -> WriteFolder:
    """Write the point mass's folder: `changes` are (file, old text, new text); `files` are added or
    replaced, None leaves one out."""

    def write(*changes: tuple[str, str, str], files: dict[str, str | None] | None = None) -> Path:
        folder = tmp_path / "point_mass"
        contents: dict[str, str | None] = {**FILES, **(files or {})}
        for name, old, new in changes:
            text = contents[name]
            assert text is not None
            assert old in text
            contents[name] = text.replace(old, new)
        for name, text in contents.items():
            if text is not None:
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        return folder

    return write


@pytest.fixture
def gripper(tmp_path: Path) -> Callable[..., Any]:
    """`gripper(num_envs, seed, device, **attributes of the class)`, freshly reset unless
    `reset=False`."""
    path = tmp_path / "gripper.xml"
    path.write_text(MJCF)

    def made(
        num_envs: int = 4,
        seed: int = 0,
        device: str = "cpu",
        reset: bool = True,
        **attributes: object,
    ) -> Any:
        cls = type("Gripper", (Gripper,), {"model_file": str(path), **attributes})
        environment = cls(num_envs, device, seed)
        if reset:
            environment.reset()
        return environment

    return made
