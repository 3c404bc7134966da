"""The single checks of `eureka envs --check`: each takes what is checked and raises `Nonconforming`
with expected against actual."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from eureka_agent.errors import RewardLoadError
from eureka_agent.rewards import baseline
from eureka_agent.simulation.loading import LoadedEnvironment
from eureka_agent.simulation.rollouts import RecordedStep, actions_for, copied_variables, run
from eureka_agent.simulation.vec_task import SUCCEEDED, VecTask, undeclared_cause
from eureka_agent.task import PREVIOUS_PREFIX, Task, Variable
from eureka_agent.training.binding import FitnessFunction
from eureka_agent.training.environment_faults import OBSERVATIONS, place_of_value
from eureka_agent.training.reward import RewardContractError, RewardFunction
from eureka_agent.training.reward_loading import load_reward

ROWS = 8
RANDOM_STEPS = 120
EXTREME_STEPS = 40
COMPARED_STEPS = 30
RANGE_TOLERANCE = 0.1
LARGEST_STATE = 1e10
"""From here on, as for MuJoCo (mjMAXVAL), a state is no longer physical."""
BEYOND_RANGE = 1e6
"""And from so many times the size of a declared range."""
LONGEST = 500
"""Steps in which a state can grow, at most."""
_MADE_UP_ROWS = 512


class Nonconforming(Exception):
    """An error that a check found."""

    def __init__(self, expected: str, actual: str, hint: str) -> None:
        super().__init__(expected)
        self.expected, self.actual, self.hint = expected, actual, hint


class NotApplicable(Exception):
    """A check that says nothing of this kind of environment: there is no result."""


@dataclass(frozen=True)
class Remark:
    """A warning: what breaks no contract, but is seldom meant."""

    expected: str
    actual: str
    hint: str


class Note(str):
    """A line on something that is as it should be."""


@dataclass
class Subject:
    """An environment and the task that are checked."""

    loaded: LoadedEnvironment
    task: Task

    def fitness(self) -> FitnessFunction:
        """The task's fitness as a training calls it."""
        found = self.loaded.environment_class
        return FitnessFunction(self.task, found.all_variables(), found.constants)

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
        """Steps before the first one in which a value is no number, or huge: a reward is not to
        blame for what it makes of that."""
        return list(
            takewhile(
                lambda step: all(
                    bool((value.abs() < LARGEST_STATE).all()) for value in step.values.values()
                ),
                self.steps(),
            )
        )


# ── shapes and values ─────────────────────────────────────────────────────────────────────────────


def observations_after_reset(subject: Subject) -> None:
    """The observations have their declared shape, in float32, and are finite."""
    environment = subject.make()
    _check_tensor(
        "obs_buf", environment.obs_buf, (ROWS, environment.num_observations), torch.float32
    )


def variables_after_reset(subject: Subject) -> None:
    """Every declared variable, and no other, can be read right after a reset: that is what
    `previous_…` starts from."""
    environment = subject.make()
    _check_variables(environment, environment.read_variables())


def variables_after_step(subject: Subject) -> None:
    """Every declared variable, and no other, comes with a step."""
    environment = subject.make()
    transition = environment.advance(actions_for(environment, 1, seed=0)[0])
    _check_variables(environment, transition.variables)
    _check_tensor(
        "observations", transition.observations, (ROWS, environment.num_observations), torch.float32
    )


def termination(subject: Subject) -> None:
    """Terminated, truncated and each cause are bool per row, no row is both, and every cause is
    declared."""
    environment = subject.make()
    ended = environment.compute_termination()
    for name, rows in (
        ended if isinstance(ended, dict) else {"compute_termination's result": ended}
    ).items():
        _check_tensor(name, rows, (ROWS,), torch.bool)
    transition = environment.advance(actions_for(environment, 1, seed=0)[0])
    for name, rows in {
        "terminated": transition.terminated,
        "truncated": transition.truncated,
    }.items():
        _check_tensor(name, rows, (ROWS,), torch.bool)
    undeclared = set(transition.causes) - set(environment.termination_causes)
    if undeclared:
        raise undeclared_cause(type(environment), transition.causes)


def time_limit(subject: Subject) -> None:
    """An episode of max_episode_length steps ends, as truncated unless something ended it in the
    same step."""
    environment = subject.make()
    environment.progress_buf.fill_(environment.max_episode_length - 1)
    transition = environment.advance(torch.zeros(ROWS, environment.num_actions))
    ended = transition.terminated ^ transition.truncated
    if not bool(ended.all()):
        raise Nonconforming(
            f"all {ROWS} rows terminated or truncated (not both) after"
            f" {environment.max_episode_length} steps",
            f"{int(ended.sum())} rows",
            "leave the time limit to the base class: compute_termination tells of what happened"
            " alone",
        )


