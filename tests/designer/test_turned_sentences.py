"""No word is paid for that another word of the sentence turns round."""

from __future__ import annotations

import asyncio
from functools import cache

import pytest
from turned_sentences import TASKS, WISHES

from eureka_agent.designer.interface import DesignRequest, Told
from eureka_agent.designer.offline.clauses import own_words, understood
from eureka_agent.designer.offline.designer import OfflineDesigner
from eureka_agent.designer.offline.reading import word_use
from eureka_agent.designer.offline.render import recover
from eureka_agent.designer.offline.terms import Genome
from eureka_agent.designer.offline.wishes import OfflineReader
from eureka_agent.feedback_records import Given, Wish
from eureka_agent.records import Operator, TaskDescription
from eureka_agent.search.sentence import words_used
from eureka_agent.simulation.loading import describe, load_environment

CASES = [(task, *case) for task, cases in TASKS.items() for case in cases]


@cache
def built_in(reference: str) -> TaskDescription:
    environment, _, task = reference.partition("/")
    return describe(load_environment(environment), task)


def proposed(sentence: str, task: TaskDescription, seed: int, told: Told | None = None) -> Genome:
    request = DesignRequest(task, sentence, Operator.FRESH, (), (), seed=seed, told=told or Told())
    source = asyncio.run(OfflineDesigner().propose(request)).reward.source
    return recover(source, [each.name for each in task.variables])


@pytest.mark.parametrize(("reference", "sentence", "never", "wanted"), CASES)
def test_what_is_turned_round_is_not_paid(
    reference: str, sentence: str, never: str, wanted: str
) -> None:
    task = built_in(reference)
    drafts = [{term.name for term in proposed(sentence, task, seed).terms} for seed in range(8)]
    assert all(drafts)
    assert not set.union(*drafts) & set(never.split())
    assert set(wanted.split()) <= set.intersection(*drafts)
    assert not set(word_use(task, sentence).values()) & set(never.split())
    refused = understood(sentence, own_words(task)).refused
    note = words_used(sentence, task)
    assert bool(refused) == bool(never)
    assert all(each in note.text for each in refused)
    assert ("not understood" in note.text and "--model" in note.text) == bool(never)


@pytest.mark.parametrize("place", range(5))
@pytest.mark.parametrize("strange", ["frob", "unfrobbed", "frob-free", "→", "größer", "0.5 ×"])
def test_a_word_or_sign_that_is_not_known_stops_the_clause_wherever_it_stands(
    strange: str, place: int
) -> None:
    words = ["run", "forward", "at", "speed"]
    sentence = " ".join([*words[:place], strange, *words[place:]])
    task = built_in("hopper/run")
    assert understood(sentence, own_words(task)).refused
    assert "forward" not in word_use(task, sentence).values()
    assert sentence in words_used(sentence, task).text
    # the next sentence is one of its own
    both = f"{sentence}. Stay upright and run forward"
    assert understood(both, own_words(task)).refused == (sentence,)
    assert {"forward", "upright"} <= set(word_use(task, both).values())


def test_the_environments_names_are_known_and_so_is_what_a_person_calls_a_thing() -> None:
    for sentence, reference in (
        ("pull the handle of the drawer", "cabinet/open"),
        ("make the kangaroo hop forward", "hopper/run"),
        ("my robot shall run forward over the floor", "hopper/run"),
    ):
        assert not understood(sentence, own_words(built_in(reference))).refused
    # of another environment it is a word as any other
    assert understood("run forward to the furnace", own_words(built_in("hopper/run"))).refused
    assert not understood("walk to the furnace", own_words(built_in("craft/find_tree"))).refused


@pytest.mark.parametrize(
    "sentence", ["spring nicht so hoch, lauf lieber langsam", "ne saute pas", "NICHT SPRINGEN"]
)
def test_another_language_is_said_not_to_be_understood(sentence: str) -> None:
    task = built_in("hopper/run")
    note = words_used(sentence, task)
    assert "can use no word of the sentence" in note.text
    assert "--model" in note.text


@pytest.mark.parametrize(("wants", "is_read"), WISHES)
def test_a_wish_that_a_word_turns_round_leaves_the_reward_as_it_is(
    wants: str, is_read: bool
) -> None:
    task = built_in("hopper/run")
    reading = asyncio.run(OfflineReader(task).read(Wish(wants=wants), (), None, ""))
    assert bool(reading.changes) == is_read
    told = Told(wishes=(Given(number=7, time="", who="ada", feedback=Wish(wants=wants)),))
    plain, told_of = proposed(task.sentence, task, 3), proposed(task.sentence, task, 3, told)
    assert (plain.terms != told_of.terms) == is_read
    if not is_read:
        assert reading.unread
        refused = understood(wants, own_words(task), change=True).refused
        assert all(each in reading.text for each in refused)
        assert bool(refused) == ("--model" in reading.text)
