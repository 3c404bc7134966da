"""A pendulum of Gymnasium with PPO of Stable-Baselines3, as a user would write it."""

from __future__ import annotations

from collections.abc import Sequence

import gymnasium
from eureka_adapter import Job, Variable
from eureka_adapter.gymnasium_sb3 import main

VARIABLES = [
    Variable("cosine", doc="cosine of the angle; 1 is upright"),
    Variable("sine"),
    Variable("velocity", (), "rad/s", "world", "angular velocity", (-8.0, 8.0)),
]


def make_env(job: Job) -> gymnasium.Env:
    return gymnasium.make("Pendulum-v1", render_mode=job.render_mode)


def run(argv: Sequence[str] | None = None, **changes: object) -> None:
    settings = {"n_steps": 64, "batch_size": 64, "n_epochs": 2}
    places = {"cosine": 0, "sine": 1, "velocity": 2}
    given = {"hyperparameters": settings, "normalize": True, "doc": "A pendulum.", **changes}
    main(make_env, VARIABLES, places, argv=argv, **given)


if __name__ == "__main__":
    print("noise " * 200_000)  # more than a pipe holds
    run()
