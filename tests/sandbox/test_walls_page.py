"""sandboxes/README.md says of each wall what the wall says of itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from eureka_agent.sandbox.choose import WALLS, choose_wall

PAGE = (Path(__file__).parents[2] / "sandboxes" / "README.md").read_text()


@pytest.mark.parametrize("name", WALLS)
def test_the_page_lists_what_a_wall_covers_and_what_not(name: str) -> None:
    wall = choose_wall(name)
    section = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    (text,) = [part for part in section if part.startswith(f"`{name}`")]
    covered, not_covered = text.split("It does not cover:")
    assert tuple(re.findall(r"^- (.*)$", covered, re.MULTILINE)) == wall.covers
    assert tuple(re.findall(r"^- (.*)$", not_covered, re.MULTILINE)) == wall.does_not_cover
