"""Findings of a dry run: their words, their repairs, and the sums of components."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, Literal

import torch
from torch import Tensor

from eureka_agent.records import Finding
from eureka_agent.training.environment_faults import is_out_of_memory
from eureka_agent.training.reward import RewardContractError, RewardFunction

TOLERANCE = 1e-3
"""Relative error of a reward's numbers that is rounding."""
_SAME_FACTOR = 0.9999
"""Correlation from which two factors are one."""
_MESSAGE_CHARACTERS = 600
_HINTS = {
    "D305": "keep divisors, logarithms and roots away from zero and below it: add an epsilon or"
    " clamp",
    "D306": "clamp the argument of exp, log, sqrt, acos and of divisions: one such step ends the"
    " training",
    "D307": "a reward is a pure function: use no random numbers and keep nothing from one call to"
    " the next",
    "D308": "reduce each row by itself, with `dim=-1`, or put a fixed number in place of what is"
    " calculated over all rows: the first dimension is the batch",
    "D309": "work on whole tensors in place of loops over rows",
    "D311": "make smaller tensors",
    "D313": "a reward that does not change teaches nothing: add a term that changes with every"
    " step",
    "D314": "check that it can act: what is paid in skilled motion alone is not seen there",
    "D315": "return every term of the total as a component, with its weight",
    "D316": "return each term under a name: the analyzer says which of them helps",
    "D317": "make a new tensor: `x = x * 2` in place of `x *= 2`, `.clone()` before writing to rows"
    " or columns",
    "D318": "leave one of them out, or return what sets them apart: what is learned from episodes"
    " cannot",
    "D320": "keep divisors, logarithms and roots away from zero and below it",
    "D321": "leave numbers out that say nothing, unless they change in skilled motion alone",
    "D322": "a policy that is not told where to go cannot go there: add it, or what it is relative"
    " to the robot",
}
"""Repairs of the findings that have one and the same."""
_LINE = re.compile(r"^line (\d+): ")
_ALLOCATION = re.compile(r"tried to allocate (\d+) bytes")


def contract_finding(error: RewardContractError, circumstance: str = "") -> Finding:
    """Finding of a contract error by its code; the error begins with the reward's line."""
    message = _LINE.sub("", error.message)
    line = int(found[1]) if (found := _LINE.match(error.message)) else None
    if error.code != "raised":
        code = "D304" if "shape" in message or "of type" in message else "D303"
        return finding(code, message + circumstance, error.hint, line)
    if is_out_of_memory(message):
        asked = _ALLOCATION.search(message)
        what = f"allocating {int(asked.group(1)) / 1e9:.3g} GB at once" if asked else message
        return finding("D311", f"runs out of memory{circumstance}: {what}", line=line)
    return finding("D302", f"raises {message}{circumstance}", error.hint, line)


def finding(
    code: str,
    message: str,
    hint: str = "",
    line: int | None = None,
    severity: Literal["error", "warning"] = "error",
) -> Finding:
    if line is None and (match := _LINE.match(message)):
        line, message = int(match.group(1)), message[match.end() :]
    hint, message = hint or _HINTS.get(code, ""), message[:_MESSAGE_CHARACTERS]
    return Finding(code=code, severity=severity, message=message, line=line, hint=hint)


def sum_findings(total: Tensor, components: Mapping[str, Tensor]) -> list[Finding]:
    """A warning of components that are none, or that leave out a term of the total or weights."""
    if not components:
        message = "the dictionary of components is empty"
        return [finding("D316", message, severity="warning")]
    terms = torch.stack(list(components.values())).double()
    tolerance = TOLERANCE * (1.0 + total.abs().max().item())
    apart = (terms.sum(dim=0) - total).abs()
    if apart.max().item() <= tolerance:
        return []
    # products and gates need not add up to the total; weights that were left out do
    weights = torch.linalg.lstsq(terms.T, total.double().unsqueeze(1)).solution.squeeze(1)
    message, hint = "the components do not add up to the total", ""
    if bool(((weights @ terms - total).abs() <= tolerance).all()):
        pairs = zip(components, weights.tolist(), strict=True)
        message += f", which is {', '.join(f'{name!r} × {each:.3g}' for name, each in pairs)}"
        hint = "return the terms with their weights, as they enter the total"
    elif _is_made_of(total.double(), terms, tolerance):
        return []
    else:
        row = int((total - terms.sum(dim=0)).abs().argmax())
        has, sums = total[row].item(), terms[:, row].sum().item()
        message += f": a recorded state has {has:.4g}, and its components {sums:.4g} together"
    return [finding("D315", message, hint, severity="warning")]


def factor_findings(factors: Mapping[str, Tensor]) -> list[Finding]:
    """Faults of a learned reward's factors: there are none, or two of them are one."""
    if not factors:
        return [finding("D316", "the dictionary of components is empty: they are the factors")]
    names, table = list(factors), torch.stack(list(factors.values())).double()
    centred = table - table.mean(dim=1, keepdim=True)
    lengths = centred.norm(dim=1)
    alike = (centred @ centred.T).abs() >= _SAME_FACTOR * lengths.outer(lengths)
    alike &= (lengths.outer(lengths) > 0.0).triu(1)
    return [
        finding(
            "D318",
            f"components {names[one]!r} and {names[other]!r} are the same but for a factor and an"
            f" offset on all {table.shape[1]} recorded states",
            severity="warning",
        )
        for one, other in alike.nonzero().tolist()[:1]
    ]


def _is_made_of(total: Tensor, terms: Tensor, tolerance: float) -> bool:
    """Tell whether weighted components and products of them give the total."""
    pairs = [terms[one] * terms[two] for one in range(len(terms)) for two in range(one)]
    features = torch.stack([*terms, *pairs, terms.prod(dim=0)])
    if 2 * len(features) > len(total):  # as many weights as rows fit anything
        return True
    # scaled to one size, so that small ones are not lost
    features = features / features.abs().amax(dim=1, keepdim=True).clamp(min=1e-12)
    weights = torch.linalg.lstsq(features.T, total.unsqueeze(1), driver="gelsd").solution.squeeze(1)
    return bool(((weights @ features - total).abs() <= tolerance).all())


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
    """The first line after which a batch of `rows` (int64) differs from all rows at once."""

    def steps(values: Mapping[str, Tensor]) -> list[tuple[int, dict[str, Tensor]]]:
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
