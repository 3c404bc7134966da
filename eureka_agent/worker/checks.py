"""Checks of a dry run. A check may hang, crash or exhaust memory, so they run in a fork."""

from __future__ import annotations

import contextlib
import math
import re
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor

from eureka_agent.errors import RewardLoadError
from eureka_agent.records import Finding
from eureka_agent.rewards import RewardSpecification
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.training.memory import is_out_of_memory
from eureka_agent.training.reward import LARGEST_REWARD, RewardContractError, RewardFunction
from eureka_agent.training.reward_loading import load_reward
from eureka_agent.worker.extremes import ExtremeStates, drawn_states, extreme_states
from eureka_agent.worker.tracing import line_of_first_broken, mixing_of_rows

TIMED_ROWS = 512
"""Rows of the timed call: one PPO iteration of 16 environments and 32 steps."""
SLOW_SECONDS = 0.1
NOTICEABLE_SECONDS = 0.01
_TIMED_CALLS = 5
_TIMING_SECONDS = 0.5
_LARGE_BATCH = 4096
_LARGE_NUMBERS = 1 << 22
"""Most numbers of a large batch, whose rows may hold pictures."""
_ODD_BATCH = 257
_SINGLE_ROWS = 6
_MIXED_ROWS = 4
_MOST_MIXED = 320
_TOLERANCE = 1e-3
_MESSAGE_CHARACTERS = 600
Severity = Literal["error", "warning"]

_LINE = re.compile(r"^line (\d+): ")
_ALLOCATION = re.compile(r"tried to allocate (\d+) bytes")


