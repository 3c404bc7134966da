"""Final trainings: finalists and baselines from the same fresh seeds, each policy scored apart."""

from __future__ import annotations

import asyncio
import filecmp
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from eureka_agent.analysis.coverage import nothing_told_apart
from eureka_agent.archive import artefacts
from eureka_agent.archive.cache import BaselineCache
from eureka_agent.archive.files import copy_file, write_text
from eureka_agent.archive.run_folder import Run
from eureka_agent.archive.safe_files import inside
from eureka_agent.errors import RunFolderError
from eureka_agent.journal import entries
from eureka_agent.journal.progress import TrainingEnded
from eureka_agent.posterior import posterior
from eureka_agent.ranking import all_scores, are_level
from eureka_agent.records import Attempt, FinalTraining, Score
from eureka_agent.rewards import RewardSpecification
from eureka_agent.search.card import final_trainings_of
from eureka_agent.search.scoring import score, score_table
from eureka_agent.search.seeds import final_seeds
from eureka_agent.search.trial import TrialRequest, TrialRunner

BASELINE_PRIORITY = 1
"""Baselines take the slots that no candidate needs."""


class FinalTrainings:
    """Trains finalists and baselines once per seed, unless archive or cache has the training."""

    def __init__(
        self, run: Run, trials: TrialRunner, cache: BaselineCache, observer: entries.Observer
    ) -> None:
        self._run, self._trials, self._cache = run, trials, cache
        self._observer = observer
        self._seeds = final_seeds(run.settings.final_seeds)
        self._baseline_seeds = final_seeds(run.settings.seeds_of_baselines)
        self._baselines_known = asyncio.Event()
        self._baselines = run.description.baselines
        self._card = run.archive.state.began.card

    async def baselines(self) -> None:
        """Train the human and the sparse reward, or take their scores from the run's card."""
        if self._card is not None:
            for training in final_trainings_of(self._card, self._run.settings.steps_of_a_training):
                if (training.name, training.seed) not in self._run.archive.state.by_training:
                    self._observer(entries.FinalTrained(training=training))
            self._baselines_known.set()
            return
        async with asyncio.TaskGroup() as group:
            for name, reward in self._baselines.items():
                folder = artefacts.training_folder(self._run.folder, name, 0).parent
                write_text(folder / artefacts.REWARD, reward.source)
                for seed in self._baseline_seeds:
                    group.create_task(self._baseline(name, reward, seed))
        self._baselines_known.set()

    async def known(self) -> None:
        """Wait until every baseline's training is archived, failures included."""
        known = {(training.name, training.seed) for training in self._run.archive.trainings()}
        if not {(name, seed) for name in self._baselines for seed in self._baseline_seeds} <= known:
            await self._baselines_known.wait()

    async def _baseline(self, name: str, reward: RewardSpecification, seed: int) -> None:
        kind: entries.TrainingKind = "human" if name == "human" else "sparse"
        if self._report_if_known(name, kind, seed):
            return
        async with self._cache.alone(reward, seed):
            await self._found_or_trained(name, kind, reward, seed)

    async def _found_or_trained(
        self, name: str, kind: entries.TrainingKind, reward: RewardSpecification, seed: int
    ) -> None:
        cached = self._cache.find(reward, seed)
        if cached is not None:
            outcome, policy = cached
            copy_file(
                policy, artefacts.training_folder(self._run.folder, name, seed) / artefacts.POLICY
            )
            training = FinalTraining(name=name, seed=seed, outcome=outcome, cached=True)
            self._observer(entries.FinalTrained(training=training))
            self._report_if_known(name, kind, seed)
            return
        training = await self._train(name, kind, reward, seed, BASELINE_PRIORITY)
        if training.outcome is None:
            return
        policy = artefacts.training_folder(self._run.folder, name, seed) / artefacts.POLICY
        try:
            self._cache.put(reward, seed, training.outcome, policy)
        except RunFolderError as error:  # only later runs lose by it
            text = f"this baseline is not kept for later runs: {error.message}"
            self._observer(entries.Notice(text=text, level="warning"))

    async def finalists(self, trained: Sequence[Attempt]) -> None:
        """Train the first of these attempts from fresh seeds, as long as they may win."""
        why = nothing_told_apart(trained, self._run.description)
        attempts = () if why else trained[: self._run.settings.finalists]
        self._observer(
            entries.FinalStarted(attempts=tuple(each.id for each in attempts), skipped=why)
        )
        reported = set[tuple[str, int]]()
        for wanted in self._rounds(attempts):
            async with asyncio.TaskGroup() as group:
                for attempt in attempts:
                    for seed in self._seeds[: wanted.get(attempt.id, 0)]:
                        if (attempt.id, seed) in reported:
                            continue
                        reported.add((attempt.id, seed))
                        if not self._report_if_known(attempt.id, "final", seed):
                            reward = attempt.proposal.reward
                            group.create_task(self._train(attempt.id, "final", reward, seed))

    def _rounds(self, attempts: Sequence[Attempt]) -> Iterator[Mapping[str, int]]:
        """Seeds that finalists are to have, round by round, recorded ones first. Where a person's
        strengths rank, all get all seeds."""
        seeds, ids = len(self._seeds), [each.id for each in attempts]
        if not ids:
            return
        if any(each.strength is not None for each in attempts):
            yield dict.fromkeys(ids, seeds)
            return
        for recorded in self._run.archive.state.final_rounds:
            yield {name: min(number, seeds) for name, number in recorded.seeds.items()}
        while wanted := self._next_round(ids):
            self._observer(entries.FinalRound(seeds=wanted))
            yield wanted

    def _next_round(self, finalists: Sequence[str]) -> dict[str, int]:
        """The seeds of the round after those that are trained; empty at the end."""
        state = self._run.archive.state
        finals = {name: score(name, state.trainings()) for name in finalists}
        trained = {name: len(found.seeds) for name, found in finals.items()}
        scores = all_scores(state.attempts(), list(finals.values()))
        return next_round(scores, trained, len(self._seeds))

    def scores(self) -> tuple[Score, ...]:
        """The table of scores: finalists best first, then the baselines."""
        scores = score_table(self._run.archive.trainings())
        for each in scores:
            self._observer(entries.Scored(score=each))
        return scores

    def _report_if_known(self, name: str, kind: entries.TrainingKind, seed: int) -> bool:
        """Report a training that the archive has. False if it has not."""
        known = self._run.archive.state.by_training.get((name, seed))
        if known is None:
            return False
        self._observer(
            TrainingEnded(
                job=f"{name}@{seed}",
                label=name,
                training=kind,
                fitness=None if known.outcome is None else known.outcome.fitness,
                failure=known.failure,
                taken_from="an earlier run" if known.cached else "what this run had trained before",
            )
        )
        return True

    async def _train(
        self,
        name: str,
        kind: entries.TrainingKind,
        reward: RewardSpecification,
        seed: int,
        priority: int = 0,
    ) -> FinalTraining:
        folder = artefacts.training_folder(self._run.folder, name, seed)
        request = TrialRequest(name, kind, reward, seed, folder, priority)
        trial = await self._trials.run(request)
        training = FinalTraining(
            name=name,
            seed=seed,
            outcome=trial.outcome,
            failure=trial.failure,
            retries=trial.retries,
        )
        self._observer(entries.FinalTrained(training=training))
        self._trials.settle(request)
        return training


