"""The loop: generation after generation until the settings are used up, then the final trainings.

What is decided depends on the archive and the seed alone, so a run that was killed and resumed goes the way that it would have gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from eureka_agent.archive.run_folder import Run
from eureka_agent.designer.interface import Designer, DesignRequest, FailureSummary, ParentSummary
from eureka_agent.errors import EurekaError
from eureka_agent.ranking import ranked
from eureka_agent.records import Attempt, Stage
from eureka_agent.report.events import ConfirmationStarted, IterationEnded, IterationStarted, Observer
from eureka_agent.search.attempts import AttemptRunner, failures
from eureka_agent.search.confirmation import known_before, repeat_seeds, to_confirm
from eureka_agent.search.deadline import Deadline
from eureka_agent.search.racing import Race, Rungs
from eureka_agent.search.seeds import derive_seed
from eureka_agent.search.strategy import ProposalPlan, Strategy
from eureka_agent.settings import training_part

FAILURES_SHOWN = 4
"""Failures that a designer is reminded of, newest first."""


class SearchFailedError(EurekaError):
    """A generation in which every proposal failed, in every round."""

    exit_status = 1


class SearchEngine:
    """Runs the generations of one search."""

    def __init__(
        self,
        run: Run,
        designer: Designer,
        attempts: AttemptRunner,
        strategy: Strategy,
        observer: Observer,
        deadline: Deadline | None = None,
    ) -> None:
        """`deadline`: of a search with a budget in wall time."""
        self._run = run
        self._designer = designer
        self._attempts = attempts
        self._strategy = strategy
        self._observer = observer
        self._deadline = deadline

    async def search(self) -> list[Attempt]:
        """All generations that the settings, and the deadline, allow; returns the trained attempts, best first.

        Raises SearchFailedError when one comes to nothing.
        """
        for iteration in range(self._run.settings.iterations):
            if self._deadline is not None and not self._deadline.allows(iteration):
                break
            await self._iteration(iteration)
            await self._confirm(iteration)
            best = ranked(self._known_after(iteration))
            self._observer(IterationEnded(iteration=iteration, best=best[0] if best else None))
        return ranked(self._run.archive.attempts())

    async def _iteration(self, iteration: int) -> None:
        samples = self._run.settings.samples
        for attempt_round in range(self._run.settings.retry_rounds + 1):
            first = attempt_round * samples
            history = [
                attempt
                for attempt in known_before(self._run.archive.attempts(), iteration)
                if (attempt.iteration, attempt.sample) < (iteration, first)
            ]
            self._observer(IterationStarted(iteration=iteration, round=attempt_round, samples=samples))
            ended = await self._round(iteration, first, history)
            if any(attempt.stage is Stage.TRAINED for attempt in ended):
                return
        reasons = "; ".join(list(dict.fromkeys(attempt.reason for attempt in ended))[:3])
        rounds = self._run.settings.retry_rounds + 1
        what = (
            "the proposal failed"
            if samples * rounds == 1
            else f"every proposal of iteration {iteration + 1} failed, in {rounds} rounds of {samples}"
        )
        raise SearchFailedError(
            f"{what}: {reasons}", f"`eureka show {self._run.folder}` lists the attempts and their findings"
        )

    def _known_after(self, iteration: int) -> list[Attempt]:
        """The attempts up to this generation as they were at its end, also when a resumed run passes it again."""
        return [
            attempt
            for attempt in known_before(self._run.archive.attempts(), iteration + 1)
            if attempt.iteration <= iteration
        ]

    async def _confirm(self, iteration: int) -> None:
        """Train the best so far again, so that luck in a single training leads the search less often."""
        settings = self._run.settings
        attempts = {attempt.id: attempt for attempt in self._run.archive.attempts()}
        repeated = tuple(attempts[each] for each in to_confirm(list(attempts.values()), iteration, settings.confirm))
        missing = [
            (attempt.id, seed)
            for attempt in repeated
            for seed in repeat_seeds(attempt, settings.seed, settings.confirm_seeds)
            if all(repeat.seed != seed for repeat in attempt.repeats)
        ]
        if not missing:
            return
        self._observer(ConfirmationStarted(iteration=iteration, attempts=repeated, trainings=len(missing)))
        try:
            async with asyncio.TaskGroup() as group:
                for attempt_id, seed in missing:
                    group.create_task(self._attempts.repeat(attempt_id, iteration, seed))
        except* EurekaError as errors:
            raise first_error(errors) from None

    async def _round(self, iteration: int, first: int, history: Sequence[Attempt]) -> list[Attempt]:
        plans = self._strategy.plan(iteration, history, self._run.settings.samples)
        lives: list[asyncio.Task[Attempt]] = []
        race = self._race(range(first, first + len(plans)), history)
        siblings: list[str] = []
        try:
            async with asyncio.TaskGroup() as group:
                for sample, plan in enumerate(plans, first):
                    request = self._request(iteration, sample, plan, history, siblings)
                    if self._designer.concurrent:
                        lives.append(group.create_task(self._life(iteration, sample, request, race)))
                        continue
                    # in order, so that each proposal knows the ones before it, and is compared with what the critic let pass of
                    # them; the first may be in training by then
                    attempt = await self._attempts.propose(iteration, sample, request)
                    siblings.append(attempt.proposal.source)
                    attempt = await self._attempts.settle(attempt, request)
                    lives.append(group.create_task(self._finish(attempt, race)))
        except* EurekaError as errors:
            raise first_error(errors) from None
        return [life.result() for life in lives]

    async def _life(self, iteration: int, sample: int, request: DesignRequest, race: Race | None) -> Attempt:
        proposed = await self._attempts.propose(iteration, sample, request)
        return await self._finish(await self._attempts.settle(proposed, request), race)

    async def _finish(self, attempt: Attempt, race: Race | None) -> Attempt:
        try:
            return await self._attempts.finish(attempt, race)
        finally:
            if race is not None:
                await race.leave(attempt.sample)

    def _race(self, samples: range, history: Sequence[Attempt]) -> Race | None:
        """The generation's race; None where candidates are not to be stopped, or cannot pause."""
        settings = self._run.settings
        if not settings.racing or not self._run.description.restorable or len(samples) < 2:
            return None
        rungs = Rungs(training_part(settings), settings.rungs)
        trained = [each.outcome.checkpoints for each in history if each.stage is Stage.TRAINED and each.outcome]
        return Race(rungs, samples, trained) if rungs.places else None

    def _request(
        self, iteration: int, sample: int, plan: ProposalPlan, history: Sequence[Attempt], siblings: Sequence[str]
    ) -> DesignRequest:
        known = {attempt.id: attempt for attempt in history}
        return DesignRequest(
            description=self._run.description,
            sentence=self._run.sentence,
            operator=plan.operator,
            parents=tuple(_parent(known[parent]) for parent in plan.parents),
            failures=tuple(_failure(attempt) for attempt in failures(history)[:FAILURES_SHOWN]),
            seed=derive_seed(self._run.settings.seed, "design", iteration, sample),
            siblings=tuple(siblings),
        )


def first_error(errors: BaseExceptionGroup[EurekaError]) -> EurekaError:
    """The first single error of a group of groups."""
    inner = errors.exceptions[0]
    return first_error(inner) if isinstance(inner, BaseExceptionGroup) else inner


def _parent(attempt: Attempt) -> ParentSummary:
    return ParentSummary(
        attempt.id,
        attempt.proposal.source,
        attempt.fitness,
        attempt.diagnosis,
        attempt.proposal.reasoning,
        attempt.fitness_per_seed,
    )


def _failure(attempt: Attempt) -> FailureSummary:
    return FailureSummary(attempt.id, attempt.proposal.source, attempt.stage.value, attempt.reason)
