"""Windows: the last values of a variable, for rewards that look some steps back."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
import torch
from torch import Tensor

from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import Variable
from eureka_agent.training.conformance import check_environment

FOLDER = """
    import torch
    from torch import Tensor

    from eureka_agent.simulation.vec_task import VecTask
    from eureka_agent.task import Variable


    class Walk(VecTask):
        \"\"\"Points that are pushed along a plane.\"\"\"

        variables = (Variable("place", (2,), "m", "world", "place of the point: x, y", window=3),)
        num_observations = 2
        num_actions = 2
        max_episode_length = 5
        control_dt = 1.0

        def __init__(self, num_envs: int, device: str = "cpu", seed: int = 0) -> None:
            super().__init__(num_envs, device, seed)
            self.place = torch.zeros(num_envs, 2, device=self.device)

        def pre_physics_step(self, actions: Tensor) -> None:
            self.place = self.place + actions

        def compute_observations(self) -> None:
            self.obs_buf[:] = self.place

        def compute_variables(self) -> dict[str, Tensor]:
            return {"place": self.place}

        def reset_idx(self, env_ids: Tensor) -> None:
            self.place[env_ids] = 10.0 + self.random.uniform(env_ids, 2)
    """
TASK = """
    from torch import Tensor

    from eureka_agent.task import Task


    def fitness(place: Tensor) -> Tensor:
        return place[:, 0]


    task = Task(sentence="walk to the right", fitness=fitness, fitness_doc="sum of x")
    """
REWARD = """
    from torch import Tensor


    def compute_reward(place_window: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        way = place_window[:, -1, 0] - place_window[:, 0, 0]
        return way, {"way": way}
    """


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "walk"
    files = {"env.py": FOLDER, "tasks/right.py": TASK, "rewards/human.py": REWARD}
    files["rewards/sparse.py"] = REWARD.replace("place_window", "place").replace(
        "place[:, -1, 0] - place[:, 0, 0]", "place[:, 0]"
    )
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(textwrap.dedent(text))
    return root


class Walk(VecTask):
    """One number that the action is added to; a row's start is its number."""

    variables = (Variable("place", (), "m", "world", "place of the point", window=3),)
    num_observations = 1
    num_actions = 1
    max_episode_length = 4
    control_dt = 1.0

    def __init__(self, num_envs: int, device: torch.device | str = "cpu", seed: int = 0) -> None:
        super().__init__(num_envs, device, seed)
        self.place = torch.zeros(num_envs)

    def pre_physics_step(self, actions: Tensor) -> None:
        self.place = self.place + actions[:, 0]

    def compute_observations(self) -> None:
        self.obs_buf[:, 0] = self.place

    def compute_variables(self) -> dict[str, Tensor]:
        return {"place": self.place}

    def reset_idx(self, env_ids: Tensor) -> None:
        self.place[env_ids] = 10.0 * (env_ids + 1).float()


def windows(environment: VecTask) -> list[list[float]]:
    return environment.read_variables()["place_window"].tolist()


def test_a_window_begins_with_the_start_state_and_moves_with_each_step() -> None:
    environment = Walk(2)
    environment.reset()
    assert windows(environment) == [[10.0] * 3, [20.0] * 3]
    ones = torch.ones(2, 1)
    environment.advance(ones)
    assert windows(environment) == [[10.0, 10.0, 11.0], [20.0, 20.0, 21.0]]
    for _ in range(2):
        environment.advance(ones)
    assert windows(environment) == [[11.0, 12.0, 13.0], [21.0, 22.0, 23.0]]
    # a reset of one row leaves the other
    environment.reset_rows(torch.tensor([1]))
    assert windows(environment) == [[11.0, 12.0, 13.0], [20.0] * 3]
    by_mask = Walk(2)
    by_mask.load_row_state(torch.arange(2), environment.row_state(torch.arange(2)))
    for each in (environment, by_mask):
        each.advance(ones)
    assert windows(by_mask) == windows(environment) == [[12.0, 13.0, 14.0], [20.0, 20.0, 21.0]]
    environment.reset_rows(torch.tensor([0]))
    by_mask.reset_masked(torch.tensor([True, False]))
    assert windows(by_mask) == windows(environment)


def test_an_environment_with_a_window_keeps_the_contract(folder: Path) -> None:
    results = check_environment(str(folder), None, rollout_s=0.2)
    assert [result for result in results if result.severity != "ok"] == []
    (window,) = [each for each in Walk.all_variables() if each.name == "place_window"]
    assert (window.shape, window.unit) == ((3,), "m")


@pytest.mark.parametrize(
    ("given", "kind"), [("self.place.long()", "torch.int64"), ("self.place.tolist()", "list")]
)
def test_a_windowed_variable_of_another_type_is_named(folder: Path, given: str, kind: str) -> None:
    env = folder / "env.py"
    env.write_text(env.read_text().replace('{"place": self.place}', f'{{"place": {given}}}'))
    found = [each for each in check_environment(str(folder)) if each.severity == "error"]
    said = f"variable 'place', which has a window, is of type {kind}, expected torch.float32"
    assert [(each.name, each.actual) for each in found] == [("can be made", said)]
