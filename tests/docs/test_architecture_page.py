"""The table of folders in docs/architecture.md: every import of the code runs down it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import eureka_agent

PACKAGE = Path(eureka_agent.__file__).parent
PAGE = (PACKAGE.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
# `export` makes a policy's files, `envs` loads a person's own environment; search and benchmarks
# read sources
ACROSS_ON_PURPOSE = {"cli", "search", "export", "batch"}

LAZY = ("__init__.py", "search")
"""The package hands on functions for notebooks, and imports them on use."""


def table() -> dict[str, str]:
    """The place where each folder's code runs, by folder, in the table's order."""
    return dict(re.findall(r"^\| `(\w+)/` \| (\w+) \|", PAGE, flags=re.MULTILINE))


def imports() -> Iterator[tuple[str, str, str]]:
    """File, its folder and the folder that it imports, for all imports from another folder."""
    for path in PACKAGE.rglob("*.py"):
        place = path.relative_to(PACKAGE)
        folder = place.parts[0] if len(place.parts) > 1 else ""
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            for name in names:
                package, _, rest = name.partition(".")
                target = rest.partition(".")[0]
                if (
                    package == PACKAGE.name
                    and target != folder
                    and (PACKAGE / target / "__init__.py").is_file()
                    and target
                    and (str(place), target) != LAZY
                ):
                    yield str(place), folder, target


def test_every_folder_has_a_row() -> None:
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders == set(table())


def test_imports_run_down_the_table() -> None:
    order = list(table())
    up = [
        (file, target)
        for file, folder, target in imports()
        if not folder or order.index(target) < order.index(folder)
    ]
    assert up == []


def test_the_driver_imports_nothing_of_the_worker() -> None:
    runs_in = table()
    across = {
        (folder, target)
        for _, folder, target in imports()
        if runs_in[folder] == "driver" and runs_in[target] == "worker"
    }
    assert "worker" not in {target for _, target in across}
    assert {folder for folder, _ in across} <= ACROSS_ON_PURPOSE
