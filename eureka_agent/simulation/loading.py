"""Loading an environment class and its tasks from the reference in `--env`."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import torch
from pydantic import ValidationError

from eureka_agent.arguments import bind_arguments
from eureka_agent.environment_files import (
    fingerprint_of,
    folder_files,
    relevant_files,
    task_fingerprint,
)
from eureka_agent.errors import EnvironmentLoadError, did_you_mean
from eureka_agent.records import (
    MOST_CHARACTERS,
    MOST_FILES,
    ChannelSpec,
    ConstantSpec,
    ParameterSpec,
    TaskDescription,
    VariableSpec,
    WrittenFitness,
)
from eureka_agent.settings import TrainingSettings, parse_settings, validation_fault
from eureka_agent.simulation.catalogue import (
    ENVIRONMENT_FILE,
    GYMNASIUM_PREFIX,
    default_first,
    find_folder,
    first_paragraph,
    further_paragraphs,
    task_files,
)
from eureka_agent.simulation.class_checks import check_class
from eureka_agent.simulation.hooks import misspelt
from eureka_agent.simulation.user_modules import import_file, import_folder, user_code
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import Channel, Task

_SIZES_OF_MADE = {"MAX_EPISODE_LENGTH": "max_episode_length", "CONTROL_DT": "control_dt"}
"""Constants of an env.py with `make`, and the class attributes that they set."""
_IMPORT = re.compile(r"^\s*(?:from|import)\b.*$", re.MULTILINE)


@dataclass(frozen=True)
class LoadedEnvironment:
    """An environment class with its tasks."""

    reference: str
    """The argument of `--env`."""
    name: str
    folder: Path | None
    """None for `gymnasium:<id>`."""
    environment_class: type[VecTask]
    tasks: Mapping[str, Task]
    """By name; the default task comes first."""
    fingerprint: str
    """SHA-256 of what defines the environment."""
    generated_rewards: Mapping[str, str] = field(default_factory=dict)
    """Sources of baselines without files, by kind, for the environment's own task."""
    written: WrittenFitness | None = None
    """Fitness in place of the tasks' own: `eureka_agent.training.fitness`."""

    def task(self, name: str | None) -> tuple[str, Task]:
        """A task and its name; None for the default task. Raises EnvironmentLoadError."""
        if name is None:
            name = next(iter(self.tasks))
        if name not in self.tasks:
            raise EnvironmentLoadError(
                f"environment {self.name!r} has no task {name!r}", did_you_mean(name, self.tasks)
            )
        return name, self.tasks[name]

    def make(
        self, task: Task, num_envs: int, device: torch.device | str = "cpu", seed: int = 0
    ) -> VecTask:
        """Make `num_envs` copies for `task`, freshly reset. Raises EnvironmentLoadError."""
        with user_code(self.folder, f"making {self.environment_class.__name__}"):
            environment = self.environment_class.create(num_envs, device, seed, task.options)
            environment.reset()
        return environment

    def reward_source(self, task: Task, kind: Literal["human", "sparse"]) -> str | None:
        """Source of a baseline; None where there is none. Raises EnvironmentLoadError."""
        if self.written is not None:
            return self.written.source if kind == "sparse" else None
        if self.folder is None:
            return self.generated_rewards.get(kind)
        attribute = f"{kind}_reward"
        relative = getattr(task, attribute)
        path = self.folder / relative
        if path.is_file():
            return _read_source(path)
        if relative == Task.__dataclass_fields__[attribute].default:
            return self.generated_rewards.get(kind)
        raise EnvironmentLoadError(
            f"the task's {attribute} is {relative!r}, but there is no {str(path)!r}",
            "correct the path",
        )


@contextmanager
def _default_type_kept() -> Iterator[None]:
    """Keep torch's default type, which a module may set when it is imported."""
    dtype = torch.get_default_dtype()
    try:
        yield
    finally:
        torch.set_default_dtype(dtype)


