"""A refinement: a person's feedback and decisions, as entries that the search reads."""

from __future__ import annotations

import getpass
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeAlias

from pydantic import ValidationError

from eureka_agent.analysis.standing import standing_wishes
from eureka_agent.analysis.wishes import Reads
from eureka_agent.archive.run_folder import Run
from eureka_agent.critic.critic import Critic
from eureka_agent.designer.interface import given_reward
from eureka_agent.errors import EurekaError
from eureka_agent.feedback_records import (
    Choice,
    Decision,
    Edit,
    Feedback,
    Importance,
    Judge,
    Judgement,
    Wish,
    Withdrawal,
    feedback_line,
)
from eureka_agent.journal.entries import FeedbackGiven, IterationEnded, Observer, Planned
from eureka_agent.journal.state import Recorded
from eureka_agent.records import Verdict
from eureka_agent.search.board import Clips, best_name, check_trained, rankable, said_lines
from eureka_agent.search.preparation import Preparation
from eureka_agent.settings import judge_of, validation_fault

Said: TypeAlias = Feedback | Mapping[str, Any]
"""Feedback, or its fields by name."""


class Refinement:
    """What a person says of a run between two generations, and the work that they wait for."""

    def __init__(self, run: Run, ready: Preparation, observer: Observer, reader: Reads) -> None:
        """`observer` records entries."""
        self.run = run
        self._observer = observer
        self._reader = reader
        self._critic = Critic(ready.dry_runner.description, ready.dry_runner)
        self.clips = Clips(run, ready)

    def say(self, said: Said) -> str:
        """Record feedback or a decision; the answer. Raises EurekaError for what does not fit."""
        entry = FeedbackGiven(who=_user_name(), feedback=checked(said, self.run))
        before = {each.number: each.feedback for each in self.run.archive.state.feedback}
        self._observer(entry)
        state = self.run.archive.state
        match entry.feedback:
            case Decision():
                return "going on"
            case Withdrawal(of=number):
                return f"{number} counts no more: {feedback_line(before[number])}"
        line = f"recorded as {state.feedback[-1].number}: {entry.line(state)}"
        return f"{line}; it is trained next" if isinstance(entry.feedback, Edit) else line

    def undo(self) -> str:
        """Take back what the person said last; the answer."""
        said = [*said_lines(self.run)]
        return self.say(Withdrawal(of=said[-1])) if said else "there is nothing to take back"

    async def read(self, said: Said, correction: str = "") -> Wish:
        """A wish with its reading, of which a correction is a part. Raises EurekaError."""
        wish, state = checked(said, self.run), self.run.archive.state
        assert isinstance(wish, Wish)
        about = state.by_id.get(wish.attempt or best_name(self.run))
        reading = await self._reader.read(wish, standing_wishes(state.feedback), about, correction)
        wants = f"{wish.wants} (that is: {correction})" if correction else wish.wants
        read = checked({**dict(wish), "wants": wants, "reading": reading}, self.run)
        assert isinstance(read, Wish)
        return read

    async def verdict(self, source: str) -> Verdict:
        """The critic's verdict on a reward of the person's."""
        return await self._critic.judge(given_reward(source))

    async def give(self, source: str, attempt: str = "") -> tuple[Verdict, str]:
        """Say a reward if the critic accepts it: the verdict, and the answer, perhaps empty."""
        edit = checked({"kind": "edit", "attempt": attempt, "source": source}, self.run)
        verdict = await self.verdict(source)
        return verdict, self.say(edit) if verdict.accepted else ""

    async def mark(self, attempt: str, second: float, panel: int = 1, note: str = "") -> str:
        """Say at which second of a panel (from 1) a clip went wrong; the answer, with the state."""
        clip, state = await self.clips.moment(attempt, second, panel)
        mark = {"kind": "mark", "clip": clip, "second": second, "note": note, "state": state}
        return f"{self.say(mark)}; {state}"


