"""The table of a refinement: what a person sees and says between two generations."""

from __future__ import annotations

import getpass
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from pydantic import ValidationError

from eureka_agent.archive.run_folder import Run
from eureka_agent.critic.critic import Critic
from eureka_agent.designer.interface import given_reward
from eureka_agent.designer.source_tools import tunable_constants, with_constants
from eureka_agent.errors import EurekaError
from eureka_agent.feedback.agreement import agreement, judged_words
from eureka_agent.feedback.measures import measure_words, measured_attempts
from eureka_agent.feedback.preferences import Preferences
from eureka_agent.feedback.reading import Reads
from eureka_agent.feedback.standing import (
    Ranks,
    choices_of,
    comparisons_of_model,
    judged,
    preferences_of,
    standing_wishes,
    what_ranks,
)
from eureka_agent.feedback_records import (
    Choice,
    Clip,
    Comparison,
    Edit,
    Feedback,
    Given,
    Grade,
    Importance,
    Judge,
    Judgement,
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
from eureka_agent.settings import judge_of, validation_fault
from eureka_agent.value_ranges import short_number

FeedbackT = TypeVar("FeedbackT", Wish, Choice, Importance, Edit, Judge)
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
    def said(self) -> tuple[Given, ...]:
        """Feedback of the person: all but a model's judgements."""
        return tuple(each for each in self.feedback if not isinstance(each.feedback, Judgement))

    @property
    def wishes(self) -> tuple[Given, ...]:
        """Standing wishes."""
        return standing_wishes(self.feedback)

    def attempts(self) -> list[Attempt]:
        """Trained attempts, best first by what ranks them."""
        return ranked(judged(self.run.archive.attempts(), self.feedback))

    def newest(self) -> list[Attempt]:
        """Trained attempts of the last generation that has any, in their order, but for those
        whose policies were pruned."""
        gone = self.run.archive.state.pruned
        attempts = (each for each in self.run.archive.attempts() if each.id not in gone)
        trained = [each for each in attempts if each.stage is Stage.TRAINED]
        last = max((each.iteration for each in trained), default=-1)
        return [each for each in trained if each.iteration == last]

    def preferences(self, by: Ranks = "choices") -> Preferences:
        """Strengths that follow from the person's choices, or from a model's comparisons."""
        return preferences_of(self.run.archive.attempts(), self.feedback, by)

    def ranked_by(self) -> str:
        """Ranking of the attempts, in words."""
        judge = judge_of(self.run.settings)
        words = {"choices": "your choices", "model": f"{judge}, from pictures"}
        return words.get(what_ranks(self.feedback), "fitness")

    def judged_words(self) -> str:
        """Comparisons by a model and their agreement with the person; empty without any."""
        compared = len(comparisons_of_model(self.feedback))
        if not compared:
            return ""
        agreed = agreement(self.run.archive.attempts(), self.feedback)
        return judged_words(judge_of(self.run.settings), compared, agreed)

    def next_pair(self) -> tuple[str, str] | None:
        """The pair whose comparison tells most, in an order that depends on the number of choices
        alone; None for fewer than two attempts that can be shown."""
        found, gone = self.preferences(), self.run.archive.state.pruned
        pair = found.next_pair([name for name in found.names if name not in gone])
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

    def choose(self, shown: Sequence[str], best: str | None, worst: str | None) -> int:
        """Record the best and the worst of several attempts; None for either: no choice. Raises
        EurekaError for neither, and for one that was not shown."""
        self.check_trained(shown)
        for name in (best, worst):
            if name is not None and name not in shown:
                what = f"{name!r} was not among the clips"
                raise EurekaError(what, f"expected one of {', '.join(shown)}")
        if best == worst:
            what = "neither a best nor a worst one" if best is None else f"{best!r} is both"
            raise EurekaError(f"{what} was chosen", "choose a best one, a worst one, or both")
        return self.say(checked(Choice, shown=tuple(shown), best=best, worst=worst))

    def rank(self, of: str, order: Sequence[str]) -> int:
        """Record what matters, most important first. Raises EurekaError for a name that is no term
        or metric."""
        attempt, known = self.rankable(of)
        unknown = [name for name in order if name not in known]
        if unknown or not order:
            what = f"{unknown[0]!r} is none of the {of}" if unknown else "nothing is named"
            raise EurekaError(what, f"there are {', '.join(known) or 'none'}")
        return self.say(checked(Importance, of=of, attempt=attempt, order=tuple(order)))

    def rankable(self, of: str) -> tuple[str, tuple[str, ...]]:
        """The terms of the best attempt with its name, or the metrics of the task. Raises
        EurekaError for neither."""
        if of == "metrics":
            return "", tuple(each.name for each in self.run.description.public_variables())
        if of != "terms":
            raise EurekaError(f"cannot rank {of!r}", "expected terms or metrics")
        best = next(iter(self.attempts()), None)
        if best is None or best.outcome is None:
            return "", ()
        return best.id, tuple(best.outcome.checkpoints[-1].components)

    def judge_by(self, by: str) -> int:
        """Record what ranks the attempts from here on. Raises EurekaError for a model where none
        judges."""
        if by == "model" and not judge_of(self.run.settings):
            hint = "expected choices or fitness; a search with --fitness judged has a judge"
            raise EurekaError("no model judges the attempts of this run", hint)
        return self.say(checked(Judge, by=by))

    def undo(self) -> Given | None:
        """Take back what the person said last; None if there is nothing."""
        said = [each for each in self.feedback if not isinstance(each.feedback, Judgement)]
        last = said[-1] if said else None
        if last is not None:
            self.withdraw(last.number)
        return last

    def wish(self, attempt: str, saw: str, wants: str) -> Wish:
        """A wish, not recorded yet. Raises EurekaError where nothing is wanted."""
        if attempt:
            self.check_trained([attempt])
        if not wants.strip():
            raise EurekaError("nothing is recorded", "say what you want changed")
        return checked(Wish, attempt=attempt, saw=saw, wants=wants)

    async def read(self, wish: Wish, correction: str = "") -> Reading:
        """Read a wish, before it is recorded."""
        attempt = self.run.archive.attempt(wish.attempt) if wish.attempt else None
        about = attempt or next(iter(self.attempts()), None)
        return await self._reader.read(wish, self.wishes, about, correction)

    def measure_line(self, reading: Reading | None) -> str:
        """The reading's measure in words, with its values in the newest and in the best attempt;
        empty without one."""
        if reading is None or reading.measure is None:
            return ""
        names = dict.fromkeys(each.id for each in (*self.newest(), *self.attempts()[:1]))
        found = measured_attempts(reading.measure, self.run.folder, list(names))
        now = ", ".join(f"{name} {short_number(value)}" for name, value in found.items())
        words = measure_words(reading.measure, self.run.description)
        return f"{words}: {now}" if now else words

    def accept(self, wish: Wish, reading: Reading, correction: str = "") -> int:
        """Record a wish with the reading that the person agrees to. A correction is a part of it
        from then on."""
        wants = f"{wish.wants} (that is: {correction})" if correction else wish.wants
        fields = {"attempt": wish.attempt, "saw": wish.saw, "wants": wants, "reading": reading}
        return self.say(checked(Wish, **fields))

    def source(self, attempt: str) -> str:
        """Source of an attempt's reward. Raises EurekaError for one that was not trained."""
        self.check_trained([attempt])
        found = next(each for each in self.attempts() if each.id == attempt)
        return found.proposal.reward.source

    async def check_reward(self, source: str) -> Verdict:
        """The critic's verdict on a reward of the person's."""
        critic = Critic(self._ready.dry_runner.description, self._ready.dry_runner)
        return await critic.judge(given_reward(source))

    async def give(self, source: str, attempt: str = "") -> tuple[Verdict, int | None]:
        """Have the critic judge a reward of the person's, and record it if it is accepted: the
        verdict, and the number of the record. `attempt`: the one that it changes."""
        edit = checked(Edit, attempt=attempt, source=source)
        if attempt:
            self.check_trained([attempt])
        verdict = await self.check_reward(source)
        return verdict, self.say(edit) if verdict.accepted else None

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


def with_values(source: str, values: Mapping[str, float]) -> str:
    """The source with these values of constants. Raises EurekaError for an unknown name."""
    try:
        return with_constants(source, values)
    except ValueError as error:
        known = ", ".join(f"{name}={value:g}" for name, value in tunable_constants(source).items())
        raise EurekaError(str(error), f"its constants are {known or 'none'}") from None


def checked(kind: type[FeedbackT], **fields: Any) -> FeedbackT:
    """A record of feedback. Raises EurekaError for a value that it cannot have."""
    try:
        return kind(**fields)
    except ValidationError as error:
        hint = "nothing is recorded: change it and say it again"
        raise EurekaError(validation_fault(error), hint) from None


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
