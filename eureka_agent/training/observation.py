"""Observations that are designed: a straight line of tensor operations, which is data.

Generated code is run once, in a confined process, and its operations are recorded
(`training/observation_trace.py`). What comes back is checked here. Trainings, evaluations and films
carry out the operations themselves, so that no generated code runs beside a simulator.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import torch
from pydantic import Field, JsonValue, ValidationError
from torch import Tensor

from eureka_agent.records import Record
from eureka_agent.rewards import MOST_OBSERVATIONS

MOST_STEPS = 400
MOST_NUMBERS = 4096
"""Most numbers of a row in any intermediate result."""
MOST_CONSTANTS = 2048
"""Most numbers of all constants together."""
_CHECKED_ROWS = 32
_CHECKED_SCALES = 1.0, 10.0, 100.0
_TOLERANCE = 1e-3
"""Largest difference of a number that rows stand for themselves leaves, in its largest size."""

# Each computes new tensors or views, of its arguments alone: nothing random, no file, no shape that
# depends on values. The first also have a form that writes into its first argument.
_CHANGING = """
abs acos acosh add addcdiv addcmul asin asinh atan atan2 atanh bitwise_and bitwise_not bitwise_or
ceil clamp clamp_max clamp_min copy copysign cos cosh div elu eq erf exp exp2 expm1 fill floor
floor_divide fmod frac ge gelu gt hardtanh heaviside hypot le leaky_relu lerp log log10 log1p log2
logical_and logical_not logical_or logical_xor logit lt masked_fill mul nan_to_num ne neg pow
reciprocal relu remainder round rsqrt sgn sigmoid sign silu sin sinc sinh sqrt square squeeze sub
tan tanh tril triu trunc unsqueeze xlogy zero
"""
_OTHERS = """
_log_softmax _softmax _to_copy _unsafe_view addmm alias all amax amin aminmax angle any arange
argmax argmin baddbmm bmm cat clone constant_pad_nd count_nonzero cumprod cumsum deg2rad detach
diag_embed diagonal dot expand eye flip fmax fmin full full_like gather index index_select isfinite
isinf isnan lift_fresh linalg_cross linalg_vector_norm linspace logaddexp logsumexp matmul max
maximum mean median min minimum mm mv new_full new_ones new_zeros norm ones ones_like permute prod
rad2deg repeat roll rsub scalar_tensor select signbit slice softplus sort split split_with_sizes
stack std sum t topk transpose unbind unfold var var_mean view where zeros zeros_like
"""
_WRITABLE = frozenset(_CHANGING.split())
_ALLOWED = _WRITABLE | frozenset(_OTHERS.split())
OF_THE_DEVICE = {"device", "layout", "memory_format", "pin_memory"}
"""Arguments that the place of the tensors decides."""


class ObservationError(Exception):
    """Operations that are no observation; the text says why, for whoever wrote the code."""


class ConstantTensor(Record):
    """A tensor that is part of the code."""

    shape: tuple[int, ...] = Field(max_length=8)
    dtype: str
    values: tuple[float, ...] = Field(max_length=MOST_CONSTANTS)


class ProgramStep(Record):
    """One operation. In its arguments `{"t": i}` is tensor i, `{"b": k}` is k times the number of
    rows, `{"d": name}` a type of numbers, `{"f": text}` a number that is infinite or NaN."""

    operation: str
    """Name and overload among torch's `aten` operations, such as `add.Tensor`."""
    arguments: tuple[JsonValue, ...]
    named: dict[str, JsonValue] = Field(default_factory=dict)
    results: int = Field(1, ge=1, le=MOST_NUMBERS)


class ObservationProgram(Record):
    """Operations from variables to an observation. Tensors count from 0: inputs, constants, then
    each step's results."""

    inputs: tuple[str, ...] = Field(min_length=1, max_length=256)
    """Variables."""
    constants: tuple[ConstantTensor, ...] = Field((), max_length=MOST_STEPS)
    steps: tuple[ProgramStep, ...] = Field((), max_length=MOST_STEPS)
    output: int = Field(ge=0)
    """Place of the observation."""
    width: int = Field(ge=1, le=MOST_OBSERVATIONS)
    """Numbers of the observation."""