Person = Callable[[Refinement], Awaitable[None]]
"""Says what there is to say, and a decision at the end; called after each generation."""


def replayed(entries: Iterable[Recorded]) -> Person:
    """The person of another run, who says in each generation what was said there."""
    said: dict[int, list[tuple[int, Feedback]]] = defaultdict(list)
    decisions: dict[int, Decision] = {}
    numbers: dict[int, int] = {}
    generation, ended = 0, False
    for recorded in entries:
        match recorded.entry:
            case IterationEnded():
                ended = True
            case Planned(iteration=iteration):
                generation = iteration
            case FeedbackGiven(feedback=Decision() as decision):
                decisions[generation] = decision
            case FeedbackGiven(feedback=feedback) if ended and not isinstance(feedback, Judgement):
                said[generation].append((recorded.number, feedback))

    async def speak(refinement: Refinement) -> None:
        state = refinement.run.archive.state
        here = max((iteration for iteration, _ in state.plans), default=0)
        for number, feedback in said[here]:
            if isinstance(feedback, Withdrawal):
                feedback = Withdrawal(of=numbers.get(feedback.of, feedback.of))
            try:
                checked(feedback, refinement.run)
            except EurekaError as error:
                what = f"what was said in the other run does not fit this one: {error.message}"
                hint = "replay it on a search of the same settings and seed"
                raise EurekaError(what, hint) from None
            refinement.say(feedback)
            numbers[number] = state.feedback[-1].number if state.feedback else 0
        refinement.say(decisions.get(here, Decision(then="leave")))

    return speak


# ── what can be said ──────────────────────────────────────────────────────────────────────────────


def checked(said: Said, run: Run) -> Feedback:
    """Feedback that fits the state of the run. Raises EurekaError for other."""
    hint = "nothing is recorded: change it and say it again"
    try:
        entry = FeedbackGiven.model_validate({"who": "", "feedback": said})
    except ValidationError as error:
        raise EurekaError(validation_fault(error).replace("feedback.", "", 1), hint) from None
    feedback, state = entry.feedback, run.archive.state
    check_trained(_attempts_in(feedback), run)
    match feedback:
        case Wish(wants=""):
            raise EurekaError("the wish is empty", "say what you want changed")
        case Choice(shown=shown, best=best, worst=worst):
            if best == worst or not {best, worst} <= {None, *shown}:
                what = f"the best is {best!r} and the worst is {worst!r}"
                raise EurekaError(what, f"choose one of each, or one alone, of {', '.join(shown)}")
        case Importance(of=of, attempt=attempt, order=order):
            names = rankable(run, of, attempt)
            if unknown := [name for name in order if name not in names]:
                what = f"{unknown[0]!r} is none of the {of}"
                raise EurekaError(what, f"there are {', '.join(names) or 'none'}")
        case Withdrawal(of=number) if all(each.number != number for each in state.feedback):
            known = ", ".join(str(each.number) for each in state.feedback) or "none"
            raise EurekaError(f"there is no standing feedback {number}", f"there is {known}")
        case Judge(by="model") if not judge_of(run.settings):
            hint = "expected choices or fitness; a search with --fitness judged has a judge"
            raise EurekaError("no model judges the attempts of this run", hint)
        case Judgement():
            raise EurekaError("a judgement is a model's", "give a comparison")
        case Decision() if state.decision is not None:
            raise EurekaError("the next step is decided already", "the search goes on with it")
    return feedback


def _attempts_in(feedback: Feedback) -> set[str]:
    """Names of the attempts that feedback is about."""
    named = feedback.model_dump(include={"attempt", "first", "second", "shown", "clip"})
    names = [*named.pop("shown", ()), named.pop("clip", {}).get("attempt", "")]
    # a mark's second is a time
    return {*names, *(name for name in named.values() if isinstance(name, str))} - {""}


def _user_name() -> str:
    """Name of the person at this machine."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name
        return "a person"
