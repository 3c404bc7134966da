"""VecTask: the Isaac Gym contract in torch, with named variables in place of a reward.

A subclass simulates `num_envs` copies of one environment in tensors whose first dimension is the
batch. It writes `pre_physics_step`, `simulate`, `compute_observations`, `compute_variables`,
`compute_termination` and `reset_idx`, and knows nothing of rewards.
"""

from __future__ import annotations

import difflib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from eureka_agent.errors import EnvironmentLoadError
from eureka_agent.simulation.random import RowRandom
from eureka_agent.simulation.user_modules import place_of_function
from eureka_agent.task import Channel, Constant, QuaternionOrder, Task, Variable

_PACKAGE = __name__.partition(".")[0]
TIME_OUT = "time_out"
"""Name under which a truncation is counted among the termination causes."""
SUCCEEDED = "succeeded"
"""The variable that tells of an end by success, of environments that have such an end."""


def padded(rows: int, multiple: int) -> int:
    """Rows that are taken up by so many in use: the next ones begin at a multiple of
    `VecTask.row_multiple`."""
    return -(-rows // multiple) * multiple


def undeclared_cause(cls: type[VecTask], causes: Iterable[str]) -> EnvironmentLoadError:
    """The error for causes of which one is not declared."""
    declared = tuple(cls.termination_causes)
    unknown = next(str(cause) for cause in causes if cause not in declared)
    # the program's own compute_termination has no line that anyone could mend: then it is the class
    hooks = {
        "compute_termination": cls.compute_termination,
        "compute_failures": getattr(cls, "compute_failures", None),
    }
    own = {
        name: hook
        for name, hook in hooks.items()
        if hook is not None
        and hook.__module__.partition(".")[0] != _PACKAGE
        and repr(unknown)[1:-1] in _source(hook)
    }
    name, place = next(iter(own.items()), (cls.__name__, cls))
    what = f"{name} gave the cause {unknown!r}" if own else f"{name} ends episodes by {unknown!r}"
    near = difflib.get_close_matches(unknown, declared, n=1)
    return EnvironmentLoadError(
        f"{place_of_function(place)}{what}, which is not in termination_causes {declared!r}",
        f"write `termination_causes = {(*declared, unknown)!r}` in the class {cls.__name__}"
        + (f", or correct the cause: did you mean {near[0]!r}?" if near else ""),
    )


def _source(function: Callable[..., object]) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return ""


def _any(rows: Sequence[Tensor]) -> Tensor:
    """Rows in which one of several bool tensors is true."""
    return torch.stack(list(rows)).any(dim=0) if len(rows) > 1 else rows[0]


class Variables(Mapping[str, Tensor]):
    """Variables by name. A value that is given as a function is computed when it is read for the
    first time."""

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
    """What one control step gave, read before any row is reset. Tensors are live views: copy what
    must outlast a reset."""

    observations: Tensor
    """Shape: (num_envs, num_observations). Of the state reached, also where the episode ended
    there."""
    variables: Mapping[str, Tensor]
    """Shape: (num_envs, *variable.shape), float32. Of the state reached, and the action that led to
    it."""
    terminated: Tensor
    """Shape: (num_envs,), bool. The episode ended by what happened in it."""
    truncated: Tensor
    """Shape: (num_envs,), bool. The episode ended by its length alone; the state's value still
    counts."""
    causes: Mapping[str, Tensor]
    """Shape of each: (num_envs,), bool. The termination causes by name."""


class VecTask(ABC):
    """Base of batched environments. Isaac Gym's buffers, hooks and `step`; torch tensors in and
    out."""

    variables: ClassVar[tuple[Variable, ...]] = ()
    """Variables that a reward may read, beside `actions` and `terminated`, which every environment
    has, and `succeeded`, which one with `success_causes` has."""
    constants: ClassVar[tuple[Constant, ...]] = ()
    """Scalar constants that a reward may name as arguments; they arrive as Python floats."""
    quaternion_order: ClassVar[QuaternionOrder] = "wxyz"
    """Order in its variables that are quaternions, which the helper functions of rewards work on;
    `"xyzw"` is Isaac's."""
    observation_channels: ClassVar[tuple[Channel, ...]] = ()
    """Names and units of the observation's numbers, all of them in their order: `eureka export`
    writes them beside the policy."""
    action_channels: ClassVar[tuple[Channel, ...]] = ()
    """The same of the action's; of choices the doc says what each one does."""
    num_observations: int
    num_actions: int
    action_choices: ClassVar[tuple[int, ...]] = ()
    """Numbers of choices, one for each of the `num_actions`, where these are choices: an action is
    then the index of one, from 0. Empty: actions are continuous, in [-1, 1]."""
    max_episode_length: int
    """Control steps after which an episode is truncated."""
    control_dt: float
    """Seconds between two control steps."""
    episode_source: ClassVar[str] = ""
    """Origin of these two, where they were read from a simulator or guessed; empty where the class
    says them."""
    random_numbers: ClassVar[str] = "self.random, which is seeded per row"
    """Source of its random numbers, in the words of a hint."""
    termination_causes: ClassVar[tuple[str, ...]] = ("terminated",)
    """Names that `compute_termination` may give, for reports."""
    success_causes: ClassVar[tuple[str, ...]] = ()
    """The `termination_causes` that are successes; the others are failures."""
    termination_conditions: Mapping[str, str] = {}
    """Meaning of each cause, in words with the number, for designers: `{"fell": "torso_height below
    0.3 m"}`. An instance may have its own."""
    masses_and_sizes: tuple[str, ...] = ()
    """Masses, lengths and the like with their units, a part each: `"pole 0.1 kg, 1 m long"`. An
    instance may have its own."""
    restorable: ClassVar[bool] = True
    """Whether `row_state` holds all that a row's future depends on. Where it does not, a training
    that was interrupted starts over."""
    row_multiple: ClassVar[int] = 32
    """Rows whose place is a multiple of this apart come out the same to the bit. Torch takes twice
    a SIMD register of floats at a time, 32 where the registers are the widest, and rounds what is
    left over differently. 1 where no tensor operation calculates."""
    device_types: ClassVar[tuple[str, ...]] = ("cpu",)
    """Types of torch devices on which it runs; with `"cuda"` among them it is put on a GPU where
    there is one."""
    gpu_modules: ClassVar[tuple[str, ...]] = ()
    """Python modules without which it does not run on a GPU, beside those that it needs
    anywhere."""

    def __init__(self, num_envs: int, device: torch.device | str = "cpu", seed: int = 0) -> None:
        """A subclass calls this first (it needs `num_observations` and `num_actions`), then makes
        its own state tensors."""
        self.num_envs = num_envs
        self.device = torch.device(device)
        self.random = RowRandom(num_envs, self.device, seed)
        self.obs_buf = torch.zeros(num_envs, self.num_observations, device=self.device)
        self.rew_buf = torch.zeros(num_envs, device=self.device)
        self.reset_buf = torch.ones(num_envs, dtype=torch.bool, device=self.device)
        self.progress_buf = torch.zeros(num_envs, dtype=torch.int64, device=self.device)
        self.actions = torch.zeros(num_envs, self.num_actions, device=self.device)
        self.terminated_buf = torch.zeros(num_envs, dtype=torch.bool, device=self.device)
        if self.success_causes:
            self.succeeded_buf = torch.zeros(num_envs, dtype=torch.bool, device=self.device)
        self.resets_by_mask = self.device.type != "cpu" and self.restorable
        """Whether `reset_done` leaves it to the device which rows those are, in place of asking it.
        Costs more than an answer does on a CPU."""
        self.active_rows = num_envs
        """Rows from this one on are in nobody's use; a simulator may leave them as they are. The
        trainer sets it."""
        self.skipped_rows: Tensor | None = None
        """Further rows that are in nobody's use, bool, shape (num_envs,). An evaluation sets it,
        where episodes are over."""
        self.extras: dict[str, Any] = {}
        self._constants: frozenset[str] = frozenset()
        """Tensor attributes that have as many entries as there are rows by chance."""

    # ── what a subclass writes ────────────────────────────────────────────────────────────────────

    @abstractmethod
    def pre_physics_step(self, actions: Tensor) -> None:
        """Turn actions into forces or targets. Shape: (num_envs, num_actions), already clipped to
        [-1, 1], or whole numbers below `action_choices`."""

    def simulate(self) -> None:  # noqa: B027
        """Advance the physics by `control_dt`. A task may do it in `pre_physics_step` instead."""

    @abstractmethod
    def compute_observations(self) -> None:
        """Fill `self.obs_buf`, shape (num_envs, num_observations), from the state."""

    @abstractmethod
    def compute_variables(self) -> Mapping[str, Tensor | Callable[[], Tensor]]:
        """The value of every variable in `self.variables`, by name. Shape of each: (num_envs,
        *variable.shape), float32.

        In place of a tensor there may be a function without arguments that gives it: a training
        calls it only for what its rewards read.
        """

    def compute_termination(self) -> Tensor | dict[str, Tensor]:
        """Rows whose episode ends here, bool, shape (num_envs,); or several such tensors by
        cause."""
        return torch.zeros(self.num_envs, dtype=torch.bool, device=self.device)

    def compute_truncation(self) -> Tensor:
        """Rows whose episode is cut short for another reason than what happened in it, bool, shape
        (num_envs,)."""
        return self.progress_buf >= self.max_episode_length

    @abstractmethod
    def reset_idx(self, env_ids: Tensor) -> None:
        """Set the rows `env_ids` (int64) to a start state; random numbers come from
        `self.random.uniform(env_ids, count)`."""

    # ── what the trainer and Isaac Gym's users call ───────────────────────────────────────────────

    @classmethod
    def create(
        cls, num_envs: int, device: torch.device | str, seed: int, options: Mapping[str, Any]
    ) -> VecTask:
        """An instance for a task with these `options`: keyword arguments of the constructor. Raises
        EnvironmentLoadError."""
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
    def own_tasks(cls) -> tuple[dict[str, Task], dict[str, str]]:
        """Tasks of an environment that comes without a folder of them, and sources of their
        baselines by kind."""
        return {}, {}

    @classmethod
    def channels_of_action(cls) -> tuple[Channel, ...]:
        """`action_channels`, or what the physics itself says of them."""
        return cls.action_channels

    @classmethod
    def all_variables(cls) -> tuple[Variable, ...]:
        """`variables`, preceded by the ones that every environment has."""
        actions = cls._action_variable()
        terminated = Variable(
            "terminated",
            (),
            "1",
            "-",
            "1 where the episode ends here by failure, else 0 (a time-out is not a failure)",
            (0.0, 1.0),
        )
        if not cls.success_causes:
            return (actions, terminated, *cls.variables)
        good = " or ".join(cls.success_causes)
        bad = " or ".join(
            cause for cause in cls.termination_causes if cause not in cls.success_causes
        )
        failure = (
            f"1 where the episode ends here by failure ({bad or 'none can'}), else 0 (an end by"
            f" {good} is a success, a time-out neither)"
        )
        success = f"1 where the episode ends here by success ({good}), else 0"
        return (
            actions,
            replace(terminated, doc=failure),
            Variable(SUCCEEDED, (), "1", "-", success, (0.0, 1.0)),
            *cls.variables,
        )

    @classmethod
    def _action_variable(cls) -> Variable:
        """The variable `actions`: of a single choice a number for each row."""
        if not cls.action_choices:
            return Variable(
                "actions",
                (cls.num_actions,),
                "1",
                "joint",
                "action applied in this step, after clipping; 0 right after a reset",
                (-1.0, 1.0),
            )
        words = "; ".join(each.doc for each in cls.channels_of_action() if each.doc)
        single = cls.num_actions == 1
        doc = (
            f"{'choice' if single else 'choices'} made in this step, a whole number"
            f"{' each' * (not single)}{': ' + words if words else ''}; 0 right after a reset"
        )
        most = float(max(cls.action_choices) - 1)
        shape = () if single else (cls.num_actions,)
        return Variable("actions", shape, "1", "-", doc, (0.0, most) if most else None)

    def applied(self, actions: Tensor) -> Tensor:
        """Actions as they take effect: clipped to [-1, 1], or the nearest choices. Shape of both:
        (num_envs, num_actions)."""
        if not self.action_choices:
            return actions.clamp(-1.0, 1.0)
        columns = actions.round().unbind(dim=-1)
        bounds = (float(count - 1) for count in self.action_choices)
        return torch.stack(
            [column.clamp(0.0, most) for column, most in zip(columns, bounds, strict=True)], dim=-1
        )

    @classmethod
    def actions_from(cls, uniform: Tensor) -> Tensor:
        """Actions that are equally likely, from numbers drawn uniformly in [0, 1). Shape of both:
        (…, num_actions)."""
        if not cls.action_choices:
            return 2.0 * uniform - 1.0
        return (uniform * uniform.new_tensor(cls.action_choices)).floor()

    def advance(self, actions: Tensor) -> Transition:
        """One control step of all rows, without resetting any. `actions`: shape (num_envs,
        num_actions), as `applied` takes them."""
        self.actions = self.applied(actions)
        self.pre_physics_step(self.actions)
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
        return Transition(self.obs_buf, self.read_variables(), terminated, truncated, causes)

    def read_variables(self) -> Mapping[str, Tensor]:
        """All variables of the current state, with those that every environment has. Live views, to
        be read before the next step or reset."""
        ends: dict[str, Callable[[], Tensor]] = {"terminated": self.terminated_buf.float}
        if self.success_causes:
            ends = {
                "terminated": lambda: (self.terminated_buf & ~self.succeeded_buf).float(),
                SUCCEEDED: self.succeeded_buf.float,
            }
        # a single choice is a number for each row
        is_scalar = len(self.action_choices) == 1
        actions = self.actions[:, 0] if is_scalar else self.actions
        return Variables({"actions": actions, **ends, **self.compute_variables()})

    def _tell_successes(self, causes: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Note the rows that end by success alone, and return the causes with the failures first: a
        row that has both has failed."""
        failures = {name: rows for name, rows in causes.items() if name not in self.success_causes}
        successes = {name: rows for name, rows in causes.items() if name in self.success_causes}
        nowhere = torch.zeros_like(next(iter(causes.values())), dtype=torch.bool)
        self.succeeded_buf = _any([nowhere, *successes.values()]) & ~_any(
            [nowhere, *failures.values()]
        )
        return {**failures, **successes}

    def reset_done(self) -> Tensor:
        """Reset the rows whose episode ended in the last `advance` and return all observations."""
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
        self.reset_idx(env_ids)
        self.compute_observations()

    def reset_masked(self, mask: Tensor) -> None:
        """What `reset_rows` is for the rows in `mask` (bool, shape (num_envs,)), to the bit,
        without a look at which they are.

        Every row is reset, and those that are not in the mask are put back where they were.
        """
        before = {name: value.clone() for name, value in self.row_tensors().items()}
        streams = self.random.counters()
        self.reset_rows(torch.arange(self.num_envs, device=self.device))
        for name, value in self.row_tensors().items():
            rows = mask.view(-1, *([1] * (value.dim() - 1)))
            value.copy_(torch.where(rows, value, before[name]))
        self.random.set_counters(torch.where(mask, self.random.counters(), streams))

    def seed_rows(self, env_ids: Tensor, seeds: Tensor) -> None:
        """Restart the random streams of the rows `env_ids`; call `reset_rows` after it. `seeds`:
        int64, shape (len(env_ids),)."""
        self.random.reseed(env_ids, seeds)

    def row_state(self, env_ids: Tensor) -> dict[str, Tensor]:
        """Copies of all that the future of the rows `env_ids` (int64) depends on, first dimension
        `len(env_ids)`.

        These are the rows of `row_tensors`, and their random streams. To be called between two
        steps, after `reset_done`.
        """
        state = {name: value[env_ids].clone() for name, value in self.row_tensors().items()}
        return {
            **state,
            **{f"random.{name}": value for name, value in self.random.row_state(env_ids).items()},
        }

    def load_row_state(self, env_ids: Tensor, state: Mapping[str, Tensor]) -> None:
        """Put rows where `row_state` took them from, here or in another instance, whatever their
        places: they go on bit for bit."""
        for name, value in self.row_tensors().items():
            value[env_ids] = state[name].to(value)
        self.random.load_row_state(
            env_ids,
            {
                name.removeprefix("random."): value
                for name, value in state.items()
                if name.startswith("random.")
            },
        )

    def row_tensors(self) -> dict[str, Tensor]:
        """The live tensors that make up the state, the environments in their first dimension: those
        attributes that have one row each.

        A subclass with state elsewhere, or with another layout, adds it here (as views), or sets
        `restorable = False`.
        """
        return {
            name: value
            for name, value in vars(self).items()
            if isinstance(value, Tensor)
            and value.dim() > 0
            and len(value) == self.num_envs
            and name not in self._constants
            and name != "skipped_rows"  # who uses a row is no part of its state
        }

    def tell_rows_from_constants(self, other: VecTask) -> None:
        """Look at an instance with another number of rows: what has the same length in both has no
        rows.

        To be called before `row_state` is: eight joints have eight gains, also where there happen
        to be eight environments.
        """
        lengths = {
            name: len(value)
            for name, value in vars(other).items()
            if isinstance(value, Tensor) and value.dim()
        }
        self._constants = frozenset(
            name for name, length in lengths.items() if length != other.num_envs
        )

    def reset(self) -> dict[str, Tensor]:
        """Start a new episode in every row. Isaac Gym's `reset`."""
        self.reset_rows(torch.arange(self.num_envs, device=self.device))
        return {"obs": self.obs_buf}

    def step(self, actions: Tensor) -> tuple[dict[str, Tensor], Tensor, Tensor, dict[str, Any]]:
        """Isaac Gym's `step`: observations after resets, `rew_buf` (zeros: rewards come from
        outside), `reset_buf`, `extras`."""
        transition = self.advance(actions)
        done = self.reset_buf.clone()
        self.extras["time_outs"] = transition.truncated.clone()
        self.extras["variables"] = {
            name: value.clone() for name, value in transition.variables.items()
        }
        self.reset_done()
        return {"obs": self.obs_buf}, self.rew_buf, done, self.extras

    def close(self) -> None:  # noqa: B027  (optional)
        """Free what the simulator holds."""
