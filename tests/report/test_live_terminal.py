"""The live view as a terminal shows it: one picture, whole at any time, whatever is typed or
printed meanwhile."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from rich.console import Console
from terminal import Terminal
from told import Story, started

from eureka_agent.journal.entries import Notice, RunEnded
from eureka_agent.records import Attempt, RunStatus, TaskDescription
from eureka_agent.report.live import LiveView
from eureka_agent.settings import SearchSettings

WIDTH, HEIGHT = 60, 16


class Watched:
    """A live view on a terminal."""

    def __init__(
        self,
        description: TaskDescription,
        settings: SearchSettings,
        make: Callable[..., Attempt],
    ) -> None:
        self.terminal = Terminal(WIDTH, HEIGHT)
        self._file = io.StringIO()
        self.console = Console(
            file=self._file, width=WIDTH, height=HEIGHT, force_terminal=True, color_system=None
        )
        self.view = LiveView(self.console, lambda: 5.0)
        self.story = Story(make, self.view)
        self.story.tell(started(description, settings, sentence="jump"))
        # the last line has the terminal's whole width, as the bar of a long search's head does
        self.story.tell(Notice(text="x" * WIDTH))

    def draw(self, times: int = 1) -> None:
        for _ in range(times):
            self.view.tick()

    def shown(self) -> list[str]:
        """Text on the terminal after everything written so far."""
        self.terminal.feed(self._file.getvalue())
        self._file.seek(0)
        self._file.truncate()
        return self.terminal.text


@pytest.fixture
def watched(
    description: TaskDescription, settings: SearchSettings, attempt: Callable[..., Attempt]
) -> Watched:
    return Watched(description, settings, attempt)


def test_a_control_c_on_the_screen_leaves_one_title(watched: Watched) -> None:
    watched.terminal.feed("$ eureka search\n")
    with watched.view:
        watched.draw()
        watched.shown()
        watched.terminal.feed("^C")  # the terminal's own echo, where the cursor is
        watched.draw(2)
        watched.story.tell(RunEnded(status=RunStatus.STOPPED))
    lines = watched.shown()
    assert lines[0] == "$ eureka search"
    assert lines.count("jump") == 1
    assert [line for line in lines if line.startswith("stopped")] == ["stopped"]
    assert not any("^C" in line for line in lines)


def test_the_picture_of_a_finished_run_makes_room_for_its_end(watched: Watched) -> None:
    watched.terminal.feed("".join(f"before {number}\n" for number in range(40)))
    for number in range(3):  # more than there is room for
        watched.story.tell(Notice(text=f"{number} " + "y" * 5 * WIDTH))
    with watched.view:
        watched.draw(3)
        watched.story.tell(RunEnded(status=RunStatus.FINISHED))
    watched.console.print("the end")
    assert watched.shown() == [f"before {number}" for number in range(40)] + ["the end"]


def test_a_notice_that_stays_stands_above_the_view_and_not_in_it_too(watched: Watched) -> None:
    with watched.view:
        watched.draw()
        watched.story.tell(Notice(text="scored by: height", stays=True))
        watched.draw(2)
        watched.story.tell(RunEnded(status=RunStatus.STOPPED))
    lines = watched.shown()
    assert lines[:2] == ["scored by: height", "jump"]
    assert lines.count("scored by: height") == 1


def test_a_question_keeps_its_lines_when_the_view_comes_back(watched: Watched) -> None:
    with watched.view:
        watched.draw(2)
        with watched.view.paused():
            assert watched.shown() == [""]
            watched.console.print("take it?\ny")
        watched.draw(2)
        watched.story.tell(RunEnded(status=RunStatus.STOPPED))
    lines = watched.shown()
    assert lines[:3] == ["take it?", "y", "jump"]
    assert lines.count("jump") == 1
