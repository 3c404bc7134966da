"""A model's judgement of two pictures, and how far it agrees with a person."""

from __future__ import annotations

import pytest
from outcomes import make_outcome
from scripted_gateway import Cut, NamedModel, ScriptedGateway

from eureka_agent.analysis.judge import BlindModelError, ModelJudge, check_sight
from eureka_agent.analysis.standing import (
    Agreement,
    agreement,
    choices_of,
    preferences,
    preferences_of,
    sub_goals_of,
    what_ranks,
    wins_of,
    with_strengths,
)
from eureka_agent.feedback_records import (
    Choice,
    Comparison,
    Feedback,
    Given,
    Judge,
    Judgement,
    Wish,
)
from eureka_agent.llm.gateway import ConfiguredModel
from eureka_agent.llm.interface import FinishReason, Role
from eureka_agent.ranking import ranked
from eureka_agent.records import Attempt, Operator, Proposal, Stage, TaskDescription
from eureka_agent.rewards import CodeReward


def attempt(name: str, fitness: float = 0.0) -> Attempt:
    return Attempt(
        id=name,
        iteration=0,
        sample=ord(name) - ord("a"),
        revision=0,
        proposal=Proposal(
            reward=CodeReward(source="", author="x"), reasoning="", operator=Operator.FRESH
        ),
        stage=Stage.TRAINED,
        seed=0,
        outcome=make_outcome(fitness),
    )


def said(*feedback: Feedback) -> tuple[Given, ...]:
    return tuple(
        Given(number=number, time="", who="x", feedback=each)
        for number, each in enumerate(feedback, 1)
    )


def by_model(*pairs: tuple[str, str]) -> Judgement:
    return Judgement(
        comparisons=tuple(Comparison(first=one, second=other, grade=1) for one, other in pairs)
    )


def by_person(first: str, second: str, grade: int | None) -> Comparison:
    return Comparison.model_validate({"first": first, "second": second, "grade": grade})


@pytest.mark.parametrize(
    ("reply", "grade"),
    [
        ("{'better': 'The second policy.'}", -1),
        ('{"Better": " ALIKE "}', 0),
        ('{"better": "cannot  tell"}', None),
        ('<think>{"better": "first"}</think>{"better": "second"}', -1),
    ],
)
async def test_a_reply_is_read_leniently(
    reply: str, grade: int | None, description: TaskDescription
) -> None:
    gateway = ScriptedGateway(reply)
    judge = ModelJudge(ConfiguredModel(NamedModel(), gateway), description, "hop")
    assert await judge.compare(b"one", b"two") == (grade, "")
    (request,) = gateway.requests
    assert request.role is Role.JUDGE
    assert [each.data for each in request.turns[-1].images] == [b"one", b"two"]
    assert "# The task\n\nhop" in request.system


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        ("", "the reply is empty"),
        ('{"better": "third"}', "the reply holds no grade"),
        ("[" * 5000 + "{" * 5000, "the reply holds no grade"),
        (Cut('{"better": "first"}', FinishReason.REFUSED), "the model refused"),
        (Cut('```json\n{"bett', FinishReason.CUT_OFF), "the reply was cut off"),
    ],
)
async def test_a_reply_that_says_nothing_is_told(
    reply: str | Cut, fault: str, description: TaskDescription
) -> None:
    model = ConfiguredModel(NamedModel(), ScriptedGateway(reply))
    grade, why = await ModelJudge(model, description, "hop").compare(b"one", b"two")
    assert grade is None
    assert why.startswith(fault)


GOALS = ("the hopper stands", "it leaves the ground", "it hops until the end")


@pytest.mark.parametrize(
    ("reply", "grade", "fault"),
    [
        ('{"first": [2, 1, 0], "second": [2, 2, 1], "better": "second"}', -1, ""),
        # neither is ahead everywhere: the verdict weighs, and so it does between equals
        ('{"first": [2, 0, 0], "second": [0, 1, 1], "better": "first"}', 1, ""),
        ('{"first": [1, 1, 0], "second": [1, 1, 0], "better": "first"}', 1, ""),
        ('{"first": [2, 2, 2], "second": [0, 0, 0], "better": "alike"}', 0, ""),
        (
            '{"first": [2, 1, 0], "second": [2, 2, 1], "better": "first"}',
            None,
            "it grades them [2, 1, 0] and [2, 2, 1], and calls 'first' better",
        ),
        (
            '{"First": [2, 2, 2], "Second": [2, 2, 1], "Better": "The second one."}',
            None,
            "it grades them [2, 2, 2] and [2, 2, 1], and calls 'second' better",
        ),
        # grades that are none contradict nothing
        ('{"first": [0, 0], "second": [2, 2], "better": "first"}', 1, ""),
        ('{"first": [0, 0, "?"], "second": [2, 2, 2], "better": "first"}', 1, ""),
        ('{"first": {"1": [0]}, "second": 7, "better": "first"}', 1, ""),
        ('{"first": [0, 0, 9], "second": [2, 2, 2], "better": "first"}', 1, ""),
    ],
)
async def test_grades_that_contradict_the_verdict_say_nothing(
    reply: str, grade: int | None, fault: str, description: TaskDescription
) -> None:
    gateway = ScriptedGateway(reply)
    judge = ModelJudge(ConfiguredModel(NamedModel(), gateway), description, "hop")
    assert await judge.compare(b"one", b"two", GOALS) == (grade, fault)
    asked = gateway.requests[0].turns[-1].content
    assert "1. the hopper stands\n2. it leaves the ground\n3. it hops until the end\n" in asked
    assert '"first": [2, 2, 2], "second": [1, 1, 1]' in asked


