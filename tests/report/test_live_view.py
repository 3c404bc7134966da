"""A run's entries become a picture that fits the terminal, or lines of a log."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from rich.cells import cell_len
from rich.console import Console
from told import Story, ended, judged, progress, proposed, started

from eureka_agent.archive.run_folder import Run
from eureka_agent.cli import watch as watching
from eureka_agent.journal.entries import (
    BaseEntry,
    ConfirmationStarted,
    FinalStarted,
    IterationEnded,
    IterationStarted,
    Notice,
    RunEnded,
    RunStarted,
    Scored,
)
from eureka_agent.journal.progress import (
    RequestEnded,
    RequestStarted,
    TrainingEnded,
    TrainingProgress,
    TrainingQueued,
    TrainingRetried,
)
from eureka_agent.records import Attempt, Cost, Operator, RunStatus, Score, Stage, TaskDescription
from eureka_agent.report import live
from eureka_agent.report import screen as screens
from eureka_agent.report.live import LiveView, PlainLog, progress_view
from eureka_agent.settings import SearchSettings


@pytest.fixture
def begin(description: TaskDescription, settings: SearchSettings) -> Callable[..., RunStarted]:
    """The start of a run of 2 generations of 3 trainings, with changed settings."""
    return lambda **changes: started(description, settings.model_copy(update=changes))


@pytest.fixture
def story(attempt: Callable[..., Attempt]) -> Story:
    return Story(attempt)


# ── the picture ───────────────────────────────────────────────────────────────────────────────────


def test_the_picture_at_80_columns(story: Story, begin: Any) -> None:
    story.tell(begin(), IterationStarted(iteration=0, round=0, samples=3))
    story.accept("1-01")
    story.accept("1-02")
    story.reject("1-03", "unknown variable 'heigth'")
    story.tell(TrainingProgress(job="1-01@7", points=()))
    curve = tuple(progress(step * 50, float(step)) for step in range(1, 9))
    story.tell(TrainingProgress(job="1-01@7", points=curve), seconds=4.0)
    story.finish("1-02", 2.5, finding="height makes up 97 % of the reward")
    story.tell(Notice(text="one core only", level="warning"))
    lines = story.picture()
    assert lines[:6] == [
        "jump as high as you can",
        "jumper · jump · designer: offline · wall: process · 20261121-035500_jumper_jump",
        "fitness is the metric of the environment's own task 'jump': highest point of th…",
        "iteration 1 of 2 · 3 proposals · 1 thrown out by the critic",
        # 1-02 was trained in no time
        "trainings 1/16 · env steps 1.40k/16.0k · 100 steps/s",
        # 14,600 steps at 400 in 4 s are 146 s
        lines[5],
    ]
    assert lines[5].startswith("━")
    assert lines[5].endswith("   9%  0:04 elapsed, about 2:26 left")
    training = next(line for line in lines if line.strip().startswith("1-01"))
    assert training.split()[:3] == ["1-01", "fresh", "8.00"]
    assert "▁▂▃▄▅▆▇█" in training
    assert training.rstrip().endswith("400  40%")
    best = next(line for line in lines if "height makes up" in line)
    assert best.split()[:6] == ["1", "1-02", "fresh", "2.50", "1", "120"]
    assert lines[-1].rstrip() == "one core only"


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("height", [12, 24, 50])
def test_many_slots_fit_any_terminal(story: Story, begin: Any, width: int, height: int) -> None:
    story.tell(begin(), IterationStarted(iteration=0, round=0, samples=100))
    for sample in range(1, 65):
        story.accept(f"1-{sample:02d}")
        job = f"1-{sample:02d}@7"
        story.tell(TrainingProgress(job=job, points=(progress(sample, float(sample)),)))
        story.accept(f"2-{sample:02d}")
        story.finish(f"2-{sample:02d}", float(sample))
    lines = story.picture(width, height - 2)
    assert len(lines) <= height - 2
    assert all(cell_len(line) <= width for line in lines)
    assert sum("more" in line for line in lines) == (1 if height == 12 else 2)
    if height == 50:
        shown = {line.split()[0] for line in lines if line.strip()}
        assert "1-64" in shown, "the highest fitness is shown"
        assert "1-01" not in shown, "the lowest is not"


def test_before_a_run_begins_notices_and_replies_are_shown(story: Story) -> None:
    told = [Notice(text="openai/tiny writes a fitness"), TrainingProgress(job="?", points=())]
    asked = RequestStarted(number=0, model="openai/tiny", purpose="fitness")
    story.tell(*told, asked)
    story.now = 9.0
    assert story.picture() == [
        "starting",
        "openai/tiny writes a fitness",
        "models: 0 replies",
        "1 reply awaited for 0:09: 1 fitness",
    ]


@pytest.mark.parametrize("status", [RunStatus.STOPPED, RunStatus.FINISHED])
def test_a_view_makes_room_for_a_question_and_for_the_end(
    story: Story, begin: Any, status: RunStatus
) -> None:
    """The picture of a stopped run stays, that of a finished one makes room."""
    output = io.StringIO()
    console = Console(file=output, width=80, height=24, force_terminal=True, color_system=None)
    view = progress_view(console, lambda: 0.0)
    assert isinstance(view, LiveView)
    story.observers = (view,)
    with view:
        story.tell(begin())
        with view.paused():
            before = len(output.getvalue())
            story.tell(Notice(text="nobody sees this yet"))
            console.print("a question")
            assert output.getvalue()[before:].strip() == "a question"
        view.tick()
        assert "nobody sees this yet" in output.getvalue()[before:]
        story.tell(RunEnded(status=status))
    erased = output.getvalue().rstrip().endswith("\x1b[2K")
    assert erased == (status is RunStatus.FINISHED)


# ── the log ───────────────────────────────────────────────────────────────────────────────────────


class Log:
    """A log whose clock a test moves; it ticks every second."""

    def __init__(self, make: Callable[..., Attempt], begin: Callable[..., RunStarted]) -> None:
        self.output = io.StringIO()
        self.story = Story(make)
        log = progress_view(Console(file=self.output, width=40), lambda: self.story.now)
        assert isinstance(log, PlainLog)
        self.log = log
        self.story.observers = (log,)
        # 2 generations of 2, no baselines, no finals: 4 trainings of 1000 env steps
        self.story.tell(begin(samples=2, finalists=0, baselines=False))
        self.story.tell(IterationStarted(iteration=0, round=0, samples=2))
        self.read = len(self.output.getvalue())

    def pass_by(self, seconds: int) -> None:
        for _ in range(seconds):
            self.story.now += 1.0
            self.log.tick()

    def lines(self) -> list[str]:
        """Lines since the last call."""
        text = self.output.getvalue()[self.read :]
        self.read += len(text)
        return text.splitlines()

    def train(self, name: str) -> None:
        self.story.accept(name)
        self.story.tell(TrainingProgress(job=f"{name}@7", points=()))


@pytest.fixture
def log(attempt: Callable[..., Attempt], begin: Any) -> Log:
    return Log(attempt, begin)


def test_the_log_tells_the_story(log: Log) -> None:
    make, story = log.story.make, log.story
    improved = {"operator": Operator.IMPROVE, "parents": ("0-01",)}
    trained = make("1-01", Stage.TRAINED, 8.0, **improved)
    rejected = make("1-02", Stage.REJECTED, reason="unknown variable 'heigth'")
    cached = {"seeds": (1, 2), "fitness": (1.0, 2.0), "mean": 1.5, "std": 0.707, "cached": True}
    entries: list[BaseEntry] = [
        proposed(trained),
        judged(make("1-01", Stage.ACCEPTED)),
        TrainingQueued(job="1-01@7", label="1-01", training="search", seed=7),
        proposed(make("1-02", Stage.PROPOSED)),
        judged(rejected),
        TrainingProgress(job="1-01@7", points=(progress(100, 1.0),)),
        TrainingRetried(job="1-01@7", reason="its worker died"),
        TrainingEnded(job="1-01@7", label="1-01", training="search", fitness=8.0),
        ended(trained),
        ConfirmationStarted(iteration=0, attempts=("1-01",), trainings=2),
        IterationEnded(iteration=0, best="1-01"),
        FinalStarted(attempts=("1-01",)),
        TrainingEnded(job="1-01@1", label="1-01", training="final", fitness=None, failure="NaN"),
        Scored(score=Score(name="sparse", **cached)),
        Notice(text="the disk is nearly full", level="warning"),
        RunEnded(
            status=RunStatus.FAILED,
            report_path=Path("runs/jumper/report.md"),
            message="it broke\n  hint: eureka resume runs/jumper",
        ),
    ]
    for entry in entries:
        story.tell(entry, seconds=1.0)
    assert log.output.getvalue().splitlines() == [
        (
            "[    0.0 s] run 20261121-035500_jumper_jump starts: 'jump as high as you can' (jumper,"
            " task jump; designer offline; wall process)"
        ),
        (
            "[    0.0 s] fitness is the metric of the environment's own task 'jump': highest point"
            " of the foot"
        ),
        "[    0.0 s] iteration 1 of 2: 2 proposals to make",
        "[    2.0 s] 1-01 accepted by the critic (improve from 0-01)",
        "[    5.0 s] 1-02 thrown out by the critic: C102 line 3: unknown variable 'heigth'",
        "[    7.0 s] training of 1-01 starts again: its worker died",
        "[    9.0 s] 1-01 trained: fitness 8.00 (improve from 0-01)",
        "[   10.0 s] the best so far are trained again from other seeds: 1-01 (2 trainings)",
        "[   11.0 s] iteration 1 ends: best so far is 1-01 with fitness 8.00",
        "[   12.0 s] final trainings with fresh seeds: 1-01",
        "[   13.0 s] final training of 1-01 ended: failed: NaN",
        "[   14.0 s] sparse: 1.50 ± 0.71 over 2 seeds (from the cache)",
        "[   15.0 s] warning: the disk is nearly full",
        (
            "[   16.0 s] run failed: it broke; hint: eureka resume runs/jumper; report in"
            " runs/jumper/report.md"
        ),
    ]


def test_progress_comes_every_minute_and_ten_seconds_after_a_change(log: Log) -> None:
    log.train("1-01")
    log.lines()
    log.pass_by(185)
    # the clock of the lines starts with the run
    assert [float(line[1:9]) for line in log.lines()] == [10, 70, 130]
    log.train("1-02")  # 55 s after the last one
    lines = log.lines()
    log.pass_by(61)
    lines = [line for line in (*lines, *log.lines()) if "running" in line]
    assert [float(line[1:9]) for line in lines] == [185, 245]
    assert "2 trainings running" in lines[0]


def test_progress_in_numbers_and_what_is_awaited(log: Log) -> None:
    log.train("1-01")
    log.lines()
    points = (progress(100, 1.0),)
    log.story.tell(TrainingProgress(job="1-01@7", points=points), seconds=10.0)
    # 4 trainings of 1000 steps; 100 steps in ten seconds leave 3,900 for 390 s
    assert log.lines() == [
        "[   10.0 s] 1 training running, 0 of 4 done, 100 of 4.00k env steps, 10 steps/s, about"
        " 6 min 30 s left"
    ]
    log.story.tell(TrainingEnded(job="1-01@7", label="1-01", training="search", fitness=1.0))
    log.story.tell(RequestStarted(number=1, model="openai/tiny", purpose="review of 1-01"))
    log.pass_by(10)
    (line,) = log.lines()
    assert line.partition("] ")[2].startswith("nothing is training, 0 of 4 done,")
    assert line.endswith("left; 1 reply awaited for 0:10: 1 review")
    assert "steps/s" not in line


def test_the_log_has_a_line_for_every_reply(log: Log) -> None:
    def answered(what: str, cost: Cost | None) -> RequestEnded:
        request = RequestStarted(number=0, model="openai/tiny", purpose=what)
        return RequestEnded(request=request, cost=cost)

    cost = Cost(prompt_tokens=3000, completion_tokens=400, seconds=12.0, money="0.0123")
    log.story.tell(answered("design of 1-01", cost), answered("review of 1-01", Cost(seconds=3.0)))
    log.story.tell(answered("analysis of 1-01", None))
    assert [line.partition("] ")[2] for line in log.lines()] == [
        "reply from openai/tiny: design of 1-01 (12 s, 3.40k tokens, $0.0123)",
        "reply from openai/tiny: review of 1-01 (3.0 s, tokens unknown, cost unknown)",
        "no reply from openai/tiny: analysis of 1-01",
    ]


def test_how_a_stopped_run_goes_on_is_not_said_twice(log: Log) -> None:
    """Ctrl-C ends with a line that says it."""
    message = "go on with: eureka resume runs/jumper"
    log.story.tell(RunEnded(status=RunStatus.STOPPED, message=message))
    assert log.lines() == ["[    0.0 s] run stopped"]


def test_the_time_passes_for_a_log_without_entries(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], begin: Any, story: Story
) -> None:
    """`watch` itself, over a search that only waits until the line is there."""
    monkeypatch.setattr(screens, "TICK_S", 0.01)
    monkeypatch.setattr(live, "SHORT_INTERVAL_S", 0.02)
    printed: list[str] = []

    async def waiting(screen: screens.Screen) -> Run:
        story.observers = (screen,)
        story.tell(begin(), RequestStarted(number=1, model="openai/tiny", purpose="fitness"))
        async with asyncio.timeout(10):
            while "1 reply awaited for 0:00: 1 fitness" not in "".join(printed):
                await asyncio.sleep(0.01)
                printed.append(capsys.readouterr().out)
        raise asyncio.CancelledError

    with pytest.raises(click.exceptions.Abort):
        watching.watch(waiting, "text")


# ── requests as entries ───────────────────────────────────────────────────────────────────────────
