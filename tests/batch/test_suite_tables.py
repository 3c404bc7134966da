"""A benchmark's figures by method and task, from made-up searches whose figures follow by hand."""

from __future__ import annotations

import io

import pytest

from eureka_agent.batch.suite_results import Cell, Results, TaskScale
from eureka_agent.batch.suite_tables import as_json, document, method_table, summaries
from eureka_agent.report.markdown import document_markdown
from eureka_agent.report.terminal import CleanConsole, render_sections


def cell(task: str, method: str, seed: int, *fitness: float, **facts: object) -> Cell:
    values = {"attempts": 10, "trained": 8, "env_steps": 1000, **facts}
    return Cell(task, method, seed, "finished", fitness, **values)  # type: ignore[arg-type]


@pytest.fixture
def results() -> Results:
    cells = (
        cell("run", "best-of-n", 0, 6.0, 8.0),  # 7 → 0.5
        cell("run", "best-of-n", 1, 9.0),  # 9 → 1.5
        cell("run", "greedy", 0, 10.0),  # 10 → 2
        cell("run", "greedy", 1, 8.0),  # 8 → 1
        cell("noise", "best-of-n", 0, 1.0),
        cell("noise", "greedy", 0, 0.5),
        Cell("noise", "greedy", 1, "failed", attempts=4, message="no key"),
    )
    scales = {
        "run": TaskScale("run", "m", (8.0, 8.0), (6.0, 6.0)),
        "noise": TaskScale("noise", "1", (1.0, 0.0), (0.4, 0.6), "human and sparse are the same"),
    }
    return Results(cells, scales, ("best-of-n", "greedy"), ("run", "noise"))


def test_scores_are_normalised_where_the_unit_is_no_noise(results: Results) -> None:
    best, greedy = summaries(results)
    assert best.iqm is not None
    assert greedy.iqm is not None
    assert best.median is not None
    assert best.median.value == 1.0  # the mean of 0.5 and 1.5; the other task is refused
    assert greedy.iqm.value == 1.5
    assert results.scales["noise"].normalised(100.0) is None


def test_methods_are_compared_on_raw_scores_of_all_tasks(results: Results) -> None:
    """On `run` greedy's 10 beats 7 and 9 and its 8 beats 7: 3 of 4. On `noise` 0.5 loses to 1."""
    best, greedy = summaries(results)
    assert best.improvement is None
    assert greedy.improvement is not None
    assert greedy.improvement.value == pytest.approx((0.75 + 0.0) / 2)


def test_counts_are_of_the_searches(results: Results) -> None:
    best, greedy = summaries(results)
    # of the means 8 and 9 on `run` both reach human's 8; on `noise` human has 0.5
    assert (best.at_human, best.compared) == (2, 2)
    assert (greedy.at_human, greedy.compared) == (2, 2)
    assert greedy.executable == pytest.approx(24 / 34)
    assert (greedy.finished, greedy.searches) == (3, 4)


def test_tables_refuse_and_say_why(results: Results) -> None:
    text = document_markdown(document(results, "Benchmark mine", "eureka bench mine"))
    assert "| noise | 0.500 ± 0.707 | 0.500 ± 0.141 | refused | 1.00 | 0.500 |" in text
    assert "- noise: human and sparse are the same" in text
    assert "- failed, no key: noise greedy seed 1" in text
    assert "| greedy | 3 of 4 |" in text
    searches = as_json(results)["searches"]
    assert len(searches) == 7
    assert [searches[place]["normalised"] for place in (0, 4)] == [0.5, None]


def test_an_unfinished_benchmark_says_what_is_missing_and_how_to_go_on() -> None:
    cells = (
        Cell(
            "run", "a", 0, "stopped", attempts=4, pending=4, message="go on with: eureka resume x"
        ),
        Cell("run", "a", 1, "waiting"),
        Cell("fly", "a", 0, "running", attempts=6, trained=2, pending=3),
    )
    results = Results(
        cells, {"run": TaskScale("run", "m", environment_task="lap")}, ("a",), ("run", "fly")
    )
    assert [cell.executable for cell in cells] == [None, None, 2 / 3]
    assert summaries(results)[0].executable == 2 / 3
    text = document_markdown(document(results, "Benchmark mine", "eureka bench mine --seeds 2"))
    for line in ("- stopped: run a seed 0", "- waiting: run a seed 1", "- running: fly a seed 0"):
        assert f"{line}\n" in text
    assert "eureka resume" not in text
    assert text.endswith(
        "This command goes on with it:\n\n```sh\neureka bench mine --seeds 2\n```\n"
    )
    assert r"| run (lap) \[m\] |" in text
    assert [(each["task"], each["human"]) for each in as_json(results)["tasks"]] == [
        ("run", ()),
        ("fly", ()),
    ]
    assert "refused" not in text


@pytest.mark.parametrize("width", [80, 200])
def test_tables_fit_a_terminal(results: Results, width: int) -> None:
    stream = io.StringIO()
    told = document(results, "Benchmark mine", "eureka bench mine")
    CleanConsole(file=stream, width=width).print(*render_sections(told.sections))
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    (head,) = [line for line in lines if line.startswith("method")]
    grid = method_table(summaries(results))
    shown = {title for title in grid.titles if title in head}
    assert shown == set(grid.titles) - (set(grid.spare) if width == 80 else set())
    assert any("failed, no key: noise greedy seed 1" in line for line in lines)
