"""Trainings to the end, from which `racing.py` replays races: made once, kept as JSON lines where a
folder is given."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import torch
from offline_designer import Bench, generation
from torch import Tensor

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
SCORE_EPISODES = 16
SCORE_SEED = 777
"""Other start states than those of the final score."""
FINAL_EPISODES = 32
FINAL_SEED = 12345
FURTHER_SEEDS = (1_000_000, 2_000_000)
"""Added to a training's seed."""


class PolicyScore(Record):
    """A policy's episodes without noise, on its training's way."""

    fitness: tuple[float, ...]
    """Of each episode."""
    cost: float
    """Processor time that they took, scored together with those of the generation's other
    candidates, over that of the whole training."""


class Trained(Record):
    """One training from its start to its end."""

    reward: str
    """`<search>-<sample>`; several trainings of one reward differ in their seed."""
    source: str
    seed: int
    fitness: float
    """Of the kept policy, without noise."""
    checkpoints: tuple[CheckpointRecord, ...]
    scores: tuple[PolicyScore, ...]
    """Of the policy at each checkpoint but the last, always from the same start states; empty where
    none was scored."""

    def kept(self, place: int) -> int:
        """The checkpoint whose policy the trainer keeps when it has come to this one."""
        best = 0
        for later in range(1, place + 1):
            fitness, highest = self.checkpoints[later].fitness, self.checkpoints[best].fitness
            if highest is None or (fitness is not None and fitness >= highest):
                best = later
        return best


class SideBySide(Policy):
    """Several policies, each of which acts in its part of the rows."""

    def __init__(self, policies: Sequence[Policy]) -> None:
        self._policies = policies

    @property
    def layer_sizes(self) -> tuple[int, ...]:
        """Those of each of them."""
        return self._policies[0].layer_sizes

    def act(self, observations: Tensor) -> Tensor:
        """Actions in [-1, 1], shape (batch, num_actions); the batch is cut into equal parts."""
        parts = observations.chunk(len(self._policies))
        return torch.cat(
            [policy.act(part) for policy, part in zip(self._policies, parts, strict=True)]
        )


@dataclass(frozen=True)
class RaceBench(Bench):
    """A task whose trainings are also scored on their way."""

    scores: dict[str, tuple[PolicyScore, ...]] = field(default_factory=dict)
    """By training; filled by `train`."""

    def train(
        self, sources: dict[str, str], seeds: dict[str, int], trusted: bool = False
    ) -> dict[str, tuple[MemberFinished, list[CurvePoint], Evaluation]]:
        """Every source trained once, side by side; failed ones are missing."""
        make = partial(self.environment.make, self.task)
        trainer = Trainer(make, self.task, self.settings, slots=min(16, len(sources)))
        variables = self.environment.environment_class.all_variables()
        for name, source in sources.items():
            trainer.submit(
                name,
                RewardFunction.from_source(source, variables, allow_private=trusted),
                seeds[name],
            )
        due = checkpoint_iterations(self.settings.updates, self.settings.checkpoints)[:-1]
        points: dict[str, list[CurvePoint]] = {name: [] for name in sources}
        scores: dict[str, list[PolicyScore]] = {name: [] for name in sources}
        seconds = dict.fromkeys(sources, 0.0)
        results = {}
        while trainer.busy:
            began = time.process_time()
            events = trainer.iterate()
            members = [event.job for event in events if isinstance(event, MemberProgress)]
            for job in members:
                seconds[job] += (time.process_time() - began) / len(members)
            for event in events:
                if isinstance(event, MemberProgress):
                    points[event.job].append(event.point)
                elif isinstance(event, MemberFailed):
                    print(f"  {event.job} failed: {event.reason}")
                elif isinstance(event, MemberFinished):
                    policy = Policy(event.policy, self.settings.activation, {})
                    evaluation = self._score([policy], FINAL_EPISODES, FINAL_SEED)
                    results[event.job] = event, points[event.job], evaluation
            reached = [job for job in trainer.running() if len(points[job]) in due]
            for job, score in self._scores_on_the_way(trainer, reached).items():
                scores[job].append(score)
        for job in results:
            self.scores[job] = tuple(
                each.model_copy(update={"cost": each.cost / seconds[job]}) for each in scores[job]
            )
        return results

    def _scores_on_the_way(self, trainer: Trainer, jobs: Sequence[str]) -> dict[str, PolicyScore]:
        """Of the policies as they are now, their cost in seconds."""
        if not jobs:
            return {}
        # not the kept policy, which a trainer tells: that one's score is the one at its checkpoint,
        # and is known
        slots = {member.job.name: slot for slot, member in trainer._members.items()}
        policies = [
            Policy(trainer._population.policy_tensors(slots[job]), self.settings.activation, {})
            for job in jobs
        ]
        began = time.process_time()
        episodes = self._score(policies, SCORE_EPISODES, SCORE_SEED).episodes
        cost = (time.process_time() - began) / len(jobs)
        return {
            job: PolicyScore(
                fitness=tuple(
                    each.fitness
                    for each in episodes[place * SCORE_EPISODES : (place + 1) * SCORE_EPISODES]
                ),
                cost=cost,
            )
            for place, job in enumerate(jobs)
        }

    def _score(self, policies: Sequence[Policy], episodes: int, seed: int) -> Evaluation:
        """The policies' episodes, so many of the first one, then of the second one, …"""
        rows = self.environment.make(self.task, len(policies) * episodes)
        try:
            return evaluate_policy(
                rows, self.task, SideBySide(policies), rows.num_envs, record=False, seed=seed
            )[0]
        finally:
            rows.close()


