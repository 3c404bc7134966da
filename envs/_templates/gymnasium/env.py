"""A Gymnasium environment with a wrapper: replace it by your own. Lines to change are marked
CHANGE."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from eureka_agent.task import Variable

# unit, frame and one line of doc for entries of the Dict observation, by their names. A designer
# sees nothing else of this file but make's docstring, so write for a stranger. Numbers in `info`
# are variables too; the environment's own reward is `native_reward`, which the fitness may read and
# a designer's reward may not.
VARIABLES = (
    Variable(
        "tip_position",
        (2,),
        "m",
        "world",
        "pole's free end: height (1 is upright, -1 hangs down), then x",
    ),
    Variable("angular_velocity", (), "rad/s", "joint", "angular velocity of the pole"),
)


class Named(gymnasium.ObservationWrapper):
    """CHANGE: a Dict of named arrays in place of a vector; each of its keys is a variable that a
    reward may read."""

    def __init__(self, environment: gymnasium.Env) -> None:
        super().__init__(environment)
        self.observation_space = spaces.Dict(
            tip_position=spaces.Box(-1.0, 1.0, (2,), np.float32),
            angular_velocity=spaces.Box(-8.0, 8.0, (), np.float32),
        )

    def observation(self, observation: np.ndarray) -> dict[str, Any]:
        """The environment's own observation is cosine, sine and velocity."""
        return {"tip_position": observation[:2], "angular_velocity": observation[2]}


# length and time step of an episode are read from the environment; where it names none, they are
# set here: MAX_EPISODE_LENGTH = 200  # steps CONTROL_DT = 0.05  # seconds


def make() -> gymnasium.Env:
    """A pendulum on a motor that cannot lift it in one go. CHANGE: say what it is; language models
    are told this.

    The pole is 1 m long and starts at any angle. An episode lasts 10 s at 20 control steps a
    second. This function is called once for each copy; the `options` of a task are its arguments.
    """
    # a package of your own is found where PYTHONPATH names its folder:
    # gymnasium.make("my_package:MyEnvironment-v0")
    return Named(gymnasium.make("Pendulum-v1"))
