"""The comparison of strategies turns searches into figures."""

from __future__ import annotations

from typing import Any

import pytest
import strategies


def searches(*fitness: float | None) -> dict[str, Any]:
    return {
        str(seed): {
            "fitness": value,
            "believed": 10.0 + seed,
            "env_steps": 1000 * (seed + 1),
            "tuned": seed,
        }
        for seed, value in enumerate(fitness)
    }


def test_arms_are_compared_seed_by_seed() -> None:
    found = strategies.summarize(
        {"greedy": searches(1.0, 5.0, 3.0), "tree": searches(2.0, 7.0, 6.0)}
    )
    assert found["arms"]["greedy"] == {
        "median": 3.0,
        "lowest": 1.0,
        "highest": 5.0,
        "believed": 11.0,
        "env_steps": 2000,
        "seeds": 3,
    }
    pair = found["pairs"]["tree - greedy"]  # 1, 2 and 3
    assert (pair["difference"], pair["median_difference"], pair["ahead"], pair["seeds"]) == (
        2.0,
        2.0,
        3,
        3,
    )
    assert pair["half_width"] == pytest.approx(4.30 / 3**0.5)


def test_a_seed_that_an_arm_has_no_fitness_for_is_left_out_of_its_pairs() -> None:
    found = strategies.summarize(
        {"greedy": searches(1.0, None, 3.0), "tree": searches(2.0, 7.0), "islands": searches(None)}
    )
    assert found["arms"]["greedy"]["seeds"] == 2
    assert set(found["pairs"]) == {"tree - greedy"}
    assert found["pairs"]["tree - greedy"]["seeds"] == 1
    assert "half_width" not in found["pairs"]["tree - greedy"]
