"""Stacked Adam against torch's."""

from __future__ import annotations

import torch

from eureka_agent.training.update import StackedAdam


def test_every_member_steps_like_an_adam_of_its_own() -> None:
    generator = torch.Generator().manual_seed(0)
    parameters = torch.randn(3, 64, generator=generator)
    gradients = torch.zeros_like(parameters)
    rates = torch.tensor([[1e-3], [3e-2], [1e-2]])
    adam = StackedAdam(parameters, gradients)
    references = [torch.nn.Parameter(parameters[member].clone()) for member in range(3)]
    optimizers = [
        torch.optim.Adam([reference], lr=float(rates[member]))
        for member, reference in enumerate(references)
    ]
    for step in range(12):
        if (
            step == 5
            # member 1 begins anew while the others go on: its bias correction is that of a first
            # step
        ):
            adam.reset(1)
            optimizers[1] = torch.optim.Adam([references[1]], lr=float(rates[1]))
        gradients.copy_(torch.randn(3, 64, generator=generator))
        scale = torch.tensor([[1.0], [0.25], [1.0]])
        for member in range(3):
            references[member].grad = gradients[member] * scale[member]
            optimizers[member].step()
        # in two groups, as an update in chunks does it
        adam.step(0, 2, rates[:2], scale[:2])
        adam.step(2, 3, rates[2:], scale[2:])
    for member in range(3):
        torch.testing.assert_close(
            parameters[member], references[member].data, rtol=1e-5, atol=1e-7
        )
