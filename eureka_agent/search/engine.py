"""The loop: generation after generation until the settings are used up, then the final trainings.

What is decided depends on the archive and the seed alone, so a run that was killed and resumed goes
the way that it would have gone.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from eureka_agent.archive.database import resume_command
from eureka_agent.archive.run_folder import Run
from eureka_agent.designer.interface import Designer, DesignRequest
from eureka_agent.errors import EnvironmentFaultError, EurekaError, RunFolderError
from eureka_agent.invocation import command
from eureka_agent.journal.entries import (
    BaselinesNotAwaited,
    ConfirmationStarted,
    IterationEnded,
    IterationStarted,
    Notice,
    Observer,
    SearchEndedEarly,
)
from eureka_agent.llm.budget import BudgetSpentError
from eureka_agent.llm.interface import LanguageModelError, MissingReplyError
from eureka_agent.ranking import ranked
from eureka_agent.records import Attempt, Stage
from eureka_agent.report import wording
from eureka_agent.search.attempts import AttemptRunner, attempt_id, failures
from eureka_agent.search.briefing import Briefing
from eureka_agent.search.confirmation import known_before, repeat_seeds, to_confirm
from eureka_agent.search.course import Course, Milestone
from eureka_agent.search.deadline import Deadline
from eureka_agent.search.noise import training_noise
from eureka_agent.search.racing import Race
from eureka_agent.search.standing import (
    EPISODES_LAG,
    REPEATS_LAG,
    rungs_of,
    says_something,
    standing,
    works_ahead,
)

Life = asyncio.Task[Attempt | None]
"""Of a proposal, until nothing more happens to it; None where the budget for models did not allow
it to be made."""


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
        self._run = run
        self._designer = designer
        self._attempts = attempts
        self._briefing = briefing
        self._observer = observer
        self._deadline = deadline
        self._spent = spent
        self._baselines = baselines
        self._rungs = rungs_of(run.settings)
        self._works_ahead = works_ahead(run.settings, run.description)
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
                await self._generations(group)
        attempts = self._run.archive.attempts()
        trained = ranked(attempts)
        if not trained and not attempts and self._spent():
            raise SearchFailedError(
                "the limit on what models may cost left no room for a single request",
                "raise --max-cost, --max-tokens or --max-time",
            )
        if not trained and self._why_ended is not None:
            raise self._why_ended[1]
        if not trained:
            raise self._failed("no candidate's training came to its end", failures(attempts))
        self._tell_why_ended()
        return trained

    def _tell_why_ended(self) -> None:
        """Archive and tell why there are fewer generations than were asked for; a resumed search
        may have got beyond that."""
        text = ""
        if self._why_ended is not None:
            iteration, error = self._why_ended
            another = (
                f" --retry-rounds {self._rounds(iteration)}"
                if isinstance(error, SearchFailedError)
                else ""
            )
            text = (
                f"the search ended with generation {iteration + 1}: {error.message}; what was"
                " trained until then was finished, and"
                f" `{resume_command(self._run.folder)}{another}` tries again"
            )
            self._observer(Notice(text=text, level="warning"))
        if self._run.archive.state.ended_early != text:
            self._observer(SearchEndedEarly(text=text))

    def _end_with(self, iteration: int, error: EurekaError) -> None:
        """Let nothing follow this generation. Raises the error again where nothing could be kept of
        what is there, the environment is at fault, or the first generation is not the recorded
        one."""
        other_search = isinstance(error, MissingReplyError) and iteration == 0
        if other_search or isinstance(error, RunFolderError | EnvironmentFaultError):
            raise error
        self._why_ended = self._why_ended or (iteration, error)

    async def _generations(self, group: asyncio.TaskGroup) -> None:
        """Begin one generation after the other, each as soon as all is known that it is designed
        from."""
        lives: list[list[Life]] = []
        ends: list[asyncio.Task[None]] = []
        for iteration in range(self._run.settings.iterations):
            # asked before the wait as well: an end that is certain does not wait for baselines
            if self._is_over(iteration):
                return
            await self._until_known(iteration, lives, ends)
            if self._is_over(iteration):
                return
            if self._deadline is not None and not self._deadline.allows(iteration):
                return
            try:
                lives.append(await self._iteration(iteration, group))
            except EurekaError as error:
                self._end_with(iteration, error)
                return  # the group sees to what is in training
            if not self._run.archive.attempts(iteration):  # not one proposal could be made
                return
            ends.append(group.create_task(self._end(iteration, lives[iteration], ends[-1:])))

    def _is_over(self, iteration: int) -> bool:
        """True where this generation cannot be designed, nor was in an earlier process."""
        return self._why_ended is not None or (
            self._spent() and not self._run.archive.attempts(iteration)
        )

    async def _until_known(
        self, iteration: int, lives: Sequence[Sequence[Life]], ends: Sequence[asyncio.Task[None]]
    ) -> None:
        """Wait for what this generation is designed from, whether or not anybody will read it: what
        is known never depends on timing."""
        if self._overlaps(iteration):
            if iteration >= EPISODES_LAG:
                await _ended(lives[iteration - EPISODES_LAG])
            if iteration >= REPEATS_LAG:
                await ends[iteration - REPEATS_LAG]
        elif iteration > 0:
            await ends[iteration - 1]
        if iteration > 0:
            await self._baselines_are_known()

    async def _baselines_are_known(self) -> bool:
        """Wait for the baselines. False where the time was up before: then nobody waits or counts
        with them any more, as the archive has it."""
        if self._baselines is None:
            return False
        limit = None if self._deadline is None else self._deadline.limit.text
        if limit is not None and self._run.archive.state.baselines_not_awaited == limit:
            return False
        try:
            async with asyncio.timeout(
                None if self._deadline is None else self._deadline.seconds_left()
            ):
                await self._baselines()
        except TimeoutError:
            assert limit is not None  # else nothing times out
            self._observer(BaselinesNotAwaited(limit=limit))
            return False
        return True

    async def _tell_noise(self, race: Race) -> None:
        """Tell a race how much the seed alone does, as soon as the baselines have shown it."""
        trainings = self._run.archive.trainings() if await self._baselines_are_known() else ()
        await race.tell_noise([training_noise(trainings, place) for place in self._rungs.places])

    def _overlaps(self, iteration: int) -> bool:
        """Whether this generation is designed while the one before it is in training."""
        return self._works_ahead and says_something(self._run.archive.attempts(iteration - 1))

    async def _iteration(self, iteration: int, group: asyncio.TaskGroup) -> list[Life]:
        """Begin a generation; returns its lives once the next one can be designed, or all of them
        have ended."""
        settings, archive = self._run.settings, self._run.archive
        rounds = self._rounds(iteration)
        for attempt_round in range(rounds):
            samples = range(
                attempt_round * settings.samples, (attempt_round + 1) * settings.samples
            )
            history = self._history(iteration, samples.start)
            self._observer(
                IterationStarted(iteration=iteration, round=attempt_round, samples=len(samples))
            )
            course = self._course(samples, history)
            lives = await self._round(iteration, samples, history, course, group)
            if course is not None and course.race is not None and self._baselines is not None:
                telling = group.create_task(self._tell_noise(course.race))
                # where all have ended nobody is left to be told
                asyncio.gather(*lives, return_exceptions=True).add_done_callback(
                    partial(_cancel, telling)
                )
            if self._works_ahead and course is not None:
                await course.milestone.reached()
            if not self._overlaps(iteration + 1):
                await _ended(lives)
            this_round = [each for each in archive.attempts(iteration) if each.sample in samples]
            if says_something(this_round) or any(
                each.stage is Stage.TRAINED for each in this_round
            ):
                return lives
            await _ended(lives)
            if (
                self._spent() or self._why_ended is not None
            ):  # what is paid for is all that there will be
                return lives
        what = (
            "the proposal failed"
            if settings.samples * rounds == 1
            else (
                f"every proposal of iteration {iteration + 1} failed, in"
                f" {wording.plural(rounds, 'round')} of {settings.samples}"
            )
        )
        raise self._failed(
            what, [attempt for life in lives if (attempt := life.result()) is not None]
        )

    def _rounds(self, iteration: int) -> int:
        """Rounds that this generation may take; those that were made count, whatever the setting is
        by now."""
        last = max((attempt.sample for attempt in self._run.archive.attempts(iteration)), default=0)
        return max(self._run.settings.retry_rounds, last // self._run.settings.samples) + 1

    def _failed(self, what: str, attempts: Sequence[Attempt]) -> SearchFailedError:
        reasons = "; ".join(list(dict.fromkeys(attempt.reason for attempt in attempts))[:3])
        return SearchFailedError(
            f"{what}: {reasons}" if reasons else what,
            f"`{command(shlex.join(['show', str(self._run.folder)]))}` lists the attempts and their"
            " findings",
        )

    def _history(self, iteration: int, first: int) -> list[Attempt]:
        """The attempts that the proposals from sample `first` of a generation on are made from, as
        they stand then."""
        attempts = self._run.archive.attempts()
        if self._overlaps(iteration):
            known = standing(attempts, iteration, self._rungs)
        else:
            known = [
                attempt
                for attempt in known_before(attempts, iteration)
                if attempt.iteration < iteration
            ]
        earlier_rounds = [
            attempt
            for attempt in attempts
            if attempt.iteration == iteration and attempt.sample < first
        ]
        return [*known, *earlier_rounds]

    async def _end(
        self, iteration: int, lives: Sequence[Life], before: Sequence[asyncio.Task[None]]
    ) -> None:
        """See a generation to its end, after the one before it, and train the best so far again."""
        await asyncio.gather(*lives, *before)
        await self._confirm(iteration)
        best = ranked(self._known_after(iteration))
        self._observer(IterationEnded(iteration=iteration, best=best[0].id if best else None))

    def _known_after(self, iteration: int) -> list[Attempt]:
        """The attempts up to this generation as they were at its end, also when a resumed run
        passes it again."""
        return [
            attempt
            for attempt in known_before(self._run.archive.attempts(), iteration + 1)
            if attempt.iteration <= iteration
        ]

    async def _confirm(self, iteration: int) -> None:
        """Train the best so far again, so that luck in a single training leads the search less
        often."""
        settings = self._run.settings
        attempts = {attempt.id: attempt for attempt in self._run.archive.attempts()}
        repeated = tuple(
            attempts[each]
            for each in to_confirm(list(attempts.values()), iteration, settings.confirm)
        )
        missing = [
            (attempt.id, seed)
            for attempt in repeated
            for seed in repeat_seeds(attempt, settings.seed, settings.confirm_seeds)
            if all(repeat.seed != seed for repeat in attempt.repeats)
        ]
        if not missing:
            return
        self._observer(
            ConfirmationStarted(
                iteration=iteration,
                attempts=tuple(each.id for each in repeated),
                trainings=len(missing),
            )
        )
        with first_error():
            async with asyncio.TaskGroup() as group:
                for attempt_id, seed in missing:
                    group.create_task(self._attempts.repeat(attempt_id, iteration, seed))

    async def _round(
        self,
        iteration: int,
        samples: range,
        history: Sequence[Attempt],
        course: Course | None,
        group: asyncio.TaskGroup,
    ) -> list[Life]:
        """Begin the lives of a generation's proposals; returns when a designer who works in order
        has made them all."""
        progress = self._rungs.progress if self._overlaps(iteration) else 1.0
        requests = await self._briefing.requests(iteration, samples, history, progress)
        self._attempts.open_round(iteration, samples)
        lives: list[Life] = []
        siblings: list[str] = []
        for sample, request in zip(samples, requests, strict=True):
            if self._designer.concurrent:
                lives.append(group.create_task(self._life(iteration, sample, request, course)))
                continue
            # in order, so that each proposal knows the ones before it, and is compared with what
            # the critic let pass of them; the first may be in training by then
            request = replace(request, siblings=tuple(siblings))
            attempt = await self._settled(iteration, sample, request)
            if attempt is None:  # nor could the others be made
                for place in range(sample, samples.stop):
                    await self._leave(place, course)
                break
            siblings.append(self._first_source(iteration, sample))
            lives.append(group.create_task(self._finish(attempt, request, course)))
        return lives

    def _first_source(self, iteration: int, sample: int) -> str:
        """Source of the first proposal for a place, as the designer made it or the critic mended
        it."""
        first = self._run.archive.attempt(attempt_id(iteration, sample, 0))
        assert first is not None  # its last revision is settled
        return first.proposal.source

    async def _life(
        self, iteration: int, sample: int, request: DesignRequest, course: Course | None
    ) -> Attempt | None:
        attempt = await self._settled(iteration, sample, request)
        if attempt is None:
            await self._leave(sample, course)
            return None
        return await self._finish(attempt, request, course)

    async def _settled(self, iteration: int, sample: int, request: DesignRequest) -> Attempt | None:
        """The last revision of this place's proposal; None where there is no way to have it made or
        judged."""
        try:
            return await self._attempts.settle(
                await self._attempts.propose(iteration, sample, request), request
            )
        except EurekaError as error:
            if not isinstance(error, BudgetSpentError):
                self._end_with(iteration, error)
            self._attempts.leave_round(iteration, sample)
            return None

    async def _finish(
        self, attempt: Attempt, request: DesignRequest, course: Course | None
    ) -> Attempt | None:
        try:
            return await self._attempts.finish(attempt, request, course)
        except LanguageModelError as error:  # turned down by its review, and nobody mends it
            self._end_with(attempt.iteration, error)
            return attempt
        finally:
            await self._leave(attempt.sample, course)

    async def _leave(self, sample: int, course: Course | None) -> None:
        """Nobody waits for this candidate any more."""
        if course is not None:
            await course.leave(sample)

    def _course(self, samples: range, history: Sequence[Attempt]) -> Course | None:
        """Where this generation's candidates pause; None where they need not, or cannot."""
        racing = self._run.settings.racing and len(samples) > 1
        if (
            not (racing or self._works_ahead)
            or not self._run.description.restorable
            or not self._rungs.places
        ):
            return None
        earlier = [
            [
                score
                for score in (
                    self._rungs.score(rung, each) for each in history if each.stage is Stage.TRAINED
                )
                if score is not None
            ]
            for rung in range(len(self._rungs.places))
        ]
        race = Race(samples, earlier, noise_is_known=self._baselines is None) if racing else None
        return Course(self._rungs, race, Milestone(samples))


def _cancel(task: asyncio.Task[None], _: object) -> None:
    """Cancel a task when a future is done."""
    task.cancel()


async def _ended(lives: Sequence[Life]) -> None:
    """Wait for all of them; `asyncio.wait` takes no empty list."""
    if lives:
        await asyncio.wait(lives)


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
