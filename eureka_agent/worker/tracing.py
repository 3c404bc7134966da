"""The source line where a reward goes wrong: where a value is first not finite, or rows mix."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from eureka_agent import syntax
from eureka_agent.training.reward import RewardContractError, RewardFunction

_REWARD_FILE_PREFIX = "<reward "
_MOST_STEPS = 2000
"""Most lines of one call that are compared: a loop over rows has many."""
_REDUCTIONS = (
    "all amax amin any argmax argmin argsort cummax cummin cumprod cumsum layer_norm logsumexp max"
    " mean median min nanmean nansum norm normalize prod quantile softmax sort std sum topk unique"
    " var vector_norm"
)
_OVER_ROWS = frozenset(_REDUCTIONS.split())
"""Functions and methods that reduce the whole tensor where no dimension is given."""

Visit = Callable[[FrameType, int, Any], bool]
"""Called with a frame, the line just run and, at the end, its return value. True ends the watch."""


def _watch(reward: RewardFunction, values: Mapping[str, Tensor], visit: Visit) -> None:
    """Call a reward and visit its frames after every line."""
    last_line: dict[int, int] = {}
    done = False

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal done
        if (
            done
            or not frame.f_code.co_filename.startswith(_REWARD_FILE_PREFIX)
            or frame.f_code.co_name == "<module>"
        ):
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
        return (
            isinstance(value, Tensor)
            and value.is_floating_point()
            and not bool(value.isfinite().all())
        )

    def visit(frame: FrameType, line: int, returned: Any) -> bool:
        if broken([*frame.f_locals.values(), returned]):
            found.append(line)
        return bool(found)

    _watch(reward, values, visit)
    return found[0] if found else None


class _Steps:
    """Local tensors of a call after each line."""

    def __init__(self) -> None:
        self.lines: list[int] = []
        self.values: list[dict[str, Any]] = []
        self.names: dict[str, Any] = {}
        """Names of the reward's top level."""

    def visit(self, frame: FrameType, line: int, returned: Any) -> bool:
        self.lines.append(line)
        self.values.append(
            {
                name: value.clone() if isinstance(value, Tensor) else value
                for name, value in frame.f_locals.items()
            }
        )
        self.names = frame.f_globals
        return len(self.lines) >= _MOST_STEPS


def mixing_of_rows(
    reward: RewardFunction, source: str, values: Mapping[str, Tensor], rows: Tensor
) -> tuple[int | None, str, str]:
    """Line, code and repair of the call that makes a row's values depend on others; None, "" and a
    general repair if none is found. `rows`: int64, with values that differ in a batch alone."""
    general = (
        "use a fixed number in place of what is calculated over all rows: the first dimension is"
        " the batch"
    )
    whole, alone = _Steps(), _Steps()
    _watch(reward, values, whole.visit)
    _watch(reward, {name: value[rows] for name, value in values.items()}, alone.visit)
    batch = len(next(iter(values.values())))
    for step, (line, after, other) in enumerate(
        zip(whole.lines, whole.values, alone.values, strict=False)
    ):
        if any(
            name in other and _differ(value, other[name], batch, rows)
            for name, value in after.items()
        ):
            before = whole.values[step - 1] if step else {}
            code, hint = _reduction(source, line, {**whole.names, **before})
            return line, code, hint or general
    return None, "", general


def _differ(whole: object, alone: object, batch: int, rows: Tensor) -> bool:
    if not (isinstance(whole, Tensor) and isinstance(alone, Tensor)):
        return False
    taken = whole[rows] if whole.dim() and len(whole) == batch else whole
    if taken.shape != alone.shape:
        return False
    return not torch.allclose(taken.double(), alone.double(), rtol=1e-3, atol=1e-5, equal_nan=True)


def _reduction(source: str, line: int, names: dict[str, Any]) -> tuple[str, str]:
    """The call in a line that reduces all rows together, and its repair."""
    for node in ast.walk(syntax.parsed(source)):
        if not (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in _OVER_ROWS
        ):
            continue
        if not node.lineno <= line <= (node.end_lineno or node.lineno):
            continue
        is_method = not ast.unparse(node.func.value).startswith(("torch", "F"))
        argument = node.func.value if is_method else next(iter(node.args), None)
        if argument is None:
            continue
        code = ast.unparse(node)
        try:  # the names are those of the reward, in its own process
            taken, result = (
                eval(compile(ast.Expression(part), "<reduction>", "eval"), names)
                for part in (argument, node)
            )
        except Exception:  # noqa: BLE001  (generated code can raise anything; there is no repair to name then)
            return code, ""
        if not isinstance(taken, Tensor):
            continue
        if taken.dim() > 1 and not any(keyword.arg == "dim" for keyword in node.keywords):
            separator = ", " if node.args or node.keywords else ""
            return code, f"reduce each row by itself: `{code[:-1]}{separator}dim=-1)`"
        if isinstance(result, Tensor) and result.dim() == 0:
            value = f"{result.item():.3g}"
            return code, f"put a fixed number in its place: it is {value} on these states"
        return code, ""
    return "", ""
