"""Fitness of episodes by hand, and a written fitness in place of the task's own."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from training_environments import PointMass, run

from eureka_agent.designer.interface import given_reward
from eureka_agent.records import WrittenFitness
from eureka_agent.rewards import baseline
from eureka_agent.settings import TrainingSettings
from eureka_agent.simulation.loading import LoadedEnvironment, describe, load_environment
from eureka_agent.task import FitnessReduction, Task
from eureka_agent.training.fitness import (
    EpisodeTracker,
    FitnessFunction,
    WrittenFitnessError,
    WrittenFitnessFunction,
    with_written_fitness,
)
from eureka_agent.training.reward import RewardFunction
from eureka_agent.training.trainer import MemberFailed, MemberFinished, Trainer

VALUES = [1.0, 2.0, -3.0, -4.0, -6.0, -5.0]
ENDED = [True, False, False, True, False, True]
# after the first, shortened episode [1]: the full ones are [2, -3, -4] and [-6, -5]


@pytest.mark.parametrize(
    ("reduction", "expected"),
    [
        ("sum", (2 - 3 - 4) + (-6 - 5)),
        ("mean", (2 - 3 - 4) / 3 + (-6 - 5) / 2),
        ("last", -4 - 5),
        ("max", 2 - 5),
    ],
)
@pytest.mark.parametrize("split", [3, 6])
def test_reductions_over_full_episodes_across_iterations(
    reduction: FitnessReduction, expected: float, split: int
) -> None:
    tracker = EpisodeTracker(2, 1, reduction, "cpu")
    tracker.reset(0)
    fitness = torch.tensor(VALUES).view(1, 6, 1)
    ended = torch.tensor(ENDED).view(1, 6, 1)
    reports = [
        tracker.update(fitness[:, part], ended[:, part])
        for part in (slice(0, split), slice(split, 6))
        if part.start < 6
    ]
    assert sum(report.fitness_sum.item() for report in reports) == pytest.approx(expected)
    assert sum(report.count.item() for report in reports) == 2
    assert sum(report.length_sum.item() for report in reports) == 3 + 2
    counted = torch.cat([report.counted for report in reports], dim=1).flatten().tolist()
    assert counted == [False, False, False, True, False, True]


VARIABLES = PointMass.all_variables()
PROGRESS = (
    "def compute_reward(speed, previous_speed):\n"
    "    faster = speed - previous_speed\n"
    "    return 2.0 * faster + 1.0, {'faster': 2.0 * faster, 'alive': 1.0}\n"
)
# NaN and errors where a member is beyond a line that only one of them comes to
RAISES_FAR_OUT = (
    "def compute_reward(position):\n"
    "    near = position[:, 0].abs()\n"
    "    rows = near[near < 90.0]\n"
    "    return rows, {'near': rows}\n"
)
FITNESS = WrittenFitness(
    sentence="be quick",
    source=(
        "def compute_reward(cart_position):\n    away = cart_position.abs()\n    return away,"
        " {'away': away}\n"
    ),
    doc="metres from the middle",
    unit="m",
    reduction="max",
    success_fitness=1.0,
    author="openai/tiny",
)


def task_of(source: str) -> Task:
    return Task(
        sentence="be quick",
        fitness=WrittenFitnessFunction(given_reward(source), VARIABLES),
        fitness_doc="how quick it is",
    )


def test_it_is_called_like_a_fitness_of_a_task_previous_values_included() -> None:
    function = FitnessFunction(task_of(PROGRESS), VARIABLES)
    assert function.arguments == ("speed", "previous_speed")
    values = {
        "speed": torch.tensor([3.0, 1.0]),
        "previous_speed": torch.tensor([1.0, 1.5]),
        "other": torch.zeros(2),
    }
    # 2 · (3 − 1) + 1 = 5 and 2 · (1 − 1.5) + 1 = 0
    with torch.inference_mode():
        assert function(values).tolist() == [5.0, 0.0]


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ("def compute_reward(speed):\n    return speed[:1], {}\n", "shape (1,), expected (3,)"),
        ("def compute_reward(speed):\n    return speed, 4\n", "line 2: the second value returned is int"),
        ("def compute_reward(speed):\n    return speed / speed.undefined, {}\n", "line 2: AttributeError"),
    ],
)  # fmt: skip
def test_what_the_contract_forbids_is_an_error_of_the_fitness(source: str, part: str) -> None:
    function = WrittenFitnessFunction(given_reward(source), VARIABLES)
    with pytest.raises(WrittenFitnessError) as caught:
        function(speed=torch.ones(3))
    assert caught.value.message.startswith("the written fitness fails: ")
    assert part in caught.value.message


# ── in the trainer ────────────────────────────────────────────────────────────────────────────────


def trainer_of(source: str, num_envs: int) -> Trainer:
    settings = TrainingSettings(
        env_steps=8 * num_envs,
        num_envs=num_envs,
        horizon=8,
        hidden_sizes=(8,),
        epochs=1,
        minibatches=1,
        checkpoints=1,
    )
    return Trainer(lambda rows: PointMass(rows), task_of(source), settings, 2)


@pytest.mark.parametrize("num_envs", [16, 3])
def test_it_fails_the_member_on_whose_states_it_raises_and_no_other(
    num_envs: int, point_reward: Callable[..., RewardFunction], monkeypatch: pytest.MonkeyPatch
) -> None:
    # the second member's environments are far out from the beginning
    observe = PointMass.pre_physics_step

    def far_out(self: PointMass, actions: torch.Tensor) -> None:
        observe(self, actions)
        self.position[num_envs:] = 100.0

    monkeypatch.setattr(PointMass, "pre_physics_step", far_out)
    trainer = trainer_of(RAISES_FAR_OUT, num_envs)
    for job in ("near", "far"):
        trainer.submit(job, point_reward(), 1)
    events = run(trainer)
    (failed,) = events["far"]
    assert isinstance(failed, MemberFailed)
    assert failed.code == "fitness"
    assert "the total has shape (0,)" in failed.reason
    assert isinstance(events["near"][-1], MemberFinished)


# ── in an environment ─────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def cartpole() -> LoadedEnvironment:
    return load_environment("cartpole")


def described(loaded: LoadedEnvironment, **changed: object) -> str:
    return describe(
        with_written_fitness(loaded, "balance", FITNESS.model_copy(update=changed)), None
    ).fingerprint


def test_everything_that_is_told_of_the_task_is_the_written_one_s(
    cartpole: LoadedEnvironment,
) -> None:
    own = describe(cartpole, "balance")
    written = describe(with_written_fitness(cartpole, "balance", FITNESS), "balance")
    words = written.sentence, written.fitness_doc, written.fitness_unit
    assert words == ("be quick", "metres from the middle", "m")
    assert (written.fitness_reduction, written.success_fitness) == ("max", 1.0)
    assert written.fitness_author == "openai/tiny"
    # the expert's reward is for another task; the sparse one is the fitness itself
    assert (written.human_reward, written.sparse_reward) == (None, baseline(FITNESS.source))
    unchanged = {"environment", "task", "doc", "variables", "env_steps", "max_episode_length"}
    assert own.model_dump(include=unchanged) == written.model_dump(include=unchanged)
    assert own.fitness_author == ""


def test_the_fingerprint_is_of_all_that_a_score_depends_on(cartpole: LoadedEnvironment) -> None:
    own = describe(cartpole, "balance")
    first = described(cartpole)
    assert first == described(cartpole)
    changed = [
        described(cartpole, source=FITNESS.source + "\n"),
        described(cartpole, reduction="sum"),
        described(cartpole, success_fitness=None),
    ]
    assert len({own.fingerprint, first, *changed}) == 5
    # words are no part of it, and what depends on the environment alone knows it again
    assert first == described(cartpole, doc="other words", reasoning="more of them")
    assert {fingerprint.partition("+")[0] for fingerprint in (first, *changed)} == {
        own.environment_fingerprint
    }
