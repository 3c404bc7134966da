"""`command.yaml`: an environment whose simulator and trainer are a command of the user's own, and
its tasks."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, FiniteFloat, JsonValue, ValidationError, model_validator

from eureka_agent.base_record import Record
from eureka_agent.errors import EnvironmentLoadError, SettingsError, did_you_mean
from eureka_agent.settings import MOST_ENV_STEPS, Amount, validation_fault
from eureka_agent.settings_files import read_settings_file
from eureka_agent.task import HUMAN_REWARD, SPARSE_REWARD, FitnessReduction, is_inner_path

COMMAND_FILE = "command.yaml"
"""File of an environment's folder in place of `env.py`."""
_SYSTEM = {Path("/"), Path("/usr"), Path("/usr/local")}
_GIB = 1 << 30


def _inside(path: str) -> str:
    if not is_inner_path(path):
        raise ValueError("expected a path within the environment's folder")
    return path


InnerPath = Annotated[str, AfterValidator(_inside)]


class TaskOfCommand(Record):
    """One task in `command.yaml`."""

    sentence: str = Field(min_length=3)
    """The task in plain words."""
    fitness: InnerPath
    """Python file with `compute_fitness(<variables>)`, the metric of a step."""
    fitness_doc: str
    """An episode's fitness in words."""
    fitness_unit: str = "1"
    fitness_reduction: FitnessReduction = "sum"
    success_fitness: FiniteFloat | None = None
    human_reward: InnerPath = HUMAN_REWARD
    sparse_reward: InnerPath = SPARSE_REWARD
    env_steps: Amount = Field(200_000, gt=0, le=MOST_ENV_STEPS)
    """Control steps of one training, summed over its environments."""
    num_envs: Amount = Field(8, gt=0, le=1_000_000)
    options: dict[str, JsonValue] = Field(default_factory=dict)
    """Passed on to the command as they are."""


class CommandFile(Record):
    """Start of the command, its needs, and its tasks."""

    protocol: Literal[1] = 1
    interpreter: str
    """Program: a path, of which `~` and one from the folder are understood, or a name in PATH."""
    script: InnerPath
    """Its first argument, a file of the folder."""
    image: str = Field("", max_length=500)
    """Docker image that has the interpreter, and all that it needs but the folder itself."""
    tasks: Annotated[dict[str, TaskOfCommand], Field(min_length=1)]
    """By name; the first is the default."""
    slots: int = Field(1, gt=0, le=1000)
    """Trainings side by side on this machine, each in a process of its own."""
    cores: int = Field(1, gt=0, le=1000)
    """CPU cores of a process."""
    memory_gib: float = Field(4.0, gt=0, le=100_000)
    """Memory of a process."""
    readable: tuple[str, ...] = ()
    """Further folders that it reads, such as models of robots and editable installs."""
    writable: tuple[str, ...] = ()
    """Folders that it writes to beside that of the job, behind the wall `process`."""
    variables: dict[str, str] = Field(default_factory=dict)
    """Environment variables that it needs. There are no others but a few of the system's."""

    @model_validator(mode="after")
    def _the_image_has_a_path(self) -> CommandFile:
        if self.image and not self.interpreter.startswith("/"):
            raise ValueError(
                "with an image the interpreter is a path from its root, such as /usr/bin/python3"
            )
        return self

    @property
    def memory_bytes(self) -> int:
        """Memory of a process."""
        return int(self.memory_gib * _GIB)


def is_command(folder: Path) -> bool:
    """True for the folder of a command environment, False for that of one in Python."""
    return (folder / COMMAND_FILE).is_file()


def read_command(folder: Path) -> CommandFile:
    """Read the folder's `command.yaml`. Raises EnvironmentLoadError, which names the entry."""
    path = folder / COMMAND_FILE
    try:
        return CommandFile.model_validate(read_settings_file(path))
    except SettingsError as error:
        raise EnvironmentLoadError(error.message, error.hint) from None
    except ValidationError as error:
        hint = "docs/your-own-simulator.md lists the entries"
        first = error.errors()[0]
        if first["type"] == "extra_forbidden":
            known = TaskOfCommand if len(first["loc"]) > 1 else CommandFile
            hint = did_you_mean(str(first["loc"][-1]), known.model_fields)
        what = f"{str(path)!r} is wrong: {validation_fault(error)}"
        raise EnvironmentLoadError(what, hint) from None


def script_of(command: CommandFile, folder: Path) -> Path:
    """Path of the script. Raises EnvironmentLoadError where there is none."""
    path = folder / command.script
    if not path.is_file():
        raise EnvironmentLoadError(
            f"the script in {str(folder / COMMAND_FILE)!r} is {command.script!r}, and there is no"
            " such file in the folder",
            "correct the name, or bring the file back",
        )
    return path


def program(command: CommandFile, folder: Path) -> Path:
    """Absolute path of the interpreter. Raises EnvironmentLoadError where there is none; an image
    is not looked into."""
    if command.image:
        return Path(command.interpreter)
    named = Path(os.path.expanduser(command.interpreter))
    if len(named.parts) == 1:
        found = shutil.which(str(named))
        path = None if found is None else Path(found)
    else:
        # a folder on the way that `..` leaves is not there behind a wall
        path = Path(os.path.abspath(folder / named))
    if path is None or not os.access(path, os.X_OK) or path.is_dir():
        raise EnvironmentLoadError(
            f"the interpreter in {str(folder / COMMAND_FILE)!r} is {command.interpreter!r}, which"
            " is no program on this machine",
            "name the Python of the simulator's environment, such as ~/venvs/sim/bin/python",
        )
    return path


def readable_folders(command: CommandFile, folder: Path) -> tuple[Path, ...]:
    """Folders that the command reads beside its own: those of its interpreter, as it is named and
    where its links lead, and those that the file lists. Raises EnvironmentLoadError."""
    homes = set()
    if not command.image:
        interpreter = program(command, folder)
        homes = {interpreter.parent.parent, interpreter.resolve().parent.parent}
    return (*sorted(homes - _SYSTEM), *listed_paths(command, folder, "readable"))


def listed_paths(
    command: CommandFile, folder: Path, entry: Literal["readable", "writable"]
) -> tuple[Path, ...]:
    """Paths that an entry lists. Raises EnvironmentLoadError."""
    paths = tuple(folder / os.path.expanduser(each) for each in getattr(command, entry))
    for path in paths:
        if not (path.is_dir() if entry == "writable" else path.exists()):
            kind = "folder" if entry == "writable" else "path"
            raise EnvironmentLoadError(
                f"{str(folder / COMMAND_FILE)!r} lists {str(path)!r} as {entry}, and there is no"
                f" such {kind}",
                "correct the path",
            )
    return paths
