"""Observations that are designed: what their operations give, which are refused, and trainings and
evaluations on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from training_environments import CENTRE_REWARD, PointMass, assert_equal, policy_of, run, saved

from eureka_agent.errors import EnvironmentLoadError, RewardLoadError
from eureka_agent.rewards import MOST_OBSERVATIONS
from eureka_agent.settings import TrainingSettings
from eureka_agent.task import Task
from eureka_agent.training.evaluation import evaluate_policy
from eureka_agent.training.observation import (
    DesignedObservation,
    ObservationError,
    ObservationProgram,
    ProgramStep,
    read_observation,
)
from eureka_agent.training.observation_trace import traced
from eureka_agent.training.policy import OBSERVATION, load_policy, policy_bytes
from eureka_agent.training.reward import RewardFunction
from eureka_agent.training.trainer import MemberFailed, Trainer

SHAPES = {"position": (2,), "speed": (), "wheels": (3, 2)}
"""Variables of the functions below."""


class Told(PointMass):
    """A point mass that observes its position and speed."""

    num_observations = 3

    def compute_observations(self) -> None:
        self.obs_buf[:, :2] = self.position
        self.obs_buf[:, 2] = self.velocity.square().sum(dim=1).sqrt()


DESIGNED = """

def design_observation(position, speed):
    return torch.cat([position, speed.unsqueeze(-1)], dim=-1)
"""
NARROW = """

def design_observation(position):
    return position / 1.5
