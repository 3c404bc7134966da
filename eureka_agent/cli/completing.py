"""Values that a shell completes: environments, tasks, models, runs, attempts. No torch."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from eureka_agent.errors import EurekaError

GYMNASIUM = "gymnasium:"


def environments(
    context: click.Context, parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """Built-in environments, or folders for the beginning of a path."""
    if os.sep in begun or begun.startswith("."):
        return [CompletionItem(begun, type="dir")]
    from eureka_agent.simulation.catalogue import list_environments

    found = [CompletionItem(entry.name, help=entry.doc) for entry in list_environments()]
    found.append(CompletionItem(GYMNASIUM, help="any environment that Gymnasium knows"))
    return _beginning(begun, found)


def tasks(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Tasks of the environment on the same line, else of all."""
    from eureka_agent.simulation.catalogue import list_environments, task_files

    named = context.params.get("env") or context.params.get("environment")
    if named and Path(named).is_dir():
        return _named(begun, task_files(Path(named)))
    found = {
        task: CompletionItem(task, help=sentence)
        for entry in list_environments()
        if not named or entry.name == named
        for task, sentence in entry.tasks.items()
    }
    return _beginning(begun, list(found.values()))


def models(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """`offline`, the models in the table of prices, and the recordings."""
    from eureka_agent.archive.artefacts import MESSAGES
    from eureka_agent.archive.run_folder import list_runs
    from eureka_agent.llm.prices import known_models
    from eureka_agent.resources import resource_folder

    recordings = [path.stem for path in (resource_folder("prompts") / "recorded").glob("*.jsonl")]
    known = [
        name
        for name in known_models()
        if "/" in begun or name.startswith(("openai/", "anthropic/"))
    ]
    replies = [folder.name for folder in list_runs() if (folder / MESSAGES).is_file()]
    return _named(begun, ["offline", *known, *(f"replay:{name}" for name in recordings + replies)])


def runs(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """`latest` and the runs, newest first; folders for the beginning of a path."""
    from eureka_agent.archive.run_folder import list_runs

    if os.sep in begun or begun.startswith("."):
        return [CompletionItem(begun, type="dir")]
    names = [folder.name for folder in reversed(list_runs())]
    return _named(begun, ["latest", *names] if names else [])


def batches(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Batches in the runs folder; folders for the beginning of a path."""
    from eureka_agent.archive.run_folder import BATCH_FILE, runs_folder

    if os.sep in begun or begun.startswith("."):
        return [CompletionItem(begun, type="dir")]
    found = sorted(path.parent.name for path in runs_folder().glob(f"*/{BATCH_FILE}"))
    return _named(begun, found)


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
    return _beginning(begun, [CompletionItem(name) for name in names])


def _beginning(begun: str, items: list[CompletionItem]) -> list[CompletionItem]:
    return [item for item in items if str(item.value).startswith(begun)]
