"""A MuJoCo scene is drawn behind every wall: none has a display, and two have no devices."""

from __future__ import annotations

import os
from pathlib import Path

import av
import numpy as np
import pytest
from drawing_here import NEEDS_DRAWING
from policy_files import save_random_policy

from eureka_agent.fleet.jobs import Problem
from eureka_agent.fleet.warm_worker import FilmMaker, FilmSettings, FilmSubject
from eureka_agent.sandbox.bubblewrap_wall import unavailable_reason
from eureka_agent.sandbox.choose import open_wall
from eureka_agent.simulation.loading import describe, load_environment

SETTINGS = FilmSettings(seed=1, episodes=4, shown=("best",), size=(160, 120), seconds=0.2)


@NEEDS_DRAWING
@pytest.mark.parametrize(
    "name", [pytest.param("docker", marks=pytest.mark.docker), "bubblewrap", "process"]
)
async def test_the_same_pictures_come_from_behind_every_wall(name: str, tmp_path: Path) -> None:
    if name == "bubblewrap" and (reason := unavailable_reason()) is not None:
        if os.environ.get("EUREKA_REQUIRE_DOCKER") == "1":
            pytest.fail(f"bubblewrap is required here: {reason}")
        pytest.skip(f"no bubblewrap: {reason}")
    loaded = load_environment("hopper")
    sizes = loaded.environment_class.num_observations, loaded.environment_class.num_actions
    policy = save_random_policy(tmp_path / "policy.safetensors", *sizes, seed=3)
    maker = FilmMaker(open_wall(name), Problem("hopper", "run"), tmp_path / "films")
    video = tmp_path / "video.mp4"
    try:
        fingerprint = describe(loaded, "run").fingerprint
        filmed = await maker.film([FilmSubject("a policy", policy)], SETTINGS, fingerprint, video)
    finally:
        await maker.close()
    assert filmed.episodes[0].episode.length > 0
    with av.open(str(video)) as container:
        first = next(container.decode(video=0)).to_ndarray(format="rgb24")[24:144].astype(float)
    # the orange robot stands in the middle, before a sky that is blue
    red, _, blue = np.moveaxis(first, -1, 0)
    robot = (red > 1.5 * blue) & (red > 60.0)
    assert 60 < np.nonzero(robot)[1].mean() < 100
    assert 0.002 < robot.mean() < 0.2
    assert blue[2].mean() > red[2].mean() + 20.0
