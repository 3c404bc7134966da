"""VecTask's step: terminated against truncated, the state before a reset, windows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import Variable
from eureka_agent.training.conformance import check_environment


class Counter(VecTask):
    """Each row counts its steps from a start drawn from its own stream; the action is added. Ends
    above 10."""

    variables = (Variable("count", (), "1", "-", "steps so far"),)
    num_observations = 1
    num_actions = 1
    max_episode_length = 4
    control_dt = 1.0

    def __init__(self, num_envs: int, device: torch.device | str = "cpu", seed: int = 0) -> None:
        super().__init__(num_envs, device, seed)
        self.count = torch.zeros(num_envs)

    def pre_physics_step(self, actions: Tensor) -> None:
        self.count += 1.0 + actions[:, 0]

    def compute_observations(self) -> None:
        self.obs_buf[:, 0] = self.count

    def compute_variables(self) -> dict[str, Tensor]:
        return {"count": self.count}

    def compute_termination(self) -> Tensor:
        return self.count > 10.0

    def reset_idx(self, env_ids: Tensor) -> None:
        self.count[env_ids] = self.random.uniform(env_ids, 1)[:, 0]


def counter(counts: list[float]) -> Counter:
    environment = Counter(len(counts))
    environment.reset()
    environment.count[:] = torch.tensor(counts)
    return environment


class Steps(Counter):
    """Goes on by the first choice, and by half the second."""

    num_actions = 2
    action_choices = (3, 2)

    def pre_physics_step(self, actions: Tensor) -> None:
        self.count += actions[:, 0] + 0.5 * actions[:, 1]


def test_choices_are_the_nearest_indices() -> None:
    environment = Steps(4)
    environment.reset()
    environment.count[:] = 0.0
    asked = torch.tensor([[0.4, 0.6], [1.6, -3.0], [99.0, 99.0], [torch.nan, 1.0]])
    transition = environment.advance(asked)
    expected = [[0.0, 1.0], [2.0, 0.0], [2.0, 1.0]]
    assert transition.variables["actions"][:3].tolist() == expected
    assert environment.count[:3].tolist() == [0.5, 2.0, 2.5]
    assert environment.count[3].isnan()
    environment.reset()
    assert not environment.read_variables()["actions"].any()
    (actions, *_) = Steps.all_variables()
    assert (actions.shape, actions.range, actions.frame) == ((2,), (0.0, 2.0), "-")
    # of one choice it is a number for each row
    Steps.action_choices, Steps.num_actions = (3,), 1
    try:
        assert Steps.all_variables()[0].shape == ()
    finally:
        Steps.action_choices, Steps.num_actions = (3, 2), 2


def test_terminated_and_truncated_exclude_each_other() -> None:
    environment = counter([0.0, 9.5, 9.5])
    environment.progress_buf[:] = torch.tensor([3, 1, 3])
    transition = environment.advance(torch.zeros(3, 1))
    # row 2 fails in the very step of its time limit: a failure
    assert transition.terminated.tolist() == [False, True, True]
    assert transition.truncated.tolist() == [True, False, False]
    assert transition.causes["terminated"].tolist() == [False, True, True]


def test_advance_shows_the_last_state_and_reset_done_the_first() -> None:
    environment = counter([2.0, 9.5])
    transition = environment.advance(torch.zeros(2, 1))
    assert transition.observations[:, 0].tolist() == [3.0, 10.5]
    assert transition.variables["terminated"].tolist() == [0.0, 1.0]
    observations = environment.reset_done()
    assert float(observations[0, 0]) == 3.0
    assert 0.0 <= float(observations[1, 0]) < 1.0
    assert environment.progress_buf.tolist() == [1, 0]
    values = environment.read_variables()
    assert values["terminated"].tolist() == [0.0, 0.0]
    assert values["actions"].tolist() == [[0.0], [0.0]]


class CounterWithSquare(Counter):
    """With a variable that is computed on demand."""

    variables = (*Counter.variables, Variable("square", (), "1", "-", "the count squared"))
    computed = 0

    def _square(self) -> Tensor:
        self.computed += 1
        return self.count.square()

    def compute_variables(self) -> dict[str, Tensor | Callable[[], Tensor]]:
        return {**super().compute_variables(), "square": self._square}


def test_a_variable_given_as_a_function_is_computed_once_and_only_when_it_is_read() -> None:
    environment = CounterWithSquare(2)
    environment.reset()
    environment.count[:] = torch.tensor([1.0, 2.0])
    transition = environment.advance(torch.zeros(2, 1))
    assert transition.variables["count"].tolist() == [2.0, 3.0]
    assert environment.computed == 0
    assert transition.variables["square"].tolist() == [4.0, 9.0]
    assert dict(transition.variables)["square"].tolist() == [4.0, 9.0]
    assert environment.computed == 1
    # Isaac Gym's step hands out the values themselves, of the state before any reset: (2 + 1)² and
    # (3 + 1)²
    assert environment.step(torch.zeros(2, 1))[3]["variables"]["square"].tolist() == [9.0, 16.0]


def test_actions_are_clipped_before_they_act() -> None:
    environment = counter([0.0, 0.0])
    transition = environment.advance(torch.tensor([[5.0], [-5.0]]))
    assert transition.variables["actions"].tolist() == [[1.0], [-1.0]]
    assert transition.variables["count"].tolist() == [2.0, 0.0]


def test_step_is_isaac_gyms() -> None:
    environment = counter([9.5, 0.0])
    environment.progress_buf[1] = 3
    observations, rewards, done, extras = environment.step(torch.zeros(2, 1))
    assert done.tolist() == [True, True]
    assert extras["time_outs"].tolist() == [False, True]
    assert extras["variables"]["count"].tolist() == [10.5, 1.0]
    assert rewards.tolist() == [0.0, 0.0]
    assert bool((observations["obs"] < 1.0).all())


class Jumper(Counter):
    """A counter that has won above 10 and lost above 20; both are told."""

    termination_causes = ("won", "lost")
    success_causes = ("won",)

    def compute_termination(self) -> dict[str, Tensor]:
        return {"won": self.count > 10.0, "lost": self.count > 20.0}


def test_a_success_ends_the_episode_and_is_no_failure() -> None:
    environment = Jumper(3)
    environment.reset()
    environment.count[:] = torch.tensor([0.0, 15.0, 25.0])
    transition = environment.advance(torch.zeros(3, 1))
    assert transition.terminated.tolist() == [False, True, True]
    assert transition.variables["succeeded"].tolist() == [0.0, 1.0, 0.0]
    assert transition.variables["terminated"].tolist() == [
        0.0,
        0.0,
        1.0,
    ]  # it won and lost at once: a failure
    assert next(iter(transition.causes)) == "lost"
    environment.reset_done()
    assert environment.read_variables()["succeeded"].tolist() == [0.0, 0.0, 0.0]


def test_what_is_said_of_ends_tells_successes_from_failures() -> None:
    told = {variable.name: variable.doc for variable in Jumper.all_variables()}
    assert "by failure (lost)" in told["terminated"]
    assert "an end by won is a success" in told["terminated"]
    assert "by success (won)" in told["succeeded"]
    plain = {variable.name: variable.doc for variable in Counter.all_variables()}
    assert "succeeded" not in plain
    assert "succeeded_buf" not in Counter(2).row_tensors()


# ── windows ───────────────────────────────────────────────────────────────────────────────────────

ENV, HUMAN = "env.py", "rewards/human.py"
WINDOWED = (ENV, "(-6.0, 6.0))", "(-6.0, 6.0), window=3)")


class Walk(Counter):
    """A counter that is looked at some steps back, and whose start is its row's number."""

    variables = (Variable("count", (), "1", "-", "steps so far", window=3),)
    max_episode_length = 9

    def compute_termination(self) -> Tensor:
        return self.count > 99.0

    def reset_idx(self, env_ids: Tensor) -> None:
        self.count[env_ids] = 10.0 * (env_ids + 1).float()


