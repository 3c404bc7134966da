"""Checks of `eureka envs --check` on single rows: independent of neighbours, restorable, moved by
each of their actions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from eureka_agent.conformance.checks import (
    COMPARED_STEPS,
    RANDOM_STEPS,
    ROWS,
    Nonconforming,
    NotApplicable,
    Remark,
    Subject,
)
from eureka_agent.simulation.rollouts import RecordedStep, actions_for, run
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import PREVIOUS_PREFIX, WINDOW_SUFFIX
from eureka_agent.training.environment_faults import OBSERVATIONS

ROW_TOLERANCE = 1e-4
_STEPS_BEFORE = 20
_MOST_MOVED = 64
"""Actions that are tried one by one."""
_SHOWN = 8


def row_independence(subject: Subject) -> None:
    """A row alone and the same row among others have the same trajectory."""
    row, seed = 5, torch.tensor([123])
    many, alone = subject.make(ROWS, seed=0), subject.make(1, seed=1)
    many.seed_rows(torch.tensor([row]), seed)
    alone.seed_rows(torch.tensor([0]), seed)
    many.reset()
    alone.reset()
    actions = actions_for(many, COMPARED_STEPS, seed=3)
    pairs = zip(run(many, actions), run(alone, actions[:, row : row + 1]), strict=True)
    for index, (among, single) in enumerate(pairs):
        difference = first_difference(among, row, single, 0)
        if difference:
            raise Nonconforming(
                f"{difference.name} of a row is the same alone and among {ROWS} rows",
                difference.named(many).at(f"in step {index}").text(f"among {ROWS}", "alone"),
                f"let no operation mix rows, and draw random numbers from {many.random_numbers}",
            )


def moving_actions(subject: Subject) -> list[Remark]:
    """A change of any one action changes a variable, an observation or an end."""
    size = min(subject.loaded.environment_class.num_actions, _MOST_MOVED)
    rows = size * -(-ROWS // size)
    usual, other = subject.make(rows), subject.make(rows)
    column = torch.arange(rows) % size  # the one action in which a row differs from the usual one
    actions = actions_for(usual, RANDOM_STEPS, seed=0)
    changed = actions.clone()
    drawn = actions_for(other, RANDOM_STEPS, seed=1)
    changed[:, range(rows), column] = drawn[:, range(rows), column]
    still = set(range(size))
    for one, two in zip(run(usual, actions), run(other, changed), strict=True):
        pairs = [(one.observations, two.observations), (one.terminated, two.terminated)]
        pairs += [
            (value, two.values[name])
            for name, value in one.values.items()
            if name.removeprefix(PREVIOUS_PREFIX).removesuffix(WINDOW_SUFFIX) != "actions"
        ]
        for pair in pairs:
            value, its = (each.reshape(rows, -1).cpu() for each in pair)
            differs = value != its
            for name in ("actions", f"{PREVIOUS_PREFIX}actions"):  # a number that shows the action
                shown, changed_to = (
                    step.values[name].reshape(rows, -1).cpu()[range(rows), column].unsqueeze(1)
                    for step in (one, two)
                )
                differs &= ~((value == shown) & (its == changed_to))
            still -= {*column[differs.any(dim=1)].tolist()}
        if not still:
            break
    for environment in (usual, other):
        environment.close()
    channels = type(usual).channels_of_action()
    names = [
        repr(f"{each.name}.{entry}" if entry else each.name) + (each.doc and f" ({each.doc})")
        for each in channels
        for entry in each.entries or ("",)
    ]
    told = [names[each] if names else f"in column {each}" for each in sorted(still)]
    if not told:
        return []
    which = ", ".join(told[:_SHOWN]) + (f" and {len(told) - _SHOWN} more" * (len(told) > _SHOWN))
    text = f"the actions {which} change" if told[1:] else f"the action {which} changes"
    return [
        Remark(
            "a change of any one action changes a variable, an observation or an end",
            f"{text} nothing in {RANDOM_STEPS} steps of random actions",
            "see that the step uses it, and that its joint can move; leave this where it counts in"
            " rare states alone",
        )
    ]


def restored_rows(subject: Subject) -> None:
    """Rows loaded into another instance by `load_row_state` continue as before."""
    first, second = subject.make(ROWS, seed=0), subject.make(ROWS, seed=1)
    if not first.restorable:
        raise NotApplicable
    wider = subject.make(ROWS + 1)
    for environment in (first, second):
        environment.tell_rows_from_constants(wider)
    for environment, seed in ((first, 4), (second, 5)):
        for _ in run(environment, actions_for(environment, _STEPS_BEFORE, seed)):
            pass
    taken, put = torch.tensor([1, 2, 3]), torch.tensor([4, 6, 7])
    second.load_row_state(put, first.row_state(taken))
    second.reset_rows(torch.tensor([0, 5]))
    for row, place in zip(taken.tolist(), put.tolist(), strict=True):
        changed = _first_column(OBSERVATIONS, first.obs_buf[row], second.obs_buf[place])
        if changed is not None:
            raise Nonconforming(
                "observations of a row stay as they are after load_row_state, when other rows are"
                " reset",
                changed.named(first).text("before", "after"),
                "add the tensors that hold the rest of the state to row_tensors, and let reset_idx"
                " change the rows of env_ids alone",
            )
    actions = actions_for(first, COMPARED_STEPS, seed=6)
    moved = actions.clone()
    moved[:, put] = actions[:, taken]
    for index, (one, other) in enumerate(zip(run(first, actions), run(second, moved), strict=True)):
        for row, place in zip(taken.tolist(), put.tolist(), strict=True):
            difference = first_difference(one, row, other, place)
            if difference:
                there = difference.named(first).at(f"{index + 1} steps later")
                raise Nonconforming(
                    f"{difference.name} of a row continues unchanged after row_state and"
                    " load_row_state",
                    there.text("where it was", "where it was loaded"),
                    "add the tensors that hold the rest of the state to row_tensors, or set"
                    " `restorable = False` in the class",
                )


@dataclass(frozen=True)
class Difference:
    """The first number that differs between two rows that should be equal."""

    name: str
    """A variable, or `OBSERVATIONS`."""
    column: int | None
    one: float
    other: float
    channel: str = ""
    when: str = ""

    def named(self, environment: VecTask) -> Difference:
        """Add the name of its observation channel, where the class declares one."""
        if self.name != OBSERVATIONS or self.column is None:
            return self
        names = [
            f"{channel.name}{f'[{index}]' if channel.size > 1 else ''}"
            for channel in environment.observation_channels
            for index in range(channel.size)
        ]
        return replace(self, channel=f" ({names[self.column]})" if self.column < len(names) else "")

    def at(self, when: str) -> Difference:
        """Add the moment in words."""
        return replace(self, when=f" {when}")

    def text(self, first: str, second: str) -> str:
        """Both values, each with its place in words."""
        column = "" if self.column is None else f", column {self.column}{self.channel},"
        what = f"{self.name}{column} is {self.one:.7g}"
        return f"{what} {first} and {self.other:.7g} {second}{self.when}"


def first_difference(
    one: RecordedStep, row: int, other: RecordedStep, place: int
) -> Difference | None:
    """The first number that differs between a row of each step; variables before observations."""
    pairs = [(name, value, other.values[name]) for name, value in one.values.items()]
    for name, mine, theirs in [*pairs, (OBSERVATIONS, one.observations, other.observations)]:
        found = _first_column(name, mine[row], theirs[place])
        if found is not None:
            return found
    return None


def _first_column(name: str, one: Tensor, other: Tensor) -> Difference | None:
    tolerance = ROW_TOLERANCE
    apart = ~torch.isclose(one.float(), other.float(), tolerance, tolerance, equal_nan=True)
    if not bool(apart.any()):
        return None
    column = int(apart.flatten().nonzero()[0])
    numbers = float(one.flatten()[column]), float(other.flatten()[column])
    return Difference(name, column if one.dim() else None, *numbers)
