"""The checks of `eureka envs --check` on single rows: independent of their neighbours, and taken up again where they were."""

from __future__ import annotations

import torch

from eureka_agent.simulation.conformance_checks import COMPARED_STEPS, ROWS, Nonconforming, NotApplicable, Subject
from eureka_agent.simulation.rollouts import RecordedStep, random_actions, run

ROW_TOLERANCE = 1e-4
_STEPS_BEFORE = 20


def row_independence(subject: Subject) -> None:
    """A row alone and the same row among others have the same trajectory."""
    row, seed = 5, torch.tensor([123])
    many, alone = subject.make(ROWS, seed=0), subject.make(1, seed=1)
    many.seed_rows(torch.tensor([row]), seed)
    alone.seed_rows(torch.tensor([0]), seed)
    many.reset()
    alone.reset()
    actions = random_actions(ROWS, many.num_actions, COMPARED_STEPS, seed=3)
    pairs = zip(run(many, actions), run(alone, actions[:, row : row + 1]), strict=True)
    for index, (among, single) in enumerate(pairs):
        difference = _first_difference(among, row, single, 0)
        if difference:
            name, values = difference
            raise Nonconforming(
                f"{name} of a row is the same alone and among {ROWS} rows",
                f"{values} in step {index}",
                f"let no operation mix rows, and draw random numbers from {many.random_numbers}",
            )


def restored_rows(subject: Subject) -> None:
    """Rows put into another instance with `load_row_state` go on there as they would have, also where other rows are reset beside them."""
    first, second = subject.make(ROWS, seed=0), subject.make(ROWS, seed=1)
    if not first.restorable:
        raise NotApplicable
    wider = subject.make(ROWS + 1)
    for environment in (first, second):
        environment.tell_rows_from_constants(wider)
    for environment, seed in ((first, 4), (second, 5)):
        for _ in run(environment, random_actions(ROWS, environment.num_actions, _STEPS_BEFORE, seed)):
            pass
    taken, put = torch.tensor([1, 2, 3]), torch.tensor([4, 6, 7])
    second.load_row_state(put, first.row_state(taken))
    second.reset_rows(torch.tensor([0, 5]))
    for row, place in zip(taken.tolist(), put.tolist(), strict=True):
        seen, now = first.obs_buf[row], second.obs_buf[place]
        if not torch.allclose(seen, now, rtol=ROW_TOLERANCE, atol=ROW_TOLERANCE):
            raise Nonconforming(
                "observations of a row stay as they are after load_row_state, when other rows are reset",
                f"{seen.tolist()!r} against {now.tolist()!r}",
                "add the tensors that hold the rest of the state to row_tensors, and let reset_idx change the rows of env_ids alone",
            )
    actions = random_actions(ROWS, first.num_actions, COMPARED_STEPS, seed=6)
    moved = actions.clone()
    moved[:, put] = actions[:, taken]
    for index, (one, other) in enumerate(zip(run(first, actions), run(second, moved), strict=True)):
        for row, place in zip(taken.tolist(), put.tolist(), strict=True):
            difference = _first_difference(one, row, other, place)
            if difference:
                name, values = difference
                raise Nonconforming(
                    f"{name} of a row goes on as it was after row_state and load_row_state",
                    f"{values} {index + 1} steps later",
                    "add the tensors that hold the rest of the state to row_tensors, or set `restorable = False` in the class",
                )


def _first_difference(one: RecordedStep, row: int, other: RecordedStep, place: int) -> tuple[str, str] | None:
    """Name and values of what differs between a row of one step and a row of another."""
    pairs = [("observations", one.observations, other.observations)]
    pairs += [(name, value, other.values[name]) for name, value in one.values.items()]
    for name, mine, theirs in pairs:
        if not torch.allclose(mine[row], theirs[place], rtol=ROW_TOLERANCE, atol=ROW_TOLERANCE):
            return name, f"{mine[row].tolist()!r} against {theirs[place].tolist()!r}"
    return None
