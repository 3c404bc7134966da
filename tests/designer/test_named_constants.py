"""The numbers of a reward that are its parameters, and the same reward with others."""

from __future__ import annotations

import math
import random

import pytest

from eureka_agent.designer.source_tools import as_written, family, tunable_constants, with_constants

BODY = "\n\ndef compute_reward(x, y):\n    return {total}, {{'all': {total}}}\n"


def reward(constants: str, total: str) -> str:
    """A reward of two vectors with these lines above it."""
    return constants + BODY.format(total=total)


def names(constants: str, total: str) -> list[str]:
    return list(tunable_constants(reward(constants, total)))


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("0.5", 0.5),
        ("-0.5", -0.5),
        ("+0.5", 0.5),
        ("- 0.5", -0.5),
        ("(0.5)", 0.5),
        ("-(\n    0.5\n)", -0.5),
        ("1e-3", 0.001),
        ("1_000.5", 1000.5),
        (".5", 0.5),
        ("\\\n  0.5", 0.5),
    ],
)
@pytest.mark.parametrize("annotation", ["", ": float", ": Final", ": Final[float]"])
def test_a_named_number_is_a_parameter(literal: str, value: float, annotation: str) -> None:
    source = reward(f"WEIGHT{annotation} = {literal}  # é\nOTHER = 2.5", "WEIGHT * x + OTHER * y")
    assert tunable_constants(source) == {"WEIGHT": value, "OTHER": 2.5}
    changed = with_constants(source, {"WEIGHT": 0.25})
    assert tunable_constants(changed) == {"WEIGHT": 0.25, "OTHER": 2.5}
    assert changed.count("0.25  # é\nOTHER = 2.5") + changed.count("0.25)  # é\nOTHER = 2.5") == 1


@pytest.mark.parametrize(
    "line",
    [
        "W = 0.0",
        "W = -0.0",
        "W = 0",
        "W = 1e999",
        "W = -1e999",
        f"W = 1{'0' * 400}",
        "W = True",
        "W = '0.5'",
        "W = 2j",
        "W = 1.0 / 3.0",
        "W = V = 0.5",
        "W, V = 0.5, 1.5",
        "W = --0.5",
        "W = not 0.5",
        "if True:\n    W = 0.5",
        "W = 0.5\nW = 0.7",
        "W = 0.5\nW *= 2.0",
        "W = 0.5\ndel W\nW = 1.5",
        "W = 0.5\nfor W in (1.0, 2.0): pass",
        "W = 0.5\nfrom math import pi as W",
        "W = 0.5\ndef W(): pass",
        "W = 0.5\nvalues = [(W := 3.0)]",
        "W = 0.5\ndef helper():\n    global W\n    W = 2.0",
        "W = 0.5\nwith torch.no_grad() as W: pass",
        "W = 0.5\ntry: pass\nexcept ValueError as W: pass",
        "W = 0.5\nmatch 3:\n    case W: pass",
    ],
)
def test_what_is_no_parameter(line: str) -> None:
    assert names(line, "W * x + y") == []


def test_a_number_that_nothing_reads_is_no_parameter() -> None:
    assert names("W = 0.5\nV = 2.5", "W * x + y") == ["W"]
    assert names("W = 0.5", "x + y") == []
    assert names("W = 0.5\ndef helper(W):\n    return W * 2.0", "helper(x)") == []
    assert names("W = 0.5\ndef helper(x):\n    W = 2.0\n    return W * x", "helper(x) + y") == []
    assert names("W = 0.5\nhelper = lambda W: 2.0 * W", "helper(x) + y") == []
    assert names("W = 0.5\nvalues = [W for W in (1.0, 2.0)]", "x + y") == []
    # shadowed in one function, read in another
    assert names("W = 0.5\ndef helper(W):\n    return W * 2.0", "helper(x) + W * y") == ["W"]
    # read where a default is made, in a nested function, in a lambda, in a comprehension, above
    # another constant
    assert names("W = 0.5\ndef helper(x, w=W):\n    return w * x", "helper(x) + y") == ["W"]
    assert names(
        "W = 0.5\ndef outer(x):\n    def inner(): return W * x\n    return inner()", "outer(x) + y"
    ) == ["W"]
    assert names("W = 0.5", "(lambda v: W * v)(x) + y") == ["W"]
    assert names("W = 0.5", "sum(W * v for v in (x, y))") == ["W"]
    assert names("W = 0.5\nDOUBLE = 2.0 * W", "DOUBLE * x + y") == ["W"]


@pytest.mark.parametrize(
    "name",
    [
        "PI",
        "HALF_PI",
        "GRAVITY",
        "CONTROL_DT",
        "DT",
        "EPS",
        "EPSILON",
        "DISTANCE_EPS",
        "gravity",
        "TIMESTEP",
    ],
)
def test_facts_are_no_parameters(name: str) -> None:
    assert names(
        f"{name} = 0.5\nPIVOT_WEIGHT = 0.3\nADT = 2.5\nTARGET_SPEED = 1.5",
        f"{name} * x + PIVOT_WEIGHT * ADT * y - TARGET_SPEED",
    ) == ["PIVOT_WEIGHT", "ADT", "TARGET_SPEED"]


