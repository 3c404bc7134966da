"""A reward function from its source: loaded, bound to variables by argument name, called, and checked against the contract."""

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
from typing import Any, Protocol

import torch
from torch import Tensor

from eureka_agent.component_names import MOST_COMPONENTS, component_fault
from eureka_agent.errors import EurekaError, RewardLoadError
from eureka_agent.task import Variable
from eureka_agent.training.binding import bind_arguments, device_of
from eureka_agent.training.time_limit import TimeLimitError, time_limit

FUNCTION_NAME = "compute_reward"
Result = tuple[Tensor, dict[str, Tensor]]
"""Total and components, of shape (batch,) each."""
_TYPING_NAMES = ("Any", "Dict", "List", "Optional", "Sequence", "Tuple", "Union")


class RewardContractError(EurekaError):
    """A reward that raised (`code` is `"raised"`) or returned what the contract forbids (`"contract"`)."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        """`message` begins with the reward's own line where there is one."""
        super().__init__(message, hint)
        self.code = code


class Reward(Protocol):
    """What a trainer needs of a reward, wherever its code runs."""

    @property
    def arguments(self) -> tuple[str, ...]:
        """Variable names and `previous_<variable>`."""
        ...

    def begin(self, values: Mapping[str, Tensor], timeout_s: float) -> Callable[[], Result]:
        """Start a call with values by argument name, shape of each (batch, *variable.shape); what is returned waits for its result.

        The wait raises RewardContractError as `RewardFunction` does, and TimeLimitError where the call takes longer than `timeout_s`.
        """
        ...


