"""The walker of dm_control's suite with PPO of Stable-Baselines3. The environment of `interpreter`
needs

    pip install ./adapters "shimmy[dm-control]" dm_control==1.0.50 mujoco==3.17.0 packaging
    pip install gymnasium stable-baselines3

where `adapters` is the folder of eureka-agent's repository. MuJoCo 4 is too new for it."""

from typing import Any

import gymnasium
import shimmy  # noqa: F401  (registers the suite)
from eureka_adapter import Job, Variable
from eureka_adapter.gymnasium_sb3 import main
from gymnasium.wrappers import FlattenObservation

VARIABLES = [
    Variable("torso_height", (), "m", "world", "of the torso's centre; 1.3 when it stands"),
    Variable("torso_upright", (), "1", "world", "cosine of its tilt; 1 is upright", (-1, 1)),
    Variable("forward_velocity", (), "m/s", "world", "of the centre of mass"),
    Variable("joint_angles", (6,), "rad", "joints", "right hip, knee, ankle, then left"),
    Variable("joint_velocities", (6,), "rad/s", "joints", "right hip, knee, ankle, then left"),
    Variable("native_reward", (), "1", "-", "dm_control's reward of the task", (0, 1)),
]


def values(env: gymnasium.Env) -> dict[str, Any]:
    physics = env.unwrapped.physics
    return {
        "torso_height": physics.torso_height(),
        "torso_upright": physics.torso_upright(),
        "forward_velocity": physics.horizontal_velocity(),
        "joint_angles": physics.data.qpos[3:],
        "joint_velocities": physics.data.qvel[3:],
        "native_reward": env.unwrapped.task.get_reward(physics),
    }


def make_env(job: Job) -> gymnasium.Env:
    camera = {"camera_id": "side", "render_flag_overrides": {"shadow": False}}
    # a task of command.yaml is one of the suite's
    name = f"dm_control/walker-{job.task}-v0"
    env = gymnasium.make(name, render_mode=job.render_mode, render_kwargs=camera)
    return FlattenObservation(env)


main(
    make_env,
    VARIABLES,
    values,
    normalize=True,
    hyperparameters={"learning_rate": 3e-4, "batch_size": 256},
    max_episode_length=1000,
    ends={},  # no episode ends early
    native_terms=[{"name": "native_reward", "weight": 1.0, "doc": "upright, high and fast"}],
    versions=("dm_control", "mujoco", "shimmy", "stable-baselines3", "torch"),
    doc="A planar walker with two legs, which starts in a random pose and falls.",
)
