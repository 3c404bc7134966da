"""Any Gymnasium environment as a batched one: `gymnasium:<id>`, or a folder that makes one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar

import gymnasium
import numpy
import torch
from torch import Tensor

from eureka_agent.errors import EnvironmentLoadError
from eureka_agent.simulation.gymnasium_actions import Conversion, action_choices, num_actions
from eureka_agent.simulation.gymnasium_calls import call
from eureka_agent.simulation.gymnasium_names import Names, Part, StatePlace, read_state, write_state
from eureka_agent.simulation.gymnasium_probe import NATIVE_REWARD, make_copy, probe
from eureka_agent.simulation.gymnasium_reading import words
from eureka_agent.simulation.gymnasium_spaces import Entry, entry_values, num_observations
from eureka_agent.simulation.user_modules import third_party_code
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import Task, TrainingBudget, Variable

TASK_NAME = "native"
"""The only task of `gymnasium:<id>`, and of a folder without tasks."""
NATIVE_REWARD_SOURCE = '''"""The environment's own reward."""


def compute_reward(native_reward):
    return native_reward, {"native_reward": native_reward}
'''
_SEED_BITS = 24


class GymnasiumTask(VecTask):
    """`num_envs` copies of one Gymnasium environment, stepped one after the other. A subclass sets
    `gymnasium_id` or writes `make_environment`; the rest is read from the environment. Rewards may
    read the entries of a Dict observation, or the `observation` and its `named_observations`, and
    numbers of the environment's `info`. Its own reward is the private variable `native_reward`."""

    gymnasium_id: ClassVar[str] = ""
    """Id for `gymnasium.make`: `Hopper-v5`, or `module:Id`, which imports the module first."""
    gymnasium_options: ClassVar[Mapping[str, Any]] = {}
    """Keyword arguments of `make_environment`, which a task's `options` extend."""
    named_observations: ClassVar[tuple[tuple[Variable, int | slice], ...]] = ()
    """Variables that are parts of an observation vector: an index or a slice each."""
    described_entries: ClassVar[tuple[Variable, ...]] = ()
    """Unit, frame and doc of a Dict observation's entries, as variables of the same names."""
    info_keys: ClassVar[tuple[str, ...]] = ()
    """Numbers in `info` that are variables, found automatically."""
    random_numbers = "self.np_random, after super().reset(seed=seed)"
    row_multiple = 1  # each row is calculated by itself, then copied
    restorable = False  # the state of a Gymnasium environment cannot be read from outside
    _names: ClassVar[Names | None] = None
    """Names of Gymnasium's own environments, where they fit."""
    _parts: ClassVar[tuple[Part, ...]] = ()
    _state_place: ClassVar[StatePlace] = "hidden"
    _entries: ClassVar[tuple[Entry, ...]] = ()
    _ends_doc: ClassVar[str] = ""
    _package: ClassVar[str] = "gymnasium"
    _spec: ClassVar[gymnasium.envs.registration.EnvSpec | None] = None
    _source: ClassVar[str] = ""

    @classmethod
    def make_environment(cls, **options: Any) -> gymnasium.Env:
        """Make one copy, by default the registered one; the base class keeps its time limit."""
        options = {"max_episode_steps": -1, "disable_env_checker": True, **options}
        return gymnasium.make(cls.gymnasium_id, **options)

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Read the class's attributes from one copy. Raises EnvironmentLoadError."""
        super().__init_subclass__(**arguments)
        if {"gymnasium_id", "make_environment"} & set(vars(cls)):
            probe(cls)

    def __init__(
        self, num_envs: int, device: torch.device | str = "cpu", seed: int = 0, **options: Any
    ) -> None:
        super().__init__(num_envs, device, seed)
        self.environments = [make_copy(type(self), options) for _ in range(num_envs)]
        self._check_sizes(self.environments[0], options)
        self._conversion = Conversion(self.environments[0].action_space)
        width = max((entry.columns.stop for entry in self._entries), default=0)
        columns = self.num_observations, width, len(self.info_keys)
        arrays = (numpy.zeros((num_envs, each), dtype=numpy.float32) for each in columns)
        self._observations, self._entry_values, self._infos = arrays
        self._rewards = numpy.zeros(num_envs, dtype=numpy.float32)
        self._terminated, self._truncated = numpy.zeros((2, num_envs), dtype=bool)

    def _check_sizes(self, environment: gymnasium.Env, options: Mapping[str, Any]) -> None:
        """Raises EnvironmentLoadError where a task's options change the environment's sizes."""
        actions = environment.action_space
        observations = num_observations(environment.observation_space)
        found = observations, num_actions(actions), action_choices(actions)
        expected = self.num_observations, self.num_actions, self.action_choices
        if found != expected:
            raise EnvironmentLoadError(
                f"with the options {dict(options)!r} {self.label()} has other numbers of"
                f" observations, actions and choices: {found!r}, expected {expected!r}",
                "write what changes an environment's sizes into a folder of its own",
            )
        if self._names and (why := self._names.problem(environment.observation_space, options)):
            what = f"the names of {self.label()}'s variables do not fit: {why}"
            hint = "write it into `gymnasium_options` of the class, which then has no such names"
            raise EnvironmentLoadError(what, hint)

    @classmethod
    def label(cls) -> str:
        """Name of the environment in messages."""
        return repr(cls.gymnasium_id) if cls.gymnasium_id else f"the environment {cls.__name__!r}"

    @classmethod
    def all_variables(cls) -> tuple[Variable, ...]:
        """`terminated` has Gymnasium's meaning here: an end of any kind."""
        return tuple(
            replace(each, doc=cls._ends_doc)
            if each.name == "terminated" and not cls.success_causes
            else each
            for each in super().all_variables()
        )

    @classmethod
    def own_tasks(cls) -> tuple[dict[str, Task], dict[str, str]]:
        """The return of the environment's own reward."""
        name = cls.gymnasium_id or cls.__name__

        def fitness(native_reward: Tensor) -> Tensor:
            return native_reward

        solve = f"solve {words(name)}: earn as much of the environment's own reward as possible"
        task = Task(
            sentence=solve if cls._names is None else cls._names.sentence,
            fitness=fitness,
            fitness_doc=f"return of an episode: the sum of the rewards that {name} itself gives",
            success_fitness=None if cls._spec is None else cls._spec.reward_threshold,
            training=TrainingBudget(env_steps=200_000),
        )
        return {TASK_NAME: task}, {"sparse": NATIVE_REWARD_SOURCE}

    def pre_physics_step(self, actions: Tensor) -> None:
        """Step each row's environment. Shape of `actions`: (num_envs, num_actions)."""
        # NaN is no valid choice; its row is not stepped
        missing = actions.isnan().any(dim=-1).tolist()
        converted = self._conversion.to_space(actions.nan_to_num().cpu().numpy())
        skipped = [False] * self.num_envs
        if self.skipped_rows is not None:
            skipped = self.skipped_rows.tolist()
        progress = self.progress_buf.tolist()
        with third_party_code(self._package, "in a step"):
            for row in range(self.active_rows):
                if skipped[row]:
                    continue
                if not missing[row]:
                    self._call(row, progress[row] + 1, action=converted[row])
                    continue
                # as physics would: this blames the row's policy
                for values in (self._observations, self._entry_values, self._infos, self._rewards):
                    values[row] = numpy.nan
                self._terminated[row] = self._truncated[row] = False

    def _call(self, row: int, steps: int = 0, *, seed: int = 0, action: Any = None) -> None:
        result = call(
            *(self.environments[row], self.num_observations, steps),
            seed=seed,
            action=action,
            keys=self.info_keys,
            acted=lambda: self.actions[row].tolist(),
        )
        self._observations[row] = result.vector
        self._rewards[row] = result.reward
        self._terminated[row], self._truncated[row] = result.terminated, result.truncated
        self._infos[row] = list(result.numbers.values())
        if self._entries:
            self._entry_values[row] = entry_values(self._entries, result.observation)

    def compute_observations(self) -> None:
        self.obs_buf.copy_(torch.from_numpy(self._observations))

    def compute_variables(self) -> dict[str, Tensor]:
        arrays = (self._infos, self._entry_values, self._rewards)
        infos, entries, rewards = (torch.from_numpy(each).to(self.device) for each in arrays)
        values = {} if self._entries else {"observation": self.obs_buf}
        for entry in self._entries:
            shape = (self.num_envs, *entry.variable.shape)
            values[entry.variable.name] = entries[:, entry.columns].reshape(shape)
        values[NATIVE_REWARD.name] = rewards
        values |= {each.name: self.obs_buf[:, part] for each, part in self.named_observations}
        values |= {part.variable.name: part.values(self.obs_buf) for part in self._parts}
        return values | {key: infos[:, column] for column, key in enumerate(self.info_keys)}

    def compute_termination(self) -> Tensor | dict[str, Tensor]:
        cause = self.success_causes[0] if self._parts and self.success_causes else "terminated"
        return {cause: torch.tensor(self._terminated).to(self.device)}

    def compute_truncation(self) -> Tensor:
        """The time limit, or a truncation by the environment."""
        truncated = torch.from_numpy(self._truncated).to(self.device)
        return super().compute_truncation() | truncated

    def reset_idx(self, env_ids: Tensor) -> None:
        """Reset each row's environment with a seed from that row's own stream."""
        seeds = (self.random.uniform(env_ids, 1)[:, 0].double() * 2**_SEED_BITS).long()
        with third_party_code(self._package, "in a reset"):
            for row, seed in zip(env_ids.tolist(), seeds.tolist(), strict=True):
                self._call(row, seed=seed)

    def row_tensors(self) -> dict[str, Tensor]:
        """The state with results of the last step; that of the physics is in `row_state`."""
        arrays = (item for item in vars(self).items() if isinstance(item[1], numpy.ndarray))
        results = {name: torch.from_numpy(value) for name, value in arrays}
        return {**super().row_tensors(), **results}

    def row_state(self, env_ids: Tensor) -> dict[str, Tensor]:
        state = super().row_state(env_ids)
        if not self.restorable or not len(env_ids):
            return state
        rows = [read_state(self.environments[row], self._state_place) for row in env_ids.tolist()]
        return {**state, **{name: torch.stack([row[name] for row in rows]) for name in rows[0]}}

    def load_row_state(self, env_ids: Tensor, state: Mapping[str, Tensor]) -> None:
        super().load_row_state(env_ids, state)
        if self.restorable:
            for index, row in enumerate(env_ids.tolist()):
                own = {name: value[index].cpu() for name, value in state.items()}
                write_state(self.environments[row], self._state_place, own)

    def close(self) -> None:
        for environment in self.environments:
            # its results are there; the check says it
            with (
                suppress(EnvironmentLoadError),
                third_party_code(self._package, "when it was closed"),
            ):
                environment.close()


def environment_class(gymnasium_id: str) -> type[GymnasiumTask]:
    """The class behind `gymnasium:<id>`. Raises EnvironmentLoadError."""
    return type("GymnasiumEnvironment", (GymnasiumTask,), {"gymnasium_id": gymnasium_id})


def made_class(
    name: str,
    make: Callable[..., gymnasium.Env],
    described: Sequence[Variable],
    doc: str | None,
    sizes: Mapping[str, Any],
) -> type[GymnasiumTask]:
    """The class behind a function that makes the environment. Raises EnvironmentLoadError."""
    own = {"make_environment": staticmethod(make), "described_entries": tuple(described)}
    return type(name, (GymnasiumTask,), {**own, "__doc__": doc, **sizes})


def fingerprint(task: type[GymnasiumTask]) -> str:
    """SHA-256 of id, version, names, and the source of a class imported by module name."""
    digest = hashlib.sha256(f"{task.gymnasium_id}\0{gymnasium.__version__}".encode())
    if task._names is not None:
        digest.update(f"\0{task._names.digest}".encode())
    if task._spec is not None and ":" in task.gymnasium_id:
        digest.update(f"\0{task._source}".encode())
    return digest.hexdigest()
