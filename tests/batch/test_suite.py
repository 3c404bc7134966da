"""Suites: what follows from them, and their mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from faulty_environments import write_lift

from eureka_agent.batch.file import BatchFileError
from eureka_agent.batch.folder import plan_searches
from eureka_agent.batch.intents import IntentsFile
from eureka_agent.batch.suite import Suite, SuiteError, read_suite, with_choices
from eureka_agent.batch.suite_searches import check_benchmark, planned_searches
from eureka_agent.errors import EurekaError
from eureka_agent.settings import SearchSettings
from eureka_agent.simulation.catalogue import list_environments
from eureka_agent.training_counts import TrainingCounts

METHODS = {
    "best-of-n": {"strategy": "best-of-n", "iterations": 1},
    "greedy": {"strategy": "greedy", "iterations": 3},
}


def suite(**changes: object) -> Suite:
    values = {
        "name": "mine",
        "description": "two methods",
        "tasks": ("cartpole:swingup", {"env": "hopper", "env_steps": 50_000}),
        "methods": METHODS,
        "seeds": 2,
        "trainings": 25,
        "settings": {"confirm": 2, "final_seeds": 3},
    }
    return Suite.model_validate({**values, **changes})


def mistakes(chosen: Suite) -> list[str]:
    with pytest.raises(BatchFileError) as caught:
        planned_searches(chosen)
    return [str(fault) for fault in caught.value.faults]


def written(folder: Path, text: str) -> Suite:
    (folder / "mine.yaml").write_text(text)
    return read_suite(str(folder / "mine.yaml"))


def test_every_method_makes_as_many_trainings() -> None:
    """25 trainings are 25 fresh ones, of which none is confirmed, and 3 × 7 with 2 confirmations
    between them."""
    _, searches = planned_searches(suite())
    assert len(searches) == 2 * 2 * 2
    names = {each.name for each in searches}
    assert "cartpole-swingup-best-of-n-seed0" in names
    assert "hopper-greedy-seed1" in names
    samples = {each.name: each.values["samples"] for each in searches}
    assert samples["hopper-best-of-n-seed0"] == 25
    assert samples["hopper-greedy-seed0"] == 7
    for each in searches:
        settings = SearchSettings(**each.values)
        counts = TrainingCounts.of(settings)
        assert counts.likely(settings.iterations) - counts.outside_generations == 25


def test_the_largest_suite_has_every_task_of_the_library() -> None:
    library = {f"{entry.name}:{task}" for entry in list_environments() for task in entry.tasks}
    assert set(read_suite("seeds").tasks) == library


def test_trainings_that_cannot_be_divided_are_refused() -> None:
    assert mistakes(suite(trainings=24)) == [
        "methods.greedy: 24 trainings cannot be divided into 3 generations and 4 confirmations"
        " (set trainings to 10, or to a multiple of 3 more)"
    ]
    (few,) = mistakes(suite(trainings=1, methods={"greedy": {"iterations": 2}}))
    assert "1 training cannot be divided into 2 generations and" in few
    (many,) = mistakes(suite(trainings=3004))
    assert "methods.best-of-n: a generation has 3,004 proposals, expected at most 1,000" in many
    planned_searches(suite(trainings=10))


def test_samples_follow_and_are_not_given() -> None:
    hint = "(set iterations, confirm and confirm_seeds, and trainings of the suite)"
    settings = {"confirm": 1, "samples": 8}
    chosen = suite(methods={"greedy": {"samples": 8}}, settings=settings, trainings=24)
    assert mistakes(chosen) == [
        f"settings.samples: samples follow from the suite's trainings {hint}",
        f"methods.greedy.samples: samples follow from the suite's trainings {hint}",
    ]


def test_mistakes_are_told_where_the_suite_has_them(tmp_path: Path) -> None:
    chosen = written(
        tmp_path,
        """\
tasks: [cartpole:balance, {env: quadcopter, env_steps: -5}, "cartpole:balance"]
methods:
  a: {iterations: 0}
  b: {iterations: two}
  c: {confirm: 0.5}
  d: {stratgy: greedy, iterations: 1}
