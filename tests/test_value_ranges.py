"""Ranges in words have as many digits as they need, and columns that are alike go together."""

from __future__ import annotations

import pytest

from eureka_agent.value_ranges import column_ranges_text, mean_text, range_text, short_number


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ((-0.0998, 0.0997, 0.0), "-0.1 to 0.1"),
        ((1.24012, 1.25993, 1.24012), "1.24 to 1.26"),
        ((0.57, 0.57, 0.57), "0.57"),
        ((-1e-9, 0.0, 0.0), "0"),
        ((0.0, 334.02, 0.0), "0 to 334"),
        # a pole that hangs is at π or at -π, and never between
        ((-3.141, 3.139, 2.942), "±(2.94 to 3.14)"),
        ((-1.0, 1.0, 0.3), "-1 to 1"),
        ((-1e300, 1e300, 0.0), "-1e+300 to 1e+300"),
        ((-1.7e308, 1.7e308, 0.0), "-1.7e+308 to 1.7e+308"),
    ],
)
def test_a_range_has_two_digits_of_its_width(found: tuple[float, float, float], text: str) -> None:
    assert range_text(*found) == text


def test_columns_that_are_alike_go_together() -> None:
    zero, height, noise = (0.0, 0.0, 0.0), (0.57, 0.57, 0.57), (-0.1, 0.099, 0.0)
    assert column_ranges_text([zero, zero, height]) == "[0:2] 0; [2] 0.57"
    assert column_ranges_text([noise, (-0.098, 0.1, 0.0)]) == "-0.1 to 0.1"
    bent = (0.95, 1.15, 0.95)
    assert (
        column_ranges_text([noise, bent, noise, bent]) == "[0, 2] -0.1 to 0.1; [1, 3] 0.95 to 1.15"
    )


@pytest.mark.parametrize(
    ("mean", "deviation", "text"),
    [
        (0.02231, 0.0884, "0.022 ± 0.088"),
        (189.7, 83.8, "190 ± 84"),
        (0.0, 0.0, "0 ± 0"),
        (12.345, None, "12.3"),
        (-0.0004, 0.13, "0 ± 0.13"),
    ],
)
def test_a_mean_has_the_decimals_of_its_deviation(
    mean: float, deviation: float | None, text: str
) -> None:
    assert mean_text(mean, deviation) == text


def test_whole_numbers_keep_their_digits() -> None:
    assert [short_number(value) for value in (1000.0, 99.99999, 0.016, 2373.3, 1e9)] == [
        "1000",
        "100",
        "0.016",
        "2373",
        "1e+09",
    ]
