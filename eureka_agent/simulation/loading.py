"""Loading an environment class and its tasks from the reference in `--env`."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Literal, TypeAlias, TypeVar

import torch
from pydantic import BaseModel, ValidationError

from eureka_agent import records
from eureka_agent.arguments import bind_arguments
from eureka_agent.command_file import COMMAND_FILE, is_command, read_command
from eureka_agent.environment_files import (
    fingerprint_of,
    folder_files,
    relevant_files,
    task_fingerprint,
)
from eureka_agent.errors import EnvironmentLoadError, did_you_mean
from eureka_agent.settings import TrainingSettings, parse_settings, validation_fault
from eureka_agent.simulation import catalogue
from eureka_agent.simulation import command_environment as by_command
from eureka_agent.simulation.class_checks import check_class, remarks_on
from eureka_agent.simulation.user_modules import import_file, import_folder, read_source, user_code
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import Task

_SIZES_OF_MADE = {"MAX_EPISODE_LENGTH": "max_episode_length", "CONTROL_DT": "control_dt"}
"""Constants of an env.py with `make`, and the class attributes that they set."""
_OF_TASK = ("sentence", "fitness_doc", "fitness_unit", "fitness_reduction")
_OF_CLASS = (
    *("quaternion_order", "num_observations", "num_actions", "action_choices", "control_dt"),
    *("episode_source", "max_episode_length", "termination_causes", "restorable"),
)
"""Fields of a description that are attributes of the task and of the class."""
_Spec = TypeVar("_Spec", bound=BaseModel)
RewardKind: TypeAlias = Literal["human", "sparse"]


@dataclass(frozen=True)
class LoadedEnvironment:
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
    written: records.WrittenFitness | None = None
    """Fitness in place of the tasks' own: `eureka_agent.training.fitness`."""
    described: by_command.Described | None = None
    """Description of a command environment by itself."""

    def task(self, name: str | None) -> tuple[str, Task]:
        """A task and its name; None for the default task. Raises EnvironmentLoadError."""
        if name is None:
            name = next(iter(self.tasks))
        if name not in self.tasks:
            what = f"environment {self.name!r} has no task {name!r}"
            raise EnvironmentLoadError(what, did_you_mean(name, self.tasks))
        return name, self.tasks[name]

    def make(
        self, task: Task, num_envs: int, device: torch.device | str = "cpu", seed: int = 0
    ) -> VecTask:
        """Make `num_envs` copies for `task`, freshly reset. Raises EnvironmentLoadError."""
        with user_code(self.folder, f"making {self.environment_class.__name__}"):
            environment = self.environment_class.create(num_envs, device, seed, task.options)
            environment.reset()
        return environment

    def reward_source(self, task: Task, kind: RewardKind) -> str | None:
        """Source of a baseline; None where there is none. Raises EnvironmentLoadError."""
        if self.written is not None:
            return self.written.source if kind == "sparse" else None
        if self.folder is None:
            return self.generated_rewards.get(kind)
        attribute = f"{kind}_reward"
        relative = getattr(task, attribute)
        path = self.folder / relative
        if path.is_file():
            return read_source(path)
        if relative == Task.__dataclass_fields__[attribute].default:
            return self.generated_rewards.get(kind)
        what = f"the task's {attribute} is {relative!r}, but there is no {str(path)!r}"
        raise EnvironmentLoadError(what, "correct the path")


def load_environment(
    reference: str, task: str | None = None, known: str = "", interpreter: str = ""
) -> LoadedEnvironment:
    """Load a built-in name, a folder or `gymnasium:<id>`. A command environment describes itself
    for `task` unless its description is `known`; `interpreter`: its program, in place of the one
    that its file names. Raises EnvironmentLoadError."""
    with ExitStack() as stack:
        # a module may set torch's default type when it is imported
        stack.callback(torch.set_default_dtype, torch.get_default_dtype())
        by_id = reference.startswith(catalogue.GYMNASIUM_PREFIX)
        if by_id:
            return _load_gymnasium(reference)
        folder = catalogue.find_folder(reference)
        if is_command(folder):
            return _load_command(reference, folder, task, known, interpreter)
        return _load_folder(reference, folder)


