"""Numbers and times as people read them."""

from __future__ import annotations

import math

import pytest

from eureka_agent import wording


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (math.nan, "–"),
        (-math.inf, "-inf"),
        (0.0, "0"),
        (0.00012345, "0.000123"),
        (0.25, "0.250"),
        (-12.345, "-12.35"),
        (99.996, "100.0"),
        (999.96, "1,000"),
        (1234567.0, "1,234,567"),
        (2.5e9, "2.500e+09"),
    ],
)
def test_number(value: float | None, text: str) -> None:
    assert wording.number(value) == text


@pytest.mark.parametrize(
    ("mean", "deviation", "text"),
    [
        (2.5, 0.5, "2.50 ± 0.50"),
        (1234.0, 56.7, "1,234 ± 57"),
        (500.0, 0.0, "500.0 ± 0"),
        (500.0, 0.01, "500.0 ± 0.01"),
        (1.0, None, "1.00"),
        (None, None, "–"),
    ],
)
def test_plus_minus(mean: float | None, deviation: float | None, text: str) -> None:
    assert wording.plus_minus(mean, deviation) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1.00k"),
        (20_480, "20.5k"),
        (999_960, "1.00M"),
        (3.1e9, "3.10G"),
    ],
)
def test_count(value: float, text: str) -> None:
    assert wording.count(value) == text


@pytest.mark.parametrize(("seconds", "text"), [(-1, "0:00"), (65, "1:05"), (3723, "1:02:03")])
def test_clock_time(seconds: float, text: str) -> None:
    assert wording.clock_time(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.42, "0.4 s"), (9.96, "10 s"), (59.4, "59 s"), (185, "3 min 5 s"), (7800, "2 h 10 min")],
)
def test_duration(seconds: float, text: str) -> None:
    assert wording.duration(seconds) == text


def test_a_long_sentence_is_shortened_as_a_title_alone() -> None:
    assert wording.title("hop\nhigh " + "x" * 191) == "hop\nhigh " + "x" * 191
    assert wording.title("hop\nhigh " + "x" * 192) == "hop high " + "x" * 190 + "…"