@pytest.mark.parametrize("total", ["N * x + y", "x[:, N] + y", "x.view(-1, N)[:, 0]", "x**N"])
def test_a_whole_number_is_no_parameter(total: str) -> None:
    """It may be a count, and a float in its place would then fail."""
    assert names("N = 2", total) == []
    assert names("N = 2.5", total) == ["N"]


@pytest.mark.parametrize(
    "source", ["", "def (", "W = 0.5\x00", "W = '\ud800'", "x = " + "(" * 500 + ")" * 500]
)
def test_what_is_no_python_has_no_parameters(source: str) -> None:
    assert tunable_constants(source) == {}
    assert with_constants(source, {}) == source
    assert family(source) == family(source)


# ── replacing ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
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
    source = line_end.join(lines)
    assert tunable_constants(source) == {
        "WEIGHT": 0.5,
        "OTHER": -0.001,
        "THIRD": 7.25,
        "FOURTH": 3.0,
    }
    changed = with_constants(
        source, {"FOURTH": 12345.678, "WEIGHT": 1 / 3, "OTHER": -2e-7, "THIRD": 1e6}
    )
    lines[1] = "text = 'ü 🦾 \x0b \x1c'; WEIGHT = 0.3333; OTHER = -2e-07 # 0.5 · -1e-3"
    lines[2] = "THIRD: float=(1000000.0)  ;  FOURTH=12350.0"
    assert changed == line_end.join(lines)


def test_a_value_that_stays_keeps_its_digits() -> None:
    source = reward("WEIGHT = 0.123456789\nOTHER = 1e-3", "WEIGHT * x + OTHER * y")
    assert with_constants(source, tunable_constants(source)) == source
    assert "WEIGHT = 0.123456789\nOTHER = 0.002\n" in with_constants(
        source, {"WEIGHT": 0.123456789, "OTHER": 0.0020000001}
    )


@pytest.mark.parametrize("value", [0.0, math.inf, math.nan, 1.79769e308])
def test_a_value_that_no_parameter_can_have_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match=r"'WEIGHT'.*finite number other than 0"):
        with_constants(reward("WEIGHT = 0.5", "WEIGHT * x + y"), {"WEIGHT": value})


def test_an_unknown_parameter_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'DT'.*\['WEIGHT'\]"):
        with_constants(reward("WEIGHT = 0.5\nDT = 0.02", "WEIGHT * x / DT + y"), {"DT": 0.5})


def test_random_values_are_what_the_source_then_says() -> None:
    source = reward(
        "A = 0.5\nB: float = -2.0\nC = (\n    -7e3  # seven thousand\n)",
        "A * x + B * y + torch.exp(x / C)",
    )
    generator = random.Random(0)
    for _ in range(200):
        values = {
            name: value * math.exp(generator.gauss(0.0, 3.0))
            for name, value in tunable_constants(source).items()
        }
        changed = with_constants(source, values)
        space: dict[str, float] = {}
        exec(changed, space)  # the definitions alone
        for name, value in values.items():
            assert space[name] == as_written(value) == pytest.approx(value, rel=5.001e-4)
            assert isinstance(space[name], float)
        assert family(changed) == family(source)
        assert (
            with_constants(changed, tunable_constants(source)).split("def")[1]
            == source.split("def")[1]
        )


# ── families ──────────────────────────────────────────────────────────────────────────────────────

WALKER = reward(
    "SPEED_WEIGHT = 2.0\nEFFORT: float = -0.05\nDT = 0.02\nN = 3",
    "SPEED_WEIGHT * x / DT + EFFORT * y[:, N]",
)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("2.0", "7.5"),
        ("2.0", "(7.5)  # faster"),
        ("2.0", "+1.0"),
        (": float = -0.05", " = -1e-3"),
        ("return SPEED", "return  SPEED"),
        ("\n\ndef", "\n# remark\ndef"),
    ],
)
def test_the_same_form_with_other_sizes(before: str, after: str) -> None:
    assert before in WALKER
    assert family(WALKER.replace(before, after)) == family(WALKER)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("DT = 0.02", "DT = 0.05"),
        ("N = 3", "N = 2"),
        ("2.0\n", "2\n"),
        ("-0.05", "0.05"),
        ("EFFORT * y", "EFFORT * y * 2.0"),
        ("'all'", "'everything'"),
        ("2.0\n", "0.0\n"),
        ("SPEED_WEIGHT", "SPEED_FACTOR"),
    ],
)
def test_another_form(before: str, after: str) -> None:
    assert before in WALKER
    assert family(WALKER.replace(before, after)) != family(WALKER)