"""


def design(body: str) -> DesignedObservation:
    """The observation of a function of `SHAPES` with this last line."""
    namespace: dict[str, Any] = {"torch": torch}
    exec(f"def design(position, speed, wheels):\n    {body}", namespace)
    return DesignedObservation(traced(namespace["design"], SHAPES, {}), SHAPES)


def values(rows: int) -> dict[str, Tensor]:
    drawn = torch.Generator().manual_seed(rows)
    return {name: torch.randn(rows, *shape, generator=drawn) for name, shape in SHAPES.items()}


BODIES = {
    "parts of variables": "return torch.cat([position[:, 1:], wheels[:, 0], speed[:, None]], dim=1)",
    "a constant": "return position - torch.tensor([0.5, -2.0])",
    "a write into a clone": "new = position.clone(); new.mul_(2.0); return new + 1.0",
    "a new tensor filled by columns": (
        "new = torch.zeros(len(speed), 3); new[:, 0] = speed; new[:, 1:] = position; return new"
    ),
    "a one-hot of the largest": (
        "return (position.argmax(-1, keepdim=True) == torch.arange(2)).float()"
    ),
    "the row of the largest": (
        "at = wheels[:, :, 0].argmax(-1); return wheels[torch.arange(len(at)), at]"
    ),
    "a gather": "return wheels[:, :, 0].gather(1, wheels[:, :, 1].argmin(-1, keepdim=True))",
    "a product with a matrix": "return wheels.flatten(1) @ torch.ones(6, 4)",
    "a condition": "return torch.where(speed > 0.1, speed, -speed).reshape(-1, 1)",
    "numbers of another type": "return (position > 0.0).double()",
    "sorted": "return wheels.flatten(1).sort(-1, descending=True).values",
    "an infinite bound": "return position.clamp(min=float('-inf'), max=0.3)",
    "a loop": "\n    for _ in range(5):\n        position = position.sin()\n    return position",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("rows", [1, 2, 50])
def test_its_operations_give_what_its_code_gives(body: str, rows: int) -> None:
    namespace: dict[str, Any] = {"torch": torch}
    exec(f"def design(position, speed, wheels):\n    {body}", namespace)
    given = values(rows)
    before = {name: value.clone() for name, value in given.items()}
    found = read_observation(design(body).json())(given)
    assert found.dtype == torch.float32
    assert torch.equal(found, namespace["design"](**values(rows)).float())
    assert all(torch.equal(before[name], value) for name, value in given.items())


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("return position - position.mean(dim=0)", "other rows"),
        ("return position / len(position)", "other rows"),
        ("return position.flip(0)", "other rows"),
        ("return position + position[-1:]", "'slice' makes as much"),
        ("return position + torch.relu(position.amax() - 50.0)", "'amax' makes as much"),
        ("return position * (position > 50.0).any()", "'any' makes as much"),
        (
            "new = torch.zeros(len(speed), 2); new[:, 0] = speed;"
            " return position + torch.relu(new.amax() - 5000.0)",
            "'amax' makes as much",
        ),
        ("return 1e-5 * (position - position.mean(dim=0))", "'mean' makes as much"),
        ("return position + torch.relu(position - 50.0).cumsum(0)", "other rows"),
        ("new = position.clone(); new[0] = 0.0; return new", "other rows"),
        ("position.mul_(2.0); return position", "writes into its argument 'position'"),
        ("position[:, 0] = 0.0; return position", "writes into its argument 'position'"),
        ("return torch.nn.functional.one_hot(speed.long(), 3).float()", "torch.arange(n)"),
        ("return position if speed.sum() > 0 else -position", "torch.where"),
        ("return position * float(speed[0])", "torch.where"),
        ("return torch.rand_like(position)", "'rand_like' cannot"),
        ("return position[position > 0.0].view(-1, 1)", "torch.where"),
        ("return torch.zeros(len(speed), 0)", "(batch, 0)"),
        ("return position.repeat(1, 5000)", "(batch, 10000), expected"),
        ("return speed", "(batch), expected"),
        ("return [position]", "returned list"),
        ("return position.repeat(1, 5000).sum(-1, keepdim=True)", "4096 numbers a row"),
        ("return position + torch.tensor([0.0] * 3000)[:2]", "2048 numbers"),
        ("\n    for _ in range(500): speed = speed + 1.0\n    return speed[:, None]", "400"),
    ],
)
def test_what_is_no_observation_is_refused_with_the_reason(body: str, says: str) -> None:
    with pytest.raises(ObservationError) as caught:
        design(body)
    assert says in str(caught.value)


def step(operation: str, *arguments: Any, **named: Any) -> ProgramStep:
    return ProgramStep(operation=operation, arguments=arguments, named=named)


@pytest.mark.parametrize(
    "steps",
    [
        [step("set_.source_Tensor", {"t": 0}, {"t": 1})],
        [step("resize_.default", {"t": 0}, [10**9])],
        [step("from_file.default", "/etc/hostname", False, 1)],
        [step("abs.no_such_overload", {"t": 0})],
        [step("__class__.default", {"t": 0})],
        [step("full.default", [{"b": 1}, 10**9], 0.0)],
        [step("expand.default", {"t": 0}, [10**6, {"b": 1}, 2])],
        [step("abs.default", {"t": 7})],
        [step("abs.default", {"t": -1})],
        [step("sum.default", {"t": 0}, dtype={"d": "nn"})],
        [step("select.int", {"t": 0}, 1, 9)],
        [step("view.default", {"t": 0}, [{"b": -1}, 2])],
    ],
    ids=lambda steps: steps[0].operation,
)
def test_operations_that_were_forged_are_refused(steps: list[ProgramStep]) -> None:
    """The process that sends them has run generated code."""
    program = ObservationProgram(
        inputs=("position", "speed"), steps=tuple(steps), output=2, width=2
    )
    with pytest.raises(ObservationError):
        DesignedObservation(program, SHAPES)


@pytest.mark.parametrize(("output", "width"), [(0, 3), (9, 2), (1, 1)])
def test_an_output_that_is_not_there_or_of_another_size_is_refused(output: int, width: int) -> None:
    program = ObservationProgram(inputs=("position", "speed"), output=output, width=width)
    with pytest.raises(ObservationError):
        DesignedObservation(program, SHAPES)


def test_a_variable_that_is_private_or_unknown_is_refused() -> None:
    program = ObservationProgram(inputs=("secret",), output=0, width=2)
    with pytest.raises(ObservationError, match="no public variable"):
        DesignedObservation(program, SHAPES)
    for name in ("secret", "previous_position"):
        source = f"{CENTRE_REWARD}\ndef design_observation({name}):\n    return {name}\n"
        with pytest.raises(RewardLoadError):
            RewardFunction.from_source(source, PointMass.all_variables())


def test_an_index_out_of_bounds_takes_the_last_one() -> None:
    """On a GPU it would end the process of all trainings."""
    found = design("return position.gather(1, (speed[:, None] * 1e6).long().abs())")
    at = {
        "position": torch.tensor([[1.0, 2.0]]),
        "speed": torch.ones(1),
        "wheels": torch.ones(1, 3, 2),
    }
    assert found(at).tolist() == [[2.0]]


def trainer(cls: type[PointMass], task: Task, settings: TrainingSettings, slots: int) -> Trainer:
    return Trainer(cls, task, settings, slots, designed=MOST_OBSERVATIONS)


def loaded(source: str) -> RewardFunction:
    return RewardFunction.from_source(source, PointMass.all_variables())


def test_it_trains_as_the_same_observation_of_the_environment(
    point_task: Task, small_settings: TrainingSettings
) -> None:
    own = trainer(Told, point_task, small_settings, 1)
    own.submit("job", loaded(CENTRE_REWARD), 3)
    alone = run(own)["job"]
    assert policy_of(alone)["policy.0.weight"].shape == (3, 16)
    several = trainer(PointMass, point_task, small_settings, 3)
    several.submit("narrow", loaded(CENTRE_REWARD + NARROW), 3)
    several.submit("job", loaded(CENTRE_REWARD + DESIGNED), 3)
    several.submit("own", loaded(CENTRE_REWARD), 3)
    found = run(several)
    assert_equal(found["job"], alone)
    assert policy_of(found["narrow"])["policy.0.weight"].shape == (2, 16)
    assert policy_of(found["own"])["policy.0.weight"].shape == (4, 16)


def test_it_goes_on_from_a_saved_state_bit_for_bit(
    point_task: Task, small_settings: TrainingSettings, tmp_path: Path
) -> None:
    whole, first, second = (trainer(PointMass, point_task, small_settings, 2) for _ in range(3))
    whole.submit("job", loaded(CENTRE_REWARD + DESIGNED), 3)
    unbroken = run(whole)["job"]
    first.submit("job", loaded(CENTRE_REWARD + DESIGNED), 3)
    first.iterate()
    second.submit("other", loaded(CENTRE_REWARD), 0)
    second.submit(
        "job", loaded(CENTRE_REWARD + DESIGNED), 3, saved(first, "job", tmp_path / "state")
    )
    found = run(second)["job"]
    assert_equal(found, unbroken[1:])


def test_one_that_breaks_late_ends_its_training_alone(
    point_task: Task, small_settings: TrainingSettings
) -> None:
    """NaN as soon as the point is 0.9 m off the middle: nobody blames the environment."""
    broken = "\n\ndef design_observation(position):\n    return (0.9 - position).sqrt()\n"
    several = trainer(PointMass, point_task, small_settings, 2)
    several.submit("broken", loaded(CENTRE_REWARD + broken), 3)
    several.submit("job", loaded(CENTRE_REWARD + DESIGNED), 3)
    found = run(several)
    alone = trainer(PointMass, point_task, small_settings, 1)
    alone.submit("job", loaded(CENTRE_REWARD + DESIGNED), 3)
    failed = found["broken"][-1]
    assert isinstance(failed, MemberFailed)
    assert failed.code == "not-a-number"
    assert "designed observation" in failed.reason
    assert_equal(found["job"], run(alone)["job"])


def test_its_policy_acts_in_evaluations_as_on_the_environment_s_own(
    point_task: Task, small_settings: TrainingSettings, tmp_path: Path
) -> None:
    several = trainer(PointMass, point_task, small_settings, 1)
    reward = loaded(CENTRE_REWARD + DESIGNED)
    several.submit("job", reward, 3)
    tensors = policy_of(run(several)["job"])
    assert reward.observation is not None
    told, blind = tmp_path / "told.safetensors", tmp_path / "blind.safetensors"
    metadata = several.policy_metadata
    told.write_bytes(policy_bytes(tensors, metadata | {OBSERVATION: reward.observation.json()}))
    blind.write_bytes(policy_bytes(tensors, metadata))
    found, _ = evaluate_policy(PointMass(8), point_task, load_policy(told), 8, False)
    expected, _ = evaluate_policy(Told(8), point_task, load_policy(blind), 8, False)
    assert found == expected
    with pytest.raises(EnvironmentLoadError, match="takes 3 observations"):
        evaluate_policy(PointMass(8), point_task, load_policy(blind), 8, False)
