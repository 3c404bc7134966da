"""A reward function from its source: compiled, bound to variables, called, checked."""

from __future__ import annotations
import __future__ as future

import ast
import builtins
import hashlib
import linecache
import math
import traceback
import typing
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any, Protocol

import torch
from torch import Tensor

from eureka_agent import syntax
from eureka_agent.arguments import Binding, bind_arguments
from eureka_agent.errors import EurekaError, RewardLoadError
from eureka_agent.reward_names import (
    HELPER_NAMES,
    MOST_COMPONENTS,
    changed_names_fault,
    component_fault,
    is_helper_module,
)
from eureka_agent.rewards import RewardSpecification
from eureka_agent.simulation.user_modules import TimeLimitError, time_limit
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import Constant, QuaternionOrder, Variable
from eureka_agent.text import escape_unprintable
from eureka_agent.training import reward_helpers

LARGEST_REWARD = 1e13
"""Magnitude from which a total or component cannot be trained on: with a discount of 0.999, the
squares of three million returns then add up to more than float32 holds."""
Result = tuple[Tensor, dict[str, Tensor]]
"""Total and components, of shape (batch,) each."""


class RewardContractError(EurekaError):
    """A reward that raised (code `"raised"`) or broke the contract (`"contract"`)."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        """`message` begins with the reward's own line if there is one."""
        super().__init__(message, hint)
        self.code = code


class Reward(Protocol):
    """A reward as a trainer calls it, in any process."""

    @property
    def arguments(self) -> tuple[str, ...]:
        """Variable names and `previous_<variable>`."""
        ...

    def begin(self, values: Mapping[str, Tensor], timeout_s: float) -> Callable[[], Result]:
        """Start a call; the returned function waits up to `timeout_s`. Shape of each value: (batch,
        *variable.shape). The wait raises RewardContractError and TimeLimitError."""
        ...


def load_reward(reward: RewardSpecification, environment: type[VecTask]) -> RewardFunction:
    """The reward as a function in this process, on an environment's variables."""
    return RewardFunction.from_source(
        reward.source,
        environment.all_variables(),
        reward.trusted,
        constants=environment.constants,
        quaternion_order=environment.quaternion_order,
    )


def device_of(values: Mapping[str, Tensor]) -> AbstractContextManager[object]:
    """Context in which new tensors are on the device of `values` by default."""
    device = next((value.device for value in values.values()), torch.device("cpu"))
    return nullcontext() if device.type == "cpu" else device


