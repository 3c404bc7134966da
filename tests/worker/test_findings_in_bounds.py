"""What a worker says of a reward and of a task is bounded and printable."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from eureka_agent.boundary.bounds import (
    LONGEST_FINDING,
    LONGEST_HINT,
    MOST_FINDINGS,
    MOST_SHOWN_FINDINGS,
)
from eureka_agent.boundary.events import EVENT, DryRunDone, TransitionsScored

MEMORY = "".join(f"{value!r}, " for value in range(10_000))
"""Text as long as what somebody would like to carry out."""


def said(*findings: dict[str, Any]) -> DryRunDone:
    event = {"type": "dry_run_done", "job": "a", "seconds": 0.1, "findings": findings}
    found = EVENT.validate_json(json.dumps(event))
    assert isinstance(found, DryRunDone)
    return found


def finding(**values: Any) -> dict[str, Any]:
    return {"code": "D302", "severity": "error", "message": "raises", "hint": "", **values}


def test_a_finding_is_as_short_as_an_exceptions_message() -> None:
    (found,) = said(finding(message=MEMORY, hint=MEMORY)).findings
    assert (len(found.message), len(found.hint)) == (LONGEST_FINDING, LONGEST_HINT)
    assert found.message.startswith("0, 1, 2, ")
    (exact,) = said(finding(message="x" * LONGEST_FINDING, hint="y" * LONGEST_HINT)).findings
    assert (exact.message, exact.hint) == ("x" * LONGEST_FINDING, "y" * LONGEST_HINT)


def test_a_finding_is_one_printable_line() -> None:
    (found,) = said(finding(message="a\n# b\r\n\tc \x1b[2J\u202e\x00", hint="\u2028d\x85")).findings
    assert (found.message, found.hint) == (r"a # b c \x1b[2J\u202e\x00", "d")


def test_all_findings_together_are_some_kilobytes_and_errors_come_first() -> None:
    warnings = [finding(code="D314", severity="warning", message=MEMORY, hint=MEMORY)] * (
        MOST_FINDINGS - 1
    )
    found = said(*warnings, finding(code="D306", message="the total is nan")).findings
    assert len(found) == MOST_SHOWN_FINDINGS
    assert (found[0].code, found[0].severity) == ("D306", "error")
    assert sum(len(each.message) + len(each.hint) for each in found) < 8000
    few = said(warnings[0], finding()).findings
    assert [each.code for each in few] == ["D314", "D302"]  # in the order in which they were found


@pytest.mark.parametrize("code", ["A201", "D3022", "", "d302", "X" * 9000])
def test_a_code_of_another_step_is_no_finding_of_a_dry_run(code: str) -> None:
    with pytest.raises(ValidationError) as caught:
        said(finding(code=code))
    assert "X" * 50 not in str(caught.value.errors()[0]["msg"])


def test_why_there_are_no_scores_is_said_shortly() -> None:
    found = EVENT.validate_json(
        json.dumps({"type": "scored", "job": "a", "reason": f"raises\n{MEMORY}"})
    )
    assert isinstance(found, TransitionsScored)
    assert len(found.reason) == LONGEST_FINDING
    assert "\n" not in found.reason


def event(**measurements: object) -> str:
    return json.dumps(
        {"type": "measured", "job": "m", "measurements": {"resets": 8, **measurements}}
    )


@pytest.mark.parametrize(
    "measurements",
    [
        {"starts": {"x": [[0.0, 1.0, 0.0]] * 13}},
        {"starts": {f"x{index}": [] for index in range(1001)}},
        {"starts": {"x": [[0.0, float("nan"), 0.0]]}},
        {"masses_and_sizes": ["1 kg " * 100]},
        {"zero_actions": {"mean": float("inf"), "std": 0.0, "length": 1.0, "episodes": 4}},
        {"surprise": 1},
    ],
)
def test_what_is_not_breaks_the_protocol(measurements: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        EVENT.validate_json(event(**measurements))
