"""What a person says of a run: what fits it becomes an entry of its journal, and a decision holds
until the search has acted on it. No worker runs here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
from planned_attempts import started
from stored_attempts import store_attempt

from eureka_agent.archive.run_folder import Run, open_run
from eureka_agent.errors import EurekaError
from eureka_agent.feedback_records import Comparison, Decision, Feedback, Judge, Wish, Withdrawal
from eureka_agent.journal import entries
from eureka_agent.records import Attempt, Operator, RunStatus
from eureka_agent.search.board import next_pair
from eureka_agent.search.refinement import Refinement, Said, checked, replayed

MakeRun = Callable[..., Run]
MakeAttempt = Callable[..., Attempt]
BOTH = {"kind": "choice", "shown": ["1-01", "1-02"]}


class Speaker:
    """A refinement as far as it speaks."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def say(self, said: Said) -> None:
        self.run.archive.append(entries.FeedbackGiven(who="ada", feedback=checked(said, self.run)))


@pytest.fixture
def make_trained(make_run: MakeRun, make_attempt: MakeAttempt) -> Callable[..., Speaker]:
    """Makes runs with a generation of trained attempts."""

    def make(samples: int = 2) -> Speaker:
        run = make_run(samples=samples)
        for sample in range(samples):
            run.archive.append(
                entries.Planned(iteration=0, sample=sample, operator=Operator.FRESH, seen=1)
            )
            store_attempt(run.archive, make_attempt(0, sample, float(sample)))
        run.archive.append(entries.IterationEnded(iteration=0, best="1-01"))
        return Speaker(run)

    return make


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ({"kind": "hymn"}, "'feedback' is"),
        ({"kind": "wish", "saw": "it drifts", "wants": " "}, "the wish is empty"),
        ({"kind": "wish", "wants": "x", "attempt": "9-99"}, "'9-99' is no trained attempt"),
        ({"kind": "wish", "wants": "x" * 4001}, "'wish.wants' .*, expected at most 4,000"),
        ({"kind": "comparison", "first": "1-01", "second": "2-01", "grade": 1}, "'2-01' is no"),
        (BOTH, "the best is None and the worst is None"),
        ({**BOTH, "best": "1-03"}, "the best is '1-03'"),
        ({"kind": "importance", "of": "terms", "order": ["<b>"]}, "'<b>' is none of the terms"),
        ({"kind": "withdrawal", "of": 1}, "no standing feedback 1"),
        ({"kind": "judge", "by": "model"}, "no model judges the attempts"),
        (
            {"kind": "judgement", "comparisons": [{"first": "a", "second": "b", "grade": 1}]},
            "a judgement is a model's",
        ),
        ({"kind": "edit", "source": "x" * 100_001}, "expected at most 100,000"),
    ],
)
def test_what_does_not_fit_the_run_is_told_and_not_recorded(
    make_trained: Callable[..., Speaker], said: dict[str, Any], fault: str
) -> None:
    speaker = make_trained()
    number = speaker.run.archive.view()[0]
    with pytest.raises(EurekaError, match=fault) as caught:
        speaker.say(said)
    assert caught.value.hint
    assert speaker.run.archive.view()[0] == number


def test_a_withdrawn_word_counts_no_more_and_numbers_are_text_in_a_form(
    make_trained: Callable[..., Speaker],
) -> None:
    speaker = make_trained()
    speaker.say({"kind": "wish", "wants": "be quick"})
    speaker.say({**BOTH, "worst": "1-02"})
    first, second = speaker.run.archive.state.feedback
    speaker.say({"kind": "withdrawal", "of": str(first.number)})
    assert speaker.run.archive.state.feedback == (second,)
    with pytest.raises(EurekaError, match="no standing feedback") as caught:
        speaker.say(Withdrawal(of=first.number))
    assert caught.value.hint == f"there is {second.number}"


def test_a_decision_holds_until_the_search_has_acted_on_it(
    make_trained: Callable[..., Speaker],
) -> None:
    speaker = make_trained()
    run = speaker.run
    began = started(run.description, run.settings)

    def decision() -> str | None:
        found = open_run(run.folder, reading=True)
        stored = found.archive.facts.decision
        found.archive.close()
        assert run.archive.state.decision == stored
        return stored

    speaker.say(Decision(then="another"))
    assert decision() == "another"
    assert run.archive.state.feedback == ()  # it is no word on an attempt
    with pytest.raises(EurekaError, match="decided already"):
        speaker.say(Decision(then="leave"))
    run.archive.append(began)  # the process was killed
    assert decision() == "another"
    run.archive.append(entries.Planned(iteration=1, sample=0, operator=Operator.FRESH, seen=1))
    assert decision() is None
    for then, status, left in (
        ("finish", RunStatus.STOPPED, "finish"),
        ("finish", RunStatus.FINISHED, None),
        ("finish", RunStatus.FAILED, None),
        ("leave", RunStatus.STOPPED, None),
    ):
        speaker.say({"kind": "decision", "then": then})
        run.archive.append(entries.RunEnded(status=status))
        run.archive.append(began)
        assert decision() == left, (then, status)
        run.archive.append(entries.RunEnded(status=RunStatus.FINISHED))
        run.archive.append(began)


async def replay(speaker: Speaker, there: Speaker) -> list[Feedback]:
    """What is said in a run where the person of another one speaks."""
    await replayed(there.run.archive.entries())(cast(Refinement, speaker))
    return [each.feedback for each in speaker.run.archive.state.feedback]


async def test_a_person_is_replayed_from_the_entries(
    make_trained: Callable[..., Speaker],
) -> None:
    there = make_trained()
    there.run.archive.append(entries.FeedbackGiven(who="ada", feedback=Wish(wants="be quick")))
    there.say(Judge(by="choices"))
    there.say({"kind": "withdrawal", "of": there.run.archive.state.feedback[0].number})
    there.say(Comparison(first="1-01", second="1-02", grade=1))
    there.say(Decision(then="another"))
    here = make_trained()
    before = Wish(wants="of another, so that the numbers differ")
    here.say(before)
    assert await replay(here, there) == [
        before,
        Judge(by="choices"),
        Comparison(first="1-01", second="1-02", grade=1),
    ]
    assert here.run.archive.state.decision == "another"
    # a generation in which nothing was said there ends the refinement
    here.run.archive.append(entries.Planned(iteration=1, sample=0, operator=Operator.FRESH, seen=1))
    await replay(here, there)
    assert here.run.archive.state.decision == "leave"


def test_the_next_pair_needs_two_attempts_and_its_order_is_drawn(
    make_trained: Callable[..., Speaker],
) -> None:
    assert next_pair(make_trained(samples=1).run) is None
    speaker = make_trained()
    orders = set()
    for _ in range(12):
        pair = next_pair(speaker.run)
        assert pair is not None
        assert pair == next_pair(speaker.run)
        assert set(pair) == {"1-01", "1-02"}
        orders.add(pair)
        speaker.say({"kind": "comparison", "first": "1-01", "second": "1-02", "grade": 0})
    assert len(orders) == 2
