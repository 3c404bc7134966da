"""Distributions of actions against torch's own, and against figures worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from training_environments import PointMass, TwoGearRail

from eureka_agent.settings import TrainingSettings
from eureka_agent.training.distributions import (
    Categorical,
    Gaussian,
    distribution_of,
    distribution_of_file,
)

MEMBERS, ROWS = 3, 50
NOTHING = torch.zeros(MEMBERS, 0)
CHOICES = [(3,), (2, 4), (1, 2)]


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def drawn(distribution: Categorical, scale: float = 2.0) -> tuple[Tensor, Tensor]:
    """Logits of some rows and a choice of each. Shapes: (members, rows, …)."""
    logits = scale * torch.randn(MEMBERS, ROWS, distribution.num_outputs, generator=generator())
    actions = [
        torch.randint(count, (MEMBERS, ROWS), generator=generator(count))
        for count in distribution.choices
    ]
    return logits, torch.stack(actions, dim=-1).float()


def of_torch(distribution: Categorical, logits: Tensor) -> list[torch.distributions.Categorical]:
    groups = logits.split(distribution.choices, dim=-1)
    return [torch.distributions.Categorical(logits=group) for group in groups]


def rows_last(values: Tensor) -> Tensor:
    return values.transpose(1, 2).contiguous()


def test_an_environment_s_actions_say_which_distribution_it_is() -> None:
    assert distribution_of(PointMass) == Gaussian(2)
    assert distribution_of(TwoGearRail) == Categorical((3, 2))
    known = {Gaussian(2): (2, 2, 2), Categorical((3,)): (1, 3, 0), Categorical((3, 2)): (2, 5, 0)}
    for each, sizes in known.items():
        assert (each.num_actions, each.num_outputs, each.num_parameters) == sizes
        assert distribution_of_file(each.metadata, each.num_outputs) == each
    assert list(map(str, known)) == ["2 actions", "a choice of 3", "choices of 3 and 2"]


@pytest.mark.parametrize("choices", CHOICES)
def test_log_probability_and_entropy_are_torch_s(choices: tuple[int, ...]) -> None:
    distribution = Categorical(choices)
    logits, actions = drawn(distribution)
    parts = of_torch(distribution, logits)
    expected = [part.log_prob(actions[..., index]) for index, part in enumerate(parts)]
    torch.testing.assert_close(
        distribution.log_probability(logits, logits, actions, NOTHING), torch.stack(expected).sum(0)
    )
    entropies = torch.stack([part.entropy() for part in parts]).sum(dim=0)
    torch.testing.assert_close(distribution.entropy(logits, NOTHING), entropies.mean(dim=1))


def test_of_equally_likely_choices_the_figures_are_known() -> None:
    distribution, logits = Categorical((4, 2)), torch.full((1, 5, 6), 0.7)
    assert distribution.entropy(logits, NOTHING).item() == pytest.approx(math.log(8.0))
    found = distribution.log_probability(logits, logits, torch.ones(1, 5, 2), NOTHING)
    assert found.flatten().tolist() == pytest.approx([-math.log(8.0)] * 5)
    gaussian = Gaussian(2)
    log_std = torch.tensor([[math.log(2.0), math.log(0.5)]])
    # ½ ln(2πe) each, plus the logarithms, which cancel
    assert gaussian.entropy(logits, log_std).item() == pytest.approx(math.log(2 * math.pi * math.e))
    assert gaussian.std(log_std).item() == pytest.approx(1.25)
    assert gaussian.initial_parameter(TrainingSettings(initial_action_std=0.5)) == math.log(0.5)
    actions = torch.tensor([[[0.995, -3.0], [0.5, 0.98]]])
    assert gaussian.saturation(actions).tolist() == [0.5]
    assert (distribution.std(NOTHING), distribution.saturation(actions)) == (None, None)


@pytest.mark.parametrize("choices", [(3,), (2, 4)])
def test_samples_are_as_frequent_as_they_are_likely(choices: tuple[int, ...]) -> None:
    distribution, count = Categorical(choices), 200_000
    logits = 1.5 * torch.randn(distribution.num_outputs, generator=generator(3))
    noise = torch.empty(count, distribution.num_outputs)
    distribution.draw_noise(generator(4), out=noise)
    assert bool(noise.isfinite().all())
    actions = distribution.sample(logits.expand(count, -1), noise)
    assert actions.shape == (count, len(choices))
    for index, part in enumerate(of_torch(distribution, logits)):
        found = torch.bincount(actions[:, index].long(), minlength=choices[index]) / count
        deviation = (part.probs * (1.0 - part.probs) / count).sqrt()
        assert bool(((found - part.probs).abs() < 4.5 * deviation).all())
    # and the parts know nothing of each other
    if len(choices) == 2:
        both = (actions[:, 0] == 0) & (actions[:, 1] == 0)
        first, second = (part.probs[0].item() for part in of_torch(distribution, logits))
        assert both.float().mean().item() == pytest.approx(first * second, abs=4.5e-3)


def test_noise_is_finite_also_where_the_random_number_is_0() -> None:
    # torch.rand gives 0 once in 2²⁴ numbers: among these it does
    numbers = torch.rand(1 << 18, generator=generator(84))
    assert int((numbers == 0.0).sum()) == 1
    Categorical((2,)).draw_noise(generator(84), out=numbers)
    assert bool(numbers.isfinite().all())


def test_without_noise_the_likeliest_choice_is_made_and_nan_is_none() -> None:
    distribution = Categorical((3, 2))
    logits = torch.tensor([[0.0, 2.0, 1.0, -1.0, -1.0], [5.0, 5.0, 5.0, 0.0, torch.nan]])
    found = distribution.mode(logits, NOTHING)
    assert found[0].tolist() == [1.0, 0.0], "the first of equals"
    assert found[1, 0].item() == 0.0
    assert math.isnan(found[1, 1].item())
    out = torch.empty(2, 2)
    assert distribution.sample(logits, torch.zeros(2, 5), out=out) is out
    assert out[0].tolist() == [1.0, 0.0]


@pytest.mark.parametrize("choices", CHOICES)
def test_divergence_is_torch_s(choices: tuple[int, ...]) -> None:
    distribution = Categorical(choices)
    logits, actions = drawn(distribution)
    old = logits + torch.randn(logits.shape, generator=generator(9))
    likelihood = distribution.likelihood(
        rows_last(logits), NOTHING, rows_last(actions), torch.zeros(MEMBERS, 1, ROWS)
    )
    expected = [
        torch.distributions.kl_divergence(before, now)
        for before, now in zip(
            of_torch(distribution, old), of_torch(distribution, logits), strict=True
        )
    ]
    torch.testing.assert_close(
        likelihood.kl(rows_last(old), NOTHING), torch.stack(expected).sum(dim=0).mean(dim=1)
    )


def test_divergence_of_policies_that_are_sure_of_different_choices_is_finite() -> None:
    distribution = Categorical((2,))
    sure, other = torch.tensor([[[100.0], [-100.0]]]), torch.tensor([[[-100.0], [100.0]]])
    likelihood = distribution.likelihood(sure, NOTHING, torch.zeros(1, 1, 1), torch.zeros(1, 1, 1))
    # -Σ p_old ln p_new = 200, as p_old is all on the second choice
    assert likelihood.kl(other, NOTHING).item() == pytest.approx(200.0)
    assert likelihood.kl(sure, NOTHING).item() == 0.0


@pytest.mark.parametrize("rows", [7, 33, 56])
@pytest.mark.parametrize("choices", [(3,), (2, 4)])
def test_a_member_s_numbers_do_not_depend_on_the_others(
    choices: tuple[int, ...], rows: int
) -> None:
    """This also holds if its rows are no whole SIMD registers."""
    distribution, members = Categorical(choices), 5
    logits = torch.randn(members, rows, distribution.num_outputs, generator=generator(6))
    actions = torch.zeros(members, rows, distribution.num_actions)
    shift, weight = torch.randn(2, members, 1, rows, generator=generator(7))

    def numbers(first: int, end: int) -> list[Tensor]:
        mine = slice(first, end)
        likelihood = distribution.likelihood(
            rows_last(logits[mine]), NOTHING, rows_last(actions[mine]), shift[mine]
        )
        by_outputs = torch.empty(end - first, distribution.num_outputs, rows)
        likelihood.write_gradients(weight[mine], 0.01, by_outputs, NOTHING)
        return [
            distribution.log_probability(logits[mine], logits[mine], actions[mine], NOTHING),
            distribution.entropy(logits[mine], NOTHING),
            likelihood.log_ratio,
            by_outputs,
            likelihood.kl(rows_last(logits[mine].flip(1)), NOTHING),
        ]

    together = numbers(0, members)
    for member in range(members):
        for one, among in zip(numbers(member, member + 1), together, strict=True):
            assert torch.equal(one[0], among[member])


@pytest.mark.parametrize(
    ("metadata", "outputs"),
    [
        ({"distribution": "categorical", "choices": "3,2"}, 4),
        ({"distribution": "categorical", "choices": "4,-1,1"}, 4),
        ({"distribution": "categorical", "choices": "9" * 5000}, 4),
        ({"distribution": "beta", "choices": "4"}, 4),
    ],
)
def test_a_file_s_words_that_fit_no_distribution_are_none(
    metadata: dict[str, str], outputs: int
) -> None:
    assert distribution_of_file(metadata, outputs) is None
