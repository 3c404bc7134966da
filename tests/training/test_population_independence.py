"""A training's result depends on its reward, seed and settings alone: bit for bit, whoever its
neighbours are."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from training_environments import CENTRE_REWARD, SLOW_REWARD, PointMass, assert_equal, points, run

from eureka_agent.settings import TrainingSettings
from eureka_agent.task import Task
from eureka_agent.training.reward import RewardFunction
from eureka_agent.training.trainer import (
    MemberFailed,
    Trainer,
    TrainerEvent,
)

NAN_REWARD = "def compute_reward(position):\n    return torch.log(position[:, 0]), {}\n"
RAISING_REWARD = "def compute_reward(position):\n    return position[:, 5], {}\n"
LATE_NAN_REWARD = (
    "CALLS = []\ndef compute_reward(speed):\n    CALLS.append(1)\n    return speed + (float('nan')"
    " if len(CALLS) == 3 else 0.0), {}\n"
)

MakeTrainer = Callable[..., Trainer]
LoadReward = Callable[..., RewardFunction]


@pytest.fixture
def alone(make_trainer: MakeTrainer, point_reward: LoadReward) -> list[TrainerEvent]:
    """The reference: seed 7 by itself."""
    trainer = make_trainer(1)
    trainer.submit("reference", point_reward(), 7)
    return run(trainer)["reference"]


def test_alone_and_among_fifteen_others(
    alone: list[TrainerEvent], make_trainer: MakeTrainer, point_reward: LoadReward
) -> None:
    trainer = make_trainer(16)
    for slot in range(16):
        name, seed = ("reference", 7) if slot == 11 else (f"other-{slot}", slot)
        trainer.submit(name, point_reward(CENTRE_REWARD if slot % 2 else SLOW_REWARD), seed)
    events = run(trainer)
    assert_equal(events["reference"], alone)
    # and the others did train something else
    assert points(events["other-9"]) != points(alone)


@pytest.mark.parametrize("fault", [NAN_REWARD, RAISING_REWARD, LATE_NAN_REWARD])
@pytest.mark.parametrize("place", ["before", "after"])
def test_a_failing_neighbour_changes_nothing(
    alone: list[TrainerEvent],
    make_trainer: MakeTrainer,
    point_reward: LoadReward,
    fault: str,
    place: str,
) -> None:
    trainer = make_trainer(3)
    jobs = [("faulty", fault, 1), ("reference", CENTRE_REWARD, 7)]
    for name, source, seed in jobs if place == "before" else reversed(jobs):
        trainer.submit(name, point_reward(source).remembering(), seed)
    events = run(trainer)
    assert isinstance(events["faulty"][-1], MemberFailed)
    assert_equal(events["reference"], alone)


def test_a_refilled_slot_is_a_fresh_run(
    alone: list[TrainerEvent], make_trainer: MakeTrainer, point_reward: LoadReward
) -> None:
    trainer = make_trainer(2)
    trainer.submit("first", point_reward(SLOW_REWARD), 1)
    trainer.submit("fails", point_reward(LATE_NAN_REWARD).remembering(), 2)
    trainer.submit("reference", point_reward(), 7)
    events = run(trainer)
    failed = events["fails"][-1]
    assert isinstance(failed, MemberFailed)
    # in the third iteration of 8 steps × 16 environments, with the reference waiting for its slot
    assert failed.env_steps == 3 * 128
    assert_equal(events["reference"], alone)


def test_a_cancelled_neighbour_changes_nothing(
    alone: list[TrainerEvent], make_trainer: MakeTrainer, point_reward: LoadReward
) -> None:
    trainer = make_trainer(2)
    trainer.submit("cancelled", point_reward(SLOW_REWARD), 1)
    trainer.submit("reference", point_reward(), 7)
    trainer.submit("dropped", point_reward(), 3)
    events = trainer.iterate()
    trainer.cancel("cancelled")
    trainer.cancel("dropped")
    trainer.cancel("never heard of")
    rest = run(trainer)
    assert set(rest) == {"reference"}
    assert_equal([event for event in events if event.job == "reference"] + rest["reference"], alone)


def by_angle(position: Tensor) -> Tensor:
    """A fitness that torch rounds in one way in whole SIMD registers, in another in what is left
    over."""
    x, y = position.T.contiguous()
    return torch.atan2(y, x)


class Spiral(PointMass):
    """A point mass that is seen in polar coordinates, by functions of which torch rounds the
    left-over rows in another way."""

    def compute_observations(self) -> None:
        super().compute_observations()
        x, y = self.position.T.contiguous()
        self.obs_buf[:, 0] = torch.atan2(y, x)
        self.obs_buf[:, 1] = torch.sigmoid(x)


def reference_curve(
    trainer: Trainer, slot: int, slots: int, point_reward: LoadReward
) -> list[object]:
    """The curve of a training with seed 7 in this slot, the others taken by trainings with other
    seeds."""
    for other in range(slots):
        name, seed = ("reference", 7) if other == slot else (f"other-{other}", other)
        trainer.submit(name, point_reward(), seed)
    return points(run(trainer)["reference"])


# an iteration of 7 × 8 = 56 steps: no multiple of 32
@pytest.mark.parametrize("num_envs", [7, 16])
@pytest.mark.parametrize(("slot", "slots"), [(0, 4), (1, 2), (2, 5)])
def test_environment_and_fitness_are_rounded_alike_in_every_slot(
    small_settings: TrainingSettings,
    point_reward: LoadReward,
    num_envs: int,
    slot: int,
    slots: int,
) -> None:
    task = Task(sentence="turn", fitness=by_angle, fitness_doc="angle", fitness_reduction="mean")
    steps = 40 * num_envs * small_settings.horizon
    settings = small_settings.model_copy(
        update={"num_envs": num_envs, "env_steps": steps, "minibatches": 1}
    )
    alone = reference_curve(Trainer(Spiral, task, settings, 1), 0, 1, point_reward)
    among = reference_curve(Trainer(Spiral, task, settings, slots), slot, slots, point_reward)
    assert among == alone
