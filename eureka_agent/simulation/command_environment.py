"""A command environment as the rest of the program knows environments: a class with variables, and
tasks. The command describes itself in a job; nothing of it runs in this process."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import numpy as np
import torch
from torch import Tensor

from eureka_agent import task as vocabulary
from eureka_agent.command_file import CommandFile, TaskOfCommand
from eureka_agent.errors import EnvironmentFaultError, EnvironmentLoadError, EurekaError
from eureka_agent.invocation import command as command_line
from eureka_agent.records import CommandFacts
from eureka_agent.simulation.command_events import (
    PROTOCOL,
    DescribedEvent,
    EpisodeEvent,
    ProtocolFaultError,
    read_event,
)
from eureka_agent.simulation.command_job import CommandJob, UserCommand
from eureka_agent.simulation.user_modules import import_file, import_folder, read_source
from eureka_agent.simulation.vec_task import ALWAYS_THERE, VecTask
from eureka_agent.task import PREVIOUS_PREFIX, Variable

LIMIT_SECONDS = 300.0
"""Longest silence of a command that starts its simulator or plays episodes."""
EPISODES = 8
"""Episodes with zero and with random actions that describe an environment."""
MOST_STEPS = 1000
"""Bound on the steps of one of them."""
FITNESS_FUNCTION = "compute_fitness"


@dataclass(frozen=True)
class PlayedEpisode:
    """An episode that the command told, its values as declared."""

    told: EpisodeEvent
    start: Mapping[str, np.ndarray]
    """Shape of each: `variable.shape`."""
    values: Mapping[str, np.ndarray]
    """Shape of each: (length, *variable.shape)."""


@dataclass
class Described:
    """A described environment, and the episodes of its description."""

    event: DescribedEvent
    episodes: list[PlayedEpisode] = field(default_factory=list)

    def facts(self, cls: type[VecTask]) -> CommandFacts:
        """Facts for the driver."""
        assert issubclass(cls, CommandTask)
        told = self.event
        return CommandFacts(
            slots=cls.command.slots,
            cores=cls.command.cores,
            rewards=told.can.rewards,
            rungs=told.can.rungs,
            native_terms=told.native_terms,
            versions=told.versions,
        )


class CommandTask(VecTask):
    """Variables and sizes of a command environment. It makes no steps: jobs do."""

    described: ClassVar[DescribedEvent]
    command: ClassVar[CommandFile]
    folder: ClassVar[Path]
    row_multiple = 1
    device_types = ("cpu", "cuda")

    def __init__(self, *_: Any, **__: Any) -> None:
        """Raises EnvironmentLoadError."""
        self._refuse()

    def _refuse(self, *_: Any) -> NoReturn:
        raise EnvironmentLoadError(
            f"{str(self.folder)!r} is a command: its simulator cannot be stepped from here",
            f"`{command_line('search')}` and `{command_line('envs --check')}` work with it",
        )

    pre_physics_step = compute_observations = compute_variables = reset_idx = _refuse  # type: ignore[assignment]

    @classmethod
    def create(
        cls, num_envs: int, device: torch.device | str, seed: int, options: Mapping[str, Any]
    ) -> VecTask:
        """Raises EnvironmentLoadError."""
        return cls()


def command_class(folder: Path, command: CommandFile, told: DescribedEvent) -> type[CommandTask]:
    """The class of a described environment. Raises EnvironmentLoadError for what it cannot be."""
    own = [each for each in told.variables if each.name not in ALWAYS_THERE]
    causes = tuple(told.ends)
    unknown = [each for each in told.success_ends if each not in causes]
    if unknown:
        raise EnvironmentLoadError(
            f"the command tells the end {unknown[0]!r} as a success, and not among its ends"
            f" {sorted(causes)!r}",
            "give it words in `ends`",
        )
    fields = ("num_observations", "num_actions", "control_dt", "max_episode_length")
    return type(
        "CommandTask",
        (CommandTask,),
        {
            **{name: getattr(told, name) for name in fields},
            "__doc__": told.doc or f"The command environment {folder.name}.",
            "variables": tuple(Variable(**each.model_dump()) for each in own),
            "constants": tuple(vocabulary.Constant(**it.model_dump()) for it in told.constants),
            "quaternion_order": told.quaternion_order,
            "action_choices": told.action_choices,
            "termination_causes": causes,
            "termination_conditions": dict(told.ends),
            "success_causes": told.success_ends,
            "restorable": told.can.save,
            "described": told,
            "command": command,
            "folder": folder,
        },
    )


def native_reward(told: DescribedEvent) -> dict[str, str]:
    """Source of the human reward, by its kind: the simulator's own terms with their weights. Empty
    unless all of them are variables."""
    variables = {each.name for each in told.variables if not each.shape}
    names = [each.name for each in told.native_terms]
    if not names or not variables.issuperset(names):
        return {}
    terms = ", ".join(f'"{each.name}": {each.weight!r} * {each.name}' for each in told.native_terms)
    return {
        "human": f'''"""The simulator's own reward: its terms with its weights."""


def compute_reward({", ".join(names)}):
    terms = {{{terms}}}
    return sum(terms.values()), terms
