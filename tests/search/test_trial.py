"""A trial on real workers: of the policies that a training keeps, the one that scores best becomes
its result."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from training_pool import TrainingPool

from eureka_agent.archive.snapshots import SnapshotStore
from eureka_agent.designer.interface import given_reward
from eureka_agent.fleet.evaluator import Evaluator
from eureka_agent.fleet.jobs import Problem, TrainingResult
from eureka_agent.journal.entries import BaseEntry, Observer
from eureka_agent.journal.progress import TrainingEnded
from eureka_agent.sandbox.process_wall import ProcessWall
from eureka_agent.search.seeds import derive_seed
from eureka_agent.search.trial import TrialRequest, TrialRunner
from eureka_agent.settings import TrainingSettings

SETTINGS = TrainingSettings(
    env_steps=4 * 2048, num_envs=64, horizon=32, hidden_sizes=(16,), checkpoints=4
)
REWARD = "def compute_reward(pole_upright):\n    return pole_upright, {'upright': pole_upright}\n"


class LookedAt(TrainingPool):
    """A pool that remembers its last result."""

    result: TrainingResult

    async def train(self, *arguments: object, **options: object) -> TrainingResult:
        self.result = await super().train(*arguments, **options)  # type: ignore[arg-type]
        return self.result


@pytest.fixture
async def workers(tmp_path: Path) -> AsyncIterator[tuple[LookedAt, Evaluator]]:
    pool = LookedAt(ProcessWall(), "cartpole", "balance", SETTINGS, 1, 1, tmp_path / "training")
    evaluator = Evaluator(ProcessWall(), Problem("cartpole", "balance"), tmp_path / "evaluation")
    yield pool, evaluator
    await pool.close()
    await evaluator.close()


def runner(
    pool: Any, evaluator: Evaluator, store: SnapshotStore, observer: Observer = lambda event: None
) -> TrialRunner:
    return TrialRunner(pool, evaluator, store, 8, None, observer, 16)


def request_in(folder: Path) -> TrialRequest:
    return TrialRequest("1-01", "search", given_reward(REWARD), 5, folder / "attempt")


async def test_the_policy_that_scores_best_without_noise_is_the_result(
    tmp_path: Path, workers: tuple[LookedAt, Evaluator]
) -> None:
    pool, evaluator = workers
    trials = runner(pool, evaluator, SnapshotStore(tmp_path))
    request = request_in(tmp_path)
    trial = await trials.run(request)
    assert trial.outcome is not None, trial.failure

    kept = pool.result.policies
    assert len(kept) == 3
    curve = [record.fitness for record in trial.outcome.checkpoints]
    assert sorted(kept) == sorted(sorted(range(4), key=lambda place: curve[place] or 0.0)[1:])
    scores = {
        checkpoint: (
            await evaluator.evaluate(policy, derive_seed("selection", 5), 16)
        ).fitness_mean()
        for checkpoint, policy in kept.items()
    }
    best = max(scores, key=scores.__getitem__)
    assert trial.outcome.best_checkpoint == best
    assert trial.outcome.training_fitness == curve[best]
    written = request.folder / "policy.safetensors"
    assert written.read_bytes() == kept[best].read_bytes()
    # and is valued from start states that had no part in the choice
    valued = await evaluator.evaluate(written, derive_seed("evaluation", 5), 8)
    assert trial.outcome.fitness == valued.fitness_mean()
    assert trial.outcome.evaluation_episodes == 8
    assert trial.outcome.ended_by == Counter(episode.ended_by for episode in valued.episodes)


async def test_a_policy_that_cannot_be_scored_is_not_chosen(
    tmp_path: Path, workers: tuple[LookedAt, Evaluator]
) -> None:
    pool, evaluator = workers

    class Damaging(Evaluator):
        """Damages the policy that is the best by the curve before it is scored."""

        async def evaluate(self, policy: Path, *arguments: object, **options: object) -> object:  # type: ignore[override]
            if pool.result.policy == policy:
                policy.write_bytes(b"half a file")
            return await evaluator.evaluate(policy, *arguments, **options)  # type: ignore[arg-type]

    damaging = Damaging(ProcessWall(), "cartpole", "balance", tmp_path / "unused")
    trials = runner(pool, damaging, SnapshotStore(tmp_path))
    trial = await trials.run(request_in(tmp_path))
    assert trial.outcome is not None, trial.failure
    assert pool.result.outcome is not None
    assert trial.outcome.best_checkpoint != pool.result.outcome.best_checkpoint


async def test_rungs_are_scored_while_the_training_goes_on(
    tmp_path: Path, workers: tuple[LookedAt, Evaluator]
) -> None:
    pool, evaluator = workers
    trials = runner(pool, evaluator, SnapshotStore(tmp_path))
    scores: dict[int, float] = {}

    async def score_rung(env_steps: int, policy: Path) -> None:
        evaluation = await trials.score(policy, 3, 4)
        assert evaluation is not None
        scores[env_steps] = evaluation.fitness_mean()

    request = request_in(tmp_path)
    request = replace(request, rungs=(2048, 6144), score_rung=score_rung)
    trial = await trials.run(request)
    assert trial.outcome is not None, trial.failure
    # the policies of the first and third checkpoint; of the four the worst is not kept
    kept = {2048 * (checkpoint + 1): policy for checkpoint, policy in pool.result.policies.items()}
    assert set(scores) == {2048, 6144}
    known = scores.keys() & kept.keys()
    assert known
    for env_steps in known:
        assert scores[env_steps] == (await evaluator.evaluate(kept[env_steps], 3, 4)).fitness_mean()


async def test_a_withdrawn_trial_leaves_no_files(
    tmp_path: Path, workers: tuple[LookedAt, Evaluator]
) -> None:
    pool, evaluator = workers
    told: list[BaseEntry] = []
    store = SnapshotStore(tmp_path)
    trials = runner(pool, evaluator, store, told.append)
    request = request_in(tmp_path)
    await trials.run(request)
    (request.folder / "reward.py").write_text(REWARD)
    store.put_points(request.job, ())
    number = len(told)
    trials.withdraw(request, "it pays for falling", ended=True)
    assert len(told) == number  # its end was told
    assert [path.name for path in request.folder.iterdir()] == ["reward.py"]
    assert list((tmp_path / ".snapshots").iterdir()) == []
    trials.withdraw(request, "it pays for falling", ended=False)
    last = told[-1]
    assert isinstance(last, TrainingEnded)
    assert (last.fitness, last.failure) == (None, "turned down by its review: it pays for falling")


async def test_a_rung_that_comes_again_after_a_restart_is_scored_once(
    tmp_path: Path, workers: tuple[LookedAt, Evaluator]
) -> None:
    pool, evaluator = workers

    class Restarted(LookedAt):
        async def train(self, *arguments: object, **options: Any) -> TrainingResult:
            options["on_rung"](2048, tmp_path / "from an earlier process")
            return await pool.train(*arguments, **options)  # type: ignore[arg-type]

    again = Restarted(ProcessWall(), "cartpole", "balance", SETTINGS, 1, 1, tmp_path / "unused")
    trials = runner(again, evaluator, SnapshotStore(tmp_path))
    scored: list[Path] = []

    async def score_rung(env_steps: int, policy: Path) -> None:
        scored.append(policy)

    request = request_in(tmp_path)
    await trials.run(replace(request, rungs=(2048,), score_rung=score_rung))
    assert scored == [tmp_path / "from an earlier process"]
