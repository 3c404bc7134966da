"""Attempts after their verdict: reviewed, trained, scored at rungs, diagnosed, repeated."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from eureka_agent import records
from eureka_agent.analysis.diagnose import diagnose
from eureka_agent.archive import artefacts
from eureka_agent.archive.run_folder import Run
from eureka_agent.arguments import variable_of
from eureka_agent.critic.critic import Critic
from eureka_agent.designer.source_tools import parameter_names
from eureka_agent.journal import entries
from eureka_agent.llm.interface import LanguageModelError
from eureka_agent.search.seeds import derive_seed
from eureka_agent.search.trial import Trial, TrialRequest, TrialRunner
from eureka_agent.settings import SearchSettings
from eureka_agent.summaries import checkpoint_iterations, checkpoints_of


class AttemptTrainer:
    """Trains accepted attempts, with their reviews and their scores at rungs."""

    def __init__(
        self, run: Run, critic: Critic, trials: TrialRunner, observer: entries.Observer
    ) -> None:
        self._run, self._critic, self._trials = run, critic, trials
        self._observer = observer
        self._practice = practice_env_steps(run.settings)
        self._rungs = rung_env_steps(run.settings)

    async def train(
        self, attempt: records.Attempt, rung_scored: Callable[[], None]
    ) -> records.Attempt:
        """Train an attempt while the reviewer reads its reward; a rejection ends the training.
        `rung_scored` is called after a score at a rung is recorded."""
        review = asyncio.create_task(self._review(attempt))
        # nobody awaits it after a training that failed before
        review.add_done_callback(lambda task: task.cancelled() or task.exception())
        request = TrialRequest(
            attempt.id,
            "search",
            attempt.proposal.reward,
            attempt.seed,
            artefacts.attempt_folder(self._run.folder, attempt.id),
            # only what ranks needs scores on the way
            rungs=tuple(sorted({*self._rungs, *self._practice})) if attempt.is_ranked else (),
            score_rung=partial(self._score_rung, attempt.id, review, rung_scored),
            curriculum=self._curriculum(attempt),
        )
        training = asyncio.create_task(self._trials.run(request))
        try:
            await asyncio.wait({review, training}, return_when=asyncio.FIRST_COMPLETED)
            if training.done():
                training.result()  # an error need not wait for the review
            reviewed = await review
            if reviewed.stage is records.Stage.REJECTED:
                training.cancel()
                await asyncio.wait({training})  # its slot is free then
                self._trials.withdraw(request, reviewed.reason, ended=not training.cancelled())
                return reviewed
            await self._end(attempt, await training)
        finally:
            review.cancel()
            training.cancel()
        trained = self._archived(attempt.id)
        artefacts.write_diagnosis(self._run.folder, trained)
        self._trials.settle(request)
        return trained

    async def repeat(self, attempt_id: str, iteration: int, seed: int) -> None:
        """Train this attempt's reward once more, after generation `iteration`."""
        attempt = self._archived(attempt_id)
        folder = artefacts.repeat_folder(self._run.folder, attempt_id, seed)
        reward, curriculum = attempt.proposal.reward, self._curriculum(attempt)
        request = TrialRequest(attempt_id, "repeat", reward, seed, folder, curriculum=curriculum)
        trial = await self._trials.run(request)
        made = records.Repeat(
            iteration=iteration,
            seed=seed,
            outcome=trial.outcome,
            failure=trial.failure,
            retries=trial.retries,
        )
        self._observer(entries.AttemptRepeated(attempt=attempt_id, repeat=made))
        self._trials.settle(request)

    async def _review(self, attempt: records.Attempt) -> records.Attempt:
        """The attempt with the reviewer's findings, which may reject it."""
        if attempt.verdict is None:
            return attempt
        try:
            verdict = await self._critic.review(
                attempt.proposal.reward, attempt.verdict, attempt.id
            )
        except LanguageModelError as error:  # the training is worth more than the review
            self._observer(
                entries.Notice(
                    text=f"{attempt.id} goes on without a review: {error.message}", level="warning"
                )
            )
            return attempt
        if verdict is attempt.verdict:
            return attempt
        self._observer(entries.Reviewed(attempt=attempt.id, verdict=verdict))
        reviewed = self._archived(attempt.id)
        artefacts.write_verdict(self._run.folder, reviewed)
        return reviewed

    async def _end(self, attempt: records.Attempt, trial: Trial) -> None:
        """Record outcome and diagnosis of a training."""
        settings, outcome = self._run.settings, trial.outcome
        if outcome is None:
            reached = checkpoints_of(trial.points, settings.updates, settings.checkpoints)
            outcome = broken_off_outcome(reached) if reached else None
        trajectories = None
        if trial.evaluation is not None:
            trajectories = (
                artefacts.attempt_folder(self._run.folder, attempt.id) / artefacts.TRAJECTORIES
            )
        # in a thread, since a long search has thousands of points
        diagnosis = await asyncio.to_thread(
            diagnose,
            trial.outcome,
            trial.points,
            trial.evaluation,
            self._run.description,
            trial.failure,
            trajectories,
            {variable_of(each) for each in parameter_names(attempt.proposal.reward.source)},
        )
        self._observer(
            entries.AttemptEnded(
                attempt=attempt.id,
                stage=records.Stage.FAILED if trial.outcome is None else records.Stage.TRAINED,
                reason=trial.failure,
                retries=trial.retries,
                outcome=outcome,
                diagnosis=diagnosis,
            )
        )

    async def _score_rung(
        self,
        attempt_id: str,
        review: asyncio.Task[records.Attempt],
        rung_scored: Callable[[], None],
        env_steps: int,
        policy: Path,
    ) -> None:
        """Score a policy at a rung, after its review, so that no record depends on timing. All
        candidates start from the same states, which makes their comparison sharper."""
        settings = self._run.settings
        if env_steps in self._practice:
            path = artefacts.attempt_folder(self._run.folder, attempt_id) / artefacts.PRACTICE
            seed = derive_seed(settings.seed, "practice")
            await self._trials.score(policy, seed, PRACTICE_EPISODES, trajectories=path)
        await asyncio.wait({review})
        attempt = self._archived(attempt_id)
        if (
            env_steps in self._rungs
            and attempt.stage is records.Stage.ACCEPTED
            and all(score.env_steps != env_steps for score in attempt.rungs)
        ):
            seed = derive_seed(settings.seed, "rung")
            evaluation = await self._trials.score(policy, seed, settings.scoring_episodes)
            fitness = None if evaluation is None else evaluation.fitness_mean()
            score = records.RungScore(env_steps=env_steps, fitness=fitness, evaluation=evaluation)
            self._observer(entries.RungScored(attempt=attempt_id, score=score))
            rung_scored()
        policy.unlink(missing_ok=True)

    def _curriculum(self, attempt: records.Attempt) -> tuple[records.ParameterStage, ...]:
        """Stages of its distribution of parameters; none under the defaults."""
        distribution, steps = attempt.proposal.distribution, self._run.settings.env_steps
        stages = () if distribution is None else distribution.curriculum
        begins = {round(each.begins * steps): each.parameters for each in stages}
        return tuple(
            records.ParameterStage(env_steps=at, parameters=of) for at, of in begins.items()
        )

    def _archived(self, attempt_id: str) -> records.Attempt:
        return self._run.archive.state.by_id[attempt_id]


