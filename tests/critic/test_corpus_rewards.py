"""Judged without the critic, the corpus's working rewards do work: torch runs them after the
repairs that anybody would make."""

from __future__ import annotations

import ast
import functools
import inspect
import math
import re
import sys
import typing
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch
from corpus_files import SHARED, CorpusFile, corpus_files, environment_folder
from thoroughness import third
from torch import Tensor

from eureka_agent.conformance.check import check_environment
from eureka_agent.simulation.loading import load_environment
from eureka_agent.simulation.rollouts import random_actions, run

ENVIRONMENTS = sorted(path.name for path in environment_folder("").iterdir() if path.is_dir())
STEPS, ROWS = 60, 16


@pytest.fixture(scope="module", autouse=True)
def shared_on_the_path() -> typing.Iterator[None]:
    sys.path.insert(0, str(SHARED))
    yield
    sys.path.remove(str(SHARED))
    recorded.cache_clear()


@functools.cache
def recorded(environment: str) -> tuple[dict[str, Tensor], dict[str, float]]:
    """States of some steps with random actions, resets among them, and the environment's
    constants."""
    loaded = load_environment(str(environment_folder(environment)))
    world = loaded.make(loaded.task(None)[1], ROWS, seed=1)
    steps = list(run(world, random_actions(ROWS, world.num_actions, STEPS, 1)))
    values = {
        name: torch.cat([step.values[name] for step in steps]).float() for name in steps[0].values
    }
    return values, {constant.name: constant.value for constant in world.constants}


def prepared(reward: CorpusFile) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The function and its keyword arguments, after the repairs: imports, helpers, decorators,
    `torch.exp` of a number."""
    import isaac_helpers

    source = re.sub(r"(?m)^from isaacgym.*$|^@torch\.jit\.script$", "", reward.source)
    source = re.sub(r"torch\.(exp|sqrt|log|abs)\(", r"_lifted(torch.\1)(", source)
    names: dict[str, Any] = {
        "torch": torch,
        "math": math,
        "np": numpy,
        "Tensor": Tensor,
        "_lifted": _lifted,
    }
    names |= {name: getattr(typing, name) for name in ("Dict", "Tuple")}
    names |= {name: getattr(isaac_helpers, name) for name in isaac_helpers.__all__}
    exec(compile(source, str(reward.path), "exec"), names)
    name = [node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)][-1]
    values, constants = recorded(reward.environment)
    given = {**constants, **values}
    parameters = inspect.signature(names[name]).parameters.values()
    unknown = [
        each.name
        for each in parameters
        if each.name not in given and each.default is inspect.Parameter.empty
    ]
    assert not unknown, f"{reward.name} asks for {unknown}"
    return names[name], {each.name: given[each.name] for each in parameters if each.name in given}


def _lifted(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor | float], Tensor]:
    return lambda value: function(torch.as_tensor(value))


def rows(arguments: dict[str, Any], chosen: Tensor) -> dict[str, Any]:
    """Some rows of the arguments, copied."""
    return {
        name: value[chosen].clone() if isinstance(value, Tensor) else value
        for name, value in arguments.items()
    }


@pytest.mark.parametrize("environment", third(ENVIRONMENTS))
def test_the_environments_keep_to_what_an_environment_is(environment: str) -> None:
    results = check_environment(str(environment_folder(environment)), rollout_s=0.2)
    assert results
    assert [result for result in results if not result.passed] == []


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_quaternions_have_unit_length_and_steps_before_agree(environment: str) -> None:
    values, _ = recorded(environment)
    for name, value in values.items():
        assert value.isfinite().all(), name
        if name.endswith(("_rot", "_quat", "_quats", "torso_rotation")):
            torch.testing.assert_close(value.norm(dim=-1), torch.ones(len(value)))
    if "prev_potentials" in values:
        torch.testing.assert_close(
            values["prev_potentials"], values["previous_potentials"], rtol=1e-5, atol=0.0
        )
        torch.testing.assert_close(values["up_proj"], values["up_vec"][:, 2])


@pytest.mark.parametrize("reward", corpus_files("working"), ids=lambda reward: reward.name)
def test_a_working_reward_is_finite_pure_and_row_by_row(reward: CorpusFile) -> None:
    function, arguments = prepared(reward)
    everything = torch.arange(STEPS * ROWS)
    given = rows(arguments, everything)
    total, components = function(**given)
    assert total.shape == (STEPS * ROWS,)
    assert total.isfinite().all()
    assert total.float().std() > 1e-3, "all states have about the same reward"
    assert components
    for name, component in components.items():
        assert isinstance(name, str)
        assert component.shape == total.shape, name
        assert component.float().isfinite().all(), name
    for name, value in given.items():  # nothing was written into the arguments
        assert not isinstance(value, Tensor) or torch.equal(value, arguments[name]), name
    torch.testing.assert_close(
        function(**rows(arguments, everything))[0], total, rtol=0.0, atol=0.0
    )
    few = torch.tensor([7, 500, 31, 2, 899])
    torch.testing.assert_close(
        function(**rows(arguments, few))[0], total[few], rtol=1e-4, atol=1e-4
    )


def test_the_corpus_is_as_large_as_it_says() -> None:
    working, broken = corpus_files("working"), corpus_files("broken")
    assert len(working) >= 66
    assert len(broken) >= 22
    assert all(not reward.reason for reward in working)
    assert all(reward.reason for reward in broken)
    assert {reward.environment for reward in working + broken} == set(ENVIRONMENTS)
    styles = [reward.style for reward in working]
    assert all(
        styles.count(style) >= 12
        for style in ("eureka", "rfagent", "revolve", "isaac", "text2reward")
    )
