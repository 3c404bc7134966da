"""Trainings under distributions of parameters: each like alone, and resumed to the bit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from torch import Tensor
from training_environments import PointMass, policy_of, run, same, saved

from eureka_agent.parameters import ParameterError
from eureka_agent.records import ParameterRanges, ParameterStage
from eureka_agent.settings import TrainingSettings
from eureka_agent.simulation.row_parameters import ACTION_DELAY
from eureka_agent.task import Parameter, Task
from eureka_agent.training.reward import RewardFunction
from eureka_agent.training.trainer import Trainer

LoadReward = Callable[..., RewardFunction]

RANGES = {"drag": (0.05, 0.4), ACTION_DELAY: (0.0, 2.0)}
OTHERS = {"drag": (0.3, 0.3)}
STEPS = 128
"""Env steps of an iteration."""
CURRICULA = {
    # one that comes back to its first distribution, in the middle of an iteration
    "there and back": ((0, {}), (2 * STEPS - 60, OTHERS), (4 * STEPS, {})),
    "other ranges": ((0, RANGES), (3 * STEPS, OTHERS)),
}


class Dragged(PointMass):
    """The point mass with a drag that differs."""

    parameters = (
        Parameter("drag", "1", 0.1, 0.0, 0.5, "share of the velocity that is lost in a step"),
        Parameter(ACTION_DELAY, "control steps", 0.0, 0.0, 3.0, "late pushes"),
    )

    def pre_physics_step(self, actions: Tensor) -> None:
        kept = 1.0 - self.parameter_values["drag"].unsqueeze(1)
        self.velocity = kept * self.velocity + 0.3 * actions


@pytest.fixture
def make(point_task: Task, small_settings: TrainingSettings) -> Callable[[int], Trainer]:
    changed = small_settings.model_copy(update={"env_steps": 6 * 128})
    return lambda slots: Trainer(Dragged, point_task, changed, slots, reward_timeout=0.5)


def from_the_start(ranges: ParameterRanges) -> tuple[ParameterStage, ...]:
    return stages((0, ranges))


def stages(*known: tuple[int, ParameterRanges]) -> tuple[ParameterStage, ...]:
    return tuple(ParameterStage(env_steps=begin, parameters=ranges) for begin, ranges in known)


def test_a_training_is_the_same_alone_and_among_others(
    make: Callable[[int], Trainer], point_reward: LoadReward
) -> None:
    alone = {}
    for name, ranges in {"usual": {}, "random": RANGES, "fixed": OTHERS}.items():
        trainer = make(1)
        trainer.submit(name, point_reward(), 7, curriculum=from_the_start(ranges))
        alone[name] = policy_of(run(trainer)[name])
    assert not same(alone["usual"], alone["random"])
    assert not same(alone["usual"], alone["fixed"])
    together = make(2)  # the third takes the slot that one of the others leaves
    together.submit("random", point_reward(), 7, curriculum=from_the_start(RANGES))
    together.submit("fixed", point_reward(), 7, curriculum=from_the_start(OTHERS))
    together.submit("usual", point_reward(), 7)
    for name, events in run(together).items():
        assert same(policy_of(events), alone[name]), name


def test_a_wrong_distribution_is_not_queued(
    make: Callable[[int], Trainer], point_reward: LoadReward
) -> None:
    trainer = make(1)
    with pytest.raises(ParameterError, match=r"safe range is 0\.\.0\.5"):
        trainer.submit("job", point_reward(), 7, curriculum=from_the_start({"drag": (0.1, 0.6)}))
    assert not trainer.busy


def test_a_stage_holds_from_its_env_step_on(
    make: Callable[[int], Trainer], point_reward: LoadReward, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[int, ParameterRanges]] = []
    trainer = make(1)
    real = trainer._population.set_parameters

    def told(slot: int, ranges: ParameterRanges) -> None:
        given.append((trainer._members[slot].env_steps, ranges))
        real(slot, ranges)

    monkeypatch.setattr(trainer._population, "set_parameters", told)
    trainer.submit("job", point_reward(), 7, curriculum=stages(*CURRICULA["there and back"]))
    run(trainer)
    # 196 env steps are not a whole number of iterations: the second one begins after 128
    assert given == [(0, {}), (2 * STEPS, OTHERS), (4 * STEPS, {})]


@pytest.mark.parametrize("name", CURRICULA)
@pytest.mark.parametrize("iterations", [2, 3, 4])
def test_a_curriculum_goes_on_to_the_bit_beside_another_training(
    make: Callable[[int], Trainer],
    point_reward: LoadReward,
    tmp_path: Path,
    name: str,
    iterations: int,
) -> None:
    curriculum = stages(*CURRICULA[name])
    unbroken = make(1)
    unbroken.submit("job", point_reward(), 7, curriculum=curriculum)
    reference = policy_of(run(unbroken)["job"])
    first = make(1)
    first.submit("job", point_reward(), 7, curriculum=curriculum)
    for _ in range(iterations):
        first.iterate()
    second = make(2)
    second.submit("other", point_reward(), 3, curriculum=from_the_start(RANGES))
    second.submit(
        "job", point_reward(), 7, saved(first, "job", tmp_path / "snapshot"), curriculum=curriculum
    )
    assert same(policy_of(run(second)["job"]), reference)
