"""The basic checks of `eureka envs --check`, on shapes, values, resets and the state's storage.
Each raises `Nonconforming` with expected and actual; its docstring is the expected text that a user
sees."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import torch
from torch import Tensor

from eureka_agent.simulation.loading import LoadedEnvironment
from eureka_agent.simulation.rollouts import RecordedStep, actions_for, copied_variables, run
from eureka_agent.simulation.vec_task import SUCCEEDED, VecTask, undeclared_cause
from eureka_agent.task import PREVIOUS_PREFIX, RANGE_TOLERANCE, Task, Variable
from eureka_agent.training.environment_faults import OBSERVATIONS, place_of_value
from eureka_agent.training.fitness import FitnessFunction

ROWS = 8
RANDOM_STEPS = 120
EXTREME_STEPS = 40
LARGEST_STATE = 1e10
"""Magnitude from which a state is not physical, MuJoCo's mjMAXVAL."""
BEYOND_RANGE = 1e6
"""Multiple of a declared range from which a state is not physical."""
LONGEST = 500
"""Most steps in which a state can grow."""


@dataclass(eq=False)
class Nonconforming(Exception):
    """An error that a check found."""

    expected: str
    actual: str
    hint: str
    raised: bool = False
    """True for an exception of the environment's code."""


class NotApplicable(Exception):
    """Raised by a check that does not apply to this kind of environment: it has no result."""


@dataclass(frozen=True)
class Remark:
    """A warning: allowed by the contract, but seldom intended."""

    expected: str
    actual: str
    hint: str


class Note(str):
    """A remark on a check that passed."""


@dataclass
class Subject:
    loaded: LoadedEnvironment
    task: Task
    name: str = ""
    """Of the task."""
    trained_fitness: float = 0.0
    """Largest magnitude of an episode's fitness in a brief training."""

    @property
    def cls(self) -> type[VecTask]:
        return self.loaded.environment_class

    def fitness(self) -> FitnessFunction:
        return FitnessFunction(self.task, self.cls.all_variables(), self.cls.constants)

    def make(self, num_envs: int = ROWS, seed: int = 0) -> VecTask:
        return self.loaded.make(self.task, num_envs, seed=seed)

    def steps(self, count: int = RANDOM_STEPS) -> list[RecordedStep]:
        """Random steps of a fresh environment, closed afterwards."""
        environment = self.make()
        try:
            return list(run(environment, actions_for(environment, count, seed=0)))
        finally:
            environment.close()

    def sound_steps(self) -> list[RecordedStep]:
        """Steps before the first value that is not finite or huge, which no reward can process."""
        limits = _limits(self.cls)

        def is_sound(step: RecordedStep) -> bool:
            values = step.values.items()
            return all(bool((each.abs() < limits[name]).all()) for name, each in values)

        return list(takewhile(is_sound, self.steps()))


# ── shapes and values ─────────────────────────────────────────────────────────────────────────────


def made(subject: Subject) -> None:
    """8 rows can be made and reset"""
    subject.make().close()


def observations_after_reset(subject: Subject) -> None:
    """The observations have their declared shape, in float32, and are finite."""
    environment = subject.make()
    shape = (ROWS, environment.num_observations)
    check_tensor("obs_buf", environment.obs_buf, shape, torch.float32)


def written_columns(subject: Subject) -> None:
    """compute_observations writes every column of obs_buf."""
    environment = subject.make()
    buffer = environment.obs_buf
    environment.obs_buf.fill_(torch.nan)
    environment.compute_observations()
    missing = environment.obs_buf.isnan().all(dim=0).nonzero().flatten().tolist()
    if environment.obs_buf is buffer and missing:
        expected = f"{environment.num_observations} columns, as num_observations says"
        shown = ", ".join(map(str, missing[:12])) + ("…" if len(missing) > 12 else "")
        hint = "write them, or make num_observations smaller: policies see them as 0"
        raise Nonconforming(expected, f"never written: columns {shown}", hint)


def variables_after_reset(subject: Subject) -> None:
    """Every declared variable, and no other, can be read after a reset."""
    environment = subject.make()
    _check_variables(environment, environment.read_variables())


