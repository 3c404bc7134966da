"""Recording of an observation's operations, which runs its code: in a confined process alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from pydantic import JsonValue
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from eureka_agent.rewards import MOST_OBSERVATIONS
from eureka_agent.training.observation import (
    MOST_CONSTANTS,
    MOST_STEPS,
    OF_THE_DEVICE,
    ConstantTensor,
    ObservationError,
    ObservationProgram,
    ProgramStep,
    function_of,
)

_ROWS = 127, 131
"""Two numbers of rows that are prime, and larger than most sizes in code: sizes that differ between
them tell what follows from the number of rows."""
_ON_VALUES = "_local_scalar_dense"


def traced(
    function: Callable[..., object],
    shapes: Mapping[str, Sequence[int]],
    constants: Mapping[str, float],
) -> ObservationProgram:
    """The operations of `function` of variables with these `shapes`, without the batch, and
    `constants`. Raises ObservationError, and whatever the function raises."""
    first, second = (_Traced(function, shapes, constants, rows) for rows in _ROWS)
    if [each.operation for each in first.steps] != [each.operation for each in second.steps]:
        raise ObservationError("its operations differ with the number of rows")
    for step, mixed in zip(first.steps, map(_same, first.of_rows, second.of_rows), strict=True):
        if mixed:
            name = step.operation.partition(".")[0]
            raise ObservationError(
                f"a row's observation depends on other rows: {name!r} makes as much of any number"
                " of them; take each row's own numbers, as x[:, 0] does, and reduce with dim=-1"
            )
    merged = tuple(map(_merged, first.steps, second.steps))
    if first.constants != second.constants:
        raise ObservationError("one of its constants differs with the number of rows")
    return ObservationProgram(
        inputs=tuple(shapes),
        constants=first.constants,
        steps=merged,
        output=first.output,
        width=first.width,
    )


class _Traced(TorchDispatchMode):
    """One call with a number of rows."""

    def __init__(
        self,
        function: Callable[..., object],
        shapes: Mapping[str, Sequence[int]],
        constants: Mapping[str, float],
        rows: int,
    ) -> None:
        super().__init__()
        drawn = torch.Generator().manual_seed(0)
        given = {name: torch.randn(rows, *shape, generator=drawn) for name, shape in shapes.items()}
        self._places = {id(value): ("input", place) for place, value in enumerate(given.values())}
        self._kept: list[Tensor] = [*given.values()]
        """Every tensor that was met, so that no other one gets its identity."""
        self._constants: list[Tensor] = []
        self._recorded: list[tuple[str, tuple[Any, ...], dict[str, Any], int]] = []
        self._from_rows = set(map(_memory, given.values()))
        """Memory that holds what follows from variables: of tensors, and of all views of them."""
        self.of_rows: list[list[tuple[int, ...]] | None] = []
        """For each operation the shapes of what it makes of variables; None for one of constants
        alone."""
        self._results = 0
        versions = [value._version for value in given.values()]
        with torch.no_grad(), self:
            found = function(**given, **constants)
        for (name, value), version in zip(given.items(), versions, strict=True):
            if value._version != version:
                raise ObservationError(f"it writes into its argument {name!r}: write into a clone")
        self._check(found, rows)
        assert isinstance(found, Tensor)
        self._inputs = len(given)
        if id(found) not in self._places:  # a tensor that no operation made
            self._place(found)
        self.output = self._number(self._places[id(found)])
        self.width = found.shape[1]
        self.constants = tuple(map(_constant, self._constants))
        self.steps = [self._step(*each) for each in self._recorded]

    @staticmethod
    def _check(found: object, rows: int) -> None:
        expected = f"expected a tensor of shape (batch, n) with n from 1 to {MOST_OBSERVATIONS}"
        if not isinstance(found, Tensor):
            raise ObservationError(f"returned {type(found).__name__}, {expected}")
        shape = tuple(found.shape)
        if len(shape) != 2 or shape[0] != rows or not 0 < shape[1] <= MOST_OBSERVATIONS:
            shown = ", ".join("batch" if each == rows else str(each) for each in shape)
            raise ObservationError(f"returned the shape ({shown}), {expected}")

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Keep torch from importing its compiler here, which takes a second in every worker."""
        return False

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        name = str(func).removeprefix("aten.")
        if name.startswith(_ON_VALUES):
            raise ObservationError(
                "it reads a tensor's value in Python, as `if`, `float()` or `.item()` do: write"
                " torch.where, multiply by a condition as `.float()`, and for torch's one_hot"
                " (x.unsqueeze(-1) == torch.arange(n)).float()"
            )
        function = function_of(name)
        if len(self._recorded) >= MOST_STEPS:
            raise ObservationError(f"it takes over {MOST_STEPS} operations: use whole tensors")
        named = {key: each for key, each in (kwargs or {}).items() if key not in OF_THE_DEVICE}
        asked = self._held(args), {key: self._held(each) for key, each in named.items()}
        found = function(*args, **(kwargs or {}))
        many = found if isinstance(found, (tuple, list)) else (found,)
        self._recorded.append((name, *asked, len(many)))
        met = (each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor))
        follows = any(_memory(each) in self._from_rows for each in met) and "new_" not in name
        self.of_rows.append([tuple(each.shape) for each in many] if follows else None)
        for each in many:
            # an operation that writes into its argument gives that argument again
            self._places[id(each)] = ("result", self._results)
            self._from_rows |= {_memory(each)} if follows else set()
            self._kept.append(each)
            self._results += 1
        return found

    def _held(self, value: Any) -> Any:
        """An argument with places instead of tensors."""
        if isinstance(value, Tensor):
            if id(value) not in self._places:
                self._place(value)
            return _Place(*self._places[id(value)])
        return [self._held(each) for each in value] if isinstance(value, (list, tuple)) else value

    def _place(self, constant: Tensor) -> None:
        self._places[id(constant)] = ("constant", len(self._constants))
        self._kept.append(constant)
        self._constants.append(constant.detach().clone())
        if sum(each.numel() for each in self._constants) > MOST_CONSTANTS:
            raise ObservationError(f"its constants have over {MOST_CONSTANTS} numbers")

    def _number(self, place: tuple[str, int]) -> int:
        kind, count = place
        before = {"input": 0, "constant": self._inputs}
        return before.get(kind, self._inputs + len(self._constants)) + count

    def _step(
        self, name: str, arguments: Sequence[Any], named: Mapping[str, Any], results: int
    ) -> ProgramStep:
        written = tuple(self._written(each) for each in arguments)
        by_name = {key: self._written(each) for key, each in named.items()}
        return ProgramStep(operation=name, arguments=written, named=by_name, results=results)

    def _written(self, value: Any) -> JsonValue:
        """An argument as in a program."""
        match value:
            case _Place(kind, count):
                return {"t": self._number((kind, count))}
            case list():
                return [self._written(each) for each in value]
            case torch.dtype():
                return {"d": str(value).removeprefix("torch.")}
            case float() if not math.isfinite(value):
                return {"f": str(value)}
            case None | bool() | int() | float() | str():
                return value
        raise ObservationError(f"an operation is given {type(value).__name__}")


