"""An environment's constants, as designers and people see them."""

from __future__ import annotations

import io

from rich.console import Console

from eureka_agent.llm.prompts import task_text
from eureka_agent.records import ConstantSpec, TaskDescription
from eureka_agent.report.environment import render_environment
from eureka_agent.simulation.loading import describe, load_environment

CONSTANTS = (
    ConstantSpec(name="dt", value=0.02, unit="s", doc="time step"),
    ConstantSpec(name="gain", value=3.0),
)


def described() -> TaskDescription:
    return describe(load_environment("cartpole"))


def test_a_designer_is_told_of_constants_where_there_are_any() -> None:
    plain = task_text(described(), "balance")
    told = task_text(described().model_copy(update={"constants": CONSTANTS}), "balance")
    assert "dt: float  # 0.02 s. time step\ngain: float  # 3\n```\n" in told
    # nothing else changes: a recorded conversation is found by its text
    lines = iter(told.splitlines())
    assert all(line in lines for line in plain.splitlines())
    assert "float" not in plain


def test_a_person_sees_them_below_the_variables() -> None:
    output = io.StringIO()
    description = described().model_copy(update={"constants": CONSTANTS})
    Console(file=output, width=100).print(render_environment(description, ("balance",)))
    lines = [line.split() for line in output.getvalue().splitlines()]
    assert ["dt", "constant", "0.02", "s"] in lines
    assert ["time", "step"] in lines
    assert ["gain", "constant", "3"] in lines