def variables_after_step(subject: Subject) -> None:
    """Every declared variable, and no other, comes with a step."""
    environment = subject.make()
    transition = environment.advance(actions_for(environment, 1, seed=0)[0])
    _check_variables(environment, transition.variables)
    shape = (ROWS, environment.num_observations)
    check_tensor("observations", transition.observations, shape, torch.float32)


def termination(subject: Subject) -> None:
    """Terminated, truncated and causes are bool per row; no row is both; causes are declared."""
    environment = subject.make()
    ended = environment.compute_termination()
    given = ended if isinstance(ended, dict) else {"compute_termination's result": ended}
    for name, rows in given.items():
        check_tensor(name, rows, (ROWS,), torch.bool)
    transition = environment.advance(actions_for(environment, 1, seed=0)[0])
    check_tensor("terminated", transition.terminated, (ROWS,), torch.bool)
    check_tensor("truncated", transition.truncated, (ROWS,), torch.bool)
    if set(transition.causes) - set(environment.termination_causes):
        raise undeclared_cause(type(environment), transition.causes)


def time_limit(subject: Subject) -> None:
    """An episode of max_episode_length steps ends, as truncated unless a cause ended it."""
    environment = subject.make()
    environment.progress_buf.fill_(environment.max_episode_length - 1)
    transition = environment.advance(torch.zeros(ROWS, environment.num_actions))
    ended = transition.terminated ^ transition.truncated
    if not bool(ended.all()):
        length = environment.max_episode_length
        expected = f"all {ROWS} rows terminated or truncated (not both) after {length} steps"
        hint = "leave the time limit to the base class: compute_termination gives other ends alone"
        raise Nonconforming(expected, f"{int(ended.sum())} rows", hint)


def finite_values(subject: Subject) -> None:
    """Nothing turns NaN, infinite or huge under random actions."""
    count = max(RANDOM_STEPS, min(LONGEST, subject.cls.max_episode_length))
    for index, step in enumerate(subject.steps(count)):
        check_finite(subject, step, f"in step {index} of random actions")


