"""MuJoCo Playground's PendulumSwingup with brax's PPO. The environment of `interpreter` needs

    pip install ./adapters torch==2.13.0 playground==0.2.0 brax==0.14.2 jax==0.10.2
    pip install mujoco==4.0.0 mujoco-core==4.0.0 mujoco-studio==4.0.0 mujoco-mjx==3.17.0

where `adapters` is the folder of eureka-agent's repository."""

from eureka_adapter import Variable
from eureka_adapter.brax_envs import main
from jax import numpy as jnp
from mujoco_playground import registry, wrapper
from mujoco_playground.config import dm_control_suite_params

VARIABLES = [
    Variable("upright", (), "1", "world", "cosine of the pole's angle; 1 is upright", (-1, 1)),
    Variable("sine", (), "1", "world", "sine of the pole's angle from upright", (-1, 1)),
    Variable("angular_velocity", (), "rad/s", "world", "of the pole"),
]
# a simulator that jax compiles, and steps long enough to swing up in 200 of them
TASK = {"impl": "jax", "ctrl_dt": 0.05, "sim_dt": 0.025}
SETTINGS = {
    **dm_control_suite_params.brax_ppo_config("PendulumSwingup"),
    "wrap_env_fn": wrapper.wrap_for_brax_training,
    "episode_length": 200,
    # Playground's are for a GPU: these learn from 2,560 env steps at once
    "unroll_length": 20,
    "batch_size": 16,
    "num_minibatches": 8,
    "num_updates_per_batch": 8,
    "discounting": 0.97,
    "reward_scaling": 1.0,
    "entropy_cost": 1e-3,
}

if __name__ == "__main__":
    main(
        lambda job: registry.load(job.options["task"], config_overrides=TASK),
        VARIABLES,
        # from qpos: xmat and other derived fields are those of the substep before
        lambda state: {
            "upright": jnp.cos(state.data.qpos[..., 0]),
            "sine": jnp.sin(state.data.qpos[..., 0]),
            "angular_velocity": state.data.qvel[..., 0],
        },
        SETTINGS,
        doc="A pole that a motor swings; the motor is too weak to lift it at once.",
        can={"film": True},
    )
