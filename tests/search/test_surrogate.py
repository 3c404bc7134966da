"""Expected improvement of rewards: by scipy's ranks and integrals, and in the information form."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import median_abs_deviation, norm, spearmanr

from eureka_agent.records import Credit
from eureka_agent.search.drafts import Known, expected_improvements

STEPS = 30


def credit(values: np.ndarray, alignment: float = 0.0) -> Credit:
    """Credit for steps of these values, shape (3, steps)."""
    ranks = (values.argsort(axis=1).argsort(axis=1) + 0.5) / values.shape[1] - 0.5
    return Credit(
        step=alignment, to_go=alignment, advantage=alignment, ranks=tuple(ranks.ravel().tolist())
    )


@pytest.fixture
def values() -> np.ndarray:
    """Values of five rewards. Shape: (5, 3, steps)."""
    random = np.random.default_rng(3)
    return random.normal(size=(5, 3, STEPS)) + 0.7 * random.normal(size=(3, STEPS))


def test_it_is_the_one_of_the_gaussian_process(values: np.ndarray) -> None:
    """The posterior of 3 known and 2 unknown means, by adding up precisions."""
    agreement = [0.1, 0.5, -0.2, 0.3, 0.6]
    credits = [credit(each, found) for each, found in zip(values, agreement, strict=True)]
    fitness, trainings = np.array([3.0, 6.0, 4.0]), np.array([1, 4, 1])
    known = [
        Known(each, *numbers)
        for each, *numbers in zip(credits, fitness.tolist(), trainings.tolist(), strict=False)
    ]
    near = np.array(
        [
            [
                np.mean([spearmanr(a, b).statistic for a, b in zip(x, y, strict=True)])
                for x in values
            ]
            for y in values
        ]
    )
    z = (np.array(agreement) - np.mean(agreement)) / np.std(agreement)
    prior = 4.0 + 0.03 * np.outer(z, z)
    prior += 0.35 * np.exp(-(1.0 - near) / 0.25) + 0.15 * np.exp(-(1.0 - near) / 0.01)
    precision = np.linalg.inv(prior)
    information = precision @ (0.2 * z)
    scaled = (fitness - fitness.mean()) / fitness.std()
    for place in range(3):
        precision[place, place] += trainings[place] / 0.5
        information[place] += scaled[place] * trainings[place] / 0.5
    covariance = np.linalg.inv(precision)
    mean = covariance @ information
    best = mean[:3].argmax()
    expected = []
    for each in (3, 4):
        difference = np.zeros(5)
        difference[[each, best]] = 1.0, -1.0
        lead = norm(difference @ mean, (difference @ covariance @ difference) ** 0.5)
        expected.append(quad(lambda gain, lead=lead: gain * lead.pdf(gain), 0.0, 12.0)[0])
    found = expected_improvements(known, credits[3:])
    assert found == pytest.approx(np.array(expected) * fitness.std(), rel=1e-6)


def test_what_is_near_a_good_reward_promises_more_than_what_is_near_a_bad_one(
    values: np.ndarray,
) -> None:
    good, bad = values[0], values[1]
    known = [Known(credit(good), 9.0, 1), Known(credit(bad), 1.0, 1)]
    nudge = 0.01 * values[2]
    like_good, like_bad = expected_improvements(known, [credit(good + nudge), credit(bad + nudge)])
    assert like_good > like_bad


def test_trainings_teach_what_agreement_is_worth(values: np.ndarray) -> None:
    """Agreement counts for a draft, and less so where rewards that agree have failed."""

    def lead(fitness: list[float]) -> float:
        known = [
            Known(credit(each, agreement), value, 1)
            for each, agreement, value in zip(values, (-0.5, 0.5, 0.6), fitness, strict=False)
        ]
        agrees, differs = expected_improvements(
            known, [credit(values[3], 0.9), credit(values[3], -0.9)]
        )
        return (agrees - differs) / float(np.std(fitness))

    assert lead([5.0, 5.1, 5.0]) > 0.0
    assert lead([0.0, 10.0, 10.0]) > lead([10.0, 0.0, 0.0])


def test_a_copy_of_the_best_improves_nothing(values: np.ndarray) -> None:
    known = [Known(credit(values[0]), 9.0, 1), Known(credit(values[1]), 1.0, 1)]
    copy, another = expected_improvements(known, [credit(values[0]), credit(values[2])])
    assert copy < 1e-3 < another


def test_units_of_the_fitness_do_not_matter(values: np.ndarray) -> None:
    credits = [credit(each, 0.1 * place) for place, each in enumerate(values)]

    def gains(scale: float, shift: float) -> np.ndarray:
        numbers = (1.0, 4.0, 2.0)
        known = [
            Known(each, scale * value + shift, 1)
            for each, value in zip(credits, numbers, strict=False)
        ]
        return np.array(expected_improvements(known, credits[3:]))

    assert gains(10.0, -500.0) == pytest.approx(10.0 * gains(1.0, 0.0))


def test_a_training_that_went_wrong_does_not_hide_the_others(values: np.ndarray) -> None:
    """Its fitness counts as 2 deviations below the median, by scipy's median deviation."""
    credits = [credit(each, 0.1 * place) for place, each in enumerate(values)]
    fitness = np.array([1.0, 2.0, 4.0, -1000.0])
    lowest = 1.5 - 2.0 * median_abs_deviation(fitness, scale="normal")

    def gains(worst: float) -> list[float]:
        numbers = (*fitness[:3].tolist(), worst)
        known = [Known(each, value, 1) for each, value in zip(credits, numbers, strict=False)]
        return expected_improvements(known, credits[4:])

    assert gains(-1000.0) == pytest.approx(gains(lowest))
    assert gains(-1000.0) != pytest.approx(gains(lowest + 0.5))


def test_equal_fitness_and_constant_rewards_are_no_fault() -> None:
    flat = Credit(step=0.0, to_go=0.0, advantage=0.0, ranks=(0.0,) * 6)
    found = expected_improvements([Known(flat, 0.0, 1), Known(flat, 0.0, 2)], [flat, flat])
    assert np.isfinite(found).all()
    assert found[0] == found[1] == pytest.approx(0.0, abs=1e-3)
