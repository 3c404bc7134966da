"""Attempts whose training did not come to its end, and how the episodes of others ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from eureka_agent.attempt_words import early_ends
from eureka_agent.records import Attempt, RungScore, Stage
from eureka_agent.report.markdown import markdown
from eureka_agent.report.run_report import RunReport

REASON = "fitness 7.89, clearly behind the median of 14.05"


@pytest.fixture
def stopped(attempt: Callable[..., Attempt]) -> Attempt:
    """An attempt with a training of 1000 env steps, scored after 400 and 704. Its first finding is
    not why it was stopped."""
    found = attempt("1-04", Stage.FAILED, 9.0, reason=REASON, finding="height is dead")
    assert found.outcome is not None
    return found.model_copy(
        update={
            "outcome": found.outcome.model_copy(update={"fitness": None}),
            "rungs": (
                RungScore(env_steps=400, fitness=5.0),
                RungScore(env_steps=704, fitness=7.893),
            ),
        }
    )


@pytest.fixture
def earlier(report: RunReport, stopped: Attempt) -> RunReport:
    """Iteration 1 has one trained, one rejected, one failed and one stopped attempt."""
    return replace(report, attempts=(*report.attempts[:3], stopped, *report.attempts[3:]))


def test_the_report_shows_the_score_at_the_rung_and_why_it_ended(earlier: RunReport) -> None:
    text = markdown(earlier)
    assert f"| 1-04 | fresh | failed | 7.89 at 70 % |  | {REASON} |" in text
    assert "| 1-03 | fresh | failed | – |  | the reward \\| turned NaN |" in text
    assert "is the score after that part of a training" in text
    assert "after that part" not in markdown(replace(earlier, attempts=earlier.attempts[4:]))


def test_how_the_winners_episodes_ended(report: RunReport) -> None:
    assert report.best is not None
    assert report.best.outcome is not None
    assert early_ends(report.best.outcome) == ""  # of an archive that does not have it
    known = report.best.outcome.model_copy(
        update={
            "fitness_std": 3.25,
            "success_rate": 0.84375,
            "evaluation_episodes": 32,
            "ended_by": {"time_out": 20, "fell": 3, "tipped_over": 9},
        }
    )
    text = markdown(replace(report, best=report.best.model_copy(update={"outcome": known})))
    assert (
        "The policy of its training, acting without noise in 32 episodes: fitness 2.50 ± 3.25, "
        "12 of 32 ended early (tipped_over 9, fell 3), 84% solved the task." in text
    )
    assert (
        early_ends(known.model_copy(update={"ended_by": {"time_out": 32}}))
        == "none of 32 ended early"
    )
