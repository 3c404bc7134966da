"""Rewards, previous values, curves and requests, against numbers worked out by hand."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
import torch
from eureka_adapter import Fault, Job, RewardFault, Step, Training, Variable
from job_folders import JobFolder, MakeFolder

FITNESS = "def compute_fitness(x, previous_x):\n    return x - previous_x\n"
SIZES = {"num_observations": 1, "num_actions": 1, "control_dt": 0.1, "max_episode_length": 9}
REWARD = """
def compute_reward(x, previous_x, actions, terminated, dt, scale=2.0):
    gain = scale * (x - previous_x) / dt
    return gain + actions[:, 0] - terminated, {"gain": gain, "one": 1.0}
"""


def training(folder: JobFolder, reward: str, env_steps: int = 4, **fields: Any) -> Training:
    folder.train(env_steps, reward, **fields)
    job = Job.open([str(folder.path)])
    described = {"ends": {"fell": "", "won": ""}, "success_ends": ["won"]}
    job.described([Variable("x")], **SIZES, **described, constants=[{"name": "dt", "value": 0.5}])
    return job.trainings[0]


def step(x: list[float], actions: list[float], **more: Any) -> Step:
    nothing = [False] * len(x)
    given = {"terminated": nothing, "truncated": nothing, **more}
    return Step({"x": np.array(x)}, np.array(actions)[:, None], **given)


def test_totals_and_the_curve_are_as_by_hand(folder: MakeFolder) -> None:
    made = training(place := folder(FITNESS), REWARD, env_steps=800)
    made.curve_every = 4
    made.begin({"x": torch.tensor([0.0, 1.0])})
    # gain = 2 (x - previous) / 0.5; the start states are the first previous values
    assert made.step(step([1.0, 1.0], [0.5, 0.0])).tolist() == [4.5, 0.0]
    masks = {"fell": torch.tensor([True, False]), "won": torch.tensor([False, True])}
    ended = step([2.0, 0.0], [0.0, 0.0], terminated=[True, True], causes=masks)
    # only the first row failed: `terminated` is 0 at a success
    assert made.step(ended._replace(start={"x": [7.0, 8.0]})).tolist() == [4.0 - 1.0, -4.0]
    (curve,) = place.events()
    gains = torch.tensor([4.0, 0.0, 4.0, -4.0])
    assert curve["terms"] == {
        "gain": {
            "mean": 1.0,
            "magnitude": 3.0,
            "deviation": pytest.approx(float(gains.std(correction=0)), rel=1e-6),
        },
        "one": {"mean": 1.0, "magnitude": 1.0, "deviation": 0.0},
    }
    assert curve["reward"] == (4.5 + 0.0 + 3.0 - 4.0) / 4
    # sums of the steps' changes: 2 - 0 and 0 - 1
    assert (curve["fitness"], curve["episode_length"], curve["episodes"]) == (0.5, 2.0, 2)
    assert (curve["ends"], curve["env_steps"]) == ({"fell": 1, "won": 1}, 4)
    # the next step comes from the new start
    assert made.step(step([7.5, 8.0], [0.0, 0.0])).tolist() == [2.0, 0.0]


def test_without_a_start_the_first_step_of_an_episode_is_its_own_previous(
    folder: MakeFolder,
) -> None:
    made = training(folder(FITNESS), REWARD)
    made.begin()
    assert made.step(step([3.0, 3.0], [0.0, 0.0])).tolist() == [0.0, 0.0]
    late = step([4.0, 4.0], [0.0, 0.0], truncated=[False, True])
    assert made.step(late).tolist() == [4.0, 4.0]
    assert made.step(step([5.0, 9.0], [0.0, 0.0])).tolist() == [4.0, 0.0]


def test_memory_that_a_simulator_writes_again_is_no_previous_value(folder: MakeFolder) -> None:
    made = training(folder(FITNESS), REWARD)
    x = torch.zeros(1)
    made.begin({"x": x})
    for expected in (4.0, 4.0, 4.0):
        x += 1.0
        reward = made.step(Step({"x": x}, torch.zeros(1, 1), torch.zeros(1), torch.zeros(1)))
        assert reward.tolist() == [expected]


@pytest.mark.parametrize(
    ("reduction", "expected"), [("sum", 6.0), ("mean", 2.0), ("last", 1.0), ("max", 4.0)]
)
def test_an_episodes_fitness_is_reduced(
    folder: MakeFolder, reduction: str, expected: float
) -> None:
    made = training(place := folder("def compute_fitness(x):\n    return x\n"), REWARD, 600)
    made.job.fields["fitness"]["reduction"] = reduction
    made.curve_every = 3
    made.begin()
    for x in (1.0, 4.0):
        made.step(step([x], [0.0]))
    made.step(step([1.0], [0.0], truncated=[True]))
    assert place.events("curve")[-1]["fitness"] == expected
    made.step(step([-5.0], [0.0], truncated=[True]))
    made.end(lambda path: path.write_text(""))
    assert place.events("curve")[-1]["fitness"] == -5.0  # nothing is left of the episode before


@pytest.mark.parametrize(
    ("reward", "line", "said"),
    [
        ("def compute_reward(x):\n    y = x\n    return y.nope, {}\n", 3, "AttributeError"),
        ("def compute_reward(x):\n    return x / 0 * 0, {'a': x}\n", 2, "'total'] are not finite"),
        ("def compute_reward(x):\n    return x.sum(), {'a': x}\n", 2, "the total is ()"),
        ("def compute_reward(x):\n    return x, {'a': x[:, None]}\n", 2, "'a' is (2, 1)"),
        ("def compute_reward(x):\n    return x\n", 2, "returned Tensor, expected (total, terms)"),
        ("def compute_reward(z):\n    return z, {}\n", 2, "'z' of compute_reward is neither"),
        ("def compute_reward(x)\n    return x\n", 1, "SyntaxError"),
        ("import os\ndef compute_reward(x):\n    return x, {}\n", 1, "'os' may not be imported"),
        ("def compute_reward(x):\n    return open('/x'), {}\n", 2, "name 'open' is not defined"),
        ("def reward(x):\n    return x, {}\n", None, "no function 'compute_reward'"),
        ("import torch\nraise SystemExit\n", 2, "SystemExit"),
    ],
)
def test_a_bad_reward_is_a_fault_with_its_line(
    folder: MakeFolder, reward: str, line: int | None, said: str
) -> None:
    made = training(place := folder(FITNESS), reward)
    with pytest.raises(RewardFault) as caught:  # noqa: PT012  (either may refuse it)
        made.begin()
        made.step(step([1.0, 2.0], [0.0, 0.0]))
    made.job.report(caught.value)
    (event,) = place.events()
    assert said in event["message"]
    assert (event["whose"], event["training"], event.get("line")) == ("reward", "a", line)


def test_a_simulators_nan_is_no_fault_of_the_reward(folder: MakeFolder) -> None:
    made = training(folder(FITNESS), "def compute_reward(x):\n    return x, {'x': x}\n")
    made.begin()
    with pytest.raises(Fault, match=r"the variables \['x'\] are not finite") as caught:
        made.step(step([float("nan"), 1.0], [0.0, 0.0]))
    assert caught.value.whose == "environment"


def test_terms_keep_their_names(folder: MakeFolder) -> None:
    source = "def compute_reward(x):\n    return x, {'b' if x[0] > 1 else 'a': x}\n"
    made = training(folder(FITNESS), source)
    made.begin()
    made.step(step([1.0], [0.0]))
    with pytest.raises(RewardFault, match=r"the terms are \['b'\], expected \['a'\]"):
        made.step(step([2.0], [0.0]))


def test_values_of_another_shape_and_unknown_causes_are_the_environments(
    folder: MakeFolder,
) -> None:
    made = training(folder(FITNESS), REWARD)
    made.begin()
    with pytest.raises(Fault, match=r"'x' has shape \(1, 1\), expected \(1,\)"):
        made.step(step([[1.0]], [0.0], terminated=[False], truncated=[False]))  # type: ignore[list-item]
    with pytest.raises(Fault, match=r"`causes` has 'lost', expected one of \['fell', 'won'"):
        made.step(step([1.0], [0.0], causes={"lost": [True]}))


def test_helpers_exports_and_decorators_of_a_reward(folder: MakeFolder) -> None:
    source = """
