"""The life of an attempt: proposed, judged, trained, diagnosed; each stage is archived before the
next begins."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from eureka_agent.analysis.diagnose import diagnose
from eureka_agent.archive.artefacts import (
    TRAJECTORIES,
    attempt_folder,
    repeat_folder,
    write_diagnosis,
    write_proposal,
    write_verdict,
)
from eureka_agent.archive.run_folder import Run
from eureka_agent.critic.critic import Critic
from eureka_agent.critic.gate import only_gate_refused, with_gate_warnings
from eureka_agent.designer.interface import Designer, DesignRequest, Rejection
from eureka_agent.journal.entries import (
    AttemptEnded,
    AttemptRepeated,
    Judged,
    Notice,
    Observer,
    Proposed,
    Reviewed,
    RungDecided,
    RungScored,
    TrainingWaits,
)
from eureka_agent.llm.budget import BudgetSpentError
from eureka_agent.llm.interface import LanguageModelError
from eureka_agent.records import (
    Attempt,
    CurvePoint,
    Operator,
    Proposal,
    Repeat,
    RungScore,
    Stage,
    Verdict,
)
from eureka_agent.search.gate_trust import GateOfRound
from eureka_agent.search.memory import RunMemory
from eureka_agent.search.racing import Race, Rungs, broken_off_outcome
from eureka_agent.search.seeds import derive_seed
from eureka_agent.search.trial import TrialRequest, TrialRunner, drop_files

ENDED = (Stage.REJECTED, Stage.FAILED, Stage.STOPPED, Stage.TRAINED)
"""Stages after which nothing more happens to an attempt."""

RUNG_TRAJECTORIES = f"rung-{TRAJECTORIES}"


def attempt_id(iteration: int, sample: int, revision: int) -> str:
    """`2-05`, or `2-05-r1` for its first revision. Iterations and samples count from 0 inside and
    from 1 in names."""
    return f"{iteration + 1}-{sample + 1:02d}" + (f"-r{revision}" if revision else "")


class AttemptRunner:
    """Takes attempts through their stages, from whatever stage the archive has them at."""

    def __init__(
        self, run: Run, designer: Designer, critic: Critic, trials: TrialRunner, observer: Observer
    ) -> None:
        self._run = run
        self._designer = designer
        self._critic = critic
        self._trials = trials
        self._observer = observer
        self._memory = RunMemory(run, in_order=not designer.concurrent)
        self._gates: dict[tuple[int, int], GateOfRound] = {}
        """By iteration and sample."""

    def open_round(self, iteration: int, samples: range) -> None:
        """Begin to count what the trajectory gate says of a round's proposals; `leave_round` tells
        of those that there will not be."""
        in_order = not self._designer.concurrent
        gate = GateOfRound(
            self._run, iteration, samples, in_order=in_order, observer=self._observer
        )
        self._gates |= {(iteration, sample): gate for sample in samples}

    def leave_round(self, iteration: int, sample: int) -> None:
        """There will be no proposal for this place, or no verdict on it."""
        self._gates[iteration, sample].tell(sample, None)

    async def propose(self, iteration: int, sample: int, request: DesignRequest) -> Attempt:
        """The first proposal for this place: the archived one, or a new one."""
        known = self._run.archive.attempt(attempt_id(iteration, sample, 0))
        return known or self._propose(iteration, sample, 0, await self._designer.propose(request))

    async def settle(self, attempt: Attempt, request: DesignRequest) -> Attempt:
        """Have the attempt, and its revisions after rejections, judged until one is accepted or
        none is left; returns the last of them."""
        while True:
            if attempt.stage is Stage.PROPOSED:
                attempt = await self._judge(attempt)
            elif attempt.verdict is not None:
                attempt = await self._judged_again(attempt, attempt.verdict)
            if (
                attempt.stage is not Stage.REJECTED
                or attempt.revision >= self._run.settings.revisions
            ):
                return attempt
            try:
                attempt = await self._revise(attempt, request)
            except BudgetSpentError:  # it stays as it is
                return attempt

    async def finish(
        self, attempt: Attempt, request: DesignRequest, race: Race | None = None
    ) -> Attempt:
        """Take a settled attempt to its end; where its review turns it down, what is made of it
        then.

        In a race it may be stopped; one that has ended before tells the others how far it had come.
        """
        while attempt.stage is Stage.ACCEPTED:
            attempt = await self._train(attempt, race)
            if attempt.stage is not Stage.REJECTED:
                return attempt
            attempt = await self.settle(attempt, request)
        if race is not None:
            await race.tell(attempt)
        return attempt

    def _propose(self, iteration: int, sample: int, revision: int, proposal: Proposal) -> Attempt:
        proposed = Proposed(
            attempt=attempt_id(iteration, sample, revision),
            iteration=iteration,
            sample=sample,
            revision=revision,
            proposal=proposal,
            seed=derive_seed(self._run.settings.seed, "training", iteration, sample, revision),
        )
        self._observer(proposed)
        attempt = self._archived(proposed.attempt)
        write_proposal(self._run.folder, attempt)
        return attempt

    async def _revise(self, rejected: Attempt, request: DesignRequest) -> Attempt:
        known = self._run.archive.attempt(
            attempt_id(rejected.iteration, rejected.sample, rejected.revision + 1)
        )
        if known is not None:
            return known
        assert rejected.verdict is not None  # a rejected attempt was judged
        revision = rejected.revision + 1
        request = replace(
            request,
            attempt=attempt_id(rejected.iteration, rejected.sample, revision),
            revision=revision,
            rejections=self._rejections_before(rejected),
        )
        proposal = await self._designer.revise(request, rejected.proposal, rejected.verdict)
        return self._propose(rejected.iteration, rejected.sample, revision, proposal)

    def _rejections_before(self, rejected: Attempt) -> tuple[Rejection, ...]:
        """The first proposal of this place and its revisions, up to the one that is rejected
        now."""
        ids = (
            attempt_id(rejected.iteration, rejected.sample, revision)
            for revision in range(rejected.revision)
        )
        return tuple(
            Rejection(attempt.proposal, attempt.verdict)
            for attempt in map(self._archived, ids)
            if attempt.verdict is not None
        )

    async def _judge(self, attempt: Attempt) -> Attempt:
        verdict = await self._critic.judge(
            attempt.proposal.reward, memory=self._memory.before(attempt)
        )
        return self._judged(attempt, await self._after_gate(attempt, verdict))

    async def _after_gate(self, attempt: Attempt, verdict: Verdict) -> Verdict:
        """The verdict, with the trajectory gate's findings as warnings where it has refused too
        much."""
        gate = self._gates[attempt.iteration, attempt.sample]
        if attempt.revision == 0:
            gate.tell(attempt.sample, verdict)
        if only_gate_refused(verdict) and await gate.is_loose(attempt.sample):
            return with_gate_warnings(verdict)
        return verdict

    async def _judged_again(self, attempt: Attempt, verdict: Verdict) -> Attempt:
        """An attempt that an earlier process had judged: let pass where the gate refused it, no
        revision followed, and it is not believed any more."""
        known = self._run.archive.attempt(
            attempt_id(attempt.iteration, attempt.sample, attempt.revision + 1)
        )
        loosened = await self._after_gate(attempt, verdict)
        if attempt.stage is not Stage.REJECTED or known is not None or loosened is verdict:
            return attempt
        return self._judged(attempt, loosened)

    async def _review(self, attempt: Attempt) -> Attempt:
        """The attempt with what the reviewer says of it, who may turn it down."""
        if attempt.proposal.operator is Operator.TUNE_WEIGHTS or attempt.verdict is None:
            return (
                attempt  # what an optimiser only gave other constants was reviewed with its parent
            )
        if attempt.rungs:
            # there was no money for it then; others were compared with this one since, or made from
            # it
            return attempt
        try:
            verdict = await self._critic.review(
                attempt.proposal.reward, attempt.verdict, attempt.id
            )
        except LanguageModelError as error:  # what is in training is not lost for it
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

    def _judged(self, attempt: Attempt, verdict: Verdict) -> Attempt:
        self._observer(Judged(attempt=attempt.id, verdict=verdict))
        judged = self._archived(attempt.id)
        if judged.proposal.reward != attempt.proposal.reward:
            write_proposal(self._run.folder, judged)
        write_verdict(self._run.folder, judged)
        return judged

    async def _train(self, attempt: Attempt, race: Race | None) -> Attempt:
        """Train while the reviewer reads: a model takes its time, and turns little down.

        A candidate waits for its review at its first pause, before anybody is told of its score: so
        whom it runs against never depends on timing. Where there is no pause the review comes
        first.
        """
        review = asyncio.create_task(self._review(attempt))
        review.add_done_callback(_heard)
        try:
            if race is None:
                await review
                if review.result().stage is Stage.REJECTED:
                    return review.result()
            return await self._train_reviewed(attempt, review, race)
        finally:
            review.cancel()

    async def _train_reviewed(
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
        # what broke off keeps its checkpoints: they say how far it came
        reached = (
            race.rungs.checkpoints(trial.points)
            if race is not None and trial.outcome is None
            else ()
        )
        outcome = broken_off_outcome(reached) if reached else trial.outcome
        evaluation, trajectories = (
            trial.evaluation,
            None if trial.evaluation is None else folder / TRAJECTORIES,
        )
        if trial.stopped and (scores := self._archived(attempt.id).rungs):
            evaluation = scores[-1].evaluation
            at_rung = self._rung_episodes(attempt)
            trajectories = at_rung if at_rung.is_file() else None
        # a search of long trainings has thousands of points: keep the loop responsive
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
        failed = Stage.FAILED if trial.outcome is None else Stage.TRAINED
        self._observer(
            AttemptEnded(
                attempt=attempt.id,
                stage=Stage.STOPPED if trial.stopped else failed,
                reason=trial.failure,
                retries=trial.retries,
                outcome=outcome,
                diagnosis=diagnosis,
            )
        )
        trained = self._archived(attempt.id)
        write_diagnosis(self._run.folder, trained)
        self._rung_episodes(attempt).unlink(missing_ok=True)
        self._trials.settle(request)
        return trained

    async def _at_rung(
        self,
        attempt: Attempt,
        job: str,
        review: asyncio.Task[Attempt],
        race: Race,
        points: tuple[CurvePoint, ...],
        policy: Path | None,
    ) -> str:
        """Have the policy scored and wait for the others; why this one is to be stopped, or ""."""
        if policy is not None and not review.done():
            self._observer(TrainingWaits(job=job, waits_for="review"))
        reviewed = await review
        if reviewed.stage is Stage.REJECTED:
            return f"turned down by its review: {reviewed.reason}"
        if policy is not None:  # else it has gone on already
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
            await race.tell(self._archived(attempt.id))
        if not stop and policy is not None:
            self._observer(TrainingWaits(job=job, waits_for="slot"))
        return stop

    async def _score(
        self, attempt: Attempt, rungs: Rungs, rung: int, policy: Path | None
    ) -> float | None:
        """What the policy is worth at this rung: what the archive knows already, or goes into it
        now, before anybody decides by it.

        All candidates of a run are scored from the same start states, which makes them easier to
        compare.
        """
        env_steps, settings = rungs.env_steps[rung], self._run.settings
        if policy is not None and all(
            score.env_steps != env_steps for score in self._archived(attempt.id).rungs
        ):
            seed = derive_seed(settings.seed, "rung")
            # of one that is stopped there, they are what can be shown
            episodes = self._rung_episodes(attempt)
            evaluation = await self._trials.score(policy, seed, settings.scoring_episodes, episodes)
            fitness = None if evaluation is None else evaluation.fitness_mean()
            score = RungScore(env_steps=env_steps, fitness=fitness, evaluation=evaluation)
            self._observer(RungScored(attempt=attempt.id, score=score))
        return rungs.score(rung, self._archived(attempt.id))

    def _rung_episodes(self, attempt: Attempt) -> Path:
        """Where the worst and the best episode at its last rung are, until the training has
        ended."""
        return attempt_folder(self._run.folder, attempt.id) / RUNG_TRAJECTORIES

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

    def _archived(self, attempt_id: str) -> Attempt:
        attempt = self._run.archive.attempt(attempt_id)
        assert attempt is not None  # every attempt is archived before it is judged
        return attempt


def failures(attempts: Sequence[Attempt]) -> list[Attempt]:
    """Attempts that came to nothing, newest first."""
    came_to_nothing = (Stage.REJECTED, Stage.FAILED, Stage.STOPPED)
    return [attempt for attempt in reversed(attempts) if attempt.stage in came_to_nothing]


def _heard(review: asyncio.Task[Attempt]) -> None:
    """What a review failed with reaches whoever waits for it; where the training failed before,
    nobody does."""
    if not review.cancelled():
        review.exception()
