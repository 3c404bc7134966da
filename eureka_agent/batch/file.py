"""The batch file: settings of the batch, defaults, and groups of searches, each a matrix."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from eureka_agent.batch.faults import Fault, Place
from eureka_agent.errors import EurekaError, SettingsError, did_you_mean
from eureka_agent.search.budget import parse_budget, wall_time
from eureka_agent.settings import THE_FLAGS, Amount, checked_cluster, parse_settings
from eureka_agent.settings_files import line_numbers, read_settings_file

_ORIGIN = " in the batch "
"""Text of an error before what is wrong with a value."""
_TIME_HINT = "write 90s, 10m, 8h or 1h30m"
_GROUP_KEYS = ("extends", "template", "settings", "matrix", "skip", "overrides")
_UNNAMED_KEYS = ("matrix", "skip", "overrides")
"""Keys of a group without a name, at the top of the file."""


class BatchSettings(BaseModel):
    """Settings of a whole batch."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    at_once: Amount = Field(8, gt=0, le=1000)
    """Searches under way at a time."""
    retries: Amount = Field(2, ge=0, le=100)
    """Further tries of a search that failed."""
    max_cost: Decimal | None = Field(None, gt=0, le=1_000_000_000)
    """US dollars that all searches together may spend on models."""
    max_tokens: Amount | None = Field(None, gt=0, le=10**15)
    """Tokens that they may spend."""
    max_env_steps: str | None = None
    """Env steps that they may train, such as 50M."""
    max_time: str | None = None
    """Wall time of one call of the command, such as 9h."""
    until: str | None = None
    """Time of the day at which everything is saved and stopped, such as "07:30"."""
    wait_for_machine: str = "2h"
    """Longest wait for room on a disk, or for a Docker engine or a GPU that is away."""
    workers: Amount = Field(0, ge=0, le=1000)
    """Training workers; 0: one per CPU core, or per GPU."""
    cluster: str = "off"
    """Train on a Ray cluster: ray (the one that this machine is part of) or ray:<address>."""
    sandbox: Literal["auto", "docker", "bubblewrap", "process"] = "auto"
    """Wall around generated code."""

    @field_validator("max_env_steps", mode="before")
    @classmethod
    def _steps_as_text(cls, value: Any) -> Any:
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else value

    @field_validator("max_env_steps")
    @classmethod
    def _check_steps(cls, value: str | None) -> str | None:
        return _checked(value, env_steps_of, "expected env steps such as 500k, 5M or 2G")

    @field_validator("max_time", "wait_for_machine")
    @classmethod
    def _check_time(cls, value: str | None) -> str | None:
        return _checked(value, seconds_of, f"expected a wall time: {_TIME_HINT}")

    @field_validator("until")
    @classmethod
    def _check_until(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"([01]?\d|2[0-3]):[0-5]\d", value):
            raise ValueError('expected a time of the day such as "07:30"')
        return value

    @field_validator("cluster")
    @classmethod
    def _check_cluster(cls, value: str) -> str:
        return checked_cluster(value)

    @property
    def machine_wait_s(self) -> float:
        """The longest wait for the machine, in seconds."""
        return seconds_of(self.wait_for_machine) or 0.0

    @property
    def env_steps(self) -> int | None:
        """The limit of env steps as a number."""
        return None if self.max_env_steps is None else env_steps_of(self.max_env_steps)

    def end_time(self, now: Callable[[], float] = time.time) -> float | None:
        """The next time of the day at which the batch ends, in seconds since 1970."""
        if self.until is None:
            return None
        begin = datetime.fromtimestamp(now())
        hour, minute = map(int, self.until.split(":"))
        end = begin.replace(hour=hour, minute=minute, second=0, microsecond=0)
        return (end if end > begin else end + timedelta(days=1)).timestamp()


def env_steps_of(text: str) -> int | None:
    """Env steps of `"5M"`; None for another text."""
    return parse_budget(text).env_steps


def seconds_of(text: str) -> float | None:
    """Seconds of `"8h"`; None for another text."""
    return wall_time(text, f"max_time is {text!r}", _TIME_HINT)


def _checked(value: str | None, read: Callable[[str], object], expected: str) -> str | None:
    if value is not None:
        try:
            understood = read(value) is not None
        except SettingsError:
            understood = False
        if not understood:
            raise ValueError(expected)
    return value


@dataclass(frozen=True)
class Group:
    """A group of searches as it stands in the file."""

    name: str
    """Empty for the matrix at the top of the file."""
    place: Place
    extends: str | None
    template: bool
    """True for a group that only others extend."""
    settings: Mapping[str, Any]
    matrix: Mapping[str, list[Any]]
    skip: tuple[Mapping[str, Any], ...]
    overrides: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class BatchFile:
    """A batch file, before its matrices are expanded."""

    path: Path
    settings: BatchSettings
    defaults: Mapping[str, Any]
    groups: tuple[Group, ...]
    lines: Mapping[Place, int]
    """Line of every key and list member, from 1."""
    faults: tuple[Fault, ...] = ()
    """Mistakes in its form; `expand` raises them with those in what it expands."""
    text: str | None = None
    """Its text, where a command made it; None for that of `path`."""

    def fault(self, place: Place, message: str, hint: str = "") -> Fault:
        """A fault with the line of its place, or of the nearest one around it."""
        return located(self.lines, place, message, hint)


