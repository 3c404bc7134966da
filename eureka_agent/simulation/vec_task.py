"""VecTask: the Isaac Gym contract in torch, with named variables in place of a reward. A subclass
simulates `num_envs` copies of an environment in tensors whose first dimension is the batch."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from eureka_agent import task
from eureka_agent.errors import EnvironmentLoadError, did_you_mean
from eureka_agent.parameters import Distribution, check_distribution
from eureka_agent.simulation.drawing import Drawing
from eureka_agent.simulation.row_parameters import RowParameters, RowRandom
from eureka_agent.simulation.user_modules import place_of_function

TIME_OUT = "time_out"
"""Name of a truncation among the termination causes."""
SUCCEEDED = "succeeded"
"""Variable of an end by success, where an environment has such an end."""
ALWAYS_THERE = ("actions", "terminated", SUCCEEDED)
"""Variables of every environment; all are 0 right after a reset."""


def padded(rows: int, multiple: int) -> int:
    """`rows` rounded up to a multiple of `VecTask.row_multiple`."""
    return -(-rows // multiple) * multiple


def undeclared_cause(cls: type[VecTask], causes: Iterable[str]) -> EnvironmentLoadError:
    """The error for causes of which one is not declared."""
    declared = tuple(cls.termination_causes)
    unknown = next(str(cause) for cause in causes if cause not in declared)
    return EnvironmentLoadError(
        f"{place_of_function(cls)}{cls.__name__} ends episodes by {unknown!r}, which is not in"
        f" termination_causes {declared!r}",
        f"write `termination_causes = {(*declared, unknown)!r}` in the class, or correct the cause;"
        f" {did_you_mean(unknown, declared)}",
    )


def _any(rows: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(rows)).any(dim=0) if len(rows) > 1 else rows[0]


class Variables(Mapping[str, Tensor]):
    """Variables by name; a function in place of a value is called at the first access."""

    def __init__(self, values: Mapping[str, Tensor | Callable[[], Tensor]]) -> None:
        self._values = dict(values)

    def __getitem__(self, name: str) -> Tensor:
        value = self._values[name]
        if not isinstance(value, Tensor) and callable(value):
            value = self._values[name] = value()
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


@dataclass
class Transition:
    """Result of a control step, before any reset. Tensors are live views: copy what must last."""

    observations: Tensor
    """Observations of the state reached, at an end too. Shape: (num_envs, num_observations)."""
    variables: Mapping[str, Tensor]
    """Values of the state reached, and its action. Shape: (num_envs, *variable.shape), float32."""
    terminated: Tensor
    """Ends before the time limit. Shape: (num_envs,), bool."""
    truncated: Tensor
    """Ends by the time limit alone; the state's value still counts. Shape: (num_envs,), bool."""
    causes: Mapping[str, Tensor]
    """Termination causes by name. Shape of each: (num_envs,), bool."""