def extreme_actions(subject: Subject) -> None:
    """Nothing turns NaN, infinite or huge under extreme, alternating and huge actions."""
    environment = subject.make()
    signs = torch.tensor([1.0, -1.0]).repeat(EXTREME_STEPS // 2).view(-1, 1, 1)
    ones = torch.ones(EXTREME_STEPS, ROWS, environment.num_actions)
    for name, actions in {
        "all 1": ones,
        "all -1": -ones,
        "alternating 1, -1": signs * ones,
        "all 1e6": 1e6 * ones,
    }.items():
        environment.reset()
        for index, step in enumerate(run(environment, actions)):
            check_finite(subject, step, f"in step {index} of actions {name}")


def value_ranges(subject: Subject) -> None:
    """No variable leaves its declared range by more than a tenth of it."""
    steps, variables = subject.steps(), subject.cls.all_variables()
    seen = {name: torch.stack([step.values[name] for step in steps]) for name in steps[0].values}
    if any(bool((seen[each.name].abs() > _most(each)).any()) for each in variables):
        return  # another check reports exploding physics; no range is wrong then
    for variable in variables:
        if variable.range is not None:
            low, high = variable.range
            slack = RANGE_TOLERANCE * (high - low)
            least, most = float(seen[variable.name].min()), float(seen[variable.name].max())
            if least < low - slack or most > high + slack:
                raise Nonconforming(
                    f"{variable.name} within its range {variable.range!r}",
                    f"{least:.4g} to {most:.4g} under random actions",
                    "correct the Variable's range, or leave it out",
                )


# ── resets and storage ────────────────────────────────────────────────────────────────────────────


def reset_state(subject: Subject) -> None:
    """A reset row has progress 0, actions 0, is not terminated; other rows do not change."""
    environment = subject.make()
    for actions in actions_for(environment, 5, seed=0):
        environment.advance(actions)
        environment.reset_done()
    before = {**copied_variables(environment), "progress_buf": environment.progress_buf.clone()}
    asked = torch.tensor([1, ROWS - 2])
    environment.reset_rows(asked)
    after = {**environment.read_variables(), "progress_buf": environment.progress_buf}
    ends = [SUCCEEDED] if environment.success_causes else []
    for name in ("progress_buf", "actions", "terminated", *ends):
        if bool((after[name][asked] != 0).any()):
            expected = f"{name} 0 in a row just reset"
            actual = f"{after[name][asked].tolist()!r}"
            raise Nonconforming(expected, actual, "call the base class's reset_rows")
    others = [row for row in range(ROWS) if row not in asked.tolist()]
    same = (torch.equal(after[name][others], value[others]) for name, value in before.items())
    changed = [name for name, is_same in zip(before, same, strict=True) if not is_same]
    if changed:
        expected = f"reset_idx({asked.tolist()!r}) changes these rows alone"
        hint = "write reset_idx with env_ids as index: `self.state[env_ids] = …`"
        raise Nonconforming(expected, f"it changed {', '.join(changed)} of other rows", hint)


# ── helpers ───────────────────────────────────────────────────────────────────────────────────────


def _check_variables(environment: VecTask, values: Mapping[str, Tensor]) -> None:
    declared = {variable.name: variable for variable in environment.all_variables()}
    names, given = set(declared), set(values)
    faults = {"missing": sorted(names - given), "not declared": sorted(given - names)}
    if any(faults.values()):
        actual = "; ".join(f"{fault}: {names!r}" for fault, names in faults.items() if names)
        hint = "compute_variables returns exactly the names in the class's `variables`"
        raise Nonconforming(f"the {len(declared)} declared variables", actual, hint)
    for name, value in values.items():
        shape = (environment.num_envs, *declared[name].shape)
        check_tensor(f"variable {name}", value, shape, torch.float32)


def check_tensor(name: str, value: Any, shape: Sequence[int], dtype: torch.dtype | None) -> None:
    """Raise Nonconforming unless it is a finite tensor of this shape and type (None: any)."""
    if not isinstance(value, Tensor):
        what, actual, hint = f"{name} is a tensor", type(value).__name__, "return torch tensors"
    elif tuple(value.shape) != tuple(shape):
        what, actual = f"{name} of shape {tuple(shape)!r}", f"{tuple(value.shape)!r}"
        hint = "the batch is the first dimension"
    elif dtype is not None and value.dtype != dtype:
        what, actual = f"{name} of type {dtype}", f"{value.dtype}"
        hint = f"convert it with .to({dtype})"
    elif not bool(torch.isfinite(value).all()):
        rows = int((~torch.isfinite(value)).reshape(len(value), -1).any(dim=1).sum())
        what = f"{name} finite in every row"
        actual = f"{name} is {_first_odd(value)} in {rows} of {len(value)} rows"
        hint = "guard divisions, roots and logarithms"
    else:
        return
    raise Nonconforming(what, actual, hint)


def check_finite(subject: Subject, step: RecordedStep, when: str) -> None:
    """Check a step's own variables; `previous_` ones were checked a step before."""
    limits = _limits(subject.cls)
    for name, value in {**step.values, OBSERVATIONS: step.observations}.items():
        odd = ~(value.abs() < limits[name])
        if name.startswith(PREVIOUS_PREFIX) or not bool(odd.any()):
            continue
        first = odd.nonzero()[0].tolist()
        column = f", column {first[1]}," if len(first) > 1 else ""
        what = f"{place_of_value(subject.cls, name)}{name}{column} is"
        worst, where = float(value[tuple(first)]), f"{when} (row {first[0]})"
        if math.isfinite(worst):
            raise Nonconforming(
                f"{name} below {limits[name]:.4g}",
                f"{what} {worst:.4g} {where}: the physics explodes",
                "a smaller time step, smaller forces or gears, and more damping keep it stable;"
                " see what grows from step to step",
            )
        hint = "guard divisions, and limit velocities in the physics"
        raise Nonconforming(f"{name} finite", f"{what} {_first_odd(value)} {where}", hint)


def _limits(cls: type[VecTask]) -> Mapping[str, float]:
    """`_most` by name, for observations too."""
    known = {variable.name: _most(variable) for variable in cls.all_variables()}
    return defaultdict(lambda: max(LARGEST_STATE, *known.values()), known)


def _most(variable: Variable) -> float:
    """Magnitude from which a variable's value is not physical."""
    reach = max(map(abs, variable.range), default=0.0) if variable.range else 0.0
    return max(2.0 * reach, min(LARGEST_STATE, BEYOND_RANGE * reach)) if reach else LARGEST_STATE


def _first_odd(value: Tensor) -> float:
    return float(value[~torch.isfinite(value)].flatten()[0])
