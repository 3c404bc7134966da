"""The searches of a suite: its batch file, and faults of that file where the suite has them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from eureka_agent.archive.run_folder import BATCH_FILE
from eureka_agent.batch.file import BatchFile, BatchSettings, FileFault, Place, batch_from
from eureka_agent.batch.folder import differences_of
from eureka_agent.batch.intents import IntentsFile
from eureka_agent.batch.matrix import PlannedSearch, expand, name_word
from eureka_agent.batch.suite import Suite, SuiteError
from eureka_agent.errors import did_you_mean
from eureka_agent.settings import FREE_SETTINGS, MOST_PROPOSALS, SearchSettings
from eureka_agent.simulation.catalogue import GYMNASIUM_PREFIX
from eureka_agent.training_counts import TrainingCounts
from eureka_agent.wording import plural

_OF_METHODS = ("samples", "iterations", "confirm", "confirm_seeds")
"""Settings from which a search's number of trainings follows."""
_FREE = FREE_SETTINGS - {
    *("iterations", "budget", "finalists", "final_seeds", "baselines", "baseline_seeds"),
    *("randomise", "novelty", "retry_rounds"),
}
"""Settings that may differ between the searches of one benchmark: no result follows from them."""


def planned_searches(suite: Suite) -> tuple[BatchFile, tuple[PlannedSearch, ...]]:
    """The batch file of a suite, and its searches. Raises EurekaError with every mistake."""
    if not suite.tasks:
        raise SuiteError(
            f"the suite {suite.name!r} has no tasks of its own",
            "name a folder of environments: --envs FOLDER",
        )
    own = _own_faults(suite)
    methods = []
    for name, settings in suite.methods.items():
        samples = _samples(suite, name, settings, own)
        methods.append({"name": name, **settings, **({"samples": samples} if samples else {})})
    content = {
        **{key: value for key, value in suite.batch.items() if key in BatchSettings.model_fields},
        "defaults": {"schedule": "generations", "video": False, **suite.settings},
        "matrix": {
            "task": [task_case(task) for task in suite.tasks],
            "method": methods,
            "seed": list(range(suite.seeds)),
        },
    }
    head = f"# The searches of the benchmark {suite.name!r}, written by the benchmark's command.\n"
    text = head + yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    file = batch_from(Path(suite.path or suite.name), content, text, suite.lines)
    file = replace(file, faults=(*own, *file.faults), place_of=partial(_place, suite))
    return file, expand(file)


def task_case(task: str | Mapping[str, Any]) -> dict[str, Any]:
    """A task's settings, with its name as the names of searches have it."""
    if isinstance(task, str):
        has_task = ":" in task.removeprefix(GYMNASIUM_PREFIX)
        env, _, chosen = task.rpartition(":") if has_task else (task, "", "")
        task = {"env": env, **({"task": chosen} if chosen else {})}
    environment = str(task.get("env", "")).rstrip("/").rpartition("/")[2]
    words = [environment, *([str(task["task"])] if task.get("task") else [])]
    return {**task, "name": name_word(str(task.get("name") or "-".join(words))) or "task"}


def check_benchmark(searches: Sequence[PlannedSearch], folder: Path) -> None:
    """Raise SuiteError where a search of the folder that has begun has other settings."""
    if not (folder / BATCH_FILE).is_file():
        return
    planned = {search.name: search.values for search in searches}
    if listed := differences_of(IntentsFile(folder), planned, _FREE):
        raise SuiteError(
            f"{str(folder)!r} holds a benchmark with other settings:{listed}",
            "put the old values back, or name another folder: --folder FOLDER",
        )


def _own_faults(suite: Suite) -> list[FileFault]:
    """Faults that the batch file does not show."""
    found = [
        FileFault(("batch", str(key)), f"unknown key {key!r}", did_you_mean(str(key), _LIMITS))
        for key in suite.batch
        if key not in _LIMITS
    ]
    places: list[tuple[Place, Collection[str]]] = [(("settings",), suite.settings)]
    places += [(("methods", name), settings) for name, settings in suite.methods.items()]
    for place, settings in places:
        if "samples" in settings:
            message = "samples follow from the suite's trainings"
            hint = "set iterations, confirm and confirm_seeds, and trainings of the suite"
            found.append(FileFault((*place, "samples"), message, hint))
    first: dict[str, Place] = {}
    for number, task in enumerate(suite.tasks):
        place = ("tasks", number)
        for key in _OF_METHODS if isinstance(task, dict) else ():
            if key in task:
                message = "a method sets it, so that all tasks are searched alike"
                found.append(FileFault((*place, key), message, "set it under `methods`"))
        name = task_case(task)["name"]
        if first.setdefault(name.lower(), place) is not place:  # some disks ignore capitals
            message = f"a task before it has the name {name!r} too"
            hint = "leave it out, or give it a `name`: {env: ENV, task: TASK, name: NAME}"
            found.append(FileFault(place, message, hint))
    return found


_LIMITS = BatchSettings.model_fields


def _samples(
    suite: Suite, name: str, settings: Mapping[str, Any], faults: list[FileFault]
) -> int | None:
    """Samples that fill the trainings of a method's search; None where a setting is faulty.

    Some of the trainings confirm the best of a generation.
    """
    common = {**suite.settings, **settings}
    if common.get("iterations") == 0:
        place = ("methods", name) if "iterations" in settings else ("settings",)
        message = "it is 0, expected a whole number, 1 or more"
        faults.append(FileFault((*place, "iterations"), message))
        return None
    try:
        search = SearchSettings.model_validate({**common, "samples": MOST_PROPOSALS})
    except ValidationError:
        return None  # the batch file has this fault too
    made, iterations = TrainingCounts.of(search), search.iterations
    confirmed = made.confirmed * made.confirmations
    fewest = max(1, search.confirm if confirmed else 1)
    samples, rest = divmod(suite.trainings - confirmed, iterations)
    if rest or samples < fewest:
        message = (
            f"{plural(suite.trainings, 'training')} cannot be divided into"
            f" {plural(iterations, 'generation')} and {plural(confirmed, 'confirmation')}"
        )
        least = iterations * fewest + confirmed
        hint = f"set trainings to {least:,}, or to a multiple of {iterations:,} more"
        faults.append(FileFault(("methods", name), message, hint))
        return None
    if samples > MOST_PROPOSALS:
        message = f"a generation has {samples:,} proposals, expected at most {MOST_PROPOSALS:,}"
        hint = "raise its iterations, or lower trainings of the suite"
        faults.append(FileFault(("methods", name), message, hint))
        return None
    return samples


def _place(suite: Suite, place: Place) -> Place:
    """A place of the batch file as one of the suite; those of the suite stay."""
    match place:
        case ("defaults", *inside):
            return ("settings", *inside)
        case ("matrix", "task", int(number), *inside):
            return ("tasks", number, *(inside if isinstance(suite.tasks[number], dict) else ()))
        case ("matrix", "method", int(number), *inside):
            return ("methods", list(suite.methods)[number], *inside)
        case (str(name), *_) if name in _LIMITS:
            return ("batch", *place)
        case ("matrix", *_):
            return ()
    return place
