from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from command_line import CommandLine
from planned_attempts import started
from scripted_search import (
    Fuse,
    Killed,
    ScriptedDesigner,
    ScriptedSearch,
    TableTrials,
    reward,
    rows,
)

from eureka_agent.archive.run_folder import Run, open_run
from eureka_agent.errors import SettingsError
from eureka_agent.journal.entries import IterationEnded, Notice
from eureka_agent.journal.state import Recorded, RunState
from eureka_agent.records import TaskDescription
from eureka_agent.report.progress import trainings_total
from eureka_agent.search.budget import parse_budget, steps_text, time_limit, time_text
from eureka_agent.search.budget_plan import CostModel, plan, plan_within
from eureka_agent.search.clock import plan_capacity
from eureka_agent.search.deadline import Deadline
from eureka_agent.search.recorder import Recorder
from eureka_agent.search.summary import run_report
from eureka_agent.settings import SearchSettings
from eureka_agent.training_counts import TrainingCounts

MakeRun = Callable[..., Run]

# ── what a person writes ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("10m", 600), ("8h", 28_800), ("1.5h", 5400), ("1h2m3s", 3723)],
)
def test_small_letters_are_wall_time(text: str, seconds: float) -> None:
    budget = parse_budget(text)
    assert (budget.text, budget.seconds, budget.env_steps) == (text, seconds, None)


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        *[("500k", 500_000), ("10M", 10_000_000), ("2G", 2_000_000_000), ("5000000", 5_000_000)],
        *[("1.7M", 1_700_000), ("1e6", 1_000_000), ("200_000", 200_000)],
    ],
)
def test_numbers_with_k_and_large_letters_are_env_steps(text: str, steps: int) -> None:
    budget = parse_budget(text)
    assert (budget.text, budget.seconds, budget.env_steps) == (text, None, steps)


@pytest.mark.parametrize(
    "text",
    ["", "10 min", "10K", "30m1h", "-5M", "0.5", "5M2k", "m", "٣m", "nan", "0x10"],
)
def test_anything_else_is_shown_with_what_is_expected(text: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_budget(text)
    assert repr(text) in caught.value.message
    for example in ("10m is ten minutes", "10M is ten million env steps", "1h30m", "500k"):
        assert example in caught.value.hint


@pytest.mark.parametrize("text", ["0", "0s", "9" * 400, "9" * 400 + "h", "2000000G"])
def test_a_budget_has_a_size(text: str) -> None:
    with pytest.raises(SettingsError, match="expected 1 to"):
        parse_budget(text)


def test_amounts_are_rounded_up_to_what_can_be_typed() -> None:
    steps = (7, 99.2, 101, 12_600, 999_999, 3_780_000, 2.1e9)
    assert [*map(steps_text, steps)] == ["7", "100", "110", "13k", "1M", "3.8M", "2.1G"]
    seconds = (31, 120, 121, 3601, 7140, 7201, 10_800)
    assert [*map(time_text, seconds)] == ["35s", "120s", "3m", "61m", "119m", "2h10m", "3h"]
    assert parse_budget(steps_text(12_600)).env_steps == 13_000
    assert parse_budget(time_text(7201)).seconds == 7800


# ── plans in env steps ────────────────────────────────────────────────────────────────────────────

# A training is 10 updates of 10 x 10, 1000 env steps. In trainings, a search of g generations of s
# takes at most
#     g s + (g - 1) min(4, s) + 5 min(3, g s) + 10 baselines
# since the best are trained again before each generation that is made from them:
# 1 x 8: 8 + 15 + 10 = 33; 2 x 8: 16 + 4 + 25 = 45; 5 x 8: 81; 5 x 16: 80 + 16 + 25 = 121.
SETTINGS = SearchSettings(
    env="cart", env_steps=1000, num_envs=10, horizon=10, final_seeds=5, finalists=3, drafts=1
)


def missing(settings: SearchSettings) -> int:
    """The human and the sparse reward from each of their seeds."""
    return 2 * settings.seeds_of_baselines


def planned(
    text: str, given: tuple[str, ...] = (), *, settings: SearchSettings = SETTINGS, **options: Any
) -> Any:
    """The plan's settings; its sentence must name the budget."""
    options = {"baselines": missing, **options}
    baselines = options.pop("baselines")
    costs = CostModel(parse_budget(text), baselines, **options)
    made, said = plan(settings, given, costs)
    assert f"the budget of {text} gives " in said
    return SimpleNamespace(settings=made, text=said)


def size(made: Any) -> tuple[int, int]:
    return made.settings.iterations, made.settings.samples


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("33.5k", (1, 8)),  # 33; 1 x 9 takes 34
        ("48k", (2, 9)),  # 18 + 4 + 25 = 47; 2 x 10 takes 49, 3 x 8 takes 57
        ("196k", (8, 16)),  # 128 + 28 + 25 = 181; 9 x 16 takes 201
    ],
)
def test_samples_up_to_eight_then_generations_then_samples_then_generations(
    text: str, expected: tuple[int, int]
) -> None:
    made = planned(text)
    assert size(made) == expected
    assert made.settings == SETTINGS.model_copy(
        update={"iterations": expected[0], "samples": expected[1]}
    )
    assert "reduced" not in made.text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("36k", (1, 11)),  # 2 x 4 do not fit: one of eight, and more, as without drafts
        ("96k", (9, 4)),  # 36 + 32 + 25 = 93; 10 x 4 takes 101
    ],
)
@pytest.mark.parametrize("drafts", [8, None])
def test_with_drafts_generations_of_four_come_first(
    text: str, expected: tuple[int, int], drafts: int | None
) -> None:
    """Also with those of the offline designer by default."""
    changed = SETTINGS.model_copy(update={"drafts": drafts, "strategy": "greedy"})
    assert size(planned(text, settings=changed)) == expected


