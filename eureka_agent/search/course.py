"""A generation's course: where its candidates pause, who is stopped there, and when all have come
past the last of these places."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass

from eureka_agent.records import Attempt
from eureka_agent.search.racing import Race, Rungs


class Milestone:
    """Tells when every candidate of a generation has come past its last rung, or has ended before
    it."""

    def __init__(self, candidates: Collection[int]) -> None:
        """`candidates`: samples of the generation."""
        self._missing = set(candidates)
        self._reached = asyncio.Event()

    def pass_by(self, candidate: int) -> None:
        """This one has; to say so again changes nothing."""
        self._missing.discard(candidate)
        if not self._missing:
            self._reached.set()

    async def reached(self) -> None:
        """Wait until all have."""
        await self._reached.wait()


@dataclass(frozen=True)
class Course:
    """What the candidates of one generation meet on their way."""

    rungs: Rungs
    """At least one."""
    race: Race | None
    """None where nobody is stopped."""
    milestone: Milestone

    @property
    def pauses(self) -> tuple[int, ...]:
        """Env steps at which a candidate pauses. The last one is the milestone's."""
        return self.rungs.env_steps if self.race is not None else self.rungs.env_steps[-1:]

    async def at_rung(self, candidate: int, rung: int, score: float | None) -> str:
        """Wait at a rung until all are there; why this candidate is to be stopped, or ""."""
        return "" if self.race is None else await self.race.at_rung(candidate, rung, score)

    def tell(self, ended: Attempt) -> None:
        """What an attempt reached that an earlier process trained."""
        if self.race is not None:
            for score in ended.rungs:
                self.race.tell(
                    ended.sample, self.rungs.env_steps.index(score.env_steps), score.fitness
                )

    async def leave(self, candidate: int) -> None:
        """A candidate's life has ended, whatever it came to: nobody waits for it any more."""
        self.milestone.pass_by(candidate)
        if self.race is not None:
            await self.race.leave(candidate)
