"""An environment folder written by the tests, searches on it through the real command line, and
runs without workers."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine
from scripted_search import reward

from eureka_agent.archive.run_folder import Run, create_run
from eureka_agent.records import TaskDescription
from eureka_agent.rewards import baseline
from eureka_agent.settings import SearchSettings

ENVIRONMENT = '''"""A puck on a rail."""
import torch
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import Variable


class Puck(VecTask):
    """A puck that is pushed along a rail with friction."""

    num_observations = 2
    num_actions = 1
    max_episode_length = 50
    control_dt = 0.1
    termination_causes = ("left_the_rail",)
    variables = (
        Variable("puck_position", (), "m", "world", "position of the puck along the rail; the rail's middle is 0", (-2.0, 2.0)),
        Variable("puck_velocity", (), "m/s", "world", "velocity of the puck along the rail"),
    )

    def __init__(self, num_envs, device="cpu", seed=0):
        super().__init__(num_envs, device, seed)
        self.position = torch.zeros(num_envs)
        self.velocity = torch.zeros(num_envs)

    def pre_physics_step(self, actions):
        self.velocity = 0.9 * self.velocity + 0.3 * actions[:, 0]
        self.position = self.position + self.velocity * self.control_dt

    def compute_observations(self):
        self.obs_buf[:, 0] = self.position
        self.obs_buf[:, 1] = self.velocity

    def compute_variables(self):
        return {"puck_position": self.position, "puck_velocity": self.velocity}

    def compute_termination(self):
        return self.position.abs() > 2.0

    def reset_idx(self, env_ids):
        self.position[env_ids] = self.random.uniform(env_ids, 1, -1.5, 1.5).squeeze(-1)
        self.velocity[env_ids] = 0.0
'''

TASK = """from eureka_agent.task import Task, TrainingBudget


def fitness(puck_position):
    return 0.1 * (puck_position.abs() < 0.1).float()


task = Task(
    sentence="move the puck to the middle of the rail and keep it there",
    fitness=fitness,
    fitness_doc="seconds that the puck is within 0.1 m of the rail's middle",
    fitness_unit="s",
    training=TrainingBudget(env_steps=8192, num_envs=16),
)
"""

HUMAN = '''def compute_reward(puck_position):
    """Closer is better."""
    closeness = -puck_position.abs()
    return closeness, {"closeness": closeness}
'''

SPARSE = '''def compute_reward(puck_position):
    """The fitness."""
    at_the_middle = 0.1 * (puck_position.abs() < 0.1).float()
    return at_the_middle, {"at_the_middle": at_the_middle}
'''


@pytest.fixture(scope="session")
def puck(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The environment's folder, outside the repository."""
    folder = tmp_path_factory.mktemp("mine") / "puck"
    files = {
        "env.py": ENVIRONMENT,
        "tasks/centre.py": TASK,
        "rewards/human.py": HUMAN,
        "rewards/sparse.py": SPARSE,
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    # in the place of the cards' folder: a search's card would decide over later tests
    (folder / "cards").write_text("")
    return folder


PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL")


@pytest.fixture(scope="package", autouse=True)
def _no_proxy() -> Iterator[None]:
    """Model servers are on loopback."""
    with pytest.MonkeyPatch.context() as patch:
        for name in PROXIES:
            patch.delenv(name, raising=False)
            patch.delenv(name.lower(), raising=False)
        yield


@pytest.fixture
def eureka(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path)


@pytest.fixture(scope="module")
def shared_eureka(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """For tests that read one search together."""
    return CommandLine(tmp_path_factory.mktemp("shared"))


@pytest.fixture(scope="session")
def small(puck: Path) -> Callable[..., tuple[str, ...]]:
    """Arguments of a small search on the puck."""

    def arguments(seed: int = 1) -> tuple[str, ...]:
        text = f"--iterations 2 --samples 3 --finalists 2 --final-seeds 2 --seed {seed}"
        flags = ("--env", str(puck), *text.split())
        return ("search", "bring the puck to the middle of the rail", *flags)

    return arguments


@pytest.fixture
def make_run(
    tmp_path: Path, description: TaskDescription, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Run]:
    """Makes runs with the settings given, on a task whose human and sparse reward are `reward(100)`
    and `reward(200)`."""
    connect = sqlite3.connect

    def connect_without_waiting_for_the_disk(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        connection.execute(
            "PRAGMA synchronous=OFF"
        )  # the wait is for power cuts, of which these tests have none
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect_without_waiting_for_the_disk)
    described = description.model_copy(
        update={"human_reward": baseline(reward(100)), "sparse_reward": baseline(reward(200))}
    )

    def make(**settings: Any) -> Run:
        return create_run(
            SearchSettings(env="cart", **{"confirm": 0, "drafts": 1, **settings}),
            described,
            [],
            parent=tmp_path / "runs",
        )

    return make
