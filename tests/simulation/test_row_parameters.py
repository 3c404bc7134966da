"""Parameters of rows: drawn for each episode, independent of the neighbours, restored to the
bit."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from eureka_agent.parameters import Distribution, ParameterError
from eureka_agent.simulation.row_parameters import ACTION_DELAY
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import Parameter, Variable


class Slider(VecTask):
    """A mass on a rail that remembers the force on it."""

    variables = (Variable("speed", (), "m/s", "world", "of the mass"),)
    parameters = (
        Parameter("mass", "kg", 2.0, 1.0, 5.0, "of the slider"),
        Parameter(ACTION_DELAY, "control steps", 0.0, 0.0, 3.0, "late forces"),
        Parameter("wind", "N", 0.0, -1.0, 1.0, "along the rail"),
    )
    num_observations = 1
    num_actions = 1
    max_episode_length = 5
    control_dt = 0.1

    def __init__(self, num_envs: int, device: torch.device | str = "cpu", seed: int = 0) -> None:
        super().__init__(num_envs, device, seed)
        self.speed = torch.zeros(num_envs)
        self.force = torch.zeros(num_envs)

    def pre_physics_step(self, actions: Tensor) -> None:
        self.force = actions[:, 0] + self.parameter_values["wind"]
        self.speed = self.speed + self.control_dt * self.force / self.parameter_values["mass"]

    def compute_observations(self) -> None:
        self.obs_buf[:, 0] = self.speed

    def compute_variables(self) -> dict[str, Tensor]:
        return {"speed": self.speed}

    def reset_idx(self, env_ids: Tensor) -> None:
        self.speed[env_ids] = self.random.uniform(env_ids, 1)[:, 0]


def made(distribution: Distribution | None, num_envs: int = 8, seed: int = 3) -> Slider:
    environment = Slider(num_envs, seed=seed)
    if distribution is not None:
        environment.set_parameters(torch.arange(num_envs), distribution)
    environment.reset()
    return environment


def masses(environment: Slider, episodes: int = 1) -> Tensor:
    """Masses of the next episodes. Shape: (episodes, num_envs)."""
    found = []
    for _ in range(episodes):
        environment.reset()
        found.append(environment.parameter_values["mass"].clone())
    return torch.stack(found)


def test_values_are_uniform_between_the_bounds_and_new_for_each_episode() -> None:
    found = masses(made({"mass": (2.0, 4.0)}, num_envs=64), episodes=64).flatten()
    assert len(set(found.tolist())) > 4000
    # 4,096 numbers: a standard error of 2/sqrt(12)/64 = 0.009 of the mean of 3
    assert float(found.mean()) == pytest.approx(3.0, abs=0.04)
    assert float(found.min()) == pytest.approx(2.0, abs=0.01)
    assert float(found.max()) == pytest.approx(4.0, abs=0.01)
    assert 2.0 <= float(found.min()) <= float(found.max()) <= 4.0


def test_a_distribution_counts_from_the_next_reset_on_and_can_be_taken_back() -> None:
    environment = made({"mass": (3.0, 4.0)})
    before = environment.parameter_values["mass"].clone()
    environment.set_parameters(torch.arange(8), {})
    assert torch.equal(environment.parameter_values["mass"], before)
    environment.reset_rows(torch.tensor([1, 4]))
    assert environment.parameter_values["mass"][[1, 4]].tolist() == [2.0, 2.0]
    others = [0, 2, 3, 5, 6, 7]
    assert torch.equal(environment.parameter_values["mass"][others], before[others])


def test_start_states_are_the_same_under_any_parameters() -> None:
    usual, heavy = made(None), made({"mass": (1.0, 5.0), "wind": (-1.0, 1.0)})
    for _ in range(3):
        assert torch.equal(usual.speed, heavy.speed)
        usual.reset()
        heavy.reset()


def test_a_row_does_not_depend_on_the_distributions_of_its_neighbours() -> None:
    alone, among = Slider(1, seed=1), Slider(6, seed=2)
    among.set_parameters(torch.arange(6), {"wind": (-1.0, 1.0), "mass": (1.0, 1.5)})
    among.reset()
    for environment, row in ((alone, 0), (among, 4)):
        environment.seed_rows(torch.tensor([row]), torch.tensor([9]))
        environment.set_parameters(torch.tensor([row]), {})
        environment.reset()
    for _ in range(3):  # the distribution comes after some episodes, as in a curriculum
        for environment in (alone, among):
            environment.reset()
    for environment, row in ((alone, 0), (among, 4)):
        environment.set_parameters(torch.tensor([row]), {"mass": (1.0, 5.0)})
    for _ in range(3):
        assert float(masses(alone)[0, 0]) == float(masses(among)[0, 4])
        assert float(alone.speed[0]) == float(among.speed[4])


def test_a_loaded_row_goes_on_with_its_values_and_its_distribution() -> None:
    distribution = {"mass": (1.0, 5.0), ACTION_DELAY: (2.0, 2.0)}
    first, second = made(distribution), made(None, num_envs=3, seed=8)
    actions = torch.linspace(-1.0, 1.0, 12).view(12, 1, 1)
    for action in actions[:3]:
        first.advance(action.expand(8, 1))
        first.reset_done()
    second.load_row_state(torch.tensor([2]), first.row_state(torch.tensor([5])))
    for action in actions[3:]:  # over two resets
        first.advance(action.expand(8, 1))
        second.advance(action.expand(3, 1))
        assert float(first.speed[5]) == float(second.speed[2])
        first.reset_done()
        second.reset_done()
        assert float(first.parameter_values["mass"][5]) == float(second.parameter_values["mass"][2])
    assert second.parameter_values["mass"][:2].tolist() == [2.0, 2.0]


@pytest.mark.parametrize(("delay", "steps"), [(0.0, 0), (0.4, 0), (0.6, 1), (2.0, 2), (3.0, 3)])
def test_an_action_arrives_as_many_steps_late(delay: float, steps: int) -> None:
    environment = made({ACTION_DELAY: (delay, delay)}, num_envs=2)
    forces = []
    given = [0.1, 0.2, 0.3, 0.4]
    for action in given:
        environment.advance(torch.full((2, 1), action))
        forces.append(round(float(environment.force[1]), 6))
        assert float(environment.actions[1]) == pytest.approx(action)
    assert forces == ([0.0] * steps + given)[:4]
    environment.reset()  # what an episode sent late does not arrive in the next one
    environment.advance(torch.full((2, 1), 0.5))
    assert float(environment.force[1]) == pytest.approx(0.0 if steps else 0.5)


def test_a_value_outside_of_the_range_changes_nothing() -> None:
    environment = made(None)
    with pytest.raises(ParameterError, match=r"its safe range is 1..5"):
        environment.set_parameters(torch.arange(8), {"mass": (1.0, 6.0)})
    assert masses(environment)[0].tolist() == [2.0] * 8
