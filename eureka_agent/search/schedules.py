"""When the proposals of a search are planned: generation by generation, or one by one as soon as
there is room."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from eureka_agent import wording
from eureka_agent.errors import EurekaError
from eureka_agent.journal.entries import IterationStarted, Planned
from eureka_agent.records import Attempt, Stage
from eureka_agent.search.confirmation import to_confirm
from eureka_agent.search.racing import GenerationRace, OpenRace, Race
from eureka_agent.search.strategies.history import last_revisions

if TYPE_CHECKING:
    from eureka_agent.search.engine import SearchEngine

Life = asyncio.Task[Attempt | None]
"""Of a proposal, until nothing more happens to it; None where it could not be made."""
LOOK_AHEAD = 0.25
"""Part of a generation's size that a steady search designs while others are still in training, so
that a slot which becomes free need not wait for a designer."""


def can_pause(engine: SearchEngine) -> bool:
    """True where trainings of this search pause at rungs."""
    settings = engine.run.settings
    return settings.racing and engine.run.description.restorable and bool(engine.rungs.places)


class Generations:
    """A generation is planned when the one before has ended and its best are confirmed."""

    def __init__(self, engine: SearchEngine, group: asyncio.TaskGroup) -> None:
        self._engine = engine
        self._group = group

    async def search(self) -> None:
        """All generations that settings, deadline and designer allow."""
        engine = self._engine
        for iteration in range(engine.run.settings.iterations):
            # asked before the wait as well: an end that is certain does not wait for baselines
            if engine.is_over(iteration):
                return
            if iteration > 0:
                await engine.baselines_are_known()
            if engine.is_over(iteration) or not engine.allows(iteration):
                return
            try:
                await self._generation(iteration)
            except EurekaError as error:
                engine.end_with(iteration, error)
                return
            if not engine.run.archive.attempts(iteration):  # not one proposal could be made
                return
            await engine.confirm(iteration)
            engine.end_iteration(iteration)

    async def _generation(self, iteration: int) -> None:
        """One generation, in as many rounds as it takes for something to come of it."""
        engine, archive = self._engine, self._engine.run.archive
        size, rounds = engine.run.settings.samples, engine.rounds(iteration)
        for number in range(rounds):
            samples = range(number * size, (number + 1) * size)
            if iteration not in archive.state.iterations_ended:
                engine.observer(IterationStarted(iteration=iteration, round=number, samples=size))
            await self._round(iteration, samples)
            this_round = [each for each in archive.attempts(iteration) if each.sample in samples]
            if any(each.stage is Stage.TRAINED for each in this_round) or engine.is_cut_short:
                return
        what = (
            "the proposal failed"
            if size * rounds == 1
            else (
                f"every proposal of iteration {iteration + 1} failed, in"
                f" {wording.plural(rounds, 'round')} of {size}"
            )
        )
        raise engine.failed(what, last_revisions(this_round))

    async def _round(self, iteration: int, samples: range) -> None:
        engine = self._engine
        race = self._race(iteration, samples)
        plans = engine.plan(iteration, samples)
        lives: list[Life] = []
        siblings: list[str] = []
        for plan in plans:
            if engine.designer.concurrent:
                lives.append(self._group.create_task(engine.see_through(plan, race)))
                continue
            # in order, so that each proposal knows the ones before it, and is compared with what
            # the critic let pass of them; the first may be in training by then
            life = await engine.begin(plan, race, siblings)
            if life is None:  # nor could the others be made
                for place in range(plan.sample + 1, samples.stop):
                    await engine.leave(place, race)
                break
            siblings.append(engine.first_source(iteration, plan.sample))
            lives.append(self._group.create_task(life))
        if isinstance(race, GenerationRace) and engine.baselines is not None:
            telling = self._group.create_task(self._tell_noise(race))
            # where all have ended nobody is left to be told
            asyncio.gather(*lives, return_exceptions=True).add_done_callback(
                partial(_cancel, telling)
            )
        if lives:
            await asyncio.wait(lives)

    def _race(self, iteration: int, samples: range) -> Race | None:
        engine = self._engine
        if not can_pause(engine) or len(samples) < 2:
            return None
        earlier = [
            each
            for each in engine.run.archive.attempts()
            if each.iteration < iteration and each.stage is Stage.TRAINED
        ]
        scores = [engine.rungs.scores(rung, earlier) for rung in range(len(engine.rungs.places))]
        known = engine.baselines is None
        return GenerationRace(engine.rungs, samples, scores, noise_is_known=known)

    async def _tell_noise(self, race: GenerationRace) -> None:
        """Tell a race how much the seed alone does, as soon as the baselines have shown it."""
        await race.tell_noise(
            [await self._engine.noise(each) for each in self._engine.rungs.places]
        )


class Steady:
    """A proposal is planned as soon as there is room for it, from what is known by then.

    As many candidates as a generation has are on their way at a time. While some of them are past
    their last rung, a few more are designed.
    """

    def __init__(self, engine: SearchEngine, group: asyncio.TaskGroup) -> None:
        self._engine = engine
        self._group = group
        self._size = engine.run.settings.samples
        self._under_way: set[tuple[int, int]] = set()
        self._changed = asyncio.Event()
        self._lives: list[Life] = []
        self._race: OpenRace | None = None
        if can_pause(engine):
            self._race = OpenRace(
                engine.rungs, engine.run.archive.attempts, engine.noise, self._changed.set
            )

    async def search(self) -> None:
        """All proposals that settings, deadline and designer allow."""
        engine = self._engine
        for confirmation in engine.run.archive.state.confirmations:
            self._group.create_task(engine.repeat(confirmation.iteration, confirmation.attempts))
        for place in self._places():
            if not await self._plan(*place):
                break
        await self._ended()
        last, size = engine.run.settings.iterations - 1, self._size
        rounds = 1
        while not self._any_trained() and not engine.is_cut_short:
            if rounds >= engine.rounds(last):
                attempts = engine.run.archive.attempts()
                what = f"none of {len(attempts)} proposals was trained"
                raise engine.failed(what, last_revisions(attempts))
            for sample in range(rounds * size, (rounds + 1) * size):
                if not await self._plan(last, sample):
                    break
            await self._ended()
            rounds += 1

    def _places(self) -> Sequence[tuple[int, int]]:
        iterations = range(self._engine.run.settings.iterations)
        return [(iteration, sample) for iteration in iterations for sample in range(self._size)]

    async def _plan(self, iteration: int, sample: int) -> bool:
        """Begin the next proposal, once there is room for it. False where none is begun any
        more."""
        engine = self._engine
        state = engine.run.archive.state
        if (iteration, sample) not in state.plans:
            while not self._has_room():
                self._changed.clear()
                await self._changed.wait()
            if engine.is_cut_short or engine.is_over(iteration) or not engine.allows(iteration):
                return False
        if sample % self._size == 0 and iteration not in state.iterations_ended:
            engine.observer(
                IterationStarted(
                    iteration=iteration, round=sample // self._size, samples=self._size
                )
            )
        (plan,) = engine.plan(iteration, range(sample, sample + 1))
        self._under_way.add((iteration, sample))
        self._lives.append(self._group.create_task(self._life(plan)))
        return True

    def _has_room(self) -> bool:
        ahead = min(self._past_last_rung(), max(1, int(LOOK_AHEAD * self._size)))
        return len(self._under_way) - ahead < self._size

    def _past_last_rung(self) -> int:
        if self._race is None:
            return 0
        state, last = self._engine.run.archive.state, self._engine.rungs.env_steps[-1]
        return sum(
            state.decisions.get((each.id, last)) == ""
            for each in state.by_id.values()
            if each.stage is Stage.ACCEPTED and (each.iteration, each.sample) in self._under_way
        )

    async def _life(self, plan: Planned) -> Attempt | None:
        """A proposal until nothing more happens to it: then there is room for another, and others
        may be the best."""
        attempt = await self._engine.see_through(plan, self._race)
        self._under_way.discard((plan.iteration, plan.sample))
        self._confirm(plan.iteration)
        self._end_iterations()
        self._changed.set()
        return attempt

    def _confirm(self, iteration: int) -> None:
        """Have the best so far trained again that nobody has asked for yet."""
        engine, state = self._engine, self._engine.run.archive.state
        ended = [each for each in state.by_id.values() if each.stage is Stage.TRAINED]
        if len(ended) < self._size:
            return
        asked = {each for known in state.confirmations for each in known.attempts}
        chosen = to_confirm(ended, engine.run.settings.confirm)
        if new := [each for each in chosen if each not in asked]:
            engine.record_confirmation(iteration, new)
            self._group.create_task(engine.repeat(iteration, new))

    def _end_iterations(self) -> None:
        """Tell of generations whose last proposal has ended."""
        plans = self._engine.run.archive.state.plans
        for iteration in range(self._engine.run.settings.iterations):
            left = any(each[0] == iteration for each in self._under_way)
            if not left and sum(each[0] == iteration for each in plans) >= self._size:
                self._engine.end_iteration(iteration)

    def _any_trained(self) -> bool:
        attempts = self._engine.run.archive.attempts()
        return any(each.stage is Stage.TRAINED for each in attempts)

    async def _ended(self) -> None:
        if self._lives:
            await asyncio.wait(self._lives)


def _cancel(task: asyncio.Task[None], _: object) -> None:
    """Cancel a task when a future is done."""
    task.cancel()
