"""The size of the package: a budget of lines for each folder, and one meaning for each class name."""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from pathlib import Path

import eureka_agent

PACKAGE = Path(eureka_agent.__file__).parent
BUDGETS = PACKAGE.parent / ".ci" / "lines.toml"


def test_every_folder_keeps_to_its_budget() -> None:
    """A change that needs more raises the number in `.ci/lines.toml`, for all to see. One that
    leaves much room lowers it."""
    budgets: dict[str, int] = tomllib.loads(BUDGETS.read_text(encoding="utf-8"))["lines"]
    lines: Counter[str] = Counter()
    for path in PACKAGE.rglob("*.py"):
        place = path.relative_to(PACKAGE).parts
        lines[place[0] if len(place) > 1 else "top"] += len(path.read_bytes().splitlines())
    assert set(lines) == set(budgets)
    above = {
        name: (number, budgets[name]) for name, number in lines.items() if number > budgets[name]
    }
    assert above == {}
    room = {name: budgets[name] - number for name, number in lines.items()}
    assert {name: left for name, left in room.items() if left > 100 + budgets[name] // 20} == {}


def test_the_package_has_few_files() -> None:
    most = tomllib.loads(BUDGETS.read_text(encoding="utf-8"))["files"]
    assert sum(1 for _ in PACKAGE.rglob("*.py")) <= most


def test_a_class_name_means_one_thing() -> None:
    names: Counter[str] = Counter()
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names.update(node.name for node in tree.body if isinstance(node, ast.ClassDef))
    assert [name for name, number in names.items() if number > 1] == []