def _load_command(
    reference: str, folder: Path, task: str | None, known: str, interpreter: str
) -> LoadedEnvironment:
    command = read_command(folder)
    if interpreter:
        command = command.model_copy(update={"interpreter": interpreter})
    tasks = by_command.load_tasks(folder, command)
    described = by_command.describe_command(folder, command, task, known)
    cls = by_command.command_class(folder, command, described.event)
    fingerprint = fingerprint_of(folder_files(folder))
    rewards = by_command.native_reward(described.event)
    found = reference, folder.name, folder, cls, tasks, fingerprint, rewards
    return LoadedEnvironment(*found, described=described)


def _load_folder(reference: str, folder: Path) -> LoadedEnvironment:
    if not (folder / catalogue.ENVIRONMENT_FILE).is_file():
        what = f"the folder {reference!r} has no {catalogue.ENVIRONMENT_FILE} and no {COMMAND_FILE}"
        hint = f"an environment folder holds env.py, tasks/ and rewards/, or a {COMMAND_FILE}"
        raise EnvironmentLoadError(what, hint)
    package = import_folder(folder)
    module = import_file(package, folder, folder / catalogue.ENVIRONMENT_FILE)
    with user_code(folder, "reading the environment's class"):
        environment_class = _environment_class(module, folder)
        check_class(environment_class)
    tasks, rewards = ({}, {}) if catalogue.task_files(folder) else environment_class.own_tasks()
    if isinstance(own := getattr(module, "task", None), Task):
        tasks, rewards = dict.fromkeys(tasks, own), {}  # of an env.py with `make`
    tasks = tasks or _load_tasks(package, folder, getattr(module, "DEFAULT_TASK", None))
    fingerprint = fingerprint_of(folder_files(folder))
    found = environment_class, tasks, fingerprint, rewards
    return LoadedEnvironment(reference, folder.name, folder, *found)


def describe(loaded: LoadedEnvironment, task_name: str | None = None) -> records.TaskDescription:
    """Describe the environment and one of its tasks for the driver. Raises EnvironmentLoadError."""
    name, task = loaded.task(task_name)
    cls = loaded.environment_class
    given = cls.all_variables(), True, EnvironmentLoadError, cls.constants
    read = bind_arguments(task.fitness, *given).variables
    files = {} if loaded.folder is None else relevant_files(loaded.folder, name, task.rewards)
    budget = f"the training budget of task {name!r}"
    sizes = {"env_steps": task.training.env_steps, "num_envs": task.training.num_envs}
    parse_settings(TrainingSettings, sizes, budget)
    chosen = (task.training.overrides, task.training.gpu)
    parsed = [(parse_settings(TrainingSettings, each, budget), set(each)) for each in chosen]
    overrides, gpu = (each.model_dump(mode="json", include=names) for each, names in parsed)
    hashes = {name: fingerprint_of({name: path})[:16] for name, path in files.items()}
    doc = inspect.getdoc(cls)
    # infinity: no episode counts as solved in either case
    success = task.success_fitness if math.isfinite(task.success_fitness or 0.0) else None
    try:
        return records.TaskDescription(
            environment=loaded.reference,
            task=name,
            doc=catalogue.first_paragraph(doc),
            details=catalogue.further_paragraphs(doc),
            **{each: getattr(task, each) for each in _OF_TASK},
            **{each: getattr(cls, each) for each in _OF_CLASS},
            success_fitness=success,
            fitness_variables=read,
            variables=_specified(records.VariableSpec, cls.all_variables()),
            constants=_specified(records.ConstantSpec, cls.constants),
            parameters=_specified(records.ParameterSpec, cls.parameters),
            observation_channels=_specified(records.ChannelSpec, cls.observation_channels),
            action_channels=_specified(records.ChannelSpec, cls.channels_of_action()),
            termination_conditions=dict(cls.termination_conditions),
            success_causes=tuple(cls.success_causes),
            **sizes,
            training_overrides=overrides,
            gpu_overrides=gpu,
            human_reward=loaded.reward_source(task, "human"),
            sparse_reward=loaded.reward_source(task, "sparse"),
            fingerprint=task_fingerprint(loaded.fingerprint, files),
            files=hashes if len(files) <= records.MOST_FILES else {},
            remarks=tuple(text[: records.MOST_CHARACTERS] for text in remarks_on(cls)),
            command=None if loaded.described is None else loaded.described.facts(cls),
            captions=bool(cls.caption_variables),
            fitness_author="" if loaded.written is None else loaded.written.author,
        )
    except ValidationError as error:
        what = f"the environment cannot be described: {validation_fault(error)}"
        where = "env.py or in the task's file" if loaded.described is None else COMMAND_FILE
        raise EnvironmentLoadError(what, f"correct it in {where}") from None


