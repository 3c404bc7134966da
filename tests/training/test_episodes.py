"""Episode fitness by hand."""

from __future__ import annotations

import pytest
import torch

from eureka_agent.task import FitnessReduction
from eureka_agent.training.fitness import EpisodeTracker

FITNESS = [1.0, 2.0, -3.0, -4.0, -6.0, -5.0]
ENDED = [True, False, False, True, False, True]
# after the first, shortened episode [1]: the full ones are [2, -3, -4] and [-6, -5]


@pytest.mark.parametrize(
    ("reduction", "expected"),
    [
        ("sum", (2 - 3 - 4) + (-6 - 5)),
        ("mean", (2 - 3 - 4) / 3 + (-6 - 5) / 2),
        ("last", -4 - 5),
        ("max", 2 - 5),
    ],
)
@pytest.mark.parametrize("split", [3, 6])
def test_reductions_over_full_episodes_across_iterations(
    reduction: FitnessReduction, expected: float, split: int
) -> None:
    tracker = EpisodeTracker(2, 1, reduction, "cpu")
    tracker.reset(0)
    fitness = torch.tensor(FITNESS).view(1, 6, 1)
    ended = torch.tensor(ENDED).view(1, 6, 1)
    reports = [
        tracker.update(fitness[:, part], ended[:, part])
        for part in (slice(0, split), slice(split, 6))
        if part.start < 6
    ]
    assert sum(report.fitness_sum.item() for report in reports) == pytest.approx(expected)
    assert sum(report.count.item() for report in reports) == 2
    assert sum(report.length_sum.item() for report in reports) == 3 + 2
    counted = torch.cat([report.counted for report in reports], dim=1).flatten().tolist()
    assert counted == [False, False, False, True, False, True]


def test_a_new_member_starts_with_a_shortened_episode_again() -> None:
    tracker = EpisodeTracker(2, 1, "sum", "cpu")
    ones, ends = torch.ones(2, 1, 1), torch.ones(2, 1, 1, dtype=torch.bool)
    assert tracker.update(ones, ends).count.tolist() == [0.0, 0.0]
    assert tracker.update(ones, ~ends).count.tolist() == [0.0, 0.0]
    tracker.reset(1)
    report = tracker.update(ones, ends)
    # member 0 ends a full episode of two steps, member 1 its new first one, whose sum does not hold
    # the step before
    assert report.count.tolist() == [1.0, 0.0]
    assert report.fitness_sum.tolist() == [2.0, 0.0]
    report = tracker.update(ones, ends)
    assert report.fitness_sum.tolist() == [1.0, 1.0]