trainings: 12
settings: {workers: 3}
batch: {matrix: {}, max_time: soon}
""",
    )
    assert [each.partition(" (")[0] for each in mistakes(chosen)] == [
        "line 1, tasks[2]: a task before it has the name 'cartpole-balance' too",
        "line 1, tasks[1].env_steps: it is -5, expected more than 0",
        "line 3, methods.a.iterations: it is 0, expected a whole number, 1 or more",
        "line 4, methods.b.iterations: it is 'two', expected a whole number such as 8, 200k, 1.5M or 2e5",
        "line 5, methods.c.confirm: it is 0.5, expected a whole number",
        "line 6, methods.d.stratgy: unknown setting 'stratgy'",
        "line 8, settings.workers: workers is for the whole batch",
        "line 9, batch.matrix: unknown key 'matrix'",
        "line 9, batch.max_time: it is 'soon': expected a wall time: write 90s, 10m, 8h or 1h30m",
    ]


def test_mistakes_of_form_are_told_at_once_in_plain_words(tmp_path: Path) -> None:
    with pytest.raises(BatchFileError) as caught:
        written(
            tmp_path,
            """\
descripton: mine
tasks: [3]
methods: {Greedy: {}, human: {}}
trainings: true
""",
        )
    assert [str(fault) for fault in caught.value.faults] == [
        "line 1, descripton: unknown key 'descripton' (did you mean 'description'?)",
        "line 2, tasks[0]: it is 3: expected ENV, ENV:TASK, or settings such as"
        " {env: ant, task: run}",
        "line 3, methods.Greedy: it is 'Greedy': a method's name has small letters, digits, '-'"
        " and '.'",
        "line 3, methods.human: it is 'human': 'human' is part of every benchmark: leave it out",
        "line 4, trainings: it is True, expected a whole number",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "it has no methods"),
        ("methods:\n", "line 1, methods: it is empty, expected names with values"),
        ("methods: {}\n", "methods: it is {}, expected at least one value"),
        ("tasks: ant\nmethods: {a: {}}\n", "tasks: it is 'ant', expected a list"),
        ('methods: !!bool "abc"\n', "'abc' is no bool that can be read, line 1"),
    ],
)
def test_a_suite_that_is_no_suite_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(EurekaError) as caught:
        written(tmp_path, text)
    assert expected in caught.value.message


def begun(folder: Path, chosen: Suite) -> None:
    """Plan a suite's searches, the first of which has a run."""
    folder.mkdir()
    _, searches = planned_searches(chosen)
    plan_searches(IntentsFile(folder, make=True), searches)
    run = folder / searches[0].name
    run.mkdir()
    (run / "archive.sqlite").touch()


def test_a_benchmark_goes_on_with_more_and_with_no_other_settings(tmp_path: Path) -> None:
    def changed(chosen: Suite) -> None:
        check_benchmark(planned_searches(chosen)[1], folder)

    folder = tmp_path / "bench"
    changed(suite())
    begun(folder, suite())
    changed(suite(seeds=3, batch={"max_time": "2h"}))
    changed(suite(settings={"confirm": 2, "final_seeds": 3, "slots": 3}))
    # what a search that has begun found must not be mixed with what the next one finds
    with pytest.raises(SuiteError) as differs:
        changed(suite(settings={"confirm": 2, "final_seeds": 4}))
    assert "--folder" in differs.value.hint
    assert differs.value.message.endswith(
        "holds a benchmark with other settings:\n"
        "  cartpole-swingup-best-of-n-seed0: final_seeds was 3 and is 4"
    )


def test_a_folder_of_environments_takes_the_place_of_the_tasks(tmp_path: Path) -> None:
    write_lift(tmp_path / "lift")
    chosen = with_choices(suite(), tmp_path, (), 5, ("openai/x",))
    content = yaml.safe_load(planned_searches(chosen)[0].text)
    assert [(each["env"], each["task"]) for each in content["matrix"]["task"]] == [
        (str(tmp_path / "lift"), "up")
    ]
    assert content["matrix"]["seed"] == [0, 1, 2, 3, 4]
    assert content["defaults"]["model"] == ["openai/x"]
    with pytest.raises(SuiteError, match="there is no environment in"):
        with_choices(suite(), tmp_path / "lift", (), None, ())


def test_mistakes_are_one_line_with_a_next_step() -> None:
    with pytest.raises(SuiteError, match="there is no suite 'quik'") as unknown:
        read_suite("quik")
    assert "did you mean 'quick'?" in unknown.value.hint
    with pytest.raises(SuiteError, match=r"there is no suite 'nothere\.yaml'"):
        read_suite("nothere.yaml")
    with pytest.raises(SuiteError, match="has no tasks of its own") as empty:
        planned_searches(suite(tasks=()))
    assert "--envs" in empty.value.hint
