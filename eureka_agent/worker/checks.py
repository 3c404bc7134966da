"""Checks of a dry run. A check may hang, crash or exhaust memory, so they run in a fork."""

from __future__ import annotations

import contextlib
import math
import statistics
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NoReturn

import torch
from torch import Tensor

from eureka_agent.errors import RewardLoadError
from eureka_agent.records import Finding
from eureka_agent.rewards import OBSERVATION_FUNCTION, RewardSpecification
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.training.reward import (
    LARGEST_REWARD,
    Result,
    RewardContractError,
    RewardFunction,
    load_reward,
)
from eureka_agent.worker import findings
from eureka_agent.worker.extremes import (
    ExtremeStates,
    batches_of_drawn,
    drawn_states,
    extreme_states,
)
from eureka_agent.worker.observation_checks import check_observation

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
_CODE_CHARACTERS = 90


def check_reward(
    specification: RewardSpecification,
    recorded: Mapping[str, Tensor],
    environment_class: type[VecTask],
) -> list[Finding]:
    """Run all checks on a reward. `recorded`: shape (transitions, *variable.shape)."""
    try:
        reward = load_reward(specification, environment_class)
    except RewardLoadError as error:
        observes = f"{OBSERVATION_FUNCTION}: " in error.message
        return [findings.finding("D319" if observes else "D301", error.message, error.hint)]
    try:
        result = reward(recorded)
    except RewardContractError as error:
        # most rewards that raise expect other shapes
        sizes = (
            (name, ["batch", *map(str, recorded[name].shape[1:])]) for name in reward.arguments
        )
        shapes = ", ".join(f"{name} ({', '.join(each)})" for name, each in sizes)
        found = findings.contract_finding(error)
        hint = f"{found.hint}; " if found.hint else ""
        return [found.model_copy(update={"hint": f"{hint}the arguments' shapes: {shapes}"})]
    checks = _Checks(reward, specification, recorded, result)
    with contextlib.suppress(_Wrong):
        checks.run(environment_class)
    if reward.observation is not None:
        checks.findings += check_observation(reward.observation, recorded, environment_class)
    return checks.findings


class _Wrong(Exception):
    """An error was found after which no other check is made."""


