"""PushCube of ManiSkill with PPO of Stable-Baselines3. The environment of `interpreter` needs

    pip install ./adapters mani_skill==3.0.1 gymnasium stable-baselines3

where `adapters` is the folder of eureka-agent's repository. ManiSkill makes no environment without
a Vulkan device, even for a simulation on the CPU. On a machine without a GPU the software driver of
Mesa 24.3 or newer (package mesa-vulkan-drivers) is one; that of Mesa 22 is refused."""

from typing import Any

import gymnasium
import mani_skill.envs  # noqa: F401  (registers the tasks)
from eureka_adapter import Job, Variable
from eureka_adapter.gymnasium_sb3 import main
from mani_skill.utils.wrappers import CPUGymWrapper

VARIABLES = [
    Variable("hand_position", (3,), "m", "world", "point between the fingertips; z is up"),
    Variable("cube_position", (3,), "m", "world", "its centre; 0.02 high on the table"),
    Variable("goal_position", (3,), "m", "world", "centre of the circle, whose radius is 0.1"),
    Variable("joint_velocities", (7,), "rad/s", "joints", "of the arm"),
    Variable("native_reward", (), "1", "-", "ManiSkill's reward of the task", (0, 1)),
]


def make_env(job: Job) -> gymnasium.Env:
    env = gymnasium.make(
        "PushCube-v1",
        obs_mode="state",
        control_mode="pd_ee_delta_pos",
        sim_backend="cpu",
        render_backend="cpu",
        render_mode=job.render_mode,
    )
    # an episode goes on after a success, so that none is better off for avoiding it
    return CPUGymWrapper(env, ignore_terminations=True)


def values(env: gymnasium.Env) -> dict[str, Any]:
    scene = env.unwrapped
    reward = scene.compute_normalized_dense_reward(None, None, scene.get_info())
    return {
        "hand_position": scene.agent.tcp.pose.p[0],
        "cube_position": scene.obj.pose.p[0],
        "goal_position": scene.goal_region.pose.p[0],
        "joint_velocities": scene.agent.robot.qvel[0, :7],
        "native_reward": reward[0],
    }


main(
    make_env,
    VARIABLES,
    values,
    control_dt=0.05,
    max_episode_length=50,
    hyperparameters={"gamma": 0.8, "batch_size": 256},
    ends={},  # no episode ends early
    native_terms=[{"name": "native_reward", "weight": 1.0, "doc": "reach, then push; 1 inside"}],
    versions=("mani_skill", "sapien", "stable-baselines3", "torch"),
    doc="A Panda arm and a cube on a table. Actions move the hand along x, y and z; the last one"
    " opens the fingers (1) or closes them (-1).",
)
