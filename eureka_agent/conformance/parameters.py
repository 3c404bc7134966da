"""Checks of `eureka envs --check` on parameters that an environment declares."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from eureka_agent.conformance.checks import ROWS, Nonconforming, NotApplicable, Note, Subject
from eureka_agent.conformance.rows import first_difference
from eureka_agent.parameters import DEFAULTS, Distribution
from eureka_agent.simulation.rollouts import RecordedStep, actions_for, copied_variables, run

_STEPS = 130
"""Control steps of each run; a push that comes every 2 s falls among them in some row."""


def parameters(subject: Subject) -> Iterator[Note]:
    """Each parameter changes the states at both ends of its range, all of which stay finite, and
    none does at its default."""
    declared = subject.loaded.environment_class.parameters
    if not declared:
        raise NotApplicable
    usual = _run(subject, DEFAULTS)
    defaults = {each.name: (each.default, each.default) for each in declared}
    changed = _first_change(usual, _run(subject, defaults))
    if changed:
        raise Nonconforming(
            "the same numbers, to the bit, with all parameters set to their defaults",
            changed,
            "compute them so that the default gives the unchanged number: a factor of 1, a force"
            " of 0",
        )
    for parameter in declared:
        for end in (parameter.low, parameter.high):
            if end == parameter.default:
                continue
            what = f"{parameter.name} = {end:g}"
            found = _run(subject, {parameter.name: (end, end)})
            odd = _first_odd(found)
            if odd:
                raise Nonconforming(
                    f"finite states with {what}, an end of its range",
                    odd,
                    "declare a smaller range, or make the physics stable there",
                )
            if not any(map(_differ, usual, found)):
                raise Nonconforming(
                    f"states that differ with {what} from those with {parameter.default:g}",
                    f"all are equal in {_STEPS} steps of random actions",
                    f'read self.parameter_values["{parameter.name}"], in parameters_changed where'
                    " something is computed from it, or take the parameter out",
                )
    yield Note(f"{len(declared)}: {', '.join(each.name for each in declared)}")


def _run(subject: Subject, distribution: Distribution) -> list[RecordedStep]:
    """A start and steps under a distribution, otherwise the same."""
    environment = subject.make()
    try:
        rows = torch.arange(ROWS)
        environment.seed_rows(rows, 1000 + rows)
        environment.set_parameters(rows, distribution)
        environment.reset()
        none = torch.zeros(ROWS, dtype=torch.bool)
        start = RecordedStep(environment.obs_buf.clone(), copied_variables(environment), none, none)
        return [start, *run(environment, actions_for(environment, _STEPS, seed=13))]
    finally:
        environment.close()


def _tensors(step: RecordedStep) -> dict[str, Tensor]:
    return {**step.values, "the observations": step.observations}


def _differ(one: RecordedStep, other: RecordedStep) -> bool:
    values, others = _tensors(one), _tensors(other)
    return any(not torch.equal(value, others[name]) for name, value in values.items())


def _first_change(expected: list[RecordedStep], found: list[RecordedStep]) -> str:
    """The first change, in words; empty without one."""
    for index, (one, other) in enumerate(zip(expected, found, strict=True)):
        if _differ(one, other):
            rows = (first_difference(one, row, other, row) for row in range(ROWS))
            large = next(filter(None, rows), None)
            what = large.text("without", "with them") if large else "the last bits differ"
            return f"{what}, {index} steps after a reset"
    return ""


def _first_odd(steps: list[RecordedStep]) -> str:
    """The first number that is not finite, in words; empty without one."""
    for index, step in enumerate(steps):
        for name, value in _tensors(step).items():
            if not bool(torch.isfinite(value).all()):
                return f"{name} is not finite {index} steps after a reset"
    return ""
