"""The live view and the log tell of language models, of seeds, and of the time that a search
takes."""

from __future__ import annotations

import io
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from eureka_agent.report.pace import Pace
from eureka_agent.report.plain import PlainLog
from eureka_agent.report.requests import asked_before, purpose, request_observer
from eureka_agent.report.state import SearchView
from rich.console import Console
from told import judged, progress, proposed

from eureka_agent.journal.entries import (
    BaseEntry,
    FinalStarted,
    IterationStarted,
    Notice,
    RunEnded,
    RunStarted,
)
from eureka_agent.journal.progress import (
    RequestBatchAwaited,
    RequestBatchEnded,
    RequestEnded,
    RequestStarted,
    TrainingEnded,
    TrainingProgress,
    TrainingQueued,
)
from eureka_agent.llm.interface import ChatMessage, CompletionRequest, Role
from eureka_agent.records import (
    Attempt,
    Cost,
    Message,
    RunStatus,
    Stage,
    TaskDescription,
)
from eureka_agent.report.panels import search_lines
from eureka_agent.settings import SearchSettings

COST = Cost(prompt_tokens=3000, completion_tokens=400, seconds=12.0, money=Decimal("0.0123"))


@pytest.fixture
def started(description: TaskDescription, settings: SearchSettings) -> RunStarted:
    return RunStarted(
        run_folder=Path("runs/jumper"),
        run_name="20261121-035500_jumper_jump",
        description=description,
        sentence="jump",
        settings=settings.model_copy(update={"iterations": 3, "finalists": 0, "baselines": False}),
        wall="process",
        designer="openai/tiny",
    )


def with_settings(started: RunStarted, **values: int) -> RunStarted:
    settings = started.settings.model_copy(update=values)
    return started.model_copy(update={"settings": settings})


class Watch:
    """A view model at times that a test says."""

    def __init__(self, *events: BaseEntry, now: float = 0.0) -> None:
        self.view = SearchView()
        self.send(now, *events)

    def send(self, now: float, *events: BaseEntry) -> None:
        self.now = now
        for event in events:
            self.view.apply(event, now)

    def text(self, width: int = 80, height: int = 40) -> list[str]:
        lines = search_lines(self.view, self.now, width, height)
        return ["".join(text for text, _ in line).rstrip() for line in lines]


def sent(number: int, what: str) -> RequestStarted:
    return RequestStarted(number=number, model="openai/tiny", purpose=what)


def answered(number: int, what: str, cost: Cost | None = COST) -> RequestEnded:
    return RequestEnded(request=sent(number, what), cost=cost)


def request(role: Role, attempt: str) -> CompletionRequest:
    return CompletionRequest(messages=(ChatMessage("user", "please"),), role=role, attempt=attempt)


@pytest.mark.parametrize(
    ("role", "attempt", "words"),
    [
        (Role.DESIGNER, "2-03", "design of 2-03"),
        (Role.DESIGNER, "2-03-r1", "revision 2-03-r1"),
        (Role.REVIEWER, "2-03-r1", "review of 2-03-r1"),
        (Role.ANALYST, "1-02", "analysis of 1-02"),
        (Role.METRIC, "", "fitness"),
    ],
)
def test_a_request_says_what_for(role: Role, attempt: str, words: str) -> None:
    assert purpose(request(role, attempt)) == words


def test_a_gateway_is_told_of_as_events() -> None:
    events: list[BaseEntry] = []
    observe = request_observer(events.append)
    first, second = (
        observe("openai/tiny", request(Role.DESIGNER, "1-01")),
        observe("b", request(Role.REVIEWER, "1-01")),
    )
    second(Message(role="reviewer", model="b", request="", reply="", cost=COST))
    first(None)
    assert events == [
        RequestStarted(number=0, model="openai/tiny", purpose="design of 1-01"),
        RequestStarted(number=1, model="b", purpose="review of 1-01"),
        RequestEnded(
            request=RequestStarted(number=1, model="b", purpose="review of 1-01"), cost=COST
        ),
        RequestEnded(
            request=RequestStarted(number=0, model="openai/tiny", purpose="design of 1-01"),
            cost=None,
        ),
    ]


