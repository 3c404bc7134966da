"""Facts about an attempt's parents and children."""

from __future__ import annotations

import pytest
from planned_attempts import planned

from eureka_agent.records import Attempt, Operator, Stage
from eureka_agent.search.lineage import changes, seed_spread


def reward(gain: float) -> str:
    return (
        f"GAIN = {gain}\n\ndef compute_reward(position):\n    pull = GAIN * position\n    return"
        " pull, {'pull': pull}\n"
    )


def test_a_child_is_told_with_its_change_and_both_fitnesses() -> None:
    first = planned(1, 0, 24.1, source=reward(1.0))
    better = planned(2, 0, 26.0, Operator.IMPROVE, ["1-0"], source=reward(2.0))
    broken = planned(2, 2, None, Operator.IMPROVE, ["1-0"], source=reward(8.0))
    refused = planned(2, 3, None, Operator.IMPROVE, ["1-0"], stage=Stage.REJECTED)
    crossed = planned(2, 4, 30.0, Operator.CROSSOVER, ["9-9", "1-0"])
    history = [first, better, broken, refused, crossed]
    assert changes(first, history) == (
        "2-2, made from 1-0: GAIN 1 → 8: fitness 24.1 → its training failed: ",
        "2-0, made from 1-0: GAIN 1 → 2: fitness 24.1 → 26 (one training against one training)",
    )
    assert changes(better, history) == (
        (
            "2-0 itself, made from 1-0: GAIN 1 → 2: fitness 24.1 → 26 (one training against one"
            " training)"
        ),
    )


def test_the_spread_between_seeds_is_pooled() -> None:
    once = planned(1, 0, 7.0)
    assert seed_spread([once]) is None

    def repeated(fitness: float, *others: float) -> Attempt:
        attempt = planned(1, 1, fitness)
        repeats = [
            {"iteration": 0, "seed": 1, "outcome": planned(1, 2, other).outcome} for other in others
        ]
        return Attempt.model_validate(attempt.model_dump() | {"repeats": repeats})

    # squares 2 · 1 about 3 with one degree of freedom, and 2 · 4 about 4 with two (2, 4, 6): (2 +
    # 8) / 3
    assert seed_spread([once, repeated(2.0, 4.0), repeated(2.0, 4.0, 6.0)]) == pytest.approx(
        (10 / 3) ** 0.5
    )
