"""From what `--env` says to an environment class with its tasks."""

from __future__ import annotations

import difflib
import hashlib
import inspect
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Literal, get_args

import torch

from eureka_agent.arguments import bind_arguments
from eureka_agent.errors import EnvironmentLoadError, did_you_mean
from eureka_agent.records import (
    MOST_CHARACTERS,
    MOST_CHOICES,
    MOST_FILES,
    ChannelSpec,
    ConstantSpec,
    TaskDescription,
    VariableSpec,
    WrittenFitness,
)
from eureka_agent.resources import resource_folder
from eureka_agent.settings import TrainingSettings, parse_settings
from eureka_agent.simulation.catalogue import (
    ENVIRONMENT_FILE,
    default_first,
    first_paragraph,
    further_paragraphs,
    task_files,
)
from eureka_agent.simulation.hooks import misspelt
from eureka_agent.simulation.user_modules import (
    import_file,
    import_folder,
    place_of_function,
    user_code,
)
from eureka_agent.simulation.vec_task import SUCCEEDED, VecTask
from eureka_agent.task import Channel, Constant, QuaternionOrder, Task, Variable

GYMNASIUM_PREFIX = "gymnasium:"

_WHOLE_NUMBERS = ("num_observations", "num_actions", "max_episode_length")
_SIZES_OF_MADE = {"MAX_EPISODE_LENGTH": "max_episode_length", "CONTROL_DT": "control_dt"}
"""Names in an env.py with `make`, and the class attributes that they are."""
_IMPORT = re.compile(r"^\s*(?:from|import)\b.*$", re.MULTILINE)
_NAMES = ("termination_causes", "success_causes", "device_types", "gpu_modules")


@dataclass(frozen=True)
class LoadedEnvironment:
    """An environment class with its tasks, ready to be made."""

    reference: str
    """What `--env` said."""
    name: str
    folder: Path | None
    """None for `gymnasium:<id>`."""
    environment_class: type[VecTask]
    tasks: Mapping[str, Task]
    """By name; the default task comes first."""
    fingerprint: str
    """SHA-256 of what defines the environment."""
    generated_rewards: Mapping[str, str] = field(default_factory=dict)
    """Sources of the baselines of the environment's own task, by kind, where it has no files of
    them."""
    written: WrittenFitness | None = None
    """What stands in place of the tasks' own metric: see
    `eureka_agent.training.written_fitness`."""

    def task(self, name: str | None) -> tuple[str, Task]:
        """A task and its name; None is the default task. Raises EnvironmentLoadError."""
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
        """`num_envs` copies of the environment for `task`, freshly reset. Raises
        EnvironmentLoadError."""
        with user_code(self.folder, f"making {self.environment_class.__name__}"):
            environment = self.environment_class.create(num_envs, device, seed, task.options)
            environment.reset()
        return environment

    def reward_source(self, task: Task, kind: Literal["human", "sparse"]) -> str | None:
        """Source of a baseline reward; None where the environment has none. Raises
        EnvironmentLoadError.

        With a written fitness that is the sparse one, and the expert's reward is for another task.
        """
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


def load_environment(reference: str) -> LoadedEnvironment:
    """The environment that `reference` names: a built-in name, a folder or `gymnasium:<id>`. Raises
    EnvironmentLoadError."""
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
        _check_class(environment_class)
    tasks, rewards = ({}, {}) if task_files(folder) else _tasks_of_file(module, environment_class)
    tasks = tasks or _load_tasks(package, folder, getattr(module, "DEFAULT_TASK", None))
    return LoadedEnvironment(
        reference,
        folder.name,
        folder,
        environment_class,
        tasks,
        _fingerprint(_folder_files(folder)),
        rewards,
    )


