"""Values that a shell completes: environments, tasks, models, runs, attempts. No torch."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from eureka_agent.errors import EurekaError


def environments(
    context: click.Context, parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """Built-in environments, or folders for the beginning of a path."""
    from eureka_agent.simulation.catalogue import list_environments

    return _folder(begun) or _named(
        begun, [*(each.name for each in list_environments()), "gymnasium:"]
    )


def tasks(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Tasks of the environment on the same line, else of all."""
    from eureka_agent.simulation.catalogue import list_environments, task_files

    named = context.params.get("env") or context.params.get("environment")
    if named and Path(named).is_dir():
        return _named(begun, task_files(Path(named)))
    entries = [each for each in list_environments() if not named or each.name == named]
    return _named(begun, dict.fromkeys(task for each in entries for task in each.tasks))


def models(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """`offline`, the models in the table of prices, and the recordings."""
    from eureka_agent.llm.prices import known_models
    from eureka_agent.resources import resource_folder

    recordings = (resource_folder("prompts") / "recorded").glob("*.jsonl")
    return _named(
        begun, ["offline", *known_models(), *(f"replay:{each.stem}" for each in recordings)]
    )


def runs(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """`latest` and the runs, newest first; folders for the beginning of a path."""
    from eureka_agent.archive.run_folder import list_runs

    if folder := _folder(begun):
        return folder
    names = [folder.name for folder in reversed(list_runs())]
    return _named(begun, ["latest", *names] if names else [])


def batches(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Batches in the runs folder; folders for the beginning of a path."""
    from eureka_agent.archive.run_folder import list_batches

    return _folder(begun) or _named(begun, [folder.name for folder in list_batches()])


def attempts(
    context: click.Context, parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """Attempts of the run on the same line."""
    from eureka_agent.archive.run_folder import find_run

    folder = Path()
    with suppress(EurekaError):
        folder = find_run(str(context.params.get("run") or "latest")) / "attempts"
    if not folder.is_dir():
        return []
    return _named(begun, [path.name for path in sorted(folder.iterdir()) if path.is_dir()])


def _named(begun: str, names: Iterable[str]) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(begun)]


def _folder(begun: str) -> list[CompletionItem]:
    """Folders, for the beginning of a path; nothing for that of a name."""
    is_path = os.sep in begun or begun.startswith(".")
    return [CompletionItem(begun, type="dir")] if is_path else []