@pytest.mark.parametrize(
    ("iterations", "samples", "planned", "likely", "most"),
    [
        # 2 candidates thrice, and 2 x 2 confirmations before the two later generations; 6 of 9
        # finalists: at most 5 seeds each, and likely 5 for the winner and 7 for the 5 others (1.5
        # each); 2 x 5 baselines
        (3, 2, TrainingCounts(2, 4, 2, 30, 12, 10), 6 + 8 + 12 + 10, 6 + 8 + 30 + 10),
        # with a second generation there is: 1 x 2 confirmations
        (2, 1, TrainingCounts(1, 2, 1, 10, 6, 10), 2 + 2 + 6 + 10, 2 + 2 + 10 + 10),
    ],
)
def test_plan_slots_and_live_view_count_the_same_trainings(
    description: TaskDescription,
    iterations: int,
    samples: int,
    planned: TrainingCounts,
    likely: int,
    most: int,
) -> None:
    sizes = {"confirm_seeds": 2, "finalists": 9, "slots": 64}
    sizes |= {"iterations": iterations, "samples": samples}
    settings = SETTINGS.model_copy(update=sizes)
    assert TrainingCounts.of(settings, baselines=missing(settings)) == planned
    state = RunState()
    state.apply(Recorded(1, "", 0.0, started(description, settings)))
    assert trainings_total(state) == planned.likely(iterations) == likely
    costs = CostModel(parse_budget("1G"), missing)
    assert costs.env_steps(settings) == 1000 * most  # a budget is kept to
    # all in one worker, one at a time: as many slots as the largest group that trains at once
    slots = plan_capacity(settings, places=1).slots
    assert slots == max(planned.candidates + planned.baselines, planned.finals)


# ── what is given by hand ─────────────────────────────────────────────────────────────────────────


def test_what_is_given_stays() -> None:
    four = SETTINGS.model_copy(update={"samples": 4})
    # 16 + 12 + 25 = 53; 5 x 4 takes 61
    assert size(planned("56k", ("samples",), settings=four)) == (4, 4)
    three = SETTINGS.model_copy(update={"iterations": 3})
    # 27 + 8 + 25 = 60; 3 x 10 takes 63
    assert size(planned("61k", ("iterations",), settings=three)) == (3, 9)
    both = SETTINGS.model_copy(update={"iterations": 1, "samples": 3})
    assert size(planned("1G", ("iterations", "samples"), settings=both)) == (1, 3)