class RewardFunction:
    """`compute_reward` of one source, called in this process with the variables that it names."""

    def __init__(self, code: CompiledReward, binding: Binding) -> None:
        """See `from_source`."""
        self._code = code
        self._binding = binding
        self._remembers = False
        self._kept: Callable[..., Any] | None = None
        self.arguments = binding.variables
        """Variable names and `previous_<variable>`, in the function's order."""
        self.component_names: tuple[str, ...] | None = None
        """Keys of the first call's component dictionary; None before it."""

    @classmethod
    def from_source(
        cls,
        source: str,
        variables: Sequence[Variable],
        allow_private: bool = False,
        *,
        constants: Sequence[Constant] = (),
        quaternion_order: QuaternionOrder = "wxyz",
    ) -> RewardFunction:
        """Load a source. `quaternion_order`: of Isaac Gym's helper functions there. Raises
        RewardLoadError where it does not load or lacks `compute_reward`, and for an argument that
        is no variable (private: with `allow_private`), no constant and no number by default."""
        code = CompiledReward.compile(source, quaternion_order)
        try:
            function = code.run()
        except (KeyboardInterrupt, TimeLimitError):
            raise
        except BaseException as error:  # noqa: BLE001  (generated code: whatever it raises is its own fault)
            what = f"{_describe(error, code.filename)} (while loading the source)"
            raise RewardLoadError(what, "correct the top level") from None
        if not callable(function):
            what = f"{FUNCTION_NAME!r} is {type(function).__name__}, expected a function"
            raise RewardLoadError(what, "do not assign to its name")
        binding = bind_arguments(function, variables, allow_private, RewardLoadError, constants)
        if not binding.variables:
            found = "no argument that is a variable" if binding.constants else "no argument"
            hint = "name the variables that it reads as arguments"
            raise RewardLoadError(f"{FUNCTION_NAME} takes {found}", hint)
        return cls(code, binding)

    def remembering(self) -> RewardFunction:
        """The same reward with a top level that is run once, to show kept state."""
        reward = RewardFunction(self._code, self._binding)
        reward._remembers = True
        return reward

    def __call__(self, values: Mapping[str, Tensor]) -> Result:
        """Total and components of every step, detached float32 of shape (batch,), finite or not.
        Shape of each value: (batch, *variable.shape). The top level runs again, so that no state is
        kept. Raises RewardContractError for errors, other results and other component names."""
        arguments = self._copies(values)
        first = arguments[self.arguments[0]]
        total, components = self._checked_pair(self._run(arguments))
        checked_total = self._series("the total", total, first)
        checked = {}
        for name, value in components.items():
            if not isinstance(name, str):
                what = f"a component's name is {name!r}, expected a string"
                raise self._violation(what, "use names such as 'forward'")
            if fault := component_fault(name):
                raise self._violation(*fault)
            checked[name] = self._series(f"component {name!r}", value, first)
        if self.component_names is None:
            self.component_names = tuple(checked)
        if fault := changed_names_fault(self.component_names, checked):
            raise self._violation(*fault)
        return checked_total, {name: checked[name] for name in self.component_names}

    def arguments_written(self, values: Mapping[str, Tensor]) -> tuple[str, ...]:
        """Names of arguments that a call on copies changes. Raises RewardContractError."""
        arguments = self._copies(values)
        self._run(arguments)
        return tuple(name for name in arguments if not torch.equal(arguments[name], values[name]))

    def begin(self, values: Mapping[str, Tensor], timeout_s: float) -> Callable[[], Result]:
        """See `Reward`. The call is made in the wait."""

        def call() -> Result:
            # a reward runs outside inference mode
            with time_limit(timeout_s), torch.inference_mode(False):
                return self(values)

        return call

    def _copies(self, values: Mapping[str, Tensor]) -> dict[str, Tensor]:
        # Clones, not version counters: writes through `.data` or numpy do not count there, and a
        # copy of the arguments is cheap beside the reward itself.
        return {name: values[name].detach().clone() for name in self.arguments}

    def _run(self, arguments: Mapping[str, Tensor]) -> object:
        """Call the function, unchecked. Raises RewardContractError where it raises."""
        try:
            with torch.no_grad(), device_of(arguments):
                function = self._kept or self._code.run()
                if self._remembers:
                    self._kept = function
                return function(**arguments, **self._binding.constants)
        except (KeyboardInterrupt, TimeLimitError):
            raise
        except BaseException as error:  # noqa: BLE001  (generated code: whatever it raises is its own fault)
            raise RewardContractError("raised", _describe(error, self._code.filename)) from None

    def _checked_pair(self, result: object) -> tuple[object, dict[Any, Any]]:
        pair = result if isinstance(result, (tuple, list)) else None
        if pair is None or len(pair) != 2:
            found = type(result).__name__ if pair is None else f"{len(pair)} values"
            what = f"returned {found}, expected (total, components)"
            raise self._violation(what, "end with `return total, {'name': component}`")
        total, components = pair
        if not isinstance(components, dict):
            raise self._violation(
                f"the second value returned is {type(components).__name__}, expected a dict of"
                " tensors by name",
                "return the components as `{'name': component}`",
            )
        if len(components) > MOST_COMPONENTS:
            what = f"there are {len(components)} components, expected at most {MOST_COMPONENTS}"
            raise self._violation(what, "add up what belongs together")
        return total, components

    def _series(self, what: str, value: object, like: Tensor) -> Tensor:
        """A total or component as detached float32, shape (batch,), batch and device as `like`. Of
        a component a number and a tensor without dimensions stand for all steps."""
        batch, is_total = len(like), what == "the total"
        if isinstance(value, (bool, int, float)) and not is_total:
            try:
                value = torch.tensor(float(value))
            except OverflowError:
                beyond = f"{what} is a number beyond all floating point"
                raise self._violation(beyond, "make it smaller") from None
        if not isinstance(value, Tensor):
            found = f"{what} is {type(value).__name__}, expected a tensor of shape ({batch},)"
            raise self._violation(found, "return a tensor")
        if value.is_complex():
            found = f"{what} is of type {value.dtype}, expected real numbers"
            raise self._violation(found, "use `.real` or `.abs()`")
        if value.dim() == 0 and not is_total:
            value = value.expand(batch)
        if tuple(value.shape) != (batch,):
            found = f"{what} has shape {tuple(value.shape)}, expected ({batch},)"
            raise self._violation(found, _shape_hint(value, batch))
        if is_total and not value.is_floating_point():
            found = f"{what} is of type {value.dtype}, expected a floating point tensor"
            raise self._violation(found, "use `.float()`")
        try:
            return value.detach().to(device=like.device, dtype=torch.float32)
        except Exception:  # noqa: BLE001  (without storage, or of a subclass that raises anything)
            raise self._violation(
                f"{what} cannot be read: it is a {type(value).__name__} on {value.device}",
                "return plain tensors, calculated from the arguments",
            ) from None

    def _violation(self, message: str, hint: str) -> RewardContractError:
        where = f"line {self._code.return_line}: "
        return RewardContractError("contract", where + escape_unprintable(message), hint)


