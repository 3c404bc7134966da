"""Sentences → what they ask for; no word is paid for that another one turns round."""

from __future__ import annotations

import asyncio
from functools import cache

import pytest
from turned_sentences import TASKS, WISHES

from eureka_agent.designer.interface import DesignRequest, Told
from eureka_agent.designer.offline.designer import OfflineDesigner
from eureka_agent.designer.offline.language import (
    Goal,
    measured,
    read_intents,
    stem,
    stems,
    task_intents,
    understood_in,
)
from eureka_agent.designer.offline.terms import Genome, recover
from eureka_agent.designer.offline.wishes import OfflineReader, word_use
from eureka_agent.feedback_records import Given, Wish
from eureka_agent.records import Operator, TaskDescription
from eureka_agent.search.sentence import words_used
from eureka_agent.simulation.loading import describe, load_environment


@pytest.mark.parametrize(
    ("sentence", "goal", "axis", "sign"),
    [
        ("make the robot run forward as fast as possible", Goal.MOVE, 0, 1),
        ("walk backwards", Goal.MOVE, 0, -1),
        ("drift to the left", Goal.MOVE, 1, 1),
        ("jump forward as far as possible", Goal.MOVE, 0, 1),
        ("close the door", Goal.CHANGE, None, -1),
        ("crouch", Goal.RAISE, 2, -1),
        ("turn clockwise", Goal.SPIN, 2, -1),
        ("spin anticlockwise", Goal.SPIN, 2, 1),
    ],
)
def test_a_goal_has_its_axis_and_sign(
    sentence: str, goal: Goal, axis: int | None, sign: int
) -> None:
    (intent,) = (each for each in read_intents(sentence) if each.goal is goal)
    assert (intent.axis, intent.sign) == (axis, sign)


@pytest.mark.parametrize(
    ("sentence", "goals"),
    [
        ("swing the hanging pole up and balance it upright", {Goal.SWING_UP, Goal.UPRIGHT}),
        ("fly to the goal position and hover there", {Goal.REACH, Goal.STILL}),
        ("push the box to the target", {Goal.REACH}),
        (
            "walk forward without falling, smoothly and with little energy",
            {Goal.MOVE, Goal.SURVIVE, Goal.SMOOTH, Goal.EFFORT},
        ),
        ("keep the cart in the middle of the track", {Goal.CENTRE}),
        ("make a nice cup of tea", set()),
    ],
)
def test_what_is_asked_for(sentence: str, goals: set[Goal]) -> None:
    assert {intent.goal for intent in read_intents(sentence)} == goals


def test_numbers_go_to_the_goal_with_their_unit() -> None:
    def target(sentence: str) -> float | None:
        return read_intents(sentence)[0].target

    assert target("run forward at 2.5 m/s at a distance of 80 cm") == 2.5
    assert target("run at 36 km/h") == pytest.approx(10.0)
    assert target("jump to a height of 80 cm") == pytest.approx(0.8)


def test_the_metric_completes_an_open_direction_and_overrules_no_other_sentence() -> None:
    sentence = "run as fast as possible"
    (intent,) = task_intents(sentence, sentence, "metres travelled to the left in an episode")
    assert (intent.goal, intent.axis, intent.sign) == (Goal.MOVE, 1, 1)
    metric = "metres travelled forward; falling ends it"
    (intent,) = task_intents("run backward", "run forward", metric)
    assert (intent.goal, intent.axis, intent.sign) == (Goal.MOVE, 0, -1)
    (intent,) = task_intents("do well", "do well", "height of the torso")
    assert intent.goal is Goal.RAISE


@pytest.mark.parametrize(
    "end",
    [
        "hitting the ground or flying away ends the episode",
        "the episode ends when hitting the ground",
    ],
)
def test_how_an_episode_ends_is_no_goal(end: str) -> None:
    metric = f"seconds of an episode within 0.2 m of the goal; {end}"
    reach, _ = task_intents("hover at the goal", "hover at the goal", metric)
    assert (reach.goal, reach.words) == (Goal.REACH, ("hover", "goal"))
    # what to beware of stays
    goals = task_intents("run", "run", "metres travelled; falling ends the episode")
    assert [each.goal for each in goals] == [Goal.MOVE, Goal.SURVIVE]
    # an episode's last state may be what is measured
    last = "distance to the goal when the episode ends"
    assert measured(last) == last


def test_forms_of_a_word_share_a_stem() -> None:
    assert len({stem(word) for word in ("run", "runs", "running", "ran")}) == 1
    assert len({stem(word) for word in ("velocity", "velocities")}) == 1
    assert len({stem(word) for word in ("reach", "reaches", "reached")}) == 1
    assert stem("times") == stem("time")
    assert stem("swing") != stem("swim")
    assert stems("the height of the torso") == {stem("height"), stem("torso")}


@cache
def built_in(reference: str) -> TaskDescription:
    environment, _, task = reference.partition("/")
    return describe(load_environment(environment), task)


def proposed(sentence: str, task: TaskDescription, seed: int, told: Told | None = None) -> Genome:
    request = DesignRequest(task, sentence, Operator.FRESH, (), (), seed=seed, told=told or Told())
    source = asyncio.run(OfflineDesigner().propose(request)).reward.source
    return recover(source, [each.name for each in task.variables])


@pytest.mark.parametrize(("reference", "sentence", "never", "wanted"), TASKS)
def test_what_is_turned_round_is_not_paid(
    reference: str, sentence: str, never: str, wanted: str
) -> None:
    task = built_in(reference)
    drafts = [set(proposed(sentence, task, seed)) for seed in range(4)]
    assert all(drafts)
    assert not set.union(*drafts) & set(never.split())
    assert set(wanted.split()) <= set.intersection(*drafts)
    assert not set(word_use(task, sentence).values()) & set(never.split())
    refused = understood_in(task, sentence).refused
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
    assert understood_in(task, sentence).refused
    assert "forward" not in word_use(task, sentence).values()
    assert sentence in words_used(sentence, task).text
    # the next sentence is one of its own
    both = f"{sentence}. Stay upright and run forward"
    assert understood_in(task, both).refused == (sentence,)
    assert {"forward", "upright"} <= set(word_use(task, both).values())


def test_the_environments_names_are_known() -> None:
    assert not understood_in(built_in("cabinet/open"), "pull the handle of the drawer").refused
    # of another environment it is a word as any other
    assert understood_in(built_in("hopper/run"), "run forward to the furnace").refused
    assert not understood_in(built_in("craft/find_tree"), "walk to the furnace").refused


@pytest.mark.parametrize("sentence", ["spring nicht so hoch, lauf lieber langsam", "ne saute pas"])
def test_another_language_is_said_not_to_be_understood(sentence: str) -> None:
    note = words_used(sentence, built_in("hopper/run"))
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
    assert (plain != told_of) == is_read
    if not is_read:
        assert reading.unread
        refused = understood_in(task, wants).refused
        assert all(each in reading.text for each in refused)
        assert bool(refused) == ("--model" in reading.text)
