"""Lineage of attempts: what is chosen, and which attempt stands below which."""

from __future__ import annotations

from collections.abc import Callable

from eureka_agent.records import Attempt, Operator, Stage
from eureka_agent.report.lineage import MOST_NODES, lineage


def test_attempts_stand_below_their_parents(attempt: Callable[..., Attempt]) -> None:
    both = {"operator": Operator.CROSSOVER, "parents": ("1-02", "1-01", "1-02")}
    rejected = attempt("1-03", Stage.REJECTED, reason="unknown variable")
    revised = attempt("1-03", Stage.TRAINED, 0.5).model_copy(
        update={"id": "1-03-r1", "revision": 1}
    )
    attempts = [
        attempt("1-01", Stage.TRAINED, 1.0),
        attempt("1-02", Stage.TRAINED, 2.0),
        rejected,
        revised,
        attempt("2-01", Stage.TRAINED, 3.0, operator=Operator.IMPROVE, parents=("1-02",)),
        attempt("2-02", Stage.TRAINED, 4.0, **both),
        attempt("3-01", Stage.FAILED, reason="NaN", parents=("2-02", "9-99")),
    ]
    text, left_out = lineage(attempts, "2-02", " m")
    assert left_out == 0
    assert text.split("\n") == [
        "1-01  fresh · 1.00 m",
        "1-02  fresh · 2.00 m",
        "├─ 2-01  improve · 3.00 m",
        "└─ 2-02  crossover · 4.00 m, also from 1-01   ← the best",
        "   └─ 3-01  fresh · failed: NaN",
        "1-03  fresh · rejected: C102 line 3: unknown variable",
        "└─ 1-03-r1  revision · 0.500 m",
    ]


def test_a_long_run_shows_the_best_with_all_its_ancestors(attempt: Callable[..., Attempt]) -> None:
    """The best of 1,000 attempts is the last of a line of 40, each worse than all others."""
    line = [f"{place}-01" for place in range(1, 41)]
    attempts = []
    for place in range(1, 126):
        for sample in range(1, 9):
            name = f"{place}-{sample:02}"
            fitness = 0.01 if name in line else 1.0 + place / 1000
            parents = (f"{place - 1}-01",) if name in line[1:] else ()
            attempts.append(attempt(name, Stage.TRAINED, fitness, parents=parents))
    text, left_out = lineage(attempts, "40-01")
    names = [row.strip("│├└─ ").split()[0] for row in text.split("\n")]
    assert (len(names), left_out) == (MOST_NODES, 1000 - MOST_NODES)
    assert set(line) <= set(names)
    # the others are the best by fitness: of 8 each in the last iterations, and the first 4 before
    last = [f"{place}-{sample:02}" for place in (123, 124, 125) for sample in range(1, 9)]
    assert [name for name in names if name not in line] == last[:4] + last[8:]


def test_a_circle_of_parents_is_told(attempt: Callable[..., Attempt]) -> None:
    """An archive that somebody changed may hold one."""
    attempts = [
        attempt("1-01", Stage.TRAINED, 1.0, parents=("2-01", "1-01")),
        attempt("2-01", Stage.TRAINED, 2.0, parents=("1-01",)),
    ]
    assert lineage(attempts, "2-01")[0].count("\n") == 1
    assert lineage([]) == ("", 0)
