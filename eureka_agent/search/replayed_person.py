"""A person whose feedback is that of an earlier run: the same words, round by round."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from eureka_agent.errors import EurekaError
from eureka_agent.feedback_records import Feedback, Judgement, Withdrawal
from eureka_agent.journal.entries import (
    FeedbackGiven,
    FinalTrained,
    IterationEnded,
    Planned,
    RunStarted,
)
from eureka_agent.journal.state import Recorded
from eureka_agent.search.table import Decision, Table


@dataclass(frozen=True)
class Round:
    """Words of a person after a generation, with the numbers of their records."""

    said: tuple[tuple[int, Feedback], ...]
    decision: Decision


def rounds_of(entries: Iterable[Recorded]) -> list[Round]:
    """The rounds of a refinement. What a search records of itself, such as a model's judgements, is
    no feedback of a person."""
    rounds: list[Round] = []
    said: list[tuple[int, Feedback]] = []
    generation, finals, ended = 0, False, False
    for recorded in entries:
        match recorded.entry:
            case IterationEnded():
                ended = True
            case FeedbackGiven(feedback=feedback) if ended and not isinstance(feedback, Judgement):
                said.append((recorded.number, feedback))
                finals = False
            case RunStarted():  # final trainings of the search before are no decision of a person
                finals = False
            case Planned(iteration=iteration) if iteration > generation:
                generation = iteration
                rounds.append(Round(tuple(said), "another"))
                said, finals = [], False
            case FinalTrained() if ended:
                finals = True
    return [*rounds, Round(tuple(said), "finish" if finals else "leave")]


class ReplayedPerson:
    """Says in each round what was said in that of another run, and decides as was decided there."""

    def __init__(self, entries: Iterable[Recorded]) -> None:
        self._rounds = rounds_of(entries)
        self._numbers: dict[int, int] = {}
        """Numbers of the records here, by those there."""

    async def decide(self, table: Table) -> Decision:
        """See `table.Person`. Raises EurekaError where the runs differ."""
        place = max((iteration for iteration, _ in table.run.archive.state.plans), default=0)
        if place >= len(self._rounds):
            return "leave"
        for number, feedback in self._rounds[place].said:
            self._numbers[number] = self._say(table, feedback)
        return self._rounds[place].decision

    def _say(self, table: Table, feedback: Feedback) -> int:
        if isinstance(feedback, Withdrawal):
            table.withdraw(self._numbers.get(feedback.of, feedback.of))
            return 0
        for name in attempts_in(feedback):
            if table.run.archive.attempt(name) is None:
                raise EurekaError(
                    f"what was said is about the attempt {name!r}, which this run does not have",
                    "replay it on a search of the same settings and seed",
                )
        return table.say(feedback)


def attempts_in(feedback: Feedback) -> set[str]:
    """Names of the attempts that feedback is about."""
    named = feedback.model_dump(include={"attempt", "first", "second", "shown", "clip"})
    clip = named.pop("clip", None)
    shown = named.pop("shown", ())
    return {*named.values(), *shown, *([clip["attempt"]] if clip else [])} - {""}
