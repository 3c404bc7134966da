"""Checkpoints, and trainings that go on from a state bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from training_environments import CENTRE_REWARD, SLOW_REWARD, PointMass, points, run, same, saved

from eureka_agent.records import CurvePoint
from eureka_agent.settings import TrainingSettings
from eureka_agent.simulation.loading import load_environment
from eureka_agent.summaries import checkpoint_iterations
from eureka_agent.task import Task
from eureka_agent.training.members import (
    CheckpointKeeper,
    Snapshot,
)
from eureka_agent.training.reward import RewardFunction
from eureka_agent.training.trainer import (
    MemberAtRung,
    MemberFinished,
    MemberProgress,
    Trainer,
    TrainerEvent,
)


def point(env_steps: int, fitness: float | None, episodes: int, reward: float = 0.0) -> CurvePoint:
    names = "action_saturation action_std learning_rate kl entropy value_loss policy_loss"
    numbers = dict.fromkeys((*names.split(), "explained_variance"), 0.0)
    moments = {"a": reward}
    return CurvePoint(
        env_steps=env_steps,
        fitness=fitness,
        episode_length=None if fitness is None else 10.0,
        episodes=episodes,
        reward=reward,
        components=moments,
        component_magnitudes=moments,
        component_deviations=moments,
        terminations={},
        **numbers,
    )


@pytest.mark.parametrize(
    ("iterations", "checkpoints", "expected"),
    [(10, 5, (2, 4, 6, 8, 10)), (7, 3, (3, 5, 7)), (2, 10, (1, 2)), (1, 1, (1,))],
)
def test_checkpoints_are_evenly_spaced_and_end_with_the_training(
    iterations: int, checkpoints: int, expected: tuple[int, ...]
) -> None:
    assert checkpoint_iterations(iterations, checkpoints) == expected


def test_a_checkpoint_weighs_iterations_by_their_episodes_and_the_best_policy_is_kept() -> None:
    keeper = CheckpointKeeper(iterations=6, checkpoints=3)
    fitness = [(None, 0), (4.0, 1), (10.0, 3), (2.0, 1), (7.0, 2), (None, 0)]
    for index, (value, episodes) in enumerate(fitness):
        assert not keeper.finished
        keeper.add(
            point(100 * (index + 1), value, episodes, reward=float(index)),
            lambda at=index: {"at": torch.tensor(at)},
        )
    assert keeper.finished
    # (10 · 3 + 2 · 1) / 4 = 8 in the middle
    assert [record.fitness for record in keeper.records] == [4.0, 8.0, 7.0]
    assert [record.episodes for record in keeper.records] == [1, 4, 2]
    assert [record.env_steps for record in keeper.records] == [200, 400, 600]
    assert [record.reward for record in keeper.records] == [0.5, 2.5, 4.5]
    assert keeper.best == 1
    assert keeper.policies[keeper.best]["at"].item() == 3


def test_a_negative_fitness_is_better_than_none() -> None:
    keeper = CheckpointKeeper(iterations=2, checkpoints=2)
    keeper.add(point(1, -5.0, 1), lambda: {"at": torch.tensor(0)})
    keeper.add(point(2, None, 0), lambda: {"at": torch.tensor(1)})
    assert keeper.best == 0
    assert keeper.policies[keeper.best]["at"].item() == 0


def test_the_policies_of_the_best_few_are_kept_and_no_other_is_copied() -> None:
    keeper = CheckpointKeeper(iterations=6, checkpoints=6, policies=3)
    copied = []

    def policy(at: int) -> dict[str, torch.Tensor]:
        copied.append(at)
        return {"at": torch.tensor(at)}

    kept = []
    for index, fitness in enumerate((None, 3.0, 1.0, 2.0, 0.5, 2.0)):
        keeper.add(point(index, fitness, 1), lambda at=index: policy(at))
        kept.append(sorted(keeper.policies))
    # the fifth is behind all three; the last is as good as the fourth, and takes the place of the
    # third
    assert kept == [[0], [0, 1], [0, 1, 2], [1, 2, 3], [1, 2, 3], [1, 3, 5]]
    assert copied == [0, 1, 2, 3, 5]
    assert [tensors["at"].item() for tensors in keeper.policies.values()] == [1, 3, 5]
    assert keeper.best == 1
    again = CheckpointKeeper(iterations=6, checkpoints=6, policies=3)
    again.resume(keeper.iterations, keeper.records, keeper.recent, keeper.policies)
    assert (again.best, again.policies.keys()) == (1, keeper.policies.keys())


def test_checkpoints_under_other_parameters_are_behind_all_later_ones() -> None:
    keeper = CheckpointKeeper(iterations=4, checkpoints=4, policies=2, counts_from=200)
    for place, fitness in enumerate((9.0, 8.0, 1.0, None), 1):
        keeper.add(point(100 * place, fitness, 1), lambda at=place: {"at": torch.tensor(at)})
    assert sorted(keeper.policies) == [2, 3]
    assert keeper.best == 2


MakeTrainer = Callable[..., Trainer]
LoadReward = Callable[..., RewardFunction]


def assert_same_end(events: list[TrainerEvent], reference: list[TrainerEvent]) -> None:
    finished, expected = events[-1], reference[-1]
    assert isinstance(finished, MemberFinished)
    assert isinstance(expected, MemberFinished)
    seconds = {"seconds": 0.0}
    assert finished.outcome.model_copy(update=seconds) == expected.outcome.model_copy(
        update=seconds
    )
    assert same(finished.policy, expected.policy)


def at_rungs(events: list[TrainerEvent]) -> list[tuple[int, int]]:
    """The env steps of each rung, and of the curve's last point before it."""
    found, made = [], 0
    for event in events:
        if isinstance(event, MemberProgress):
            made = event.point.env_steps
        elif isinstance(event, MemberAtRung):
            found.append((event.env_steps, made))
    return found