@dataclass(frozen=True)
class _Reference:
    place: int


class DesignedObservation:
    """The observations of a program, for any number of rows."""

    def __init__(
        self,
        program: ObservationProgram,
        shapes: Mapping[str, Sequence[int]],
        *,
        confined: bool = False,
    ) -> None:
        """`shapes`: of the variables that it may read, without the batch. `confined`: in the
        process of its code, whose memory is bounded. Raises ObservationError for operations that
        are not allowed, that are too large, or that mix rows."""
        self.program = program
        self._bound: dict[tuple[int, torch.device], list[_Bound]] = {}
        if unknown := [name for name in program.inputs if name not in shapes]:
            raise ObservationError(f"it reads {unknown[0]!r}, which is no public variable")
        drawn = torch.Generator().manual_seed(0)
        self.shapes = {name: tuple(shapes[name]) for name in program.inputs}
        """Shapes of the variables that it reads, without the batch."""
        given = {
            name: torch.randn(_CHECKED_ROWS, *shape, generator=drawn)
            for name, shape in self.shapes.items()
        }
        try:
            # without numbers first, so that nothing large is made; it imports torch's compiler
            where = "cpu" if confined else "meta"
            self._results({name: value.to(where) for name, value in given.items()}, bounded=True)
            mixed = any(self._mixes(given, scale) for scale in _CHECKED_SCALES)
        except ObservationError:
            raise
        except Exception as error:  # noqa: BLE001  (torch raises many kinds for arguments that do not fit)
            raise ObservationError(f"its operations fail: {error}") from None
        if mixed:
            raise ObservationError("a row's observation depends on other rows: reduce with dim=-1")

    def _mixes(self, given: Mapping[str, Tensor], scale: float) -> bool:
        """True where rows have other observations without their neighbours."""
        scaled = {name: scale * value for name, value in given.items()}
        some = slice(_CHECKED_ROWS // 2, _CHECKED_ROWS // 2 + 4)
        whole, alone = self(scaled), self({name: value[some] for name, value in scaled.items()})
        sizes = whole.abs().nan_to_num(0.0, 0.0).amax(dim=0)
        apart = ((whole[some] - alone).abs() <= _TOLERANCE * sizes) | (whole[some] == alone)
        return not bool((apart | (whole[some].isnan() & alone.isnan())).all())

    @property
    def width(self) -> int:
        return self.program.width

    def json(self) -> str:
        """Text for `read_observation`."""
        return _Stored(program=self.program, shapes=self.shapes).model_dump_json()

    @property
    def inputs(self) -> tuple[str, ...]:
        """Variables."""
        return self.program.inputs

    @cached_property
    def shown(self) -> str:
        """Its size, in words."""
        return f"{self.width} numbers from {', '.join(self.inputs)}"

    def __call__(self, values: Mapping[str, Tensor]) -> Tensor:
        """Observations, float32 of shape (batch, width). Shape of each value: (batch,
        *variable.shape)."""
        return self._results(values).to(torch.float32)

    def _results(self, values: Mapping[str, Tensor], bounded: bool = False) -> Tensor:
        first = values[self.program.inputs[0]]
        rows, device = len(first), first.device
        key = rows, device
        if key not in self._bound:
            self._bound[key] = [_bound(step, rows, device) for step in self.program.steps]
        # clones: an operation may write into what it is given
        tensors = [values[name].clone() for name in self.program.inputs]
        tensors += [_tensor(each, device) for each in self.program.constants]
        for step in self._bound[key]:
            found = step.run(tensors)
            many = found if isinstance(found, (tuple, list)) else (found,)
            if len(many) != step.results:
                raise ObservationError("an operation gives another number of results")
            tensors += many
            if bounded and any(each.numel() > rows * MOST_NUMBERS for each in many):
                raise ObservationError(f"an operation makes over {MOST_NUMBERS} numbers a row")
        if self.program.output >= len(tensors):
            raise ObservationError("its output is none of its tensors")
        output = tensors[self.program.output]
        if tuple(output.shape) != (rows, self.program.width) or output.is_complex():
            raise ObservationError(
                f"it has the shape {tuple(output.shape)} for {rows} rows, expected ({rows},"
                f" {self.program.width})"
            )
        return output


class _Stored(Record):
    program: ObservationProgram
    shapes: dict[str, tuple[int, ...]]


def read_observation(text: str) -> DesignedObservation:
    """Read the text of an observation. Raises ObservationError."""
    try:
        stored = _Stored.model_validate_json(text)
    except ValidationError as error:
        raise ObservationError(f"it cannot be read: {error}") from None
    return DesignedObservation(stored.program, stored.shapes)


@dataclass(frozen=True)
class _Bound:
    """A step with its arguments for a number of rows."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    named: dict[str, Any]
    results: int

    def run(self, tensors: Sequence[Tensor]) -> Any:
        arguments = [_filled(each, tensors) for each in self.arguments]
        return self.function(
            *arguments, **{name: _filled(each, tensors) for name, each in self.named.items()}
        )


def _filled(value: Any, tensors: Sequence[Tensor]) -> Any:
    if isinstance(value, _Reference):
        return tensors[value.place]
    return [_filled(each, tensors) for each in value] if isinstance(value, list) else value


def function_of(operation: str) -> Callable[..., Any]:
    """The function of an operation. Raises ObservationError for one that is not allowed."""
    name, _, overload = operation.partition(".")
    base = name[:-1] if name.endswith("_") and name[:-1] in _WRITABLE else name
    packet = getattr(torch.ops.aten, name, None) if base in _ALLOWED else None
    if packet is None or overload not in packet.overloads():
        raise ObservationError(f"torch's operation {name!r} cannot be part of an observation")
    return cast(Callable[..., Any], _BOUNDED.get(name) or getattr(packet, overload))


# A wrong index would end the process that trains all the others, where tensors are on a GPU.


def _gather(values: Tensor, dim: int, index: Tensor, **named: Any) -> Tensor:
    last = (values.shape[dim] if values.dim() else 1) - 1
    return values.gather(dim, index.clamp(0, last), **named)


def _index_select(values: Tensor, dim: int, index: Tensor) -> Tensor:
    return values.index_select(dim, index.clamp(0, values.shape[dim] - 1))


def _index(values: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    if any(each is not None and each.dtype in (torch.bool, torch.uint8) for each in indices):
        raise ObservationError(
            "a mask as an index gives a changing number of rows: use torch.where"
        )
    sizes = zip(indices, values.shape, strict=False)
    safe = [None if each is None else each.clamp(-size, size - 1) for each, size in sizes]
    return torch.ops.aten.index.Tensor(values, safe)


_BOUNDED = {"gather": _gather, "index": _index, "index_select": _index_select}


def _bound(step: ProgramStep, rows: int, device: torch.device) -> _Bound:
    function = function_of(step.operation)
    own = (item for item in step.named.items() if item[0] not in OF_THE_DEVICE)
    named = {name: _read(each, rows) for name, each in own}
    packet, _, overload = step.operation.partition(".")
    schema = getattr(getattr(torch.ops.aten, packet), overload)._schema
    if any(argument.name == "device" for argument in schema.arguments):
        named["device"] = device
    arguments = tuple(_read(each, rows) for each in step.arguments)
    return _Bound(function, arguments, named, step.results)


def _read(value: JsonValue, rows: int) -> Any:
    """An argument from its form in a program. Raises ObservationError."""
    if isinstance(value, list):
        return [_read(each, rows) for each in value]
    if not isinstance(value, dict):
        return value
    match value:
        case {"t": int(place)} if place >= 0:
            return _Reference(place)
        case {"b": int(times)} if 0 < times <= MOST_NUMBERS:
            return times * rows
        case {"d": str(name)} if isinstance(found := getattr(torch, name, None), torch.dtype):
            return found
        case {"f": ("inf" | "-inf" | "nan") as text}:
            return float(text)
    raise ObservationError("an operation has an argument that cannot be read")


def _tensor(constant: ConstantTensor, device: torch.device) -> Tensor:
    dtype = getattr(torch, constant.dtype, None)
    if not isinstance(dtype, torch.dtype) or math.prod(constant.shape) != len(constant.values):
        raise ObservationError("a constant cannot be read")
    return torch.tensor(constant.values, dtype=torch.float64).to(device, dtype).view(constant.shape)