PRACTICE_SHARE = 0.2
"""Part of a training after which episodes are kept: they tell most there (benchmarks/LOG.md)."""
PRACTICE_EPISODES = 2


def rung_env_steps(settings: SearchSettings) -> tuple[int, ...]:
    """Env steps at the rungs: the first checkpoints after the given parts, without the last one."""
    return _env_steps_at(settings, settings.rungs)


def practice_env_steps(settings: SearchSettings) -> tuple[int, ...]:
    """Env steps at which episodes for the comparison of drafts are kept, if drafts are compared."""
    return _env_steps_at(settings, (PRACTICE_SHARE,)) if settings.drafts_of_each > 1 else ()


def _env_steps_at(settings: SearchSettings, shares: Sequence[float]) -> tuple[int, ...]:
    """Env steps of the first checkpoints after these parts of a training, without its last one."""
    due = checkpoint_iterations(settings.updates, settings.checkpoints)[:-1]
    reached = (
        next((each for each in due if each >= share * settings.updates), None) for share in shares
    )
    rungs = sorted({iteration for iteration in reached if iteration is not None})
    return tuple(each * settings.horizon * settings.num_envs for each in rungs)


def broken_off_outcome(checkpoints: Sequence[records.CheckpointRecord]) -> records.Outcome:
    """The outcome of a training that ended early: no policy, so no fitness."""
    known = [
        (record.fitness, place)
        for place, record in enumerate(checkpoints)
        if record.fitness is not None
    ]
    best = max(known, default=(None, len(checkpoints) - 1))
    return records.Outcome(
        env_steps=checkpoints[-1].env_steps,
        seconds=0.0,
        checkpoints=tuple(checkpoints),
        best_checkpoint=best[1],
        training_fitness=best[0],
    )
