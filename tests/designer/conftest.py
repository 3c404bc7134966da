"""Environments that no one has built, as fixtures."""

from __future__ import annotations

import pytest
from invented_environments import ARM, BOAT, LANDER, description

from eureka_agent.records import TaskDescription


@pytest.fixture
def arm() -> TaskDescription:
    """A gateway with a drawer, an arm, and a lamp that has nothing to do with it."""
    return description("open the drawer", ARM, 7)


@pytest.fixture
def boat() -> TaskDescription:
    """A sailing boat on open water."""
    return description(
        "sail the boat to the buoy without tipping over", BOAT, 2, causes=("capsized",)
    )


@pytest.fixture
def lander() -> TaskDescription:
    """A lander over a pad, with a sentence that the vocabulary does not know and a metric of which
    it knows how, not what."""
    metric = "seconds of an episode at rest on the pad"
    return description(
        "land on the pad gently without crashing", LANDER, 2, metric, causes=("crashed",)
    )
