"""A made-up environment, points of its curves, and an archive that was killed in a write."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

from eureka_agent.records import CurvePoint, TaskDescription, VariableSpec

SOURCE = "def compute_reward(height):\n    return height, {'height': height}\n"
JUMPER = TaskDescription(
    environment="jumper",
    task="jump",
    sentence="jump",
    doc="A leg that jumps.",
    fitness_doc="highest point of the foot",
    fitness_unit="m",
    fitness_reduction="max",
    success_fitness=None,
    variables=(
        VariableSpec(name="height", shape=(), unit="m", frame="world", doc="height of the foot"),
    ),
    num_observations=4,
    num_actions=1,
    control_dt=0.02,
    max_episode_length=500,
    termination_causes=("fell",),
    env_steps=1000,
    num_envs=4,
    training_overrides={},
    human_reward=SOURCE,
    sparse_reward=SOURCE,
    fingerprint="0123456789abcdef0123",
)


def make_point(env_steps: int, fitness: float | None, **values: float) -> CurvePoint:
    return CurvePoint(
        env_steps=env_steps,
        fitness=fitness,
        episode_length=None if fitness is None else 100.0,
        episodes=0 if fitness is None else 4,
        reward=values.get("reward", 0.5),
        components={"height": 0.25, "effort": -0.125},
        component_magnitudes={"height": 0.25, "effort": 0.125},
        component_deviations={"height": 0.1, "effort": 0.01},
        terminations={"fell": 3, "time_out": 1} if fitness is not None else {},
        action_saturation=0.0,
        action_std=1.0,
        learning_rate=1e-3,
        kl=values.get("kl", 0.01),
        entropy=1.4,
        value_loss=2.0,
        policy_loss=-0.1,
        explained_variance=0.75,
    )


def kill_in_a_write(folder: Path, killed: Path) -> None:
    """Copy a run's folder in the middle of a write, which the copy's journal can play back."""
    connection = sqlite3.connect(folder / "archive.sqlite", isolation_level=None)
    connection.execute("PRAGMA cache_size=1")  # the file has it before it is committed
    connection.execute("BEGIN")
    connection.execute("UPDATE journal SET kind = 'half', record = ?", ("x" * 100_000,))
    connection.execute("INSERT INTO run VALUES ('more', ?)", ("x" * 100_000,))
    shutil.copytree(folder, killed)
    connection.execute("ROLLBACK")
    connection.close()
    assert (killed / "archive.sqlite-journal").stat().st_size > 512
