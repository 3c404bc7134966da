"""sandboxes/README.md says of each wall what the wall says of itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from eureka_agent.sandbox.bubblewrap_wall import BubblewrapWall
from eureka_agent.sandbox.docker.wall import DockerWall
from eureka_agent.sandbox.process_wall import ProcessWall

PAGE = (Path(__file__).parents[2] / "sandboxes" / "README.md").read_text()


@pytest.mark.parametrize(
    "wall", [DockerWall, BubblewrapWall(), ProcessWall()], ids=lambda wall: wall.name
)
def test_the_page_lists_what_a_wall_covers_and_what_not(
    wall: type[DockerWall] | BubblewrapWall | ProcessWall,
) -> None:
    """If a wall does not cover something on some machines alone, the page says on which."""
    (text,) = [
        part
        for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)
        if part.startswith(f"`{wall.name}`")
    ]
    covered, not_covered = text.split("It does not cover:")
    assert set(re.findall(r"^- (.*)$", covered, re.MULTILINE)) == set(wall.covers)
    listed = re.findall(r"^- (?:On some machines: )?(.*)$", not_covered, re.MULTILINE)
    assert set(wall.does_not_cover) <= set(listed)
    everywhere = re.findall(r"^- (?!On some machines: )(.*)$", not_covered, re.MULTILINE)
    assert set(everywhere) <= set(wall.does_not_cover)