def _shape_hint(value: Tensor, batch: int) -> str:
    if tuple(value.shape) == (batch, 1):
        return "use `.squeeze(-1)`, or index the last dimension with `[:, 0]`"
    if value.dim() == 0:
        return "a reduction without `dim=-1` has summed over the batch as well"
    return "reduce over the last dimension with `dim=-1`; the first dimension is the batch"


def _describe(error: BaseException, filename: str) -> str:
    """`line 7: IndexError: …`, with the last line of the reward on the way to the error."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == filename]
    where = f"line {lines[-1]}: " if lines else ""
    name, text = type(error).__name__, " ".join(str(error).split())
    return where + escape_unprintable(f"{name}: {text}" if text else name)


FUNCTION_NAME = "compute_reward"
_TYPING_NAMES = ("Any", "Dict", "List", "Optional", "Sequence", "Tuple", "Union")


@dataclass(frozen=True)
class CompiledReward:
    """The top level of a reward's source, compiled once for many runs."""

    filename: str
    return_line: int
    """Line of the last `return` of `compute_reward`."""
    _code: CodeType
    _calls_helpers: bool
    _quaternion_order: QuaternionOrder

    @classmethod
    def compile(cls, source: str, quaternion_order: QuaternionOrder) -> CompiledReward:
        """Compile without `@torch.jit.script` and helpers' imports. Raises RewardLoadError."""
        filename = f"<reward {hashlib.sha256(source.encode(errors='replace')).hexdigest()[:12]}>"
        try:  # null bytes, absurd nesting, `return` at the top level
            tree = syntax.parsed(source, filename)
            definition = _definition(tree)
            # None as modification time keeps linecache from looking for a file
            lines = source.splitlines(keepends=True)
            linecache.cache[filename] = (len(source), None, lines, filename)
            tree = ast.fix_missing_locations(_Trimmer().visit(tree))
            # unevaluated, so that a good reward does not fail for a name in an annotation
            flags = future.annotations.compiler_flag
            code = compile(tree, filename, "exec", flags=flags, dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = getattr(error, "lineno", None)
            where = f"line {line}: " if line else ""
            what = f"{where}not valid Python: {getattr(error, 'msg', error)}"
            raise RewardLoadError(what, "correct the syntax") from None
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        ends = [node.lineno for node in ast.walk(definition) if isinstance(node, ast.Return)]
        return_line, calls_helpers = max(ends, default=definition.lineno), names & {*HELPER_NAMES}
        return cls(filename, return_line, code, bool(calls_helpers), quaternion_order)

    def run(self) -> Callable[..., Any]:
        """Run the top level in a new namespace; return its `compute_reward`, or raise its error."""
        namespace: dict[str, Any] = {"__builtins__": builtins, "__name__": self.filename}
        namespace |= {"torch": torch, "math": math, "Tensor": Tensor}
        namespace |= {name: getattr(typing, name) for name in _TYPING_NAMES}
        if self._calls_helpers:
            namespace.update(helpers(self._quaternion_order))
        exec(self._code, namespace)
        return typing.cast(Callable[..., Any], namespace.get(FUNCTION_NAME))


def helpers(order: QuaternionOrder) -> dict[str, Callable[..., Any]]:
    """New copies of Isaac Gym's helper functions by name, for quaternions in this order."""
    names: dict[str, Any] = {**vars(reward_helpers), "QUATERNION_ORDER": order}
    functions = {name: value for name, value in names.items() if isinstance(value, FunctionType)}
    # functions look names up in the dictionary that they are made with
    for name, value in functions.items():
        names[name] = FunctionType(value.__code__, names, name, value.__defaults__)
    return {name: names[name] for name in HELPER_NAMES}


def _definition(tree: ast.Module) -> ast.FunctionDef:
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef))
    found = [node for node in functions if node.name == FUNCTION_NAME]
    if not found:
        what = f"the source defines no function {FUNCTION_NAME!r}"
        raise RewardLoadError(what, f"write `def {FUNCTION_NAME}(…)` at the top level")
    return found[-1]


class _Trimmer(ast.NodeTransformer):
    """Removes `torch.jit` decorators, and imports of helper functions, which are there anyway."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        items = node.decorator_list
        node.decorator_list = [it for it in items if not ast.unparse(it).startswith("torch.jit.")]
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | list[ast.AST]:
        if not is_helper_module(node.module):
            return node
        assignments: list[ast.AST] = []
        for alias in node.names:
            if alias.asname and alias.asname != alias.name:
                target = ast.Name(str(alias.asname), ast.Store())
                assignment = ast.Assign([target], ast.Name(alias.name, ast.Load()))
                assignments.append(ast.copy_location(assignment, node))
        return assignments or ast.copy_location(ast.Pass(), node)
