"""A worker's measurements go into prompts: only so much of them, and only numbers."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from eureka_agent.protocol.events import EVENT, TaskMeasured


def event(**measurements: object) -> str:
    return json.dumps(
        {"type": "measured", "job": "m", "measurements": {"resets": 8, **measurements}}
    )


def test_what_is_in_bounds_is_taken() -> None:
    found = EVENT.validate_json(
        event(starts={"x": [[0.0, 1.0, 0.0]] * 12}, masses_and_sizes=["1 kg"])
    )
    assert isinstance(found, TaskMeasured)
    assert found.measurements.starts["x"][11] == (0.0, 1.0, 0.0)


@pytest.mark.parametrize(
    "measurements",
    [
        {"starts": {"x": [[0.0, 1.0, 0.0]] * 13}},
        {"starts": {f"x{index}": [] for index in range(1001)}},
        {"starts": {"x": [[0.0, float("nan"), 0.0]]}},
        {"masses_and_sizes": ["1 kg " * 100]},
        {"termination_conditions": {"fell": "x" * 401}},
        {"zero_actions": {"mean": float("inf"), "std": 0.0, "length": 1.0, "episodes": 4}},
        {"surprise": 1},
    ],
)
def test_what_is_not_breaks_the_protocol(measurements: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        EVENT.validate_json(event(**measurements))
