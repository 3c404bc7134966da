"""The table of a refinement: what a person sees and says between two generations."""

from __future__ import annotations

import getpass
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, Protocol

from eureka_agent.archive.run_folder import Run
from eureka_agent.critic.critic import Critic
from eureka_agent.designer.given import given_reward
from eureka_agent.errors import EurekaError
from eureka_agent.feedback.preferences import Preferences
from eureka_agent.feedback.reading import Reads
from eureka_agent.feedback.standing import (
    choices_of,
    judged,
    preferences_of,
    standing_wishes,
)
from eureka_agent.feedback_records import (
    Clip,
    Comparison,
    Feedback,
    Given,
    Grade,
    Mark,
    Reading,
    Wish,
    Withdrawal,
)
from eureka_agent.journal.entries import FeedbackGiven, Observer
from eureka_agent.ranking import ranked
from eureka_agent.records import Attempt, Stage, Verdict
from eureka_agent.search.clips import CLIP_EPISODES, CLIP_STARTS, Clips
from eureka_agent.search.preparation import Prepared
from eureka_agent.search.seeds import derive_seed

Decision = Literal["another", "finish", "leave"]
"""Another generation; the final trainings, then the end; the end."""


class Table:
    """Everything that a person sees and says between two generations, for a terminal or a page."""

    def __init__(self, run: Run, ready: Prepared, observer: Observer, reader: Reads) -> None:
        """`observer` records entries."""
        self.run = run
        self._ready = ready
        self._observer = observer
        self._reader = reader
        self._who = _user_name()
        self._clips = Clips(run, ready)

    # ── what is there ─────────────────────────────────────────────────────────────────────────────

    @property
    def feedback(self) -> tuple[Given, ...]:
        """All feedback that was not withdrawn, oldest first."""
        return self.run.archive.state.feedback

    @property
    def wishes(self) -> tuple[Given, ...]:
        """Standing wishes."""
        return standing_wishes(self.feedback)

    def attempts(self) -> list[Attempt]:
        """Trained attempts, best first by what ranks them."""
        return ranked(judged(self.run.archive.attempts(), self.feedback))

    def newest(self) -> list[Attempt]:
        """Trained attempts of the last generation that has any, in their order."""
        trained = [each for each in self.run.archive.attempts() if each.stage is Stage.TRAINED]
        last = max((each.iteration for each in trained), default=-1)
        return [each for each in trained if each.iteration == last]

    def preferences(self) -> Preferences:
        """Strengths that follow from the choices."""
        return preferences_of(self.run.archive.attempts(), self.feedback)

    def next_pair(self) -> tuple[str, str] | None:
        """The pair whose comparison tells most, in an order that depends on the number of choices
        alone; None for fewer than two attempts."""
        found = self.preferences()
        pair = found.next_pair(found.names)
        if pair is None:
            return None
        flipped = derive_seed(self.run.settings.seed, "order", len(choices_of(self.feedback))) % 2
        return (pair[1], pair[0]) if flipped else pair

    # ── what is said ──────────────────────────────────────────────────────────────────────────────

    def say(self, feedback: Feedback) -> int:
        """Record feedback; its number. Raises RunFolderError where it cannot be stored."""
        self._record(feedback)
        return self.feedback[-1].number

    def _record(self, feedback: Feedback) -> None:
        self._observer(FeedbackGiven(who=self._who, feedback=feedback))

    def compare(self, first: str, second: str, grade: Grade | None) -> int:
        """Record the comparison of two attempts."""
        self.check_trained((first, second))
        return self.say(Comparison(first=first, second=second, grade=grade))

    def withdraw(self, number: int) -> None:
        """Take feedback back. Raises EurekaError for a number that is none."""
        if all(each.number != number for each in self.feedback):
            known = ", ".join(str(each.number) for each in self.feedback)
            raise EurekaError(
                f"there is no standing feedback {number}", f"there is {known or 'none'}"
            )
        self._record(Withdrawal(of=number))

    def undo(self) -> Given | None:
        """Take the last feedback back; None if there is none."""
        last = self.feedback[-1] if self.feedback else None
        if last is not None:
            self.withdraw(last.number)
        return last

    async def read(self, wish: Wish, correction: str = "") -> Reading:
        """Read a wish, before it is recorded."""
        attempt = self.run.archive.attempt(wish.attempt) if wish.attempt else None
        best = attempt or next(iter(self.attempts()), None)
        source = "" if best is None else best.proposal.reward.source
        return await self._reader.read(wish, self.wishes, source, correction)

    async def judge_edit(self, source: str) -> Verdict:
        """The critic's verdict on a reward of the person's."""
        critic = Critic(self._ready.dry_runner.description, self._ready.dry_runner)
        return await critic.judge(given_reward(source))

    def check_trained(self, names: Iterable[str]) -> None:
        """Raise EurekaError for a name that is no trained attempt."""
        known = [each.id for each in self.attempts()]
        for name in names:
            if name not in known:
                raise EurekaError(
                    f"{name!r} is no trained attempt of this run", f"there are {', '.join(known)}"
                )

    # ── what is seen ──────────────────────────────────────────────────────────────────────────────

    async def clips(self, names: Sequence[str]) -> dict[str, Path]:
        """A clip of each attempt, all from the same start states. Raises EurekaError where nothing
        can be drawn."""
        self.check_trained(names)
        return await self._clips.of(names, self._start())

    async def mark(self, attempt: str, second: float, panel: int = 1, note: str = "") -> int:
        """Record the second at which an attempt's clip went wrong, with the state there. `panel`:
        place of the start state in the clip, from 1."""
        if not 1 <= panel <= CLIP_STARTS or not second >= 0.0:
            raise EurekaError(
                f"second {second:g} of panel {panel} is no place in a clip",
                f"expected a time from 0 on, and a panel from 1 to {CLIP_STARTS}",
            )
        await self.clips([attempt])
        episode = self._start() + panel - 1
        clip = Clip(attempt=attempt, seed=self._clips.seed, episode=episode)
        state = self._clips.state(clip, second, self.run.description.control_dt)
        return self.say(Mark(clip=clip, second=second, note=note, state=state))

    def _start(self) -> int:
        """Number of the first start state of this round's clips."""
        newest = self.newest()
        rounds = newest[0].iteration if newest else 0
        return CLIP_STARTS * rounds % CLIP_EPISODES

    async def close(self) -> None:
        """End the workers that make clips."""
        await self._clips.close()


def _user_name() -> str:
    """Name of the person at this machine."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name
        return "a person"


class Person(Protocol):
    """Somebody at the table."""

    async def decide(self, table: Table) -> Decision:
        """Look, say what there is to say, and decide how it goes on."""
        ...


class AtTheTable:
    """Asks a person after each generation, as the schedule `Rounds` wants it."""

    def __init__(self, table: Table, person: Person) -> None:
        self._table = table
        self._person = person
        self.finals = False
        """True once the person asked for the final trainings."""

    async def wants_another(self) -> bool:
        """See `schedules.Asks`."""
        decision = await self._person.decide(self._table)
        self.finals = decision == "finish"
        return decision == "another"
