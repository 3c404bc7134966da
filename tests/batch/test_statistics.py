"""Aggregates over tasks and seeds, against figures by hand and by scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from eureka_agent.batch.suite_tables import interquartile_mean, median, probability_of_improvement


def test_the_median_is_over_tasks_of_means_over_seeds() -> None:
    found = median([[1.0, 3.0], [10.0, 10.0], [0.0, 1.0]])
    assert found.value == 2.0  # of 2, 10 and 0.5


def test_the_interquartile_mean_leaves_out_a_quarter_at_each_end() -> None:
    """Of 0 … 7 the middle half is 2, 3, 4 and 5; an outlier in the upper quarter has no part."""
    assert interquartile_mean([[0.0, 7.0, 3.0, 4.0], [1.0, 2.0, 5.0, 6.0]]).value == 3.5
    assert interquartile_mean([[0.0, 700.0, 3.0, 4.0], [1.0, 2.0, 5.0, 6.0]]).value == 3.5


def test_an_interval_of_seeds_that_agree_has_no_width() -> None:
    """Tasks are not resampled: their difference is no noise."""
    found = median([[1.0, 1.0], [5.0, 5.0], [9.0, 9.0]])
    assert (found.low, found.value, found.high) == (5.0, 5.0, 5.0)


def test_an_interval_is_that_of_a_normal_mean() -> None:
    """The standard error of the mean of 50 standard normal numbers is 1 / sqrt(50)."""
    values = np.random.default_rng(1).normal(size=50)
    found = median([values.tolist()])
    half = 1.96 * values.std() / np.sqrt(50)
    assert found.value - found.low == pytest.approx(half, rel=0.15)
    assert found.high - found.value == pytest.approx(half, rel=0.15)


def test_the_probability_of_improvement_is_mann_and_whitneys() -> None:
    ours, theirs = [[1.0, 2.0, 2.0], [5.0, 7.0]], [[0.0, 2.0], [6.0, 6.0, 8.0]]
    by_scipy = [
        mannwhitneyu(a, b).statistic / (len(a) * len(b)) for a, b in zip(ours, theirs, strict=True)
    ]
    found = probability_of_improvement(ours, theirs)
    assert found.value == pytest.approx(np.mean(by_scipy))
    assert found.low <= found.value <= found.high
    assert probability_of_improvement([[2.0, 3.0]], [[0.0, 1.0]]).low == 1.0
