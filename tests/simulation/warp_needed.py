"""Mark of tests that need mujoco_warp."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

# looked for and not imported: that takes 2 s, in each of the processes that collect the tests
NEEDS_WARP = pytest.mark.skipif(find_spec("mujoco_warp") is None, reason="needs mujoco_warp")
