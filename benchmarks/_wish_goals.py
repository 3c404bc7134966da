"""Wishes in a person's words, each with a metric that the search does not see. They were
fixed before any run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Episode = Mapping[str, NDArray[Any]]
"""Variables of an episode. Shape of each: (steps, …)."""


@dataclass(frozen=True)
class Goal:
    """A wish in a person's words, and its hidden metric."""

    words: str
    metric: str
    unit: str
    measure: Callable[[Episode], Any]
    """The metric of one episode."""
    aim: Callable[[float], float] = lambda begin: 0.0
    """The wished value, from that of the base run's best attempt; by default as low as it goes."""


GOALS: dict[str, dict[str, Goal]] = {
    "ant": {
        "lower": Goal(
            "Keep the body lower, closer to the ground.",
            "mean torso height",
            "m",
            lambda episode: np.mean(episode["torso_height"]),
        ),
        "straight": Goal(
            "It should not turn left and right while it runs.",
            "mean |yaw rate|",
            "rad/s",
            lambda episode: np.mean(np.abs(episode["torso_angular_velocity_b"][:, 2])),
        ),
        "slow": Goal(
            "Run only half as fast.",
            "mean forward speed",
            "m/s",
            lambda episode: np.mean(episode["torso_velocity_w"][:, 0]),
            lambda begin: begin / 2.0,
        ),
        "level": Goal(
            "Keep the body level, it rocks too much.",
            "mean tilt",
            "rad",
            lambda episode: np.mean(np.arccos(np.clip(episode["torso_upright"], -1.0, 1.0))),
        ),
        "gentle": Goal(
            "Move the legs more gently, the motors jerk too much.",
            "mean |torque change| a step",
            "N·m",
            lambda episode: np.mean(np.abs(np.diff(episode["joint_torques"], axis=0))),
        ),
    },
    "quadcopter": {
        "no-spin": Goal(
            "It should not spin about itself.",
            "mean |yaw rate|",
            "rad/s",
            lambda episode: np.mean(np.abs(episode["angular_velocity_b"][:, 2])),
        ),
        "slow": Goal(
            "Fly only half as fast.",
            "highest speed",
            "m/s",
            lambda episode: np.max(np.linalg.norm(episode["velocity_w"], axis=1)),
            lambda begin: begin / 2.0,
        ),
        "level": Goal(
            "Keep it level, it tilts too much.",
            "mean tilt",
            "rad",
            lambda episode: np.mean(episode["tilt_angle"]),
        ),
        "above": Goal(
            "Hover a bit above the goal, about 30 cm.",
            "height above the goal, last half",
            "m",
            lambda episode: -np.mean(episode["goal_error_w"][len(episode["height"]) // 2 :, 2]),
            lambda begin: 0.3,
        ),
        "gentle": Goal(
            "Change the thrust of the rotors more gently, they jitter.",
            "mean |thrust change| a step",
            "N",
            lambda episode: np.mean(np.abs(np.diff(episode["rotor_thrusts"], axis=0))),
        ),
    },
}
