"""CartPole of Gymnasium, with a discrete action, causes of ends and DQN of Stable-Baselines3."""

from __future__ import annotations

from collections.abc import Sequence

import gymnasium
import numpy as np
from eureka_adapter import Variable
from eureka_adapter.gymnasium_sb3 import main


def values(env: gymnasium.Env) -> dict[str, np.ndarray]:
    state = np.array(env.unwrapped.state, dtype=np.float32)
    return {"cart": state[:2], "pole_angle": state[2]}


def cause(env: gymnasium.Env) -> str:
    return "fell" if abs(env.unwrapped.state[2]) > 0.2 else "left"


def run(argv: Sequence[str] | None = None, **changes: object) -> None:
    main(
        lambda job: gymnasium.make("CartPole-v1", render_mode=job.render_mode),
        [Variable("cart", (2,), "m"), Variable("pole_angle", (), "rad")],
        values,
        ends={"fell": "the pole leans", "left": "the cart is out"},
        max_episode_length=60,
        algorithm="DQN",
        hyperparameters={"learning_starts": 50},
        argv=argv,
        **{"cause": cause, **changes},
    )


if __name__ == "__main__":
    run()
