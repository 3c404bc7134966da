"""Sentences → intents: goal, axis, sign, number."""

from __future__ import annotations

import math

import pytest

from eureka_agent.designer.offline.vocabulary import (
    Goal,
    Intent,
    measured,
    quantities,
    read_intents,
    task_intents,
)
from eureka_agent.designer.offline.words import stem, stems


def by_goal(sentence: str) -> dict[Goal, Intent]:
    return {intent.goal: intent for intent in read_intents(sentence)}


@pytest.mark.parametrize(
    ("sentence", "axis", "sign"),
    [
        ("make the robot run forward as fast as possible", 0, 1),
        ("walk backwards", 0, -1),
        ("move to the left", 1, 1),
        ("go right quickly", 1, -1),
        ("run as fast as possible", None, 1),
        ("drift to the left", 1, 1),
        ("drive the cart to the left end of the track", 1, 1),
        ("teach the robot to run", None, 1),
        ("get the ant to walk forward in circles", 0, 1),
        ("jump forward as far as possible", 0, 1),
    ],
)
def test_motion_has_its_axis_and_sign(sentence: str, axis: int | None, sign: int) -> None:
    intent = by_goal(sentence)[Goal.MOVE]
    assert (intent.axis, intent.sign) == (axis, sign)


@pytest.mark.parametrize(
    ("sentence", "goals"),
    [
        ("balance the pole", {Goal.UPRIGHT}),
        ("swing the hanging pole up and balance it upright", {Goal.SWING_UP, Goal.UPRIGHT}),
        ("fly to the goal position and hover there", {Goal.REACH, Goal.STILL}),
        ("open the drawer", {Goal.CHANGE}),
        ("push the box to the target", {Goal.REACH}),
        ("go to the wooden box", {Goal.REACH}),
        ("jump as high as possible", {Goal.RAISE}),
        ("fly up", {Goal.RAISE}),
        ("spin on the spot", {Goal.SPIN}),
        (
            "walk forward without falling, smoothly and with little energy",
            {Goal.MOVE, Goal.SURVIVE, Goal.SMOOTH, Goal.EFFORT},
        ),
        ("sail to the buoy without tipping over", {Goal.REACH, Goal.UPRIGHT}),
        ("keep the cart in the middle of the track", {Goal.CENTRE}),
        ("do not move", {Goal.STILL}),
        ("make a nice cup of tea", set()),
    ],
)
def test_what_is_asked_for(sentence: str, goals: set[Goal]) -> None:
    assert set(by_goal(sentence)) == goals


@pytest.mark.parametrize(
    ("sentence", "goal", "sign"),
    [
        ("close the door", Goal.CHANGE, -1),
        ("minimise the swing of the load", Goal.CHANGE, -1),
        ("crouch", Goal.RAISE, -1),
        ("fly down", Goal.RAISE, -1),
        ("turn clockwise", Goal.SPIN, -1),
        ("spin counter-clockwise", Goal.SPIN, 1),
        ("do not touch the wall", Goal.REACH, -1),
    ],
)
def test_signs(sentence: str, goal: Goal, sign: int) -> None:
    assert by_goal(sentence)[goal].sign == sign


def test_numbers_go_to_the_goal_with_their_unit() -> None:
    intents = by_goal("run forward at 2.5 m/s at a height of 80 cm")
    assert intents[Goal.MOVE].target == 2.5
    # 80 cm = 0.8 m
    assert by_goal("hover at a height of 80 cm")[Goal.RAISE].target == pytest.approx(0.8)


def test_units_become_si() -> None:
    # 36 km/h = 10 m/s; 180 degrees = pi rad
    values = quantities("36 km/h, 180 degrees, 3 metres per second, 5 mm and 7 apples")
    assert [unit for _, unit in values] == ["m/s", "rad", "m/s", "m"]
    assert [value for value, _ in values] == pytest.approx([10.0, math.pi, 3.0, 0.005])


def test_the_metric_completes_an_open_direction() -> None:
    sentence = "run as fast as possible"
    (intent,) = task_intents(sentence, sentence, "metres travelled to the left in an episode")
    assert (intent.goal, intent.axis, intent.sign) == (Goal.MOVE, 1, 1)


def test_another_sentence_is_not_overruled_by_the_metric() -> None:
    intents = {
        intent.goal: intent
        for intent in task_intents(
            "run backward", "run forward", "metres travelled forward; falling ends it"
        )
    }
    assert intents.keys() == {Goal.MOVE}
    assert (intents[Goal.MOVE].axis, intents[Goal.MOVE].sign) == (0, -1)


def test_how_an_episode_ends_is_no_goal() -> None:
    metric = (
        "seconds of an episode within 0.2 m of the goal; hitting the ground or flying away ends the"
        " episode"
    )
    for doc in (
        metric,
        metric.replace(
            "hitting the ground or flying away ends the episode",
            "the episode ends when hitting the ground",
        ),
    ):
        reach, _ = task_intents("hover at the goal", "hover at the goal", doc)
        assert (reach.goal, reach.words) == (Goal.REACH, ("hover", "goal"))
    # what to beware of stays
    goals = [
        each.goal
        for each in task_intents("run", "run", "metres travelled; falling ends the episode")
    ]
    assert goals == [Goal.MOVE, Goal.SURVIVE]
    # an episode's last state may be what is measured
    assert (
        measured("distance to the goal when the episode ends")
        == "distance to the goal when the episode ends"
    )


def test_a_silent_sentence_takes_its_goals_from_the_metric() -> None:
    intents = task_intents("do well", "do well", "height of the torso")
    assert [intent.goal for intent in intents] == [Goal.RAISE]


def test_forms_of_a_word_share_a_stem() -> None:
    assert len({stem(word) for word in ("run", "runs", "running", "ran")}) == 1
    assert len({stem(word) for word in ("velocity", "velocities")}) == 1
    assert stem("swing") != stem("swim")
    assert stems("the height of the torso") == {stem("height"), stem("torso")}
