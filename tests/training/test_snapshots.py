"""A training that is interrupted between two iterations and goes on elsewhere ends as the one that
was not, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from training_environments import CENTRE_REWARD, SLOW_REWARD, run

from eureka_agent.errors import RunFolderError
from eureka_agent.settings import TrainingSettings
from eureka_agent.simulation.loading import load_environment
from eureka_agent.task import Task
from eureka_agent.training.reward import RewardFunction
from eureka_agent.training.snapshot import Snapshot, load_snapshot, snapshot_bytes
from eureka_agent.training.trainer import (
    MemberFinished,
    MemberPaused,
    MemberProgress,
    Trainer,
    TrainerEvent,
)

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
    for name, tensor in expected.policy.items():
        assert torch.equal(tensor, finished.policy[name]), name


def points(events: list[TrainerEvent]) -> list[object]:
    return [event.point for event in events if isinstance(event, MemberProgress)]


def paused_at(event: TrainerEvent) -> int:
    assert isinstance(event, MemberPaused)
    return event.env_steps


def interrupted(
    trainer: Trainer, job: str, iterations: int, path: Path
) -> tuple[list[TrainerEvent], Snapshot]:
    """The job's events of the first iterations, and its state after them as a file brings it
    back."""
    events = [event for _ in range(iterations) for event in trainer.iterate() if event.job == job]
    path.write_bytes(snapshot_bytes(trainer.snapshot(job)))
    return events, load_snapshot(path)


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


def test_taking_a_snapshot_changes_nothing(
    make_trainer: MakeTrainer, point_reward: LoadReward
) -> None:
    plain, looked_at = make_trainer(1), make_trainer(1)
    for trainer in (plain, looked_at):
        trainer.submit("job", point_reward(), 3)
    reference, events = run(plain)["job"], []
    while looked_at.busy:
        events += looked_at.iterate()
        if looked_at.running():
            looked_at.snapshot("job")
    assert points(events) == points(reference)
    assert_same_end(events, reference)


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


def test_another_file_is_no_snapshot(tmp_path: Path) -> None:
    (tmp_path / "broken").write_bytes(b"not a snapshot")
    with pytest.raises(RunFolderError, match="cannot read the snapshot"):
        load_snapshot(tmp_path / "broken")
    with pytest.raises(RunFolderError, match="cannot read the snapshot"):
        load_snapshot(tmp_path / "missing")


def trainer_of(
    environment: str, task_name: str, slots: int
) -> tuple[Trainer, Callable[[], RewardFunction]]:
    loaded = load_environment(environment)
    _, task = loaded.task(task_name)
    source = loaded.reward_source(task, "human")
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
    [("cartpole", "swingup"), ("quadcopter", "hover"), ("hopper", "run"), ("ant", "run")],
)
def test_built_in_environments_go_on_where_they_were(
    environment: str, task: str, tmp_path: Path
) -> None:
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


def test_gymnasium_environments_cannot_be_taken_up_again() -> None:
    loaded = load_environment("gymnasium:Pendulum-v1")
    assert not loaded.environment_class.restorable
    assert load_environment("ant").environment_class.restorable


def test_a_paused_training_gives_its_slot_away_and_ends_as_if_it_had_not(
    make_trainer: MakeTrainer, point_reward: LoadReward
) -> None:
    settings = {"env_steps": 8 * 128, "checkpoints": 4}
    alone = make_trainer(1, **settings)
    alone.submit("reference", point_reward(SLOW_REWARD), 7)
    reference = run(alone)["reference"]

    trainer = make_trainer(1, **settings)
    trainer.submit("reference", point_reward(SLOW_REWARD), 7, pauses=(256, 600))
    trainer.submit("other", point_reward(), 1)
    first = run(trainer)  # until nothing runs: the other one has taken the slot and is done
    assert isinstance(first["other"][-1], MemberFinished)
    assert paused_at(first["reference"][-1]) == 256
    with pytest.raises(ValueError, match="already queued, paused or running"):
        trainer.submit("reference", point_reward(), 1)
    trainer.proceed("reference")
    second = run(trainer)["reference"]
    assert paused_at(second[-1]) == 640  # the first iteration that has 600
    trainer.proceed("reference")
    trainer.proceed("never heard of")
    third = run(trainer)["reference"]
    assert points([*first["reference"], *second, *third]) == points(reference)
    assert_same_end(third, reference)


def test_at_a_pause_there_is_the_policy_of_a_training_that_ends_there(
    make_trainer: MakeTrainer, point_reward: LoadReward
) -> None:
    for updates in (1, 4):  # before the first checkpoint, and on one
        ending = make_trainer(
            1, env_steps=updates * 128, checkpoints=1
        )  # its only policy is the last one
        ending.submit("reference", point_reward(SLOW_REWARD), 7)
        finished = run(ending)["reference"][-1]
        pausing = make_trainer(1, env_steps=8 * 128, checkpoints=4)
        pausing.submit("reference", point_reward(SLOW_REWARD), 7, pauses=(updates * 128,))
        paused = run(pausing)["reference"][-1]
        assert isinstance(finished, MemberFinished)
        assert isinstance(paused, MemberPaused)
        assert paused.policy.keys() == finished.policy.keys()
        for name, tensor in finished.policy.items():
            assert torch.equal(tensor, paused.policy[name]), name


def test_a_training_that_is_taken_up_behind_a_pause_does_not_pause_there(
    make_trainer: MakeTrainer, point_reward: LoadReward, tmp_path: Path
) -> None:
    first = make_trainer(1)
    first.submit("job", point_reward(), 7)
    _, snapshot = interrupted(first, "job", 2, tmp_path / "snapshot")
    second = make_trainer(1)
    second.submit("job", point_reward(), 7, snapshot, pauses=(256, 384))
    events = run(second)["job"]
    assert paused_at(events[-1]) == 384
    second.cancel("job")
    second.proceed("job")
    assert not second.busy


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
