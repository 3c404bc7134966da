"""Scores of policies: a fault is told of one alone, passes have room; and of acting at random."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from policy_files import random_tensors, save_policy, save_random_policy
from torch import Tensor

from eureka_agent.boundary.bounds import MAX_LINE_BYTES
from eureka_agent.boundary.commands import Evaluate, PolicyFile
from eureka_agent.boundary.events import Evaluated, PolicyScore
from eureka_agent.cli.command import Number
from eureka_agent.cli.train import evaluate as evaluate_command
from eureka_agent.records import EpisodeSummary, Evaluation
from eureka_agent.simulation.loading import LoadedEnvironment, load_environment
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import Task, Variable
from eureka_agent.training.evaluation import load_trajectories
from eureka_agent.worker import evaluation_job
from eureka_agent.worker.channel import File
from eureka_agent.worker.evaluation_job import evaluate, measure, score_untrained


@pytest.fixture(scope="module")
def hopper() -> LoadedEnvironment:
    return load_environment("hopper")


def ask(loaded: LoadedEnvironment, scratch: Path, *files: PolicyFile) -> Evaluated:
    """The answer; the files that came with it are in the folder."""
    *recorded, answer = evaluate(
        Evaluate(job="job", policies=files), loaded, loaded.task(None)[1], "cpu", scratch
    )
    for file in recorded:
        assert isinstance(file, File)
        (scratch / file.name).write_bytes(file.content)
    assert isinstance(answer, Evaluated)
    return answer


def test_a_bad_file_fails_alone(hopper: LoadedEnvironment, tmp_path: Path) -> None:
    save_random_policy(tmp_path / "good", 12, 3, seed=0)
    save_random_policy(tmp_path / "foreign", 5, 1, seed=0)
    (tmp_path / "rubbish").write_bytes(b"no policy")
    names = ("missing", "good", "foreign", "rubbish", "good")
    files = [PolicyFile(policy=name, seed=index, episodes=4) for index, name in enumerate(names)]
    answer = ask(hopper, tmp_path, *files)
    faults = [score.fault for score in answer.scores]
    assert "cannot read the policy" in faults[0]
    assert faults[2].startswith("the policy takes 5 observations and gives 1 action,")
    assert "cannot read the policy" in faults[3]
    assert answer.scores[3].hint == "name a policy.safetensors of a run"
    # the good ones are scored as they are alone
    assert answer.scores[1] == ask(hopper, tmp_path, files[1]).scores[0]
    assert answer.scores[4].evaluation is not None
    assert answer.scores[4] != answer.scores[1]


def test_a_policy_is_scored_under_a_distribution_of_parameters(
    hopper: LoadedEnvironment, tmp_path: Path
) -> None:
    save_random_policy(tmp_path / "policy", 12, 3, seed=0)
    (tmp_path / "heavy").write_bytes((tmp_path / "policy").read_bytes())
    (tmp_path / "wrong").write_bytes((tmp_path / "policy").read_bytes())
    files = [
        PolicyFile(policy="policy", seed=1, episodes=4),
        PolicyFile(policy="heavy", seed=1, episodes=4, parameters={"torso_mass": (1.5, 2.0)}),
        PolicyFile(policy="wrong", seed=1, episodes=4, parameters={"torso_mass": (1.5, 3.0)}),
    ]
    usual, heavy, wrong = ask(hopper, tmp_path, *files).scores
    assert "'torso_mass' was given 1.5..3, its safe range is 0.5..2" in wrong.fault
    assert "envs" in wrong.hint
    assert heavy.evaluation is not None
    assert usual.evaluation is not None
    assert heavy.evaluation != usual.evaluation
    # neither depends on what it is scored with
    assert ask(hopper, tmp_path, files[0]).scores == (usual,)
    assert ask(hopper, tmp_path, files[1]).scores == (heavy,)


def test_a_fitness_that_is_not_finite_is_said_of_its_policy(tmp_path: Path) -> None:
    loaded = load_environment("cartpole")
    _, task = loaded.task("balance")
    save_random_policy(tmp_path / "good", 5, 1, seed=0)
    tensors = random_tensors(5, 1, seed=0)
    tensors["policy.1.bias"] += math.nan
    save_policy(tmp_path / "broken", tensors, {"activation": "elu"})

    def fitness(cart_position: torch.Tensor) -> torch.Tensor:
        return cart_position

    files = tuple(PolicyFile(policy=name, seed=3, episodes=5) for name in ("broken", "good"))
    (answer,) = evaluate(
        Evaluate(job="job", policies=files), loaded, replace(task, fitness=fitness), "cpu", tmp_path
    )
    assert isinstance(answer, Evaluated)
    broken, good = answer.scores
    assert broken.fault == "the task's fitness is NaN or infinite in 5 of 5 evaluated episodes"
    assert good.evaluation is not None


def test_passes_have_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = load_environment("cartpole")
    save_random_policy(tmp_path / "policy", 5, 1, seed=0)
    files = [
        PolicyFile(
            policy="policy",
            seed=index,
            episodes=40,
            trajectories=f"{index}.npz" if index % 2 else None,
        )
        for index in range(5)
    ]
    together = ask(loaded, tmp_path, *files)
    best = load_trajectories(tmp_path / "3.npz")["best"]["fitness"]
    rows: list[int] = []
    make = LoadedEnvironment.make

    def noted(self: LoadedEnvironment, task: object, num_envs: int, **arguments: object) -> object:
        rows.append(num_envs)
        return make(self, task, num_envs, **arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(LoadedEnvironment, "make", noted)
    # 40 episodes take 64 rows each
    monkeypatch.setattr(evaluation_job, "MOST_ROWS", 128)
    assert ask(loaded, tmp_path, *files) == together
    assert rows == [128, 128, 64]
    rows.clear()
    monkeypatch.setattr(evaluation_job, "MOST_RECORDED_BYTES", 1)
    assert ask(loaded, tmp_path, *files) == together
    # each of the two that are recorded apart, the second one with others that are not
    assert rows == [64, 128, 128]
    assert load_trajectories(tmp_path / "3.npz")["best"]["fitness"].tolist() == best.tolist()


def test_the_most_episodes_that_can_be_asked_for_fit_into_an_answer() -> None:
    (most,) = (
        option.type.most
        for option in evaluate_command.params
        if option.name == "episodes" and isinstance(option.type, Number)
    )
    assert most is not None
    episode = EpisodeSummary(
        fitness=-1.2345678901234567e-05,
        length=100_000,
        ended_by="a cause of some forty characters in all",
    )
    evaluation = Evaluation(episodes=(episode,) * int(most), seed=2**63)
    answer = Evaluated(job="evaluation-1", scores=(PolicyScore(evaluation=evaluation),))
    assert len(answer.model_dump_json()) < MAX_LINE_BYTES


class Integrator(VecTask):
    """Adds its action up; ends beyond 3."""

    variables = (Variable("level", (), "1", "-", "sum of the actions"),)
    num_observations = 1
    num_actions = 1
    max_episode_length = 20
    control_dt = 0.1
    termination_causes = ("overflowed",)

    def __init__(self, num_envs: int, device: torch.device | str = "cpu", seed: int = 0) -> None:
        super().__init__(num_envs, device, seed)
        self.level = torch.zeros(num_envs)

    def pre_physics_step(self, actions: Tensor) -> None:
        self.level = self.level + actions[:, 0]

    def compute_observations(self) -> None:
        self.obs_buf[:, 0] = self.level

    def compute_variables(self) -> dict[str, Tensor]:
        return {"level": self.level}

    def compute_termination(self) -> Tensor:
        return self.level.abs() > 3.0

    def reset_idx(self, env_ids: Tensor) -> None:
        self.level[env_ids] = self.random.uniform(env_ids, 1, 0.5, 1.0)[:, 0]


def of(fitness: object) -> tuple[LoadedEnvironment, Task]:
    task = Task(sentence="fill it", fitness=fitness, fitness_doc="…")  # type: ignore[arg-type]
    return LoadedEnvironment("integrator", "integrator", None, Integrator, {"fill": task}, ""), task


def moved(level: Tensor, previous_level: Tensor) -> Tensor:
    """Squared action: 0 of nothing, 1/3 on average of a uniform one."""
    return (level - previous_level).square()


def test_zero_and_random_actions_score_what_they_must() -> None:
    zero, drawn = score_untrained(*of(moved))
    assert zero is not None
    assert drawn is not None
    assert (zero.mean, zero.std, zero.length, zero.episodes) == (0.0, 0.0, 20.0, 64)
    # each step is worth 1/3 on average, with a variance of 1/5 - 1/9
    steps = drawn.length * drawn.episodes
    assert drawn.mean == pytest.approx(
        drawn.length / 3.0, abs=4.0 * math.sqrt((1 / 5 - 1 / 9) * steps) / drawn.episodes
    )
    assert drawn.length < 20.0, "a random walk overflows now and then"
    assert score_untrained(*of(moved)) == (zero, drawn), "the seed is fixed"


def test_what_is_measured_has_both() -> None:
    measured = measure(*of(moved))
    ((low, high, smallest),) = measured.starts["level"]
    assert (low, high) == pytest.approx((0.5, 1.0), abs=0.02)
    assert smallest == low
    assert measured.resets == 256
    assert measured.zero_actions is not None
    without = measure(*of(moved), scores=False)
    assert without == measured.model_copy(update={"zero_actions": None, "random_actions": None})