@_default_type_kept()
def load_environment(reference: str) -> LoadedEnvironment:
    """Load a built-in name, a folder or `gymnasium:<id>`. Raises EnvironmentLoadError."""
    if reference.startswith(GYMNASIUM_PREFIX):
        return _load_gymnasium(reference)
    folder = find_folder(reference)
    if not (folder / ENVIRONMENT_FILE).is_file():
        raise EnvironmentLoadError(
            f"the folder {reference!r} has no {ENVIRONMENT_FILE}",
            "an environment folder holds env.py, tasks/ and rewards/",
        )
    package = import_folder(folder)
    module = import_file(package, folder, folder / ENVIRONMENT_FILE)
    with user_code(folder, "reading the environment's class"):
        environment_class = _environment_class(module, folder)
        check_class(environment_class)
    tasks, rewards = ({}, {}) if task_files(folder) else _tasks_of_file(module, environment_class)
    tasks = tasks or _load_tasks(package, folder, getattr(module, "DEFAULT_TASK", None))
    fingerprint = fingerprint_of(folder_files(folder))
    return LoadedEnvironment(
        reference, folder.name, folder, environment_class, tasks, fingerprint, rewards
    )


def describe(loaded: LoadedEnvironment, task_name: str | None = None) -> TaskDescription:
    """Describe the environment and one of its tasks for the driver. Raises EnvironmentLoadError."""
    name, task = loaded.task(task_name)
    cls = loaded.environment_class
    read = bind_arguments(
        task.fitness, cls.all_variables(), True, EnvironmentLoadError, cls.constants
    ).variables
    files = {} if loaded.folder is None else relevant_files(loaded.folder, name, task.rewards)
    budget = f"the training budget of task {name!r}"
    given = {"env_steps": task.training.env_steps, "num_envs": task.training.num_envs}
    parse_settings(TrainingSettings, given, budget)
    overrides, gpu = (
        parse_settings(TrainingSettings, chosen, budget).model_dump(
            mode="json", include=set(chosen)
        )
        for chosen in (task.training.overrides, task.training.gpu)
    )
    hashes = {name: fingerprint_of({name: path})[:16] for name, path in files.items()}
    return _valid(
        environment=loaded.reference,
        task=name,
        sentence=task.sentence,
        doc=first_paragraph(inspect.getdoc(cls)),
        details=further_paragraphs(inspect.getdoc(cls)),
        fitness_doc=task.fitness_doc,
        fitness_unit=task.fitness_unit,
        fitness_reduction=task.fitness_reduction,
        success_fitness=_reachable(task.success_fitness),
        fitness_variables=read,
        variables=tuple(
            VariableSpec.model_validate(variable, from_attributes=True)
            for variable in cls.all_variables()
        ),
        constants=tuple(
            ConstantSpec.model_validate(constant, from_attributes=True)
            for constant in cls.constants
        ),
        parameters=tuple(
            ParameterSpec.model_validate(parameter, from_attributes=True)
            for parameter in cls.parameters
        ),
        quaternion_order=cls.quaternion_order,
        observation_channels=_channel_specs(cls.observation_channels),
        action_channels=_channel_specs(cls.channels_of_action()),
        num_observations=cls.num_observations,
        num_actions=cls.num_actions,
        action_choices=cls.action_choices,
        control_dt=cls.control_dt,
        episode_source=cls.episode_source,
        max_episode_length=cls.max_episode_length,
        termination_causes=cls.termination_causes,
        termination_conditions=dict(cls.termination_conditions),
        success_causes=tuple(cls.success_causes),
        env_steps=task.training.env_steps,
        num_envs=task.training.num_envs,
        training_overrides=overrides,
        gpu_overrides=gpu,
        human_reward=loaded.reward_source(task, "human"),
        sparse_reward=loaded.reward_source(task, "sparse"),
        fingerprint=task_fingerprint(loaded.fingerprint, files),
        files=hashes if len(files) <= MOST_FILES else {},
        remarks=tuple(
            text[:MOST_CHARACTERS]
            for text in (
                *(f"{place}{what}" for place, what, _ in misspelt(cls)),
                *cls._remarks,
            )
        ),
        restorable=cls.restorable,
        fitness_author="" if loaded.written is None else loaded.written.author,
    )


def _valid(**facts: Any) -> TaskDescription:
    try:
        return TaskDescription(**facts)
    except ValidationError as error:
        raise EnvironmentLoadError(
            f"the environment cannot be described: {validation_fault(error)}",
            "correct it in env.py or in the task's file",
        ) from None


