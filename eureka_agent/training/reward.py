"""A reward function from its source: compiled, bound to variables, called, checked."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import torch
from torch import Tensor

from eureka_agent.arguments import Binding, bind_arguments
from eureka_agent.errors import EurekaError, RewardLoadError
from eureka_agent.reward_names import (
    MOST_COMPONENTS,
    changed_names_fault,
    component_fault,
)
from eureka_agent.rewards import OBSERVATION_FUNCTION, RewardSpecification
from eureka_agent.simulation.user_modules import TimeLimitError, time_limit
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import Constant, QuaternionOrder, Variable
from eureka_agent.text import escape_unprintable
from eureka_agent.training.compiled_reward import FUNCTION_NAME, CompiledReward
from eureka_agent.training.observation import DesignedObservation, ObservationError
from eureka_agent.training.observation_trace import traced

OBSERVATION_HINT = "return one tensor of shape (batch, n), made of the variables by torch alone"
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

    @property
    def observation(self) -> DesignedObservation | None:
        """Observation that its source designs for the policy; None: the environment's own."""
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
        self.observation: DesignedObservation | None = None
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
        function = _loaded(code, FUNCTION_NAME)
        reward = cls(code, _bound(function, variables, allow_private, constants))
        if code.has_observation:
            reward.observation = _observation(code, variables, constants)
        return reward

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


def _loaded(code: CompiledReward, name: str) -> Callable[..., Any]:
    """A function of the source, after its top level. Raises RewardLoadError."""
    try:
        function = code.run(name)
    except (KeyboardInterrupt, TimeLimitError):
        raise
    except BaseException as error:  # noqa: BLE001  (generated code: whatever it raises is its own fault)
        what = f"{_describe(error, code.filename)} (while loading the source)"
        raise RewardLoadError(what, "correct the top level") from None
    if not callable(function):
        what = f"{name!r} is {type(function).__name__}, expected a function"
        raise RewardLoadError(what, "do not assign to its name")
    return function


def _bound(
    function: Callable[..., Any],
    variables: Sequence[Variable],
    allow_private: bool,
    constants: Sequence[Constant],
) -> Binding:
    binding = bind_arguments(function, variables, allow_private, RewardLoadError, constants)
    if not binding.variables:
        found = "no argument that is a variable" if binding.constants else "no argument"
        hint = "name the variables that it reads as arguments"
        raise RewardLoadError(f"{function.__name__} takes {found}", hint)
    return binding


def _observation(
    code: CompiledReward, variables: Sequence[Variable], constants: Sequence[Constant]
) -> DesignedObservation:
    """The observation of a source, whose function is called. Raises RewardLoadError."""
    function = _loaded(code, OBSERVATION_FUNCTION)
    binding = _bound(function, variables, False, constants)
    shapes = {each.name: each.shape for each in variables if not each.private}
    try:
        if unknown := [name for name in binding.variables if name not in shapes]:
            raise ObservationError(f"it reads {unknown[0]!r}: it gets the current values alone")
        read = {name: shapes[name] for name in binding.variables}
        program = traced(function, read, binding.constants)
        return DesignedObservation(program, shapes, confined=True)
    except (KeyboardInterrupt, TimeLimitError):
        raise
    except BaseException as error:  # noqa: BLE001  (generated code: whatever it raises is its own fault)
        own = isinstance(error, ObservationError)
        what = _describe(error, code.filename, named=not own)
        line, _, rest = what.partition(": ") if what.startswith("line ") else ("", "", what)
        told = f"{OBSERVATION_FUNCTION}: {rest}"
        raise RewardLoadError(f"{line}: {told}" if line else told, OBSERVATION_HINT) from None


def _shape_hint(value: Tensor, batch: int) -> str:
    if tuple(value.shape) == (batch, 1):
        return "use `.squeeze(-1)`, or index the last dimension with `[:, 0]`"
    if value.dim() == 0:
        return "a reduction without `dim=-1` has summed over the batch as well"
    return "reduce over the last dimension with `dim=-1`; the first dimension is the batch"


def _describe(error: BaseException, filename: str, named: bool = True) -> str:
    """`line 7: IndexError: …`, with the last line of the reward on the way to the error. `named`:
    with the error's type."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == filename]
    where = f"line {lines[-1]}: " if lines else ""
    name, text = type(error).__name__, " ".join(str(error).split())
    if not named:
        return where + escape_unprintable(text)
    return where + escape_unprintable(f"{name}: {text}" if text else name)
