"""What rewards are tried on: recorded transitions and extreme values."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import Variable
from eureka_agent.worker.states import RECORDED_STEPS, extreme_states, record_transitions


class Counter(VecTask):
    """Its one variable counts the control steps of the episode; episodes end after 12 of them."""

    variables = (Variable("count", (), "1", "-", "control steps since the reset"),)
    num_observations = 1
    num_actions = 2
    max_episode_length = 12
    control_dt = 0.1

    def __init__(self, num_envs: int) -> None:
        super().__init__(num_envs)
        self.count = torch.zeros(num_envs)

    def pre_physics_step(self, actions: Tensor) -> None:
        self.count += 1.0

    def compute_observations(self) -> None:
        self.obs_buf[:, 0] = self.count

    def compute_variables(self) -> dict[str, Tensor]:
        return {"count": self.count}

    def reset_idx(self, env_ids: Tensor) -> None:
        self.count[env_ids] = 0.0


def test_a_recorded_step_knows_the_one_before_it_and_never_one_of_another_episode() -> None:
    recorded = record_transitions(Counter(3), Counter.all_variables())
    assert recorded["count"].shape == (3 * RECORDED_STEPS,)
    assert recorded["actions"].shape == (3 * RECORDED_STEPS, 2)
    # within an episode the counter goes up by one a step, from the 0 of the reset: also in the first step after it
    assert torch.equal(recorded["previous_count"], recorded["count"] - 1.0)
    first_steps = int((recorded["count"] == 1.0).sum())
    # 40 steps of 3 rows: one first step of each row at the beginning, at least 2 resets by length, 8 by hand
    assert first_steps >= 3 + 8
    assert recorded["count"].max() == 12.0
    assert recorded["actions"].std() > 0.4  # uniform in [-1, 1] has 0.577


VARIABLES = {
    "angle": Variable("angle", (), "rad", "joint", "", (-2.0, 3.0)),
    "height": Variable("height", (2,), "m", "world", "", (0.5, 1.5)),
    "force": Variable("force", (), "N", "world", ""),
}


@pytest.fixture
def extremes() -> tuple[dict[str, Tensor], tuple[str, ...]]:
    recorded = {"angle": torch.full((8,), 0.25), "height": torch.full((8, 2), 0.75), "force": torch.full((8,), 7.0)}
    recorded["previous_angle"] = recorded["angle"]
    states = extreme_states(recorded, ("angle", "height", "force", "previous_angle"), VARIABLES)
    return states.values, states.labels


def test_each_extreme_changes_one_variable_alone(extremes: tuple[dict[str, Tensor], tuple[str, ...]]) -> None:
    values, labels = extremes
    rows = [index for index, label in enumerate(labels) if label == "'angle' is 3 rad"]
    assert rows
    assert torch.equal(values["angle"][rows], torch.full((len(rows),), 3.0))
    for name, unchanged in (("height", 0.75), ("force", 7.0), ("previous_angle", 0.25)):
        assert bool((values[name][rows] == unchanged).all())


def test_a_range_bounds_the_extremes_and_a_variable_without_one_goes_far(
    extremes: tuple[dict[str, Tensor], tuple[str, ...]],
) -> None:
    values, labels = extremes
    # zero is outside of the height's range: the nearest value in it stands for it
    assert sorted(set(values["height"].flatten().tolist())) == [0.5, 0.75, 1.5]
    assert values["angle"].min() == -2.0
    assert values["angle"].max() == 3.0
    assert values["force"].abs().max() == 1e4
    assert "'force' is -10000 N" in labels
    together = [index for index, label in enumerate(labels) if label == "every variable is at its upper limit"]
    assert bool((values["height"][together] == 1.5).all())
    assert bool((values["force"][together] == 1e4).all())


def test_labels_and_rows_are_as_many(extremes: tuple[dict[str, Tensor], tuple[str, ...]]) -> None:
    values, labels = extremes
    assert {len(value) for value in values.values()} == {len(labels)}