@pytest.mark.parametrize(
    ("reply", "goals", "fault"),
    [
        ('So:\n```json\n{"sub_goals": ["a", " b\\n c ", ""]}\n```', ("a", "b c"), ""),
        ("{'Subgoals': ['a', 'b', 3, {'c': 1}]}", ("a", "b"), ""),
        ('{"sub_goals": ["x\\ud800\\u001b[2Jy", "b"]}', ("xy", "b"), ""),
        (f'{{"sub_goals": ["{"w" * 300}", "b"]}}', ("w" * 199 + "…", "b"), ""),
        ("First it stands, then it hops.", (), "the reply holds no sub-goals"),
        ('{"sub_goals": []}', (), "the reply holds 0 sub-goals, expected 2 to 5"),
        ('{"sub_goals": "hop"}', (), "the reply holds no sub-goals"),
        (f'{{"sub_goals": {list("abcdef")}}}', (), "the reply holds 6 sub-goals, expected 2 to 5"),
        ("", (), "the reply is empty"),
        (Cut("No.", FinishReason.REFUSED), (), "the model refused to answer: 'No.'"),
    ],
)
async def test_sub_goals_are_few_and_short_or_none(
    reply: str | Cut, goals: tuple[str, ...], fault: str, description: TaskDescription
) -> None:
    gateway = ScriptedGateway(reply)
    judge = ModelJudge(ConfiguredModel(NamedModel(), gateway), description, "hop")
    assert await judge.sub_goals(b"one") == (goals, fault)
    (request,) = gateway.requests
    assert [each.data for each in request.turns[-1].images] == [b"one"]
    comparison = comparisons()
    told = Judgement(sub_goals=goals, comparisons=comparison)  # what is read can be recorded
    assert sub_goals_of(said(Judgement(comparisons=comparison), told)) == goals


def comparisons() -> tuple[Comparison, ...]:
    return (Comparison(first="a", second="b", grade=1),)


async def test_a_model_is_asked_whether_it_sees() -> None:
    gateway = ScriptedGateway("Yellow!", "I cannot see\x1b[2J pictures.")
    model = ConfiguredModel(NamedModel(), gateway)
    await check_sight(model)
    (image,) = gateway.requests[0].turns[0].images
    assert image.media_type == "image/png"
    with pytest.raises(BlindModelError, match="openai/scripted does not see") as caught:
        await check_sight(model)
    assert "\x1b" not in caught.value.message
    assert "--judge" in caught.value.hint


async def test_wrong_answers_of_earlier_runs_do_not_count() -> None:
    gateway = ScriptedGateway("I see nothing.", "Blue.", "Yellow.")
    gateway.stored = 2
    await check_sight(ConfiguredModel(NamedModel(), gateway))
    assert [each.sample for each in gateway.requests] == [0, 1, 2]


def test_a_model_s_words_and_a_person_s_are_kept_apart() -> None:
    attempts = [attempt("a", 1.0), attempt("b", 2.0)]
    feedback = said(by_model(("a", "b"), ("a", "b")), by_person("b", "a", 1))
    assert wins_of(feedback[0].feedback) == [("a", "b"), ("a", "b")]
    assert len(choices_of(feedback)) == 1
    person, model = (preferences_of(attempts, feedback, by) for by in ("choices", "model"))
    assert person.means()["b"] > 0.0 > model.means()["b"]
    alone = preferences(("a", "b"), [by_person("b", "a", 1)])
    assert person.means() == alone.means()
    # the last word counts
    assert what_ranks(feedback) == "fitness"
    orders: dict[str, list[str]] = {}
    for by in ("fitness", "choices", "model"):
        told = (*feedback, *said(Judge(by="choices"), Judge.model_validate({"by": by})))
        strong = with_strengths(attempts, told)
        orders[by] = [each.id for each in ranked(strong)]
        assert [each.strength is None for each in strong] == [by == "fitness"] * 2
        assert [each.fitness for each in strong] == [1.0, 2.0]  # what was measured stays
    assert orders == {"fitness": ["b", "a"], "choices": ["b", "a"], "model": ["a", "b"]}


def test_agreement_counts_pairs_with_a_winner() -> None:
    attempts = [attempt(name) for name in "abcd"]
    # by the model: a before b before c; d was never compared
    eye = by_model(("a", "b"), ("b", "c"), ("a", "c"))
    four = [by_person("a", "b", 2), by_person("b", "c", 1), by_person("c", "a", 1)]
    four += [by_person("a", "c", 1)]
    empty = [by_person("a", "b", 0), by_person("a", "b", None), by_person("d", "a", 2), Wish()]
    assert agreement(attempts, said(eye, *four, *empty)) is None  # four pairs
    # the best of three against both others, and b against c: two pairs and one, of which c's are
    # against the model
    choice = Choice(shown=("a", "b", "c"), best="c", worst="a")
    found = agreement(attempts, said(eye, *four, *empty, choice))
    # a>b, b>c, a>c as the model; c>a against it; of the choice c>a, c>b and b>a against it
    assert found == Agreement(3, 7)
    assert str(found) == "it agrees with your choices in 3 of 7"
    assert agreement(attempts, said(*four, choice)) is None  # no model has judged
    assert agreement(attempts[:1], said(eye, *four, choice)) is None