def test_the_view_says_how_many_requests_wait_in_batches_and_since_when(
    started: RunStarted,
) -> None:
    watch = Watch(started)
    watch.send(0.0, *(sent(number, "design of 1-01") for number in range(9)))
    # taken up by a resumed run, ten minutes after it was sent
    watch.send(0.0, RequestBatchAwaited(id="b1", model="openai/tiny", requests=7, seconds=600.0))
    watch.send(120.0)
    waiting = "7 requests wait in a batch of openai/tiny, since 12 min"
    assert f"{waiting}; 2 other replies awaited" in watch.text()
    watch.send(130.0, RequestBatchEnded(id="b1", unanswered=()))
    assert not any("batch" in line for line in watch.text())


def test_the_view_says_which_replies_are_awaited_how_long_and_what_was_spent(
    started: RunStarted,
) -> None:
    watch = Watch(started, IterationStarted(iteration=0, round=0, samples=3))
    assert not any("repl" in line for line in watch.text())
    watch.send(2.0, sent(0, "design of 1-01"), sent(1, "design of 1-02"))
    watch.send(30.0, sent(2, "revision 1-03-r1"), sent(3, "review of 1-04"))
    watch.send(44.0)
    lines = watch.text()
    assert "models: 0 replies" in lines
    # the oldest was sent 42 s ago
    assert (
        "4 replies awaited for 0:42: design of 1-01, 1-02; revision 1-03-r1; review of 1-04"
        in watch.text(width=90)
    )
    assert "4 replies awaited for 0:42: 2 designs, 1 revision, 1 review" in lines
    watch.send(50.0, answered(0, "design of 1-01"), answered(1, "design of 1-02"))
    # 2 x 3400 tokens, 2 x 0.0123 dollars; the oldest that is left was sent 20 s ago
    assert "models: 2 replies · 6.80k tokens · $0.0246" in watch.text()
    assert "2 replies awaited for 0:20: revision 1-03-r1; review of 1-04" in watch.text()
    watch.send(51.0, answered(2, "revision 1-03-r1", None), answered(3, "review of 1-04", Cost()))
    assert "models: 3 replies · 6.80k tokens and 1 uncounted · cost unknown" in watch.text()
    assert not any("awaited" in line for line in watch.text())


def test_a_resumed_run_goes_on_counting_replies_and_time(started: RunStarted) -> None:
    message = Message(role="designer", model="openai/tiny", request="", reply="", cost=COST)
    before = {"seconds_before": 3600.0, "asked": asked_before([message, message])}
    resumed = started.model_copy(update={"resumed": True, **before})
    watch = Watch(resumed, now=1000.0)
    watch.send(1005.0, sent(0, "design of 1-01"), answered(0, "design of 1-01"))
    assert "models: 3 replies · 10.2k tokens · $0.0369" in watch.text()
    assert watch.view.elapsed(1005.0) == 3605.0
    assert any("1:00:05 elapsed" in line for line in watch.text())
    output = io.StringIO()
    times = iter((1000.0, 1002.5))
    log = PlainLog(Console(file=output, width=160), lambda: next(times))
    log(resumed)
    log(Notice(text="it goes on"))
    assert [line[:11] for line in output.getvalue().splitlines()] == [
        "[ 3600.0 s]",
        "[ 3600.0 s]",
        "[ 3602.5 s]",
    ]


def test_before_a_run_begins_the_fitness_is_awaited() -> None:
    watch = Watch(Notice(text="openai/tiny writes a fitness for 'jump'"), sent(0, "fitness"))
    watch.send(9.0)
    assert "1 reply awaited for 0:09: fitness" in watch.text()


