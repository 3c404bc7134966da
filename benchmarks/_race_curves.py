"""Trainings to the end, from which `racing.py` replays races: made once, kept as JSON lines where a folder is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from offline_designer import Bench, generation

from eureka_agent.archive.database import Archive
from eureka_agent.designer.offline.designer import OfflineDesigner
from eureka_agent.records import Attempt, CheckpointRecord, CurvePoint, Evaluation, Record, Stage
from eureka_agent.settings import TrainingSettings
from eureka_agent.simulation.loading import describe, load_environment
from eureka_agent.summaries import checkpoint_iterations
from eureka_agent.training.evaluation import evaluate_policy
from eureka_agent.training.policy import Policy
from eureka_agent.training.reward import RewardFunction
from eureka_agent.training.trainer import MemberFailed, MemberFinished, MemberProgress, Trainer

GENERATION = 8
EVALUATED_AT = (1, 3, 5, 7)
"""Places of the checkpoints, of ten, at which the policy kept so far is scored without noise."""
EVALUATION_EPISODES = 8
EVALUATION_SEED = 777
"""Other start states than those of the final score."""
FINAL_EPISODES = 32
FINAL_SEED = 12345
FURTHER_SEEDS = (1_000_000, 2_000_000)
"""Added to a training's seed."""


class Trained(Record):
    """One training from its start to its end."""

    reward: str
    """`<search>-<sample>`; several trainings of one reward differ in their seed."""
    source: str
    seed: int
    fitness: float
    """Of the kept policy, without noise."""
    checkpoints: tuple[CheckpointRecord, ...]
    evaluated: dict[int, float]
    """Fitness without noise of the policy kept so far, by the place of the checkpoint."""


@dataclass(frozen=True)
class RaceBench(Bench):
    """A task whose trainings are also scored on their way."""

    evaluated: dict[str, dict[int, float]] = field(default_factory=dict)
    """By training; filled by `train`."""

    def train(
        self, sources: dict[str, str], seeds: dict[str, int], trusted: bool = False
    ) -> dict[str, tuple[MemberFinished, list[CurvePoint], Evaluation]]:
        """Every source trained once, side by side; failed ones are missing."""
        make = partial(self.environment.make, self.task)
        trainer = Trainer(make, self.task, self.settings, slots=min(16, len(sources)))
        variables = self.environment.environment_class.all_variables()
        for name, source in sources.items():
            trainer.submit(name, RewardFunction.from_source(source, variables, allow_private=trusted), seeds[name])
        iterations = -(-self.settings.env_steps // (self.settings.horizon * self.settings.num_envs))
        due = checkpoint_iterations(iterations, self.settings.checkpoints)
        places = {due[place]: place for place in EVALUATED_AT}
        points: dict[str, list[CurvePoint]] = {name: [] for name in sources}
        results = {}
        while trainer.busy:
            for event in trainer.iterate():
                if isinstance(event, MemberProgress):
                    points[event.job].append(event.point)
                    place = places.get(len(points[event.job]))
                    if place is not None:
                        kept = Policy(trainer.snapshot(event.job).policy, self.settings.activation, {})
                        score = self._score(kept, EVALUATION_EPISODES, EVALUATION_SEED).fitness_mean()
                        self.evaluated.setdefault(event.job, {})[place] = score
                elif isinstance(event, MemberFailed):
                    print(f"  {event.job} failed: {event.reason}")
                elif isinstance(event, MemberFinished):
                    policy = Policy(event.policy, self.settings.activation, {})
                    results[event.job] = event, points[event.job], self._score(policy, FINAL_EPISODES, FINAL_SEED)
        return results

    def _score(self, policy: Policy, episodes: int, seed: int) -> Evaluation:
        rows = self.environment.make(self.task, episodes)
        try:
            return evaluate_policy(rows, self.task, policy, episodes, record=False, seed=seed)[0]
        finally:
            rows.close()


def race_bench(reference: str) -> RaceBench:
    """A built-in task with its own settings, from `env/task`."""
    environment_name, _, task_name = reference.partition("/")
    environment = load_environment(environment_name)
    _, task = environment.task(task_name or None)
    budget = {"env_steps": task.training.env_steps, "num_envs": task.training.num_envs, **task.training.overrides}
    settings = TrainingSettings.model_validate(budget)
    return RaceBench(environment, task, describe(environment, task_name or None), settings)


def finished_run(folder: Path) -> tuple[str, list[Trained]]:
    """Task and candidates of a finished search without racing; none of them was evaluated on its way."""
    archive = Archive(folder)
    try:
        settings = archive.fact("settings")
        attempts = [attempt for attempt in archive.attempts() if attempt.stage is Stage.TRAINED]
    finally:
        archive.close()
    trained = []
    for attempt in attempts:
        assert attempt.outcome is not None
        first = attempt.model_copy(update={"repeats": ()})  # its fitness is that of the training which the curve shows
        trained.append(_trained(first, attempt.iteration, {}))
    return f"{settings['env']}/{settings['task']}", trained


def searched_trainings(reference: str, searches: Sequence[int], second: bool, folder: Path | None) -> list[Trained]:
    """The first generations of searches with these seeds: eight proposals of the offline designer each, trained once.

    With `second` the ones after them, which come from each search's best.
    """
    file = None if folder is None else folder / f"{reference.replace('/', '-')}{'.second' if second else ''}.jsonl"
    if file is not None and file.exists():
        return _read(file)
    bench = race_bench(reference)
    trained = []
    for search in searches:
        attempts = generation(bench, OfflineDesigner(), 0, GENERATION, search, [])
        if second:
            attempts = generation(bench, OfflineDesigner(), 1, GENERATION, search, attempts)
        trained += [_trained(attempt, search, bench.evaluated[attempt.id]) for attempt in attempts]
    return _write(file, trained)


def repeated_trainings(reference: str, first: Sequence[Trained], folder: Path | None) -> list[Trained]:
    """These rewards trained again, once from each of the further seeds."""
    file = None if folder is None else folder / f"{reference.replace('/', '-')}.repeats.jsonl"
    if file is not None and file.exists():
        return _read(file)
    bench = race_bench(reference)
    jobs = {f"{each.reward}+{seed}": (each, each.seed + seed) for each in first for seed in FURTHER_SEEDS}
    results = bench.train(
        {name: each.source for name, (each, _) in jobs.items()}, {name: seed for name, (_, seed) in jobs.items()}
    )
    trained = [
        Trained(
            reward=jobs[name][0].reward,
            source=jobs[name][0].source,
            seed=jobs[name][1],
            fitness=evaluation.fitness_mean(),
            checkpoints=finished.outcome.checkpoints,
            evaluated=bench.evaluated[name],
        )
        for name, (finished, _, evaluation) in results.items()
    ]
    return _write(file, trained)


def _trained(attempt: Attempt, search: int, evaluated: dict[int, float]) -> Trained:
    assert attempt.outcome is not None
    assert attempt.fitness is not None
    return Trained(
        reward=f"{search}-{attempt.sample}",
        source=attempt.proposal.source,
        seed=attempt.seed,
        fitness=attempt.fitness,
        checkpoints=attempt.outcome.checkpoints,
        evaluated=evaluated,
    )


def _read(file: Path) -> list[Trained]:
    return [Trained.model_validate_json(line) for line in file.read_text().splitlines()]


def _write(file: Path | None, trained: list[Trained]) -> list[Trained]:
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(each.model_dump_json() + "\n" for each in trained))
    return trained
