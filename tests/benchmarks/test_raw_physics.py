"""Raw physics, the reference for a training's speed, repeats the training's own physics."""

from __future__ import annotations

import pytest
import torch
from _common import subject
from _recorded_batch import BarePhysics, batch_of, watch

from eureka_agent.simulation.mujoco_task import MujocoTask


@pytest.mark.parametrize("robot", ["hopper", "ant"])
def test_recorded_steps_and_resets_lead_to_the_same_state_again(robot: str) -> None:
    environment = subject(robot).make(8)
    assert isinstance(environment, MujocoTask)
    own = batch_of(environment)
    watched = watch(environment)
    environment.reset()
    environment.progress_buf[:] = environment.max_episode_length - torch.tensor(
        [3, 5, 9, 9, 20, 90, 90, 90]
    )
    begins = watched.copied_state()
    watched.record()
    noise = torch.Generator().manual_seed(0)
    for _ in range(30):
        environment.step(torch.randn(8, environment.num_actions, generator=noise))
    calls = watched.recorded()
    assert [kind for kind, *_ in calls].count("step") == 30
    assert [kind for kind, *_ in calls].count("place") >= 4
    reached = watched.copied_state()
    assert (own.bind("qpos") == reached["qpos"].numpy()).all()
    bare = BarePhysics(environment)
    assert bare.replay(begins, calls, reached) > 0.0
    assert watched.seconds["step"] > 0.0
    # without the resets it is another course of events
    with pytest.raises(SystemExit, match="came to another state"):
        bare.replay(begins, [call for call in calls if call[0] == "step"], reached)
