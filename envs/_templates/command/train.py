"""CHANGE: your simulator and your trainer. The environment of `interpreter` in command.yaml needs

    pip install ./adapters gymnasium stable-baselines3

where `adapters` is the folder of eureka-agent's repository."""

import gymnasium
from eureka_adapter import Variable
from eureka_adapter.gymnasium_sb3 import main

main(
    lambda job: gymnasium.make("Pendulum-v1", render_mode=job.render_mode),
    # what a reward may read: name, shape, unit, frame, words, range
    [
        Variable("upright", (), "1", "world", "cosine of the angle; 1 is upright", (-1, 1)),
        Variable("sine", (), "1", "world", "sine of the angle from upright", (-1, 1)),
        Variable("angular_velocity", (), "rad/s", "world", "of the pendulum", (-8, 8)),
    ],
    # their places in the observation; a function of the environment gives anything else
    {"upright": 0, "sine": 1, "angular_velocity": 2},
    hyperparameters={"n_steps": 256, "gamma": 0.9, "learning_rate": 1e-3, "use_sde": True},
    doc="A pendulum that a torque swings.",
)
