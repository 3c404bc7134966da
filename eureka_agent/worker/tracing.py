"""The source line where a reward goes wrong: where a value is first not finite, or rows mix."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from eureka_agent.training.reward import RewardContractError, RewardFunction

_REWARD_FILE_PREFIX = "<reward "
_MOST_STEPS = 2000
"""Most lines of one call that are compared: a loop over rows has many."""

Visit = Callable[[FrameType, int, Any], bool]
"""Called with a frame, the line just run and, at the end, its return value. True ends the watch."""


def _watch(reward: RewardFunction, values: Mapping[str, Tensor], visit: Visit) -> None:
    """Call a reward and visit its frames after every line."""
    last_line: dict[int, int] = {}
    done = False

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal done
        code = frame.f_code
        is_own = code.co_filename.startswith(_REWARD_FILE_PREFIX) and code.co_name != "<module>"
        if done or not is_own:
            return None
        if event in ("line", "return"):
            returned = argument if event == "return" else None
            done = visit(frame, last_line.get(id(frame), frame.f_lineno), returned)
        last_line[id(frame)] = frame.f_lineno
        return trace

    sys.settrace(trace)
    try:
        reward(values)
    except RewardContractError:
        pass
    finally:
        sys.settrace(None)


def line_of_first_broken(reward: RewardFunction, values: Mapping[str, Tensor]) -> int | None:
    """The first line after which a local tensor, or the return value, is not finite."""
    found: list[int] = []

    def broken(value: object) -> bool:
        if isinstance(value, (tuple, list)):
            return any(broken(item) for item in value)
        if not isinstance(value, Tensor) or not value.is_floating_point():
            return False
        return not bool(value.isfinite().all())

    def visit(frame: FrameType, line: int, returned: Any) -> bool:
        if broken([*frame.f_locals.values(), returned]):
            found.append(line)
        return bool(found)

    _watch(reward, values, visit)
    return found[0] if found else None


def line_that_mixes(
    reward: RewardFunction, values: Mapping[str, Tensor], rows: Tensor
) -> int | None:
    """The first line after which a local tensor of a batch of `rows` (int64) is not that of all
    rows at once; None if there is none."""

    def steps(values: Mapping[str, Tensor]) -> list[tuple[int, dict[str, Tensor]]]:
        """Lines, and copies of the local tensors after each."""
        found: list[tuple[int, dict[str, Tensor]]] = []

        def visit(frame: FrameType, line: int, returned: Any) -> bool:
            names = frame.f_locals.items()
            copies = {name: each.clone() for name, each in names if isinstance(each, Tensor)}
            found.append((line, copies))
            return len(found) >= _MOST_STEPS

        _watch(reward, values, visit)
        return found

    batch = len(next(iter(values.values())))
    alone = steps({name: value[rows] for name, value in values.items()})
    for (line, after), (_, other) in zip(steps(values), alone, strict=False):
        if any(_differ(after[name], other[name], batch, rows) for name in after.keys() & other):
            return line
    return None


def _differ(whole: Tensor, alone: Tensor, batch: int, rows: Tensor) -> bool:
    taken = whole[rows] if whole.dim() and len(whole) == batch else whole
    if taken.shape != alone.shape:
        return False
    return not torch.allclose(taken.double(), alone.double(), rtol=1e-3, atol=1e-5, equal_nan=True)
