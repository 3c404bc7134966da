"""Rewards and fitness from their source files. The files are not trusted: a reward comes from a
language model. An allow-list has checked it before, and the program's sandbox is around this
process; the builtins are restricted here on top of that."""

from __future__ import annotations

import ast
import builtins
import contextlib
import importlib
import importlib.util
import inspect
import math
import traceback
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from eureka_adapter.faults import EnvironmentFault, Fault, RewardFault

if typing.TYPE_CHECKING:
    from eureka_adapter.job import Job

PREVIOUS = "previous_"
MOST_TERMS = 64
_MODULES = ("__future__", "functools", "math", "torch", "typing")
_BUILTINS = """abs all any bool dict divmod enumerate filter float frozenset int isinstance len list
map max min pow range repr reversed round set slice sorted str sum tuple zip ArithmeticError
AssertionError Exception IndexError KeyError RuntimeError TypeError ValueError ZeroDivisionError
""".split()  # noqa: SIM905
    "abs",
    "all",
    "any",
    "bool",
    "dict",
    "divmod",
    "enumerate",
    "filter",
    "float",
    "frozenset",
    "int",
    "isinstance",
    "len",
    "list",
    "map",
    "max",
    "min",
    "pow",
    "range",
    "repr",
    "reversed",
    "round",
    "set",
    "slice",
    "sorted",
    "str",
    "sum",
    "tuple",
    "zip",
    "ArithmeticError",
    "AssertionError",
    "Exception",
    "IndexError",
    "KeyError",
    "RuntimeError",
    "TypeError",
    "ValueError",
    "ZeroDivisionError",
]


class SourceFunction:
    """A function from a source file, called with the variables and constants that it names."""

    def __init__(self, path: Path, name: str, job: Job, fault: type[Fault] = RewardFault) -> None:
        """Load the file and bind the arguments. Raises `fault`, also in calls."""
        self.path, self.name, self._fault = path, name, fault
        self.return_line: int | None = None
        function = self._load()
        numbers = {each["name"]: each["value"] for each in job.description["constants"]}
        self._constants: dict[str, float] = {}
        arguments = []
        for parameter in inspect.signature(function).parameters.values():
            if {parameter.name, parameter.name.removeprefix(PREVIOUS)} & {*job.names}:
                arguments.append(parameter.name)
            elif parameter.name in numbers:
                self._constants[parameter.name] = numbers[parameter.name]
            elif not isinstance(parameter.default, (int, float)):
                raise fault(
                    f"the argument {parameter.name!r} of {name} is no variable and no constant",
                    f"use one of {', '.join(job.names)}, with or without {PREVIOUS!r} before it",
                    self._definition_line,
                )
        self.arguments = tuple(arguments)
        """Variables, and `previous_<variable>`."""
        self._function = function

    def _load(self) -> Callable[..., Any]:
        """Run the top level, without decorators such as `@torch.jit.script`."""
        try:
            source = self.path.read_text("utf-8")
            tree = ast.parse(source, str(self.path))  # noqa: TID251  (no threads here)
            functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
            for node in functions:
                node.decorator_list = []
            found = [node for node in functions if node.name == self.name]
            if not found:
                raise self._fault(f"{self.path.name} defines no function {self.name!r}")
            self._definition_line = found[-1].lineno
            ends = [node.lineno for node in ast.walk(found[-1]) if isinstance(node, ast.Return)]
            self.return_line = max(ends, default=self._definition_line)
            given = {name: getattr(builtins, name) for name in _BUILTINS}
            namespace = {
                "__builtins__": {**given, "__import__": self._import},
                "__name__": self.path.stem,
                "torch": torch,
                "math": math,
                "Tensor": Tensor,
            }
            exec(compile(tree, str(self.path), "exec", dont_inherit=True), namespace)
        except Fault:
            raise
        except SyntaxError as error:
            message = f"{self.path.name} is not valid Python: {error.msg}"
            raise self._fault(message, line=error.lineno) from error
        except Exception as error:
            raise self._raised(error) from error
        return typing.cast("Callable[..., Any]", namespace[self.name])

    def _import(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: tuple[str, ...] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """Import for the source file: the modules that rewards may use, and the helpers beside."""
        if name == "reward_helpers" and level == 0:
            spec = importlib.util.spec_from_file_location(name, self.path.with_name(f"{name}.py"))
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
        if level or name.partition(".")[0] not in _MODULES:
            raise ImportError(f"{name!r} may not be imported, expected one of {_MODULES}")
        return __import__(name, None, None, fromlist or (), 0)

    def __call__(self, values: Mapping[str, Tensor]) -> Any:
        """Result for values of shape (batch, *shape of the variable), unchecked."""
        device = next(iter(values.values())).device
        # new tensors are made where the values are; older versions of torch cannot be told
        there = hasattr(device, "__enter__") and device.type != "cpu"
        with (
            torch.inference_mode(False),
            torch.no_grad(),
            device if there else contextlib.nullcontext(),
        ):
            copies = {name: values[name].clone() for name in self.arguments}
            try:
                return self._function(**copies, **self._constants)
            except (Exception, SystemExit) as error:
                raise self._raised(error) from error

    def _raised(self, error: BaseException) -> Fault:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == str(self.path)]
        where = f"{self.path.name}, line {lines[-1]}: " if lines else ""
        message = f"{where}{type(error).__name__}: {error}"
        return self._fault(message, line=lines[-1] if lines else None)

    def series(self, what: str, value: Any, like: Tensor, spread: bool = False) -> Tensor:
        """Checked part of a result as float32 of shape (batch,), batch and device as `like`. A
        number stands for all rows with `spread`."""
        if spread and isinstance(value, (int, float)):
            value = torch.full_like(like, float(value), dtype=torch.float32)
        elif spread and isinstance(value, Tensor) and value.dim() == 0:
            value = value.expand(len(like))
        if not isinstance(value, Tensor) or value.is_complex():
            found = value.dtype if isinstance(value, Tensor) else type(value).__name__
            raise self._fault(f"{what} is a {found}, expected a real tensor", "", self.return_line)
        if tuple(value.shape) != (len(like),):
            message = f"{what} has shape {tuple(value.shape)}, expected ({len(like)},)"
            hint = "the first dimension is the batch: reduce the others with dim=-1"
            raise self._fault(message, hint, self.return_line)
        return value.to(device=like.device, dtype=torch.float32)