def test_given_sizes_that_do_not_fit_are_an_error() -> None:
    large = SETTINGS.model_copy(update={"iterations": 9, "samples": 9})
    with pytest.raises(SettingsError, match="9 generations of 9"):
        planned("20k", ("iterations", "samples"), settings=large)


# ── reductions ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "expected", "seeds", "told"),
    [
        ("33.5k", (1, 8), 5, ""),  # 8 + 15 + 10 = 33
        ("32k", (1, 9), 4, "; reduced to fit: baseline seeds"),  # 1 x 9: 9 + 15 + 8 = 32
        ("27k", (1, 8), 2, "; reduced to fit: baseline seeds"),  # 8 + 15 + 4 = 27
        ("26k", (1, 11), 0, "; reduced to fit: baselines"),  # 11 + 15 = 26
    ],
)
def test_baselines_make_room_for_a_generation_of_eight(
    text: str, expected: tuple[int, int], seeds: int, told: str
) -> None:
    made = planned(text)
    assert size(made) == expected
    found = made.settings
    assert (found.baselines, found.seeds_of_baselines if seeds else 0) == (seeds > 0, seeds)
    assert made.text.endswith(f"env steps{told}")
    assert (found.final_seeds, found.finalists, found.env_steps) == (5, 3, 1000)


def test_baselines_that_cost_nothing_or_are_asked_for_stay() -> None:
    # from three seeds they are in the cache: 8 + 9 = 17 with 3 final seeds, 20 with 4
    def cached(settings: SearchSettings) -> int:
        return 2 * max(0, settings.seeds_of_baselines - 3)

    made = planned("17k", baselines=cached)
    assert (size(made), made.settings.baselines, made.settings.baseline_seeds) == ((1, 8), True, 3)
    made = planned("29k", ("baselines",))  # with 4 seeds 1 x 9: 9 + 12 + 8 = 29; 1 x 10 takes 30
    assert (size(made), made.settings.seeds_of_baselines) == ((1, 9), 4)
    of_four = SETTINGS.model_copy(update={"baseline_seeds": 4})
    # 8 + 12 + 8 = 28 with 4 final seeds; with 3 of them 1 x 10: 10 + 9 + 8 = 27, and 1 x 11 takes 28
    made = planned("27k", ("baseline_seeds",), settings=of_four)
    assert (size(made), made.settings.final_seeds) == ((1, 10), 3)
    assert made.settings.seeds_of_baselines == 4


def test_final_seeds_then_finalists_then_env_steps_are_reduced() -> None:
    # all for a generation of eight, before it has fewer: no baselines, then 8 + 12 = 20 with 4
    # final seeds; 1 x 9 takes 21
    made = planned("21k")
    assert (size(made), made.settings.final_seeds, made.settings.finalists) == ((1, 9), 4, 3)
    assert (
        made.text
        == "the budget of 21k gives 1 generation of 9, 3 finalists from 4 seeds, 1,000 env steps a"
        " training: at most about 21.0k env steps; reduced to fit: baselines, final seeds"
    )
    # 8 + 6 = 14 with 3 final seeds and 2 finalists; 1 x 9 takes 15
    made = planned("14k")
    assert (size(made), made.settings.final_seeds, made.settings.finalists) == ((1, 8), 3, 2)
    # 1 x 3: 3 + 3 + 6 = 12
    made = planned("12k", ("baselines",))
    assert (size(made), made.settings.final_seeds, made.settings.finalists) == ((1, 3), 3, 1)
    assert made.settings.env_steps == 1000
    # 8k / 11 = 727 env steps: 7 updates
    made = planned("8k", ("baselines",))
    assert (size(made), made.settings.final_seeds, made.settings.finalists) == ((1, 2), 3, 1)
    assert made.settings.env_steps == 700
    assert made.text.endswith("; reduced to fit: final seeds, finalists, env steps")


