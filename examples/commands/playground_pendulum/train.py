"""Playground's PendulumSwingup with brax's PPO. Its Python needs

pip install ./adapters torch==2.13.0 playground==0.2.0 jax==0.10.2 mujoco==4.0.0 mujoco-core==4.0.0

where `adapters` is the folder of eureka-agent's repository."""

from eureka_adapter import Variable
from eureka_adapter.brax_envs import main
from mujoco_playground import registry, wrapper
from mujoco_playground.config import dm_control_suite_params

VARIABLES = [
    Variable("upright", (), "1", "world", "cosine of the pole's angle; 1 is upright", (-1, 1)),
    Variable("sine", (), "1", "world", "sine of the pole's angle from upright", (-1, 1)),
    Variable("angular_velocity", (), "rad/s", "world", "of the pole"),
]
CHANGES = {"episode_length": 200, "wrap_env_fn": wrapper.wrap_for_brax_training}
SMALL = {"unroll_length": 20, "batch_size": 32, "num_minibatches": 8, "num_updates_per_batch": 8}

if __name__ == "__main__":
    main(
        lambda job: registry.load(job.options["task"], config_overrides={"impl": "jax"}),
        VARIABLES,
        lambda state: {
            "upright": state.data.xmat[..., 2, 2, 2],
            "sine": state.data.xmat[..., 2, 0, 2],
            "angular_velocity": state.data.qvel[..., 0],
        },
        {**dm_control_suite_params.brax_ppo_config("PendulumSwingup"), **CHANGES, **SMALL},
        doc="A pole that a motor swings; the motor is too weak to lift it at once.",
        can={"film": True},
    )
