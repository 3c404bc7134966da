"""Two parameters with a prior, by hand."""

from __future__ import annotations

from eureka_agent.randomisation_records import ParameterPrior, Prior, ValueScore
from eureka_agent.records import ParameterSpec

MASS = ParameterSpec(
    name="mass", default=1.0, low=0.5, high=2.0, doc="factor on the mass: with more it falls"
)
DELAY = ParameterSpec(name="delay", unit="s", default=0.0, low=0.0, high=4.0, doc="late actions")
PARAMETERS = (MASS, DELAY)


def prior(mass: tuple[float, float], delay: tuple[float, float]) -> Prior:
    """A prior of these intervals."""
    scores = (ValueScore(value=0.5, fitness=7.125), ValueScore(value=1.0, fitness=None))
    bounds = {"mass": mass, "delay": delay}
    parameters = tuple(
        ParameterPrior(name=name, scores=scores, low=low, high=high)
        for name, (low, high) in bounds.items()
    )
    return Prior(base=10.0, floor=2.0, episodes=4, parameters=parameters)