def test_the_log_has_a_line_for_every_reply(started: RunStarted) -> None:
    output = io.StringIO()
    log = PlainLog(Console(file=output, width=160), lambda: 0.0)
    for event in (
        started,
        sent(0, "design of 1-01"),
        answered(0, "design of 1-01"),
        answered(1, "review of 1-01", Cost(seconds=3.0)),
        answered(2, "analysis of 1-01", None),
    ):
        log(event)
    assert [line.partition("] ")[2] for line in output.getvalue().splitlines()][2:] == [
        "reply from openai/tiny: design of 1-01 (12 s, 3.40k tokens, $0.0123)",
        "reply from openai/tiny: review of 1-01 (3.0 s, tokens unknown, cost unknown)",
        "no reply from openai/tiny: analysis of 1-01",
    ]


def test_where_no_model_answers_the_log_says_so_once(started: RunStarted) -> None:
    output = io.StringIO()
    log = PlainLog(Console(file=output, width=160), lambda: 0.0)
    for number in range(3):
        log(answered(number, f"design of 1-0{number + 1}", None))
    assert output.getvalue() == "[    0.0 s] no reply from openai/tiny: design of 1-01\n"
    log(answered(3, "design of 1-04"))
    log(answered(4, "design of 1-05", None))  # this one alone
    assert output.getvalue().endswith("] no reply from openai/tiny: design of 1-05\n")


def test_how_a_stopped_run_goes_on_is_not_said_twice(started: RunStarted) -> None:
    """Ctrl-C ends with a line that says it."""
    output = io.StringIO()
    log = PlainLog(Console(file=output, width=160), lambda: 0.0)
    log(RunEnded(status=RunStatus.STOPPED, message="go on with: eureka resume runs/jumper"))
    assert output.getvalue() == "[    0.0 s] run stopped\n"


# ── time left ─────────────────────────────────────────────────────────────────────────────────────


def generation(
    watch: Watch,
    make: Callable[..., Attempt],
    begin: float,
    number: int,
    steps: int,
) -> None:
    """A generation of one sample: 30 s until the model's answer, then so many env steps in 10 s."""
    name = f"{number}-01"
    watch.send(
        begin,
        IterationStarted(iteration=number - 1, round=0, samples=1),
        sent(number, f"design of {name}"),
    )
    watch.send(begin + 30.0, answered(number, f"design of {name}"))
    watch.send(
        begin + 30.0,
        proposed(make(name, Stage.PROPOSED)),
        judged(make(name, Stage.ACCEPTED)),
        TrainingQueued(job=f"{name}@7", label=name, training="search", seed=7),
        TrainingProgress(job=f"{name}@7", points=()),
    )
    watch.send(begin + 40.0, TrainingProgress(job=f"{name}@7", points=(progress(steps, 1.0),)))


def test_the_time_left_has_the_replies_to_come_in_it(
    started: RunStarted, attempt: Callable[..., Attempt]
) -> None:
    watch = Watch(with_settings(started, samples=1))
    generation(watch, attempt, 0.0, 1, 500)
    # 50 env steps a second: 2500 of 3 x 1000 are left, which take 50 s; and two more generations
    # wait 30 s each
    assert watch.view.seconds_left(40.0) == pytest.approx(50.0 + 60.0)
    watch.send(50.0, TrainingProgress(job="1-01@7", points=(progress(1000, 1.0),)))
    watch.send(50.0, TrainingEnded(job="1-01@7", label="1-01", training="search", fitness=1.0))
    watch.send(50.0, IterationStarted(iteration=1, round=0, samples=1), sent(2, "design of 2-01"))
    # 10 s into the wait: 20 s of it, 30 s of the next generation's, and 2000 env steps
    assert watch.view.seconds_left(60.0) == pytest.approx(20.0 + 30.0 + 40.0)
    # one that takes longer than usual does not count back: the training's speed is what it was
    assert watch.view.seconds_left(150.0) == pytest.approx(0.0 + 30.0 + 40.0)
    watch.send(
        150.0, FinalStarted(attempts=())
    )  # nothing is designed any more; what is planned is still to be trained
    assert watch.view.seconds_left(150.0) == pytest.approx(20.0)