def race_bench(reference: str) -> RaceBench:
    """A built-in task with its own settings, from `env/task`."""
    environment_name, _, task_name = reference.partition("/")
    environment = load_environment(environment_name)
    _, task = environment.task(task_name or None)
    budget = {
        "env_steps": task.training.env_steps,
        "num_envs": task.training.num_envs,
        **task.training.overrides,
    }
    settings = TrainingSettings.model_validate(budget)
    return RaceBench(environment, task, describe(environment, task_name or None), settings)


def finished_run(folder: Path) -> tuple[str, list[Trained]]:
    """Task and candidates of a finished search without racing; none of them was scored on its
    way."""
    archive = Archive(folder)
    try:
        settings = archive.fact("settings")
        attempts = [attempt for attempt in archive.attempts() if attempt.stage is Stage.TRAINED]
    finally:
        archive.close()
    trained = []
    for attempt in attempts:
        assert attempt.outcome is not None
        first = attempt.model_copy(
            update={"repeats": ()}
        )  # its fitness is that of the training which the curve shows
        trained.append(_trained(first, attempt.iteration, ()))
    return f"{settings['env']}/{settings['task']}", trained


def searched_trainings(
    reference: str, searches: Sequence[int], second: bool, folder: Path | None
) -> list[Trained]:
    """The first generations of searches with these seeds: eight proposals of the offline designer
    each, trained once.

    With `second` the ones after them, which come from each search's best; the first ones are kept
    in the folder too.
    """
    name = reference.replace("/", "-")
    first_file, second_file = (
        None if folder is None else folder / f"{name}{kind}.jsonl" for kind in ("", ".second")
    )
    file = second_file if second else first_file
    if file is not None and file.exists():
        return _read(file)
    bench = race_bench(reference)
    generations: tuple[list[Trained], list[Trained]] = [], []
    for search in searches:
        attempts = generation(bench, OfflineDesigner(), 0, GENERATION, search, [])
        generations[0].extend(
            _trained(attempt, search, bench.scores[attempt.id]) for attempt in attempts
        )
        if second:
            attempts = generation(bench, OfflineDesigner(), 1, GENERATION, search, attempts)
            generations[1].extend(
                _trained(attempt, search, bench.scores[attempt.id]) for attempt in attempts
            )
    if not second:
        return _write(first_file, generations[0])
    if first_file is not None and not first_file.exists():
        _write(first_file, generations[0])
    return _write(second_file, generations[1])


def repeated_trainings(
    reference: str, first: Sequence[Trained], folder: Path | None
) -> list[Trained]:
    """These rewards trained again, once from each of the further seeds."""
    file = None if folder is None else folder / f"{reference.replace('/', '-')}.repeats.jsonl"
    if file is not None and file.exists():
        return _read(file)
    bench = race_bench(reference)
    jobs = {
        f"{each.reward}+{seed}": (each, each.seed + seed)
        for each in first
        for seed in FURTHER_SEEDS
    }
    results = bench.train(
        {name: each.source for name, (each, _) in jobs.items()},
        {name: seed for name, (_, seed) in jobs.items()},
    )
    trained = [
        Trained(
            reward=jobs[name][0].reward,
            source=jobs[name][0].source,
            seed=jobs[name][1],
            fitness=evaluation.fitness_mean(),
            checkpoints=finished.outcome.checkpoints,
            scores=bench.scores[name],
        )
        for name, (finished, _, evaluation) in results.items()
    ]
    return _write(file, trained)


def _trained(attempt: Attempt, search: int, scores: tuple[PolicyScore, ...]) -> Trained:
    assert attempt.outcome is not None
    assert attempt.fitness is not None
    return Trained(
        reward=f"{search}-{attempt.sample}",
        source=attempt.proposal.reward.source,
        seed=attempt.seed,
        fitness=attempt.fitness,
        checkpoints=attempt.outcome.checkpoints,
        scores=scores,
    )


def _read(file: Path) -> list[Trained]:
    return [Trained.model_validate_json(line) for line in file.read_text().splitlines()]


def _write(file: Path | None, trained: list[Trained]) -> list[Trained]:
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(each.model_dump_json() + "\n" for each in trained))
    return trained
