"""Rewards and fitness from their source files. A language model wrote the reward: an allow-list has
checked it, the program's sandbox is around this process, and its builtins are restricted here."""

from __future__ import annotations
import __future__ as future

import ast
import builtins
import contextlib
import inspect
import math
import traceback
import typing
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from eureka_adapter.faults import Fault, RewardFault
from eureka_adapter.job import Job

PREVIOUS = "previous_"
MOST_TERMS = 64
_MODULES = ("__future__", "functools", "math", "torch", "typing")
_HELPER_MODULES = ("torch_jit_utils", "torch_utils")
"""Modules that published rewards import Isaac Gym's helper functions from."""
_BUILTINS = """abs all any bool dict divmod enumerate filter float frozenset int isinstance len list
map max min pow range repr reversed round set slice sorted str sum tuple zip ArithmeticError
AssertionError Exception IndexError KeyError RuntimeError TypeError ValueError ZeroDivisionError
""".split()  # noqa: SIM905


class SourceFunction:
    """A function from a source file, called with the variables and constants that it names."""

    def __init__(self, path: Path, name: str, job: Job, fault: Callable[..., Fault]) -> None:
        """Load the file and bind the arguments. Raises a `fault`, also in calls."""
        self.path, self.name, self._fault = path, name, fault
        self.line: int | None = None
        """Line of the function's last `return`."""
        try:
            self._function = self._load()
            parameters = inspect.signature(self._function).parameters
        except (Exception, SystemExit) as error:
            raise self._raised(error) from error
        constants = {each["name"]: each["value"] for each in job.description["constants"]}
        known = {*job.names, *(PREVIOUS + name for name in job.names)}
        self.arguments = tuple(sorted(known & parameters.keys()))
        """Variables, and `previous_<variable>`."""
        self._constants = {each: constants[each] for each in constants if each in parameters}
        for each, parameter in parameters.items():
            is_number = isinstance(parameter.default, (int, float))
            if not (is_number or each in known or each in constants):
                message = f"the argument {each!r} of {name} is neither variable nor constant"
                hint = f"take {', '.join(job.names)}, or one of them after {PREVIOUS!r}"
                raise fault(message, hint, self.line)

    def _load(self) -> Callable[..., Any]:
        """Run the top level, without decorators such as `@torch.jit.script`."""
        path = str(self.path)
        tree = ast.parse(self.path.read_text("utf-8"), path)  # noqa: TID251  (no threads here)
        for node in [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)]:
            node.decorator_list = []
            if node.name == self.name:
                returns = [each.lineno for each in ast.walk(node) if isinstance(each, ast.Return)]
                self.line = max(returns, default=node.lineno)
        given = {name: getattr(builtins, name) for name in _BUILTINS}
        namespace = {**self._helpers(), "__builtins__": {**given, "__import__": self._import}}
        namespace |= {name: getattr(typing, name) for name in ("Any", "Dict", "List", "Tuple")}
        namespace |= {"__name__": self.path.stem, "torch": torch, "math": math, "Tensor": Tensor}
        # without annotations, whose names need not be there
        exec(compile(tree, path, "exec", future.annotations.compiler_flag, True), namespace)
        if self.name not in namespace:
            raise self._fault(f"{self.path.name} has no function {self.name!r}, expected it there")
        return namespace[self.name]

    def _helpers(self) -> dict[str, Any]:
        """Isaac Gym's helper functions, from the file beside the reward."""
        path, namespace = self.path.with_name("reward_helpers.py"), {"__name__": "reward_helpers"}
        if path.is_file():
            exec(compile(path.read_text("utf-8"), str(path), "exec"), namespace)
        return {name: each for name, each in namespace.items() if not name.startswith("__")}

    def _import(self, name: str, _: Any, __: Any, names: Any, level: int) -> Any:
        """Import a module that rewards may use, or the helper functions beside them."""
        if name == "reward_helpers" or name.rpartition(".")[2] in _HELPER_MODULES:
            return SimpleNamespace(**self._helpers())
        if level or name.partition(".")[0] not in _MODULES:
            raise ImportError(f"{name!r} may not be imported, expected one of {_MODULES}")
        return __import__(name, None, None, names or (), 0)

    def __call__(self, values: Mapping[str, Tensor]) -> Any:
        """Result for values of shape (batch, *shape of the variable), unchecked."""
        device = next(iter(values.values())).device
        # new tensors belong to the values; versions of torch before 2 cannot be told
        is_told = device.type != "cpu" and hasattr(device, "__enter__")
        there: Any = device if is_told else contextlib.nullcontext()
        with torch.inference_mode(False), torch.no_grad(), there:
            copies = {name: values[name].clone() for name in self.arguments}
            try:
                return self._function(**copies, **self._constants)
            except (Exception, SystemExit) as error:
                raise self._raised(error) from error

    def _raised(self, error: BaseException) -> Fault:
        """Fault for what the source raised, with the last of its lines on the way to the error."""
        if isinstance(error, Fault):
            return error
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == str(self.path)]
        line = error.lineno if isinstance(error, SyntaxError) else (lines or [None])[-1]
        where = f"{self.path.name}, line {line}: " if line else ""
        return self._fault(f"{where}{type(error).__name__}: {error}", line=line)

    def series(self, what: str, value: Any, like: Tensor, spread: bool = False) -> Tensor:
        """Checked part of a result as float32 of shape (batch,), batch and device as `like`. With
        `spread` one number stands for all rows."""
        if spread and (isinstance(value, (int, float)) or getattr(value, "shape", None) == ()):
            value = torch.as_tensor(value).expand(len(like))
        found = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
        if found != (len(like),) or value.is_complex():
            message = f"{what} is {found}, expected a real tensor of shape ({len(like)},)"
            hint = "the first dimension is the batch: reduce the others with dim=-1"
            raise self._fault(message, hint, self.line)
        return value.to(device=like.device, dtype=torch.float32)


