"""Sparklines and the bounded history of a curve."""

from __future__ import annotations

import math

import pytest

from eureka_agent.journal.under_way import History
from eureka_agent.report.sparkline import resample, sparkline


def test_values_map_to_eight_heights() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7], 8) == "▁▂▃▄▅▆▇█"


def test_a_longer_curve_is_averaged_over_equal_stretches() -> None:
    # means of pairs: 0, 7, 3.5; 3.5 / 7 of the way up eight blocks is index 3.5, rounded to the
    # even 4
    assert sparkline([0, 0, 7, 7, 3, 4], 3) == "▁█▅"


def test_gaps_stay_gaps_and_not_a_number_is_one() -> None:
    assert sparkline([None, 0, math.nan, 1, math.inf], 5) == " ▁ █ "


@pytest.mark.parametrize(
    ("values", "drawn"), [([], ""), ([None, None], "  "), ([5, 5, 5], "▄▄▄"), ([-3, -1], "▁█")]
)
def test_edge_cases(values: list[float | None], drawn: str) -> None:
    assert sparkline(values, 10) == drawn


def test_history_keeps_the_shape_in_bounded_memory() -> None:
    history = History(capacity=16)
    for value in range(10_000):
        history.append(float(value))
    known = [value for value in history.values if value is not None]
    assert 8 <= len(known) <= 16
    assert known == sorted(known)
    assert known[0] < 1_250  # mean of the first of at least eight equal stretches of 0 … 9999
    assert known[-1] > 7_500


def test_history_averages_over_missing_values() -> None:
    history = History(capacity=2)
    for value in (1.0, None, 3.0, 5.0):
        history.append(value)
    # 1 and nothing become 1 when the history fills; then 3 and 5 are one pair, and both become one
    # mean of 1 and 4
    assert history.values == [2.5]


def test_no_part_of_a_curve_is_left_out() -> None:
    # seven values in three stretches: two, two, and the three that are left
    assert resample([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 3) == [0.5, 2.5, 5.0]
