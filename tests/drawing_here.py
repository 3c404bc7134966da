"""Mark of tests that draw MuJoCo's scenes."""

from __future__ import annotations

import os

import pytest

from eureka_agent.simulation.mujoco_pictures import back_end
from eureka_agent.simulation.pictures import RenderingError


def _why_not() -> str:
    try:
        back_end()
    except RenderingError as error:
        return f"{error.message}: {error.hint}"
    return ""


NEEDS_DRAWING = pytest.mark.skipif(
    # where a browser is required, so is this
    bool(_why_not()) and os.environ.get("EUREKA_REQUIRE_BROWSER") != "1",
    reason=_why_not(),
)