def interrupted(
    trainer: Trainer, job: str, iterations: int, path: Path
) -> tuple[list[TrainerEvent], Snapshot]:
    """The job's events of the first iterations, and its state after them as a file brings it
    back."""
    events = [event for _ in range(iterations) for event in trainer.iterate() if event.job == job]
    return events, saved(trainer, job, path)


# 8 iterations with checkpoints after the 3rd, 6th and 8th: before the first one, on one, between
# two, and before the last
@pytest.mark.parametrize("iterations", [1, 3, 5, 7])
def test_it_goes_on_in_another_slot_among_others(
    make_trainer: MakeTrainer, point_reward: LoadReward, tmp_path: Path, iterations: int
) -> None:
    settings = {"env_steps": 8 * 128, "checkpoints": 3}
    alone = make_trainer(1, **settings)
    alone.submit("reference", point_reward(SLOW_REWARD), 7)
    reference = run(alone)["reference"]

    first = make_trainer(3, **settings)
    first.submit("other", point_reward(), 1)
    first.submit("reference", point_reward(SLOW_REWARD), 7)
    before, snapshot = interrupted(first, "reference", iterations, tmp_path / "snapshot")
    assert snapshot.record.iterations == iterations
    assert snapshot.record.env_steps == iterations * 128

    second = make_trainer(5, **settings)
    for seed in range(3):
        second.submit(f"other-{seed}", point_reward(CENTRE_REWARD), seed)
    second.iterate()
    second.submit("reference", point_reward(SLOW_REWARD), 7, snapshot)
    after = run(second)["reference"]
    assert points(before) + points(after) == points(reference)
    assert_same_end(after, reference)


def test_only_a_running_training_has_a_state(
    make_trainer: MakeTrainer, point_reward: LoadReward
) -> None:
    trainer = make_trainer(1)
    trainer.submit("first", point_reward(), 1)
    trainer.submit("queued", point_reward(), 2)
    trainer.iterate()
    assert trainer.running() == ("first",)
    with pytest.raises(KeyError):
        trainer.snapshot("queued")
    for job in ("first", "queued"):  # a name stands for one training
        with pytest.raises(ValueError, match="already queued or running"):
            trainer.submit(job, point_reward(), 3)


def trainer_of(
    environment: str, task_name: str, slots: int
) -> tuple[Trainer, Callable[[], RewardFunction]]:
    loaded = load_environment(environment)
    _, task = loaded.task(task_name)
    source = loaded.reward_source(task, "human") or loaded.reward_source(task, "sparse")
    assert source is not None
    settings = {"env_steps": 4 * 512, "num_envs": 16, "checkpoints": 2}

    def reward() -> RewardFunction:
        variables = loaded.environment_class.all_variables()
        return RewardFunction.from_source(source, variables, allow_private=True)

    return Trainer(
        lambda rows: loaded.make(task, rows), task, _settings(task, settings), slots
    ), reward


