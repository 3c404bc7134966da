"""A run's labeller: what it asks of a model and when, what it makes of any reply, and what it asks
again after a kill."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from scripted_gateway import NamedModel, ScriptedGateway

from eureka_agent.archive.run_folder import Run
from eureka_agent.journal.entries import BaseEntry, CaptionsAsked, CaptionsLabelled, Notice
from eureka_agent.label_records import CaptionLabel, CaptionMet
from eureka_agent.llm.budget import BudgetSpentError
from eureka_agent.llm.gateway import ConfiguredModel
from eureka_agent.llm.interface import (
    CompletionRequest,
    LanguageModel,
    LanguageModelError,
    MissingReplyError,
    Role,
)
from eureka_agent.records import Message
from eureka_agent.search.labelling import (
    AT_ONCE,
    FIRST_WAIT_S,
    LONGEST_WAIT_S,
    OF_A_REQUEST,
    Labelling,
    parse_answers,
)

Labels = tuple[CaptionLabel, ...]


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ("1: 1\n2: 0\n3: 1", {0: 1.0, 1: 0.0, 2: 1.0}),
        ("Here you are:\n\n1. 1\n2) 0\n- 3: **yes**\n", {0: 1.0, 1: 0.0, 2: 1.0}),
        ("1: 1, 2: 0, 3: no", {0: 1.0, 1: 0.0, 2: 0.0}),
        ("| 1 | 1 |\n| 2 | 0 |", {0: 1.0, 1: 0.0}),
        ("Captions 1 and 3 help, the other one does not.", {}),
        ("1: 1\n2: 0\n1: 0", {1: 0.0}),  # it contradicts itself
        ("1: 1\n1: 1", {0: 1.0}),
        ("0: 1\n4: 1\n17: 0\n1000: 1\n3: 0", {2: 0.0}),  # of what nobody asked
        ("1: 0.5\n2: 10\n3: maybe", {}),
        ("\n".join(f"{n % 1000}: 1" for n in range(1, 100_000)), {0: 1.0, 1: 1.0, 2: 1.0}),
        ("", {}),
    ],
)
def test_replies_of_any_form_are_read_or_left(reply: str, found: dict[int, float]) -> None:
    assert parse_answers(reply, 3) == found


def test_answers_to_comparisons() -> None:
    assert parse_answers("1: 1\n2: 2\n3: equal\n4: 0", 4, pairs=True) == {0: 1.0, 1: 0.0, 2: 0.5}


def met(*codes: int, count: int = 1) -> list[CaptionMet]:
    return [CaptionMet(code=code, text=f"caption {code}", count=count + code) for code in codes]


class Labelled:
    """A labeller of a run with a clock of its own, and what it said and gave."""

    def __init__(self, run: Run, *replies: str | Exception) -> None:
        self.run, self.now, self._begun = run, 0.0, False
        self.gateway = ScriptedGateway(*replies)
        self.entries: list[BaseEntry] = []
        self.given: list[Labels] = []
        model = ConfiguredModel(NamedModel(), self.gateway)  # type: ignore[arg-type]
        self.labelling = Labelling(model, run, self._observe, lambda: self.now)

    def _observe(self, entry: BaseEntry) -> None:
        self.run.archive.append(entry)
        self.entries.append(entry)

    async def _give(self, labels: Labels) -> None:
        self.given.append(labels)

    async def after(self, *wishes: list[CaptionMet]) -> Labelled:
        """Begin, and want these captions one after the other, with time for the replies."""
        if not self._begun:
            self.labelling.begin(self._give)
        self._begun = True
        for each in ([], *wishes):
            self.labelling.want(each)
            await asyncio.sleep(0)
            for _ in range(20):  # replies are there at once
                await asyncio.sleep(0)
        return self

    def prompt(self, number: int) -> str:
        return self.gateway.requests[number].messages[-1].content

    def of(self, kind: type[BaseEntry]) -> list[BaseEntry]:
        return [each for each in self.entries if isinstance(each, kind)]


@pytest.fixture
def labelled(make_run: Callable[..., Run]) -> Callable[..., Labelled]:
    def make(*replies: str | Exception, run: Run | None = None, **settings: object) -> Labelled:
        how = {"rewards": "labels", "model": ("openai/any",), **settings}
        return Labelled(run or make_run(**how), *replies)

    return make


def all_of(value: int, count: int = OF_A_REQUEST) -> str:
    return "\n".join(f"{place}: {value}" for place in range(1, count + 1))


async def test_a_full_request_is_made_at_once_and_its_labels_are_recorded_and_given(
    labelled: Callable[..., Labelled],
) -> None:
    made = await labelled(all_of(1)).after(met(*range(25)))
    (request,) = made.gateway.requests
    assert request.role is Role.LABELLER
    # the twenty that were met most
    assert '1. "caption 24"' in made.prompt(0)
    assert '20. "caption 5"' in made.prompt(0)
    assert "caption 4" not in made.prompt(0)
    expected = tuple(CaptionLabel(code=code, value=1.0) for code in range(24, 4, -1))
    assert made.given == [expected]
    assert made.labelling.known == expected
    asked, answered = made.of(CaptionsAsked) + made.of(CaptionsLabelled)
    assert made.entries == [asked, answered]
    assert answered.line(made.run.archive.state) == "20 labels, 20 good"
    # the rest waits for company, but not for ever
    made.gateway.replies.append(all_of(0, 5))
    made.now = 2.0 * FIRST_WAIT_S - 0.1
    await made.after(met(1))
    assert len(made.gateway.requests) == 1
    made.now = 2.0 * FIRST_WAIT_S
    await made.after(met(1))
    assert [each.value for each in made.given[-1]] == [0.0] * 5


async def test_few_captions_are_asked_for_soon_and_rare_ones_less_and_less_often(
    labelled: Callable[..., Labelled],
) -> None:
    made, waits = labelled(*[all_of(1, 1)] * 20), list[float]()
    for code in range(20):
        begun = made.now
        await made.after(met(code))
        while len(made.gateway.requests) == code:
            made.now += 0.5
            await made.after([])
        waits.append(made.now - begun)
    assert waits == [min(1.5 * number, 20.0) for number in range(1, 21)]


async def test_what_has_no_clear_answer_is_asked_three_times_in_all(
    labelled: Callable[..., Labelled],
) -> None:
    prose = "The first captions help most, I think."
    made = labelled(prose, "1: 1\n2: 0\n2: 1", prose)
    for _ in range(4):
        made.now += LONGEST_WAIT_S
        await made.after(met(3), met(1, 2, 3))
        made.now += LONGEST_WAIT_S
        await made.after(met(1, 2, 3))
    assert len(made.gateway.requests) == 3
    keys = {request.sample for request in made.gateway.requests}
    assert keys == {0, 1, 2}  # equal questions get other replies
    failures = [each.failure for each in made.of(CaptionsLabelled)]  # type: ignore[attr-defined]
    assert failures == [f"{count} of {of} have no clear answer" for count, of in _counts(made)]
    assert {each.code: each.value for each in made.labelling.known} == {3: 1.0, 1: None, 2: None}


def _counts(made: Labelled) -> list[tuple[int, int]]:
    """Captions of each request, and how many of them came to nothing."""
    asked = [len(each.captions) for each in made.of(CaptionsAsked)]  # type: ignore[attr-defined]
    pairs = zip(asked, made.of(CaptionsLabelled), strict=True)
    return [
        (of - sum(each.value is not None for each in told.labels), of)  # type: ignore[attr-defined]
        for of, told in pairs
    ]


async def test_at_most_two_requests_are_in_flight_and_no_more_than_asked_for(
    labelled: Callable[..., Labelled],
) -> None:
    made, late = labelled(*[all_of(1)] * 3, label_requests=3), asyncio.Event()
    answer, sent = made.gateway.ask, list[CompletionRequest]()

    async def ask(model: LanguageModel, request: CompletionRequest) -> Message:
        sent.append(request)
        await late.wait()
        return await answer(model, request)

    made.gateway.ask = ask  # type: ignore[method-assign]
    await made.after(met(*range(100)))
    assert len(sent) == AT_ONCE == 2
    late.set()
    await made.after(met(*range(100)))
    assert len(sent) == 3
    assert [len(each) for each in made.given] == [20, 20, 20]
    (notice,) = made.of(Notice)
    assert "as many as --label-requests allows" in notice.text  # type: ignore[attr-defined]


@pytest.mark.parametrize("error", [BudgetSpentError, LanguageModelError])
async def test_a_spent_budget_and_a_model_that_is_out_end_the_labels_and_nothing_else(
    labelled: Callable[..., Labelled], error: type[LanguageModelError]
) -> None:
    made = await labelled(error("3 dollars are spent")).after(met(*range(20)))
    await made.after(met(*range(100)))
    assert len(made.gateway.requests) == 1
    (notice,) = made.of(Notice)
    assert notice.text == "no further labels are asked for: 3 dollars are spent"  # type: ignore[attr-defined]
    assert made.given == []


async def test_a_model_that_never_answers_clearly_is_asked_no_more(
    labelled: Callable[..., Labelled],
) -> None:
    prose = "Some of them help."
    made = labelled(*[prose] * 7, all_of(1), *[prose] * 20)
    for first in range(0, 800, 20):
        await made.after(met(*range(first, first + 20)))
    # seven, one with answers, eight in a row
    assert len(made.gateway.requests) <= 16 + AT_ONCE - 1
    (notice,) = made.of(Notice)
    assert "8 replies in a row of openai/scripted have no clear answer" in notice.text  # type: ignore[attr-defined]


async def test_a_recording_without_a_reply_ends_no_other_request(
    labelled: Callable[..., Labelled],
) -> None:
    missing = MissingReplyError("the recording has no reply")
    made = labelled(missing, missing, all_of(1))
    await made.after(met(*range(20)), met(*range(20, 40)), met(*range(40, 60)))
    assert [len(each) for each in made.given] == [20]
    (notice,) = made.of(Notice)
    assert "only where it asks for the same captions" in notice.text  # type: ignore[attr-defined]


async def test_a_request_that_outlasts_the_trainings_is_left_and_told(
    labelled: Callable[..., Labelled],
) -> None:
    made = labelled()

    async def ask(*_: object) -> Message:
        await asyncio.Event().wait()  # retries
        raise AssertionError

    made.gateway.ask = ask  # type: ignore[method-assign]
    await made.after(met(*range(40)))
    await made.labelling.end()
    (notice,) = made.of(Notice)
    assert notice.text.startswith("2 requests for labels came to no reply")  # type: ignore[attr-defined]
    await made.labelling.end()
    assert len(made.of(Notice)) == 1


async def test_a_resumed_run_knows_its_labels_and_asks_again_what_was_not_answered(
    labelled: Callable[..., Labelled],
) -> None:
    before = labelled(all_of(1))
    await before.after(met(*range(20)))

    async def killed(*_: object) -> object:
        await asyncio.Event().wait()
        raise AssertionError

    before.gateway.ask = killed  # type: ignore[method-assign, assignment]
    await before.after(met(*range(30, 50)))
    await before.labelling.close()
    lost = before.of(CaptionsAsked)[-1]

    after = labelled(all_of(0), run=before.run)
    assert len(after.labelling.known) == 20
    await after.after(met(*range(50)))
    (request,) = after.gateway.requests
    assert request.sample == lost.number == 1  # type: ignore[attr-defined]
    assert after.of(CaptionsAsked) == []
    assert len(after.labelling.known) == 40


async def test_a_ranking_compares_a_chain_that_goes_on(
    labelled: Callable[..., Labelled],
) -> None:
    made = labelled(all_of(2, 19), all_of(1), labels="ranking")
    await made.after(met(0))
    made.now = LONGEST_WAIT_S
    await made.after(met(0))
    assert made.gateway.requests == []  # one caption has nothing to be compared with
    await made.after(met(*range(20)), met(*range(20, 40)))
    assert '1. first: "caption 19"; second: "caption 18"' in made.prompt(0)
    asked, answered = made.of(CaptionsAsked)[0], made.of(CaptionsLabelled)[0]
    assert asked.line(made.run.archive.state) == "19 comparisons of captions asked for"
    assert answered.line(made.run.archive.state) == "19 comparisons of captions"
    first, second = made.given
    assert len(first) == 19
    assert first[0] == CaptionLabel(code=19, other=18, value=0.0)
    assert second[0] == CaptionLabel(code=0, other=39, value=1.0)
    assert len(second) == 20
