"""Trainings, scores and videos of a command environment, as a worker gives them."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
from command_folders import REWARD, write_point

from eureka_agent.array_files import command_policy
from eureka_agent.boundary import events
from eureka_agent.boundary.commands import Evaluate, Open, PolicyFile, Prepare, Train
from eureka_agent.errors import EnvironmentFaultError
from eureka_agent.rewards import CodeReward
from eureka_agent.settings import TrainingSettings
from eureka_agent.simulation.loading import LoadedEnvironment, load_environment
from eureka_agent.training.evaluation import load_trajectories
from eureka_agent.worker import serve
from eureka_agent.worker.channel import File
from eureka_agent.worker.command_scoring import CommandScorer, command_for
from eureka_agent.worker.command_training import CommandPopulation

SETTINGS = TrainingSettings(env_steps=2000, num_envs=4, horizon=50)
Answer = TypeVar("Answer")


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> str:
    loaded = load_environment(str(write_point(tmp_path_factory.mktemp("known") / "point")))
    assert loaded.described is not None
    return loaded.described.event.model_dump_json()


def load(folder: Path, known: str, fault: str = "", **changes: object) -> LoadedEnvironment:
    return load_environment(str(write_point(folder / "point", fault, **changes)), known=known)


@contextmanager
def population(
    loaded: LoadedEnvironment, scratch: Path, snapshot_s: float = 60.0, rewards: int = 1
) -> Iterator[CommandPopulation]:
    prepare = Prepare(settings=SETTINGS, slots=rewards, snapshot_s=snapshot_s)
    found = CommandPopulation(command_for(loaded, "reach"), prepare, rewards, "cpu", scratch)
    try:
        yield found
    finally:
        found.close()


def train(job: str = "1-01", source: str = REWARD, **more: object) -> Train:
    reward = CodeReward(source=source, author="offline")
    return Train.model_validate({"job": job, "reward": reward, "seed": 1, **more})


def finish(trained: CommandPopulation) -> list[events.Event | File]:
    answers = []
    while trained.busy:
        answers += trained.iterate()
    return answers


def of(kind: type[Answer], answers: list[events.Event | File]) -> list[Answer]:
    return [each for each in answers if isinstance(each, kind)]


def test_a_training_tells_its_curve_its_rung_and_its_policy(known: str, tmp_path: Path) -> None:
    with population(load(tmp_path, known), tmp_path) as trained:
        trained.submit(train(rungs=(1400,)))
        answers = finish(trained)
    points = [point for each in of(events.CurvePoints, answers) for point in each.points["1-01"]]
    assert [point.env_steps for point in points] == list(range(200, 2001, 200))
    assert all(set(point.components) == {"near", "effort"} for point in points)
    # the total is the sum of the terms, and the fitness is the first of them
    for point in points:
        assert point.reward == pytest.approx(sum(point.components.values()), abs=1e-5)
        assert point.fitness == pytest.approx(point.components["near"], abs=1e-5)
    (rung,) = of(events.RungReached, answers)
    (done,) = of(events.Trained, answers)
    assert (rung.env_steps, done.outcome.env_steps) == (1400, 2000)
    assert done.outcome.checkpoints[0].fitness == points[-1].fitness
    sent = {each.name for each in of(File, answers)}
    assert {rung.policy, *done.policies.values()} <= sent


def test_a_saved_training_goes_on(known: str, tmp_path: Path) -> None:
    loaded = load(tmp_path, known)
    with population(loaded, tmp_path, snapshot_s=0.1) as trained:
        trained.submit(train())
        whole = finish(trained)
    saved = of(events.Saved, whole)[3]
    (state,) = (each for each in of(File, whole) if each.name == saved.snapshot)
    (tmp_path / "resumed").write_bytes(state.content)
    with population(loaded, tmp_path) as trained:
        trained.submit(train(snapshot="resumed"))
        rest = finish(trained)

    def steps(answers: list[events.Event | File]) -> list[tuple[int, float]]:
        found = (each.points["1-01"] for each in of(events.CurvePoints, answers))
        return [(point.env_steps, point.reward) for points in found for point in points]

    assert saved.iterations == 4
    assert steps(rest) == steps(whole)[4:]


def test_a_save_is_answered_while_it_trains(known: str, tmp_path: Path) -> None:
    with population(load(tmp_path, known, "slow"), tmp_path) as trained:
        trained.submit(train())
        while not of(events.CurvePoints, trained.iterate()):
            pass
        assert of(events.Saved, trained.save())


def test_a_reward_that_fails_ends_its_training_alone(known: str, tmp_path: Path) -> None:
    wrong = "def compute_reward(distance):\n    raise ValueError('no')\n"
    nan = "def compute_reward(distance):\n    return distance / 0.0 * 0.0, {'far': distance}\n"
    with population(load(tmp_path, known), tmp_path) as trained:
        for job, source in (("raises", wrong), ("nan", nan), ("good", REWARD)):
            trained.submit(train(job, source))
        answers = finish(trained)
    failed = {each.job: (each.code, each.reason) for each in of(events.TrainingFailed, answers)}
    assert failed["raises"] == ("raised", "line 2: ValueError: no")
    assert failed["nan"][1].startswith("line 2: the total has the shape")
    assert [each.job for each in of(events.Trained, answers)] == ["good"]


@pytest.mark.parametrize(
    ("fault", "said"),
    [("no policy", "without `trained`"), ("status", "no license"), ("no event", "'hello'")],
)
def test_a_command_that_fails_is_no_fault_of_the_reward(
    known: str, tmp_path: Path, fault: str, said: str
) -> None:
    with population(load(tmp_path, known, fault), tmp_path) as trained:
        trained.submit(train())
        (failed,) = of(events.TrainingFailed, finish(trained))
    assert failed.code == "fault"
    assert said in failed.reason


def test_a_killed_command_is_tried_again_by_the_driver(known: str, tmp_path: Path) -> None:
    with population(load(tmp_path, known, "signal"), tmp_path) as trained:
        trained.submit(train())
        (fault,) = of(events.Fault, finish(trained))
    assert fault.job is None  # the driver restarts all trainings of this worker
    assert "ended by SIGKILL" in fault.message


def test_a_fault_of_the_environment_ends_the_search(known: str, tmp_path: Path) -> None:
    loaded = load(tmp_path, known)
    script = tmp_path / "point" / "train.py"
    told = json.dumps({"event": "fault", "whose": "environment", "message": "no display"})
    write = f"import sys\nopen(sys.argv[-1] + '/events.jsonl', 'w').write('''{told}\\n''')\n"
    script.write_text(write)
    with population(loaded, tmp_path) as trained:
        trained.submit(train())
        with pytest.raises(EnvironmentFaultError, match="no display"):
            finish(trained)


def test_a_cancelled_training_leaves_nothing(known: str, tmp_path: Path) -> None:
    with population(load(tmp_path, known, "hang"), tmp_path) as trained:
        trained.submit(train())
        trained.iterate()
        assert list(tmp_path.glob("train-*"))
        trained.cancel("1-01")
        assert not trained.busy
        assert not list(tmp_path.glob("train-*"))


def test_policies_are_scored_by_the_fitness_and_without_a_reward(
    known: str, tmp_path: Path
) -> None:
    loaded = load(tmp_path, known)
    with population(loaded, tmp_path) as trained:
        trained.submit(train())
        answers = finish(trained)
    (done,) = of(events.Trained, answers)
    files = {each.name: each.content for each in of(File, answers)}
    (tmp_path / "policy").write_bytes(files[done.policies[0]])
    weights = np.load(_written(tmp_path / "own.npy", command_policy(tmp_path / "policy")))
    scorer = CommandScorer(command_for(loaded, "reach"), loaded, "cpu", tmp_path)
    asked = PolicyFile(policy="policy", seed=7, episodes=5, trajectories="episodes.npz")
    recorded, scored = scorer.evaluate(Evaluate(job="score", policies=(asked,)))
    assert isinstance(recorded, File)
    assert isinstance(scored, events.Evaluated)
    evaluation = scored.scores[0].evaluation
    assert evaluation is not None
    # worked out here: the mean distance over an episode's steps
    expected = [_mean_distance(weights, 7, number) for number in range(5)]
    assert [-each.fitness for each in evaluation.episodes] == pytest.approx(expected, abs=1e-5)
    (tmp_path / "episodes.npz").write_bytes(recorded.content)
    episodes = load_trajectories(tmp_path / "episodes.npz")
    assert -episodes["worst"]["fitness"].mean() == pytest.approx(max(expected), abs=1e-5)
    assert episodes["best"]["actions"].shape == (50, 1)


def _written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def _mean_distance(weights: np.ndarray, seed: int, number: int) -> float:
    position, target = np.random.default_rng([seed, number]).uniform(-1, 1, 2)
    velocity, distances = 0.0, []
    for _ in range(50):
        action = np.clip((target - position) * weights[0] + velocity * weights[1], -1, 1)
        velocity = 0.9 * velocity + 0.1 * action
        position += 0.5 * velocity
        distances.append(abs(target - position))
    return float(np.mean(distances))


ENDS_AT_ONCE = """
import json, pathlib, sys
folder = pathlib.Path(sys.argv[-1])
job = json.loads((folder / "job.json").read_text())
assert (len(job["trainings"]), job["num_envs"]) == (2, 8), "four for each"
(folder / "policy").write_bytes(b"weights")
curve = {"event": "curve", "training": "0", "env_steps": 2000, "reward": 1.0, "fitness": 1.0}
policies = [{"env_steps": 2000, "policy": "policy"}]
trained = {"event": "trained", "training": "0", "env_steps": 2000, "policies": policies}
lines = [json.dumps(curve), json.dumps(trained), LAST]
(folder / "part").write_text("".join(line + "\\n" for line in lines))
(folder / "part").rename(folder / "events.jsonl")
"""
BROKE = {"event": "fault", "whose": "environment", "message": "the simulator broke"}


@pytest.mark.parametrize("last", ["no event", json.dumps(BROKE)])
def test_a_training_that_ended_just_before_a_fault_has_ended(
    known: str, tmp_path: Path, last: str
) -> None:
    loaded = load(tmp_path, known)
    (tmp_path / "point" / "train.py").write_text(ENDS_AT_ONCE.replace("LAST", repr(last)))
    with population(loaded, tmp_path, rewards=2) as trained:
        trained.submit(train("1-01"))
        trained.submit(train("1-02"))
        answers = []
        with contextlib.suppress(EnvironmentFaultError):
            while trained.busy:
                answers += trained.iterate()
        assert not trained.busy
    (done,) = of(events.Trained, answers)
    assert done.job == "1-01"
    failed = [each.job for each in of(events.TrainingFailed, answers)]
    assert failed == (["1-02"] if last == "no event" else [])


def test_a_command_may_take_longer_to_describe_itself_than_a_class_to_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "MAKING_SECONDS", 0.01)
    worker = serve.Worker.__new__(serve.Worker)  # without its nursery, which nothing here needs
    worker._scratch, worker._dry_runners = tmp_path, None
    folder = str(write_point(tmp_path / "point"))
    opened = worker._open(Open(environment=folder, task=None, interpreter=sys.executable))
    assert opened.description.task == "reach"