def test_too_small_a_budget_says_what_the_smallest_is() -> None:
    # a quarter of 10 updates, rounded up, is 3: 11 * 300 = 3300
    with pytest.raises(SettingsError) as caught:
        planned("3.2k", ("baselines",))
    assert caught.value.message == (
        "the budget of 3.2k env steps is too small: the smallest search here takes 3.3k env steps"
        " (1 generation of 2, 1 finalist from 3 seeds, baselines from 3, 300 env steps a training)"
    )
    assert "--budget 3.3k" in caught.value.hint
    made = planned("3.3k", ("baselines",))
    assert (size(made), made.settings.env_steps) == ((1, 2), 300)


# ── plans in wall time ────────────────────────────────────────────────────────────────────────────

# Each training takes 2 s, and another 10 s pass besides. Of three finalists the winner gets its 5
# seeds, and the two others 3 together.


def seconds_of(settings: SearchSettings) -> float:
    made = TrainingCounts.of(settings, baselines=missing(settings))
    return 10.0 + 2.0 * made.likely(settings.iterations) * settings.env_steps / 1000


def in_time(text: str, **options: Any) -> Any:
    return planned(text, seconds=seconds_of, **options)


@pytest.mark.parametrize(
    ("text", "expected", "about"),
    [
        ("63s", (1, 8), "1 min 2 s"),  # 8 + 8 + 10 trainings; 1 x 9 takes 64 s
        ("160s", (5, 8), "2 min 38 s"),  # 40 + 16 + 18 = 74; 5 x 9 takes 168 s
        ("10m", (14, 16), "9 min 58 s"),  # 224 + 52 + 18 = 294; 15 x 16 takes 638 s
    ],
)
def test_the_largest_search_that_the_estimate_says_fits_is_chosen_and_takes_that_long(
    text: str, expected: tuple[int, int], about: str
) -> None:
    made = in_time(text)
    assert size(made) == expected
    assert made.text.endswith(f"1,000 env steps a training: about {about}")


async def test_a_tighter_limit_of_time_chooses_in_place_of_the_budget() -> None:
    async def clock(settings: SearchSettings) -> Any:
        return SimpleNamespace(seconds=seconds_of)

    async def within(max_time: str) -> tuple[SearchSettings, str]:
        limits = {"budget": "10m", "max_time": max_time}
        return await plan_within(SETTINGS.model_copy(update=limits), (), missing, clock)

    found, text = await within("63s")
    assert (found.iterations, found.samples) == (1, 8)
    assert text.startswith("the budget of 63s (--max-time) gives 1 generation of 8, ")
    assert text.endswith(": about 1 min 2 s")
    with pytest.raises(SettingsError, match=r"^the budget of 5s \(--max-time\) is too") as caught:
        await within("5s")
    assert caught.value.hint.startswith("take --max-time 15s or more")


# ── the end of a wall-time budget ─────────────────────────────────────────────────────────────────


class Timed:
    """A scripted search on a clock that goes on by 60 s with every generation of two trainings of
    10,000 env steps."""

    def __init__(self, run: Run, *, now: float = 0.0, fuse: Fuse | None = None) -> None:
        self.now = now
        self.events: list[Any] = []
        self.designer = ScriptedDesigner([reward(number) for number in range(1, 21)], fuse=fuse)
        trials = TableTrials({reward(number): float(number) for number in range(1, 21)}, fuse)
        limit = time_limit(run.settings)
        assert limit is not None
        deadline = Deadline(run, limit, lambda: self.now, Recorder(run, self.observe))
        self.search = ScriptedSearch(
            run, self.designer, trials, observer=self.observe, fuse=fuse, deadline=deadline
        ).engine.generations

    def observe(self, event: Any) -> None:
        self.events.append(event)
        if isinstance(event, IterationEnded):
            self.now += 60.0

    @property
    def notices(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Notice)]


@pytest.fixture
def timed_run(make_run: MakeRun) -> Callable[..., Run]:
    def make(**settings: Any) -> Run:
        sizes = {"iterations": 6, "samples": 2, "finalists": 1, "final_seeds": 2}
        sizes |= {"env_steps": 10_000, "num_envs": 10, "horizon": 10}
        return make_run(budget="5m", novelty=False, **{**sizes, "baselines": False, **settings})

    return make


