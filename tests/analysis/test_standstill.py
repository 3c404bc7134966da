"""A worst episode that stands still, goes round in a circle, or only seems to."""

from __future__ import annotations

import numpy as np
import pytest

from eureka_agent.analysis.standstill import standing_still
from eureka_agent.records import TaskDescription, VariableSpec

# the description of tests/conftest.py: 500 steps of 0.02 s
WALKED, STOOD = 200, 300


@pytest.fixture
def seen(description: TaskDescription) -> TaskDescription:
    variables = tuple(
        VariableSpec(name=name, shape=shape, unit="m", frame="world", doc="d")
        for name, shape in {"place": (2,), "facing": (), "goal": (2,), "food": ()}.items()
    )
    return description.model_copy(update={"variables": variables})


def walk(steps: int) -> np.ndarray:
    return np.stack((np.linspace(0.0, 4.0, steps), np.sin(np.linspace(0.0, 9.0, steps))), axis=1)


def episode(place: np.ndarray, fitness: np.ndarray) -> dict[str, np.ndarray]:
    steps = len(place)
    facing = place[:, 0] * 0.3
    goal = np.tile([[5.0, 1.0]], (steps, 1))
    food = np.linspace(9.0, 3.0, steps)
    return {"place": place, "facing": facing, "goal": goal, "food": food, "fitness": fitness}


def best() -> dict[str, np.ndarray]:
    return episode(walk(500), np.full(500, 0.02))


def gains_at_first() -> np.ndarray:
    return np.concatenate((np.full(WALKED, 0.02), np.zeros(STOOD)))


def test_waiting_to_the_end_is_found_with_what_changes_meanwhile(seen: TaskDescription) -> None:
    place = np.concatenate((walk(WALKED), np.repeat(walk(WALKED)[-1:], STOOD, axis=0)))
    # of place's two numbers, facing and food, only food changes, a quarter: one too many
    worst = episode(place, gains_at_first())
    assert standing_still({"worst": worst, "best": best()}, seen) == []
    more = tuple(seen.variables) + tuple(
        seen.variables[1].model_copy(update={"name": name}) for name in ("left", "right")
    )
    seen = seen.model_copy(update={"variables": more})
    both = {"worst": worst, "best": best()}
    for each in both.values():
        each |= {"left": each["facing"], "right": each["facing"]}
    (found,) = standing_still(both, seen)
    assert found.code == "standstill"
    assert found.value == pytest.approx((STOOD + 1) / 500)
    assert found.message == (
        "In the worst episode, without exploration noise, nothing happens from 3.98 s to its end"
        " at 10 s, apart from food, and no fitness is gained."
    )


def test_a_circle_is_found(seen: TaskDescription) -> None:
    seen = seen.model_copy(update={"variables": seen.variables[:3]})  # without food
    circle = np.tile([[4.0, 0.4], [4.0, 0.6], [3.8, 0.6]], (STOOD // 3, 1))
    worst = episode(np.concatenate((walk(WALKED), circle)), gains_at_first())
    (found,) = standing_still({"worst": worst, "best": best()}, seen)
    assert "nothing but a circle of 3 steps happens from 4 s to its end" in found.message


@pytest.mark.parametrize("why", ["gains", "drifts", "moves", "fell", "same", "cost"])
def test_what_is_no_standstill(seen: TaskDescription, why: str) -> None:
    seen = seen.model_copy(update={"variables": seen.variables[:3]})
    stood = np.repeat(walk(WALKED)[-1:], STOOD, axis=0)
    worst = episode(np.concatenate((walk(WALKED), stood)), gains_at_first())
    if why == "gains":  # it holds what it came for
        worst["fitness"][:] = 0.02
    elif why == "drifts":  # by half of its way, at a two-thousandth a step
        worst["place"][WALKED:] -= np.linspace(0.0, 2.0, STOOD)[:, None]
        worst["facing"][WALKED:] -= np.linspace(0.0, 0.6, STOOD)
    elif why == "moves":
        worst["place"][WALKED:] += np.random.default_rng(0).normal(size=(STOOD, 2))
        worst["facing"][WALKED:] += np.random.default_rng(1).normal(size=STOOD)
    elif why == "fell":
        worst["terminated"] = np.append(np.zeros(499), 1.0)
    elif why == "cost":  # minus a distance, which is small where it waits
        worst["fitness"] = np.append(np.linspace(-2.0, -0.001, WALKED), np.full(STOOD, -0.001))
    pair = {"worst": worst, "best": worst if why == "same" else best()}
    if why == "cost":
        pair["best"]["fitness"] = worst["fitness"] * 0.9
    if why == "same":
        worst["fitness"][:] = 1.0
    assert standing_still(pair, seen) == []
