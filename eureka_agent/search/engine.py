"""The loop: proposals are planned, made, judged and trained until the settings are used up.

Each decision is recorded before it is acted on, and a resumed run keeps to what is recorded. By
generations what is decided depends on the archive and the seed alone, so that a run which was
killed and resumed goes the way that it would have gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from eureka_agent.archive.run_folder import Run
from eureka_agent.designer.interface import Designer, DesignRequest
from eureka_agent.errors import EnvironmentFaultError, EurekaError, RunFolderError
from eureka_agent.invocation import resume_command, show_command
from eureka_agent.journal.entries import (
    BaselinesNotAwaited,
    ConfirmationStarted,
    IterationEnded,
    Notice,
    Observer,
    Planned,
    SearchEndedEarly,
)
from eureka_agent.llm.budget import BudgetSpentError
from eureka_agent.llm.interface import LanguageModelError, MissingReplyError
from eureka_agent.ranking import ranked
from eureka_agent.records import Attempt
from eureka_agent.search.attempts import AttemptRunner, attempt_id, failures
from eureka_agent.search.briefing import Briefing
from eureka_agent.search.confirmation import repeat_seeds, to_confirm
from eureka_agent.search.deadline import Deadline
from eureka_agent.search.noise import training_noise
from eureka_agent.search.racing import Race, rungs_of
from eureka_agent.search.schedules import Generations, Steady
from eureka_agent.settings import schedule_of


class SearchFailedError(EurekaError):
    """A generation in which every proposal failed, in every round."""

    exit_status = 1


class SearchEngine:
    """Sees the proposals of one search through; when each is planned is its schedule's."""

    def __init__(
        self,
        run: Run,
        designer: Designer,
        attempts: AttemptRunner,
        briefing: Briefing,
        observer: Observer,
        deadline: Deadline | None = None,
        spent: Callable[[], bool] = lambda: False,
        baselines: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`deadline`: of a search with a limit in wall time. `spent`: whether the budget for models
        has turned a request down. `baselines`: waits until all of them are in the archive; None
        where there are none.
        """
        self.run = run
        self.designer = designer
        self._attempts = attempts
        self._briefing = briefing
        self.observer = observer
        self._deadline = deadline
        self._spent = spent
        self.baselines = baselines
        self.rungs = rungs_of(run.settings)
        self._why_ended: tuple[int, EurekaError] | None = None
        """The generation that could not be designed or came to nothing, and why: what is there is
        finished, and nothing follows."""

    async def search(self) -> list[Attempt]:
        """All generations that the settings, the deadline and the designer allow; returns the
        trained attempts, best first.

        A generation that comes to nothing, or cannot be designed, is the end of it. Raises
        EurekaError where nothing at all was trained.
        """
        with first_error():
            async with asyncio.TaskGroup() as group:
                steady = schedule_of(self.run.settings) == "steady"
                await (Steady if steady else Generations)(self, group).search()
        attempts = self.run.archive.attempts()
        trained = ranked(attempts)
        if not trained and not attempts and self._spent():
            raise SearchFailedError(
                "the limit on what models may cost left no room for a single request",
                "raise --max-cost, --max-tokens or --max-time",
            )
        if not trained and self._why_ended is not None:
            raise self._why_ended[1]
        if not trained:
            raise self.failed("no candidate's training came to its end", failures(attempts))
        self._tell_why_ended()
        return trained

    def _tell_why_ended(self) -> None:
        """Archive and tell why there are fewer generations than were asked for; a resumed search
        may have got beyond that."""
        text = ""
        if self._why_ended is not None:
            iteration, error = self._why_ended
            another = (
                f" --retry-rounds {self.rounds(iteration)}"
                if isinstance(error, SearchFailedError)
                else ""
            )
            text = (
                f"the search ended with generation {iteration + 1}: {error.message}; what was"
                " trained until then was finished, and"
                f" `{resume_command(self.run.folder)}{another}` tries again"
            )
            self.observer(Notice(text=text, level="warning"))
        if self.run.archive.state.ended_early != text:
            self.observer(SearchEndedEarly(text=text))

    def end_with(self, iteration: int, error: EurekaError) -> None:
        """Let nothing follow this generation. Raises the error again where nothing could be kept of
        what is there, the environment is at fault, or the first generation is not the recorded
        one."""
        other_search = isinstance(error, MissingReplyError) and iteration == 0
        if other_search or isinstance(error, RunFolderError | EnvironmentFaultError):
            raise error
        self._why_ended = self._why_ended or (iteration, error)

    def is_over(self, iteration: int) -> bool:
        """True where this generation cannot be designed, nor was in an earlier process."""
        return self._why_ended is not None or (
            self._spent() and not self.run.archive.attempts(iteration)
        )

    @property
    def is_cut_short(self) -> bool:
        """What is paid for is all that there will be."""
        return self._spent() or self._why_ended is not None

    def allows(self, iteration: int) -> bool:
        """True where there is time for this generation."""
        return self._deadline is None or self._deadline.allows(iteration)

    async def baselines_are_known(self) -> bool:
        """Wait for the baselines. False where the time was up before: then nobody waits or counts
        with them any more, as the archive has it."""
        if self.baselines is None:
            return False
        limit = None if self._deadline is None else self._deadline.limit.text
        if limit is not None and self.run.archive.state.baselines_not_awaited == limit:
            return False
        try:
            async with asyncio.timeout(
                None if self._deadline is None else self._deadline.seconds_left()
            ):
                await self.baselines()
        except TimeoutError:
            assert limit is not None  # else nothing times out
            self.observer(BaselinesNotAwaited(limit=limit))
            return False
        return True

    async def noise(self, checkpoint: int) -> float:
        """How much the seed alone does at this checkpoint, once the baselines have shown it; 0
        where they cannot."""
        trainings = self.run.archive.trainings() if await self.baselines_are_known() else ()
        return training_noise(trainings, checkpoint)

    def rounds(self, iteration: int) -> int:
        """Rounds that this generation may take; those that were made count, whatever the setting is
        by now."""
        last = max((attempt.sample for attempt in self.run.archive.attempts(iteration)), default=0)
        return max(self.run.settings.retry_rounds, last // self.run.settings.samples) + 1

    def failed(self, what: str, attempts: Sequence[Attempt]) -> SearchFailedError:
        reasons = "; ".join(list(dict.fromkeys(attempt.reason for attempt in attempts))[:3])
        return SearchFailedError(
            f"{what}: {reasons}" if reasons else what,
            f"`{show_command(self.run.folder)}` lists the attempts and their findings",
        )

    def plan(self, iteration: int, samples: range) -> list[Planned]:
        """Plans for these places, which are judged by one gate."""
        plans = self._briefing.plan(iteration, samples)
        self._attempts.open_round(iteration, samples)
        return plans

    async def see_through(self, plan: Planned, race: Race | None) -> Attempt | None:
        """A proposal until nothing more happens to it; None where it could not be made."""
        life = await self.begin(plan, race)
        return None if life is None else await life

    async def begin(
        self, plan: Planned, race: Race | None, siblings: Sequence[str] = ()
    ) -> Coroutine[Any, Any, Attempt | None] | None:
        """Have a proposal made and judged; the rest of its life is left to whoever awaits what is
        returned. None where there is no way to have it made or judged. `siblings`: sources of the
        proposals before it, of a designer that works in order."""
        iteration, sample = plan.iteration, plan.sample
        try:
            request = replace(await self._briefing.request(plan), siblings=tuple(siblings))
            attempt = await self._attempts.settle(
                await self._attempts.propose(iteration, sample, request), request
            )
        except EurekaError as error:
            if not isinstance(error, BudgetSpentError):
                self.end_with(iteration, error)
            self._attempts.leave_round(iteration, sample)
            await self.leave(sample, race)
            return None
        return self._finish(attempt, request, race)

    async def _finish(
        self, attempt: Attempt, request: DesignRequest, race: Race | None
    ) -> Attempt | None:
        try:
            attempt = await self._attempts.finish(attempt, request, race)
        except LanguageModelError as error:  # turned down by its review, and nobody mends it
            self.end_with(attempt.iteration, error)
        # not where it is cancelled: nothing is decided about the others by a search that ends
        await self.leave(attempt.sample, race)
        return attempt

    async def leave(self, sample: int, race: Race | None) -> None:
        """Nobody waits for this candidate any more."""
        if race is not None:
            await race.leave(sample)

    async def confirm(self, iteration: int) -> None:
        """Train the best so far again, so that luck in a single training leads the search less
        often."""
        state, chosen = self.run.archive.state, list[str]()
        recorded = [each for each in state.confirmations if each.iteration == iteration]
        if recorded:
            chosen = [name for each in recorded for name in each.attempts]
        elif iteration not in state.iterations_ended:
            chosen = to_confirm(state.attempts(), self.run.settings.confirm)
            if chosen:
                self.record_confirmation(iteration, chosen)
        await self.repeat(iteration, chosen)

    def record_confirmation(self, iteration: int, attempts: Sequence[str]) -> None:
        """Record that these are to be trained again."""
        trainings = len(attempts) * self.run.settings.confirm_seeds
        self.observer(
            ConfirmationStarted(iteration=iteration, attempts=tuple(attempts), trainings=trainings)
        )

    async def repeat(self, iteration: int, attempts: Iterable[str]) -> None:
        """Train these attempts again from their further seeds, as far as that is not done."""
        archive, settings = self.run.archive, self.run.settings
        with first_error():
            async with asyncio.TaskGroup() as group:
                for attempt in (archive.state.by_id[each] for each in attempts):
                    for seed in repeat_seeds(attempt, settings.seed, settings.confirm_seeds):
                        if all(repeat.seed != seed for repeat in attempt.repeats):
                            group.create_task(self._attempts.repeat(attempt.id, iteration, seed))

    def end_iteration(self, iteration: int) -> None:
        """Tell that all of this generation has ended, once."""
        if iteration not in self.run.archive.state.iterations_ended:
            best = ranked(self.run.archive.attempts())
            self.observer(IterationEnded(iteration=iteration, best=best[0].id if best else None))

    def first_source(self, iteration: int, sample: int) -> str:
        """Source of the first proposal for a place, as the designer made it or the critic mended
        it."""
        first = self.run.archive.attempt(attempt_id(iteration, sample, 0))
        assert first is not None  # its last revision is settled
        return first.proposal.reward.source


@contextmanager
def first_error() -> Iterator[None]:
    """Of a group of errors that a person can act on, raise the first one by itself. A group with
    any other error stays as it is.

    Not `except*`: what is raised in one, early versions of Python 3.11 put into a group again, on
    which nobody who waits for a EurekaError acts.
    """
    try:
        yield
    except BaseExceptionGroup as errors:
        error: BaseException = errors
        if errors.split(EurekaError)[1] is not None:
            raise
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from None
