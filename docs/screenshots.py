"""Makes the README's pictures from a real search: the live view half-way, and what is printed at
the end.

.venv/bin/python docs/screenshots.py [SEARCH SETTING=VALUE …]
"""

from __future__ import annotations

import asyncio
import io
import re
import sys
from pathlib import Path

import yaml
from rich.console import Console, RenderableType

from eureka_agent.journal.entries import BaseEntry, RunStarted
from eureka_agent.journal.progress import TrainingEnded
from eureka_agent.report.live import LiveView
from eureka_agent.report.tables import render_end
from eureka_agent.search.session import start
from eureka_agent.search.summary import run_report

FOLDER = Path(__file__).resolve().parent
WIDTH, HEIGHT = 112, 46
TRAININGS_BEFORE_THE_PICTURE = 12
DEFAULTS = (
    "env=quadcopter",
    "task=hover",
    "sentence=hover at the goal",
    "iterations=2",
    "samples=8",
    "seed=0",
)


def save(renderable: RenderableType, path: Path, title: str) -> None:
    """Draw on a terminal of a fixed size and keep it as SVG."""
    console = Console(
        record=True,
        width=WIDTH,
        height=HEIGHT,
        force_terminal=True,
        file=io.StringIO(),
        color_system="truecolor",
    )
    console.print(renderable)
    # the reader's own fixed-width font: a page must not fetch one from elsewhere
    picture = re.sub(r"@font-face \{.*?\}", "", console.export_svg(title=title), flags=re.DOTALL)
    path.write_text(picture.replace("Fira Code", "ui-monospace, monospace"), encoding="utf-8")


def main() -> None:
    """Run the search and write `live.svg` and `search.svg` beside this file."""
    pairs = (pair.partition("=") for pair in sys.argv[1:] or DEFAULTS)
    values = {name: yaml.safe_load(value) for name, _, value in pairs}
    view = LiveView(Console(width=WIDTH, height=HEIGHT, file=io.StringIO(), force_terminal=True))
    ended, title = 0, ""

    def observer(event: BaseEntry) -> None:
        nonlocal ended, title
        view(event)
        if isinstance(event, RunStarted):
            title = (
                f'./eureka search "{event.sentence}" --env {event.settings.env} --task'
                f" {event.settings.task}"
            )
        if isinstance(event, TrainingEnded):
            ended += 1
            if ended == TRAININGS_BEFORE_THE_PICTURE:
                save(view, FOLDER / "live.svg", title)

    run = asyncio.run(start(values, None, ["eureka", "search", values["sentence"]], observer))
    save(render_end(run_report(run)), FOLDER / "search.svg", "./eureka search: the end")
    print(run.folder)


if __name__ == "__main__":
    main()
