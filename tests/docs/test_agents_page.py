"""AGENTS.md is short, and names what is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "AGENTS.md").read_text(encoding="utf-8")


def test_it_names_paths_and_targets_that_are_there() -> None:
    assert len(PAGE.splitlines()) < 120
    paths = re.findall(r"`([\w.]+(?:/[\w.]*)+)`", PAGE) + re.findall(r"pytest -q (\S+)", PAGE)
    assert len(paths) > 15
    rooms = (ROOT, ROOT / "eureka_agent")
    assert [path for path in paths if not any((room / path).exists() for room in rooms)] == []
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    named = re.findall(r"make ([a-z-]+)  |`make ([a-z-]+)`", PAGE)
    assert {first or second for first, second in named} <= targets