def _settings(task: Task, changes: dict[str, int]) -> TrainingSettings:
    return TrainingSettings.model_validate({**task.training.overrides, **changes})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "task"),
    [
        ("quadcopter", "hover"),
        ("ant", "run"),
        ("gymnasium:Hopper-v5", "native"),
    ],
)
def test_environments_go_on_where_they_were(environment: str, task: str, tmp_path: Path) -> None:
    alone, reward = trainer_of(environment, task, 1)
    alone.submit("reference", reward(), 7)
    reference = run(alone)["reference"]
    first, _ = trainer_of(environment, task, 2)
    first.submit("reference", reward(), 7)
    before, snapshot = interrupted(first, "reference", 3, tmp_path / "snapshot")
    second, _ = trainer_of(environment, task, 3)
    second.submit("before", reward(), 0)
    second.submit("reference", reward(), 7, snapshot)
    second.submit("behind", reward(), 1)  # its rows are reset after the reference's were loaded
    after = run(second)["reference"]
    assert points(before) + points(after) == points(reference)
    assert_same_end(after, reference)


def test_a_training_passes_its_rungs_and_ends_as_one_without_them(
    make_trainer: MakeTrainer, point_reward: LoadReward
) -> None:
    settings = {"env_steps": 8 * 128, "checkpoints": 4}
    alone = make_trainer(1, **settings)
    alone.submit("reference", point_reward(SLOW_REWARD), 7)
    reference = run(alone)["reference"]

    trainer = make_trainer(1, **settings)
    # the third iteration ends at 384; no policy is sent at the end, which has its own
    trainer.submit("reference", point_reward(SLOW_REWARD), 7, rungs=(256, 257, 300, 600, 1024))
    trainer.submit("queued", point_reward(), 1)
    events = run(trainer)
    assert at_rungs(events["reference"]) == [(256, 256), (300, 384), (600, 640)]
    assert at_rungs(events["queued"]) == []
    assert points(events["reference"]) == points(reference)
    assert_same_end(events["reference"], reference)


@pytest.mark.parametrize("restorable", [True, False])
@pytest.mark.parametrize("updates", [1, 4])  # before the first checkpoint, and on one
def test_at_a_rung_there_is_the_policy_of_a_training_that_ends_there(
    make_trainer: MakeTrainer,
    point_reward: LoadReward,
    monkeypatch: pytest.MonkeyPatch,
    updates: int,
    restorable: bool,
) -> None:
    """Two trainings reach it together, and it does not change as they go on."""
    monkeypatch.setattr(PointMass, "restorable", restorable)
    ending = make_trainer(2, env_steps=updates * 128, checkpoints=1)  # its only policy is the last
    trainer = make_trainer(2, env_steps=8 * 128, checkpoints=4)
    assert trainer.restorable is restorable
    for job, source, seed in (("slow", SLOW_REWARD, 7), ("centre", CENTRE_REWARD, 8)):
        ending.submit(job, point_reward(source), seed)
        trainer.submit(job, point_reward(source), seed, rungs=(updates * 128,))
    ended, events = run(ending), run(trainer)
    for job in ("slow", "centre"):
        finished = ended[job][-1]
        assert isinstance(finished, MemberFinished)
        (at_rung,) = (event for event in events[job] if isinstance(event, MemberAtRung))
        assert same(at_rung.policy, finished.policy)


def test_a_training_that_resumes_at_or_behind_a_rung_does_not_come_to_it_again(
    make_trainer: MakeTrainer, point_reward: LoadReward, tmp_path: Path
) -> None:
    first = make_trainer(1)
    first.submit("job", point_reward(), 7)
    _, snapshot = interrupted(first, "job", 2, tmp_path / "snapshot")
    second = make_trainer(1)
    second.submit("job", point_reward(), 7, snapshot, rungs=(128, 256))
    assert at_rungs(run(second)["job"]) == []
    second.submit("job", point_reward(), 7, snapshot, rungs=(256, 384))
    assert at_rungs(run(second)["job"]) == [(384, 384)]


def test_constants_as_long_as_there_are_rows_stay_where_they_are(tmp_path: Path) -> None:
    """The ant has eight joints: with eight environments their gains look like rows."""
    loaded = load_environment("ant")
    _, task = loaded.task("run")
    environment = loaded.make(task, 8)
    gains = environment._ctrl_scale
    assert len(gains) == 8
    assert "_ctrl_scale" in environment.row_tensors()
    environment.tell_rows_from_constants(loaded.make(task, 9))
    assert "_ctrl_scale" not in environment.row_tensors()
    assert "progress_buf" in environment.row_tensors()
    assert "joint_positions" in environment.row_tensors()
