"""The batch file: settings of the batch, defaults, and groups of searches, each a matrix."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from eureka_agent.batch.intents import NAME
from eureka_agent.errors import EurekaError, SettingsError, did_you_mean
from eureka_agent.search.budget import wall_time
from eureka_agent.settings import THE_FLAGS, Amount, checked_cluster, parse_settings, value_fault
from eureka_agent.settings_files import line_numbers, read_settings_file
from eureka_agent.wording import plural

Place = tuple[str | int, ...]
"""Keys and numbers that lead to a value of the file."""


@dataclass(frozen=True)
class FileFault:
    """One mistake in a batch file."""

    place: Place
    message: str
    hint: str = ""
    line: int | None = None

    @property
    def key(self) -> str:
        """The place in the form `groups.walkers.matrix.env[1]`."""
        parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.place)
        return "".join(parts).removeprefix(".")

    def __str__(self) -> str:
        where = f"line {self.line}, " if self.line is not None else ""
        key = f"{self.key}: " if self.place else ""
        return f"{where}{key}{self.message}" + (f" ({self.hint})" if self.hint else "")


class BatchFileError(EurekaError):
    """A batch file, or a suite, with mistakes."""

    def __init__(self, file: str, faults: Iterable[FileFault], lines: Mapping[Place, int]) -> None:
        """`faults`: at least one; equal ones are told once. `lines`: those of the file's places."""
        found = dict.fromkeys(replace(each, line=_line(lines, each.place)) for each in faults)
        self.faults = sorted(found, key=lambda fault: fault.line or 0)
        if len(self.faults) == 1:
            message = f"{file!r}, {self.faults[0]}"
        else:
            listed = "".join(f"\n  {fault}" for fault in self.faults)
            message = f"{file!r} has {plural(len(self.faults), 'mistake')}:{listed}"
        super().__init__(message, "mend the file and give the same command again")


def _line(lines: Mapping[Place, int], place: Place) -> int | None:
    """Line of a place, or of the nearest one around it."""
    around = (lines.get(place[:end]) for end in range(len(place), 0, -1))
    return next(filter(None, around), None)


def form_fault(error: ErrorDetails, known: Iterable[str]) -> FileFault:
    """A fault of form. `known`: keys that there are at its place."""
    place = tuple(part for part in error["loc"] if part != "[key]")
    match error["type"]:
        case "missing":
            return FileFault(place[:-1], f"it has no {place[-1]}")
        case "extra_forbidden" | "invalid_key":
            hint = did_you_mean(str(place[-1]), known)
            return FileFault(place, f"unknown key {place[-1]!r}", hint)
    return FileFault(place, f"it is {value_fault(error)}")


_TIME_HINT = "write 90s, 10m, 8h or 1h30m"


def seconds_of(text: str) -> float:
    """Seconds of `"8h"`. Raises ValueError for another text."""
    with suppress(SettingsError):
        if (seconds := wall_time(text, "the time", _TIME_HINT)) is not None:
            return seconds
    raise ValueError(f"expected a wall time: {_TIME_HINT}")


def _checked_time(text: str) -> str:
    seconds_of(text)
    return text


_Time = Annotated[str, AfterValidator(_checked_time)]


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
    max_time: _Time | None = None
    """Wall time of one call of the command, such as 9h; then everything is saved."""
    wait_for_machine: _Time = "2h"
    """Longest wait for room on a disk, or for a Docker engine or a GPU that is away."""
    workers: Amount = Field(0, ge=0, le=1000)
    """Training workers; 0: one per CPU core, or per GPU."""
    cluster: Annotated[str, AfterValidator(checked_cluster)] = "off"
    """Train on a Ray cluster: ray (the one that this machine is part of) or ray:<address>."""
    sandbox: Literal["auto", "docker", "bubblewrap", "process"] = "auto"


def _given(empty: Any) -> BeforeValidator:
    """Take `empty` for a name without a value."""
    return BeforeValidator(lambda value: empty if value is None else value)


def _checked_name(name: str) -> str:
    if not NAME.fullmatch(name):
        raise ValueError(
            "a group's name has letters, digits, '-', '_' and '.', and begins with a letter or a"
            " digit: it names folders"
        )
    return name