class Reward(SourceFunction):
    """`compute_reward` of a source file."""

    def __init__(self, path: Path, job: Job) -> None:
        """Load the file. Raises RewardFault, also in calls."""
        super().__init__(path, "compute_reward", job)
        self.terms: tuple[str, ...] | None = None

    def __call__(self, values: Mapping[str, Tensor]) -> Tensor:
        """Total and terms, checked. Shape: (1 + terms, batch). Raises EnvironmentFault where they
        are not finite because a value is not."""
        like = values["terminated"]
        result = super().__call__(values)
        if not (isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dict)):
            message = f"{self.name} returned {type(result).__name__}, expected (total, terms)"
            raise RewardFault(message, "return `total, {'name': term}`", self.return_line)
        total, terms = result
        rows = [self.series("the total", total, like)]
        rows += [
            self.series(f"the term {name!r}", each, like, True) for name, each in terms.items()
        ]
        self.terms = self.terms or tuple(map(str, terms))
        if tuple(map(str, terms)) != self.terms or len(terms) > MOST_TERMS:
            message = f"the terms are {list(terms)}, expected {list(self.terms)} as at first"
            hint = f"return the same terms in every call, at most {MOST_TERMS}"
            raise RewardFault(message, hint, self.return_line)
        stacked = torch.stack(rows)
        if not bool(torch.isfinite(stacked).all()):
            check_finite({name: values[name] for name in self.arguments})
            bad = [
                name
                for name, row in zip(("total", *self.terms), stacked)
                if not bool(row.isfinite().all())
            ]
            message = f"{' and '.join(map(repr, bad))} is not finite"
            raise RewardFault(message, "keep every term bounded", self.return_line)
        return stacked


def check_finite(values: Mapping[str, Tensor]) -> None:
    """Raises EnvironmentFault for a variable that is not finite."""
    for name, value in values.items():
        if not bool(torch.isfinite(value).all()):
            raise EnvironmentFault(
                f"the variable {name!r} is not finite", "find the step of the simulator that it is"
            )
