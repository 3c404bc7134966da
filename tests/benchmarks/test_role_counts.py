"""Roles counted in a stored run."""

from __future__ import annotations

from collections.abc import Callable

from _role_counts import requests_by_role, reviews, table

from eureka_agent.records import (
    Attempt,
    Cost,
    Diagnosis,
    DiagnosisFinding,
    Finding,
    Message,
    Stage,
    Verdict,
)

EXPLOIT = Finding(code="R702", severity="warning", message="it may stand still")
CONTRADICTION = Finding(code="R701", severity="error", message="the sign is wrong")
HACKED = Diagnosis(
    fitness=1.0,
    fitness_values=(),
    episode_length_values=(),
    components=(),
    findings=(DiagnosisFinding(code="reward-hacking", message="m", advice="a"),),
    text="",
)


def reviewed(*findings: Finding) -> Verdict:
    return Verdict(findings=findings, steps_run=("parse", "review"))


def asked(role: str, tokens: int | None = 100) -> Message:
    return Message(
        role=role,
        model="m",
        request="q",
        reply="r",
        cost=Cost(prompt_tokens=tokens, completion_tokens=10),
    )


def test_requests_are_counted_by_role() -> None:
    messages = [asked("designer"), asked("reviewer"), asked("designer", None)]
    assert requests_by_role(messages) == {"designer": (2, 120), "reviewer": (1, 110)}


def test_warnings_are_held_against_what_the_trainings_showed(
    make_attempt: Callable[..., Attempt],
) -> None:
    attempts = [
        make_attempt(
            0, 0, 1.0, verdict=reviewed(EXPLOIT), diagnosis=HACKED
        ),  # warned of, and so it was
        make_attempt(0, 1, 2.0, verdict=reviewed(EXPLOIT, EXPLOIT)),  # warned of twice in vain
        make_attempt(0, 2, stage=Stage.FAILED, verdict=reviewed(EXPLOIT)),
        make_attempt(0, 3, 2.0, verdict=reviewed()),
        make_attempt(0, 4, 2.0, verdict=reviewed(), diagnosis=HACKED),  # missed
        make_attempt(0, 5, stage=Stage.REJECTED, verdict=reviewed(CONTRADICTION)),
        make_attempt(
            0, 6, 2.0, verdict=Verdict(steps_run=("parse",)), diagnosis=HACKED
        ),  # not reviewed
    ]
    found = reviews(attempts)
    assert (found.made, found.contradictions) == (6, 1)
    assert (found.warned, found.warned_cheated) == (3, 2)
    assert (found.calm, found.calm_cheated) == (2, 1)
    assert "3 warned of: 2 came true; 2 not warned of: 1 cheated" in table(
        [asked("reviewer")], attempts
    )
