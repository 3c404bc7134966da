"""The check of `eureka envs --check` that no state of an episode is left in the next."""

from __future__ import annotations

import torch
from torch import Tensor

from eureka_agent.conformance.checks import COMPARED_STEPS, ROWS, Nonconforming, Subject
from eureka_agent.conformance.rows import Difference, first_difference
from eureka_agent.simulation.rollouts import RecordedStep, actions_for, copied_variables, run
from eureka_agent.simulation.vec_task import VecTask

_STEPS_BEFORE = 40
_SHOWN = 6
_HINT = "write `self.{name}[env_ids] = …` in reset_idx"


def begun_anew(subject: Subject) -> None:
    """An episode is the same in a used instance as in a fresh one."""
    fresh, used = subject.make(ROWS, seed=0), subject.make(ROWS, seed=1)
    try:
        used.tell_rows_from_constants(subject.make(ROWS + 1))
        expected = _episode(fresh)
        first = subject.make(ROWS, seed=2)
        _begin(first)
        starts = _own_tensors(first)
        written = _written_by_steps(used)
        _begin(used)
        after = {name: value.clone() for name, value in _own_tensors(used).items()}
        difference = _difference(expected, _episode(used))
        if difference is not None:
            values = {
                name: (starts[name], after[name])
                for name in written
                if name in starts
                and not torch.equal(starts[name].nan_to_num(), after[name].nan_to_num())
            }
            raise _left_behind(list(values), difference, values)
        # other episodes may leave other values: spoil what steps write, all of it and one by one
        if _after_spoiling(used, written, expected) is None:
            return
        each = {name: _after_spoiling(used, [name], expected) for name in written}
        found = {name: difference for name, difference in each.items() if difference is not None}
        if found:
            raise _left_behind(list(found), next(iter(found.values())), {})
    finally:
        fresh.close()
        used.close()


def _left_behind(
    names: list[str], difference: Difference, values: dict[str, tuple[Tensor, Tensor]]
) -> Nonconforming:
    shown = ", ".join(f"self.{name}" for name in names[:_SHOWN])
    told = []
    for name in names[:_SHOWN]:
        if name in values:
            fresh, after = (
                value.flatten(1) if value.dim() > 1 else value.unsqueeze(1)
                for value in values[name]
            )
            row, column = (fresh != after).nonzero()[0].tolist()
            told.append(
                f"self.{name} starts at {after[row, column]:.6g}, in a fresh instance at"
                f" {fresh[row, column]:.6g}"
            )
    what = "; ".join(told) or (
        f"what an episode leaves in {shown} is there in the next" if names else ""
    )
    return Nonconforming(
        "an episode that does not depend on the one before",
        f"{what}{': ' if what else ''}{difference.text('fresh', 'after other episodes')}",
        " and ".join(_HINT.format(name=name) for name in names[:_SHOWN])
        or "let the reset set all of the state, also what lies outside of tensors",
    )


def _begin(environment: VecTask) -> None:
    """Start the same episodes in all rows of any instance."""
    environment.seed_rows(torch.arange(ROWS), 1000 + torch.arange(ROWS))
    environment.reset()


def _episode(environment: VecTask) -> list[RecordedStep]:
    """Start and steps of new episodes, the start recorded as a step."""
    _begin(environment)
    none = torch.zeros(ROWS, dtype=torch.bool)
    start = RecordedStep(environment.obs_buf.clone(), copied_variables(environment), none, none)
    return [start, *run(environment, actions_for(environment, COMPARED_STEPS, seed=11))]


def _difference(expected: list[RecordedStep], found: list[RecordedStep]) -> Difference | None:
    for index, (one, other) in enumerate(zip(expected, found, strict=True)):
        for row in range(ROWS):
            difference = first_difference(one, row, other, row)
            if difference is not None:
                return difference.at(
                    f"in step {index} of the episode" if index else "right after a reset"
                )
    return None


def _own_tensors(environment: VecTask) -> dict[str, Tensor]:
    """Attributes with a row for each environment."""
    rows = VecTask.row_tensors(environment)
    return {
        name: value
        for name, value in rows.items()
        if name != "obs_buf" and name in vars(environment) and not value.is_inference()
    }


def _written_by_steps(environment: VecTask) -> list[str]:
    """Names of attributes that steps write, changed or not; leaves the episodes unfinished."""
    before = {name: (value, value._version) for name, value in _own_tensors(environment).items()}
    for _ in run(environment, actions_for(environment, _STEPS_BEFORE, seed=12)):
        pass
    after = _own_tensors(environment)
    return [
        name
        for name, (value, version) in before.items()
        if name in after and (after[name] is not value or after[name]._version != version)
    ]


def _after_spoiling(
    environment: VecTask, names: list[str], expected: list[RecordedStep]
) -> Difference | None:
    """Difference of new episodes from the expected ones after these attributes were spoiled."""
    for name in names:
        value = _own_tensors(environment)[name]
        try:
            if value.is_floating_point():
                value.add_(1.0)
            elif value.dtype == torch.bool:
                value.logical_not_()
        except RuntimeError:  # not writable in place, such as an expanded tensor
            continue
    return _difference(expected, _episode(environment))
