"""The model of scores: against the analysis of variance, and against what it simulates itself."""

from __future__ import annotations

import numpy as np
import pytest

from eureka_agent.posterior import counted_on, posterior


def simulated(
    random: np.random.Generator, rewards: int, seeds: int, spread: float, noise: float
) -> tuple[np.ndarray, np.ndarray]:
    """Means of rewards, and scores, shape (rewards, seeds)."""
    means = random.normal(10.0, spread, rewards)
    return means, means[:, None] + random.normal(0.0, noise, (rewards, seeds))


def test_many_rewards_are_shrunk_as_the_analysis_of_variance_says() -> None:
    _, scores = simulated(np.random.default_rng(1), 300, 2, 1.0, 1.5)
    found = posterior(scores.tolist())
    means = scores.mean(axis=1)
    noise = scores.var(axis=1, ddof=1).mean()
    spread = means.var(ddof=1) - noise / 2
    blup = means.mean() + (means - means.mean()) * spread / (spread + noise / 2)
    assert found.means == pytest.approx(blup, abs=0.06)
    assert found.noise.mean() == pytest.approx(noise**0.5, rel=0.05)
    assert found.spread.mean() == pytest.approx(spread**0.5, rel=0.15)


def test_what_can_be_counted_on_is_the_mean_of_the_draws_less_their_deviation() -> None:
    scores = [[17.0], [18.0, 15.0], [12.0], [12.5], [11.0], [13.0, 9.0, 10.0]]
    draws = posterior(scores).draws
    assert counted_on(scores) == pytest.approx(draws.mean(axis=0) - draws.std(axis=0), abs=0.15)
    moved = counted_on([[1e6 + value for value in each] for each in scores])
    assert moved - 1e6 == pytest.approx(counted_on(scores), abs=1e-4)


def test_many_seeds_leave_nothing_to_shrink() -> None:
    means, scores = simulated(np.random.default_rng(2), 4, 2000, 1.0, 0.5)
    found = posterior(scores.tolist())
    assert found.means == pytest.approx(scores.mean(axis=1), abs=1e-3)
    chances = found.probability_best(range(4))
    assert chances[means.argmax()] > 0.99
    assert chances.sum() == pytest.approx(1.0)


def test_a_reward_of_one_training_is_drawn_to_the_others_more_than_one_of_four() -> None:
    found = posterior([[1.0, 1.2, 0.9], [1.1, 0.8, 1.0], [3.0], [3.1, 2.9, 3.0, 3.0]])
    assert found.means[2] < found.means[3] < 3.0
    assert np.ptp(found.draws[:, 2]) > np.ptp(found.draws[:, 3])


def test_what_it_is_sure_of_holds_as_often() -> None:
    """Simulated searches: eight rewards, of which four have a second seed."""
    random = np.random.default_rng(3)
    said, held = [], []
    for _ in range(400):
        means, scores = simulated(random, 8, 2, 1.0, 1.0)
        again = np.argsort(-scores[:, 0])[:4]
        known = [row.tolist() if place in again else [row[0]] for place, row in enumerate(scores)]
        found = posterior(known)
        best = int(found.means.argmax())
        said.append(found.probability_best(range(8))[best])
        held.append(best == means.argmax())
    error = np.std(held) / len(held) ** 0.5
    assert np.mean(said) == pytest.approx(np.mean(held), abs=3 * error)
    sure = np.array(said) > np.median(said)
    assert np.mean(np.array(held)[sure]) > np.mean(np.array(held)[~sure])


@pytest.mark.parametrize("more", [1, 10, 100])
def test_what_more_rewards_gain_is_what_they_gain_in_simulations(more: int) -> None:
    """After many rewards and seeds, so that little but the new ones is random."""
    random = np.random.default_rng(4)
    means, scores = simulated(random, 400, 20, 1.0, 1.0)
    found = posterior(scores.tolist())
    place = int(np.argsort(found.means)[-40])
    level, spread = means.mean(), means.std()
    gains = []
    for _ in range(4000):
        _, scores = simulated(random, more, 1, spread, 1.0)
        believed = level + (scores.max() - 10.0) * spread**2 / (spread**2 + 1.0)
        gains.append((believed - found.means[place]) * (believed > found.means[place]))
    assert found.gain(place, more) == pytest.approx(np.median(gains), abs=0.06)


def test_where_all_are_equal_nothing_is_gained() -> None:
    assert posterior([[2.0, 2.0], [2.0]]).gain(0, 50) == 0.0


def test_a_shift_and_a_scale_of_the_scores_change_no_probability() -> None:
    scores = [[1.0, 2.0], [1.5], [2.5, 2.0]]
    moved = [[1000.0 * value - 7.0 for value in each] for each in scores]
    ours, theirs = posterior(scores), posterior(moved)
    assert ours.probability_best([0, 2]) == pytest.approx(theirs.probability_best([0, 2]))
    assert 1000.0 * ours.means - 7.0 == pytest.approx(theirs.means)


def test_equal_scores_share_the_chances() -> None:
    found = posterior([[2.0, 2.0], [2.0], [2.0]])
    assert found.means.tolist() == [2.0, 2.0, 2.0]
    assert found.probability_best([0, 2]).tolist() == [0.5, 0.5]


@pytest.mark.parametrize("scores", [[], [[1.0], []]])
def test_a_reward_without_a_score_is_refused(scores: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="every reward needs a score"):
        posterior(scores)