def _specified(kind: type[_Spec], declared: Iterable[object]) -> tuple[_Spec, ...]:
    return tuple(kind.model_validate(each, from_attributes=True) for each in declared)


# ── folders ───────────────────────────────────────────────────────────────────────────────────────


def _environment_class(module: ModuleType, folder: Path) -> type[VecTask]:
    path = module.__file__
    chosen = getattr(module, "ENVIRONMENT", None)
    if chosen is not None:
        if isinstance(chosen, type) and issubclass(chosen, VecTask):
            return chosen
        what = f"ENVIRONMENT in {path!r} is {chosen!r}, expected a subclass of VecTask"
        raise EnvironmentLoadError(what, "set it to the class")
    classes = (each for each in vars(module).values() if isinstance(each, type))
    own = [cls for cls in classes if issubclass(cls, VecTask) and cls.__module__ == module.__name__]
    if len(own) == 1:
        return own[0]
    make = getattr(module, "make", None)
    if not own and callable(make):
        from eureka_agent.simulation.gymnasium_task import made_class

        doc = inspect.getdoc(make) or module.__doc__
        given = {name for name in _SIZES_OF_MADE if hasattr(module, name)}
        sizes = {_SIZES_OF_MADE[name]: getattr(module, name) for name in given}
        return made_class(folder.name, make, getattr(module, "VARIABLES", ()), doc, sizes)
    found = ", ".join(cls.__name__ for cls in own) or "none"
    hint = "derive it from VecTask, MujocoTask or GymnasiumTask, or write `def make()`"
    what = f"expected one subclass of VecTask in {path!r}, found {found}"
    raise EnvironmentLoadError(what, "write `ENVIRONMENT = <class>` below them" if own else hint)


def _load_tasks(package: str, folder: Path, default: object) -> dict[str, Task]:
    files = catalogue.task_files(folder)
    if not files:
        what = f"there is no task in {str(folder / 'tasks')!r}"
        raise EnvironmentLoadError(what, "add tasks/<name>.py with `task = Task(…)`")
    if default is not None and not (isinstance(default, str) and default in files):
        what = f"DEFAULT_TASK is {default!r}, which is no task"
        raise EnvironmentLoadError(what, did_you_mean(str(default), files))
    tasks = {}
    for name in catalogue.default_first(files, default):
        module = import_file(package, folder, files[name])
        task = getattr(module, "task", None)
        if not isinstance(task, Task):
            what = f"{str(files[name])!r} defines task = {task!r}, expected a Task"
            raise EnvironmentLoadError(what, "write `task = Task(sentence=…, …)`")
        tasks[name] = task
    return tasks


# ── gymnasium:<id> ────────────────────────────────────────────────────────────────────────────────


def _load_gymnasium(reference: str) -> LoadedEnvironment:
    # imported on demand: Gymnasium and its plug-ins may take long
    from eureka_agent.simulation.gymnasium_task import environment_class, fingerprint

    prefix = catalogue.GYMNASIUM_PREFIX
    gymnasium_id = reference.removeprefix(prefix).strip()
    if not gymnasium_id:
        what = f"{reference!r} names no environment: the id after {prefix!r} is missing"
        raise EnvironmentLoadError(what, f"name one, such as {prefix}Hopper-v5")
    cls = environment_class(gymnasium_id)
    tasks, rewards = cls.own_tasks()
    found = cls, tasks, fingerprint(cls), rewards
    return LoadedEnvironment(reference, gymnasium_id, None, *found)
