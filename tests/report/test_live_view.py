"""Events become the view model, and the view model becomes lines that fit the terminal."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from eureka_agent.report.lines import fit, share_rows
from eureka_agent.report.plain import PlainLog, event_line, progress_line
from eureka_agent.report.state import SearchView
from rich.cells import cell_len
from rich.console import Console
from told import ended, judged, progress, proposed

from eureka_agent.journal.entries import (
    AttemptRepeated,
    BaseEntry,
    ConfirmationStarted,
    FinalRound,
    FinalStarted,
    IterationEnded,
    IterationStarted,
    Notice,
    RandomisationStarted,
    Reviewed,
    RunEnded,
    RunStarted,
    Scored,
)
from eureka_agent.journal.progress import (
    TrainingEnded,
    TrainingProgress,
    TrainingQueued,
    TrainingResumed,
    TrainingRetried,
)
from eureka_agent.records import (
    Attempt,
    Operator,
    Repeat,
    RunStatus,
    Score,
    Stage,
    TaskDescription,
)
from eureka_agent.report.live import LiveView, progress_view
from eureka_agent.report.panels import SearchPanel, search_lines
from eureka_agent.settings import SearchSettings


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Scene:
    """Sends events a tenth of a second apart to a view model."""

    def __init__(
        self,
        description: TaskDescription,
        settings: SearchSettings,
        attempt: Callable[..., Attempt],
    ) -> None:
        self.clock = Clock()
        self.view = SearchView()
        self.make = attempt
        self.started = RunStarted(
            run_folder=Path("runs/jumper"),
            run_name="20261121-035500_jumper_jump",
            description=description,
            sentence="jump as high as you can",
            settings=settings,
            wall="process",
            designer="offline",
        )

    def send(self, *events: BaseEntry, seconds: float = 0.1) -> None:
        for event in events:
            self.clock.now += seconds
            self.view.apply(event, self.clock.now)

    def accept(self, identifier: str) -> None:
        self.send(
            proposed(self.make(identifier, Stage.PROPOSED)),
            judged(self.make(identifier, Stage.ACCEPTED)),
        )
        self.send(
            TrainingQueued(job=f"{identifier}@7", label=identifier, training="search", seed=7)
        )

    def finish(self, identifier: str, fitness: float, **values: str) -> None:
        self.send(
            TrainingEnded(
                job=f"{identifier}@7", label=identifier, training="search", fitness=fitness
            )
        )
        self.send(ended(self.make(identifier, Stage.TRAINED, fitness, **values)))

    def reject(self, identifier: str, reason: str) -> None:
        self.send(
            proposed(self.make(identifier, Stage.PROPOSED)),
            judged(self.make(identifier, Stage.REJECTED, reason=reason)),
        )

    def text(self, width: int, height: int) -> str:
        console = Console(file=io.StringIO(), width=width, height=height)
        console.print(SearchPanel(self.view, self.clock), end="")
        return console.file.getvalue()  # type: ignore[attr-defined]


@pytest.fixture
def scene(
    description: TaskDescription, settings: SearchSettings, attempt: Callable[..., Attempt]
) -> Scene:
    return Scene(description, settings, attempt)


def test_the_budget_counts_what_is_planned_and_done(scene: Scene) -> None:
    scene.send(scene.started, IterationStarted(iteration=0, round=0, samples=3))
    # 2 iterations × 3 samples + 3 seeds of the winner + likely 1 of the other finalist (1.3, rounded)
    # + 2 baselines × 3 seeds
    assert scene.view.trainings_total == 16
    assert scene.view.env_steps_total == 16_000
    scene.accept("1-01")
    scene.accept("1-02")
    scene.reject("1-03", "unknown variable 'heigth'")
    scene.send(
        TrainingProgress(job="1-01@7", points=(progress(400, 1.0),)),
        TrainingProgress(job="1-02@7", points=(progress(300, None),)),
    )
    assert scene.view.env_steps_done == 700
    scene.finish("1-01", 1.5)
    assert (scene.view.trainings_done, scene.view.env_steps_done) == (1, 700)
    scene.finish("1-02", 2.5)
    scene.send(IterationEnded(iteration=0, best="1-02"))
    assert scene.view.trainings_total == 15  # the rejected proposal will not be trained
    assert [entry.id for entry in scene.view.attempts.leaderboard] == ["1-02", "1-01"]
    assert (
        scene.view.attempts.proposed,
        scene.view.attempts.accepted,
        scene.view.attempts.rejected,
    ) == (3, 2, 1)


def test_trainings_under_distributions_are_planned_and_counted(scene: Scene) -> None:
    settings = scene.started.settings.model_copy(update={"randomise": 4, "baselines": False})
    scene.send(scene.started.model_copy(update={"settings": settings}))
    # 2 iterations x 3 samples + 3 seeds of the winner and 1 of the other + 4 distributions x 3 seeds
    assert scene.view.trainings_total == 22
    scene.send(FinalStarted(attempts=("1-01",)), FinalRound(seeds={"1-01": 3}))
    assert scene.view.trainings_total == 3 + 12
    scene.send(RandomisationStarted(winner="1-01", distributions=2, seeds=3))
    assert scene.view.trainings_total == 3 + 6
    job = {"job": "1-01+d1@7", "label": "1-01+d1", "training": "randomised"}
    scene.send(TrainingQueued(**job, seed=7))
    assert scene.view.queued["1-01+d1@7"].role == "randomised, seed 1"
    scene.send(TrainingEnded(**job, fitness=1.0))
    assert (scene.view.trainings_done, scene.view.trainings_total) == (1, 9)
    assert scene.view.phase == "distributions of parameters"
    assert "1 of 3 seeds" in scene.text(100, 40)


@pytest.mark.parametrize(
    ("video", "rest", "after"),
    [(True, "scores, video and report", ", then the video"), (False, "scores and report", "")],
)
def test_what_follows_the_last_training_has_its_name_and_no_number(
    scene: Scene, video: bool, rest: str, after: str
) -> None:
    changes = {"video": video, "baselines": False, "final_seeds": 1, "finalists": 1}
    settings = scene.started.settings.model_copy(update=changes)
    scene.send(scene.started.model_copy(update={"settings": settings}))
    scene.send(FinalStarted(attempts=("1-01",)), FinalRound(seeds={"1-01": 1}))
    job = {"job": "1-01@7", "label": "1-01", "training": "final"}
    scene.send(TrainingQueued(**job, seed=7))
    scene.send(TrainingProgress(job="1-01@7", points=()))
    scene.send(TrainingProgress(job="1-01@7", points=(progress(500, 1.0),)), seconds=5.0)
    line = progress_line(scene.view, scene.clock.now)
    # the other 500 of its 1000 env steps
    assert line.endswith(f"about 5.0 s left{after}")
    assert f"about 0:05 left{after}" in scene.text(100, 40)
    scene.send(TrainingProgress(job="1-01@7", points=(progress(1000, 1.0),)), seconds=5.0)
    assert " left" not in progress_line(scene.view, scene.clock.now)  # not "about 0.0 s"
    scene.send(TrainingEnded(**job, fitness=1.0), seconds=40.0)
    line = progress_line(scene.view, scene.clock.now)
    assert line == f"{rest}, 1 of 1 done, 1.00k of 1.00k env steps"
    assert scene.view.phase == rest
    assert " left" not in scene.text(100, 40)


@pytest.mark.parametrize("mended", [True, False])
def test_a_training_that_a_review_ends_counts_as_none(scene: Scene, mended: bool) -> None:
    scene.send(scene.started, IterationStarted(iteration=0, round=0, samples=2))
    scene.accept("1-01")
    scene.accept("1-02")
    scene.send(TrainingProgress(job="1-02@7", points=(progress(700, 1.0),)))
    why = "turned down by its review"
    rejected = scene.make("1-02", Stage.REJECTED, reason=why)
    scene.send(
        Reviewed(attempt="1-02", verdict=rejected.verdict),
        TrainingEnded(job="1-02@7", label="1-02", training="search", fitness=None, failure=why),
    )
    assert (scene.view.trainings_done, scene.view.env_steps_done) == (0, 700)
    if mended:
        scene.accept("1-02-r1")
        scene.finish("1-02-r1", 2.5)
    scene.finish("1-01", 1.5)
    scene.send(IterationEnded(iteration=0, best="1-01"))
    done = 2 if mended else 1
    assert scene.view.trainings_done == done
    # what was trained in this iteration, 3 samples of the next, 3 seeds of the winner and 1 of the
    # other finalist, 2 baselines × 3 seeds
    assert scene.view.trainings_total == done + 3 + 4 + 6
    assert (scene.view.attempts.accepted, scene.view.attempts.rejected) == (done, 1)


def test_a_search_that_its_budget_ends_early_has_no_more_to_train_but_its_finals(
    description: TaskDescription, settings: SearchSettings, attempt: Callable[..., Attempt]
) -> None:
    longer = settings.model_copy(update={"iterations": 5, "confirm": 2, "strategy": "greedy"})
    scene = Scene(description, longer, attempt)
    scene.send(scene.started, IterationStarted(iteration=0, round=0, samples=3))
    for number, fitness in enumerate((1.0, 2.0, 3.0), 1):
        scene.accept(f"1-0{number}")
        scene.finish(f"1-0{number}", fitness)
    scene.send(IterationEnded(iteration=0, best=None))
    # 5 generations of 3, 2 confirmed after each of the 3 that have one after them, 3 seeds of the
    # winner and 1 of the other finalist, 2 baselines x 3 seeds
    assert scene.view.trainings_total == 15 + 6 + 4 + 6
    scene.send(FinalStarted(attempts=("1-03", "1-02")))
    assert scene.view.trainings_total == 3 + 4 + 6
    # a round counts for what it is once it is more than was likely, and the last one ends the guess
    scene.send(FinalRound(seeds={"1-03": 1, "1-02": 1}), FinalRound(seeds={"1-03": 2, "1-02": 2}))
    assert scene.view.trainings_total == 3 + 4 + 6
    scene.send(FinalRound(seeds={"1-02": 3}))
    assert scene.view.trainings_total == 3 + 5 + 6


def test_what_is_trained_again_is_planned_counted_and_ranked_by_its_mean(
    description: TaskDescription, settings: SearchSettings, attempt: Callable[..., Attempt]
) -> None:
    confirming = {"confirm": 2, "confirm_seeds": 1, "strategy": "greedy"}
    scene = Scene(description, settings.model_copy(update=confirming), attempt)
    scene.send(scene.started, IterationStarted(iteration=0, round=0, samples=3))
    assert scene.view.trainings_total == 16 + 2  # two between the iterations
    for identifier, fitness in (("1-01", 8.0), ("1-02", 7.0), ("1-03", 1.0)):
        scene.accept(identifier)
        scene.finish(identifier, fitness)
    assert [entry.id for entry in scene.view.attempts.leaderboard] == ["1-01", "1-02", "1-03"]
    best = [
        scene.make(identifier, Stage.TRAINED, fitness)
        for identifier, fitness in (("1-01", 8.0), ("1-02", 7.0))
    ]
    scene.send(ConfirmationStarted(iteration=0, attempts=("1-01", "1-02"), trainings=2))
    for one, value in zip(best, (2.0, 6.0), strict=True):
        assert one.outcome is not None
        scene.send(
            TrainingQueued(job=f"{one.id}@9", label=one.id, training="repeat", seed=9),
            TrainingEnded(job=f"{one.id}@9", label=one.id, training="repeat", fitness=value),
        )
        outcome = one.outcome.model_copy(update={"fitness": value})
        made = Repeat(iteration=0, seed=9, outcome=outcome)
        scene.send(AttemptRepeated(attempt=one.id, repeat=made))
    assert (scene.view.trainings_done, scene.view.trainings_total) == (5, 18)
    # means of 5 and 6.5, drawn to the median of 5
    assert [
        (entry.id, entry.fitness, len(entry.fitness_per_seed))
        for entry in scene.view.attempts.leaderboard
    ] == [
        ("1-02", 6.5, 2),
        ("1-01", 5.0, 2),
        ("1-03", 1.0, 1),
    ]
    scene.send(
        IterationEnded(iteration=0, best=None), IterationStarted(iteration=1, round=0, samples=3)
    )
    scene.send(IterationEnded(iteration=1, best=None))  # nobody new among the best
    assert scene.view.trainings_total == 16 - 3 + 2  # and none of the second iteration was trained


def test_a_resumed_run_counts_what_was_trained_again_before(
    description: TaskDescription, settings: SearchSettings, attempt: Callable[..., Attempt]
) -> None:
    scene = Scene(description, settings.model_copy(update={"confirm": 1, "iterations": 1}), attempt)
    before = attempt("1-01", Stage.TRAINED, 8.0)
    assert before.outcome is not None
    made = Repeat(iteration=0, seed=9, outcome=before.outcome)
    known = (before.model_copy(update={"repeats": (made,)}),)
    scene.send(scene.started.model_copy(update={"known": known}))
    scene.send(
        IterationStarted(iteration=0, round=0, samples=3), IterationEnded(iteration=0, best="1-01")
    )
    assert (
        scene.view.trainings_done,
        len(scene.view.attempts.leaderboard[0].fitness_per_seed),
    ) == (2, 2)
    assert scene.view.trainings_total == 1 + 1 + 3 + 6  # it, its repeat, its finals, the baselines


def test_a_repeated_iteration_adds_its_proposals(scene: Scene) -> None:
    scene.send(scene.started, IterationStarted(iteration=0, round=0, samples=3))
    for identifier in ("1-01", "1-02", "1-03"):
        scene.reject(identifier, "no code")
    scene.send(IterationStarted(iteration=0, round=1, samples=3))
    assert scene.view.trainings_total == 16
    assert scene.view.phase == "iteration 1 of 2, round 2"


def test_the_iterations_under_way_are_named_together(scene: Scene) -> None:
    phases = []
    for event in (
        scene.started,
        IterationStarted(iteration=0, round=0, samples=3),
        IterationStarted(iteration=1, round=0, samples=3),
        ConfirmationStarted(iteration=0, attempts=(), trainings=2),
        IterationEnded(iteration=0, best=None),
        ConfirmationStarted(iteration=1, attempts=(), trainings=2),
        IterationEnded(iteration=1, best=None),
    ):
        scene.send(event)
        phases.append(scene.view.phase)
    assert phases[1:] == [
        "iteration 1 of 2",
        "iterations 1 and 2 of 2",
        "iterations 1 (the best again) and 2 of 2",
        "iteration 2 of 2",
        "iteration 2 of 2, the best again",
        "iteration 2 of 2, the best again",
    ]


def test_a_curve_goes_on_level_where_no_episode_ended(scene: Scene) -> None:
    scene.send(scene.started)
    scene.accept("1-01")
    values = (None, 1.0, None, 3.0, None)
    points = tuple(progress(step, value) for step, value in enumerate(values))
    scene.send(TrainingProgress(job="1-01@7", points=points))
    training = scene.view.running["1-01@7"]
    assert (training.history.values, training.fitness) == ([None, 1.0, 1.0, 3.0, 3.0], 3.0)


def test_speed_and_time_left(scene: Scene) -> None:
    scene.send(scene.started, IterationStarted(iteration=0, round=0, samples=3))
    scene.accept("1-01")
    assert scene.view.seconds_left(scene.clock.now) is None
    scene.send(TrainingProgress(job="1-01@7", points=()))
    scene.send(TrainingProgress(job="1-01@7", points=(progress(500, 1.0),)), seconds=5.0)
    assert scene.view.steps_per_second == pytest.approx(100.0)
    assert scene.view.seconds_left(scene.clock.now) == pytest.approx((16_000 - 500) / 100.0)
    # a rate is one of the last twenty seconds, so a pause ages out of it
    for step in range(501, 531):
        scene.send(TrainingProgress(job="1-01@7", points=(progress(step, 1.0),)), seconds=1.0)
    assert scene.view.steps_per_second == pytest.approx(1.0)


def test_a_retried_training_starts_from_nothing(scene: Scene) -> None:
    scene.send(scene.started, IterationStarted(iteration=0, round=0, samples=3))
    scene.accept("1-01")
    scene.send(TrainingProgress(job="1-01@7", points=(progress(400, 1.0),)))
    scene.send(TrainingRetried(job="1-01@7", reason="its worker died"))
    assert scene.view.env_steps_done == 0
    assert (list(scene.view.running), list(scene.view.queued)) == ([], ["1-01@7"])
    assert "training of 1-01 starts again: its worker died" in scene.text(80, 24)
    scene.send(TrainingProgress(job="1-01@7", points=(progress(100, 1.0),)))
    assert scene.view.env_steps_done == 100


def test_steps_that_outlive_a_worker_took_their_time(scene: Scene) -> None:
    scene.send(scene.started, IterationStarted(iteration=0, round=0, samples=3))
    scene.accept("1-01")
    scene.send(TrainingProgress(job="1-01@7", points=()))
    scene.send(TrainingProgress(job="1-01@7", points=(progress(500, 1.0),)), seconds=5.0)
    saved = TrainingResumed(job="1-01@7", label="1-01", points=(progress(300, 1.0),))
    scene.send(TrainingRetried(job="1-01@7", reason="its worker died"), saved, seconds=0.0)
    # of the 500 env steps 300 are left, which took 5 s
    assert scene.view.seconds_left(scene.clock.now) == pytest.approx((16_000 - 300) / 60.0)


def test_steps_of_an_earlier_process_took_no_time(scene: Scene) -> None:
    scene.send(scene.started, IterationStarted(iteration=0, round=0, samples=3))
    scene.accept("1-01")
    scene.send(TrainingProgress(job="1-01@7", points=()))
    scene.send(TrainingQueued(job="1-02@8", label="1-02", training="search", seed=8), seconds=0.0)
    scene.send(
        TrainingResumed(job="1-02@8", label="1-02", points=(progress(300, 1.0),)), seconds=0.0
    )
    scene.send(TrainingProgress(job="1-01@7", points=(progress(500, 1.0),)), seconds=5.0)
    assert scene.view.seconds_left(scene.clock.now) == pytest.approx((16_000 - 800) / 100.0)


def test_a_resumed_run_counts_what_was_there(scene: Scene) -> None:
    known = (
        scene.make("1-01", Stage.TRAINED, 1.5),
        scene.make("1-02", Stage.REJECTED, reason="no code"),
        scene.make("1-03", Stage.FAILED, reason="NaN"),
    )
    scene.send(scene.started.model_copy(update={"known": known}))
    scene.send(IterationStarted(iteration=0, round=0, samples=3))
    assert (scene.view.trainings_done, scene.view.env_steps_done) == (2, 1000)
    assert scene.view.trainings_total == 3 + 3 + 10, "the iteration still has its three places"
    scene.send(IterationEnded(iteration=0, best=None))
    assert scene.view.trainings_total == 2 + 3 + 10
    assert (
        scene.view.attempts.proposed,
        scene.view.attempts.rejected,
        scene.view.attempts.failed,
    ) == (3, 1, 1)
    assert scene.view.steps_per_second is None


def test_a_session_that_goes_on_with_a_finished_search_counts_its_generations(scene: Scene) -> None:
    known = tuple(scene.make(f"{generation}-01", Stage.TRAINED, 1.5) for generation in (1, 2))
    scene.send(scene.started.model_copy(update={"known": known}))
    third = IterationStarted(iteration=2, round=0, samples=3)
    scene.send(third)
    assert scene.view.phase == "iteration 3 of 3"
    assert event_line(third, scene.view) == "iteration 3 of 3: 3 proposals to make"
    done, total = scene.view.trainings_done, scene.view.trainings_total
    assert (done, total) == (2, 2 + 3 + 10)


def test_finals_that_would_tell_nothing_are_not_counted(scene: Scene) -> None:
    scene.send(scene.started, IterationStarted(iteration=0, round=0, samples=3))
    for identifier in ("1-01", "1-02", "1-03"):
        scene.accept(identifier)
        scene.finish(identifier, 0.0)
    scene.send(IterationEnded(iteration=0, best="1-01"))
    skipped = FinalStarted(attempts=(), skipped="all ended at a fitness of 0")
    scene.send(skipped)
    assert event_line(skipped, scene.view) == "no final trainings: all ended at a fitness of 0"
    assert scene.view.trainings_total == 3 + 6  # and those of the baselines


def test_a_training_that_a_kill_cut_off_counts_once(scene: Scene) -> None:
    # the archive had it as accepted, so the resumed engine goes straight to its training
    known = (scene.make("1-01", Stage.ACCEPTED),)
    scene.send(scene.started.model_copy(update={"known": known}))
    scene.send(IterationStarted(iteration=0, round=0, samples=3))
    scene.send(TrainingQueued(job="1-01@7", label="1-01", training="search", seed=7))
    scene.send(TrainingProgress(job="1-01@7", points=(progress(1000, 1.0),)))
    scene.finish("1-01", 1.5)
    assert (scene.view.trainings_done, scene.view.env_steps_done, scene.view.attempts.proposed) == (
        1,
        1000,
        1,
    )
    scene.send(IterationEnded(iteration=0, best=None))
    assert scene.view.trainings_total == 1 + 3 + 10


def test_a_training_ends_with_a_whole_iteration(
    description: TaskDescription, settings: SearchSettings, attempt: Callable[..., Attempt]
) -> None:
    scene = Scene(description, settings.model_copy(update={"env_steps": 950}), attempt)
    scene.send(scene.started)
    # 950 steps are nine and a half iterations of 10 environments and 10 steps
    assert scene.view.env_steps_total == scene.view.trainings_total * 1_000


def test_cached_baselines_leave_nothing_to_train(scene: Scene) -> None:
    scene.send(scene.started)
    for seed in (1, 2, 3):
        scene.send(TrainingEnded(job=f"human@{seed}", label="human", training="human", fitness=2.0))
    scene.send(
        Scored(
            score=Score(
                name="human",
                seeds=(1, 2, 3),
                fitness=(2.0, 2.0, 2.0),
                mean=2.0,
                std=0.0,
                cached=True,
            )
        )
    )
    assert scene.view.trainings_total - scene.view.trainings_done == 6 + 4 + 3
    assert scene.view.env_steps_total == 13_000
    assert "human" in scene.text(80, 24)


def test_final_trainings_show_seeds_then_scores(scene: Scene) -> None:
    scene.send(scene.started, IterationStarted(iteration=0, round=0, samples=3))
    scene.accept("1-01")
    scene.finish("1-01", 1.5)
    scene.send(
        IterationEnded(iteration=0, best=None),
        FinalStarted(attempts=("1-01",)),
    )
    scene.send(TrainingQueued(job="1-01@100", label="1-01", training="final", seed=100))
    scene.send(TrainingEnded(job="1-01@100", label="1-01", training="final", fitness=1.25))
    assert scene.view.trainings_total == 1 + 3 + 6
    assert "1 of 3 seeds" in scene.text(80, 30)
    scene.send(TrainingQueued(job="1-01@101", label="1-01", training="final", seed=101))
    scene.send(TrainingProgress(job="1-01@101", points=()))
    assert "final, seed 2" in scene.text(80, 30)
    score = Score(
        name="1-01",
        seeds=(1, 2, 3),
        fitness=(1.0, 2.0, 3.0),
        mean=2.0,
        std=1.0,
        human_normalized=1.25,
    )
    scene.send(Scored(score=score))
    assert "2.00 ± 1.00              1.25  3 seeds" in scene.text(80, 30)


def test_lines_at_80_columns(scene: Scene) -> None:
    scene.send(scene.started, IterationStarted(iteration=0, round=0, samples=3))
    scene.accept("1-01")
    scene.accept("1-02")
    scene.reject("1-03", "unknown variable 'heigth'")
    scene.send(TrainingProgress(job="1-01@7", points=()))
    scene.send(
        TrainingProgress(
            job="1-01@7", points=tuple(progress(step * 50, float(step)) for step in range(1, 9))
        ),
        seconds=4.0,
    )
    scene.finish("1-02", 2.5, finding="height makes up 97 % of the reward")
    scene.send(Notice(text="one core only", level="warning"))
    assert scene.text(80, 24).splitlines() == [
        "jump as high as you can",
        "jumper · jump · designer: offline · wall: process · 20261121-035500_jumper_jump",
        "fitness is the metric of the environment's own task 'jump': highest point of the",
        "foot",
        "iteration 1 of 2 · 3 proposals · 1 thrown out by the critic",
        "trainings 1/16 · env steps 400/15.0k · 100 steps/s",
        # 14,600 steps at 400 in the 4.3 s since the first progress are 157 s
        "━───────────────────────────────────────────   3%  0:05 elapsed, about 2:37 left",
        "── 1 training now (fitness with exploration noise) ─────────────────────────────",
        "  candidate  role       fitness  fitness curve  env steps                       ",
        "  1-01       fresh         8.00  ▁▂▃▄▅▆▇█       ━━━━━━━━────────────   400  40% ",
        "── leaderboard ─────────────────────────────────────────────────────────────────",
        "  rank  attempt   operator     fitness  length  what the analyzer says          ",
        "     1  1-02      fresh           2.50     120  height makes up 97 % of the rew…",
        "── discarded ───────────────────────────────────────────────────────────────────",
        "  1-03      C102 line 3: unknown variable 'heigth'",
        "one core only",
    ]


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("height", [12, 24, 50])
def test_many_slots_fit_any_terminal(scene: Scene, width: int, height: int) -> None:
    scene.send(scene.started, IterationStarted(iteration=0, round=0, samples=100))
    for sample in range(1, 65):
        scene.accept(f"1-{sample:02d}")
        scene.send(
            TrainingProgress(job=f"1-{sample:02d}@7", points=(progress(sample, float(sample)),))
        )
        scene.accept(f"2-{sample:02d}")
        scene.finish(f"2-{sample:02d}", float(sample))
    scene.reject("3-01", "no code")
    lines = scene.text(width, height).splitlines()
    assert len(lines) < height
    assert all(cell_len(line) <= width for line in lines)
    hidden = [line for line in lines if "more" in line]
    assert len(hidden) == (1 if height == 12 else 2)
    if height == 50:
        assert any(line.strip().startswith("1-64") for line in lines), (
            "the highest fitness is shown"
        )
        assert not any(line.strip().startswith("1-01") for line in lines), "the lowest is not"


def test_a_terminal_without_blocks_gets_ascii(scene: Scene) -> None:
    scene.send(scene.started)
    scene.accept("1-01")
    scene.send(TrainingProgress(job="1-01@7", points=(progress(100, 1.0), progress(200, 2.0))))
    lines = [
        "".join(text for text, _ in line)
        for line in search_lines(scene.view, scene.clock.now, 80, 24, ascii_only=True)
    ]
    assert any("_@" in line and "##------" in line for line in lines)
    console = Console(
        file=io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict"), width=80, height=24
    )
    console.print(SearchPanel(scene.view, scene.clock))
    PlainLog(console, scene.clock)(Notice(text="2.5 ± 0.5 · ok"))
    console.file.seek(0)
    assert console.file.readlines()[-1].endswith("2.5 ~ 0.5 - ok\n")


def test_events_before_the_run_starts_do_no_harm() -> None:
    view = SearchView()
    view.apply(Notice(text="checking the environment"), 1.0)
    view.apply(TrainingProgress(job="unknown", points=()), 2.0)
    assert search_lines(view, 3.0, 80, 24) == [
        [("starting", "dim")],
        [("checking the environment", "dim")],
    ]


def test_room_is_shared_by_need() -> None:
    assert share_rows(10, [20, 4, 0], [3, 3, 3]) == [6, 4, 0]
    assert share_rows(4, [20, 4, 5], [3, 3, 3]) == [3, 1, 0]
    assert share_rows(0, [5], [2]) == [0]
    assert share_rows(100, [5, 2], [1, 1]) == [5, 2]


def test_fit_counts_terminal_cells() -> None:
    assert fit("abcdef", 4) == "abc…"
    assert fit("字字字", 4) == "字 …"
    assert fit("a\nb", 5, right=True) == "  a b"


# ── the live view on a terminal ───────────────────────────────────────────────────────────────────


def test_live_view_leaves_its_last_picture(scene: Scene) -> None:
    console = Console(
        file=io.StringIO(), width=80, height=24, force_terminal=True, color_system=None
    )
    view = progress_view(console, scene.clock)
    assert isinstance(view, LiveView)
    with view:
        view(scene.started)
        view(RunEnded(status=RunStatus.FINISHED))
    assert "jump as high as you can" in console.file.getvalue()  # type: ignore[attr-defined]
    assert "finished" in console.file.getvalue()  # type: ignore[attr-defined]


# ── log lines elsewhere ───────────────────────────────────────────────────────────────────────────


def test_plain_lines_tell_of_what_is_trained_again(
    scene: Scene, confirm: Callable[..., Attempt]
) -> None:
    console = Console(file=io.StringIO(), width=40)
    log = PlainLog(console, scene.clock)
    once = scene.make("1-01", Stage.TRAINED, 8.0)
    log(scene.started.model_copy(update={"known": (once,)}))
    log(ConfirmationStarted(iteration=0, attempts=("1-01",), trainings=2))
    for repeat in confirm(once, 2.0, None).repeats:
        log(AttemptRepeated(attempt="1-01", repeat=repeat))
    lines = [line.partition("] ")[2] for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]
    assert lines[2:] == [
        "the best so far are trained again from other seeds: 1-01 (2 trainings)",
        "1-01 trained again: fitness 2.00; mean 5.00 over 2 seeds",
        "1-01 trained again: failed: the reward is NaN",
    ]


def test_plain_lines_tell_the_story(scene: Scene) -> None:
    console = Console(file=io.StringIO(), width=40)
    log = progress_view(console, scene.clock)
    assert isinstance(log, PlainLog)
    trained = scene.make(
        "1-01",
        Stage.TRAINED,
        1.5,
        operator=Operator.IMPROVE,
        parents=("0-01",),
        finding="height dominates",
    )
    events: list[BaseEntry] = [
        scene.started,
        IterationStarted(iteration=0, round=0, samples=2),
        proposed(trained),
        judged(scene.make("1-01", Stage.ACCEPTED)),
        TrainingQueued(job="1-01@7", label="1-01", training="search", seed=7),
        proposed(scene.make("1-02", Stage.PROPOSED)),
        judged(scene.make("1-02", Stage.REJECTED, reason="unknown variable 'heigth'")),
        TrainingProgress(job="1-01@7", points=(progress(100, 1.0),)),
        TrainingProgress(job="1-01@7", points=(progress(200, 1.0),)),
        TrainingRetried(job="1-01@7", reason="its worker died"),
        ended(trained),
        IterationEnded(iteration=0, best="1-01"),
        FinalStarted(attempts=("1-01",)),
        TrainingEnded(
            job="1-01@1", label="1-01", training="final", fitness=None, failure="NaN in the reward"
        ),
        Scored(
            score=Score(
                name="sparse", seeds=(1, 2), fitness=(1.0, 2.0), mean=1.5, std=0.707, cached=True
            )
        ),
        Notice(text="the disk is nearly full", level="warning"),
        RunEnded(
            status=RunStatus.FAILED,
            report_path=Path("runs/jumper/report.md"),
            message="it broke\n  hint: eureka resume runs/jumper",
        ),
    ]
    with log:
        for event in events:
            log(event)
            scene.clock.now += 6.0
    assert console.file.getvalue().splitlines() == [  # type: ignore[attr-defined]
        (
            "[    0.0 s] run 20261121-035500_jumper_jump starts: 'jump as high as you can' (jumper,"
            " task jump; designer offline; wall process)"
        ),
        (
            "[    0.0 s] fitness is the metric of the environment's own task 'jump': highest point"
            " of the foot"
        ),
        "[    6.0 s] iteration 1 of 2: 2 proposals to make",
        "[   18.0 s] 1-01 accepted by the critic (improve from 0-01)",
        "[   36.0 s] 1-02 thrown out by the critic: C102 line 3: unknown variable 'heigth'",
        "[   54.0 s] training of 1-01 starts again: its worker died",
        "[   60.0 s] 1-01 trained: fitness 1.50 (improve from 0-01)",
        "[   66.0 s] iteration 1 ends: best so far is 1-01 with fitness 1.50",
        "[   72.0 s] final trainings with fresh seeds: 1-01",
        "[   78.0 s] final training of 1-01 ended: failed: NaN in the reward",
        "[   84.0 s] sparse: 1.50 ± 0.71 over 2 seeds (from the cache)",
        "[   90.0 s] warning: the disk is nearly full",
        (
            "[   96.0 s] run failed: it broke; hint: eureka resume runs/jumper; report in"
            " runs/jumper/report.md"
        ),
    ]


def test_plain_progress_is_one_line_in_ten_seconds(scene: Scene) -> None:
    console = Console(file=io.StringIO(), width=40)
    log = PlainLog(console, scene.clock)
    log(scene.started)
    log(proposed(scene.make("1-01", Stage.PROPOSED)))
    log(TrainingQueued(job="1-01@7", label="1-01", training="search", seed=7))
    for second in range(25):
        scene.clock.now += 1.0
        log(TrainingProgress(job="1-01@7", points=(progress(second * 10, 1.0),)))
    lines = console.file.getvalue().splitlines()[2:]  # type: ignore[attr-defined]
    # 16 trainings of 1000 steps; 100 steps in ten seconds leave 15,900 for 1590 s; then 200 in
    # twenty leave 1580 s
    assert lines == [
        (
            "[   11.0 s] 1 training running, 0 of 16 done, 100 of 16.0k env steps, 10 steps/s,"
            " about 26 min 30 s left"
        ),
        (
            "[   21.0 s] 1 training running, 0 of 16 done, 200 of 16.0k env steps, 10 steps/s,"
            " about 26 min 20 s left"
        ),
    ]
