"""Attempts up to their verdict: proposed, judged, revised; each stage is recorded first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from eureka_agent.archive.artefacts import write_proposal, write_verdict
from eureka_agent.archive.run_folder import Run
from eureka_agent.critic.critic import Critic
from eureka_agent.critic.parse import EMPTY, NO_PYTHON
from eureka_agent.designer.interface import Designer, DesignRequest, Rejection, proposal_of
from eureka_agent.journal.entries import Judged, Observer, Proposed
from eureka_agent.llm.budget import BudgetSpentError
from eureka_agent.ranking import by_fitness
from eureka_agent.records import Attempt, Operator, Proposal, Stage, Verdict
from eureka_agent.search.attempt_training import AttemptTrainer
from eureka_agent.search.drafts import Drafts, RunMemory
from eureka_agent.search.seeds import derive_seed
from eureka_agent.search.trial import TrialRunner


def attempt_id(iteration: int, sample: int, revision: int) -> str:
    """`2-05`, or `2-05-r1` for its first revision. Names count from 1, all else from 0."""
    return f"{iteration + 1}-{sample + 1:02d}" + (f"-r{revision}" if revision else "")


class AttemptRunner:
    """Takes attempts through their stages, from the stage in the archive."""

    def __init__(
        self, run: Run, designer: Designer, critic: Critic, trials: TrialRunner, observer: Observer
    ) -> None:
        self._run, self._designer, self._critic = run, designer, critic
        self.trainer = AttemptTrainer(run, critic, trials, observer)
        self._observer = observer
        self._memory = RunMemory(run, in_order=not designer.concurrent)
        self._drafts = Drafts(run, designer, critic, self._memory)

    async def propose(self, iteration: int, sample: int, request: DesignRequest) -> Attempt:
        """The first proposal for this sample, archived or new."""
        known = self._run.archive.attempt(attempt_id(iteration, sample, 0))
        if known is not None:
            return known
        if request.given is not None:
            why = [request.why] if request.why else []
            given = proposal_of(request.given, request, *why)
            return self._propose(iteration, sample, 0, given, ())
        proposal, kept = await self._drafts.best(iteration, sample, request)
        return self._propose(iteration, sample, 0, proposal, kept)

    async def settle(self, attempt: Attempt, request: DesignRequest) -> Attempt:
        """Judge the attempt, and revise it as often as allowed. Returns the last revision."""
        while True:
            if attempt.proposal.operator is Operator.FRESH:  # also a draft for another operator
                request = request.from_nothing()
            if attempt.stage is Stage.PROPOSED:
                attempt = await self._judge(attempt)
            if (
                attempt.stage is not Stage.REJECTED
                or attempt.revision >= self._run.settings.revisions
                or request.given is not None  # the person revises it
            ):
                return attempt
            try:
                attempt = await self._revise(attempt, request)
            except BudgetSpentError:
                return attempt

    async def finish(
        self,
        attempt: Attempt,
        request: DesignRequest,
        rung_scored: Callable[[], None] = lambda: None,
    ) -> Attempt:
        """Train a settled attempt, and its revision if its review rejects it."""
        while attempt.stage is Stage.ACCEPTED:
            attempt = await self.trainer.train(attempt, rung_scored)
            if attempt.stage is not Stage.REJECTED:
                return attempt
            attempt = await self.settle(attempt, request)
        return attempt

    def _propose(
        self,
        iteration: int,
        sample: int,
        revision: int,
        proposal: Proposal,
        kept: tuple[Proposal, ...] = (),
    ) -> Attempt:
        reward = proposal.reward.of_kind(self._run.settings.rewards)
        proposal = proposal.model_copy(update={"reward": reward})
        proposed = Proposed(
            attempt=attempt_id(iteration, sample, revision),
            iteration=iteration,
            sample=sample,
            revision=revision,
            proposal=proposal,
            seed=derive_seed(self._run.settings.seed, "training", iteration, sample, revision),
            kept=kept,
        )
        self._observer(proposed)
        attempt = self._run.archive.state.by_id[proposed.attempt]
        write_proposal(self._run.folder, attempt)
        return attempt

    async def _revise(self, rejected: Attempt, request: DesignRequest) -> Attempt:
        revision = rejected.revision + 1
        name = attempt_id(rejected.iteration, rejected.sample, revision)
        if (known := self._run.archive.attempt(name)) is not None:
            return known
        assert rejected.verdict is not None  # a rejected attempt was judged
        request = replace(
            request,
            attempt=name,
            revision=revision,
            rejections=self._rejections_before(rejected),
            drafts=await self._drafts.left(rejected.iteration, rejected.sample, request),
        )
        proposal = await self._designer.revise(request, rejected.proposal, rejected.verdict)
        return self._propose(rejected.iteration, rejected.sample, revision, proposal)

    def _rejections_before(self, rejected: Attempt) -> tuple[Rejection, ...]:
        """The earlier proposals for this sample with their verdicts, oldest first."""
        attempts = self._run.archive.state.by_id
        earlier = (
            attempts[attempt_id(rejected.iteration, rejected.sample, revision)]
            for revision in range(rejected.revision)
        )
        return tuple(
            Rejection(each.proposal, each.verdict) for each in earlier if each.verdict is not None
        )

    async def _judge(self, attempt: Attempt) -> Attempt:
        verdict = await self._critic.judge(
            attempt.proposal.reward, memory=self._memory.before(attempt.iteration, attempt.sample)
        )
        verdict = with_problem(verdict, attempt.proposal)
        self._observer(Judged(attempt=attempt.id, verdict=verdict))
        judged = self._run.archive.state.by_id[attempt.id]
        if judged.proposal.reward != attempt.proposal.reward:
            write_proposal(self._run.folder, judged)
        write_verdict(self._run.folder, judged)
        return judged


def with_problem(verdict: Verdict, proposal: Proposal) -> Verdict:
    """The verdict with the reason why a model's reply holds no reward, or a part of one."""
    if not verdict.findings or not proposal.problem:
        return verdict
    first, *others = verdict.findings
    if first.code == EMPTY:
        hint = proposal.problem_hint or first.hint
        first = first.model_copy(update={"message": proposal.problem, "hint": hint})
    elif first.code == NO_PYTHON:
        first = first.model_copy(update={"message": f"{first.message}; {proposal.problem}"})
    return verdict.model_copy(update={"findings": (first, *others)})


def failures(attempts: Sequence[Attempt]) -> list[Attempt]:
    """Rejected and failed attempts, newest first."""
    failed = (Stage.REJECTED, Stage.FAILED)
    return [attempt for attempt in reversed(attempts) if attempt.stage in failed]


def to_confirm(attempts: Sequence[Attempt], count: int) -> list[str]:
    """Ids of those among the `count` best that have one training, best first; none for a single
    attempt. The plain mean ranks: a high fitness from one training needs confirmation most."""
    known = by_fitness(attempts)
    if len(known) < 2:
        return []
    return [attempt.id for attempt in known[:count] if not attempt.repeats]


def repeat_seeds(attempt: Attempt, run_seed: int, count: int) -> tuple[int, ...]:
    """Training seeds of an attempt's repeats, from the run's seed and the attempt alone."""
    return tuple(derive_seed(run_seed, "repeat", attempt.id, index) for index in range(count))
