"""Lines of the log about what is under way: how often, what is waited for and since when, and how
fast it trains."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable

import click
import pytest
from eureka_agent.report.plain import PlainLog
from rich.console import Console
from told import judged, progress, proposed

from eureka_agent.archive.run_folder import Run
from eureka_agent.cli import watch as watching
from eureka_agent.journal.entries import IterationStarted, Notice, RunStarted
from eureka_agent.journal.progress import (
    RequestEnded,
    RequestStarted,
    TrainingEnded,
    TrainingProgress,
    TrainingQueued,
)
from eureka_agent.records import Attempt, Stage, TaskDescription
from eureka_agent.report import plain
from eureka_agent.report.panels import search_lines
from eureka_agent.report.run_report import RunReport
from eureka_agent.settings import SearchSettings


class Log:
    """A log whose clock a test moves; it ticks every second."""

    def __init__(self, report: RunReport) -> None:
        self.output = io.StringIO()
        self.now = 0.0
        self.log = PlainLog(Console(file=self.output, width=160), lambda: self.now)
        # 2 generations of 2, no baselines, no finals: 4 trainings of 1000 env steps
        settings = report.settings.model_copy(
            update={"samples": 2, "finalists": 0, "baselines": False}
        )
        self.log(started(report.description, settings))
        self.log(IterationStarted(iteration=0, round=0, samples=2))
        self.read = len(self.output.getvalue())

    def pass_by(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now += 1.0
            self.log.tick()

    def lines(self) -> list[str]:
        """Lines since the last call."""
        text = self.output.getvalue()[self.read :]
        self.read += len(text)
        return text.splitlines()

    def train(self, make: Callable[..., Attempt], name: str) -> None:
        self.log(proposed(make(name, Stage.PROPOSED)))
        self.log(judged(make(name, Stage.ACCEPTED)))
        self.log(TrainingQueued(job=f"{name}@7", label=name, training="search", seed=7))
        self.log(TrainingProgress(job=f"{name}@7", points=()))


def started(description: TaskDescription, settings: SearchSettings) -> RunStarted:
    return RunStarted(
        run_folder=watching.Path("runs/jumper"),
        run_name="20261121-035500_jumper_jump",
        description=description,
        sentence="jump",
        settings=settings,
        wall="process",
        designer="openai/tiny",
    )


@pytest.fixture
def log(report: RunReport) -> Log:
    return Log(report)


def test_a_line_comes_every_ten_seconds_then_every_minute(
    log: Log, attempt: Callable[..., Attempt]
) -> None:
    log.train(attempt, "1-01")
    log.lines()
    log.pass_by(200)
    # the clock of the lines starts with the training, at 0 s
    assert [float(line[1:9]) for line in log.lines()] == [10, 20, 30, 40, 50, 60, 120, 180]


def test_a_change_of_what_runs_is_told_at_once_but_not_within_ten_seconds(
    log: Log, attempt: Callable[..., Attempt]
) -> None:
    log.train(attempt, "1-01")
    log.pass_by(185)
    log.lines()
    log.train(attempt, "1-02")  # the last line was at 180 s
    log.lines()
    log.pass_by(70)
    lines = log.lines()
    assert [float(line[1:9]) for line in lines] == [190, 250]
    assert "2 trainings running" in lines[0]


def test_a_search_that_stands_still_says_what_it_waits_for_and_since_when(
    log: Log, attempt: Callable[..., Attempt]
) -> None:
    for name in ("1-01", "1-02"):
        log.train(attempt, name)
    log.log(TrainingQueued(job="2-01@7", label="2-01", training="repeat", seed=7))
    log.lines()
    log.pass_by(10)
    assert "2 trainings running, 1 waiting, 0 of 4 done" in log.lines()[0]
    view = [
        "".join(text for text, _ in line) for line in search_lines(log.log.view, log.now, 100, 30)
    ]
    assert any("2 trainings now, 1 waiting (fitness with" in text for text in view)

    trainings = (("1-01", "search"), ("1-02", "search"), ("2-01", "repeat"))
    for name, _ in trainings:
        log.log(TrainingProgress(job=f"{name}@7", points=(progress(1000, 1.0),)))
    log.now = 100.0  # all trainings end, and one still has no review
    log.log(RequestStarted(number=1, model="openai/tiny", purpose="review of 1-02"))
    for name, kind in trainings:
        log.log(TrainingEnded(job=f"{name}@7", label=name, training=kind, fitness=1.0))
    log.lines()
    log.pass_by(130)
    lines = log.lines()
    # the first minute is over, but what runs has changed; then a minute later each
    assert [line.partition("] ")[0] for line in lines] == ["[  101.0 s", "[  161.0 s", "[  221.0 s"]
    assert lines[1].partition("] ")[2].startswith("nothing is training, 2 of 4 done,")
    assert lines[1].endswith("left; 1 reply awaited for 1:01: review of 1-02")
    assert "steps/s" not in lines[1]


def test_the_speed_is_that_of_the_time_in_which_something_trained(
    log: Log, attempt: Callable[..., Attempt]
) -> None:
    log.train(attempt, "1-01")
    log.now = 10.0
    log.log(TrainingProgress(job="1-01@7", points=(progress(500, 1.0),)))
    log.now = 20.0
    log.log(TrainingProgress(job="1-01@7", points=(progress(1000, 1.0),)))
    log.log(RequestStarted(number=1, model="openai/tiny", purpose="review of 1-01"))
    log.log(TrainingEnded(job="1-01@7", label="1-01", training="search", fitness=1.0))
    view = log.log.view
    assert view.steps_per_second is None
    # 3000 of 4 x 1000 are left, at 50 a second; the review is the first wait, and the generation to
    # come may wait as long
    log.now = 300.0
    assert view.seconds_left(log.now) == pytest.approx(60.0 + 280.0)
    log.log(RequestEnded(request=RequestStarted(number=1, model="", purpose=""), cost=None))
    log.train(attempt, "1-02")
    log.now = 305.0
    log.log(TrainingProgress(job="1-02@7", points=(progress(500, 1.0),)))
    # 1000 env steps in the last 15 s of training, 1500 in all 25 s
    assert view.steps_per_second == pytest.approx(1000 / 15)
    assert view.seconds_left(log.now) == pytest.approx(2500 * 25 / 1500 + 280.0)


def test_no_line_is_longer_than_160_characters_and_no_command_is_broken(log: Log) -> None:
    command = "`eureka resume runs/20261121-035500_jumper_jump --retry-rounds 4`"
    words = " ".join(f"word-{number}" for number in range(15))
    log.log(Notice(text=f"{words} {command} {words}"))
    lines = log.lines()
    assert max(map(len, lines)) <= 160
    assert all(line.startswith("[    0.0 s] ") for line in lines)
    assert any(command in line for line in lines)
    assert (
        " ".join(line.partition("] ")[2].strip() for line in lines) == f"{words} {command} {words}"
    )
    for number in range(40):
        log.log(RequestStarted(number=number, model="m", purpose=f"design of 1-{number:02}"))
    log.pass_by(20)
    assert max(map(len, log.lines())) <= 160


def test_the_time_passes_for_a_log_without_events(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], report: RunReport
) -> None:
    """`watch` itself, over a search that only waits until the line is there."""
    monkeypatch.setattr(watching, "TICK_S", 0.01)
    monkeypatch.setattr(plain, "SHORT_INTERVAL_S", 0.02)
    printed: list[str] = []

    async def waiting(screen: watching.Screen) -> Run:
        screen(Notice(text="a fitness is written"))
        screen(RequestStarted(number=1, model="openai/tiny", purpose="fitness"))
        async with asyncio.timeout(10):
            while "1 reply awaited for 0:00: fitness" not in "".join(printed):
                await asyncio.sleep(0.01)
                printed.append(capsys.readouterr().out)
        raise asyncio.CancelledError

    with pytest.raises(click.exceptions.Abort):
        watching.watch(waiting, "text")
