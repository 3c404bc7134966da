"""Checks of `eureka envs --check` on a task's fitness and its baseline rewards."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import torch

from eureka_agent.conformance.checks import ROWS, Nonconforming, Subject, check_tensor
from eureka_agent.errors import RewardLoadError
from eureka_agent.rewards import baseline
from eureka_agent.training.reward import RewardContractError, RewardFunction, load_reward

_MADE_UP_ROWS = 512


def fitness(subject: Subject) -> None:
    """The fitness takes known variables and constants and gives one finite number per row."""
    function = subject.fitness()
    for step in subject.sound_steps():
        check_tensor("fitness", function(step.values), (ROWS,), None)
    reduction = subject.task.fitness_reduction
    if reduction != "sum" and (value := constant_fitness(subject)) is not None:
        raise Nonconforming(
            "a fitness that depends on the state",
            f"{value:.4g} in every step, whatever its arguments are; with fitness_reduction"
            f" {reduction!r} every episode has it",
            "compute it from its arguments",
        )


def human_reward(subject: Subject) -> None:
    """The human reward loads and runs."""
    _check_reward(subject, "human")


def sparse_reward(subject: Subject) -> None:
    """The sparse reward loads, runs and is the fitness of each step."""
    reward = _check_reward(subject, "sparse")
    if reward is None:
        return
    function = subject.fitness()
    for index, step in enumerate(subject.sound_steps()):
        total, expected = reward(step.values)[0], function(step.values)
        if not torch.allclose(total, expected, rtol=1e-4, atol=1e-6):
            value = constant_fitness(subject)
            if value is not None:
                raise Nonconforming(
                    "a fitness that depends on the state",
                    f"the fitness is {value:.4g} whatever its arguments are, and the sparse reward"
                    " is not",
                    "compute the fitness from its arguments: it decides, and the sparse reward is"
                    " to be the same",
                )
            worst = int((total - expected).abs().argmax())
            raise Nonconforming(
                f"the sparse reward is the fitness: {float(expected[worst]):.6g} in step {index},"
                f" row {worst}",
                f"{float(total[worst]):.6g}",
                "return the fitness's own value as the total",
            )


def constant_fitness(subject: Subject) -> float | None:
    """The fitness where it is equal for recorded values and random ones of any size, or None."""
    fitness = subject.fitness()
    recorded = subject.sound_steps()
    if not recorded:
        return None
    generator = torch.Generator().manual_seed(10)
    shapes = {name: recorded[-1].values[name].shape[1:] for name in fitness.arguments}
    made_up = [
        {
            name: scale * torch.randn(_MADE_UP_ROWS, *shape, generator=generator)
            for name, shape in shapes.items()
        }
        for scale in (0.0, 0.01, 0.1, 1.0, 10.0, 1e3, 1e7)
    ]
    values = torch.cat([fitness(each) for each in (*made_up, *(step.values for step in recorded))])
    return float(values[0]) if bool((values == values[0]).all()) else None


def _check_reward(subject: Subject, kind: Literal["human", "sparse"]) -> RewardFunction | None:
    """Load and call a baseline as a training does."""
    source = subject.loaded.reward_source(subject.task, kind)
    if source is None:
        return None
    found = subject.loaded.environment_class
    try:
        reward = load_reward(baseline(source), found)
        for step in subject.sound_steps():
            total, components = reward(step.values)
            for name, value in {"total": total, **components}.items():
                check_tensor(f"{kind} reward's {name}", value, (ROWS,), None)
    except (RewardLoadError, RewardContractError) as error:
        file = Path(getattr(subject.task, f"{kind}_reward")).name
        raise Nonconforming(
            f"the {kind} reward loads and runs",
            f"{file}, {error.message}",
            error.hint or "correct this line",
        ) from None
    return reward