_Values = Annotated[dict[str, Any], _given({})]


class Override(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    when: _Values
    set: _Values


class _Matrix(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    matrix: Annotated[dict[str, Annotated[tuple[Any, ...], Field(min_length=1)]], _given({})] = {}
    skip: Annotated[tuple[_Values, ...], _given(())] = ()
    overrides: Annotated[tuple[Override, ...], _given(())] = ()


class SearchGroup(_Matrix):
    """A group of searches as it stands in the file."""

    settings: _Values = {}


class _Content(BatchSettings, _Matrix):
    """The whole file. A matrix at its top makes a group without a name."""

    defaults: _Values = {}
    groups: Annotated[
        dict[Annotated[str, AfterValidator(_checked_name)], Annotated[SearchGroup, _given({})]],
        _given({}),
    ] = {}


@dataclass(frozen=True)
class BatchFile:
    """A batch file, before its matrices are expanded."""

    path: Path
    settings: BatchSettings
    defaults: Mapping[str, Any]
    groups: Mapping[str, SearchGroup]
    """Groups by name; without a name the matrix at the top of the file."""
    text: str
    lines: Mapping[Place, int]
    """Line of every key and list member in the file that a person wrote, from 1."""
    faults: tuple[FileFault, ...] = ()
    """Mistakes in its form; `expand` raises them with those in what it expands."""

    place_of: Callable[[Place], Place] = lambda place: place
    """Place in the file that a person wrote, where a command made this one from it."""

    def refusal(self, faults: Iterable[FileFault]) -> BatchFileError:
        """The error for faults of this file."""
        moved = [replace(fault, place=self.place_of(fault.place)) for fault in faults]
        return BatchFileError(str(self.path), moved, self.lines)


def with_limits(file: BatchFile, given: Mapping[str, Any]) -> BatchFile:
    """The file with settings of the batch replaced by flags; None: not given."""
    flags = {name: value for name, value in given.items() if value is not None}
    parse_settings(BatchSettings, flags, THE_FLAGS, "batch start --help")
    values = file.settings.model_dump(mode="json", exclude_none=True)
    settings = parse_settings(BatchSettings, {**values, **flags}, THE_FLAGS)
    return replace(file, settings=settings)


def read_batch_file(path: Path) -> BatchFile:
    """Read a batch file. Raises SettingsError for a file that cannot be read."""
    values = read_settings_file(path)
    return batch_from(path, values, path.read_text(encoding="utf-8"), line_numbers(path))


def batch_from(
    path: Path, values: Mapping[str, Any], text: str, lines: Mapping[Place, int]
) -> BatchFile:
    """The batch file with these values, which are those of the text. `path`, `lines`: for its
    faults."""
    content, faults = _content(values)
    settings = BatchSettings(**content.model_dump(include={*BatchSettings.model_fields}))
    groups = dict(content.groups)
    if top := content.model_dump(include={*_Matrix.model_fields} & content.model_fields_set):
        groups = {"": SearchGroup.model_validate(top), **groups}
    if not groups and not faults:
        hint = "write `matrix:` with lists of settings, such as `env: [cartpole, hopper]`"
        faults.append(FileFault((), "it names no search", hint))
    return BatchFile(path, settings, content.defaults, groups, text, lines, tuple(faults))


def _content(values: Mapping[str, Any]) -> tuple[_Content, list[FileFault]]:
    """The file's content without its faulty parts, and their faults."""
    sound = deepcopy(dict(values))
    try:
        return _Content.model_validate(sound), []
    except ValidationError as error:
        faults = [form_fault(each, _known_keys(each)) for each in error.errors()]
    for place in dict.fromkeys(fault.place for fault in reversed(faults)):
        part: Any = sound
        with suppress(LookupError):  # a name that is no text
            for key in place[:-1]:
                part = part[key]
            del part[place[-1]]
    try:
        return _Content.model_validate(sound), faults
    except ValidationError:
        return _Content(), faults


def _known_keys(error: ErrorDetails) -> Collection[str]:
    """Keys that there are at the place of an error."""
    if "overrides" in error["loc"]:
        return Override.model_fields
    return (_Content if len(error["loc"]) == 1 else SearchGroup).model_fields
