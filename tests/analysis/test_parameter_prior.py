"""Values of a parameter that are scored, and the interval in which a policy works."""

from __future__ import annotations

import pytest

from eureka_agent.analysis.parameter_prior import prior_of, values_to_score
from eureka_agent.records import ParameterSpec

MASS = ParameterSpec(name="mass", default=1.0, low=0.25, high=16.0)
DELAY = ParameterSpec(name="delay", default=0.0, low=0.0, high=3.0)


@pytest.mark.parametrize(
    ("parameter", "expected"),
    [
        # 0.25^(1/4) = 0.7071 and 16^(1/4) = 2
        (MASS, (0.25, 0.3536, 0.5, 0.7071, 1.0, 2.0, 4.0, 8.0, 16.0)),
        (DELAY, (0.0, 0.75, 1.5, 2.25, 3.0)),  # no ratios from 0, and no room below it
        (ParameterSpec(name="tilt", default=0.0, low=-0.4, high=0.0), (-0.4, -0.3, -0.2, -0.1, 0)),
        (ParameterSpec(name="fixed", default=2.0, low=2.0, high=2.0), (2.0,)),
    ],
)
def test_values_lie_on_the_sides_that_have_room(
    parameter: ParameterSpec, expected: tuple[float, ...]
) -> None:
    assert values_to_score(parameter) == expected


def test_the_prior_is_the_interval_around_the_default() -> None:
    # half of the gain from 2 to 10 is kept at 6
    mass = {0.25: 9.0, 0.3536: 5.9, 0.5: 6.0, 0.7071: 9.0, 2.0: 8.0, 4.0: 7.0, 8.0: 6.5, 16.0: 6.0}
    delay = {0.75: 5.0, 1.5: 10.0, 2.25: None, 3.0: 10.0}
    scores: dict[tuple[str, float], float | None] = {
        **{("mass", value): fitness for value, fitness in mass.items()},
        **{("delay", value): fitness for value, fitness in delay.items()},
    }
    prior = prior_of((MASS, DELAY), 10.0, 2.0, scores, 4)
    assert prior.threshold == 6.0
    # what works beyond a gap does not count
    assert prior.ranges == {"mass": (0.5, 16.0), "delay": (0.0, 0.0)}
    assert [(each.value, each.fitness) for each in prior.parameters[1].scores] == [
        (0.0, 10.0),
        (0.75, 5.0),
        (1.5, 10.0),
        (2.25, None),
        (3.0, 10.0),
    ]


def test_a_score_that_is_missing_does_not_work() -> None:
    scores: dict[tuple[str, float], float | None] = dict.fromkeys(
        [("delay", value) for value in (0.75, 1.5, 2.25)], 10.0
    )
    scores["delay", 3.0] = None
    assert prior_of((DELAY,), 10.0, 2.0, scores, 4).ranges == {"delay": (0.0, 2.25)}
