"""Scores of doing nothing and of acting at random, against figures worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

from eureka_agent.errors import EnvironmentFaultError, EnvironmentLoadError
from eureka_agent.simulation.loading import LoadedEnvironment
from eureka_agent.simulation.rollouts import measure_starts
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import Task, Variable
from eureka_agent.worker.evaluation_job import measure, score_untrained


class Integrator(VecTask):
    """Adds its action up; ends beyond 3."""

    variables = (Variable("level", (), "1", "-", "sum of the actions"),)
    num_observations = 1
    num_actions = 1
    max_episode_length = 20
    control_dt = 0.1
    termination_causes = ("overflowed",)

    def __init__(self, num_envs: int, device: torch.device | str = "cpu", seed: int = 0) -> None:
        super().__init__(num_envs, device, seed)
        self.level = torch.zeros(num_envs)

    def pre_physics_step(self, actions: Tensor) -> None:
        self.level = self.level + actions[:, 0]

    def compute_observations(self) -> None:
        self.obs_buf[:, 0] = self.level

    def compute_variables(self) -> dict[str, Tensor]:
        return {"level": self.level}

    def compute_termination(self) -> Tensor:
        return self.level.abs() > 3.0

    def reset_idx(self, env_ids: Tensor) -> None:
        self.level[env_ids] = self.random.uniform(env_ids, 1, 0.5, 1.0)[:, 0]


def of(fitness: object) -> tuple[LoadedEnvironment, Task]:
    task = Task(sentence="fill it", fitness=fitness, fitness_doc="…")  # type: ignore[arg-type]
    return LoadedEnvironment("integrator", "integrator", None, Integrator, {"fill": task}, ""), task


def moved(level: Tensor, previous_level: Tensor) -> Tensor:
    """Squared action: 0 of nothing, 1/3 on average of a uniform one."""
    return (level - previous_level).square()


def test_zero_and_random_actions_score_what_they_must() -> None:
    zero, drawn = score_untrained(*of(moved))
    assert zero is not None
    assert drawn is not None
    assert (zero.mean, zero.std, zero.length, zero.episodes) == (0.0, 0.0, 20.0, 64)
    # each step is worth 1/3 on average, with a variance of 1/5 - 1/9
    steps = drawn.length * drawn.episodes
    assert drawn.mean == pytest.approx(
        drawn.length / 3.0, abs=4.0 * math.sqrt((1 / 5 - 1 / 9) * steps) / drawn.episodes
    )
    assert drawn.length < 20.0, "a random walk overflows now and then"
    assert score_untrained(*of(moved)) == (zero, drawn), "the seed is fixed"


def test_a_fitness_that_is_not_finite_is_the_environments_fault() -> None:
    with pytest.raises(EnvironmentFaultError, match="the task's fitness became"):
        score_untrained(*of(lambda level: level / 0.0))


def test_what_is_measured_has_both() -> None:
    measured = measure(*of(moved))
    ((low, high, smallest),) = measured.starts["level"]
    assert (low, high) == pytest.approx((0.5, 1.0), abs=0.02)
    assert smallest == low
    assert measured.resets == 256
    assert measured.zero_actions is not None
    without = measure(*of(moved), scores=False)
    assert without == measured.model_copy(update={"zero_actions": None, "random_actions": None})


def test_an_environment_that_fails_when_it_is_reset_says_where(tmp_path: Path) -> None:
    class Broken(Integrator):
        def compute_variables(self) -> dict[str, Tensor]:
            raise ValueError("no level")

    loaded, task = of(moved)
    broken = LoadedEnvironment("broken", "broken", tmp_path, Broken, loaded.tasks, "")
    with pytest.raises(
        EnvironmentLoadError, match=r"ValueError: no level \(while resetting Broken\)"
    ):
        measure_starts(broken, task)
