"""Lift of robosuite with PPO of Stable-Baselines3. The environment of `interpreter` needs

    pip install ./adapters robosuite==1.5.2 mujoco==3.9.0 gymnasium stable-baselines3

where `adapters` is the folder of eureka-agent's repository. MuJoCo 3.10 is too new for it."""

from typing import Any, ClassVar

import gymnasium
import numpy as np
import robosuite
from eureka_adapter import Job, Variable
from eureka_adapter.gymnasium_sb3 import main

SEEN = ["robot0_joint_pos", "robot0_joint_vel", "robot0_eef_pos", "robot0_eef_quat"]
SEEN += ["robot0_gripper_qpos", "cube_pos", "cube_quat", "gripper_to_cube_pos"]
# robosuite's reward: reach and grasp until the cube is lifted, then lift alone
TERMS = [
    {"name": "reach", "weight": 1 / 2.25, "doc": "1 - tanh(10 * distance to the cube in m)"},
    {"name": "grasp", "weight": 0.25 / 2.25, "doc": "1 while both fingers touch the cube"},
    {"name": "lift", "weight": 1.0, "doc": "1 while the cube's centre is 4 cm above the table"},
]
VARIABLES = [
    Variable("gripper_position", (3,), "m", "world", "point between the fingertips; z is up"),
    Variable("gripper_to_cube", (3,), "m", "world", "from that point to the cube's centre"),
    Variable("finger_positions", (2,), "m", "hand", "0.04 and -0.04 when open, 0 when closed"),
    Variable("joint_velocities", (7,), "rad/s", "joints", "of the arm"),
    Variable("cube_position", (3,), "m", "world", "its centre; the table's top is at z = 0.8"),
    Variable("cube_height", (), "m", "world", "of the centre above the table's top; 0.02 at rest"),
    Variable("reach", doc=TERMS[0]["doc"] + "; 0 while the cube is lifted", range=(0, 1)),
    Variable("grasp", doc=TERMS[1]["doc"] + "; 0 while it is lifted", range=(0, 1)),
    Variable("lift", doc=TERMS[2]["doc"], range=(0, 1)),
]


class Lift(gymnasium.Env):
    """Replaces robosuite's GymWrapper: its seeds do nothing, and its time limit is a failure."""

    metadata: ClassVar = {"render_modes": ["rgb_array"], "render_fps": 20}
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (33,))
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (7,))

    def __init__(self, job: Job) -> None:
        self.job = job
        self.suite = robosuite.make(
            "Lift",
            robots="Panda",
            reward_shaping=True,
            use_camera_obs=False,
            has_offscreen_renderer=job.render_mode is not None,
            ignore_done=True,
            hard_reset=False,  # which builds the model again, in half a second
            seed=0,  # the cube's size, equal in all environments
        )

    def reset(self, seed: Any = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        if seed is not None:
            start = np.random.default_rng(seed).bit_generator.state
            self.suite.rng.bit_generator.state = start
        return self._read(self.suite.reset()), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        observation, reward, _, _ = self.suite.step(action)
        return self._read(observation), reward, False, False, {}

    def render(self) -> np.ndarray:
        width, height = self.job.fields["size"]
        return self.suite.sim.render(width, height, camera_name="sideview")[::-1]

    def _read(self, observation: dict[str, Any]) -> np.ndarray:
        self.seen = observation
        return np.concatenate([observation[key] for key in SEEN], dtype=np.float32)


def values(env: Lift) -> dict[str, Any]:
    suite, seen = env.suite, env.seen
    gripper, distance = suite.robots[0].gripper, np.linalg.norm(seen["gripper_to_cube_pos"])
    lifted = suite._check_success()
    return {
        "gripper_position": seen["robot0_eef_pos"],
        "gripper_to_cube": seen["gripper_to_cube_pos"],
        "finger_positions": seen["robot0_gripper_qpos"],
        "joint_velocities": seen["robot0_joint_vel"],
        "cube_position": seen["cube_pos"],
        "cube_height": seen["cube_pos"][2] - 0.8,
        "reach": 0.0 if lifted else 1 - np.tanh(10 * distance),
        "grasp": float(not lifted and suite._check_grasp(gripper, suite.cube)),
        "lift": float(lifted),
    }


main(
    Lift,
    VARIABLES,
    values,
    normalize=True,
    max_episode_length=200,
    ends={},  # no episode ends early
    native_terms=TERMS,
    quaternion_order="xyzw",
    versions=("robosuite", "mujoco", "stable-baselines3", "torch"),
    doc="A Panda arm on a table. Actions move the hand by steps of position and rotation, the last"
    " one closes the fingers (1) or opens them (-1).",
)
