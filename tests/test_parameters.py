"""Distributions of parameters as a person writes them, and the errors that say what is wrong."""

from __future__ import annotations

from fractions import Fraction

import pytest

from eureka_agent.errors import EnvironmentLoadError
from eureka_agent.parameters import (
    ParameterError,
    check_distribution,
    distribution_text,
    parse_distribution,
)
from eureka_agent.task import Parameter

DECLARED = (
    Parameter("mass", "1", 1.0, 0.5, 2.0, "of the body"),
    Parameter("push", "N·s", 0.0, 0.0, 8.0, "of the body"),
)


def test_a_text_and_its_distribution_lead_to_each_other() -> None:
    expected = {"mass": (0.5, 2.0), "wind": (-1.5, -1.5), "push": (1e-3, 4.0)}
    text = "mass=0.5..2, wind=-1.5,push=1e-3..4"
    assert parse_distribution(text) == expected
    assert parse_distribution(distribution_text(expected)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "mass=",
        "mass=a..b",
        "=1",
        "mass=1..2..3",
        "mass=nan",
        "mass=inf",
        "mass=1,friction",
        "no_such.json",
    ],
)
def test_text_that_is_no_distribution(text: str) -> None:
    with pytest.raises(ParameterError) as caught:
        parse_distribution(text)
    assert "0.5..2" in caught.value.hint
    assert "envs NAME" in caught.value.hint


@pytest.mark.parametrize(
    ("distribution", "message"),
    [
        ({"mas": (1.0, 1.0)}, "no parameter 'mas' (given: mas=1); did you mean 'mass'?"),
        ({"mass": (0.4, 1.0)}, "'mass' was given 0.4..1, its safe range is 0.5..2"),
        ({"mass": (1.0, 2.1)}, "'mass' was given 1..2.1, its safe range is 0.5..2"),
        ({"mass": (1.5, 0.7)}, "given 1.5..0.7, expected the smaller value first"),
    ],
)
def test_an_error_says_what_was_given_and_what_is_allowed(
    distribution: dict[str, tuple[float, float]], message: str
) -> None:
    with pytest.raises(ParameterError) as caught:
        check_distribution(distribution, DECLARED, "hopper")
    assert message in caught.value.message
    assert "envs hopper" in caught.value.hint
    assert "\n" not in caught.value.message


def test_bounds_on_the_ends_of_the_range_are_allowed() -> None:
    check_distribution({"mass": (0.5, 2.0), "push": (8.0, 8.0)}, DECLARED)
    check_distribution({}, ())


@pytest.mark.parametrize(
    ("default", "low", "high"),
    [(3.0, 0.5, 2.0), (0.4, 0.5, 2.0), (1.0, 2.0, 0.5), (float("nan"), 0.0, 1.0), (1.0, 1.0, 1.0)],
)
def test_a_declaration_that_cannot_be(default: float, low: float, high: float) -> None:
    with pytest.raises(EnvironmentLoadError, match="'mass'"):
        Parameter("mass", "1", default, low, high, "of the body")


def test_a_fraction_becomes_a_number() -> None:
    parameter = Parameter("mass", "1", Fraction(3, 4), Fraction(1, 2), 2, "of the body")
    assert (parameter.default, parameter.low, parameter.high) == (0.75, 0.5, 2.0)
    assert {type(each) for each in (parameter.default, parameter.low, parameter.high)} == {float}


@pytest.mark.parametrize(
    ("high", "said"),
    [(1e300, "high of parameter 'mass' is 1e\\+300"), (10**400, "expected two finite numbers")],
)
def test_numbers_beyond_float32_are_refused(high: float, said: str) -> None:
    with pytest.raises(EnvironmentLoadError, match=said):
        Parameter("mass", "1", 1.0, 0.5, high, "of the body")