class _Checks:
    """The checks on a reward that gives numbers, and what they find."""

    def __init__(
        self,
        reward: RewardFunction,
        specification: RewardSpecification,
        recorded: Mapping[str, Tensor],
        result: Result,
    ) -> None:
        """`result`: of the `recorded` states."""
        self._reward = reward
        self._source, self._learned = specification.source, specification.kind == "latent"
        self._recorded = {name: recorded[name] for name in reward.arguments}
        self._total, self._components = result
        self.findings: list[Finding] = []

    def run(self, environment_class: type[VecTask]) -> None:
        recorded, reward, count = self._recorded, self._reward, len(self._total)
        is_slow = self._check_time()
        self._check_finite()
        named = {variable.name: variable for variable in environment_class.all_variables()}
        extremes = extreme_states(recorded, reward.arguments, named)
        rare = extremes.joined(drawn_states(recorded, reward.arguments, named))
        values = {name: torch.cat([recorded[name], rare.values[name]]) for name in recorded}
        try:
            table = _table(reward(values))
        except RewardContractError as error:
            self.findings += self._check_sum()
            self._stop(findings.contract_finding(error, " (with rare states among others)"))
        order = torch.randperm(table.shape[1], generator=torch.Generator().manual_seed(0))
        width = sum(value[0].numel() for value in values.values())
        size = 1 if is_slow else min(_LARGE_BATCH, _LARGE_NUMBERS // width)
        large = order.repeat(size // len(order) + 1)
        batches = [*extremes.batches(count), large]
        if not is_slow:
            batches += batches_of_drawn(count + len(extremes.labels), order)
        self._check_repeatable({name: value[large] for name, value in values.items()})
        singles = torch.linspace(0, count - 1, _SINGLE_ROWS).long().unsqueeze(1)
        usual = [torch.arange(size) % count for size in (_ODD_BATCH, TIMED_ROWS)]
        sizes = findings.TOLERANCE * (1.0 + self._total.abs().nan_to_num())
        self._check_batches([*usual, *singles], recorded, self._total, sizes)
        # batches with rare states, as a branch may mix rows only where some are; terms that cancel
        # are no more exact than the largest of them
        sizes = findings.TOLERANCE * (1.0 + table.abs().nan_to_num().amax(dim=0))
        sizes[-len(rare.beyond) :][torch.tensor(rare.beyond)] = torch.inf
        self._check_batches(batches, values, table[0], sizes, ", some of them rare")
        if any(each.severity == "error" for each in self.findings):
            return
        reached, *parts = table[:, count:]
        named_parts = dict(zip(self._components, parts, strict=True))
        self._check_variation(reached, named_parts)
        self.findings += self._check_sum()
        self._check_extremes(rare, (reached, named_parts))

    def _stop(self, found: Finding) -> NoReturn:
        self.findings.append(found)
        raise _Wrong

    def _check_time(self) -> bool:
        """Time a batch; True for a reward that is noticeably slow."""
        rows = torch.arange(TIMED_ROWS) % len(self._total)
        values = {name: value[rows] for name, value in self._recorded.items()}
        seconds: list[float] = []
        while len(seconds) < _TIMED_CALLS and sum(seconds) < _TIMING_SECONDS:
            begin = time.perf_counter()
            try:
                self._reward(values)
            except RewardContractError as error:
                self._stop(findings.contract_finding(error, f" (on a batch of {TIMED_ROWS})"))
            seconds.append(time.perf_counter() - begin)
        median = statistics.median(seconds)
        if median <= NOTICEABLE_SECONDS:
            return False
        took = f"takes {median * 1e3:.0f} ms, expected below {NOTICEABLE_SECONDS * 1e3:.0f} ms"
        message = f"one call on {TIMED_ROWS} steps {took}"
        if median > SLOW_SECONDS:  # the other checks call it even more often
            self._stop(findings.finding("D309", message))
        self.findings.append(findings.finding("D309", message, severity="warning"))
        return True

    def _check_finite(self) -> None:
        broken = _broken_rows((self._total, self._components))
        if broken:
            what = f"on {len(broken)} of {len(self._total)} recorded states"
            result = self._total, self._components
            self.findings.append(self._broken("D305", result, broken[0], what, self._recorded))

    def _check_sum(self) -> list[Finding]:
        """Terms add up to the total; of a learned reward they are factors, no two of them one."""
        if not self._learned:
            return findings.sum_findings(self._total, self._components)
        return findings.factor_findings(self._components)

    def _check_extremes(self, rare: ExtremeStates, result: Result) -> None:
        """Report the first rare state that is not finite; before one of broken physics another."""
        broken = _broken_rows(result)
        rows = [row for row in broken if not rare.beyond[row]] or broken
        if rows:
            others = len({rare.labels[row] for row in rows}) - 1
            also = f" (and in {others} more such states)" if others else ""
            what = f"when {rare.labels[rows[0]]}{also}"
            found = self._broken("D306", result, rows[0], what, rare.values)
            severity = "warning" if rare.beyond[rows[0]] else "error"
            self.findings.append(found.model_copy(update={"severity": severity}))

    def _broken(
        self, code: str, result: Result, row: int, where: str, values: Mapping[str, Tensor]
    ) -> Finding:
        """The finding on the first value of a row that is not finite or too large."""
        total, components = result
        named = {f"component {name!r}": value for name, value in components.items()}
        named["the total"] = total
        numbers = {name: value[row].item() for name, value in named.items()}
        broken = ((what, each) for what, each in numbers.items() if not abs(each) < LARGEST_REWARD)
        what, number = next(broken)
        hint = (
            f"a reward of {LARGEST_REWARD:g} and more cannot be trained on, as sums of its squares"
            " overflow: weigh it less, clamp it, or take its logarithm"
        )
        alone = {name: values[name][row : row + 1] for name in self._recorded}
        line = findings.line_of_first_broken(self._reward, alone)
        message = f"{what} is {number:.4g} {where}"
        return findings.finding(code, message, hint if math.isfinite(number) else "", line)

    def _check_repeatable(self, values: Mapping[str, Tensor]) -> None:
        """Call it twice, with other contents of fresh memory, and on two halves in either order
        with one top level, to find kept state and leftovers. Compare to the bit."""
        reward, half = self._reward, len(values[self._reward.arguments[0]]) // 2
        parts = (slice(half), slice(half, None), slice(TIMED_ROWS))
        first, second, timed = ({name: it[rows] for name, it in values.items()} for rows in parts)
        one, two = reward.remembering(), reward.remembering()
        try:
            result, again = _table(reward(values)), _table(reward(values))
            with _memory_filled():
                filled = _table(reward(values))
            written = reward.arguments_written(values) or reward.arguments_written(timed)
            forward = [_table(one(first)), _table(one(second))]
            backward = [_table(two(second)), _table(two(first))]
        except RewardContractError as error:
            self._stop(findings.contract_finding(error, " (on the second call)"))
        if written:
            self._stop(findings.finding("D317", f"the argument {written[0]!r} is changed in place"))
        for found, expected, what in (
            (again, result, "two calls on the same states"),
            (filled, result, "calls with other leftovers in fresh memory"),
            (torch.cat(forward, 1), torch.cat(backward[::-1], 1), "calls in another order"),
        ):
            if not _same_bits(found, expected):
                largest = (found - expected).abs().nan_to_num().max().item()
                by = f" by up to {largest:.3g}" if largest else ""
                self._stop(findings.finding("D307", f"{what} differ{by}"))

    def _check_batches(
        self,
        batches: Iterable[Tensor],
        values: Mapping[str, Tensor],
        total: Tensor,
        tolerances: Tensor,
        where: str = "",
    ) -> None:
        """Compare batches of these rows with all rows at once. `tolerances`: by row."""
        for rows in batches:
            size, part = len(rows), {name: value[rows] for name, value in values.items()}
            try:
                alone, _ = self._reward(part)
            except RewardContractError as error:
                found = findings.contract_finding(error, f" (on a batch of {size})")
                if size == 1 and ".squeeze()" in self._source:
                    hint = "name the dimension, `.squeeze(-1)`: without it a batch of one goes too"
                    found = found.model_copy(update={"hint": hint})
                self._stop(found)
            expected, allowed = total[rows], tolerances[rows]
            difference = (alone - expected).abs().nan_to_num(nan=0.0)
            one_is_finite = (alone.isfinite() != expected.isfinite()) & allowed.isfinite()
            apart = (one_is_finite | (difference > allowed)).nonzero()
            if not len(apart):
                continue
            row = int(apart[0])
            line = findings.line_that_mixes(self._reward, values, rows)
            code = self._source.splitlines()[line - 1].strip() if line else ""
            by = f" by `{code[:_CODE_CHARACTERS]}`" if code else ""
            message = (
                f"a step's reward depends on the other rows of the batch{by}:"
                f" {expected[row].item():.4g} among {len(total)}, {alone[row].item():.4g} among"
                f" {size}{where}"
            )
            self._stop(findings.finding("D308", message, line=line))

    def _check_variation(self, reached: Tensor, parts: Mapping[str, Tensor]) -> None:
        """Find a total constant on recorded states, and components constant on rare states too."""
        total, count = self._total, len(self._total)
        if _is_constant(total):
            moves = not _is_constant(torch.cat([total, reached]))
            where = " of random actions" if moves else " and on extreme ones"
            message = f"the total is {_first(total):g} on all {count} recorded states{where}"
            severity: Literal["error", "warning"] = "warning" if moves else "error"
            self.findings.append(findings.finding("D313", message, severity=severity))
        for name, value in self._components.items():
            if _is_constant(torch.cat([value, parts[name]])):
                message = (
                    f"component {name!r} was {_first(value):g} on all {count} recorded states,"
                    " which are of random actions, and on extreme ones"
                )
                self.findings.append(findings.finding("D314", message, severity="warning"))


def _table(result: Result) -> Tensor:
    """Total and components. Shape: (1 + components, rows)."""
    return torch.stack([result[0], *result[1].values()])


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


def _broken_rows(result: Result) -> list[int]:
    """Rows in which the total or a component is not finite or too large."""
    sound = (_table(result).abs() < LARGEST_REWARD).all(dim=0)  # not where it is NaN
    rows: list[int] = (~sound).nonzero().flatten().tolist()
    return rows


def _is_constant(value: Tensor) -> bool:
    return bool(((value - value[0]).abs() <= 1e-6 * (1.0 + value[0].abs())).all())


def _first(value: Tensor) -> float:
    return value[0].item() + 0.0  # no minus in front of a zero