def generations(run: Run) -> int:
    return len({attempt.iteration for attempt in run.archive.attempts()})


async def test_no_generation_begins_that_would_not_end_in_time(
    timed_run: Callable[..., Run],
) -> None:
    run = timed_run()
    timed = Timed(run)
    await timed.search()
    # 20,000 env steps take 60 s, so another generation and the finals (2 trainings) 120 s: at 180 s
    # that ends at 300 s, at 240 s not in time
    assert generations(run) == 4
    (text,) = timed.notices
    assert (
        text == "stopped after 4 of 6 generations: of the budget of 5m, 4 min 0 s had passed, and"
        " another generation with the final trainings would have taken about 2 min 0 s"
    )
    assert run_report(run).budget == (text,)


async def test_missing_baselines_are_left_time_for(timed_run: Callable[..., Run]) -> None:
    run = timed_run(baselines=True)
    await Timed(run).search()
    # 4 baselines, 120 s more: at 60 s that ends at 300 s, at 120 s not in time
    assert generations(run) == 2


async def test_the_first_generation_is_made_however_late_it_is(
    timed_run: Callable[..., Run],
) -> None:
    run = timed_run()
    await Timed(run, now=1000.0).search()
    assert generations(run) == 1


async def test_a_resumed_run_keeps_to_what_was_decided(timed_run: Callable[..., Run]) -> None:
    run = timed_run()
    await Timed(run).search()
    before = rows(run)
    again = Timed(open_run(run.folder), now=0.0)  # by the clock there would be time
    await again.search()
    assert rows(run) == before
    assert (again.designer.requests, again.notices) == ([], [])


async def test_a_generation_that_has_begun_is_finished(timed_run: Callable[..., Run]) -> None:
    run = timed_run()
    with pytest.raises((Killed, BaseExceptionGroup)):
        await Timed(run, fuse=Fuse("propose", 6)).search()  # the second of the third generation
    assert [row[0] for row in rows(run)][-1] == "3-01"
    late = Timed(open_run(run.folder), now=10_000.0)
    await late.search()
    assert [row[0] for row in rows(run)][-2:] == ["3-01", "3-02"]
    assert late.notices[0].startswith("stopped after 3 of 6 generations")


# ── with workers ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_a_search_within_a_number_of_env_steps(eureka: CommandLine, puck: Path) -> None:
    flags = ("--env", str(puck), "--budget", "215k", "--finalists", "2")
    run = eureka.json("search", "bring the puck to the middle of the rail", *flags)
    # 215k are 26.2 trainings of 8192 env steps, 16 whole updates. 2 x 4 takes at most 8 + 10 = 18
    # and two for each seed of the baselines
    settings = run["settings"]
    assert (settings["budget"], settings["iterations"], settings["samples"]) == ("215k", 2, 4)
    assert run["cost"]["env_steps"] <= 215_000
    assert [len(run[name]["seeds"]) for name in ("best", "human", "sparse")] == [5, 4, 4]
    text = (
        "the budget of 215k gives 2 generations of 4, 2 finalists from 5 seeds, baselines from 4,"
        " 8,192 env steps a training: at most about 213k env steps; reduced to fit: baseline seeds"
    )
    assert run["budget"] == [text]
    folder = eureka.run_folder()
    assert text[1:] in (folder / "report.md").read_text()
    stored = yaml.safe_load((folder / "settings.yaml").read_text())
    assert (stored["budget"], stored["iterations"], stored["samples"]) == ("215k", 2, 4)
    flags = ("--budget", "9k", "--env-steps", "4096")
    assert "is too small" in eureka("search", "--env", str(puck), *flags, status=2)


@pytest.mark.slow
def test_a_search_within_a_wall_time_ends_about_then(eureka: CommandLine, puck: Path) -> None:
    run = eureka.json("search", "go to the middle", "--env", str(puck), "--budget", "25s")
    assert run["status"] == "finished"
    assert 0.0 < run["seconds"] < 50.0
    assert "env steps a training: about " in run["budget"][0]
