"""Names and units of observations and actions of the built-in environments, against their variables
and physics."""

from __future__ import annotations

import pytest
import torch

from eureka_agent.simulation.catalogue import list_environments
from eureka_agent.simulation.loading import load_environment
from eureka_agent.simulation.rollouts import random_actions

COUNTERPARTS = {
    "allegro_hand": 3,  # joint velocities, two velocities of the cube; the rest is relative
    "ant": 5,  # height, two velocities in the body's frame, joint velocities and scaled angles
    "ball_balance": 5,  # all but the vectors from the ball's place of rest and to the goal
    "cabinet": 2,  # grip point and vector to the handle; drives are scaled, velocities relative
    "cartpole": 4,
    "craft": 62,  # all but the local map
    "doorkey": 13,
    "hopper": 7,
    "humanoid": 6,  # height, two velocities, scaled angles, joint velocities, feet in contact
    "metaworld": 2,  # hand and opening; the rest is relative, or of the step before
    "quadcopter": 1,
    "quadruped": 7,  # all but the last actions
    "shadow_hand": 3,  # as the other hand's
}
"""Channels that are a variable's value times the scale."""


@pytest.mark.parametrize("name", [entry.name for entry in list_environments()])
def test_every_number_is_named_and_is_the_quantity_that_it_says(name: str) -> None:
    loaded = load_environment(name)
    cls = loaded.environment_class
    assert sum(channel.size for channel in cls.observation_channels) == cls.num_observations
    assert sum(channel.size for channel in cls.action_channels) == cls.num_actions
    for channel in (*cls.observation_channels, *cls.action_channels):
        assert channel.unit != "?"
        assert channel.doc
    environment = loaded.make(loaded.task(None)[1], 6)
    compared = set()
    for step, actions in enumerate(random_actions(6, environment.num_actions, 12, seed=1)):
        transition = environment.advance(actions)
        start = 0
        for channel in cls.observation_channels:
            columns = transition.observations[:, start : start + channel.size]
            start += channel.size
            if channel.name == "last_actions":
                assert torch.equal(columns, environment.actions), step
            elif channel.name in transition.variables:
                value = transition.variables[channel.name].reshape(6, channel.size)
                if "±10" in channel.doc:
                    value = value.clamp(-10.0, 10.0)
                if (
                    channel.name == "joint_positions_scaled"
                ):  # the variable alone ends at the limits
                    columns = columns.clamp(-1.0, 1.0)
                torch.testing.assert_close(columns, channel.scale * value, rtol=1e-5, atol=1e-5)
                compared.add(channel.name)
        for channel in () if cls.action_choices else cls.action_channels:
            assert channel.range is not None
            low, high = channel.range
            command = low + (environment.actions + 1.0) / 2.0 * (high - low)
            if channel.name not in transition.variables:
                continue  # a command of another kind than any variable: an increment, an effort
            told = transition.variables[channel.name].reshape(6, -1)
            torch.testing.assert_close(command, told, rtol=1e-4, atol=1e-4)
        environment.reset_done()
    assert len(compared) == COUNTERPARTS[name]
