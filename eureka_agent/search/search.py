"""The loop: proposals are planned, made, judged and trained until the settings are used up.

Each decision is recorded before anything acts on it, and a resumed run keeps it. With `generations`
decisions depend on archive and seed alone, so a resumed run goes on as the unbroken one would.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from eureka_agent.analysis.standing import judged
from eureka_agent.archive.run_folder import Run
from eureka_agent.designer.interface import DesignRequest
from eureka_agent.errors import EnvironmentFaultError, EurekaError, RunFolderError
from eureka_agent.invocation import resume_command, show_command
from eureka_agent.journal import entries
from eureka_agent.llm.budget import BudgetSpentError
from eureka_agent.llm.interface import LanguageModelError, MissingReplyError
from eureka_agent.ranking import ranked
from eureka_agent.records import Attempt
from eureka_agent.search.advisers import Advisers
from eureka_agent.search.attempts import (
    AttemptRunner,
    failures,
    repeat_seeds,
    to_confirm,
)
from eureka_agent.search.briefing import Briefing
from eureka_agent.search.deadline import Deadline
from eureka_agent.search.final import FinalTrainings
from eureka_agent.search.randomisation import Randomising
from eureka_agent.search.resumption import record_changes
from eureka_agent.search.schedules import Ask, Generations, Rounds, Steady
from eureka_agent.search.scoring import coverage_so_far
from eureka_agent.search.seeing import Judging
from eureka_agent.settings import schedule_of
from eureka_agent.training_counts import is_confirmed


class LimitReachedError(EurekaError):
    """A limit of several searches that leaves no room for another generation."""


class SearchFailedError(EurekaError):
    """A generation in which every proposal failed, in every round."""

    exit_status = 1


class NothingAffordedError(SearchFailedError, LimitReachedError):
    """The limits on models left no room for anything to train. Another try changes nothing."""


@dataclass
class Search:
    """The pieces of one search, and the way of its proposals through them."""

    run: Run
    observer: entries.Observer
    """Records entries."""
    advisers: Advisers
    attempts: AttemptRunner
    briefing: Briefing
    finals: FinalTrainings
    randomising: Randomising
    deadline: Deadline
    judging: Judging | None = None
    """Compares what each generation has trained; None: nobody does."""
    ask: Ask | None = None
    """Asks a person after each generation; None: the settings decide."""
    warm_up: Callable[[], None] = lambda: None
    """Called when the generations have ended, for what comes after the final trainings."""
    _trains_baselines: bool = field(default=False, init=False)
    _why_ended: tuple[int, EurekaError] | None = field(default=None, init=False)
    """The last generation, and the error that makes it the last."""

    async def all_trainings(self) -> None:
        """Generations, finals with the baselines beside them, and distributions of parameters."""
        settings = self.run.settings
        async with asyncio.TaskGroup() as group:
            if self.ask is None:
                self._begin_baselines(group)
                if not settings.iterations:
                    return
            trained = await self.generations()
            if self.ask is not None:
                if self.run.archive.state.decision != "finish":
                    return
                self._begin_baselines(group)
            self.warm_up()
            if settings.finalists:
                await self.finals.finalists(trained)
        await self.randomising.run()

    def _begin_baselines(self, group: asyncio.TaskGroup) -> None:
        if self.run.settings.trains_baselines:
            self._trains_baselines = True
            group.create_task(self.finals.baselines())

    async def generations(self) -> list[Attempt]:
        """Run all generations that settings, deadline and designer allow; the trained attempts,
        best first. One that comes to nothing is the last. Raises EurekaError if nothing was
        trained."""
        with first_error():
            async with asyncio.TaskGroup() as group:
                schedule: type[Generations | Steady] = Generations
                if self.ask is not None:
                    schedule = Rounds
                elif schedule_of(self.run.settings) == "steady":
                    schedule = Steady
                await schedule(self, group).run()
        attempts = self.run.archive.attempts()
        trained = ranked(judged(attempts, self.run.archive.state.feedback))
        if not trained and self.advisers.spent():
            before = "was reached before a candidate was trained"
            before = before if attempts else "left no room for a single request"
            raise NothingAffordedError(
                f"the limit on what models may cost {before}",
                "raise --max-cost, --max-tokens or --max-time",
            )
        if not trained and self._why_ended is not None:
            raise self._why_ended[1]
        if not trained and self.ask is None:
            raise self.failed("no candidate's training came to its end", failures(attempts))
        self._record_why_ended()
        return trained

    def extend_to(self, iterations: int) -> None:
        """Record that the search has so many generations, if it had fewer."""
        if iterations > self.run.settings.iterations:
            changed = self.run.settings.model_copy(update={"iterations": iterations})
            self.run.settings = changed
            record_changes(self.run)
            # the signature covers the settings
            self.run.why_unsigned = self.run.sign()

    def _record_why_ended(self) -> None:
        """Record why there are fewer generations than asked for, or that there are not any more."""
        text = ""
        if self._why_ended is not None:
            iteration, error = self._why_ended
            another = isinstance(error, SearchFailedError)
            flag = f" --retry-rounds {self.rounds(iteration)}" if another else ""
            text = (
                f"the search ended with generation {iteration + 1}: {error.message}; what was"
                " trained until then was finished, and"
                f" `{resume_command(self.run.folder)}{flag}` tries again"
            )
            self.observer(entries.Notice(text=text, level="warning"))
        if self.run.archive.state.ended_early != text:
            self.observer(entries.SearchEndedEarly(text=text))

    def end_with(self, iteration: int, error: EurekaError) -> None:
        """Make this generation the last. Raises an error that must end the run."""
        if isinstance(error, MissingReplyError) and iteration == 0:
            raise error
        self.raise_if_fatal(error)
        self._why_ended = self._why_ended or (iteration, error)

    def raise_if_fatal(self, error: EurekaError) -> None:
        """Raise the error if results could not be stored, or the environment is at fault."""
        if isinstance(error, RunFolderError | EnvironmentFaultError):
            raise error

    def is_over(self, iteration: int) -> bool:
        """True if this generation cannot be designed and was not designed earlier."""
        return self._why_ended is not None or (
            self.advisers.spent() and not self.run.archive.attempts(iteration)
        )

    @property
    def is_cut_short(self) -> bool:
        """True if no further proposal can be made."""
        return self.advisers.spent() or self._why_ended is not None

    async def baselines_are_known(self) -> None:
        """Wait for the baselines, if any are trained, until the time is up, which is recorded."""
        while self._trains_baselines:  # the limit may change meanwhile
            limit = self.deadline.limit
            missed = self.run.archive.state.baselines_not_awaited
            if limit is not None and missed == limit.text:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(self.deadline.seconds_left()):
                    await self.finals.known()
                    return
            if limit is not None and self.deadline.seconds_left() == 0.0:
                self.observer(entries.BaselinesNotAwaited(limit=limit.text))
                return

    def rounds(self, iteration: int) -> int:
        """Rounds that this generation may take, at least those that were made."""
        last = max((attempt.sample for attempt in self.run.archive.attempts(iteration)), default=0)
        return max(self.run.settings.retry_rounds, last // self.run.settings.samples) + 1

    def failed(self, what: str, attempts: Sequence[Attempt]) -> SearchFailedError:
        reasons = "; ".join(list(dict.fromkeys(attempt.reason for attempt in attempts))[:3])
        return SearchFailedError(
            f"{what}: {reasons}" if reasons else what,
            f"`{show_command(self.run.folder)}` lists the attempts and their findings",
        )

    async def take_to_end(
        self,
        plan: entries.Planned,
        before: Sequence[str] = (),
        settled: Callable[[], None] = lambda: None,
        rung_scored: Callable[[], None] = lambda: None,
    ) -> Attempt | None:
        """Make, judge and train a proposal, as `begin` does. None if it could not be made.
        `settled` is called once it is judged, or could not be made."""
        try:
            rest = await self.begin(plan, before, rung_scored)
        finally:
            settled()
        return None if rest is None else await rest

    async def begin(
        self,
        plan: entries.Planned,
        before: Sequence[str] = (),
        rung_scored: Callable[[], None] = lambda: None,
    ) -> Coroutine[Any, Any, Attempt | None] | None:
        """Make and judge a proposal; the returned coroutine trains it. None if it cannot be made.
        `before`: attempts of its generation that were proposed earlier."""
        iteration, sample = plan.iteration, plan.sample
        try:
            request = await self.briefing.request(plan)
            known = self.run.archive.state.by_id  # sources with the critic's repairs
            earlier = (known[each].proposal.reward.source for each in before if each in known)
            siblings = (*request.siblings, *earlier)
            request = replace(request, siblings=siblings, asked=self.briefing.asked(plan, before))
            attempt = await self.attempts.settle(
                await self.attempts.propose(iteration, sample, request), request
            )
        except EurekaError as error:
            if not isinstance(error, BudgetSpentError):
                self.end_with(iteration, error)
            return None
        return self._finish(attempt, request, rung_scored)

    async def _finish(
        self, attempt: Attempt, request: DesignRequest, rung_scored: Callable[[], None]
    ) -> Attempt | None:
        try:
            return await self.attempts.finish(attempt, request, rung_scored)
        except LanguageModelError as error:  # rejected by its review, and no model revises it
            self.end_with(attempt.iteration, error)
            return attempt

    async def confirm(self, iteration: int) -> None:
        """Train the best attempts again, where anything depends on who was lucky."""
        state, chosen = self.run.archive.state, list[str]()
        recorded = [each for each in state.confirmations if each.iteration == iteration]
        if recorded:
            chosen = [name for each in recorded for name in each.attempts]
        elif iteration not in state.iterations_ended and is_confirmed(self.run.settings, iteration):
            chosen = to_confirm(state.attempts(), self.run.settings.confirm)
            if chosen:
                self.record_confirmation(iteration, chosen)
        await self.repeat(iteration, chosen)

    def record_confirmation(self, iteration: int, attempts: Sequence[str]) -> None:
        """Record that these attempts will be trained again."""
        trainings = len(attempts) * self.run.settings.confirm_seeds
        self.observer(
            entries.ConfirmationStarted(
                iteration=iteration, attempts=tuple(attempts), trainings=trainings
            )
        )

    async def repeat(self, iteration: int, attempts: Iterable[str]) -> None:
        """Train these attempts from their further seeds, unless that is done."""
        archive, settings = self.run.archive, self.run.settings
        with first_error():
            async with asyncio.TaskGroup() as group:
                for attempt in (archive.state.by_id[each] for each in attempts):
                    for seed in repeat_seeds(attempt, settings.seed, settings.confirm_seeds):
                        if all(repeat.seed != seed for repeat in attempt.repeats):
                            group.create_task(
                                self.attempts.trainer.repeat(attempt.id, iteration, seed)
                            )

    async def judge(self, iteration: int) -> None:
        """Have the attempts compared, before a later generation is planned."""
        planned = max((each for each, _ in self.run.archive.state.plans), default=iteration)
        if self.judging is not None and planned <= iteration:
            await self.judging.judge()

    def end_iteration(self, iteration: int) -> None:
        """Record the end of this generation, once."""
        state = self.run.archive.state
        if iteration not in state.iterations_ended:
            best = ranked(judged(state.attempts(), state.feedback))
            self.observer(
                entries.IterationEnded(iteration=iteration, best=best[0].id if best else None)
            )
            lacking = coverage_so_far(self.run, state)
            if lacking is not None:
                text = f"{lacking.text}. What could help: {'; '.join(lacking.proposals)}"
                self.observer(entries.Notice(text=text, level="warning", stays=True))


@contextmanager
def first_error() -> Iterator[None]:
    """Raise the first EurekaError of a group by itself; a group with another error stays. (Early
    3.11s put what is raised in `except*` into a group again.)"""
    try:
        yield
    except BaseExceptionGroup as errors:
        error: BaseException = errors
        if errors.split(EurekaError)[1] is not None:
            raise
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from None
