"""Schedules of proposals: generation by generation, or one as soon as there is room."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from eureka_agent import wording
from eureka_agent.errors import EurekaError
from eureka_agent.journal.entries import IterationStarted, Notice, Planned
from eureka_agent.llm.budget import BudgetSpentError
from eureka_agent.records import Attempt, Stage
from eureka_agent.search.attempt_training import rung_env_steps
from eureka_agent.search.attempts import attempt_id, to_confirm
from eureka_agent.search.strategies import last_revisions
from eureka_agent.settings import SearchSettings
from eureka_agent.training_counts import is_confirmed

if TYPE_CHECKING:
    from eureka_agent.search.search import Search


ProposalTask = asyncio.Task[Attempt | None]
"""Task that takes a proposal to its end; None if it could not be made."""
Ask = Callable[[], Awaitable[None]]
"""Asks a person, whose feedback and decision are entries when it returns."""
WAVES = 3
"""Parts of a generation that a model is asked for one after the other, so that each knows the
proposals before it."""
LOOK_AHEAD = 0.25
"""Share of a generation that a steady search designs in advance, so that no slot waits."""


def waves_of(settings: SearchSettings, proposals: int) -> int:
    """Number of waves in which so many proposals of a generation are asked for: one of a batch,
    which takes hours."""
    return 1 if settings.llm_batch else min(WAVES, proposals)


class Generations:
    """Plans a generation when the last one has ended and its best are confirmed."""

    def __init__(self, search: Search, group: asyncio.TaskGroup) -> None:
        self._search = search
        self._group = group

    async def run(self) -> None:
        """Run all generations that settings, deadline and designer allow."""
        search = self._search
        for iteration in range(search.run.settings.iterations):
            # also before the wait, so that a certain end does not wait for baselines
            if search.is_over(iteration):
                return
            if iteration > 0:
                await search.baselines_are_known()
            if search.is_over(iteration) or not search.deadline.allows(iteration):
                return
            try:
                await self._generation(iteration)
            except EurekaError as error:
                search.end_with(iteration, error)
                return
            if not search.run.archive.attempts(iteration):  # not one proposal could be made
                return
            await search.confirm(iteration)
            try:
                await search.judge(iteration)
            except BudgetSpentError:  # a resumed run goes on with it
                return
            except EurekaError as error:
                search.end_with(iteration, error)
                return
            search.end_iteration(iteration)

    async def _generation(self, iteration: int, given: int = 0) -> None:
        """Run one generation, in further rounds while every proposal fails. `given`: number of
        given rewards that are all of it."""
        search, archive = self._search, self._search.run.archive
        size, rounds = search.run.settings.samples, search.rounds(iteration)
        given = archive.state.given_alone.get(iteration, given)
        if given:
            size, rounds = given, 1
        for number in range(rounds):
            samples = range(number * size, (number + 1) * size)
            if iteration not in archive.state.iterations_ended:
                started = IterationStarted(
                    iteration=iteration, round=number, samples=size, given_alone=bool(given)
                )
                search.observer(started)
            await self._round(iteration, samples)
            this_round = [each for each in archive.attempts(iteration) if each.sample in samples]
            if any(each.stage is Stage.TRAINED for each in this_round) or search.is_cut_short:
                return
        what = "the proposal failed"
        if size * rounds > 1:
            tries = f"{wording.plural(rounds, 'round')} of {size}"
            what = f"every proposal of iteration {iteration + 1} failed, in {tries}"
        raise search.failed(what, last_revisions(this_round))

    async def _round(self, iteration: int, samples: range) -> None:
        search, archive = self._search, self._search.run.archive
        plans = search.briefing.plan(iteration, samples)
        tasks: list[ProposalTask] = []
        names = [attempt_id(iteration, plan.sample, 0) for plan in plans]
        # a designer that works in order is compared with what the critic accepted before
        waves = waves_of(search.run.settings, len(plans))
        together = -(-len(plans) // waves) if search.advisers.designer.concurrent else 1
        for begin in range(0, len(plans), together):
            wave = range(begin, min(begin + together, len(plans)))
            settled = [asyncio.Event() for _ in wave]
            for place, event in zip(wave, settled, strict=True):
                task = search.take_to_end(plans[place], names[:begin], settled=event.set)
                tasks.append(self._group.create_task(task))
            for event in settled:
                await event.wait()
            is_made = any(names[place] in archive.state.by_id for place in wave)
            if not is_made or search.is_cut_short:  # the others could not be made either
                break
        await _ended(tasks)


class Rounds(Generations):
    """Plans a generation when a person has seen the last one and asks for another."""

    async def run(self) -> None:
        """Run generations until the person decides otherwise, also after an empty one."""
        search, ask = self._search, self._search.ask
        assert ask is not None  # the schedule is chosen by it
        while True:
            state = search.run.archive.state
            # a generation that an earlier process has planned and not ended comes first
            left = (each for each, _ in state.plans if each not in state.iterations_ended)
            iteration, given = next(left, None), 0
            if iteration is None:
                iteration = max((each for each, _ in state.plans), default=-1) + 1
                await self._judged(iteration - 1)
                while search.run.archive.state.decision is None:
                    await ask()
                decision = search.run.archive.state.decision
                if decision not in ("another", "given"):
                    return
                if decision == "given":
                    given = len(search.briefing.pending())
            search.extend_to(iteration + 1)
            try:
                await self._generation(iteration, given)
            except EurekaError as error:
                search.raise_if_fatal(error)
                search.observer(Notice(text=f"{error.message}; {error.hint}", level="warning"))
            search.end_iteration(iteration)

    async def _judged(self, iteration: int) -> None:
        """Have the attempts compared before the person sees them, who decides without, too."""
        try:
            await self._search.judge(iteration)
        except EurekaError as error:
            self._search.raise_if_fatal(error)
            text = f"not all attempts were judged: {error.message}; {error.hint}"
            self._search.observer(Notice(text=text, level="warning"))


class Steady:
    """Plans a proposal as soon as there is room for it: as many at a time as a generation has, and
    a few more while some are past their last rung."""

    def __init__(self, search: Search, group: asyncio.TaskGroup) -> None:
        self._search = search
        self._group = group
        self._size = search.run.settings.samples
        self._last_rung = max(rung_env_steps(search.run.settings), default=None)
        self._under_way: set[tuple[int, int]] = set()
        self._changed = asyncio.Event()
        self._tasks: list[ProposalTask] = []

    async def run(self) -> None:
        """Run all proposals that settings, deadline and designer allow."""
        search = self._search
        for confirmation in search.run.archive.state.confirmations:
            self._group.create_task(search.repeat(confirmation.iteration, confirmation.attempts))
        iterations = range(search.run.settings.iterations)
        for place in itertools.product(iterations, range(self._size)):
            if not await self._plan(*place):
                break
        await _ended(self._tasks)
        last, size = search.run.settings.iterations - 1, self._size
        rounds = 1
        while not search.is_cut_short:
            attempts = search.run.archive.attempts()
            if any(each.stage is Stage.TRAINED for each in attempts):
                return
            if rounds >= search.rounds(last):
                what = f"none of {len(attempts)} proposals was trained"
                raise search.failed(what, last_revisions(attempts))
            for sample in range(rounds * size, (rounds + 1) * size):
                if not await self._plan(last, sample):
                    break
            await _ended(self._tasks)
            rounds += 1

    async def _plan(self, iteration: int, sample: int) -> bool:
        """Start the next proposal when there is room. False if no further one is started."""
        search = self._search
        state = search.run.archive.state
        if (iteration, sample) not in state.plans:
            while not self._has_room(iteration):
                self._changed.clear()
                await self._changed.wait()
            is_over = search.is_cut_short or search.is_over(iteration)
            if is_over or not search.deadline.allows(iteration):
                return False
        if sample % self._size == 0 and iteration not in state.iterations_ended:
            search.observer(
                IterationStarted(
                    iteration=iteration, round=sample // self._size, samples=self._size
                )
            )
        (plan,) = search.briefing.plan(iteration, range(sample, sample + 1))
        self._under_way.add((iteration, sample))
        self._tasks.append(self._group.create_task(self._run_plan(plan)))
        return True

    def _has_room(self, iteration: int) -> bool:
        if iteration and self._under_way and not self._knows_enough():
            return False
        past_last_rung = sum(
            any(score.env_steps == self._last_rung for score in each.rungs)
            for each in self._search.run.archive.state.by_id.values()
            if each.stage is Stage.ACCEPTED and (each.iteration, each.sample) in self._under_way
        )
        ahead = min(past_last_rung, max(1, int(LOOK_AHEAD * self._size)))
        return len(self._under_way) - ahead < self._size

    def _knows_enough(self) -> bool:
        """False where a proposal would see nothing new, or not the attempt that leads at its last
        rung, whose end is near."""
        state = self._search.run.archive.state
        attempts = state.attempts()
        ended = [each for each in attempts if each.stage is Stage.TRAINED]
        if sum(iteration > 0 for iteration, _ in state.plans) >= len(ended):
            return False
        best = max((each.fitness for each in ended if each.fitness is not None), default=-math.inf)
        leading = (
            each.rungs[-1].fitness
            for each in attempts
            if each.stage is Stage.ACCEPTED and each.rungs
        )
        return all(each is None or each <= best for each in leading)

    async def _run_plan(self, plan: Planned) -> Attempt | None:
        """Take a proposal to its end, then make room for another and look for new best ones."""
        attempt = await self._search.take_to_end(plan, rung_scored=self._changed.set)
        self._under_way.discard((plan.iteration, plan.sample))
        self._confirm(plan.iteration)
        self._end_iterations()
        self._changed.set()
        return attempt

    def _confirm(self, iteration: int) -> None:
        """Start repeats of the best attempts that have none, as many as generations would have."""
        search, state = self._search, self._search.run.archive.state
        settings = search.run.settings
        ended = [each for each in state.attempts() if each.stage is Stage.TRAINED]
        asked = {each for known in state.confirmations for each in known.attempts}
        generations = range(min(len(ended) // self._size, settings.iterations))
        due = settings.confirm * sum(is_confirmed(settings, each) for each in generations)
        chosen = to_confirm(ended, settings.confirm)
        if new := [each for each in chosen if each not in asked][: max(0, due - len(asked))]:
            search.record_confirmation(iteration, new)
            self._group.create_task(search.repeat(iteration, new))

    def _end_iterations(self) -> None:
        """Record the end of generations whose last proposal has ended."""
        plans = self._search.run.archive.state.plans
        for iteration in range(self._search.run.settings.iterations):
            left = any(each[0] == iteration for each in self._under_way)
            if not left and sum(each[0] == iteration for each in plans) >= self._size:
                self._search.end_iteration(iteration)


async def _ended(tasks: Sequence[ProposalTask]) -> None:
    if tasks:
        await asyncio.wait(tasks)
