"""An environment's parameters, as people and programs see them."""

from __future__ import annotations

import io

from rich.console import Console

from eureka_agent.report.environment import render_environment
from eureka_agent.simulation.loading import describe, load_environment


def test_parameters_are_described_and_shown_with_their_safe_ranges() -> None:
    description = describe(load_environment("quadcopter"))
    wind = next(each for each in description.parameters if each.name == "wind_x")
    assert (wind.unit, wind.default, wind.low, wind.high) == ("N", 0.0, -1.0, 1.0)
    output = io.StringIO()
    Console(file=output, width=100).print(render_environment(description, ("hover",)))
    lines = [line.split() for line in output.getvalue().splitlines()]
    assert ["wind_x", "-1", "…", "1", "N", "default", "0"] in lines
    assert ["mass", "0.7", "…", "1.4", "default", "1"] in lines


def test_without_parameters_nothing_is_said_of_them() -> None:
    description = describe(load_environment("humanoid"))
    output = io.StringIO()
    Console(file=output, width=100).print(render_environment(description, ()))
    assert description.parameters == ()
    assert "Parameters" not in output.getvalue()
