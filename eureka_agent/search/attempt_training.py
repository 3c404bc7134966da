"""Attempts after their verdict: reviewed, trained, scored at rungs, diagnosed, repeated."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from pathlib import Path

from eureka_agent.analysis.diagnose import diagnose
from eureka_agent.archive.artefacts import (
    TRAJECTORIES,
    attempt_folder,
    repeat_folder,
    write_diagnosis,
    write_verdict,
)
from eureka_agent.archive.run_folder import Run
from eureka_agent.critic.critic import Critic
from eureka_agent.journal.entries import (
    AttemptEnded,
    AttemptRepeated,
    Notice,
    Observer,
    Reviewed,
    RungDecided,
    RungScored,
    TrainingWaits,
)
from eureka_agent.llm.interface import LanguageModelError
from eureka_agent.records import Attempt, CurvePoint, Operator, Repeat, RungScore, Stage
from eureka_agent.search.racing import Race, Rungs, broken_off_outcome
from eureka_agent.search.seeds import derive_seed
from eureka_agent.search.trial import Trial, TrialRequest, TrialRunner, drop_files


class AttemptTrainer:
    """Trains accepted attempts, with their reviews and their races."""

    def __init__(self, run: Run, critic: Critic, trials: TrialRunner, observer: Observer) -> None:
        self._run = run
        self._critic = critic
        self._trials = trials
        self._observer = observer

    async def train(self, attempt: Attempt, race: Race | None) -> Attempt:
        """Train an attempt while the reviewer reads its reward, since a model is slow and rejects
        little.

        A candidate waits for its review at its first pause, before the race hears of its score, so
        the race never depends on timing. Without pauses the review comes first.
        """
        review = asyncio.create_task(self._review(attempt))
        review.add_done_callback(_retrieve_error)
        try:
            if race is None and (reviewed := await review).stage is Stage.REJECTED:
                return reviewed
            return await self._train(attempt, review, race)
        finally:
            review.cancel()

    async def repeat(self, attempt_id: str, iteration: int, seed: int) -> None:
        """Train this attempt's reward once more, after generation `iteration`."""
        attempt = self._archived(attempt_id)
        folder = repeat_folder(self._run.folder, attempt_id, seed)
        request = TrialRequest(attempt_id, "repeat", attempt.proposal.reward, seed, folder)
        trial = await self._trials.run(request)
        made = Repeat(
            iteration=iteration,
            seed=seed,
            outcome=trial.outcome,
            failure=trial.failure,
            retries=trial.retries,
        )
        self._observer(AttemptRepeated(attempt=attempt_id, repeat=made))
        self._trials.settle(request)

    async def _review(self, attempt: Attempt) -> Attempt:
        """The attempt with the reviewer's findings, which may reject it."""
        # a tuned reward was reviewed with its parent; of one that passed a rung without a review,
        # for lack of money, others were compared with it or made from it
        tuned = attempt.proposal.operator is Operator.TUNE_WEIGHTS
        if tuned or attempt.verdict is None or attempt.rungs:
            return attempt
        try:
            verdict = await self._critic.review(
                attempt.proposal.reward, attempt.verdict, attempt.id
            )
        except LanguageModelError as error:  # the training is worth more than the review
            self._observer(
                Notice(
                    text=f"{attempt.id} goes on without a review: {error.message}", level="warning"
                )
            )
            return attempt
        if verdict is attempt.verdict:
            return attempt
        self._observer(Reviewed(attempt=attempt.id, verdict=verdict))
        reviewed = self._archived(attempt.id)
        write_verdict(self._run.folder, reviewed)
        return reviewed

    async def _train(
        self, attempt: Attempt, review: asyncio.Task[Attempt], race: Race | None
    ) -> Attempt:
        folder = attempt_folder(self._run.folder, attempt.id)
        request = TrialRequest(attempt.id, "search", attempt.proposal.reward, attempt.seed, folder)
        if race is not None:
            on_pause = partial(self._at_rung, attempt, request.job, review, race)
            request = replace(request, pauses=race.rungs.env_steps, on_pause=on_pause)
        trial = await self._trials.run(request)
        reviewed = await review
        if reviewed.stage is Stage.REJECTED:
            drop_files(request)
            self._trials.settle(request)
            return reviewed
        await self._end(attempt, trial, None if race is None else race.rungs)
        trained = self._archived(attempt.id)
        write_diagnosis(self._run.folder, trained)
        self._rung_episodes(attempt).unlink(missing_ok=True)
        self._trials.settle(request)
        return trained

    async def _end(self, attempt: Attempt, trial: Trial, rungs: Rungs | None) -> None:
        """Record outcome and diagnosis of a training."""
        outcome = trial.outcome
        if outcome is None and rungs is not None:
            reached = rungs.checkpoints(trial.points)
            outcome = broken_off_outcome(reached) if reached else None
        evaluation, trajectories = trial.evaluation, None
        if evaluation is not None:
            trajectories = attempt_folder(self._run.folder, attempt.id) / TRAJECTORIES
        if trial.stopped and (scores := self._archived(attempt.id).rungs):
            evaluation = scores[-1].evaluation
            at_rung = self._rung_episodes(attempt)
            trajectories = at_rung if at_rung.is_file() else None
        # in a thread, since a long search has thousands of points
        diagnosis = await asyncio.to_thread(
            diagnose,
            outcome if trial.stopped else trial.outcome,
            trial.points,
            evaluation,
            self._run.description,
            trial.failure,
            trajectories,
            ended=not trial.stopped,
        )
        ended = Stage.FAILED if trial.outcome is None else Stage.TRAINED
        self._observer(
            AttemptEnded(
                attempt=attempt.id,
                stage=Stage.STOPPED if trial.stopped else ended,
                reason=trial.failure,
                retries=trial.retries,
                outcome=outcome,
                diagnosis=diagnosis,
            )
        )

    async def _at_rung(
        self,
        attempt: Attempt,
        job: str,
        review: asyncio.Task[Attempt],
        race: Race,
        points: tuple[CurvePoint, ...],
        policy: Path | None,
    ) -> str:
        """Score the policy and wait for the race's decision: the reason to stop, or ""."""
        if policy is not None and not review.done():
            self._observer(TrainingWaits(job=job, waits_for="review"))
        reviewed = await review
        if reviewed.stage is Stage.REJECTED:
            return f"turned down by its review: {reviewed.reason}"
        if policy is not None:  # without one, an earlier process passed the rung
            self._observer(TrainingWaits(job=job, waits_for="others"))
        rung = max(
            rung for rung, steps in enumerate(race.rungs.env_steps) if points[-1].env_steps >= steps
        )
        env_steps = race.rungs.env_steps[rung]
        score = await self._score(attempt, race.rungs, rung, policy)
        stop = self._run.archive.state.decisions.get((attempt.id, env_steps))
        if stop is None:
            stop = await race.at_rung(attempt, rung, score)
            self._observer(RungDecided(attempt=attempt.id, env_steps=env_steps, stop=stop))
        else:
            await race.add_scores(self._archived(attempt.id))
        if not stop and policy is not None:
            self._observer(TrainingWaits(job=job, waits_for="slot"))
        return stop

    async def _score(
        self, attempt: Attempt, rungs: Rungs, rung: int, policy: Path | None
    ) -> float | None:
        """The policy's score at this rung, archived or new.

        All candidates of a run are scored from the same start states, which makes the comparison
        sharper.
        """
        env_steps, settings = rungs.env_steps[rung], self._run.settings
        if policy is not None and all(
            score.env_steps != env_steps for score in self._archived(attempt.id).rungs
        ):
            seed = derive_seed(settings.seed, "rung")
            episodes = self._rung_episodes(attempt)
            evaluation = await self._trials.score(policy, seed, settings.scoring_episodes, episodes)
            fitness = None if evaluation is None else evaluation.fitness_mean()
            score = RungScore(env_steps=env_steps, fitness=fitness, evaluation=evaluation)
            self._observer(RungScored(attempt=attempt.id, score=score))
        return rungs.score(rung, self._archived(attempt.id))

    def _rung_episodes(self, attempt: Attempt) -> Path:
        """Path of the worst and the best episode at the last rung, for the diagnosis of a stopped
        training."""
        return attempt_folder(self._run.folder, attempt.id) / f"rung-{TRAJECTORIES}"

    def _archived(self, attempt_id: str) -> Attempt:
        return self._run.archive.state.by_id[attempt_id]


def _retrieve_error(review: asyncio.Task[Attempt]) -> None:
    """Retrieve a review's error, which nobody awaits after a training that failed before."""
    if not review.cancelled():
        review.exception()