def _channel_specs(channels: Iterable[Channel]) -> tuple[ChannelSpec, ...]:
    return tuple(ChannelSpec.model_validate(channel, from_attributes=True) for channel in channels)


def _reachable(success_fitness: float | None) -> float | None:
    """None for infinity: no episode counts as solved in either case."""
    return success_fitness if math.isfinite(success_fitness or 0.0) else None


def _read_source(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise EnvironmentLoadError(
            f"{str(path)!r} is not UTF-8: {error.reason} at byte {error.start}", "save it as UTF-8"
        ) from None


# ── folders ───────────────────────────────────────────────────────────────────────────────────────


def _environment_class(module: ModuleType, folder: Path) -> type[VecTask]:
    path = module.__file__
    chosen = getattr(module, "ENVIRONMENT", None)
    if chosen is not None:
        if isinstance(chosen, type) and issubclass(chosen, VecTask):
            return chosen
        raise EnvironmentLoadError(
            f"ENVIRONMENT in {path!r} is {chosen!r}, expected a subclass of VecTask",
            "set it to the class",
        )
    own = [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, VecTask)
        and value.__module__ == module.__name__
    ]
    if len(own) == 1:
        return own[0]
    make = getattr(module, "make", None)
    if not own and callable(make):
        from eureka_agent.simulation.gymnasium_task import made_class

        doc = inspect.getdoc(make) or module.__doc__
        sizes = {
            field: getattr(module, name)
            for name, field in _SIZES_OF_MADE.items()
            if hasattr(module, name)
        }
        return made_class(folder.name, make, getattr(module, "VARIABLES", ()), doc, sizes)
    found = ", ".join(cls.__name__ for cls in own) or "none"
    hint = (
        "derive the environment from VecTask, MujocoTask or GymnasiumTask, or write `def make()`"
        " for Gymnasium's"
    )
    raise EnvironmentLoadError(
        f"expected one subclass of VecTask in {path!r}, found {found}",
        "write `ENVIRONMENT = <class>` below them" if own else hint,
    )


def _tasks_of_file(
    module: ModuleType, cls: type[VecTask]
) -> tuple[dict[str, Task], dict[str, str]]:
    """The `task` of an env.py with `make`, else the environment's own task and baselines."""
    tasks, rewards = cls.own_tasks()
    task = getattr(module, "task", None)
    return (dict.fromkeys(tasks, task), {}) if isinstance(task, Task) else (tasks, rewards)


def _load_tasks(package: str, folder: Path, default: object) -> dict[str, Task]:
    files = task_files(folder)
    if not files:
        raise EnvironmentLoadError(
            f"there is no task in {str(folder / 'tasks')!r}",
            "add tasks/<name>.py with `task = Task(…)`",
        )
    if default is not None and not (isinstance(default, str) and default in files):
        raise EnvironmentLoadError(
            f"DEFAULT_TASK is {default!r}, which is no task", did_you_mean(str(default), files)
        )
    tasks = {}
    for name in default_first(files, default):
        module = import_file(package, folder, files[name])
        task = getattr(module, "task", None)
        if not isinstance(task, Task):
            raise EnvironmentLoadError(
                f"{str(files[name])!r} defines task = {task!r}, expected a Task",
                "write `task = Task(sentence=…, …)`",
            )
        tasks[name] = task
    return tasks


# ── gymnasium:<id> ────────────────────────────────────────────────────────────────────────────────


def _load_gymnasium(reference: str) -> LoadedEnvironment:
    # imported on demand: Gymnasium and its plug-ins may take long
    from eureka_agent.simulation.gymnasium_task import environment_class, fingerprint

    gymnasium_id = reference.removeprefix(GYMNASIUM_PREFIX).strip()
    if not gymnasium_id:
        raise EnvironmentLoadError(
            f"{reference!r} names no environment: the id after {GYMNASIUM_PREFIX!r} is missing",
            f"name one, such as {GYMNASIUM_PREFIX}Hopper-v5",
        )
    cls = environment_class(gymnasium_id)
    tasks, rewards = cls.own_tasks()
    return LoadedEnvironment(
        reference=reference,
        name=gymnasium_id,
        folder=None,
        environment_class=cls,
        tasks=tasks,
        fingerprint=fingerprint(cls),
        generated_rewards=rewards,
    )