def finite_values(subject: Subject) -> None:
    """Nothing turns NaN, infinite or huge under random actions."""
    count = max(RANDOM_STEPS, min(LONGEST, subject.loaded.environment_class.max_episode_length))
    for index, step in enumerate(subject.steps(count)):
        _check_finite(subject, step, f"in step {index} of random actions")


def extreme_actions(subject: Subject) -> None:
    """Nothing turns NaN, infinite or huge under the largest, the smallest, alternating and huge
    actions."""
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
            _check_finite(subject, step, f"in step {index} of actions {name}")


def value_ranges(subject: Subject) -> None:
    """No variable leaves its declared range by more than a tenth of it."""
    steps = subject.steps()
    variables = subject.loaded.environment_class.all_variables()
    if any(
        bool((step.values[each.name].abs() > _most(each)).any())
        for step in steps
        for each in variables
    ):
        return  # an explosion of the physics, which another check tells of, and no range is wrong
    for variable in variables:
        if variable.range is not None:
            low, high = variable.range
            slack = RANGE_TOLERANCE * (high - low)
            values = torch.stack([step.values[variable.name] for step in steps])
            if float(values.min()) < low - slack or float(values.max()) > high + slack:
                raise Nonconforming(
                    f"{variable.name} within its range {variable.range!r}",
                    f"{float(values.min()):.4g} to {float(values.max()):.4g} under random actions",
                    "correct the Variable's range, or leave it out",
                )


# ── resets and randomness ─────────────────────────────────────────────────────────────────────────


def reset_state(subject: Subject) -> None:
    """A reset row has progress 0, actions 0, is not terminated; rows that were not asked for stay
    as they are."""
    environment = subject.make()
    for actions in actions_for(environment, 5, seed=0):
        environment.advance(actions)
        environment.reset_done()
    before = copied_variables(environment)
    progress = environment.progress_buf.clone()
    asked = torch.tensor([1, ROWS - 2])
    environment.reset_rows(asked)
    after = environment.read_variables()
    for name, value in (
        ("progress_buf", environment.progress_buf),
        ("actions", after["actions"]),
        ("terminated", after["terminated"]),
        *([(SUCCEEDED, after[SUCCEEDED])] if environment.success_causes else []),
    ):
        if bool((value[asked] != 0).any()):
            raise Nonconforming(
                f"{name} 0 in a row just reset",
                f"{value[asked].tolist()!r}",
                "call the base class's reset_rows",
            )
    others = [row for row in range(ROWS) if row not in asked.tolist()]
    changed = [
        name
        for name, value in before.items()
        if not torch.equal(after[name][others], value[others])
    ]
    if not torch.equal(environment.progress_buf[others], progress[others]):
        changed.append("progress_buf")
    if changed:
        raise Nonconforming(
            f"reset_idx({asked.tolist()!r}) changes these rows alone",
            f"it changed {', '.join(changed)} of other rows",
            "write reset_idx with env_ids as index: `self.state[env_ids] = …`",
        )


def same_seed(subject: Subject) -> None:
    """Equal seeds give equal trajectories."""
    first, second = subject.steps(COMPARED_STEPS), subject.steps(COMPARED_STEPS)
    for index, (one, other) in enumerate(zip(first, second, strict=True)):
        different = [
            name for name, value in one.values.items() if not torch.equal(value, other.values[name])
        ]
        if different or not torch.equal(one.observations, other.observations):
            raise Nonconforming(
                "two runs with seed 0 give the same values",
                f"{', '.join(different) or 'the observations'} differ in step {index}",
                f"draw random numbers from {subject.loaded.environment_class.random_numbers}",
            )


# ── fitness and baselines ─────────────────────────────────────────────────────────────────────────


