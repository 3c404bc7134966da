"""Strengths that follow from choices, against integrals calculated on a grid."""

from __future__ import annotations

import math

import numpy as np
import pytest

from eureka_agent.analysis.standing import PRIOR_VARIANCE, Preferences, preferences, wins_of
from eureka_agent.feedback_records import Choice, Comparison, Feedback, Wish

NAMES = ("a", "b", "c", "d")
GRID = np.linspace(-12.0, 12.0, 961)


def comparison(first: str, second: str, grade: int | None) -> Comparison:
    return Comparison.model_validate({"first": first, "second": second, "grade": grade})


@pytest.mark.parametrize(
    ("feedback", "wins"),
    [
        (comparison("a", "b", 1), [("a", "b")]),
        (comparison("a", "b", 0), [("a", "b"), ("b", "a")]),
        (comparison("a", "b", -2), [("b", "a"), ("b", "a")]),
        (comparison("a", "b", None), []),
        (
            Choice(shown=("a", "b", "c", "d"), best="b", worst="d"),
            [("b", "a"), ("b", "c"), ("b", "d"), ("a", "d"), ("c", "d")],
        ),
        (Choice(shown=("a", "b", "c"), worst="c"), [("a", "c"), ("b", "c")]),
        (Wish(wants="more"), []),
    ],
)
def test_wins_follow_from_what_was_said(feedback: Feedback, wins: list[tuple[str, str]]) -> None:
    assert wins_of(feedback) == wins


def test_the_difference_of_two_is_that_of_the_integral() -> None:
    feedback = [comparison("a", "b", 1)] * 3 + [comparison("a", "b", -1)]
    found = preferences(("a", "b"), feedback)
    # the difference has a prior of twice the variance, and 3 of 4 wins
    chance = 1.0 / (1.0 + np.exp(-GRID))
    density = np.exp(-(GRID**2) / (4.0 * PRIOR_VARIANCE)) * chance**3 * (1.0 - chance)
    density /= density.sum()
    mean = float((GRID * density).sum())
    deviation = math.sqrt(float(((GRID - mean) ** 2 * density).sum()))
    difference = found.strength("a")[0] - found.strength("b")[0]
    spread = found.covariance[0, 0] + found.covariance[1, 1] - 2.0 * found.covariance[0, 1]
    assert difference == pytest.approx(mean, abs=0.03)
    assert math.sqrt(spread) == pytest.approx(deviation, rel=0.03)


def test_without_choices_there_is_the_prior() -> None:
    found = preferences(NAMES, [Wish(wants="more")])
    assert found.means() == dict.fromkeys(NAMES, 0.0)
    assert found.strength("c") == (0.0, 2.0)
    assert all(chance == pytest.approx(0.25, abs=0.03) for chance in found.chance_best.values())


def test_attempts_without_an_answer_change_nothing() -> None:
    said = [comparison("a", "b", 2), comparison("b", "c", 1)]
    few, many = preferences(("a", "b", "c"), said), preferences(("x", "a", "b", "y", "c"), said)
    for name in ("a", "b", "c"):
        assert many.strength(name) == pytest.approx(few.strength(name))
    assert many.strength("x") == (0.0, 2.0)
    assert many.covariance[0, 1] == 0.0


def test_the_same_answers_give_the_same_strengths_to_the_bit() -> None:
    generator = np.random.default_rng(5)
    pairs = [generator.choice(NAMES, size=2, replace=False) for _ in range(30)]
    said = [comparison(str(first), str(second), 1) for first, second in pairs]
    np.random.seed(1)
    first = preferences(NAMES, said)
    drawn = np.random.random()
    np.random.seed(2)
    second = preferences(NAMES, said)
    assert first.means() == second.means()
    assert (first.covariance == second.covariance).all()
    assert first.chance_best == second.chance_best
    np.random.seed(1)
    preferences(NAMES, said)
    assert np.random.random() == drawn  # and nobody else's numbers change


def test_an_order_is_found() -> None:
    pairs = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "c"), ("b", "d"), ("a", "d")]
    found = preferences(NAMES, [comparison(*pair, 2) for pair in pairs])
    assert sorted(NAMES, key=lambda name: -found.strength(name)[0]) == list(NAMES)
    assert found.chance_best["a"] > 0.6
    assert sum(found.chance_best.values()) == pytest.approx(1.0)


def information_on_a_grid(mean: float, variance: float) -> float:
    """Mutual information of the answer and a Gaussian difference, by sums."""
    density = np.exp(-((GRID - mean) ** 2) / (2.0 * variance))
    density /= density.sum()
    chance = 1.0 / (1.0 + np.exp(-GRID))
    average = float((chance * density).sum())

    def bits(value: np.ndarray | float) -> np.ndarray:
        clipped = np.clip(value, 1e-12, 1.0 - 1e-12)
        return -clipped * np.log2(clipped) - (1.0 - clipped) * np.log2(1.0 - clipped)

    return float(bits(average)) - float((bits(chance) * density).sum())


@pytest.mark.parametrize(("mean", "variance"), [(0.0, 8.0), (1.0, 2.0), (4.0, 6.0)])
def test_a_comparison_s_information_is_that_of_the_integral(mean: float, variance: float) -> None:
    covariance = np.diag([variance / 2.0, variance / 2.0])
    found = Preferences(("a", "b"), np.array([mean, 0.0]), covariance)
    expected = information_on_a_grid(mean, variance)
    assert found.information("a", "b") == pytest.approx(expected, abs=0.03)
    assert found.information("b", "a") == pytest.approx(found.information("a", "b"))


def test_the_pair_that_tells_most_comes_next() -> None:
    # a and b are ahead and uncertain, c is known to be between, d is far behind
    mean = np.array([2.0, 1.8, 0.0, -6.0])
    found = Preferences(NAMES, mean, np.diag([2.0, 2.0, 0.01, 2.0]))
    assert found.next_pair(NAMES) == ("a", "b")
    # three alike, of which a and c are known to differ by little
    covariance = np.array([[4.0, 0.0, 3.9], [0.0, 4.0, 0.0], [3.9, 0.0, 4.0]])
    alike = Preferences(("a", "b", "c"), np.zeros(3), covariance)
    assert alike.next_pair(("a", "b", "c")) != ("a", "c")
    # where a is certain, b's place is the question
    assert found.next_pair(("a", "c")) == ("a", "c")
    assert found.next_pair(("d",)) is None


def test_a_scripted_judge_finds_the_best_of_twelve_in_forty_answers() -> None:
    names = tuple(f"{number}" for number in range(12))
    generator = np.random.default_rng(3)
    hits = 0
    for _ in range(2):
        worth = generator.normal(size=12) * 2.0
        said: list[Feedback] = []
        for _ in range(40):
            pair = preferences(names, said).next_pair(names)
            assert pair is not None
            first, second = (worth[int(name)] for name in pair)
            likes_first = generator.random() < 1.0 / (1.0 + math.exp(second - first))
            said.append(comparison(*pair, 1 if likes_first else -1))
        strengths = preferences(names, said).means()
        best = max(names, key=lambda name: strengths[name])
        hits += worth[int(best)] >= np.sort(worth)[-2]
    assert hits == 2  # chance would find one of the two best once in six
