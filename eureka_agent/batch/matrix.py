"""Expansion of a batch file: every search with its name and settings, and every mistake in them."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from eureka_agent.batch.file import BatchFile, FileFault, Place, SearchGroup
from eureka_agent.errors import EurekaError
from eureka_agent.settings import SearchSettings, parse_settings

MOST_SEARCHES = 1000
_OWN_FILES = r"batch\.(json|yaml)|defects\.log|output\.txt|stop|summary\.(html|md)"
_LONGEST_NAME, _LONGEST_WORD = 100, 40
OF_THE_BATCH = ("workers", "cluster", "sandbox")
CASE_NAME = "name"
"""Key of a case in a matrix whose value is its word in the names of searches."""


@dataclass(frozen=True)
class PlannedSearch:
    """One search of a batch."""

    name: str
    values: dict[str, Any]
    """Settings by name, as a search's settings file has them."""
    places: Mapping[str, Place] = field(compare=False, hash=False)
    place: Place = ()


def expand(file: BatchFile) -> tuple[PlannedSearch, ...]:
    """All searches of a batch file, in its order. Raises BatchFileError with every mistake."""
    faults = list(file.faults)
    searches: list[PlannedSearch] = []
    checked: set[tuple[Place, str]] = set()
    for name, group in file.groups.items():
        found = _searches(file, name, group, faults)
        for search in found:
            _check_settings(file, search, checked, faults)
        searches += found
    if not file.faults:  # without its faulty parts a search has another name
        _check_names(searches, faults)
    if not searches and not faults:
        faults.append(FileFault((), "no search is left: all are skipped"))
    if faults:
        raise file.refusal(faults)
    return tuple(searches)


_Placed = dict[str, tuple[Any, Place]]
"""Settings by name, each with its place in the file."""


def _placed(settings: Mapping[str, Any], place: Place) -> _Placed:
    return {name: (value, (*place, name)) for name, value in settings.items()}


def _searches(
    file: BatchFile, name: str, group: SearchGroup, faults: list[FileFault]
) -> list[PlannedSearch]:
    """The searches of a group."""
    place: Place = ("groups", name) if name else ()
    axes = {
        axis: [((*place, "matrix", axis, number), member) for number, member in enumerate(members)]
        for axis, members in group.matrix.items()
    }
    if (count := math.prod(map(len, axes.values()))) > MOST_SEARCHES:
        message = f"{count:,} searches, expected at most {MOST_SEARCHES:,}"
        hint = "take fewer, or several files"
        faults.append(FileFault((*place, "matrix"), message, hint))
        return []
    common = _placed(file.defaults, ("defaults",))
    common |= _placed(group.settings, (*place, "settings"))
    found = []
    for members in itertools.product(*axes.values()):
        values, words = dict(common), [name]
        for axis, (where, member) in zip(axes, members, strict=True):
            if isinstance(member, dict):
                case = {key: value for key, value in member.items() if key != CASE_NAME}
                values |= _placed(case, where)
                named = CASE_NAME in member
                words.append(name_word(str(member[CASE_NAME])) if named else _word(case))
            else:
                values[axis] = member, where
                words.append(_word({axis: member}))
        if any(_matches(values, skipped) for skipped in group.skip):
            continue
        for number, override in enumerate(group.overrides):
            if _matches(values, override.when):
                values |= _placed(override.set, (*place, "overrides", number, "set"))
        found.append(
            PlannedSearch(
                "-".join(filter(None, words))[:_LONGEST_NAME].strip("-.") or "search",
                {key: value for key, (value, _) in values.items()},
                {key: where for key, (_, where) in values.items()},
                place,
            )
        )
    return found


def _word(case: Mapping[str, Any]) -> str:
    """The part of a search's name that an axis gives."""
    parts = [
        f"{name}{value}" if isinstance(value, int | float) else str(value)
        for name, value in case.items()
    ]
    # of a path and of a model's name the last part
    return name_word("-".join(part.rstrip("/").rpartition("/")[2] for part in parts))


def name_word(text: str) -> str:
    """Text as a part of a search's name: letters, digits, dots and dashes, not too many."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.")[:_LONGEST_WORD].strip("-.")


def _matches(values: Mapping[str, tuple[Any, Place]], condition: Mapping[str, Any]) -> bool:
    """True if every setting has the value, or one of the values, of the condition."""
    return all(
        name in values
        and values[name][0] in (expected if isinstance(expected, list) else [expected])
        for name, expected in condition.items()
    )


def _check_settings(
    file: BatchFile, search: PlannedSearch, checked: set[tuple[Place, str]], faults: list[FileFault]
) -> None:
    """Check each setting once where it stands."""
    for name, value in search.values.items():
        place = search.places[name]
        if (place, name) in checked:
            continue
        checked.add((place, name))
        if name in OF_THE_BATCH:
            key = FileFault(file.place_of((name,)), "").key
            hint = f"set the key `{key}` of the file"
            faults.append(FileFault(place, f"{name} is for the whole batch", hint))
            continue
        try:
            settings = parse_settings(SearchSettings, {name: value}, "it")
        except EurekaError as error:
            message = error.message.replace(f"setting {name!r} in it ", "it ").replace(" in it", "")
            faults.append(FileFault(place, message, error.hint))
            continue
        if name == "fitness" and settings.fitness in ("written", "chosen"):
            message = f"a batch cannot search with fitness {settings.fitness!r}: nobody is asked"
            hint = "use `task` or `judged`, or start that search by itself"
            faults.append(FileFault(place, message, hint))


def _check_names(searches: list[PlannedSearch], faults: list[FileFault]) -> None:
    names = Counter(search.name.lower() for search in searches)  # some disks ignore capitals
    for search in {each.name.lower(): each for each in searches}.values():
        if re.fullmatch(_OWN_FILES, search.name.lower()):
            message = f"no search can have the name {search.name!r}: a batch has such a file"
            faults.append(FileFault(search.place, message, "give the group another name"))
        elif names[search.name.lower()] > 1:
            message = f"two searches have the name {search.name!r}"
            hint = "give a case of the matrix, a task or a group another name"
            faults.append(FileFault(search.place, message, hint))
