"""Fitness and human rewards of steps made by hand, and states set by hand."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
from torch import Tensor

from eureka_agent.simulation.loading import load_environment


def compute_reward(name: str, task: str | None = None) -> Any:
    """The function of a task's human reward."""
    loaded = load_environment(name)
    source = loaded.reward_source(loaded.task(task)[1], "human")
    assert source is not None
    names: dict[str, Any] = {}
    exec(compile(source, "human.py", "exec"), names)
    return names["compute_reward"]


def rewarded(
    environment: Any, name: str, task: str | None, choices: list[int]
) -> list[dict[str, float]]:
    """Components of a task's human reward in each step."""
    reward, found = compute_reward(name, task), []
    before = {name: value.clone() for name, value in environment.read_variables().items()}
    for choice in choices:
        now = environment.advance(torch.tensor([[float(choice)]])).variables
        known = {**now, **{f"previous_{name}": value for name, value in before.items()}}
        arguments = inspect.signature(reward).parameters
        total, parts = reward(**{name: known[name] for name in arguments})
        assert float(total) == pytest.approx(sum(float(part) for part in parts.values()))
        found.append({name: float(part) for name, part in parts.items()})
        before = {name: value.clone() for name, value in now.items()}
    return found


def fitness_of(name: str, task: str, values: dict[str, Tensor]) -> Tensor:
    fitness = load_environment(name).task(task)[1].fitness
    return fitness(**{each: values[each] for each in inspect.signature(fitness).parameters})


def looked_at(environment: Any) -> None:
    """Have a MuJoCo environment's variables follow a state that was written."""
    environment.physics.forward(torch.arange(environment.num_envs))
    environment._refresh(slice(None))
