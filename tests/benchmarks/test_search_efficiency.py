"""Env steps to best-of-N's result, from searches and retrained fitness by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import search_efficiency
from search_efficiency import curve, efficiency, key, worth

WORTH = {"a": 1.0, "b": 2.0, "c": 4.0}
RETRAINED = {key(name): [value] * 7 for name, value in WORTH.items()}


def searched(*points: tuple[int, str]) -> list[dict[str, Any]]:
    return [
        {"env_steps": steps, "finalists": [[name, 9.0]], "worth": WORTH[name]}
        for steps, name in points
    ]


THEIRS = [
    searched((100, "a"), (200, "a"), (300, "b")),
    searched((100, "b"), (200, "b"), (300, "c")),
]


def test_a_curve_is_the_mean_of_what_each_search_has() -> None:
    found = curve(THEIRS, np.array([50, 100, 250, 300]))
    assert found.tolist() == [1.5, 1.5, 2.25, 3.0]


def test_a_search_that_used_less_takes_no_generation_from_the_others() -> None:
    """Its last candidates were refused, at no env steps: theirs had nine tenths of their last."""
    theirs = [searched((100, "a"), (200, "a"), (300, "c"))]
    share, lead = efficiency([searched((100, "a"), (290, "b"))], theirs)
    assert (share, lead) == (2.0, pytest.approx(2.0 - (1.0 + 0.9 * 3.0)))


def test_a_winner_is_worth_what_the_seeds_say_that_did_not_choose_it() -> None:
    """Seven seeds, of which the lucky one helps to choose in 6 of 21 pairs."""
    retrained = {key("lucky"): [90.0, *[0.0] * 6], key("steady"): [5.0] * 7}
    point = {"finalists": [["lucky", 1.0], ["steady", 1.0]]}
    # with the lucky seed among the two it wins, and its other five say 0
    assert worth(point, retrained) == pytest.approx((6 * 0.0 + 15 * 5.0) / 21)
    # a search that was lucky with it, too: 100 + 0 is more than 1 + 10, and its five say 0 or 18
    point = {"finalists": [["lucky", 100.0], ["steady", 1.0]]}
    assert worth(point, retrained) == pytest.approx((6 * 0.0 + 15 * 18.0) / 21)


def test_the_share_is_where_the_goal_is_reached() -> None:
    ours = [searched((50, "a"), (120, "c"), (300, "c")), searched((60, "b"), (300, "c"))]
    # the goal is 3, which is (4 + 2) / 2 at 120
    assert efficiency(ours, THEIRS) == pytest.approx((120 / 300, 4.0 - 3.0))


def test_searches_are_compared_as_far_as_both_went() -> None:
    ours = [searched((50, "a"), (120, "b")), searched((60, "b"), (180, "c"))]
    # at 120 theirs have 1.5, which ours have once both know a best attempt; ours 2 and half-way 3
    assert efficiency(ours, THEIRS) == pytest.approx((60 / 120, 2.5 - 1.5))


def test_a_goal_that_is_lost_again_is_not_reached() -> None:
    ours = [searched((100, "c"), (150, "a"), (200, "c"), (300, "c"))]
    assert efficiency(ours, THEIRS) == pytest.approx((200 / 300, 1.0))


def test_a_goal_that_is_not_reached_counts_twice() -> None:
    ours = [searched((100, "a"), (300, "a"))]
    assert efficiency(ours, THEIRS) == (2.0, -2.0)


def test_best_of_n_takes_all_its_env_steps_for_its_own_result() -> None:
    assert efficiency(THEIRS, THEIRS) == (1.0, 0.0)


def test_arms_are_summed_up_over_tasks() -> None:
    name = next(arm for arm in search_efficiency.ARMS if arm != search_efficiency.BASELINE)
    ours = {"1": searched((150, "c"), (300, "c"))}
    known = {
        "searches": {search_efficiency.BASELINE: {"1": THEIRS[0]}, name: ours},
        "retrained": RETRAINED,
    }
    (found,) = search_efficiency.summarize({"x/y": known}).values()
    assert found["share"] == 0.5
    assert (found["share_low"], found["share_high"]) == (0.5, 0.5)  # one search has no noise
    assert found["tasks"]["x/y"] == {"share": 0.5, "lead": 2.0, "low": 2.0, "high": 2.0}