def test_what_baselines_make_while_a_model_is_awaited_is_not_the_searchs_speed(
    started: RunStarted, attempt: Callable[..., Attempt]
) -> None:
    own = with_settings(started, samples=1, finalists=1, final_seeds=1, baselines=True)
    watch = Watch(own)
    watch.send(0.0, IterationStarted(iteration=0, round=0, samples=1), sent(1, "design of 1-01"))
    watch.send(0.0, TrainingQueued(job="human@1", label="human", training="human", seed=1))
    watch.send(0.0, TrainingProgress(job="human@1", points=()))
    watch.send(10.0, TrainingProgress(job="human@1", points=(progress(800, 1.0),)))
    assert watch.view.seconds_left(10.0) is None  # how long a generation waits is not known yet
    generation(watch, attempt, 10.0, 1, 500)
    # in the 10 s that were no wait 500 were made; 800 more, of 6 x 1000, while it waited 40 s in
    # all
    assert watch.view.seconds_left(50.0) == pytest.approx((6000 - 1300) / 50.0 + 2 * 40.0)


def test_requests_while_candidates_train_hold_nothing_up(
    started: RunStarted, attempt: Callable[..., Attempt]
) -> None:
    watch = Watch(with_settings(started, samples=1))
    generation(watch, attempt, 0.0, 1, 500)
    watch.send(40.0, sent(9, "review of 1-01"))
    watch.send(
        50.0,
        TrainingProgress(job="1-01@7", points=(progress(1000, 1.0),)),
        answered(9, "review of 1-01"),
    )
    assert watch.view.seconds_left(50.0) == pytest.approx(2000 / 50.0 + 60.0)


# ── what is shown whole, and on one scale ─────────────────────────────────────────────────────────


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_the_seed_of_a_baseline_is_shown_whole(started: RunStarted, width: int) -> None:
    watch = Watch(started)
    for seed in range(1, 13):
        watch.send(
            1.0, TrainingQueued(job=f"human@{seed}", label="human", training="human", seed=seed)
        )
        watch.send(1.0, TrainingProgress(job=f"human@{seed}", points=(progress(100, 1234.5),)))
    lines = watch.text(width, 60)
    assert all(len(line) <= width for line in lines)
    shown = [line for line in lines if "baseline, seed " in line]
    assert [line.split()[1:4] for line in shown] == [
        ["baseline,", "seed", str(seed)] for seed in range(1, 13)
    ]
    assert all("1,234" in line for line in shown)


def test_the_curves_of_a_table_are_on_one_scale(started: RunStarted) -> None:
    watch = Watch(started)
    for label, values in (("1-01", (0.0, 7.0)), ("1-02", (1.0, 2.0))):
        watch.send(1.0, TrainingQueued(job=label, label=label, training="search", seed=1))
        watch.send(
            1.0, TrainingProgress(job=label, points=tuple(progress(100, value) for value in values))
        )
    rows = {line.split()[0]: line for line in watch.text() if line.strip().startswith("1-0")}
    assert "▁█" in rows["1-01"]
    assert (
        "▂▃" in rows["1-02"]
    )  # of eight blocks from 0 to 7; on a scale of its own it would look like the other


def test_a_long_notice_is_continued_on_the_next_line(started: RunStarted) -> None:
    text = (
        "the price of openai/tiny is not known, so neither is what this search costs; --max-tokens"
        " limits it, --price says what it costs"
    )
    watch = Watch(started, Notice(text=text, level="warning"))
    assert " ".join(watch.text(60)).endswith(text)
    assert watch.text(60)[-1] == "it costs"
    # a low terminal has the last one from its beginning
    watch.send(1.0, *[Notice(text=f"{number} {text}") for number in range(2)])
    shown = watch.text(60, 8)
    assert shown[-3].startswith("1 the price of openai/tiny")


def test_the_speed_leaves_out_the_time_in_which_nothing_trains() -> None:
    pace = Pace()
    pace.begin(0.0, 0)
    pace.mark(10.0, 1000)
    pace.train(10.0, False)
    pace.mark(18.0, 1000)
    pace.mark(28.0, 2000)
    # 1000 env steps in the ten seconds after the eight of waiting
    assert pace.steps_per_second == pytest.approx(100.0)
