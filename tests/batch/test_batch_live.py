"""The live view of a batch: its picture, and the lines above it."""

from __future__ import annotations

import io

import pytest
from eureka_agent.report.lines import Line
from rich.console import Console

from eureka_agent.batch.live import BatchLines, BatchView, batch_view
from eureka_agent.batch.queue import Event
from eureka_agent.journal.entries import IterationStarted, RunStarted
from eureka_agent.journal.progress import Progress, TrainingProgress, TrainingQueued
from eureka_agent.records import TaskDescription
from eureka_agent.settings import SearchSettings


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def text(lines: list[Line]) -> list[str]:
    return ["".join(piece for piece, _ in line).rstrip() for line in lines]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def written() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def view(clock: Clock, written: io.StringIO) -> BatchView:
    console = Console(file=written, force_terminal=True, width=110, height=20)
    made = BatchView(console, "nightly", clock)
    made.know({"hopper-0": "finished", "hopper-1": "waiting", "ant-0": "waiting"})
    return made


def begin(view: BatchView, name: str, description: TaskDescription) -> None:
    settings = SearchSettings(
        env="cart", iterations=2, samples=2, env_steps=1000, finalists=0, confirm=0
    )
    view.event(Event(0.0, name, "running", ""))
    view.entry(
        name,
        RunStarted(
            run_name=name, description=description, sentence="run", settings=settings,
            wall="process", designer="offline",
        ),
    )  # fmt: skip
    view.entry(name, IterationStarted(iteration=0, round=0, samples=2))


def test_the_picture_has_a_line_for_each_search_under_way(
    view: BatchView, clock: Clock, description: TaskDescription
) -> None:
    begin(view, "hopper-1", description)
    for job in ("a", "b"):
        view.entry("hopper-1", TrainingQueued(job=job, label=job, training="repeat", seed=0))
    view.entry(
        "hopper-1", TrainingProgress(job="a", points=(Progress(env_steps=100, fitness=1.0),))
    )
    clock.now += 65.0
    heading, titles, row = text(view.lines(110, 20))
    assert heading == (
        "nightly  1 of 3 searches have ended · 1 finished · 1 running · 1 waiting · 1:05 elapsed"
    )
    assert titles.split() == ["search", "phase", "trainings", "best", "now", "left"]
    words = row.split()
    assert words[0] == "hopper-1"
    assert "iteration 1 of 2" in row
    # 2 generations of 2
    assert "0/4" in words
    assert "1 training, 1 waiting" in row


def test_a_search_that_has_ended_leaves_the_picture(
    view: BatchView, description: TaskDescription
) -> None:
    begin(view, "hopper-1", description)
    begin(view, "ant-0", description)
    view.event(Event(0.0, "hopper-1", "finished", ""))
    heading, _, row = text(view.lines(110, 20))
    assert heading.startswith("nightly  2 of 3 searches have ended · 2 finished · 1 running")
    assert row.split()[0] == "ant-0"


def test_more_searches_than_lines_are_counted(
    view: BatchView, description: TaskDescription
) -> None:
    for number in range(9):
        begin(view, f"cart-{number}", description)
    lines = text(view.lines(110, 7))
    assert len(lines) == 7
    assert lines[-1] == "  and 5 more searches"


def test_a_pause_is_shown_and_what_the_picture_says_gets_no_line(
    view: BatchView, written: io.StringIO, description: TaskDescription
) -> None:
    begin(view, "ant-0", description)
    view.event(Event(0.0, "ant-0", "paused", ""))
    assert "paused" in text(view.lines(110, 20))[2]
    assert "ant-0: paused" in written.getvalue()
    assert "ant-0: running" not in written.getvalue()


def test_without_a_terminal_each_event_is_a_line(written: io.StringIO) -> None:
    view = batch_view(Console(file=written, width=20), "nightly")
    assert isinstance(view, BatchLines)
    with view:
        view.event(Event(0.0, "a-search-with-a-long-name", "failed", "the reason of it"))
    line = written.getvalue()
    assert line.endswith(" a-search-with-a-long-name: failed the reason of it\n")
    assert line.count("\n") == 1
