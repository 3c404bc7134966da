"""Numbers of a report's charts against figures worked out by hand."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from outcomes import make_outcome

from eureka_agent.records import Attempt, CurvePoint, FinalTraining, Score, Stage
from eureka_agent.report.curves import write_curves_csv
from eureka_agent.report.html.charts import (
    MOST_POINTS,
    Curve,
    PlottedTrainings,
    figure,
    fitness_per_iteration,
    learning_curves,
    scores_with_error_bars,
    script_json,
)
from eureka_agent.report.html.training_curves import final_curves, search_curves
from eureka_agent.report.run_report import RunReport


def lines(*trainings: PlottedTrainings) -> dict[str, dict[str, list[float | None]]]:
    chart = learning_curves(trainings, " (m)")
    assert chart is not None
    for line in chart["series"]:
        assert len(line["values"]) == len(chart["x"]["values"])
    return {"x": chart["x"]} | {line["name"]: line for line in chart["series"]}


def test_a_line_is_the_mean_over_seeds_and_its_band_a_standard_deviation() -> None:
    two = (Curve((10, 20), (1.0, 3.0)), Curve((10, 20), (3.0, 7.0)))
    found = lines(
        PlottedTrainings("2-01 (best)", "best", two), PlottedTrainings("1-01", "attempt", two[:1])
    )
    assert found["x"]["values"] == [10, 20]
    best = found["2-01 (best)"]
    assert best["values"] == [2.0, 5.0]
    # deviations of 1 from each of two values: sqrt(2 / 1); of 2: sqrt(8)
    assert best["low"] == pytest.approx([2 - math.sqrt(2), 5 - math.sqrt(8)])
    assert best["high"] == pytest.approx([2 + math.sqrt(2), 5 + math.sqrt(8)])
    assert found["1-01"]["values"] == [1.0, 3.0]
    assert "low" not in found["1-01"]


def test_a_long_curve_is_drawn_by_means_of_equal_parts() -> None:
    size = 2 * MOST_POINTS
    steps = tuple(100 * (place + 1) for place in range(size))
    fitness = tuple(float(place) for place in range(size))
    found = lines(PlottedTrainings("1-01", "attempt", (Curve(steps, fitness),)))
    assert found["x"]["values"] == list(steps[1::2])
    assert found["1-01"]["values"] == [2 * place + 0.5 for place in range(MOST_POINTS)]


def test_a_gap_within_a_curve_is_a_straight_line_and_its_ends_stay_open() -> None:
    # the second seed knows 4 at 20 and 10 at 50: 6 at 30 and 8 at 40
    full = Curve((10, 20, 30, 40, 50), (0.0, 2.0, 4.0, 6.0, 8.0))
    gaps = Curve((10, 20, 30, 40, 50), (None, 4.0, None, None, 10.0))
    found = lines(PlottedTrainings("human", "human", (full, gaps)))
    assert found["human"]["values"] == [None, 3.0, 5.0, 7.0, 9.0]
    assert found["human"]["low"][0] is found["human"]["high"][0] is None


def test_a_curve_on_another_grid_is_read_at_the_places_of_the_longest() -> None:
    long, short = Curve((10, 20, 30, 40), (1.0, 1.0, 1.0, 1.0)), Curve((15, 35), (0.0, 20.0))
    found = lines(
        PlottedTrainings("1-01", "attempt", (long,)), PlottedTrainings("sparse", "sparse", (short,))
    )
    assert found["sparse"]["values"] == [None, 5.0, 15.0, None]


def test_nothing_known_is_no_chart() -> None:
    assert learning_curves([], "") is None
    assert learning_curves([PlottedTrainings("1-01", "attempt", ())], "") is None
    empty = Curve((10,), (None,))
    assert learning_curves([PlottedTrainings("1-01", "attempt", (empty,))], "") is None
    assert fitness_per_iteration([], [], "") is None
    assert scores_with_error_bars([], "", "") is None
    assert figure(None, "title") == ""


def test_scores_have_error_bars_and_every_seed(report: RunReport) -> None:
    single = Score(name="1-02", seeds=(1,), fitness=(4.0,), mean=4.0, std=None)
    chart = scores_with_error_bars((*report.scores, single), "2-01", " (m)")
    assert chart is not None
    assert chart["y"]["label"] == "fitness (m)"
    rows = {row["name"]: row for row in chart["rows"]}
    assert list(rows) == ["2-01", "1-01", "human", "sparse", "1-02"]
    assert [row["role"] for row in chart["rows"]] == [
        "best",
        "attempt",
        "human",
        "sparse",
        "attempt",
    ]
    best = rows["2-01"]
    assert (best["low"], best["mean"], best["high"]) == (2.0, 2.5, 3.0)
    assert best["points"] == [2.0, 2.5, 3.0]
    assert rows["1-01"]["points"] == [1.0, 2.0]  # one of three seeds failed
    assert (rows["1-02"]["low"], rows["1-02"]["high"]) == (4.0, 4.0)


def test_iterations_have_their_best_and_their_median(
    report: RunReport, attempt: Callable[..., Attempt]
) -> None:
    fitness = {"1-01": 1.0, "1-02": 2.0, "1-03": 6.0, "3-01": 4.0, "3-02": 5.0}
    attempts = [attempt(name, Stage.TRAINED, value) for name, value in fitness.items()]
    attempts.append(attempt("2-01", Stage.FAILED, reason="NaN"))
    human, sparse = report.scores[2:]
    chart = fitness_per_iteration(attempts, [human, sparse], " (m)")
    assert chart is not None
    assert chart["x"]["values"] == [1, 3]  # nothing was trained in the second
    values = {line["name"]: line["values"] for line in chart["series"]}
    assert values == {
        "best attempt": [6.0, 5.0],
        "median attempt": [2.0, 4.5],
        "human": [2.0, 2.0],
        "sparse": [1.0, 1.0],
    }
    assert chart["series"][2]["low"] == [1.9, 1.9]
    assert chart["series"][2]["high"] == [2.1, 2.1]


def test_the_best_of_many_iterations_is_not_lost(attempt: Callable[..., Attempt]) -> None:
    amount = 4 * MOST_POINTS
    attempts = [
        attempt(f"{place + 1}-01", Stage.TRAINED, float(place % 4)) for place in range(amount)
    ]
    chart = fitness_per_iteration(attempts, [], "")
    assert chart is not None
    best, median = (line["values"] for line in chart["series"])
    assert best == [3.0] * MOST_POINTS
    assert median == [1.5] * MOST_POINTS
    assert chart["x"]["values"] == [4 * (place + 1) for place in range(MOST_POINTS)]


# ── curves of a run's folder ──────────────────────────────────────────────────────────────────────


def test_curves_come_from_the_folders_of_the_trainings(
    report: RunReport, point: Callable[..., CurvePoint], tmp_path: Path
) -> None:
    def write(folder: str, *fitness: float | None) -> None:
        (tmp_path / folder).mkdir(parents=True)
        points = [point(500 * (place + 1), value) for place, value in enumerate(fitness)]
        write_curves_csv(tmp_path / folder / "curves.csv", points)

    write("attempts/2-01", None, 2.0)
    write("finals/2-01/seed-1", 1.0, 4.0)
    write("finals/2-01/seed-2", 3.0, 8.0)
    write("baselines/human/seed-1", 0.5, 1.5)
    trainings = [
        FinalTraining(name="2-01", seed=1, outcome=make_outcome(4.0)),
        FinalTraining(name="2-01", seed=2, outcome=make_outcome(8.0)),
        FinalTraining(name="human", seed=1, outcome=make_outcome(1.5)),
        # from the cache, without a file: its one checkpoint at 10,000 env steps
        FinalTraining(name="sparse", seed=1, outcome=make_outcome(0.25), cached=True),
    ]
    run = replace(report, folder=tmp_path, final_trainings=tuple(trainings))
    finals = {each.name: each for each in final_curves(run)}
    assert [curve.fitness for curve in finals["2-01 (best)"].curves] == [(1.0, 4.0), (3.0, 8.0)]
    assert finals["2-01 (best)"].role == "best"
    assert finals["human"].curves == (Curve((500, 1000), (0.5, 1.5)),)
    assert finals["sparse"].curves == (Curve((10_000,), (0.25,)),)
    assert finals["1-01"].curves == ()
    searched = {each.name: each for each in search_curves(run)}
    assert list(searched) == ["2-01 (best)", "1-01", "2-02", "human", "sparse"]
    assert searched["2-01 (best)"].curves == (Curve((500, 1000), (None, 2.0)),)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "env_steps,reward\n1,2\n",
        "env_steps,fitness\n",
        "env_steps,fitness\n10\n",
        "env_steps,fitness\nten,1\n",
        "env_steps,fitness\n20,1\n10,1\n",
    ],
)
def test_a_broken_file_gives_way_to_the_checkpoints(
    report: RunReport, tmp_path: Path, content: str
) -> None:
    folder = tmp_path / "finals" / "2-01" / "seed-1"
    folder.mkdir(parents=True)
    (folder / "curves.csv").write_text(content)
    training = FinalTraining(name="2-01", seed=1, outcome=make_outcome(4.0))
    run = replace(report, folder=tmp_path, final_trainings=(training,))
    assert final_curves(run)[0].curves == (Curve((10_000,), (4.0,)),)


# ── JSON in a document ────────────────────────────────────────────────────────────────────────────


def test_no_text_ends_the_json_of_a_chart() -> None:
    words = "</script><script>alert(1)</script><!-- &amp; \x1b[31m\u2028"
    text = script_json({"name": words, "values": [1 / 3, math.inf, math.nan, None, 10**12]})
    assert not set("<>&\x1b\u2028") & set(text)
    assert json.loads(text) == {
        "name": words.replace("\x1b", "\\x1b").replace("\u2028", "\\u2028"),
        "values": [0.333333, None, None, None, 10**12],
    }