'''
    }


def load_tasks(folder: Path, command: CommandFile) -> dict[str, vocabulary.Task]:
    """Tasks of a `command.yaml`. Raises EnvironmentLoadError for a fitness that does not load."""
    package = import_folder(folder)
    return {name: _task(package, folder, each) for name, each in command.tasks.items()}


def _task(package: str, folder: Path, told: TaskOfCommand) -> vocabulary.Task:
    path = folder / told.fitness
    fitness = getattr(import_file(package, folder, path), FITNESS_FUNCTION, None)
    if not callable(fitness):
        raise EnvironmentLoadError(
            f"{str(path)!r} has no function {FITNESS_FUNCTION}",
            f"write `def {FITNESS_FUNCTION}(<variables>) -> Tensor` of shape (batch,)",
        )
    names = ("sentence", "fitness_doc", "fitness_unit", "fitness_reduction", "success_fitness")
    return vocabulary.Task(
        **{name: getattr(told, name) for name in names},
        fitness=fitness,
        options=told.options,
        human_reward=told.human_reward,
        sparse_reward=told.sparse_reward,
        training=vocabulary.TrainingBudget(env_steps=told.env_steps, num_envs=told.num_envs),
    )


def command_of(folder: Path, file: CommandFile, task: str) -> UserCommand:
    """The command for jobs of a task with its own fitness."""
    told = file.tasks[task]
    source = read_source(folder / told.fitness)
    return UserCommand(folder, file, task, source, told.fitness_reduction)


# ── the description ───────────────────────────────────────────────────────────────────────────────


def describe_command(folder: Path, file: CommandFile, task: str | None, known: str) -> Described:
    """Have the command describe itself, with episodes of zero and random actions, or read what it
    told before (`known`, the JSON of its event). Raises EnvironmentLoadError."""
    if known:
        event = read_event(known.encode())
        assert isinstance(event, DescribedEvent)
        return Described(event)
    name = next(iter(file.tasks)) if task not in file.tasks else str(task)
    num_envs = min(EPISODES, file.tasks[name].num_envs)
    asked = {"device": "cpu", "num_envs": num_envs, "episodes": EPISODES, "most_steps": MOST_STEPS}
    try:
        with tempfile.TemporaryDirectory() as scratch:
            return _describe(command_of(folder, file, name), asked, Path(scratch))
    except (EnvironmentFaultError, EnvironmentLoadError):
        raise
    except EurekaError as error:
        raise EnvironmentLoadError(error.message, error.hint) from None


def _describe(command: UserCommand, asked: Mapping[str, Any], scratch: Path) -> Described:
    found: Described | None = None
    variables: Sequence[Variable] = ()
    with CommandJob(command, "describe", asked, {}, scratch) as job:
        for event in job.run(LIMIT_SECONDS):
            if isinstance(event, DescribedEvent):
                if event.protocol != PROTOCOL:
                    what = f"the command speaks protocol {event.protocol}, expected {PROTOCOL}"
                    raise EnvironmentLoadError(what, "install the eureka_adapter of this version")
                found = Described(event)
                cls = command_class(command.folder, command.file, event)
                variables = cls.all_variables()
            elif isinstance(event, EpisodeEvent) and found is not None:
                found.episodes.append(played(event, variables))
        if found is None:
            raise job.unfinished("a `described` event")
    return found


def played(told: EpisodeEvent, variables: Sequence[Variable]) -> PlayedEpisode:
    """The episode's values as arrays. Raises ProtocolFaultError for others than declared."""
    start, values = told.start or {}, told.values or {}
    by_name = {each.name: each.shape for each in variables}
    if told.values is not None:
        missing = [name for name in by_name if name not in values]
        if missing:
            what = f"an episode lacks the declared variable {missing[0]!r}"
            raise ProtocolFaultError(what, "tell every variable of `described`, and `actions`")
    return PlayedEpisode(
        told,
        {name: _array(name, start[name], by_name[name]) for name in start if name in by_name},
        {
            name: _array(name, each, (told.length, *by_name[name]))
            for name, each in values.items()
            if name in by_name
        },
    )


def _array(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    try:
        array = np.asarray(value, dtype=np.float32)
    except (ValueError, TypeError):
        array = np.asarray(math.nan)
    if array.shape != shape or not np.isfinite(array).all():
        told = f"has the shape {array.shape}" if array.shape != shape else "is not finite"
        what = f"an episode's {name!r} {told}, expected finite numbers of shape {shape}"
        raise ProtocolFaultError(what, "the first dimension is the step; correct the declaration")
    return array


def recorded_transitions(
    episodes: Sequence[PlayedEpisode], variables: Sequence[Variable]
) -> dict[str, Tensor]:
    """Variables and `previous_` ones over all steps, for dry runs. Shape of each: (steps,
    *variable.shape). Raises EnvironmentFaultError without a step."""
    whole = [each for each in episodes if each.values]
    if not whole:
        what = "the command described itself without episodes that hold `values`"
        raise EnvironmentFaultError(what, "docs/protocol.md: `episode` in the mode describe")
    found: dict[str, Tensor] = {}
    for variable in variables:
        name = variable.name
        now = [torch.from_numpy(each.values[name]) for each in whole]
        before = [
            torch.cat([torch.from_numpy(each.start[name])[None] if name in each.start else it[:1],
                       it[:-1]])
            for each, it in zip(whole, now, strict=True)
        ]  # fmt: skip
        found[name], found[PREVIOUS_PREFIX + name] = torch.cat(now), torch.cat(before)
    return found
