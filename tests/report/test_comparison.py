"""Better than the baseline beyond the noise, or not."""

from __future__ import annotations

import pytest
from told import score

from eureka_agent.report.comparison import compare, compare_scores


def test_degrees_of_freedom_are_no_whole_numbers() -> None:
    # means 31 and 25, variances 16 and 4, three each: error sqrt(20/3), degrees (20/3)² / ((16/3)²
    # + (4/3)²) * 2 = 2.941176
    comparison = compare([27.0, 31.0, 35.0], [23.0, 25.0, 27.0])
    assert comparison is not None
    # t = 3.218759 for these, where 2 degrees have 4.302653: 6 ± 8.3108, not 6 ± 11.109
    assert comparison.low == pytest.approx(6 - 8.3108, abs=1e-3)
    assert comparison.high == pytest.approx(6 + 8.3108, abs=1e-3)


def test_welch_interval_by_hand() -> None:
    # means 5 and 2, variances 1 and 1, three each: standard error sqrt(2/3) = 0.81650, 4 degrees of
    # freedom, t = 2.776445
    comparison = compare([4.0, 5.0, 6.0], [1.0, 2.0, 3.0])
    assert comparison is not None
    assert comparison.difference == pytest.approx(3.0)
    assert comparison.low == pytest.approx(3.0 - 2.26696, abs=1e-4)
    assert comparison.high == pytest.approx(3.0 + 2.26696, abs=1e-4)
    assert comparison.better
    assert not comparison.worse


def test_equal_values_without_spread_are_neither_better_nor_worse() -> None:
    comparison = compare([500.0, 500.0], [500.0, 500.0])
    assert comparison is not None
    assert not comparison.better
    assert not comparison.worse


def test_two_seeds_have_no_interval_however_far_apart() -> None:
    assert compare_scores(score("a", 10.0, 10.1), score("b", 0.0, 0.1)) is None
    assert compare_scores(score("a", 10.0, 10.1, None), score("b", 0.0, 0.1, 0.2)) is None
    found = compare_scores(score("a", 10.0, 10.1, 10.2), score("b", 0.0, 0.1, 0.2))
    assert found is not None
    assert found.better
