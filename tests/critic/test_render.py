"""Findings as text, compared letter by letter."""

from __future__ import annotations

from eureka_agent.cli.critique import render_finding, render_verdict
from eureka_agent.records import Finding, Verdict

SOURCE = (
    "import torch\n\ndef compute_reward(\n\ttorso_velocty):\n    return torso_velocty[:, 0], {}\n"
)


def test_a_place_in_a_line_with_a_tab_has_its_caret_below() -> None:
    finding = Finding(
        code="C303",
        severity="error",
        message="unknown variable 'torso_velocty'",
        line=4,
        column=2,
        hint="did you mean 'torso_velocity'?",
    )
    assert render_finding(finding, SOURCE, "reward.py").plain == (
        "reward.py:4:2 C303 unknown variable 'torso_velocty': did you mean 'torso_velocity'?\n"
        "    \ttorso_velocty):\n"
        "    \t^"
    )


def test_a_warning_without_a_place_has_its_hint_on_a_line_of_its_own() -> None:
    finding = Finding(code="D316", severity="warning", message="no components", hint="return them")
    assert (
        render_finding(finding, SOURCE, "r.py").plain
        == "r.py D316 (warning) no components\n  hint: return them"
    )


def test_the_summary_counts() -> None:
    error = Finding(code="D302", severity="error", message="raises IndexError: [red]", line=99)
    verdict = Verdict(findings=(error, error), steps_run=("parse", "dry run"), seconds=0.26)
    assert (
        render_verdict(verdict, SOURCE, "r.py").plain.splitlines()[-1]
        == "rejected (2 errors; parse, dry run; 0.3 s)"
    )
    accepted = render_verdict(Verdict(steps_run=("parse",)), SOURCE, "r.py").plain
    assert accepted == "accepted (no findings; parse; 0.0 s)"
