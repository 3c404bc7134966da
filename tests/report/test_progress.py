"""Numbers of a run under way, from the entries of its journal."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from told import Story, ended, progress, proposed, started

from eureka_agent.batch_records import RequestBatch
from eureka_agent.journal.entries import (
    AttemptRepeated,
    ConfirmationStarted,
    FinalRound,
    FinalStarted,
    FinalTrained,
    IterationEnded,
    IterationStarted,
    Reviewed,
    RunStarted,
)
from eureka_agent.journal.progress import (
    RequestBatchAwaited,
    RequestBatchEnded,
    RequestBatchPlanned,
    RequestEnded,
    RequestStarted,
    TrainingEnded,
    TrainingProgress,
    TrainingQueued,
    TrainingResumed,
    TrainingRetried,
)
from eureka_agent.llm.gateway import purpose
from eureka_agent.llm.interface import CompletionRequest, Role
from eureka_agent.records import (
    Attempt,
    Cost,
    FinalTraining,
    Message,
    Operator,
    Repeat,
    Stage,
    TaskDescription,
)
from eureka_agent.report import progress as shown
from eureka_agent.report.ledger import Ledger
from eureka_agent.settings import SearchSettings

COST = Cost(prompt_tokens=3000, completion_tokens=400, seconds=12.0, money=Decimal("0.0123"))


@pytest.fixture
def begin(description: TaskDescription, settings: SearchSettings) -> Callable[..., RunStarted]:
    """The start of a run of 2 generations of 3 trainings, with changed settings."""
    return lambda **changes: started(description, settings.model_copy(update=changes))


@pytest.fixture
def story(attempt: Callable[..., Attempt]) -> Story:
    return Story(attempt)


def first_round(number: int = 0, round_number: int = 0, samples: int = 3) -> IterationStarted:
    return IterationStarted(iteration=number, round=round_number, samples=samples)


def final(name: str, seed: int, story: Story, **values: Any) -> FinalTrained:
    outcome = story.make("1-01", Stage.TRAINED, 1.25).outcome
    return FinalTrained(training=FinalTraining(name=name, seed=seed, outcome=outcome, **values))


def counts(story: Story) -> tuple[int, int]:
    """Trainings done, and all of them."""
    return shown.trainings_done(story.state), shown.trainings_total(story.state)


def steps(story: Story) -> tuple[int, int]:
    return shown.env_steps_done(story.state), shown.env_steps_total(story.state)


def test_trainings_and_env_steps_are_counted(story: Story, begin: Any) -> None:
    story.tell(begin(), first_round())
    # 2 iterations × 3 samples + 3 seeds of the winner + likely 1 of the other finalist (1.3,
    # rounded) + 2 baselines × 3 seeds
    assert counts(story) == (0, 16)
    assert steps(story) == (0, 16_000)
    story.accept("1-01")
    story.accept("1-02")
    story.reject("1-03", "unknown variable 'heigth'")
    story.tell(TrainingProgress(job="1-01@7", points=(progress(400, 1.0),)))
    story.tell(TrainingProgress(job="1-02@7", points=(progress(300, None),)))
    assert steps(story) == (700, 16_000)
    story.finish("1-01", 1.5)
    assert (counts(story), steps(story)[0]) == ((1, 16), 1000 + 300)
    story.finish("1-02", 2.5)
    story.tell(IterationEnded(iteration=0, best="1-02"))
    assert counts(story) == (2, 15)  # the rejected proposal will not be trained
    assert [each.id for each in shown.leaderboard(story.state)] == ["1-02", "1-01"]
    assert shown.attempt_counts(story.state) == {
        "proposed": "3 proposals",
        "rejected": "1 thrown out by the critic",
    }


def test_a_training_that_a_review_ends_counts_as_none(story: Story, begin: Any) -> None:
    story.tell(begin(), first_round())
    story.accept("1-01")
    verdict = story.make("1-01", Stage.REJECTED, reason="turned down by its review").verdict
    failed = {"fitness": None, "failure": "turned down"}
    story.tell(
        Reviewed(attempt="1-01", verdict=verdict),
        TrainingEnded(job="1-01@7", label="1-01", training="search", **failed),
    )
    assert counts(story) == (0, 16)
    story.accept("1-01-r1")
    story.finish("1-01-r1", 2.5)
    assert counts(story) == (1, 16)


def test_a_search_that_ends_early_has_only_its_finals_to_train(story: Story, begin: Any) -> None:
    story.tell(begin(iterations=5, confirm=2, strategy="greedy"), first_round())
    for number in (1, 2, 3):
        story.accept(f"1-0{number}")
        story.finish(f"1-0{number}", float(number))
    story.tell(IterationEnded(iteration=0, best=None))
    # 5 generations of 3, 2 confirmed after each of the 3 to come that have one after them, 3 seeds
    # of the winner and 1 of the other finalist, 2 baselines x 3 seeds
    assert counts(story) == (3, 15 + 6 + 4 + 6)
    story.tell(FinalStarted(attempts=("1-03", "1-02")))
    assert counts(story) == (3, 3 + 4 + 6)
    story.tell(FinalRound(seeds={"1-03": 1, "1-02": 1}), FinalRound(seeds={"1-03": 2, "1-02": 2}))
    assert counts(story) == (3, 3 + 4 + 6)
    for seed in (1, 2):
        story.tell(final("1-03", seed, story), final("1-02", seed, story))
    story.tell(FinalRound(seeds={"1-02": 3}))  # the winner's seeds: 2 + 3 in all
    assert counts(story) == (7, 3 + 5 + 6)
    story.tell(final("1-02", 3, story))
    assert counts(story) == (8, 8 + 6)


def test_baselines_of_earlier_runs_leave_nothing_to_train(story: Story, begin: Any) -> None:
    story.tell(begin())
    for seed in (1, 2, 3):
        story.tell(final("human", seed, story, cached=True))
    assert counts(story) == (0, 6 + 4 + 3)
    assert steps(story) == (0, 13_000)


def test_trainings_under_distributions_are_counted(story: Story, begin: Any) -> None:
    story.tell(begin(randomise=4, baselines=False))
    # 2 iterations x 3 samples + 3 seeds of the winner and 1 of the other + 4 distributions x 3
    # seeds
    assert counts(story) == (0, 22)
    story.accept("1-01")
    story.finish("1-01", 2.0)
    made = story.make("1-01", Stage.TRAINED, 9.0, operator=Operator.RANDOMISE, parents=("1-01",))
    under = made.model_copy(update={"id": "1-01+d1"})
    story.tell(proposed(under))
    story.tell(TrainingQueued(job="1-01+d1@7", label="1-01+d1", training="search", seed=7))
    assert shown.phase(story.state) == "distributions of parameters"
    repeat = Repeat(iteration=0, seed=8, outcome=under.outcome)
    story.tell(AttemptRepeated(attempt="1-01+d1", repeat=repeat))
    assert counts(story)[0] == 2
    story.tell(ended(under))
    # 4 distributions x 3 seeds, of which 2 are trained; 3 seeds of the winner and 1 of the other
    assert counts(story) == (3, 3 + 10 + 4)
    assert steps(story)[0] == 3000
    # neither a proposal of the search nor on its leaderboard
    assert shown.attempt_counts(story.state) == {"proposed": "1 proposal"}
    assert [each.id for each in shown.leaderboard(story.state)] == ["1-01"]


def test_a_run_that_goes_on_counts_what_was_there(story: Story, begin: Any) -> None:
    story.tell(begin(), first_round())
    story.accept("1-01")
    story.finish("1-01", 1.5)
    story.reject("1-02", "no code")
    story.accept("1-03")
    story.tell(TrainingProgress(job="1-03@7", points=(progress(900, 1.0),)), seconds=5.0)
    # it is killed; the other process goes on from a saved state
    story.tell(begin().model_copy(update={"resumed": True}), first_round(), seconds=1.0)
    assert (counts(story), steps(story)[0]) == ((1, 16), 1000)
    story.tell(TrainingQueued(job="1-03@7", label="1-03", training="search", seed=7))
    story.tell(TrainingResumed(job="1-03@7", label="1-03", points=(progress(600, 1.0),)))
    story.tell(TrainingProgress(job="1-03@7", points=()))
    story.tell(TrainingProgress(job="1-03@7", points=(progress(700, 1.0),)), seconds=10.0)
    assert steps(story)[0] == 1000 + 700
    # 100 env steps in the 10 s of this process
    assert story.state.under_way.steps_per_second == pytest.approx(10.0)
    story.finish("1-03", 2.0)
    story.tell(IterationEnded(iteration=0, best="1-03"))
    assert counts(story) == (2, 2 + 3 + 10)


def test_phases_have_names(story: Story, begin: Any) -> None:
    phases = []
    for entry in (
        begin(),
        first_round(),
        first_round(round_number=1),
        first_round(1),
        ConfirmationStarted(iteration=0, attempts=(), trainings=2),
        IterationEnded(iteration=0, best=None),
        ConfirmationStarted(iteration=1, attempts=(), trainings=2),
        IterationEnded(iteration=1, best=None),
        first_round(2),  # a person goes on
        FinalStarted(attempts=("1-01",)),
    ):
        story.tell(entry)
        phases.append(shown.phase(story.state))
    assert phases == [
        "starting",
        "iteration 1 of 2",
        "iteration 1 of 2, round 2",
        "iterations 1 (round 2) and 2 of 2",
        "iterations 1 (the best again) and 2 of 2",
        "iteration 2 of 2",
        "iteration 2 of 2, the best again",
        "iteration 2 of 2, the best again",
        "iteration 3 of 3",
        "final trainings",
    ]


def test_speed_and_time_left(story: Story, begin: Any) -> None:
    story.tell(begin(), first_round())
    story.accept("1-01")
    assert shown.seconds_left(story.state, story.now) is None
    story.tell(TrainingProgress(job="1-01@7", points=()))
    story.tell(TrainingProgress(job="1-01@7", points=(progress(500, 1.0),)), seconds=5.0)
    assert story.state.under_way.steps_per_second == pytest.approx(100.0)
    assert shown.seconds_left(story.state, story.now) == pytest.approx(15_500 / 100.0)
    # time passes without an env step, such as for a model's reply: 500 in 10 s
    assert shown.seconds_left(story.state, story.now + 5.0) == pytest.approx(15_500 / 50.0)
    # a rate is one of the last twenty seconds
    for step in range(501, 531):
        story.tell(TrainingProgress(job="1-01@7", points=(progress(step, 1.0),)), seconds=1.0)
    assert story.state.under_way.steps_per_second == pytest.approx(1.0)
    story.tell(TrainingEnded(job="1-01@7", label="1-01", training="search", fitness=1.0))
    assert story.state.under_way.steps_per_second is None


def test_a_training_that_starts_again_has_lost_its_steps(story: Story, begin: Any) -> None:
    story.tell(begin(), first_round())
    story.accept("1-01")
    story.tell(TrainingProgress(job="1-01@7", points=(progress(400, 1.0),)))
    story.tell(TrainingRetried(job="1-01@7", reason="its worker died"))
    under_way = story.state.under_way
    assert (list(under_way.running), list(under_way.queued)) == ([], ["1-01@7"])
    assert steps(story) == (0, 16_000)
    assert under_way.notices[-1].text == "training of 1-01 starts again: its worker died"
    story.tell(TrainingProgress(job="1-01@7", points=(progress(100, 1.0),)))
    assert steps(story)[0] == 100


# ── requests to models ────────────────────────────────────────────────────────────────────────────


def sent(number: int, what: str) -> RequestStarted:
    return RequestStarted(number=number, model="openai/tiny", purpose=what)


def answered(number: int, what: str, cost: Cost | None = COST) -> RequestEnded:
    return RequestEnded(request=sent(number, what), cost=cost)


def test_replies_are_awaited_and_counted(story: Story, begin: Any) -> None:
    message = Message(role="designer", model="openai/tiny", request="", reply="", cost=COST)
    story.tell(begin().model_copy(update={"asked": Ledger((message,)).asked}))
    under_way = story.state.under_way
    assert shown.account(under_way) == "1 reply · 3.40k tokens · $0.0123"
    story.tell(sent(0, "design of 1-01"), sent(1, "design of 1-02"))
    story.tell(sent(2, "revision 1-03-r1"), sent(3, "review of 1-04"), seconds=15.0)
    # the oldest was sent 42 s ago
    assert shown.awaited(under_way, 42.0) == (
        "4 replies awaited for 0:42: 2 designs, 1 revision, 1 review"
    )
    story.tell(answered(0, "design of 1-01"), answered(1, "design of 1-02", None))
    assert shown.account(under_way) == "2 replies · 6.80k tokens · $0.0246"
    story.tell(answered(3, "review of 1-04", Cost()))
    assert shown.account(under_way) == "3 replies · 6.80k tokens and 1 uncounted · cost unknown"
    # it was sent at 15 s
    assert shown.awaited(under_way, 50.0) == "1 reply awaited for 0:35: 1 revision"


def test_every_kind_of_reply_has_its_plural(story: Story, begin: Any) -> None:
    twice = [CompletionRequest(messages=(), role=role) for role in Role] * 2
    story.tell(begin(), *(sent(place, purpose(each)) for place, each in enumerate(twice)))
    assert shown.awaited(story.state.under_way, 5.0) == (
        "16 replies awaited for 0:05: 2 designs, 2 reviews, 2 analyses, 2 fitnesses, 2 readings,"
        " 2 comparisons, 2 randomisations, 2 labellings"
    )


def test_batches_say_how_many_requests_wait_and_since_when(story: Story, begin: Any) -> None:
    story.tell(begin(), *(sent(number, "design of 1-01") for number in range(9)))
    # taken up by a resumed run, ten minutes after it was sent
    batch = RequestBatch(id="b1", model="openai/tiny", requests=(), planned_at=1.0)
    story.tell(RequestBatchPlanned(batch=batch))
    story.tell(RequestBatchAwaited(id="b1", model="openai/tiny", requests=7, seconds=600.0))
    waiting = "2 replies awaited for 2:00; a batch of 7 requests to openai/tiny awaited for 12 min"
    assert shown.awaited(story.state.under_way, 120.0) == waiting
    story.tell(RequestBatchEnded(id="b1", unanswered=()))
    assert "batch" not in shown.awaited(story.state.under_way, 130.0)
