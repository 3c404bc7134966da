"""Rewards are tried on recorded transitions and extreme values."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import Variable, window_of
from eureka_agent.worker.dry_run import RECORDED_STEPS, record_transitions
from eureka_agent.worker.extremes import ExtremeStates, drawn_states, extreme_states


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
    # within an episode the counter goes up by one a step, from the 0 of the reset: also in the
    # first step after it
    assert torch.equal(recorded["previous_count"], recorded["count"] - 1.0)
    first_steps = int((recorded["count"] == 1.0).sum())
    # 40 steps of 3 rows: one first step of each row at the beginning, at least 2 resets by length,
    # 8 by hand
    assert first_steps >= 3 + 8
    assert recorded["count"].max() == 12.0
    assert recorded["actions"].std() > 0.4  # uniform in [-1, 1] has 0.577


class Chooser(Counter):
    num_actions = 1
    action_choices = (5,)


def test_recorded_choices_are_all_of_them() -> None:
    recorded = record_transitions(Chooser(3), Chooser.all_variables())
    assert recorded["actions"].shape == (3 * RECORDED_STEPS,)
    assert set(recorded["actions"].tolist()) == {0.0, 1.0, 2.0, 3.0, 4.0}


VARIABLES = {
    "angle": Variable("angle", (), "rad", "joint", "", (-2.0, 3.0)),
    "height": Variable("height", (2,), "m", "world", "", (0.5, 1.5)),
    "force": Variable("force", (), "N", "world", ""),
    "distance": Variable("distance", (), "m", "world", ""),
    "earlier_distance": Variable("earlier_distance", (), "m", "world", ""),
    "direction": Variable("direction", (3,), "1", "world", ""),
    "reading": Variable("reading", (), "?", "?", ""),
    "deeds": Variable("deeds", (), "1", "-", ""),
}


RECORDED = {
    "angle": torch.full((8,), 0.25),
    "previous_angle": torch.full((8,), 0.5),
    "height": torch.full((8, 2), 0.75),
    "force": torch.linspace(-700.0, 700.0, 8),
    "distance": torch.linspace(0.0, 4.0, 8),
    "earlier_distance": torch.linspace(0.1, 4.1, 8),
    "reading": torch.tensor([3.0, -1.0, 4.0, -1.0, 5.0, -9.0, 2.0, 6.0]),
    "deeds": torch.zeros(8),
    "direction": torch.nn.functional.normalize(torch.arange(24.0).reshape(8, 3) - 11.5, dim=-1),
}


@pytest.fixture
def extremes() -> ExtremeStates:
    return extreme_states(RECORDED, tuple(RECORDED), VARIABLES)


def rows_of(extremes: ExtremeStates, label: str) -> list[int]:
    found = [index for index, each in enumerate(extremes.labels) if each == label]
    assert found, sorted(set(extremes.labels))
    return found


def test_a_variable_and_its_previous_value_move_together_and_others_stay(
    extremes: ExtremeStates,
) -> None:
    rows = rows_of(extremes, "'angle' and 'previous_angle' are -2 rad")
    assert bool((extremes.values["angle"][rows] == -2.0).all())
    # 0.25 rad more, as it was recorded
    assert bool((extremes.values["previous_angle"][rows] == -1.75).all())
    assert bool((extremes.values["height"][rows] == 0.75).all())
    # at the end of the range the difference goes
    rows = rows_of(extremes, "'angle' and 'previous_angle' are 3 rad")
    assert bool((extremes.values["previous_angle"][rows] == 3.0).all())


@pytest.mark.parametrize("order", [("place", "place_window"), ("place_window", "place")])
def test_a_variable_and_its_window_move_together(order: tuple[str, str]) -> None:
    place = Variable("place", (2,), "m", "world", "", (-9.0, 9.0), window=3)
    steps = torch.arange(8.0).reshape(8, 1, 1)
    # a point that goes 0.5 m a step along x: the window ends with where it is
    way = torch.tensor([[-1.0, 0.0], [-0.5, 0.0], [0.0, 0.0]]) + 0.01 * steps
    recorded = {"place": way[:, -1], "place_window": way}
    variables = {"place": place, "place_window": window_of(place)}
    extremes = extreme_states(recorded, order, variables)
    rows = rows_of(extremes, f"{order[0]!r} and {order[1]!r} are -9 m")
    assert extremes.values["place"][rows].tolist() == [[-9.0, -9.0]] * len(rows)
    # the way to there does not go on beyond the range
    assert extremes.values["place_window"][rows].tolist() == [[[-9.0, -9.0]] * 3] * len(rows)
    rows = rows_of(extremes, f"{order[0]!r} and {order[1]!r} are 9 m")
    assert extremes.values["place_window"][rows].tolist() == [
        [[8.0, 9.0], [8.5, 9.0], [9.0, 9.0]]
    ] * len(rows)


def test_limits_are_the_range_or_follow_from_unit_and_recording(extremes: ExtremeStates) -> None:
    # zero is outside of the height's range: the nearest value in it stands for it
    assert sorted(set(extremes.values["height"].flatten().tolist())) == [0.5, 0.75, 1.5]
    # 5 × 700 N is more than the 1 kN of its unit; only broken physics comes to 10 kN
    plausible = {
        label for label, beyond in zip(extremes.labels, extremes.beyond, strict=True) if not beyond
    }
    assert {"'force' is -3500 N", "'force' is 3500 N"} <= plausible
    assert "'force' is 10000 N" in set(extremes.labels) - plausible
    # a unit that nobody knows is not said
    assert "'reading' is 0" in plausible
    assert not any("?" in label for label in extremes.labels)
    # a distance that was never negative is so beyond all physics alone; so is a count of what
    # random actions never do
    assert not any("'distance'" in label and " -" in label for label in plausible)
    assert "'deeds' is 5" in plausible
    assert not any("'deeds'" in label and " -" in label for label in plausible)


def test_a_direction_keeps_its_length(extremes: ExtremeStates) -> None:
    assert extremes.values["direction"].norm(dim=-1).tolist() == pytest.approx(
        [1.0] * len(extremes.labels), abs=1e-5
    )
    rows = rows_of(extremes, "'direction' is against axis 2")
    assert extremes.values["direction"][rows].tolist() == [[0.0, 0.0, -1.0]] * len(rows)


@pytest.fixture
def drawn() -> ExtremeStates:
    touching = Variable("touching", (), "1", "-", "", (0.0, 1.0))
    gauge = Variable("gauge", (), "?", "?", "", (-2.0, 2.0))
    recorded = {**RECORDED, "touching": torch.zeros(8), "gauge": torch.linspace(1.1, 0.3, 8)}
    variables = {**VARIABLES, "touching": touching, "gauge": gauge}
    return drawn_states(recorded, tuple(recorded), variables)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        # a declared range, and a tenth of it beyond where physics can leave it
        ("angle", -2.5, 3.5),
        ("height", 0.4, 1.6),
        # a space's bounds
        ("gauge", -2.0, 2.0),
        # without one, as far as its unit and the recorded values go
        ("force", -3500.0, 3500.0),
        ("distance", 0.0, 20.0),
        ("reading", -45.0, 45.0),
    ],
)
def test_drawn_values_fill_all_that_can_be_reached(
    drawn: ExtremeStates, name: str, low: float, high: float
) -> None:
    rows = [row for row, label in enumerate(drawn.labels) if label.startswith(f"{name!r} is ")]
    values = drawn.values[name][rows]
    assert low <= values.min()
    assert values.max() <= high
    # no band of a seventh is left out, in any entry
    ends = torch.tensor([low, high]).view(2, *[1] * (values.dim() - 1)).expand(2, *values.shape[1:])
    assert torch.cat([ends, values]).sort(dim=0).values.diff(dim=0).max() < 0.15 * (high - low)
    assert not any(drawn.beyond)


def test_drawn_values_keep_to_what_kind_they_are(drawn: ExtremeStates) -> None:
    assert drawn.values["direction"].norm(dim=-1).tolist() == pytest.approx(
        [1.0] * len(drawn.labels), abs=1e-5
    )
    # a count is whole, and so many more than in the recording
    assert set(drawn.values["deeds"].tolist()) >= {0.0, 1.0, 2.0, 3.0, 4.0, 5.0}
    assert bool((drawn.values["deeds"].frac() == 0.0).all())
    # two moments of one quantity stay together, as far as five times the recorded 0.1 m allows
    apart = drawn.values["earlier_distance"] - drawn.values["distance"]
    assert apart.min() > -1e-5
    assert 0.4 < apart.max() < 0.5 + 1e-5


def test_a_flag_is_drawn_with_every_other_quantity(drawn: ExtremeStates) -> None:
    rows = [row for row, label in enumerate(drawn.labels) if label.startswith("'angle' is ")]
    assert set(drawn.values["touching"][rows].tolist()) == {0.0, 1.0}
    assert any("outside its range), and 'touching' is 1" in drawn.labels[row] for row in rows)