@dataclass(frozen=True)
class _Place:
    """Place of a tensor, while not all constants are known."""

    kind: str
    count: int


def _memory(value: Tensor) -> int:
    """Identity of a tensor's memory, which its views share."""
    return value.untyped_storage()._cdata


def _same(first: list[tuple[int, ...]] | None, second: list[tuple[int, ...]] | None) -> bool:
    """True where one of these shapes of two numbers of rows does not follow from it."""
    return any(one == other for one, other in zip(first or (), second or (), strict=True))


def _constant(value: Tensor) -> ConstantTensor:
    dtype = str(value.dtype).removeprefix("torch.")
    numbers = tuple(value.flatten().double().tolist())
    return ConstantTensor(shape=tuple(value.shape), dtype=dtype, values=numbers)


def _merged(first: ProgramStep, second: ProgramStep) -> ProgramStep:
    """One step for any number of rows. Raises ObservationError."""
    return first.model_copy(
        update={
            "arguments": tuple(map(_any_rows, first.arguments, second.arguments)),
            "named": {key: _any_rows(each, second.named[key]) for key, each in first.named.items()},
        }
    )


def _any_rows(first: JsonValue, second: JsonValue) -> JsonValue:
    if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        return [_any_rows(*pair) for pair in zip(first, second, strict=True)]
    if first == second:
        return first
    if isinstance(first, int) and isinstance(second, int):
        times, rest = divmod(first, _ROWS[0])
        if times > 0 and not rest and second == times * _ROWS[1]:
            return {"b": times}
    raise ObservationError("a number in it follows from the number of rows: reduce with dim=-1")