def located(lines: Mapping[Place, int], place: Place, message: str, hint: str = "") -> Fault:
    """A fault with its line."""
    around = next((place[:end] for end in range(len(place), 0, -1) if place[:end] in lines), ())
    return Fault(place, message, hint, lines.get(around))


def with_limits(file: BatchFile, given: Mapping[str, Any]) -> BatchFile:
    """The file with some settings of the batch replaced by flags."""
    values = file.settings.model_dump(mode="json", exclude_none=True)
    settings = parse_settings(BatchSettings, {**values, **given}, THE_FLAGS)
    return replace(file, settings=settings)


def read_batch_file(path: Path) -> BatchFile:
    """Read a batch file. Raises SettingsError for a file that cannot be read."""
    return batch_from(path, read_settings_file(path), line_numbers(path))


def batch_from(path: Path, values: Mapping[str, Any], lines: Mapping[Place, int]) -> BatchFile:
    """The batch file with these values. `path`, `lines`: for its faults."""
    faults: list[Fault] = []
    own = {name: values[name] for name in values if name in BatchSettings.model_fields}
    settings = _batch_settings(own, lines, faults)
    known = {*BatchSettings.model_fields, "defaults", "groups", *_UNNAMED_KEYS}
    for name in values:
        if name not in known:
            hint = did_you_mean(str(name), known)
            faults.append(located(lines, (str(name),), f"unknown key {name!r}", hint))
    defaults = _mapping(values.get("defaults"), ("defaults",), lines, faults)
    groups = []
    if any(name in values for name in _UNNAMED_KEYS):
        unnamed = {name: values[name] for name in _UNNAMED_KEYS if name in values}
        groups.append(_group("", (), unnamed, lines, faults))
    for name, content in _mapping(values.get("groups"), ("groups",), lines, faults).items():
        place: Place = ("groups", str(name))
        mapping = _mapping(content, place, lines, faults)
        groups.append(_group(str(name), place, mapping, lines, faults))
    if not groups and not faults:
        hint = "write `matrix:` with lists of settings, such as `env: [cartpole, hopper]`"
        faults.append(Fault((), "it names no search", hint))
    return BatchFile(path, settings, defaults, tuple(groups), lines, tuple(faults))


def _batch_settings(
    values: Mapping[str, Any], lines: Mapping[Place, int], faults: list[Fault]
) -> BatchSettings:
    sound = {}
    for name, value in values.items():
        try:
            parse_settings(BatchSettings, {name: value}, "the batch")
            sound[name] = value
        except EurekaError as error:
            faults.append(located(lines, (name,), f"it {error.message.partition(_ORIGIN)[2]}"))
    return BatchSettings(**sound)


def _group(
    name: str,
    place: Place,
    content: Mapping[str, Any],
    lines: Mapping[Place, int],
    faults: list[Fault],
) -> Group:
    for key in content:
        if key not in _GROUP_KEYS:
            hint = did_you_mean(str(key), _GROUP_KEYS)
            faults.append(located(lines, (*place, str(key)), f"unknown key {key!r}", hint))
    matrix = _mapping(content.get("matrix"), (*place, "matrix"), lines, faults)
    for axis, members in matrix.items():
        if not isinstance(members, list) or not members:
            where = (*place, "matrix", axis)
            message = f"it is {members!r}, expected a list"
            faults.append(located(lines, where, message, f"write `{axis}: [first, second]`"))
    extends = content.get("extends")
    if not isinstance(extends, str | None):
        message = f"it is {extends!r}, expected the name of a group"
        faults.append(located(lines, (*place, "extends"), message))
        extends = None
    template = content.get("template", False)
    if not isinstance(template, bool):
        message = f"it is {template!r}, expected true or false"
        faults.append(located(lines, (*place, "template"), message))
    given = _mappings(content.get("overrides"), (*place, "overrides"), lines, faults)
    overrides = []
    for number, override in enumerate(given):
        inside = (*place, "overrides", number)
        if set(override) != {"when", "set"}:
            message = f"it has {', '.join(map(str, override)) or 'nothing'}, expected when and set"
            hint = "write `{when: {env: ant}, set: {samples: 4}}`"
            faults.append(located(lines, inside, message, hint))
        overrides.append(
            {
                key: _mapping(value, (*inside, str(key)), lines, faults)
                for key, value in override.items()
            }
        )
    return Group(
        name,
        place,
        extends,
        template is True,
        _mapping(content.get("settings"), (*place, "settings"), lines, faults),
        {axis: members for axis, members in matrix.items() if isinstance(members, list)},
        _mappings(content.get("skip"), (*place, "skip"), lines, faults),
        tuple(overrides),
    )


def _mapping(
    value: Any, place: Place, lines: Mapping[Place, int], faults: list[Fault]
) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        faults.append(located(lines, place, f"it is {value!r}, expected names with values"))
        return {}
    return value


def _mappings(
    value: Any, place: Place, lines: Mapping[Place, int], faults: list[Fault]
) -> tuple[Mapping[str, Any], ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        faults.append(located(lines, place, f"it is {value!r}, expected a list"))
        return ()
    return tuple(
        _mapping(each, (*place, number), lines, faults) for number, each in enumerate(value)
    )
