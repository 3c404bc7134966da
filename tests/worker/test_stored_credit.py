"""Agreement of a reward's credit with the fitness's: figures by hand, and by scipy and numpy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import rankdata, spearmanr

from eureka_agent.worker.scoring import StoredCredit, discounted, going_on

LENGTHS = [[40, 25], [60]]
"""Lengths of the episodes of two policies."""
EPISODES = [length for policy in LENGTHS for length in policy]
ENDED = [True, False, True]
"""Ends of theirs that are no time limits."""
STEPS, FIRST = sum(EPISODES), sum(LENGTHS[0])


@pytest.fixture
def observations() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(STEPS, 3))


@pytest.fixture
def fitness(observations: np.ndarray) -> np.ndarray:
    return observations[:, 0] + np.random.default_rng(2).normal(size=STEPS)


def by_hand(values: np.ndarray) -> np.ndarray:
    """Discounted sums, step by step from the end of each episode."""
    sums = []
    for part in np.split(values, np.cumsum(EPISODES)[:-1]):
        after, found = 0.0, []
        for value in part[::-1]:
            after = value + 0.99 * after
            found.append(after)
        sums += found[::-1]
    return np.array(sums)


def beyond_the_usual(returns: np.ndarray, observations: np.ndarray) -> np.ndarray:
    """Residual of a ridge regression, by least squares on rows added for the ridge."""
    scaled = (observations - observations.mean(0)) / observations.std(0)
    features = np.column_stack([np.ones(len(returns)), scaled, scaled**2])
    target = (returns - returns.mean()) / returns.std()
    ridge = np.sqrt(0.01 * len(returns)) * np.eye(features.shape[1])
    rows = np.vstack([features, ridge])
    weights = np.linalg.lstsq(rows, np.append(target, np.zeros(len(ridge))), rcond=None)[0]
    return target - features @ weights


def within(values: np.ndarray) -> np.ndarray:
    """Ranks among the steps of the same policy, from -0.5 to 0.5."""
    parts = np.split(values, [FIRST])
    return np.concatenate([(rankdata(part) - (len(part) + 1) / 2) / len(part) for part in parts])


def three_parts(values: np.ndarray, observations: np.ndarray) -> list[np.ndarray]:
    returns = by_hand(values)
    both = zip(np.split(returns, [FIRST]), np.split(observations, [FIRST]), strict=True)
    advantages = [beyond_the_usual(part, seen) for part, seen in both]
    return [values, returns, np.concatenate(advantages)]


def test_an_episode_that_was_cut_off_goes_on_like_the_rest_of_it() -> None:
    values, lengths = np.array([1.0, 1.0, 1.0, 3.0, 2.0, 1.0]), [2, 2, 2]
    found = discounted(values, lengths) * going_on(lengths, [False, False, True])
    mean = (1.0 + 0.99 * 3.0) / 1.99
    assert found == pytest.approx([100.0, 100.0, 100.0 * mean, 300.0, 2.99, 1.0])


@pytest.mark.parametrize("offset", [-3.0, 5.0])
def test_a_constant_beside_a_reward_does_not_count_where_the_fitness_is_paid_at_a_time_limit(
    observations: np.ndarray, offset: float
) -> None:
    """With sums to the limit it counted most: all returns of one sign fall with time."""
    fitness = np.zeros(STEPS)
    fitness[np.cumsum(EPISODES) - 1] = 1.0, 2.0, 1.5
    credit = StoredCredit(fitness, observations, LENGTHS, [False] * 3)
    plain, moved = credit.of(observations[:, 1]), credit.of(observations[:, 1] + offset)
    assert plain is not None
    assert moved is not None
    assert moved.to_go == pytest.approx(plain.to_go)
    assert moved.advantage == pytest.approx(plain.advantage)
    assert abs(plain.to_go) < 0.5


def test_the_three_correlations_are_those_of_other_libraries(
    fitness: np.ndarray, observations: np.ndarray
) -> None:
    totals = observations[:, 1] + 0.5 * fitness + np.random.default_rng(3).normal(size=STEPS)
    found = StoredCredit(fitness, observations, LENGTHS, ENDED).of(totals)
    assert found is not None
    both = zip(three_parts(totals, observations), three_parts(fitness, observations), strict=True)
    expected = [np.corrcoef(within(ours), within(theirs))[0, 1] for ours, theirs in both]
    assert [found.step, found.to_go, found.advantage] == pytest.approx(expected)
    assert found.alignment == pytest.approx(np.mean(expected))


def test_that_one_policy_is_better_than_another_says_nothing() -> None:
    """A reward that pays the better policy's steps and the worse one's alike in themselves."""
    fitness = np.append(np.tile([0.0, 1.0], 30), np.tile([10.0, 11.0], 30))
    totals = np.append(np.tile([0.0, 0.0, 1.0, 1.0], 15), np.tile([10.0, 10.0, 11.0, 11.0], 15))
    found = StoredCredit(fitness, np.ones((120, 1)), [[60], [60]], [True, True]).of(totals)
    assert found is not None
    assert found.step == pytest.approx(0.0)


@pytest.mark.parametrize(("factor", "expected"), [(3.0, 1.0), (-0.1, -1.0)])
def test_scale_does_not_count_and_sign_does(
    fitness: np.ndarray, observations: np.ndarray, factor: float, expected: float
) -> None:
    found = StoredCredit(fitness, observations, LENGTHS, ENDED).of(factor * fitness)
    assert found is not None
    assert (found.step, found.to_go, found.advantage) == pytest.approx((expected,) * 3)


def test_equal_values_have_a_rank_in_common() -> None:
    fitness = np.array([0.0, 0.0, 1.0, 1.0, 2.0, 2.0])
    totals = np.array([0.0, 1.0, 1.0, 0.0, 1.0, 1.0])
    found = StoredCredit(fitness, np.ones((6, 1)), [[6]], [True]).of(totals)
    assert found is not None
    assert found.step == pytest.approx(spearmanr(totals, fitness).statistic)


def test_nothing_is_said_where_a_total_is_no_number(
    fitness: np.ndarray, observations: np.ndarray
) -> None:
    credit = StoredCredit(fitness, observations, LENGTHS, ENDED)
    assert credit.of(np.append(fitness[1:], np.nan)) is None