def fitness(subject: Subject) -> None:
    """The fitness takes known variables and constants and gives one finite number per row."""
    function = subject.fitness()
    for step in subject.sound_steps():
        _check_tensor("fitness", function(step.values), (ROWS,), None)
    if subject.task.fitness_reduction != "sum" and (value := constant_fitness(subject)) is not None:
        raise Nonconforming(
            "a fitness that depends on the state",
            f"{value:.4g} in every step, and whatever its arguments are; with fitness_reduction"
            f" {subject.task.fitness_reduction!r} every episode has it",
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
    """The fitness where it is the same for recorded values and for made-up ones, small and large;
    None where it is not."""
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
    """Load and call it as a training does."""
    source = subject.loaded.reward_source(subject.task, kind)
    if source is None:
        return None
    found = subject.loaded.environment_class
    try:
        reward = load_reward(
            baseline(source),
            found.all_variables(),
            constants=found.constants,
            quaternion_order=found.quaternion_order,
        )
        for step in subject.sound_steps():
            total, components = reward(step.values)
            for name, value in {"total": total, **components}.items():
                _check_tensor(f"{kind} reward's {name}", value, (ROWS,), None)
    except (RewardLoadError, RewardContractError) as error:
        file = Path(getattr(subject.task, f"{kind}_reward")).name
        raise Nonconforming(
            f"the {kind} reward loads and runs",
            f"{file}, {error.message}",
            error.hint or "correct this line",
        ) from None
    return reward


# ── helpers ───────────────────────────────────────────────────────────────────────────────────────


def _check_variables(environment: VecTask, values: Mapping[str, Tensor]) -> None:
    declared = {variable.name: variable for variable in environment.all_variables()}
    if set(values) != set(declared):
        missing, extra = sorted(set(declared) - set(values)), sorted(set(values) - set(declared))
        raise Nonconforming(
            f"the {len(declared)} declared variables",
            "; ".join(
                part
                for part in (
                    f"missing: {missing!r}" * bool(missing),
                    f"not declared: {extra!r}" * bool(extra),
                )
                if part
            ),
            "compute_variables returns exactly the names in the class's `variables`",
        )
    for name, value in values.items():
        _check_tensor(
            f"variable {name}", value, (environment.num_envs, *declared[name].shape), torch.float32
        )


def _check_tensor(name: str, value: Any, shape: Sequence[int], dtype: torch.dtype | None) -> None:
    if not isinstance(value, Tensor):
        raise Nonconforming(
            f"{name} is a tensor", f"{type(value).__name__}", "return torch tensors"
        )
    if tuple(value.shape) != tuple(shape):
        raise Nonconforming(
            f"{name} of shape {tuple(shape)!r}",
            f"{tuple(value.shape)!r}",
            "the batch is the first dimension",
        )
    if dtype is not None and value.dtype != dtype:
        raise Nonconforming(
            f"{name} of type {dtype}", f"{value.dtype}", f"convert it with .to({dtype})"
        )
    if not bool(torch.isfinite(value).all()):
        rows = int((~torch.isfinite(value)).reshape(len(value), -1).any(dim=1).sum())
        raise Nonconforming(
            f"{name} finite in every row",
            f"{name} is {_first_odd(value)} in {rows} of {len(value)} rows",
            "guard divisions, roots and logarithms",
        )


def _check_finite(subject: Subject, step: RecordedStep, when: str) -> None:
    """With the step's own variables alone: what a `previous_` one is was looked at one step
    before."""
    values = {
        name: value for name, value in step.values.items() if not name.startswith(PREVIOUS_PREFIX)
    }
    declared = {
        variable.name: variable for variable in subject.loaded.environment_class.all_variables()
    }
    for name, value in {**values, OBSERVATIONS: step.observations}.items():
        most = _most(declared[name]) if name in declared else LARGEST_STATE
        odd = ~(value.abs() < most)
        if bool(odd.any()):
            first = odd.nonzero()[0].tolist()
            column = f", column {first[1]}," if len(first) > 1 else ""
            place = place_of_value(
                subject.loaded.environment_class, name, first[1] if len(first) > 1 else 0
            )
            worst = float(value[tuple(first)])
            if math.isfinite(worst):
                raise Nonconforming(
                    f"{name} below {most:.4g}",
                    f"{place}{name}{column} is {worst:.4g} {when} (row {first[0]}): the physics"
                    " explodes",
                    "a smaller time step, smaller forces or gears, and more damping keep it stable;"
                    " see what grows from step to step",
                )
            raise Nonconforming(
                f"{name} finite",
                f"{place}{name}{column} is {_first_odd(value)} {when} (row {first[0]})",
                "guard divisions, and limit velocities in the physics",
            )


def _most(variable: Variable) -> float:
    """Size from which on a variable's value is no longer physical."""
    reach = (
        max((abs(end) for end in variable.range), default=0.0)
        if variable.range is not None
        else 0.0
    )
    return min(LARGEST_STATE, BEYOND_RANGE * reach) if reach else LARGEST_STATE


def _first_odd(value: Tensor) -> float:
    return float(value[~torch.isfinite(value)].flatten()[0])