import functools

import torch
from reward_helpers import twice


@torch.jit.script
def compute_reward(x: Tensor, dt: float, unknown: float) -> Tuple[Tensor, Dict[str, Tensor]]:
    return twice(x) + unknown, {"x": torch.full((len(x),), dt)}


compute_reward = functools.partial(compute_reward, unknown=3.0)
"""
    made = training(place := folder(FITNESS), source)
    place.write("reward_helpers.py", "def twice(x):\n    return 2 * x\n")
    made.begin()
    assert made.step(step([1.0], [0.0])).tolist() == [5.0]


def test_a_reward_cannot_change_what_the_simulator_holds(folder: MakeFolder) -> None:
    made = training(folder(FITNESS), "def compute_reward(x):\n    x += 1\n    return x, {'x': x}\n")
    made.begin()
    x = torch.zeros(1)
    made.step(Step({"x": x}, torch.zeros(1, 1), torch.zeros(1), torch.zeros(1)))
    assert x.tolist() == [0.0]


def test_rungs_saves_and_cancels_are_answered(
    folder: MakeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eureka_adapter.training.LOOK_EVERY_S", 0.0)
    made = training(place := folder(FITNESS), REWARD, env_steps=6, rungs=[2, 5, 6])
    made.begin()
    request = place.path / "requests" / "save"
    for number in range(6):
        made.step(step([0.0], [0.0]))
        if number in (1, 3):
            request.touch()
            # the program's second request is later by more than the clock's grain
            os.utime(request, ns=(number, number))
        made.keep(lambda path: path.write_text("policy"), lambda path: path.write_text("state"))
    assert made.over
    made.end(lambda path: path.write_text("last"))
    assert [each["env_steps"] for each in place.events("saved")] == [2, 4]
    assert [each["env_steps"] for each in place.events("rung")] == [2, 5, 6]
    (trained,) = place.events("trained")
    assert [each["env_steps"] for each in trained["policies"]] == [2, 5, 6, 6]
    assert (place.path / trained["policies"][-1]["policy"]).read_text() == "last"
    assert not list(place.path.glob("part-*"))

    cancelled = training(place, REWARD)
    cancelled.begin()
    assert not cancelled.over
    (place.path / "requests" / "cancel-a").touch()
    assert cancelled.over
    cancelled.end(lambda path: path.write_text("policy"))
    assert not (place.path / "events.jsonl").exists()


def test_a_period_asks_for_states_too(folder: MakeFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    made = training(folder(FITNESS), REWARD)
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    made.begin()
    assert not made.wants_save()
    now = 700.0
    assert made.wants_save()
