"""Faults that a person could make in this project, as data: `faults/<part>.toml`.

Each table there is a fault, named `<part>/<table>`:

    what   one sentence on what goes wrong
    file   the file that it is planted in, from the root of the project
    old    text that stands exactly once in that file
    new    text in its place
    tests  tests that are run for it, as pytest takes them; default: `tests/<part>`
    wider  tests that are run where these catch nothing; default: none

Tests in `tests/adversarial` really attack the machine that they run on: no fault that opens a wall
names them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

FAULTS = Path(__file__).resolve().parent / "faults"


@dataclass(frozen=True)
class Fault:
    """A change of one text in one file that makes the program wrong."""

    name: str
    what: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    wider: tuple[str, ...] = ()

    def why_not(self, root: Path) -> str:
        """Why the fault cannot be planted and looked for in the project at `root`; "" where it
        can."""
        path = root / self.file
        if not path.is_file():
            return f"there is no {self.file}"
        count = path.read_text(encoding="utf-8").count(self.old)
        if count != 1:
            return f"its old text stands {count} times in {self.file}, expected once"
        if self.old == self.new:
            return "its old and its new text are the same"
        missing = [
            test
            for test in (*self.tests, *self.wider)
            if not (root / test.partition("::")[0]).exists()
        ]
        return f"there are no tests {missing[0]}" if missing else ""

    @contextmanager
    def planted(self, root: Path) -> Iterator[None]:
        """Plant the fault in the project at `root` for the block, and remove it afterwards."""
        path = root / self.file
        before = path.read_bytes()
        path.write_bytes(before.replace(self.old.encode(), self.new.encode()))
        try:
            yield
        finally:
            path.write_bytes(before)


def load_faults(folder: Path = FAULTS) -> list[Fault]:
    """All faults, in the order of the files' names and of the tables in them."""
    return [
        Fault(
            name=f"{path.stem}/{name}",
            what=table["what"],
            file=table["file"],
            old=table["old"],
            new=table["new"],
            tests=tuple(table.get("tests", (f"tests/{path.stem}",))),
            wider=tuple(table.get("wider", ())),
        )
        for path in sorted(folder.glob("*.toml"))
        for name, table in tomllib.loads(path.read_text(encoding="utf-8")).items()
    ]


def select(faults: Sequence[Fault], patterns: Sequence[str]) -> list[Fault]:
    """The faults whose names match any of the patterns; all faults if there is no pattern. A part's
    name stands for all of its faults. Raises ValueError for a pattern that matches none."""
    chosen = []
    for pattern in patterns:
        found = [
            fault
            for fault in faults
            if fnmatch(fault.name, pattern) or fault.name.partition("/")[0] == pattern
        ]
        if not found:
            raise ValueError(f"no fault matches {pattern!r}")
        chosen += found
    return [fault for fault in faults if fault in chosen] if patterns else list(faults)


def copy_project(root: Path, target: Path) -> None:
    """Copy the files that git knows or would add.

    Compiled modules of the copy are told from outdated ones by their content: a fault that is
    planted and taken out within a second may leave time and size as they were.
    """
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=True,
    ).stdout
    for name in filter(None, map(os.fsdecode, listed.split(b"\0"))):
        if (root / name).is_file():  # one that was deleted is still listed
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, target / name)
