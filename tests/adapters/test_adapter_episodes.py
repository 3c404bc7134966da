"""Episodes of descriptions, evaluations, films and dry runs, on a batch that is easy to follow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from eureka_adapter import Job, Step, Variable, episode_seed, play
from job_folders import JobFolder, MakeFolder
from torch import Tensor

FITNESS = (
    "def compute_fitness(x, previous_x, actions):\n    return x - previous_x + 0 * actions[:, 0]\n"
)


class Counters:
    """Rows that count from 0; one with an odd seed falls after 2 steps, another goes on."""

    def __init__(self, num_envs: int) -> None:
        self.num_envs = num_envs
        self.seeds: list[int] = []

    def reset(self, seeds: list[int]) -> tuple[Tensor, dict[str, Tensor]]:
        self.seeds += seeds
        self.x, self.odd = torch.zeros(self.num_envs), torch.tensor(seeds) % 2 == 1
        return self.x, {"x": self.x}

    def step(self, actions: Any) -> Step:
        self.x += 1 + 0.5 * self.odd  # in place, as simulators do
        fell = self.odd & (self.x >= 3)
        return Step({"x": self.x}, actions, fell, torch.zeros(self.num_envs), observations=self.x)

    def render(self, row: int) -> np.ndarray:
        return np.full((2, 4, 3), int(self.x[row] * 10), dtype=np.uint8)[::-1]


def opened(folder: JobFolder, length: int = 5) -> Job:
    job = Job.open([str(folder.path)])
    sizes = {"num_observations": 1, "num_actions": 1, "max_episode_length": length}
    job.described([Variable("x")], control_dt=0.1, **sizes, can={"film": True})
    return job


def policy(path: Any) -> Any:
    assert path.name == "p.npz"
    return lambda observations: observations[:, None] / 10


def odd(number: int) -> bool:
    return episode_seed(3, number) % 2 == 1


@pytest.mark.parametrize("num_envs", [1, 3, 8])
def test_an_evaluation_plays_each_number_once_however_many_rows_there_are(
    folder: MakeFolder, num_envs: int
) -> None:
    made = folder(FITNESS)
    made.evaluate("p.npz", episodes=7, record=[2, 4])
    play(opened(made), Counters(num_envs), policy)
    *episodes, last = made.events()
    assert last == {"event": "evaluated", "policy": "p"}
    assert [each["number"] for each in episodes] == list(range(7))
    assert {odd(number) for number in range(7)} == {True, False}
    for episode in episodes:
        fell = odd(episode["number"])
        assert (episode["length"], episode["ended_by"]) == (
            (2, "terminated") if fell else (5, "time_out")
        )
        assert episode["fitness"] == (3.0 if fell else 5.0)
        assert ("values" in episode) == (episode["number"] in (2, 4))
        if "values" in episode:
            x = [1.5, 3.0] if fell else [1.0, 2.0, 3.0, 4.0, 5.0]
            assert episode["values"] == {
                "x": x,
                # a policy sees the state before its action
                "actions": [[each / 10] for each in (0.0, *x[:-1])],
                "terminated": [0.0, 1.0] if fell else [0.0] * 5,
            }
            assert episode["start"] == {"x": 0.0}
            assert episode["fitness_steps"] == ([1.5, 1.5] if fell else [1.0] * 5)


def test_extremes_are_the_worst_and_the_best(folder: MakeFolder) -> None:
    made = folder(FITNESS)
    made.evaluate("p.npz", episodes=7, record="extremes")
    play(opened(made), Counters(4), policy)
    recorded = [each["number"] for each in made.events("episode") if "values" in each]
    first = {fell: next(n for n in range(7) if odd(n) == fell) for fell in (True, False)}
    assert recorded == sorted(first.values())


def test_a_description_plays_zero_and_random_actions(folder: MakeFolder) -> None:
    made = folder(FITNESS)
    made.job("describe", episodes=8, most_steps=4)
    play(opened(made), Counters(2), policy)
    described, *episodes = made.events()
    assert described["event"] == "described"
    assert [each["by"] for each in episodes] == ["zero"] * 8 + ["random"] * 8
    actions: dict[str, list[float]] = {"zero": [], "random": []}
    for each in episodes:
        actions[each["by"]] += [action for (action,) in each["values"]["actions"]]
    assert set(actions["zero"]) == {0.0}
    assert len(set(actions["random"])) == len(actions["random"])
    assert all(-1 <= each <= 1 for each in actions["random"])
    assert max(each["length"] for each in episodes) == 4  # most_steps


def test_choices_are_drawn_from_all_there_are(folder: MakeFolder) -> None:
    made = folder("def compute_fitness(x):\n    return x\n")
    made.job("describe", episodes=20, most_steps=5)
    job = opened(made)
    job.description.update(num_actions=2, action_choices=[2, 3])
    play(job, Counters(4), policy)
    random = [each["values"] for each in made.events("episode") if each["by"] == "random"]
    columns = zip(*(action for values in random for action in values["actions"]), strict=True)
    assert [set(column) for column in columns] == [{0, 1}, {0, 1, 2}]


def test_a_film_has_a_picture_for_each_moment(folder: MakeFolder) -> None:
    made = folder(FITNESS)
    number = next(n for n in range(9) if not odd(n))
    entry = {"id": "p", "policy": "p.npz", "seed": 3, "episodes": 9, "record": [number]}
    made.job("film", policies=[entry], size=[8, 8], most_steps=5, every=2)
    play(opened(made), Counters(1), policy)
    (event,) = made.events()
    assert (event["policy"], event["number"]) == ("p", number)
    pictures = np.fromfile(made.path / event["pictures"], np.uint8).reshape(-1, 8, 8, 3)
    assert pictures[:, 4, 0, 0].tolist() == [0, 20, 40]
    # twice as wide as high: borders above and below
    assert pictures[-1, :, 0, 0].tolist() == [0, 0, 40, 40, 40, 40, 0, 0]


def test_a_dry_run_tells_good_rewards_from_bad_ones(folder: MakeFolder) -> None:
    made = folder(FITNESS)
    made.write("good.py", "def compute_reward(x):\n    return x, {'x': x}\n")
    made.write("bad.py", "def compute_reward(x):\n    return 1 / (x - 4), {'x': x}\n")
    entries = [
        {"id": name, "reward": f"{name}.py", "seed": 0, "state": None, "rungs": []}
        for name in ("bad", "good")
    ]
    made.job("dry_run", most_steps=12, trainings=entries)
    play(opened(made), Counters(4), policy)
    fault, ran = made.events()
    assert (fault["event"], fault["whose"], fault["training"], fault["line"]) == (
        "fault",
        "reward",
        "bad",
        2,
    )
    assert ran == {"event": "ran", "training": "good"}


def test_an_evaluation_reads_no_reward(folder: MakeFolder) -> None:
    made = folder(FITNESS)
    made.evaluate("p.npz")
    made.write("reward.py", "raise SystemExit('loaded')")
    job = opened(made)
    play(job, Counters(4), policy)
    assert made.events("evaluated")
    assert "trainings" not in vars(job)
