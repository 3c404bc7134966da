"""The built-in environments, read from their source text without torch and simulators, and new ones
from the templates beside them."""

from __future__ import annotations

import ast
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from eureka_agent.command_file import COMMAND_FILE
from eureka_agent.environment_files import (
    ENVIRONMENT_FILE,
    TASKS_FOLDER,
    fingerprint_of,
    parsed,
    relevant_files,
    rewards_of,
    texts_of_calls,
)
from eureka_agent.errors import EnvironmentLoadError, did_you_mean, lacks_room, system_reason
from eureka_agent.resources import resource_folder

GYMNASIUM_PREFIX = "gymnasium:"
_TEMPLATES = "_templates"


@dataclass(frozen=True)
class CatalogueEntry:
    name: str
    folder: Path
    doc: str
    """First paragraph of the environment class's docstring."""
    tasks: Mapping[str, str]
    """Sentence by task name; the default task comes first."""
    rewards: Mapping[str, frozenset[str]]
    """Paths of human and sparse reward by task name."""

    def fingerprint(self, task: str) -> str:
        """Fingerprint of the files that results of a task depend on, as they are now."""
        return fingerprint_of(relevant_files(self.folder, task, self.rewards[task]))


def list_environments() -> tuple[CatalogueEntry, ...]:
    """The built-in environments by name."""
    return tuple(read_entry(folder) for _, folder in sorted(_built_in().items()))


def _built_in() -> dict[str, Path]:
    files = resource_folder("envs").glob(f"*/{ENVIRONMENT_FILE}")
    return {path.parent.name: path.parent for path in files}


def find_folder(reference: str) -> Path:
    """Folder of a built-in environment, or the given one. Raises EnvironmentLoadError."""
    built_in = _built_in()
    if reference in built_in:
        return built_in[reference]
    folder = Path(os.path.expanduser(reference))
    is_path = os.sep in reference or (os.altsep is not None and os.altsep in reference)
    if folder.is_file():
        what = f"{reference!r} is a file, expected an environment's folder"
        hint = f"name the folder that holds {ENVIRONMENT_FILE} or {COMMAND_FILE}"
        raise EnvironmentLoadError(what, hint)
    if not is_path and not folder.is_dir():
        raise EnvironmentLoadError(
            f"there is no environment {reference!r}",
            f"name a built-in one, a folder with an {ENVIRONMENT_FILE}, or {GYMNASIUM_PREFIX}<id>;"
            f" {did_you_mean(reference, built_in)}",
        )
    if not folder.is_dir():
        raise EnvironmentLoadError(f"there is no folder {reference!r}", "check the path")
    return folder.resolve()


def first_paragraph(docstring: str | None) -> str:
    """A docstring up to its first empty line, as one line."""
    return " ".join((docstring or "").strip().split("\n\n")[0].split())


def further_paragraphs(docstring: str | None) -> str:
    """A docstring after its first empty line, unchanged."""
    return (docstring or "").strip().partition("\n\n")[2].strip()


def task_files(folder: Path) -> dict[str, Path]:
    files = sorted((folder / TASKS_FOLDER).glob("*.py"))
    return {path.stem: path for path in files if not path.stem.startswith("_")}


def default_first(names: Iterable[str], default: str | None) -> list[str]:
    """Task names sorted, the default one first."""
    return sorted(names, key=lambda name: (name != default, name))


def read_entry(folder: Path) -> CatalogueEntry:
    """Read an environment's folder from its source text. Raises EnvironmentLoadError."""
    module = parsed(folder / ENVIRONMENT_FILE)
    files = task_files(folder)
    value = _assigned("DEFAULT_TASK", module.body)
    default = str(value.value) if isinstance(value, ast.Constant) and value.value else None
    names = default_first(files, default)
    keywords = {name: texts_of_calls(parsed(files[name])) for name in names}
    # every environment has a `max_episode_length`
    nodes = (node for node in module.body if isinstance(node, ast.ClassDef))
    classes = (node for node in nodes if _assigned("max_episode_length", node.body))
    return CatalogueEntry(
        folder.name,
        folder,
        first_paragraph(ast.get_docstring(next(classes, module))),
        tasks={name: given.get("sentence", "") for name, given in keywords.items()},
        rewards={name: rewards_of(given) for name, given in keywords.items()},
    )


def _assigned(name: str, statements: Iterable[ast.stmt]) -> ast.expr | None:
    for statement in statements:
        if isinstance(statement, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == name for target in statement.targets
        ):
            return statement.value
    return None


# ── new ones ──────────────────────────────────────────────────────────────────────────────────────


def kinds() -> tuple[str, ...]:
    templates = resource_folder("envs") / _TEMPLATES
    return tuple(sorted(path.name for path in templates.iterdir() if path.is_dir()))


def write_new_environment(folder: Path, kind: str) -> tuple[Path, ...]:
    """Write the template of one of `kinds()`; return its files. Raises EnvironmentLoadError."""
    template = resource_folder("envs") / _TEMPLATES / kind
    found = (path for path in sorted(template.rglob("*")) if path.is_file())
    sources = [path for path in found if "__pycache__" not in path.parts]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            what = f"the folder {str(folder)!r} is not empty, so nothing was written to it"
            raise EnvironmentLoadError(what, "name a new folder")
        try:
            for source in sources:
                path = folder / source.relative_to(template)
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(source.read_bytes())
        except BaseException:  # also Ctrl-C; all in the folder is from here
            shutil.rmtree(folder, ignore_errors=True)
            raise
    except OSError as error:
        raise EnvironmentLoadError(
            f"cannot write the environment to {str(folder)!r}: {system_reason(error)}",
            "free some space, then try again"
            if lacks_room(error)
            else "name a folder that you may write to",
        ) from None
    return tuple(folder / source.relative_to(template) for source in sources)
