"""Trainings whose actions are choices: they learn, and are the same to the bit whoever is beside
them, in any slot, and after an interruption."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from policy_files import save_policy
from training_environments import (
    RAIL_REWARD,
    Rail,
    TwoGearRail,
    assert_equal,
    in_the_middle,
    run,
    saved,
)

from eureka_agent.settings import TrainingSettings
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import Task
from eureka_agent.training.evaluation import PolicyRequest, evaluate_policies
from eureka_agent.training.policy import load_policy
from eureka_agent.training.population import StackedMembers
from eureka_agent.training.reward import RewardFunction
from eureka_agent.training.trainer import (
    MemberFailed,
    MemberFinished,
    Trainer,
)
from eureka_agent.worker.evaluation_job import UntrainedPolicy

RAIL_TASK = Task(
    sentence="stay in the middle",
    fitness=in_the_middle,
    fitness_doc="mean of 1 - x²",
    fitness_reduction="mean",
)
OTHER_REWARD = "def compute_reward(place):\n    return place, {'right': place}\n"
NAN_REWARD = "def compute_reward(place):\n    return torch.log(place), {}\n"
RAILS = (Rail, TwoGearRail)


def reward(rail: type[VecTask], source: str = RAIL_REWARD) -> RewardFunction:
    return RewardFunction.from_source(source, rail.all_variables())


@pytest.fixture
def settings(small_settings: TrainingSettings) -> TrainingSettings:
    """Settings with an entropy bonus and 7 environments, so that rows are no whole SIMD
    registers."""
    changes = {"num_envs": 7, "env_steps": 12 * 56, "minibatches": 1, "entropy_coefficient": 0.01}
    return small_settings.model_copy(update=changes)


@pytest.mark.parametrize("rail", RAILS)
@pytest.mark.parametrize(("slot", "slots"), [(1, 2), (3, 4), (2, 5)])
def test_neighbours_and_slot_make_no_difference(
    settings: TrainingSettings, rail: type[VecTask], slot: int, slots: int
) -> None:
    alone, among = (Trainer(rail, RAIL_TASK, settings, count) for count in (1, slots))
    alone.submit("reference", reward(rail), 7)
    for other in range(slots):
        name, source = f"other-{other}", NAN_REWARD if other == 0 else OTHER_REWARD
        seed = other
        if other == slot:
            name, source, seed = "reference", RAIL_REWARD, 7
        among.submit(name, reward(rail, source), seed)
    events = run(among)
    assert_equal(events["reference"], run(alone)["reference"])
    assert isinstance(events["other-0"][-1], MemberFailed)


@pytest.mark.parametrize("rail", RAILS)
def test_a_training_goes_on_from_its_snapshot_bit_for_bit(
    settings: TrainingSettings, rail: type[VecTask], tmp_path: Path
) -> None:
    whole = Trainer(rail, RAIL_TASK, settings, 1)
    whole.submit("reference", reward(rail), 7)
    before, after = (Trainer(rail, RAIL_TASK, settings, count) for count in (1, 2))
    before.submit("reference", reward(rail), 7)
    events = [event for _ in range(5) for event in before.iterate()]
    after.submit("other", reward(rail, OTHER_REWARD), 1)
    after.submit("reference", reward(rail), 7, saved(before, "reference", tmp_path / "snapshot"))
    assert_equal([*events, *run(after)["reference"]], run(whole)["reference"])


@pytest.mark.parametrize("rail", RAILS)
def test_a_reward_reads_the_choices_that_were_made(
    settings: TrainingSettings, rail: type[VecTask]
) -> None:
    population = StackedMembers(rail(2 * 7), settings, 2)
    for member in range(2):
        population.start(member, member)
    rollout = population.collect(range(2), 2, ("actions", "previous_actions"))
    made = rollout.arguments["actions"]
    columns = rollout.actions if rail.num_actions > 1 else rollout.actions[..., 0]
    assert torch.equal(made, columns)
    assert made.shape == (2, 8, 7, *((2,) if rail is TwoGearRail else ()))
    for index, count in enumerate(rail.action_choices):
        seen = set(rollout.actions[..., index].flatten().tolist())
        assert seen == set(map(float, range(count))), "each of them, and nothing else"
    first = rollout.arguments["previous_actions"][:, 0]
    assert not first.any(), "0 right after a reset"


@pytest.mark.parametrize("rail", RAILS)
def test_a_policy_of_choices_learns_and_survives_its_file(
    settings: TrainingSettings, rail: type[VecTask], tmp_path: Path
) -> None:
    settings = settings.model_copy(update={"env_steps": 6000, "num_envs": 16, "minibatches": 2})
    trainer = Trainer(rail, RAIL_TASK, settings, 1)
    trainer.submit("job", reward(rail), 3)
    finished = run(trainer)["job"][-1]
    assert isinstance(finished, MemberFinished)
    save_policy(tmp_path / "policy", finished.policy, trainer.policy_metadata)
    policy = load_policy(tmp_path / "policy")
    assert policy.metadata["choices"] == ",".join(map(str, rail.action_choices))
    assert "log_std" not in finished.policy
    requests = [PolicyRequest(policy, 5, 32), PolicyRequest(UntrainedPolicy(rail, 1.0), 5, 32)]
    trained, random = evaluate_policies(rail(64), RAIL_TASK, requests)
    # in the middle is 1; to stay where an episode begins is 1 - 1/3
    assert trained[0].fitness_mean() > 0.85 > 0.6 > random[0].fitness_mean()
    states = torch.tensor([[-1.0, 0.5], [1.0, 0.5]])
    assert policy.act(states)[:, 0].tolist() == [2.0, 0.0], "to the right, and to the left"
    index, logits = policy.answer(states)
    assert index.dtype == torch.int64
    assert logits.shape == (2, sum(rail.action_choices))


def test_untrained_policies_make_the_first_choice_or_any() -> None:
    states = torch.zeros(3000, 2)
    zero, random = (UntrainedPolicy(TwoGearRail, width) for width in (0.0, 1.0))
    assert not zero.distribution.mode(zero.outputs(states), zero.spread).any()
    made = random.distribution.mode(random.outputs(states), random.spread)
    for index, count in enumerate((3, 2)):
        shares = torch.bincount(made[:, index].long(), minlength=count) / 3000
        assert shares.tolist() == pytest.approx([1 / count] * count, abs=0.04)
