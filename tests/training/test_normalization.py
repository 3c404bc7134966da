"""Running statistics against numpy over all that was seen."""

from __future__ import annotations

import numpy as np
import torch

from eureka_agent.training.networks import ObservationStatistics, ReturnStatistics, normalize


def test_observation_statistics_are_those_of_all_observations_so_far() -> None:
    statistics = ObservationStatistics(3, 4, "cpu")
    generator = torch.Generator().manual_seed(0)
    batches = [
        torch.randn(2, rows, 4, generator=generator) * 3.0 + shift
        for rows, shift in ((10, 5.0), (30, -1.0), (7, 0.0))
    ]
    for batch in batches:
        statistics.update(batch)
    for member in range(2):
        seen = np.concatenate([batch[member].numpy() for batch in batches])
        np.testing.assert_allclose(statistics.mean[member], seen.mean(axis=0), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(statistics.variance[member], seen.var(axis=0), rtol=1e-5)
    # the third member took no part
    assert statistics.mean[2].tolist() == [0.0] * 4
    assert statistics.variance[2].tolist() == [1.0] * 4


def test_a_reset_member_starts_over() -> None:
    statistics = ObservationStatistics(1, 2, "cpu")
    statistics.update(torch.full((1, 5, 2), 9.0))
    statistics.reset(0)
    batch = torch.tensor([[[0.0, 2.0], [4.0, 2.0]]])
    statistics.update(batch)
    assert statistics.mean.tolist() == [[2.0, 2.0]]
    assert statistics.variance.tolist() == [[4.0, 0.0]]


def test_normalized_observations_are_clipped() -> None:
    result = normalize(torch.tensor([0.0, 3.0, 1e9]), torch.tensor(1.0), torch.tensor(0.5))
    assert result.tolist() == [-0.5, 1.0, 10.0]


def test_the_value_head_is_corrected_so_that_values_stay_the_same() -> None:
    statistics = ReturnStatistics(1, "cpu")
    scale, shift = statistics.update(torch.tensor([[1.0, 3.0]]))
    # mean 2, deviation 1; nothing to correct after the first iteration
    assert (statistics.mean.item(), statistics.deviation.item(), scale.item(), shift.item()) == (
        2.0,
        1.0,
        1.0,
        0.0,
    )
    output = 0.7
    value = output * statistics.deviation.item() + statistics.mean.item()
    scale, shift = statistics.update(torch.tensor([[100.0, 300.0]]))
    corrected = output * scale.item() + shift.item()
    assert statistics.mean.item() == 101.0  # mean of 2 and 200, each with half the weight
    np.testing.assert_allclose(
        corrected * statistics.deviation.item() + statistics.mean.item(), value, rtol=1e-5
    )


def test_returns_that_never_change_do_not_divide_by_zero() -> None:
    statistics = ReturnStatistics(1, "cpu")
    for _ in range(3):
        scale, shift = statistics.update(torch.zeros(1, 4))
    assert scale.isfinite().all()
    assert shift.item() == 0.0
