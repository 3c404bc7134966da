"""What the built-in environments are, read from their source text: no torch and no simulator is
imported."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from eureka_agent.resources import resource_folder

ENVIRONMENT_FILE = "env.py"
TASKS_FOLDER = "tasks"


@dataclass(frozen=True)
class CatalogueEntry:
    """An environment that is a folder."""

    name: str
    doc: str
    """First paragraph of the environment class's docstring."""
    tasks: Mapping[str, str]
    """Sentence by task name; the default task comes first."""


def list_environments() -> tuple[CatalogueEntry, ...]:
    """The built-in environments by name."""
    folders = sorted(path.parent for path in resource_folder("envs").glob(f"*/{ENVIRONMENT_FILE}"))
    return tuple(read_entry(folder) for folder in folders)


def first_paragraph(docstring: str | None) -> str:
    """A docstring up to its first empty line, as one line."""
    return " ".join((docstring or "").strip().split("\n\n")[0].split())


def further_paragraphs(docstring: str | None) -> str:
    """What a docstring says after its first empty line, as it stands there."""
    return (docstring or "").strip().partition("\n\n")[2].strip()


def task_files(folder: Path) -> dict[str, Path]:
    """Task files of an environment folder by task name."""
    files = sorted((folder / TASKS_FOLDER).glob("*.py"))
    return {path.stem: path for path in files if not path.stem.startswith("_")}


def default_first(names: Iterable[str], default: str | None) -> list[str]:
    """Task names by alphabet, the default one in front."""
    return sorted(names, key=lambda name: (name != default, name))


def read_entry(folder: Path) -> CatalogueEntry:
    """An environment's folder, from its source text alone."""
    module = ast.parse((folder / ENVIRONMENT_FILE).read_bytes())
    files = task_files(folder)
    default = _assigned_string(module, "DEFAULT_TASK")
    tasks = {
        name: _sentence(ast.parse(files[name].read_bytes()))
        for name in default_first(files, default)
    }
    return CatalogueEntry(folder.name, _environment_doc(module), tasks)


def _environment_doc(module: ast.Module) -> str:
    """Docstring of the class that names an episode's length, as every environment does."""
    for node in module.body:
        if isinstance(node, ast.ClassDef) and _assigns(node, "max_episode_length"):
            return first_paragraph(ast.get_docstring(node))
    return first_paragraph(ast.get_docstring(module))


def _assigns(node: ast.ClassDef, name: str) -> bool:
    return any(
        isinstance(statement, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == name for target in statement.targets)
        for statement in node.body
    )


def _assigned_string(module: ast.Module, name: str) -> str | None:
    for statement in module.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            for target in statement.targets:
                if (
                    isinstance(target, ast.Name)
                    and target.id == name
                    and isinstance(statement.value.value, str)
                ):
                    return statement.value.value
    return None


def _sentence(module: ast.Module) -> str:
    """The `sentence=` of the file's `Task(...)`."""
    for node in ast.walk(module):
        if (
            isinstance(node, ast.keyword)
            and node.arg == "sentence"
            and isinstance(node.value, ast.Constant)
        ):
            return str(node.value.value)
    return ""