def check_reward(
    specification: RewardSpecification,
    recorded: Mapping[str, Tensor],
    environment_class: type[VecTask],
) -> list[Finding]:
    """Run all checks on a reward. `recorded`: shape (transitions, *variable.shape)."""
    variables = environment_class.all_variables()
    try:
        reward = load_reward(
            specification,
            variables,
            constants=environment_class.constants,
            quaternion_order=environment_class.quaternion_order,
        )
    except RewardLoadError as error:
        return [_finding("D301", error.message, error.hint)]
    try:
        total, components = reward(recorded)
    except RewardContractError as error:
        return [_with_shapes(_contract_finding(error), reward, recorded)]
    findings = _check_time(reward, recorded)
    if findings and findings[0].severity == "error":
        return findings  # the other checks call it even more often
    is_slow = bool(findings)
    findings += _check_finite(reward, recorded, total, components)
    named = {variable.name: variable for variable in variables}
    extremes = extreme_states(recorded, reward.arguments, named)
    rare = extremes.joined(drawn_states(recorded, reward.arguments, named))
    values = {name: torch.cat([recorded[name], rare.values[name]]) for name in reward.arguments}
    try:
        table = _table(*reward(values))
    except RewardContractError as error:
        found = _contract_finding(error, " (with rare states among others)")
        return [*findings, *_check_sum(total, components), found]
    order = torch.randperm(table.shape[1], generator=torch.Generator().manual_seed(0))
    width = sum(value[0].numel() for value in values.values())
    size = 1 if is_slow else min(_LARGE_BATCH, _LARGE_NUMBERS // width)
    large = order.repeat(size // len(order) + 1)
    batches = [*_batches_of_extremes(extremes.labels, len(total)), large]
    if not is_slow:
        batches += _batches_of_drawn(len(total) + len(extremes.labels), order)
    findings += (
        _check_repeatable(reward, {name: value[large] for name, value in values.items()})
        or _check_rows_alone(reward, specification.source, recorded, total)
        or _check_rare_rows(reward, specification.source, values, table, rare.beyond, batches)
    )
    if any(finding.severity == "error" for finding in findings):
        return findings
    reached, *parts = table[:, len(total) :]
    named_parts = dict(zip(components, parts, strict=True))
    findings += _check_variation(total, components, reached, named_parts)
    findings += _check_sum(total, components)
    return findings + _check_extremes(reward, rare, reached, named_parts)


def _check_finite(
    reward: RewardFunction,
    recorded: Mapping[str, Tensor],
    total: Tensor,
    components: Mapping[str, Tensor],
) -> list[Finding]:
    broken = _broken_rows(total, components)
    if not broken.any():
        return []
    row = int(broken.nonzero()[0])
    values = {name: recorded[name][row : row + 1] for name in reward.arguments}
    what, hint = _broken_value(total, components, row)
    message = f"{what} on {int(broken.sum())} of {len(total)} recorded states"
    hint = hint or (
        "keep divisors, logarithms and roots away from zero and below it: add an epsilon or clamp"
    )
    return [_finding("D305", message, hint, line_of_first_broken(reward, values))]


def _check_extremes(
    reward: RewardFunction, extremes: ExtremeStates, total: Tensor, components: Mapping[str, Tensor]
) -> list[Finding]:
    broken = _broken_rows(total, components)
    for beyond in (False, True):
        rows = [
            row for row in broken.nonzero().squeeze(-1).tolist() if extremes.beyond[row] is beyond
        ]
        if rows:
            severity: Severity = "warning" if beyond else "error"
            return [_extreme_finding(reward, extremes, total, components, rows, severity)]
    return []


def _extreme_finding(
    reward: RewardFunction,
    extremes: ExtremeStates,
    total: Tensor,
    components: Mapping[str, Tensor],
    rows: Sequence[int],
    severity: Severity,
) -> Finding:
    """Report the first of these rows, which are not finite."""
    others = len({extremes.labels[row] for row in rows}) - 1
    also = f" (and in {others} more such states)" if others else ""
    what, hint = _broken_value(total, components, rows[0])
    hint = hint or (
        "clamp the argument of exp, log, sqrt, acos and of divisions: one such step ends the"
        " training"
    )
    line = line_of_first_broken(
        reward, {name: value[rows[0] : rows[0] + 1] for name, value in extremes.values.items()}
    )
    message = f"{what} when {extremes.labels[rows[0]]}{also}"
    return _finding("D306", message, hint, line, severity)


def _check_repeatable(reward: RewardFunction, values: Mapping[str, Tensor]) -> list[Finding]:
    """Call it twice, with other contents of fresh memory, and on two halves in either order with
    one top level, to find kept state and leftovers. Compare to the bit."""
    half = len(values[reward.arguments[0]]) // 2
    first, second, timed = (
        {name: value[rows] for name, value in values.items()}
        for rows in (slice(half), slice(half, None), slice(TIMED_ROWS))
    )
    one, two = reward.remembering(), reward.remembering()
    try:
        result, again = _table(*reward(values)), _table(*reward(values))
        with _memory_filled():
            filled = _table(*reward(values))
        written = reward.arguments_written(values) or reward.arguments_written(timed)
        forward = [_table(*one(first)), _table(*one(second))]
        backward = [_table(*two(second)), _table(*two(first))]
    except RewardContractError as error:
        return [_contract_finding(error, " (on the second call)")]
    if written:
        hint = (
            "make a new tensor: `x = x * 2` in place of `x *= 2`, `.clone()` before writing to rows"
            " or columns"
        )
        return [_finding("D317", f"the argument {written[0]!r} is changed in place", hint)]
    for found, expected, what in (
        (again, result, "two calls on the same states"),
        (filled, result, "calls with other leftovers in fresh memory"),
        (torch.cat(forward, 1), torch.cat(backward[::-1], 1), "calls in another order"),
    ):
        if not _same_bits(found, expected):
            largest = (found - expected).abs().nan_to_num().max().item()
            by = f" by up to {largest:.3g}" if largest else ""
            hint = (
                "a reward is a pure function: use no random numbers and keep nothing from one call"
                " to the next"
            )
            return [_finding("D307", f"{what} differ{by}", hint)]
    return []


def _table(total: Tensor, components: Mapping[str, Tensor]) -> Tensor:
    """Shape: (1 + components, rows)."""
    return torch.stack([total, *components.values()])


def _same_bits(one: Tensor, other: Tensor) -> bool:
    numbers = (each.nan_to_num().view(torch.int32) for each in (one, other))
    return torch.equal(one.isnan(), other.isnan()) and torch.equal(*numbers)


@contextlib.contextmanager
def _memory_filled() -> Iterator[None]:
    """Fill memory that torch would leave as it was with NaN."""
    torch.set_deterministic_debug_mode("warn")
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode("default")


def _check_rows_alone(
    reward: RewardFunction, source: str, recorded: Mapping[str, Tensor], total: Tensor
) -> list[Finding]:
    count = len(total)
    odd = torch.arange(_ODD_BATCH) % count
    batches = [
        torch.tensor([row]) for row in torch.linspace(0, count - 1, _SINGLE_ROWS).long().tolist()
    ]
    tolerances = _TOLERANCE * (1.0 + total.abs().nan_to_num())
    for rows in (odd, torch.arange(TIMED_ROWS) % count, *batches):
        found = _check_batch(reward, source, recorded, rows, total, tolerances)
        if found:
            return found
    return []


def _check_rare_rows(
    reward: RewardFunction,
    source: str,
    values: Mapping[str, Tensor],
    table: Tensor,
    beyond: Sequence[bool],
    batches: Sequence[Tensor],
) -> list[Finding]:
    """Batches with rare states: a branch may mix rows only where some are. `table`: results on all
    rows, the last of which are rare; `beyond`: of these."""
    # terms that cancel are no more exact than the largest of them
    tolerances = _TOLERANCE * (1.0 + table.abs().nan_to_num().amax(dim=0))
    tolerances[-len(beyond) :][torch.tensor(beyond)] = torch.inf
    for rows in batches:
        found = _check_batch(
            reward, source, values, rows, table[0], tolerances, ", some of them rare"
        )
        if found:
            return found
    return []


def _batches_of_extremes(labels: Sequence[str], usual: int) -> Iterator[Tensor]:
    """Some rows of each extreme after a usual one, and one before. `usual`: rows before them."""
    for label in dict.fromkeys(labels):
        rows = [usual + row for row, each in enumerate(labels) if each == label]
        yield torch.tensor([rows[0], 0, usual // 2, usual - 1])
        yield torch.tensor([0, *rows])


def _batches_of_drawn(first: int, order: Tensor) -> Iterator[Tensor]:
    """Drawn rows, from `first`, each before others; of very many some."""
    others = order.repeat(_MIXED_ROWS).split(_MIXED_ROWS - 1)
    count = len(order) - first
    for row in range(first, len(order), -(-count // _MOST_MIXED)):
        yield torch.cat([torch.tensor([row]), others[row]])


def _check_batch(
    reward: RewardFunction,
    source: str,
    values: Mapping[str, Tensor],
    rows: Tensor,
    total: Tensor,
    tolerances: Tensor,
    where: str = "",
) -> list[Finding]:
    """Compare a batch of these rows with the `total` of all rows at once. `tolerances`: by row."""
    size = len(rows)
    try:
        alone, _ = reward({name: values[name][rows] for name in reward.arguments})
    except RewardContractError as error:
        found = _contract_finding(error, f" (on a batch of {size})")
        if size == 1 and ".squeeze()" in source:
            hint = "name the dimension, `.squeeze(-1)`: without it a batch of one goes too"
            found = found.model_copy(update={"hint": hint})
        return [found]
    expected, tolerances = total[rows], tolerances[rows]
    difference = (alone - expected).abs().nan_to_num(nan=0.0)
    one_is_finite = (alone.isfinite() != expected.isfinite()) & tolerances.isfinite()
    apart = one_is_finite | (difference > tolerances)
    if not bool(apart.any()):
        return []
    row = int(apart.nonzero()[0])
    whole = {name: values[name] for name in reward.arguments}
    line, code, hint = mixing_of_rows(reward, source, whole, rows)
    by = f" by `{code}`" if code else ""
    message = (
        f"a step's reward depends on the other rows of the batch{by}: {expected[row].item():.4g}"
        f" among {len(total)}, {alone[row].item():.4g} among {size}{where}"
    )
    return [_finding("D308", message, hint, line)]


def _check_time(reward: RewardFunction, recorded: Mapping[str, Tensor]) -> list[Finding]:
    count = len(recorded[reward.arguments[0]])
    rows = torch.arange(TIMED_ROWS) % count
    values = {name: recorded[name][rows] for name in reward.arguments}
    seconds: list[float] = []
    while len(seconds) < _TIMED_CALLS and sum(seconds) < _TIMING_SECONDS:
        begin = time.perf_counter()
        try:
            reward(values)
        except RewardContractError as error:
            return [_contract_finding(error, f" (on a batch of {TIMED_ROWS})")]
        seconds.append(time.perf_counter() - begin)
    median = statistics.median(seconds)
    if median <= NOTICEABLE_SECONDS:
        return []
    message = (
        f"one call on {TIMED_ROWS} steps takes {median * 1e3:.0f} ms, expected below"
        f" {NOTICEABLE_SECONDS * 1e3:.0f} ms"
    )
    severity: Severity = "error" if median > SLOW_SECONDS else "warning"
    hint = "work on whole tensors in place of loops over rows"
    return [_finding("D309", message, hint, severity=severity)]


def _check_variation(
    total: Tensor,
    components: Mapping[str, Tensor],
    extreme_total: Tensor,
    extreme_components: Mapping[str, Tensor],
) -> list[Finding]:
    """Find a total constant on recorded states, and components constant on extreme states too."""
    findings = []
    if _is_constant(total):
        moves = not _is_constant(torch.cat([total, extreme_total]))
        message = f"the total is {_first(total):g} on all {len(total)} recorded states" + (
            " of random actions" if moves else " and on extreme ones"
        )
        hint = (
            "a reward that does not change teaches nothing: add a term that changes with every step"
        )
        findings.append(_finding("D313", message, hint, severity="warning" if moves else "error"))
    findings += [
        _finding(
            "D314",
            f"component {name!r} was {_first(value):g} on all {len(value)} recorded states, which"
            " are of random actions, and on extreme ones",
            "check that it can act: what is paid in skilled motion alone is not seen there",
            severity="warning",
        )
        for name, value in components.items()
        if name in extreme_components and _is_constant(torch.cat([value, extreme_components[name]]))
    ]
    return findings


def _check_sum(total: Tensor, components: Mapping[str, Tensor]) -> list[Finding]:
    if not components:
        hint = "return each term under a name: the analyzer says which of them helps"
        return [_finding("D316", "the dictionary of components is empty", hint, severity="warning")]
    terms = torch.stack(list(components.values())).double()
    tolerance = _TOLERANCE * (1.0 + total.abs().max().item())
    difference = (terms.sum(dim=0) - total).abs().max().item()
    if difference <= tolerance:
        return []
    # products and gates need not add up to the total; weights that were left out do
    weights = torch.linalg.lstsq(terms.T, total.double().unsqueeze(1)).solution.squeeze(1)
    if not bool(((weights @ terms - total).abs() <= tolerance).all()):
        if _is_made_of(total.double(), terms, tolerance):
            return []
        return [_missing_term(total, terms.sum(dim=0))]
    found = ", ".join(
        f"{name!r} × {weight:.3g}"
        for name, weight in zip(components, weights.tolist(), strict=True)
    )
    message = f"the components do not add up to the total, which is {found}"
    hint = "return the terms with their weights, as they enter the total"
    return [_finding("D315", message, hint, severity="warning")]


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


def _missing_term(total: Tensor, terms: Tensor) -> Finding:
    """Warn of a term in the total that is in no component."""
    apart = (total - terms).abs()
    row = int(apart.argmax())
    return _finding(
        "D315",
        f"the components do not add up to the total: a recorded state has {total[row].item():.4g},"
        f" and its components {terms[row].item():.4g} together",
        "return every term of the total as a component, with its weight",
        severity="warning",
    )


def _broken_rows(total: Tensor, components: Mapping[str, Tensor]) -> Tensor:
    """Rows in which the total or a component is not finite or too large. Shape: (rows,), bool."""
    return ~(_table(total, components).abs() < LARGEST_REWARD).all(dim=0)  # also where it is NaN


def _broken_value(total: Tensor, components: Mapping[str, Tensor], row: int) -> tuple[str, str]:
    """Words for the first value of a row that is broken, and the repair of one that is finite."""
    named = {f"component {name!r}": value for name, value in components.items()}
    named["the total"] = total
    what, number = next(
        (what, value[row].item())
        for what, value in named.items()
        if not value[row].abs() < LARGEST_REWARD
    )
    hint = (
        f"a reward of {LARGEST_REWARD:g} and more cannot be trained on, as sums of its squares"
        " overflow: weigh it less, clamp it, or take its logarithm"
    )
    return f"{what} is {number:.4g}", hint if math.isfinite(number) else ""


def _is_constant(value: Tensor) -> bool:
    return bool(((value - value[0]).abs() <= 1e-6 * (1.0 + value[0].abs())).all())


def _first(value: Tensor) -> float:
    return value[0].item() + 0.0  # no minus in front of a zero


def _contract_finding(error: RewardContractError, circumstance: str = "") -> Finding:
    """Finding of a contract error by its code; the error begins with the reward's line."""
    match = _LINE.match(error.message)
    message = error.message[match.end() :] if match else error.message
    line = int(match.group(1)) if match else None
    if error.code != "raised":
        code = "D304" if "shape" in message or "of type" in message else "D303"
        return _finding(code, message + circumstance, error.hint, line)
    if is_out_of_memory(message):
        asked = _ALLOCATION.search(message)
        what = f"allocating {int(asked.group(1)) / 1e9:.3g} GB at once" if asked else message
        message = f"runs out of memory{circumstance}: {what}"
        return _finding("D311", message, "make smaller tensors", line)
    return _finding("D302", f"raises {message}{circumstance}", error.hint, line)


def _with_shapes(finding: Finding, reward: RewardFunction, values: Mapping[str, Tensor]) -> Finding:
    """Add the arguments' shapes to the hint: most raising rewards expect other shapes."""
    shapes = ", ".join(
        f"{name} ({', '.join(['batch', *map(str, values[name].shape[1:])])})"
        for name in reward.arguments
    )
    hint = f"{finding.hint}; " if finding.hint else ""
    return finding.model_copy(update={"hint": f"{hint}the arguments' shapes: {shapes}"})


def _finding(
    code: str, message: str, hint: str, line: int | None = None, severity: Severity = "error"
) -> Finding:
    if line is None and (match := _LINE.match(message)):
        line, message = int(match.group(1)), message[match.end() :]
    return Finding(
        code=code, severity=severity, message=message[:_MESSAGE_CHARACTERS], line=line, hint=hint
    )