def keep_best(run: Run, best: Attempt, trainings: Sequence[FinalTraining]) -> None:
    """Fill `best/` with the reward, and the policy of the typical final training, or of the
    search."""
    folder = inside(run.folder, artefacts.BEST)
    write_text(folder / artefacts.REWARD, best.proposal.reward.source)
    policy = artefacts.attempt_folder(run.folder, best.id) / artefacts.POLICY
    typical = typical_training(trainings, best.id)
    if typical is not None:
        policy = artefacts.training_folder(run.folder, best.id, typical.seed) / artefacts.POLICY
    kept = folder / artefacts.POLICY
    if not policy.is_file() and best.id in run.archive.state.pruned:
        for name in (artefacts.POLICY, artefacts.VIDEO, artefacts.GIF):  # of another attempt
            (folder / name).unlink(missing_ok=True)
        return
    if not (kept.is_file() and filecmp.cmp(policy, kept, shallow=False)):
        for name in (artefacts.VIDEO, artefacts.GIF):  # of another policy
            (folder / name).unlink(missing_ok=True)
    copy_file(policy, kept)


def typical_training(trainings: Sequence[FinalTraining], name: str) -> FinalTraining | None:
    """The final training of an attempt or baseline whose fitness is nearest to the mean."""
    known = [
        (training, training.outcome.fitness)
        for training in trainings
        if training.name == name
        and training.outcome is not None
        and training.outcome.fitness is not None
    ]
    if not known:
        return None
    mean = sum(fitness for _, fitness in known) / len(known)
    return min(known, key=lambda pair: abs(pair[1] - mean))[0]


LEAST_GAIN = 0.25
"""Expected gain over the leader, in deviations between seeds, that earns another seed
(benchmarks/LOG.md)."""


def next_round(
    scores: Mapping[str, Sequence[float]], trained: Mapping[str, int], seeds: int
) -> dict[str, int]:
    """Fresh seeds that finalists are to have after the next round; empty once one has all and no
    other is likely to beat it.

    `scores` of all trained rewards by name, in the search and at the end; `trained`: number of
    fresh seeds of each finalist so far; `seeds` that the winner has.
    """
    names = list(scores)
    found = posterior(list(scores.values()))
    means = dict(zip(names, found.means, strict=True))
    done = [name for name, number in trained.items() if number >= seeds]
    best = max(trained, key=lambda name: means[name])
    leader = max(done, key=lambda name: means[name], default=best)
    ahead = found.draws - found.draws[:, [names.index(leader)]]
    gains = dict(zip(names, np.maximum(ahead, 0.0).mean(axis=0), strict=True))
    least = LEAST_GAIN * float(np.sqrt((found.noise**2).mean()))
    gains |= {name: 0.0 for name in trained if are_level(scores[name], scores[leader])}
    return {
        name: seeds if name == best else number + 1
        for name, number in trained.items()
        if number < seeds and (name == leader or gains[name] > least)
    }
