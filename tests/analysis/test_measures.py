"""Figures by which a wish is followed, worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eureka_agent.analysis.wishes import measure_words, measured, measured_attempts, parse_measure
from eureka_agent.archive.artefacts import TRAJECTORIES, attempt_folder
from eureka_agent.feedback_records import Measure
from eureka_agent.records import TaskDescription, VariableSpec


@pytest.fixture
def task(description: TaskDescription) -> TaskDescription:
    rate = VariableSpec(name="rate", shape=(3,), unit="rad/s", frame="body", doc="turning")
    return description.model_copy(update={"variables": (*description.variables, rate)})


RATE = np.array([[3.0, 0.0, 4.0], [0.0, 0.0, -2.0], [0.0, 0.0, 0.0]])
HEIGHT = np.array([1.0, -3.0, 2.0], dtype=np.float32)


@pytest.mark.parametrize(
    ("variable", "entry", "statistic", "expected"),
    [
        ("height", None, "mean size", 2.0),  # (1 + 3 + 2) / 3
        ("height", None, "mean change", 4.5),  # (4 + 5) / 2
        ("rate", 2, "mean", 2.0 / 3.0),  # (4 - 2 + 0) / 3
        ("rate", None, "largest size", 5.0),
        ("rate", None, "mean change", (np.sqrt(45.0) + 2.0) / 2.0),  # |(3, 0, 6)|, |(0, 0, -2)|
    ],
)
def test_statistics_over_an_episode(
    variable: str, entry: int | None, statistic: Any, expected: float
) -> None:
    measure = Measure(variable=variable, entry=entry, statistic=statistic, aim="lower")
    episode = {"height": HEIGHT, "rate": RATE}
    assert measured(measure, [episode]) == pytest.approx(expected)
    other = {"height": HEIGHT[:0], "other": HEIGHT}  # without a step, without the variable
    assert measured(measure, [episode, other]) == pytest.approx(expected)
    assert measured(measure, [other]) is None


def test_what_cannot_be_a_number_is_none() -> None:
    endless = {"height": np.array([1.0, np.inf])}
    assert measured(Measure(variable="height", statistic="mean", aim="lower"), [endless]) is None
    words = {"height": np.array(["a", "b"])}
    assert measured(Measure(variable="height", statistic="mean", aim="lower"), [words]) is None
    beyond = Measure(variable="rate", entry=3, statistic="mean", aim="lower")
    assert measured(beyond, [{"rate": RATE}]) is None
    once = Measure(variable="height", statistic="mean change", aim="lower")
    assert measured(once, [{"height": HEIGHT[:1]}]) is None  # of one step there is no change


@pytest.mark.parametrize(
    "value",
    [
        None,
        {"variable": "nothing", "statistic": "mean", "aim": "lower"},
        {"variable": "secret", "statistic": "mean", "aim": "lower"},  # private
        {"variable": "rate", "entry": 3, "statistic": "mean", "aim": "lower"},
        {"variable": "rate", "statistic": "median", "aim": "lower"},
        {"variable": "rate", "statistic": "mean", "aim": "smoother"},
    ],
)
def test_a_measure_that_cannot_be_taken_is_none(task: TaskDescription, value: Any) -> None:
    assert parse_measure(value, task) is None


def test_attempts_are_ordered_by_what_is_wanted(task: TaskDescription, tmp_path: Path) -> None:
    for name, best, worst in (("1-01", 1.0, 3.0), ("1-02", 0.0, 1.0), ("1-03", 4.0, 6.0)):
        folder = attempt_folder(tmp_path, name)
        folder.mkdir(parents=True)
        arrays = {"best/rate": np.full((5, 3), [0, 0, best]), "worst/rate": np.full((5, 3), worst)}
        np.savez(folder / TRAJECTORIES, **arrays)
    attempt_folder(tmp_path, "2-01").mkdir()
    names = ["1-01", "1-02", "1-03", "2-01"]
    for aim, order in (("lower", "213"), ("higher", "312"), (2.5, "123")):
        value = {"variable": "rate", "entry": 2, "statistic": "mean size", "aim": aim}
        measure = parse_measure(value, task)
        assert measure is not None
        found = measured_attempts(measure, tmp_path, names)
        assert found == {"1-01": 2.0, "1-02": 0.5, "1-03": 5.0}
        assert list(found) == [f"1-0{number}" for number in order]
    assert measure_words(measure, task) == "mean size of rate[2] [rad/s], wanted at 2.5"