class Reward(SourceFunction):
    """`compute_reward` of a source file."""

    def __init__(self, path: Path, job: Job, training: str) -> None:
        """Load the file. Raises RewardFault, also in calls."""
        super().__init__(path, "compute_reward", job, partial(RewardFault, training=training))
        self.terms: tuple[str, ...] | None = None
        """Names of the terms, from the first call."""

    def __call__(self, values: Mapping[str, Tensor]) -> Tensor:
        """Total and terms, checked. Shape: (1 + terms, batch). Raises Fault where they are not
        finite because a variable is not, else RewardFault."""
        like, result = values["terminated"], super().__call__(values)
        if not (isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dict)):
            message = f"{self.name} returned {type(result).__name__}, expected (total, terms)"
            raise self._fault(message, "return `total, {'name': term}`", self.line)
        total, terms = result
        rows, names = [self.series("the total", total, like)], list(terms)
        for name, term in terms.items():
            rows.append(self.series(f"the term {name!r}", term, like, spread=True))
        self.terms = tuple(names) if self.terms is None else self.terms
        are_strings = all(isinstance(name, str) for name in names)
        if not are_strings or names != list(self.terms) or len(names) > MOST_TERMS:
            message = f"the terms are {names}, expected {list(self.terms)} as in the first call"
            hint = f"return the same terms in every call, at most {MOST_TERMS}"
            raise self._fault(message, hint, self.line)
        stacked = torch.stack(rows)
        if not bool(torch.isfinite(stacked).all()):
            bad = [name for name in self.arguments if not bool(values[name].isfinite().all())]
            if bad:
                raise Fault(f"the variables {bad} are not finite", "find the simulator's step")
            bad = [name for name, row in zip(("total", *names), rows) if not row.isfinite().all()]
            raise self._fault(f"{bad} are not finite", "keep every term bounded", self.line)
        return stacked
