"""Lost fitness by cause, against sums made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from eureka_agent.analysis.trajectories import losses, losses_text, rates
from eureka_agent.records import TaskDescription

# the description of tests/conftest.py: 500 steps of 0.02 s; a rate is held over 50 steps


def test_a_rate_is_a_mean_over_a_window() -> None:
    assert rates(np.array([0.0, 2.0, 4.0, 0.0]), 2) == pytest.approx([1.0, 3.0, 2.0])
    assert rates(np.array([3.0, 5.0]), 10) == pytest.approx([4.0]), (
        "of a shorter episode there is one"
    )


def test_the_parts_are_those_of_the_trace() -> None:
    # 100 steps of nothing, 200 at 0.02, then it falls; 0.02 for 500 steps would be 10
    trace = np.concatenate((np.zeros(100), np.full(200, 0.02)))
    lost = losses(trace, 0.02, 0.0, 500, "sum")
    # the first window of 50 with 80 % of the rate, 40 good steps, begins at step 90
    assert lost.arrival == 90
    assert lost.late == pytest.approx(90 * 0.02)
    assert lost.low_rate == pytest.approx(10 * 0.02)
    assert lost.early_end == pytest.approx(200 * 0.02)
    assert lost.late + lost.low_rate + lost.early_end == pytest.approx(10.0 - trace.sum())


def test_it_is_told_by_episode(description: TaskDescription) -> None:
    worst = np.concatenate((np.zeros(100), np.full(200, 0.02)))
    best = np.full(500, 0.02)
    assert losses_text({"worst": worst, "best": best}, description).split("\n") == [
        (
            "Where fitness is lost. The highest rate of these two episodes, held for 1 s, is 0.02 a"
            " step, or 1 a second (worst episode, from 2 to 3 s); held for all 500 steps it would"
            " be 10."
        ),
        (
            "- worst episode, 4: 1.8 before it comes to 80% of that rate, at 1.8 s; 4 by ending at"
            " 6 s; 0.2 by a lower rate after that"
        ),
        "- best episode, 10: 0 by a lower rate after that",
    ]


@pytest.mark.parametrize(
    ("reduction", "trace"),
    [("last", [1.0]), ("max", [1.0]), ("sum", [0.0] * 9), ("sum", [np.nan]), ("sum", [])],
)
def test_where_steps_do_not_add_up_nothing_is_said(
    description: TaskDescription, reduction: str, trace: list[float]
) -> None:
    told = description.model_copy(update={"fitness_reduction": reduction})
    assert losses_text({"worst": np.array(trace)}, told) == ""


def test_the_run_up_to_a_failure_is_no_rate(description: TaskDescription) -> None:
    """A fall at 8 s, after 2 s at four times the pace that lasts in the other episode: nobody can
    hold that."""
    worst = np.concatenate((np.full(300, 0.01), np.full(100, 0.08)))
    best = np.concatenate((np.full(250, 0.01), np.full(250, 0.02)))
    held = losses_text({"worst": worst, "best": best}, description).split("\n")
    assert "is 0.08 a step, or 4 a second (worst episode, from 6 to 7 s)" in held[0]
    told = losses_text({"worst": worst, "best": best}, description, failures=["worst"]).split("\n")
    assert (
        "is 0.02 a step, or 1 a second (best episode, from 5 to 6 s); held for all 500 steps it"
        " would be 10." in told[0]
    )
    # 0.01 for 300 and 0.08 for 100 steps are 11. The first window of 50 that has 0.016 on average
    # begins at 255, when 4.3 of its steps are at 0.08: 45 × 0.01 + 5 × 0.08 = 0.85 ≥ 0.8. Before it
    # 255 × 0.01 is missing, after it 45 × 0.01 less 100 × 0.06
    assert (
        told[1]
        == "- worst episode, 11: 2.55 before it comes to 80% of that rate, at 5.1 s; 2 by ending at"
        " 8 s; 5.55 gained by a higher rate after that, which is not held or ends in the failure"
    )