def windows(environment: VecTask) -> list[list[float]]:
    return environment.read_variables()["count_window"].tolist()


def test_a_window_begins_with_the_start_state_and_moves_with_each_step() -> None:
    environment = Walk(2)
    environment.reset()
    assert windows(environment) == [[10.0] * 3, [20.0] * 3]
    still = torch.zeros(2, 1)
    environment.advance(still)
    assert windows(environment) == [[10.0, 10.0, 11.0], [20.0, 20.0, 21.0]]
    for _ in range(2):
        environment.advance(still)
    assert windows(environment) == [[11.0, 12.0, 13.0], [21.0, 22.0, 23.0]]
    # a reset of one row leaves the other
    environment.reset_rows(torch.tensor([1]))
    assert windows(environment) == [[11.0, 12.0, 13.0], [20.0] * 3]
    by_mask = Walk(2)
    by_mask.load_row_state(torch.arange(2), environment.row_state(torch.arange(2)))
    for each in (environment, by_mask):
        each.advance(still)
    assert windows(by_mask) == windows(environment) == [[12.0, 13.0, 14.0], [20.0, 20.0, 21.0]]
    environment.reset_rows(torch.tensor([0]))
    by_mask.reset_masked(torch.tensor([True, False]))
    assert windows(by_mask) == windows(environment)


def test_an_environment_with_a_window_keeps_the_contract(write_folder: Callable[..., Path]) -> None:
    reward = (
        "def compute_reward(position_window):\n    way = position_window[:, -1] - position_window[:, 0]"
        "\n    return way, {'way': way}\n"
    )
    folder = write_folder(WINDOWED, files={HUMAN: reward})
    results = check_environment(str(folder), None, rollout_s=0.2)
    assert [result for result in results if result.severity != "ok"] == []
    (window,) = [each for each in Walk.all_variables() if each.name == "count_window"]
    assert (window.shape, window.unit) == ((3,), "1")


def test_a_windowed_variable_of_another_type_is_named(write_folder: Callable[..., Path]) -> None:
    given = (ENV, '"position": self.position,', '"position": self.position.long(),')
    found = check_environment(str(write_folder(WINDOWED, given)))
    said = "variable 'position', which has a window, is of type torch.int64, expected torch.float32"
    assert ("can be made", said) in [(each.name, each.actual) for each in found]
