"""The numbers of a reward that may be changed, and the same reward with others."""

from __future__ import annotations

import math

import pytest

from eureka_agent.designer.source_tools import tunable_constants, with_constants
from eureka_agent.errors import EurekaError

BODY = "\n\ndef compute_reward(x, y):\n    return {total}, {{'all': {total}}}\n"


def reward(constants: str, total: str) -> str:
    """A reward of two vectors with these lines above it."""
    return constants + BODY.format(total=total)


def names(constants: str, total: str) -> list[str]:
    return list(tunable_constants(reward(constants, total)))


@pytest.mark.parametrize(
    ("literal", "value"), [("- 0.5", -0.5), ("-(\n    0.5\n)", -0.5), ("1e-3", 0.001)]
)
@pytest.mark.parametrize("annotation", ["", ": float"])
def test_a_named_number_may_be_changed(literal: str, value: float, annotation: str) -> None:
    source = reward(f"WEIGHT{annotation} = {literal}  # é\nOTHER = 2.5", "WEIGHT * x + OTHER * y")
    assert tunable_constants(source) == {"WEIGHT": value, "OTHER": 2.5}
    changed = with_constants(source, {"WEIGHT": 0.25})
    assert tunable_constants(changed) == {"WEIGHT": 0.25, "OTHER": 2.5}
    assert changed.count("0.25  # é\n") + changed.count("0.25)  # é\n") == 1


@pytest.mark.parametrize(
    "line",
    [
        "W = 0.0",
        "W = 1e999",
        "W = True",
        "W = 1.0 / 3.0",
        "W = V = 0.5",
        "W, V = 0.5, 1.5",
        "W = 0.5\nW *= 2.0",
        "W = 0.5\nfrom math import pi as W",
        "W = 0.5\ndef helper(W):\n    return W",
    ],
)
def test_what_may_not_be_changed(line: str) -> None:
    assert names(line, "W * x + y") == []


def test_a_number_that_nothing_reads_is_left_out() -> None:
    assert names("W = 0.5\nV = 2.5", "W * x + y") == ["W"]
    assert names("W = 0.5\nDOUBLE = 2.0 * W", "DOUBLE * x + y") == ["W"]
    assert names("W = 0.5", "sum(W * v for v in (x, y))") == ["W"]


@pytest.mark.parametrize("name", ["PI", "GRAVITY", "CONTROL_DT"])
def test_facts_stay(name: str) -> None:
    others = f"{name} = 0.5\nPIVOT_WEIGHT = 0.3\nADT = 2.5"
    assert names(others, f"{name} * x + PIVOT_WEIGHT * ADT * y") == ["PIVOT_WEIGHT", "ADT"]


@pytest.mark.parametrize("source", ["", "def (", "W = 0.5\x00", "W = '\ud800'"])
def test_what_is_no_python_has_none(source: str) -> None:
    assert tunable_constants(source) == {}
    assert with_constants(source, {}) == source


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_replacing_leaves_every_other_byte(line_end: str) -> None:
    lines = [
        '"""Größe · 大きさ \u2028 no line end for Python."""',
        "text = 'ü 🦾 \x0b \x1c'; WEIGHT = 0.5; OTHER = -1e-3 # 0.5 · -1e-3",
        "THIRD: float=(7.25)  ;  FOURTH=3.0",
        "def compute_reward(x, y):",
        "    # WEIGHT = 0.5",
        "    return WEIGHT * x + OTHER * y * THIRD - FOURTH * x, {'WEIGHT = 0.5': x}",
        "",
    ]
    values = {"FOURTH": 12345.678, "WEIGHT": 1 / 3, "OTHER": -2e-7, "THIRD": 7.25}
    changed = with_constants(line_end.join(lines), values)
    lines[1] = "text = 'ü 🦾 \x0b \x1c'; WEIGHT = 0.3333; OTHER = -2e-07 # 0.5 · -1e-3"
    lines[2] = "THIRD: float=(7.25)  ;  FOURTH=12350.0"
    assert changed == line_end.join(lines)


@pytest.mark.parametrize("value", [0.0, math.inf, 1.79769e308])
def test_a_value_that_no_parameter_can_have_is_refused(value: float) -> None:
    with pytest.raises(EurekaError, match=r"(?s)'WEIGHT'.*finite number other than 0"):
        with_constants(reward("WEIGHT = 0.5", "WEIGHT * x + y"), {"WEIGHT": value})


def test_an_unknown_constant_is_refused() -> None:
    with pytest.raises(EurekaError, match=r"(?s)'DT'.*there are WEIGHT"):
        with_constants(reward("WEIGHT = 0.5\nDT = 0.02", "WEIGHT * x / DT + y"), {"DT": 0.5})