class RewardFunction:
    """`compute_reward` of one source, called with the variables that it names, in this process."""

    def __init__(
        self, function: Callable[..., Any], arguments: tuple[str, ...], filename: str, return_line: int
    ) -> None:
        """See `from_source`."""
        self._function = function
        self._filename = filename
        self._return_line = return_line
        self.arguments = arguments
        """Variable names and `previous_<variable>`, in the function's order."""
        self.component_names: tuple[str, ...] = ()
        """Keys of the component dictionary, known after the first call."""

    @classmethod
    def from_source(cls, source: str, variables: Sequence[Variable], allow_private: bool = False) -> RewardFunction:
        """Load a reward's source in a namespace of its own.

        `@torch.jit.script` is ignored, annotations are never evaluated. Raises RewardLoadError for a syntax error, a source without
        `compute_reward`, one that fails while it is loaded, and an argument that is no variable or a private one (unless `allow_private`).
        """
        filename = f"<reward {hashlib.sha256(source.encode(errors='replace')).hexdigest()[:12]}>"
        try:
            tree = ast.parse(source, filename)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:  # null bytes, absurd nesting
            line = getattr(error, "lineno", None)
            where = f"line {line}: " if line else ""
            raise RewardLoadError(
                f"{where}not valid Python: {getattr(error, 'msg', error)}", "correct the syntax"
            ) from None
        definition = _strip_script_decorators(tree)
        if definition is None:
            raise RewardLoadError(
                f"the source defines no function {FUNCTION_NAME!r}", f"write `def {FUNCTION_NAME}(…)` at the top level"
            )
        # a None in place of the modification time keeps linecache from looking for a file
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        namespace = _namespace(filename)
        try:
            # annotations stay text: a name in one that is not there must not make a good reward fail
            code = compile(tree, filename, "exec", flags=future.annotations.compiler_flag, dont_inherit=True)
            exec(code, namespace)
        except (KeyboardInterrupt, TimeLimitError):
            raise
        except BaseException as error:  # noqa: BLE001  (generated code: whatever it raises is its own fault)
            raise RewardLoadError(
                f"{_describe(error, filename)} (while loading the source)", "correct the top level"
            ) from None
        function = namespace.get(FUNCTION_NAME)
        if not callable(function):
            raise RewardLoadError(
                f"{FUNCTION_NAME!r} is {type(function).__name__}, expected a function", "do not assign to its name"
            )
        arguments = bind_arguments(function, variables, allow_private, RewardLoadError)
        if not arguments:
            raise RewardLoadError(f"{FUNCTION_NAME} takes no argument", "name the variables that it reads as arguments")
        return cls(function, arguments, filename, _last_return_line(definition))

    def __call__(self, values: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        """Total and components of every step, detached float32 of shape (batch,).

        `values`: by argument name, shape of each (batch, *variable.shape). Raises RewardContractError when the reward raises or returns
        something else. Whether numbers are finite is not looked at.
        """
        # Clones and not a look at version counters: writing through `.data` or numpy leaves the counter as it is, and one
        # copy of what a reward reads costs little beside the reward itself.
        arguments = {name: values[name].detach().clone() for name in self.arguments}
        batch = arguments[self.arguments[0]].shape[0]
        device = arguments[self.arguments[0]].device
        self._move_constants(device)
        try:
            with torch.no_grad(), device_of(arguments):
                result = self._function(**arguments)
        except (KeyboardInterrupt, TimeLimitError):
            raise
        except BaseException as error:  # noqa: BLE001  (generated code: whatever it raises is its own fault)
            raise RewardContractError("raised", _describe(error, self._filename)) from None
        total, components = self._checked_pair(result)
        checked_total = self._checked_total(total, batch).detach().to(device=device, dtype=torch.float32)
        checked = {name: self._checked_component(name, value, batch, device) for name, value in components.items()}
        self.component_names = tuple(checked)
        return checked_total, checked

    def begin(self, values: Mapping[str, Tensor], timeout_s: float) -> Callable[[], Result]:
        """See `Reward`. The call is made when its result is waited for."""

        def call() -> Result:
            # a reward finds torch as it does everywhere else
            with time_limit(timeout_s), torch.inference_mode(False):
                return self(values)

        return call

    def _move_constants(self, device: torch.device) -> None:
        """A source's top level ran on the CPU; the tensors that it left there follow the arguments."""
        names = getattr(self._function, "__globals__", {})
        for name, value in list(names.items()):
            if isinstance(value, Tensor) and value.device != device:
                names[name] = value.to(device)

    def _checked_pair(self, result: object) -> tuple[object, dict[Any, Any]]:
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            found = f"{len(result)} values" if isinstance(result, (tuple, list)) else type(result).__name__
            raise self._violation(
                f"returned {found}, expected (total, components)", "end with `return total, {'name': component}`"
            )
        total, components = result
        if not isinstance(components, dict):
            raise self._violation(
                f"the second value returned is {type(components).__name__}, expected a dict of tensors by name",
                "return the components as `{'name': component}`",
            )
        if len(components) > MOST_COMPONENTS:
            raise self._violation(
                f"there are {len(components)} components, expected at most {MOST_COMPONENTS}",
                "add up what belongs together",
            )
        return total, components

    def _checked_total(self, total: object, batch: int) -> Tensor:
        if not isinstance(total, Tensor):
            raise self._violation(
                f"the total is {type(total).__name__}, expected a tensor of shape ({batch},)", "return a tensor"
            )
        if tuple(total.shape) != (batch,):
            raise self._violation(
                f"the total has shape {tuple(total.shape)}, expected ({batch},)", _shape_hint(total, batch)
            )
        if not total.is_floating_point():
            raise self._violation(
                f"the total is of type {total.dtype}, expected a floating point tensor", "use `.float()`"
            )
        return total

    def _checked_component(self, name: object, value: object, batch: int, device: torch.device) -> Tensor:
        if not isinstance(name, str):
            raise self._violation(f"a component's name is {name!r}, expected a string", "use names such as 'forward'")
        if fault := component_fault(name):
            raise self._violation(*fault)
        if isinstance(value, (bool, int, float)):
            value = torch.tensor(float(value))
        if not isinstance(value, Tensor):
            raise self._violation(
                f"component {name!r} is {type(value).__name__}, expected a tensor of shape ({batch},)",
                "return a tensor",
            )
        if value.is_complex():
            raise self._violation(
                f"component {name!r} is of type {value.dtype}, expected real numbers", "use `.real` or `.abs()`"
            )
        if value.dim() == 0:
            value = value.expand(batch)
        if tuple(value.shape) != (batch,):
            raise self._violation(
                f"component {name!r} has shape {tuple(value.shape)}, expected ({batch},)", _shape_hint(value, batch)
            )
        return value.detach().to(device=device, dtype=torch.float32)

    def _violation(self, message: str, hint: str) -> RewardContractError:
        return RewardContractError("contract", f"line {self._return_line}: {_visible(message)}", hint)


def _shape_hint(value: Tensor, batch: int) -> str:
    if tuple(value.shape) == (batch, 1):
        return "use `.squeeze(-1)`, or index the last dimension with `[:, 0]`"
    if value.dim() == 0:
        return "a reduction without `dim=-1` has summed over the batch as well"
    return "reduce over the last dimension with `dim=-1`; the first dimension is the batch"


def _namespace(filename: str) -> dict[str, Any]:
    names = {name: getattr(typing, name) for name in _TYPING_NAMES}
    return {"__builtins__": builtins, "__name__": filename, "torch": torch, "math": math, "Tensor": Tensor, **names}


def _strip_script_decorators(tree: ast.Module) -> ast.FunctionDef | None:
    """Take `@torch.jit.*` off every function; returns the last top-level `compute_reward`."""
    found = None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = [
                item for item in node.decorator_list if not ast.unparse(item).startswith("torch.jit.")
            ]
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == FUNCTION_NAME:
            found = statement
    return found


def _last_return_line(definition: ast.FunctionDef) -> int:
    lines = [node.lineno for node in ast.walk(definition) if isinstance(node, ast.Return)]
    return max(lines, default=definition.lineno)


def _describe(error: BaseException, filename: str) -> str:
    """`line 7: IndexError: …`, the line being the last one of the reward itself on the way to the error."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == filename]
    where = f"line {lines[-1]}: " if lines else ""
    text = " ".join(str(error).split())
    return where + _visible(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def _visible(text: str) -> str:
    """The text with what stands in source for characters that cannot be seen: what a reward raises is shown in terminals, to which some are commands."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape", "backslashreplace").decode() for each in text
    )
