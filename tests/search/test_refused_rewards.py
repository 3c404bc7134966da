"""Designers are told of the rewards that the trajectory gate refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from planned_attempts import planned

from eureka_agent.archive.run_folder import Run
from eureka_agent.journal.entries import AttemptImported
from eureka_agent.records import Attempt, Finding, Operator, Stage, Verdict
from eureka_agent.search.briefing import FAILURES_SHOWN, Briefing
from eureka_agent.search.strategies.greedy import Greedy


def refused(sample: int, source: str, code: str, severity: str = "error") -> Attempt:
    finding = Finding.model_validate({"code": code, "severity": severity, "message": "m"})
    attempt = planned(0, sample, None, stage=Stage.REJECTED, source=source)
    return attempt.model_copy(update={"verdict": Verdict(findings=(finding,))})


def test_every_reward_that_the_gate_refused_in_the_run_is_named(
    make_run: Callable[..., Run],
) -> None:
    # more than the failures that a designer is reminded of, the oldest first, and no other
    # rejection among them
    misleading = [
        refused(sample, f"reward {sample}", "G601") for sample in range(FAILURES_SHOWN + 2)
    ]
    others = [refused(20, "unsafe", "S201"), refused(21, "let pass", "G601", "warning")]
    history = [planned(0, 30, 5.0), *misleading, *others]
    run = make_run()
    for attempt in history:
        run.archive.append(AttemptImported(record=attempt))
    briefing = Briefing(run, Greedy(), run.archive.append)
    asked = [asyncio.run(briefing.request(plan)) for plan in briefing.plan(1, range(8))]
    assert {request.misleading for request in asked} == {
        tuple(f"reward {place}" for place in range(FAILURES_SHOWN + 2))
    }
    assert Operator.DIFFERENT in {request.operator for request in asked}
