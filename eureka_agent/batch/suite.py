"""A suite: the tasks, methods and seeds of a benchmark, from its file and a user's flags."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from eureka_agent.batch.file import BatchFileError, Place, form_fault
from eureka_agent.errors import EurekaError, close_match
from eureka_agent.invocation import command
from eureka_agent.records import BASELINES
from eureka_agent.settings import Amount
from eureka_agent.settings_files import line_numbers, read_settings_file
from eureka_agent.simulation.catalogue import read_entry

SUITES_FOLDER = Path(__file__).parent / "suites"


class SuiteError(EurekaError):
    """A suite that cannot be run as it stands."""


def _checked_task(task: Any) -> Any:
    if isinstance(task, str):
        return task
    if not isinstance(task, dict):
        raise ValueError("expected ENV, ENV:TASK, or settings such as {env: ant, task: run}")
    if "env" not in task:
        (name, value), *others = task.items() or [("", "")]
        pair = f"{name}:{value}" if isinstance(value, str) and not others and name else "ENV:TASK"
        raise ValueError(f"it names no env; write {pair}, or {{env: ENV, task: TASK}}")
    return task


def _checked_name(name: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name):
        raise ValueError("a method's name has small letters, digits, '-' and '.'")
    if name in BASELINES:
        raise ValueError(f"{name!r} is part of every benchmark: leave it out")
    return name


class _SuiteContent(BaseModel):
    """The file of a suite."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    description: str = ""
    tasks: tuple[Annotated[Any, AfterValidator(_checked_task)], ...] = ()
    """Each `env` or `env:task`, or settings: `{env: ant, task: run, env_steps: 300000}`."""
    methods: dict[Annotated[str, AfterValidator(_checked_name)], dict[str, Any]] = Field(
        min_length=1
    )
    seeds: Amount = Field(3, ge=1, le=100, strict=True)
    """Searches of each method on each task."""
    trainings: Amount = Field(20, ge=1, le=10_000, strict=True)
    """Trainings of one search before its finals, confirmations included: the same for every
    method, so that all take equal env steps."""
    settings: dict[str, Any] = Field(default_factory=dict)
    batch: dict[str, Any] = Field(default_factory=dict)
    """Settings of the batch, such as `max_time`."""


class Suite(_SuiteContent):
    """A benchmark, as its file describes it."""

    name: str = ""
    path: str = Field("", exclude=True)
    lines: Mapping[Place, int] = Field(default_factory=dict, exclude=True)
    """Line of every key and list member in its file, from 1."""


def built_in_suites() -> dict[str, Path]:
    """Suites that come with the package, by name."""
    return {path.stem: path for path in sorted(SUITES_FOLDER.glob("*.yaml"))}


def read_suite(word: str) -> Suite:
    """A suite by its name or its file. Raises EurekaError with every mistake in its form."""
    path = built_in_suites().get(word, Path(word))
    if not path.is_file():
        close = close_match(word, built_in_suites())
        listing = f"`{command('bench')}` lists the built-in suites; one of your own is a file"
        hint = f"did you mean {close!r}?" if close else listing
        raise SuiteError(f"there is no suite {word!r}", hint)
    values, lines = read_settings_file(path), line_numbers(path)
    try:
        content = _SuiteContent.model_validate(values)
    except ValidationError as error:
        faults = [form_fault(each, _SuiteContent.model_fields) for each in error.errors()]
        raise BatchFileError(str(path), faults, lines) from None
    return Suite(**dict(content), name=path.stem, path=str(path), lines=lines)


def environments_in(folder: Path) -> tuple[dict[str, Any], ...]:
    """All tasks of the environments in a folder. Raises SuiteError where there is none."""
    tasks = tuple(
        {"env": str(path.parent.resolve()), "task": task}
        for path in sorted(folder.glob("[!_.]*/env.py"))
        for task in read_entry(path.parent).tasks
    )
    if not tasks:
        raise SuiteError(
            f"there is no environment in {str(folder)!r}",
            "name a folder whose folders have an env.py and tasks",
        )
    return tasks


def with_choices(
    suite: Suite, envs: Path | None, tasks: Sequence[str], seeds: int | None, models: Sequence[str]
) -> Suite:
    """The suite with some parts replaced by what a user chose, which have no line in its file."""
    changes: dict[str, Any] = {}
    if envs is not None:
        changes["tasks"] = environments_in(envs)
    if tasks:
        changes["tasks"] = tuple(tasks)
    if seeds is not None:
        changes["seeds"] = seeds
    if models:
        changes["settings"] = {**suite.settings, "model": list(models)}
    lines = {
        place: line
        for place, line in suite.lines.items()
        if place[0] not in changes or (place[0] == "settings" and place[1:2] != ("model",))
    }
    return suite.model_copy(update={**changes, "lines": lines})