def describe(loaded: LoadedEnvironment, task_name: str | None = None) -> TaskDescription:
    """All that anyone outside the worker knows of the environment and one of its tasks. Raises
    EnvironmentLoadError."""
    name, task = loaded.task(task_name)
    cls = loaded.environment_class
    bind_arguments(task.fitness, cls.all_variables(), True, EnvironmentLoadError, cls.constants)
    files = _files_that_count(loaded, name)
    overrides = parse_settings(
        TrainingSettings, task.training.overrides, f"the training budget of task {name!r}"
    )
    return TaskDescription(
        environment=loaded.reference,
        task=name,
        sentence=task.sentence,
        doc=first_paragraph(inspect.getdoc(cls)),
        details=further_paragraphs(inspect.getdoc(cls)),
        fitness_doc=task.fitness_doc,
        fitness_unit=task.fitness_unit,
        fitness_reduction=task.fitness_reduction,
        success_fitness=_reachable(task.success_fitness),
        variables=tuple(
            VariableSpec.model_validate(variable, from_attributes=True)
            for variable in cls.all_variables()
        ),
        constants=tuple(
            ConstantSpec.model_validate(constant, from_attributes=True)
            for constant in cls.constants
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
        training_overrides=overrides.model_dump(mode="json", include=set(task.training.overrides)),
        human_reward=loaded.reward_source(task, "human"),
        sparse_reward=loaded.reward_source(task, "sparse"),
        fingerprint=_task_fingerprint(loaded, files),
        files=(
            {name: _fingerprint({name: path})[:16] for name, path in files.items()}
            if len(files) <= MOST_FILES
            else {}
        ),
        remarks=tuple(f"{place}{text}"[:MOST_CHARACTERS] for place, text, _ in misspelt(cls)),
        restorable=loaded.environment_class.restorable,
        fitness_author="" if loaded.written is None else loaded.written.author,
    )


def _channel_specs(channels: Iterable[Channel]) -> tuple[ChannelSpec, ...]:
    return tuple(ChannelSpec.model_validate(channel, from_attributes=True) for channel in channels)


def _reachable(success_fitness: float | None) -> float | None:
    """Infinite is a way to say that no episode counts as solved, as None is."""
    return (
        success_fitness if success_fitness is not None and math.isfinite(success_fitness) else None
    )


def _read_source(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise EnvironmentLoadError(
            f"{str(path)!r} is not UTF-8: {error.reason} at byte {error.start}", "save it as UTF-8"
        ) from None


# ── folders ───────────────────────────────────────────────────────────────────────────────────────


def find_folder(reference: str) -> Path:
    """Folder of a built-in environment or of a person's own. Raises EnvironmentLoadError where
    there is none."""
    built_in = {
        path.parent.name: path.parent
        for path in resource_folder("envs").glob(f"*/{ENVIRONMENT_FILE}")
    }
    if reference in built_in:
        return built_in[reference]
    folder = Path(os.path.expanduser(reference))
    is_path = os.sep in reference or (os.altsep is not None and os.altsep in reference)
    if folder.is_file():
        raise EnvironmentLoadError(
            f"{reference!r} is a file, expected an environment's folder",
            f"name the folder that holds {ENVIRONMENT_FILE}",
        )
    if not is_path and not folder.is_dir():
        raise EnvironmentLoadError(
            f"there is no environment {reference!r}",
            f"name a built-in one, a folder with an {ENVIRONMENT_FILE}, or {GYMNASIUM_PREFIX}<id>;"
            f" {did_you_mean(reference, built_in)}",
        )
    if not folder.is_dir():
        raise EnvironmentLoadError(f"there is no folder {reference!r}", "check the path")
    return folder.resolve()


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
    raise EnvironmentLoadError(
        f"expected one subclass of VecTask in {path!r}, found {found}",
        (
            "write `ENVIRONMENT = <class>` below them"
            if own
            else (
                "derive the environment from VecTask, MujocoTask or GymnasiumTask, or write `def"
                " make()` for Gymnasium's"
            )
        ),
    )


def _misspelt(cls: type[VecTask], missing: Sequence[str]) -> str:
    """A hint on methods of the class that are named almost as those that are missing; empty where
    there is none."""
    own = {
        name: value
        for each in cls.__mro__
        for name, value in vars(each).items()
        if inspect.isfunction(value)
    }
    others = [name for name in own if not hasattr(VecTask, name)]
    for name in missing:
        close = difflib.get_close_matches(name, others, n=1, cutoff=0.75)
        if close:
            return (
                f"{place_of_function(own[close[0]])}is {close[0]!r} meant for it? rename it to"
                f" {name!r}"
            )
    return ""


def _check_class(cls: type[VecTask]) -> None:
    """Raises EnvironmentLoadError for a class that cannot work."""
    missing = sorted(getattr(cls, "__abstractmethods__", ()))
    if missing:
        raise EnvironmentLoadError(
            f"{cls.__name__} does not define {', '.join(missing)}",
            _misspelt(cls, missing) or "see the docstrings of VecTask's methods",
        )
    for name in (*_WHOLE_NUMBERS, "control_dt"):
        kind = int if name in _WHOLE_NUMBERS else float
        value = getattr(cls, name, None)
        if isinstance(value, bool) or not isinstance(value, int | kind) or not 0 < value < math.inf:
            raise EnvironmentLoadError(
                f"{cls.__name__}.{name} is {value!r}, expected a positive {kind.__name__}",
                f"set it in the class: `{name} = …`",
            )
    _check_choices(cls)
    for name in _NAMES:
        value = getattr(cls, name)
        if not isinstance(value, tuple | list) or not all(
            isinstance(entry, str) for entry in value
        ):
            raise EnvironmentLoadError(
                f"{cls.__name__}.{name} is {value!r}, expected a tuple of names",
                f"with one name too: `{name} = (…,)`",
            )
    if not cls.termination_causes:
        raise EnvironmentLoadError(
            f"{cls.__name__}.termination_causes is empty, expected one name at least",
            "leave it out where nothing ends an episode early",
        )
    for cause in cls.success_causes:
        if cause not in cls.termination_causes:
            raise EnvironmentLoadError(
                f"{cls.__name__}.success_causes has {cause!r}, which is none of its"
                f" termination_causes {cls.termination_causes!r}",
                f"name it in both; {did_you_mean(cause, cls.termination_causes)}",
            )
    seen = {"actions", "terminated", *([SUCCEEDED] if cls.success_causes else [])}
    for variable in cls.variables:
        if not isinstance(variable, Variable):
            raise EnvironmentLoadError(
                f"{cls.__name__}.variables holds {variable!r}, expected Variable(…)",
                "see eureka_agent.task.Variable",
            )
        if variable.name in seen:
            raise EnvironmentLoadError(
                f"{cls.__name__} has two variables named {variable.name!r}",
                "rename one; `actions` and `terminated` always exist, and `succeeded` with"
                " success_causes",
            )
        if not isinstance(variable.shape, tuple) or not all(
            isinstance(size, int) and size > 0 for size in variable.shape
        ):
            raise EnvironmentLoadError(
                f"the shape of variable {variable.name!r} is {variable.shape!r}, expected a tuple"
                " of sizes without the batch",
                "() is a scalar, (3,) a vector of three",
            )
        seen.add(variable.name)
    for constant in cls.constants:
        if not isinstance(constant, Constant):
            raise EnvironmentLoadError(
                f"{cls.__name__}.constants holds {constant!r}, expected Constant(…)",
                "see eureka_agent.task.Constant",
            )
        if constant.name in seen:
            raise EnvironmentLoadError(
                f"the constant {constant.name!r} of {cls.__name__} has the name of another constant"
                " or a variable",
                "rename it",
            )
        seen.add(constant.name)
    for name, size in (
        ("observation_channels", cls.num_observations),
        ("action_channels", cls.num_actions),
    ):
        _check_channels(cls, name, size)
    _check_words(cls)
    if cls.quaternion_order not in get_args(QuaternionOrder):
        raise EnvironmentLoadError(
            f"{cls.__name__}.quaternion_order is {cls.quaternion_order!r}, expected 'wxyz' or"
            " 'xyzw'",
            "'xyzw', Isaac Gym's, has the real part last",
        )


def _check_choices(cls: type[VecTask]) -> None:
    """Raises EnvironmentLoadError where choices are declared that are not one number for each of
    the actions."""
    choices = cls.action_choices
    is_numbers = isinstance(choices, tuple) and all(
        isinstance(count, int) and not isinstance(count, bool) and count > 0 for count in choices
    )
    if not is_numbers or (choices and len(choices) != cls.num_actions):
        raise EnvironmentLoadError(
            f"{cls.__name__}.action_choices is {choices!r}, expected a tuple of {cls.num_actions}"
            " numbers of choices, as num_actions says",
            "() where actions are continuous; (3,) is one choice of three",
        )
    if sum(choices) > MOST_CHOICES:
        raise EnvironmentLoadError(
            f"{cls.__name__}.action_choices has {sum(choices):,} choices, expected at most"
            f" {MOST_CHOICES:,}",
            "a quantity with many values is better a continuous action, rounded",
        )


def _check_channels(cls: type[VecTask], name: str, size: int) -> None:
    """Raises EnvironmentLoadError where channels are declared that are not all of them."""
    channels = getattr(cls, name)
    for channel in channels:
        if not isinstance(channel, Channel):
            raise EnvironmentLoadError(
                f"{cls.__name__}.{name} holds {channel!r}, expected Channel(…)",
                "see eureka_agent.task.Channel",
            )
    declared = sum(channel.size for channel in channels)
    if channels and declared != size:
        raise EnvironmentLoadError(
            f"{cls.__name__}.{name} names {declared} numbers, expected {size}",
            "name all of them in their order, or leave it out",
        )


def _tasks_of_file(
    module: ModuleType, cls: type[VecTask]
) -> tuple[dict[str, Task], dict[str, str]]:
    """The `task` of a Gymnasium environment's env.py, else the environment's own one with its
    baselines."""
    tasks, rewards = cls.own_tasks()
    task = getattr(module, "task", None)
    return (dict.fromkeys(tasks, task), {}) if isinstance(task, Task) else (tasks, rewards)


def _check_words(cls: type[VecTask]) -> None:
    """Raises EnvironmentLoadError for what the class says of endings, masses and sizes in another
    form than designers are told it."""
    conditions, sizes = cls.termination_conditions, cls.masses_and_sizes
    if not isinstance(conditions, Mapping) or not all(
        isinstance(words, str) for words in conditions.values()
    ):
        raise EnvironmentLoadError(
            f"{cls.__name__}.termination_conditions is {conditions!r}, expected a dictionary of"
            " texts by cause",
            'such as {"fell": "torso_height below 0.3 m"}',
        )
    for cause in conditions:
        if cause not in cls.termination_causes:
            raise EnvironmentLoadError(
                f"{cls.__name__}.termination_conditions has {cause!r}, which is none of its"
                " termination_causes",
                did_you_mean(str(cause), cls.termination_causes),
            )
    if not isinstance(sizes, tuple) or not all(isinstance(part, str) for part in sizes):
        raise EnvironmentLoadError(
            f"{cls.__name__}.masses_and_sizes is {sizes!r}, expected a tuple of texts",
            'such as ("pole 0.1 kg, 1 m long",)',
        )


def _load_tasks(package: str, folder: Path, default: str | None) -> dict[str, Task]:
    files = task_files(folder)
    if not files:
        raise EnvironmentLoadError(
            f"there is no task in {str(folder / 'tasks')!r}",
            "add tasks/<name>.py with `task = Task(…)`",
        )
    if default is not None and default not in files:
        raise EnvironmentLoadError(
            f"DEFAULT_TASK is {default!r}, which is no task", did_you_mean(default, files)
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


def _folder_files(folder: Path) -> dict[str, Path]:
    """All files but caches and hidden ones, by relative name."""
    found = {}
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if (
            path.is_file()
            and "__pycache__" not in parts
            and not any(part.startswith(".") for part in parts)
        ):
            found["/".join(parts)] = path
    return found


def _files_that_count(loaded: LoadedEnvironment, name: str) -> dict[str, Path]:
    """Files of the folder that results of the task `name` may depend on: without other tasks that
    nothing of it imports, and their rewards."""
    if loaded.folder is None:
        return {}
    files, task = _folder_files(loaded.folder), loaded.tasks[name]
    own = {task.human_reward, task.sparse_reward}
    rewards = {str(PurePosixPath(reward).parent) for reward in own}
    tasks = {f"tasks/{path.name}": path.stem for path in (loaded.folder / "tasks").glob("*.py")}
    code = [
        path
        for key, path in files.items()
        if path.suffix == ".py" and (key not in tasks or tasks[key] == name)
    ]
    imports = [
        line
        for path in code
        for line in _IMPORT.findall(path.read_text(encoding="utf-8", errors="replace"))
    ]
    needed = {name, "__init__", *(word for line in imports for word in re.findall(r"\w+", line))}
    return {
        key: path
        for key, path in files.items()
        if tasks.get(key, name) in needed
        and not (
            path.suffix == ".py" and str(PurePosixPath(key).parent) in rewards and key not in own
        )
    }


def _fingerprint(files: Mapping[str, Path]) -> str:
    """SHA-256 over names and contents."""
    digest = hashlib.sha256()
    for name, path in files.items():
        content = path.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def _task_fingerprint(loaded: LoadedEnvironment, files: Mapping[str, Path]) -> str:
    """`loaded.fingerprint` of these files alone, and of the written fitness where there is one."""
    if not files:
        return loaded.fingerprint
    _, plus, written = loaded.fingerprint.partition("+")
    return f"{_fingerprint(files)}{plus}{written}"


# ── gymnasium:<id> ────────────────────────────────────────────────────────────────────────────────


def _load_gymnasium(reference: str) -> LoadedEnvironment:
    # imported on demand: Gymnasium takes a moment, and its plug-ins may take long
    from eureka_agent.simulation.gymnasium_task import environment_class, fingerprint

    gymnasium_id = reference.removeprefix(GYMNASIUM_PREFIX)
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