class VecTask(ABC):
    """Base of batched environments: Isaac Gym's buffers, hooks and `step`, in torch."""

    variables: ClassVar[tuple[task.Variable, ...]] = ()
    """Variables for rewards, beside `actions`, `terminated` and perhaps `succeeded`."""
    constants: ClassVar[tuple[task.Constant, ...]] = ()
    """Scalar constants that a reward may name as arguments; Python floats."""
    parameters: ClassVar[tuple[task.Parameter, ...]] = ()
    """Properties that may differ between episodes, with their safe ranges."""
    quaternion_order: ClassVar[task.QuaternionOrder] = "wxyz"
    """Order of its quaternions, for the helper functions of rewards; Isaac Gym's is `"xyzw"`."""
    observation_channels: ClassVar[tuple[task.Channel, ...]] = ()
    """Names and units of all entries of an observation, in order, for `eureka export`."""
    action_channels: ClassVar[tuple[task.Channel, ...]] = ()
    """Names and units of all entries of an action; the doc explains choices."""
    num_observations: int
    num_actions: int
    action_choices: ClassVar[tuple[int, ...]] = ()
    """Number of choices for each of `num_actions`: indices from 0. Empty: actions in [-1, 1]."""
    max_episode_length: int
    """Control steps after which an episode is truncated."""
    control_dt: float
    """Seconds between two control steps."""
    episode_source: ClassVar[str] = ""
    """Origin of these two, where they were read from a simulator or guessed; else empty."""
    random_numbers: ClassVar[str] = "self.random, which is seeded per row"
    """Source of random numbers, in the words of a hint."""
    termination_causes: ClassVar[tuple[str, ...]] = ("terminated",)
    """Causes that `compute_termination` may give."""
    success_causes: ClassVar[tuple[str, ...]] = ()
    """The `termination_causes` that are successes; the others are failures."""
    termination_conditions: Mapping[str, str] = {}
    """Meaning of causes: `{"fell": "torso_height below 0.3 m"}`; an instance may have its own."""
    masses_and_sizes: tuple[str, ...] = ()
    """Masses and the like with units: `"pole 0.1 kg, 1 m long"`; an instance may have its own."""
    restorable: ClassVar[bool] = True
    """True where `row_state` holds a row's state; else an interrupted training starts over."""
    row_multiple: ClassVar[int] = 32
    """Distance of rows with bitwise equal results: twice the widest SIMD register in floats, as
    torch rounds a remainder differently. 1 where no tensor operation calculates."""
    device_types: ClassVar[tuple[str, ...]] = ("cpu",)
    """Types of torch devices that it runs on; with `"cuda"` a GPU is used where there is one."""
    gpu_modules: ClassVar[tuple[str, ...]] = ()
    """Further Python modules that it needs on a GPU."""

    caption_variables: ClassVar[tuple[str, ...]] = ()
    """Arguments of `caption_codes`, by name, also `previous_<variable>`; empty: it has no
    captions."""

    _remarks: ClassVar[tuple[str, ...]] = ()
    """Remarks on this class that a search makes at its start."""

    def __init__(self, num_envs: int, device: torch.device | str = "cpu", seed: int = 0) -> None:
        """Called first by a subclass, with `num_observations` and `num_actions` set."""
        self.num_envs = num_envs
        self.device = torch.device(device)
        self.random = RowRandom(num_envs, self.device, seed)
        sizes = num_envs, self.num_actions
        self._row_parameters = RowParameters(self.parameters, *sizes, self.device, seed)
        self.parameter_values: Mapping[str, Tensor] = self._row_parameters.values
        """Values of the parameters in each row's episode. Shape of each: (num_envs,)."""
        self.obs_buf = torch.zeros(num_envs, self.num_observations, device=self.device)
        self.rew_buf = torch.zeros(num_envs, device=self.device)
        self.reset_buf = torch.ones(num_envs, dtype=torch.bool, device=self.device)
        self.progress_buf = torch.zeros(num_envs, dtype=torch.int64, device=self.device)
        self.actions = torch.zeros(num_envs, self.num_actions, device=self.device)
        self.terminated_buf = torch.zeros(num_envs, dtype=torch.bool, device=self.device)
        if self.success_causes:
            self.succeeded_buf = torch.zeros(num_envs, dtype=torch.bool, device=self.device)
        self.resets_by_mask = self.device.type != "cpu" and self.restorable
        """True where `reset_done` uses a mask instead of reading which rows ended."""
        self.active_rows = num_envs
        """Number of rows in use, set by the trainer; a simulator may skip the others."""
        self.skipped_rows: Tensor | None = None
        """Further unused rows, bool, shape (num_envs,), set by an evaluation when episodes end."""
        self.extras: dict[str, Any] = {}
        self._constants: frozenset[str] = frozenset()
        """Tensor attributes whose length equals the number of rows by chance."""
        windowed = (each for each in self.variables if each.window)
        shapes = {each.name: (num_envs, each.window, *each.shape) for each in windowed}
        self._windows = {
            name: torch.zeros(size, device=self.device) for name, size in shapes.items()
        }
        """Last values of variables, from the oldest on. Shape: (num_envs, window, *shape)."""

    # ── written by a subclass ─────────────────────────────────────────────────────────────────────

    @abstractmethod
    def pre_physics_step(self, actions: Tensor) -> None:
        """Turn actions, as `applied` gives them, into forces. Shape: (num_envs, num_actions)."""

    def simulate(self) -> None:  # noqa: B027
        """Advance the physics by `control_dt`, unless `pre_physics_step` does."""

    @abstractmethod
    def compute_observations(self) -> None:
        """Fill `self.obs_buf`, shape (num_envs, num_observations), from the state."""

    @abstractmethod
    def compute_variables(self) -> Mapping[str, Tensor | Callable[[], Tensor]]:
        """Values of all `self.variables`, shape (num_envs, *variable.shape), float32, or functions
        without arguments that return them, called if they are read."""

    def compute_termination(self) -> Tensor | dict[str, Tensor]:
        """Rows whose episode ends here, bool, shape (num_envs,); or such tensors by cause."""
        return torch.zeros(self.num_envs, dtype=torch.bool, device=self.device)

    def compute_truncation(self) -> Tensor:
        """Rows whose episode is truncated, bool, shape (num_envs,)."""
        return self.progress_buf >= self.max_episode_length

    @classmethod
    def caption_codes(cls, values: Mapping[str, Tensor]) -> Tensor:
        """Captions of states as codes, int64 from 0 to 2²⁴ − 1, shape (batch,), from the
        `caption_variables`. It reads each row for itself."""
        raise NotImplementedError(f"{cls.__name__} has no `caption_codes`")

    @classmethod
    def caption(cls, code: int) -> str:
        """A code's words for a model, at most 200 characters."""
        raise NotImplementedError(f"{cls.__name__} has no `caption`")

    def draw(self, row: int) -> Drawing:
        """A plain drawing of the row's state, for videos, unless a renderer makes them."""
        raise NotImplementedError(f"{type(self).__name__} has no `draw`")

    def parameters_changed(self, env_ids: Tensor) -> None:  # noqa: B027
        """Take over `parameter_values` of the rows `env_ids`; called when they change, before
        `reset_idx`, and never where only defaults are used."""

    @abstractmethod
    def reset_idx(self, env_ids: Tensor) -> None:
        """Set the rows `env_ids` (int64) to a start state; numbers come from `self.random`."""

    # ── called by the trainer and Isaac Gym's users ───────────────────────────────────────────────

    @classmethod
    def create(
        cls, num_envs: int, device: torch.device | str, seed: int, options: Mapping[str, Any]
    ) -> VecTask:
        """Make an instance; `options` are keyword arguments. Raises EnvironmentLoadError."""
        try:
            inspect.signature(cls).bind(num_envs, device, seed, **options)
        except TypeError as error:
            raise EnvironmentLoadError(
                f"{cls.__name__} cannot be made with the task's options {dict(options)!r}: {error}",
                "`options` of a Task are keyword arguments of the environment's __init__, after"
                " num_envs, device and seed",
            ) from None
        return cls(num_envs, device, seed, **options)

    @classmethod
    def own_tasks(cls) -> tuple[dict[str, task.Task], dict[str, str]]:
        """Tasks of an environment without a folder, and sources of their baselines by kind."""
        return {}, {}

    @classmethod
    def channels_of_action(cls) -> tuple[task.Channel, ...]:
        """`action_channels`, or those of the physics."""
        return cls.action_channels

    @classmethod
    def all_variables(cls) -> tuple[task.Variable, ...]:
        """`variables`, preceded by those of every environment."""
        good = " or ".join(cls.success_causes)
        failures = [each for each in cls.termination_causes if each not in cls.success_causes]
        doc = "1 where the episode ends here by failure, else 0 (a time-out is not a failure)"
        if good:
            doc = (
                f"1 where the episode ends here by failure ({' or '.join(failures) or 'none can'}),"
                f" else 0 (an end by {good} is a success, a time-out neither)"
            )
        ends = [task.Variable("terminated", (), "1", "-", doc, (0.0, 1.0))]
        if good:
            doc = f"1 where the episode ends here by success ({good}), else 0"
            ends.append(task.Variable(SUCCEEDED, (), "1", "-", doc, (0.0, 1.0)))
        windows = (task.window_of(each) for each in cls.variables if each.window)
        return (cls._action_variable(), *ends, *cls.variables, *windows)

    @classmethod
    def _action_variable(cls) -> task.Variable:
        """The variable `actions`; for a single choice it is a scalar."""
        if not cls.action_choices:
            doc = "action applied in this step, after clipping; 0 right after a reset"
            return task.Variable("actions", (cls.num_actions,), "1", "joint", doc, (-1.0, 1.0))
        words = "; ".join(each.doc for each in cls.channels_of_action() if each.doc)
        single = cls.num_actions == 1
        doc = (
            f"{'choice' if single else 'choices'} made in this step, a whole number"
            f"{' each' * (not single)}{': ' + words if words else ''}; 0 right after a reset"
        )
        most = float(max(cls.action_choices) - 1)
        shape = () if single else (cls.num_actions,)
        return task.Variable("actions", shape, "1", "-", doc, (0.0, most) if most else None)

    def applied(self, actions: Tensor) -> Tensor:
        """Actions clipped to [-1, 1], or nearest choices; shape of both (num_envs, num_actions)."""
        if not self.action_choices:
            return actions.clamp(-1.0, 1.0)
        pairs = zip(actions.round().unbind(dim=-1), self.action_choices, strict=True)
        return torch.stack([column.clamp(0.0, float(n - 1)) for column, n in pairs], dim=-1)

    @classmethod
    def actions_from(cls, uniform: Tensor) -> Tensor:
        """Equally likely actions from uniform numbers in [0, 1). Shape: (…, num_actions)."""
        if not cls.action_choices:
            return 2.0 * uniform - 1.0
        return (uniform * uniform.new_tensor(cls.action_choices)).floor()

    def advance(self, actions: Tensor) -> Transition:
        """Make a control step of all rows, without resets. Shape: (num_envs, num_actions)."""
        self.actions = self.applied(actions)
        self.pre_physics_step(self._row_parameters.delayed(self.actions))
        self.simulate()
        self.progress_buf += 1
        ended = self.compute_termination()
        causes = ended if isinstance(ended, dict) else {self.termination_causes[0]: ended}
        if not causes.keys() <= set(self.termination_causes):
            raise undeclared_cause(type(self), causes)
        terminated = _any(list(causes.values()))
        if self.success_causes:
            causes = self._tell_successes(causes)
        truncated = self.compute_truncation() & ~terminated
        self.terminated_buf = terminated
        self.reset_buf = terminated | truncated
        self.compute_observations()
        self._move_windows()
        return Transition(self.obs_buf, self.read_variables(), terminated, truncated, causes)

    def read_variables(self) -> Mapping[str, Tensor]:
        """All variables of the current state, as live views until the next step or reset."""
        ends: dict[str, Callable[[], Tensor]] = {"terminated": self.terminated_buf.float}
        if self.success_causes:
            ends = {
                "terminated": lambda: (self.terminated_buf & ~self.succeeded_buf).float(),
                SUCCEEDED: self.succeeded_buf.float,
            }
        # a single choice is a scalar variable
        actions = self.actions[:, 0] if len(self.action_choices) == 1 else self.actions
        own = self.compute_variables()
        return Variables({"actions": actions, **ends, **own, **self._named_windows()})

    def _named_windows(self) -> dict[str, Tensor]:
        return {name + task.WINDOW_SUFFIX: values for name, values in self._windows.items()}

    def _move_windows(self) -> None:
        """Add the current values to the windows, which drop their oldest ones."""
        if self._windows:
            now = Variables(self.compute_variables())
            for name, values in self._windows.items():
                self._windows[name] = torch.cat([values[:, 1:], now[name].unsqueeze(1)], dim=1)

    def _fill_windows(self, env_ids: Tensor) -> None:
        if self._windows:
            now = Variables(self.compute_variables())
            for name, values in self._windows.items():
                kind = getattr(now[name], "dtype", type(now[name]).__name__)
                if kind != values.dtype:
                    raise EnvironmentLoadError(
                        f"variable {name!r}, which has a window, is of type {kind}, expected"
                        f" {values.dtype}",
                        f"convert it with .to({values.dtype})",
                    )
                values[env_ids] = now[name][env_ids].unsqueeze(1).expand_as(values[env_ids])

    def _tell_successes(self, causes: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Note rows that end by success alone; return the causes, failures first."""
        failures = {name: rows for name, rows in causes.items() if name not in self.success_causes}
        successes = {name: rows for name, rows in causes.items() if name in self.success_causes}
        nowhere = torch.zeros_like(next(iter(causes.values())), dtype=torch.bool)
        succeeded, failed = (_any([nowhere, *found.values()]) for found in (successes, failures))
        self.succeeded_buf = succeeded & ~failed
        return {**failures, **successes}

    def reset_done(self) -> Tensor:
        """Reset the rows whose episode ended in the last `advance`; return all observations."""
        if self.resets_by_mask:
            self.reset_masked(self.reset_buf != 0)
            return self.obs_buf
        env_ids = self.reset_buf.nonzero().squeeze(-1)
        if len(env_ids):
            self.reset_rows(env_ids)
        return self.obs_buf

    def reset_rows(self, env_ids: Tensor) -> None:
        """Start a new episode in the rows `env_ids` (int64) and refresh the observations."""
        for buffer in (self.actions, self.terminated_buf, self.progress_buf, self.reset_buf):
            buffer.index_fill_(0, env_ids, 0)
        if self.success_causes:
            self.succeeded_buf.index_fill_(0, env_ids, 0)
        self._row_parameters.draw(env_ids)
        self._tell_parameters(env_ids)
        self.reset_idx(env_ids)
        self.compute_observations()
        self._fill_windows(env_ids)

    def reset_masked(self, mask: Tensor) -> None:
        """`reset_rows` of rows in `mask` (bool, (num_envs,)), bitwise equal, without reading the
        mask: every row is reset, and those outside the mask are restored."""
        before = {name: value.clone() for name, value in self.row_tensors().items()}
        all_rows = torch.arange(self.num_envs, device=self.device)
        self.reset_rows(all_rows)
        for name, value in self.row_tensors().items():
            rows = mask.view(-1, *([1] * (value.dim() - 1)))
            value.copy_(torch.where(rows, value, before[name]))
        self._tell_parameters(all_rows)

    def seed_rows(self, env_ids: Tensor, seeds: Tensor) -> None:
        """Restart random streams before `reset_rows`. `seeds`: int64, shape (len(env_ids),)."""
        self.random.reseed(env_ids, seeds)
        self._row_parameters.reseed(env_ids, seeds)

    def set_parameters(self, env_ids: Tensor, distribution: Distribution) -> None:
        """Draw the parameters of the rows `env_ids` (int64) from `distribution` at each reset from
        the next one on; the others are at their defaults. Raises ParameterError for an unknown name
        or bounds outside of the safe range."""
        check_distribution(distribution, self.parameters)
        self._row_parameters.set(env_ids, distribution)

    def _tell_parameters(self, env_ids: Tensor) -> None:
        """Have the subclass take over values that may differ from the defaults."""
        if self._row_parameters.are_drawn:
            self.parameters_changed(env_ids)

    def row_state(self, env_ids: Tensor) -> dict[str, Tensor]:
        """Copy the state of rows `env_ids` (int64), shape (len(env_ids), …), after `reset_done`."""
        return {name: value[env_ids].clone() for name, value in self.row_tensors().items()}

    def load_row_state(self, env_ids: Tensor, state: Mapping[str, Tensor]) -> None:
        """Restore a `row_state` of any instance, in any rows; they continue bit for bit."""
        for name, value in self.row_tensors().items():
            value[env_ids] = state[name].to(value)
        self._row_parameters.note_loaded()
        self._tell_parameters(env_ids)

    def row_tensors(self) -> dict[str, Tensor]:
        """Live tensors of the state: attributes whose first dimension is the number of rows, and
        the random streams. A subclass with other state adds it here as views, or sets
        `restorable = False`."""
        own = {
            name: value
            for name, value in vars(self).items()
            if isinstance(value, Tensor)
            and value.dim() > 0
            and len(value) == self.num_envs
            and name not in self._constants
            and name != "skipped_rows"  # not part of a row's state
        }
        drawn = self._row_parameters.row_tensors()
        streams = {f"random.{name}": value for name, value in self.random.row_tensors().items()}
        return own | self._named_windows() | drawn | streams

    def tell_rows_from_constants(self, other: VecTask) -> None:
        """Exclude tensors from `row_tensors` whose length does not depend on the number of rows,
        before `row_state`: eight joints have eight gains."""
        found = (item for item in vars(other).items() if isinstance(item[1], Tensor))
        lengths = {name: len(value) for name, value in found if value.dim()}
        fixed = (name for name, length in lengths.items() if length != other.num_envs)
        self._constants = frozenset(fixed)

    def reset(self) -> dict[str, Tensor]:
        """Start a new episode in every row. Isaac Gym's `reset`."""
        self.reset_rows(torch.arange(self.num_envs, device=self.device))
        return {"obs": self.obs_buf}

    def step(self, actions: Tensor) -> tuple[dict[str, Tensor], Tensor, Tensor, dict[str, Any]]:
        """Isaac Gym's `step`: observations, zeros for rewards, `reset_buf` and `extras`."""
        transition = self.advance(actions)
        done = self.reset_buf.clone()
        self.extras["time_outs"] = transition.truncated.clone()
        values = transition.variables.items()
        self.extras["variables"] = {name: value.clone() for name, value in values}
        self.reset_done()
        return {"obs": self.obs_buf}, self.rew_buf, done, self.extras

    def close(self) -> None:  # noqa: B027  (optional)
        """Free the simulator's resources."""
