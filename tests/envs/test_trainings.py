"""Every task trains under each reward in its environment's folder."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from eureka_agent.settings import TrainingSettings
from eureka_agent.simulation.catalogue import list_environments
from eureka_agent.simulation.loading import load_environment
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.training.reward import RewardFunction
from eureka_agent.training.trainer import MemberFinished, MemberProgress, Trainer

TASKS = [(entry.name, task) for entry in list_environments() for task in entry.tasks]
NUM_ENVS = 8


@pytest.fixture
def environments() -> Iterator[list[VecTask]]:
    made: list[VecTask] = []
    yield made
    for each in made:
        each.close()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "task"), TASKS)
def test_two_iterations_end_with_another_policy(
    name: str, task: str, environments: list[VecTask]
) -> None:
    loaded = load_environment(name)
    found = loaded.task(task)[1]
    settings = TrainingSettings.model_validate({**found.training.overrides, "num_envs": NUM_ENVS})
    steps = 2 * settings.horizon * NUM_ENVS
    settings = settings.model_copy(update={"env_steps": steps, "checkpoints": 1})

    def make(rows: int) -> VecTask:
        environments.append(loaded.make(found, rows))
        return environments[-1]

    trainer = Trainer(make, found, settings, 2)
    for kind in ("human", "sparse"):
        source = loaded.reward_source(found, kind)
        assert source is not None
        variables = loaded.environment_class.all_variables()
        trainer.submit(
            kind, RewardFunction.from_source(source, variables, allow_private=True), seed=3
        )
    events = [event for _ in range(2) for event in trainer.iterate()]
    points = [event.point for event in events if isinstance(event, MemberProgress)]
    ended = {event.job: event for event in events if isinstance(event, MemberFinished)}
    assert [point.env_steps for point in points] == [steps // 2] * 2 + [steps] * 2
    assert all(math.isfinite(point.policy_loss) and point.entropy != 0.0 for point in points)
    assert set(ended) == {"human", "sparse"}
    # equal seeds begin with equal policies, so what differs was learned from the reward
    human, sparse = (ended[kind].policy for kind in ("human", "sparse"))
    assert all(bool(tensor.isfinite().all()) for tensor in human.values())
    assert any(not torch.equal(tensor, sparse[name]) for name, tensor in human.items())


@pytest.mark.parametrize("name", sorted({name for name, _ in TASKS}))
def test_every_reward_in_the_folder_is_a_task_s(name: str) -> None:
    loaded = load_environment(name)
    assert loaded.folder is not None
    used = {
        source
        for task in loaded.tasks.values()
        for kind in ("human", "sparse")
        if (source := loaded.reward_source(task, kind)) is not None
    }
    written = {path: path.read_text() for path in Path(loaded.folder, "rewards").glob("*.py")}
    assert written
    assert [path for path, source in written.items() if source not in used] == []
