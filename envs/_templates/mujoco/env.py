"""A pendulum in MuJoCo: replace model.xml by your robot. Lines to change are marked CHANGE."""

from __future__ import annotations

import torch
from torch import Tensor

from eureka_agent.simulation.mujoco_task import MujocoTask
from eureka_agent.task import Channel, Variable

MAX_TORQUE = 0.5
FASTEST = 30.0


class Pendulum(MujocoTask):
    """A pendulum with a weak motor at its hinge. CHANGE: say what it is; language models are told
    this docstring.

    The pole is 0.5 m long and weighs 0.3 kg. It hangs down at an angle of 0 and starts near there;
    the hinge is 1 m above the floor. An episode lasts 10 s at 50 control steps a second.
    """

    # what a reward may read; a designer sees nothing else of this file, so write for a stranger
    variables = (
        Variable(
            "angle",
            (),
            "rad",
            "joint",
            "angle of the pole; 0 hangs down, ±pi is upright; turns add up",
        ),
        Variable("angular_velocity", (), "rad/s", "joint", "angular velocity of the pole"),
        Variable(
            "upright",
            (),
            "1",
            "world",
            "upright projection of the pole: 1 is upright, -1 hangs down",
            (-1.0, 1.0),
        ),
        Variable(
            "tip_position_w",
            (3,),
            "m",
            "world",
            "position of the pole's free end: x, y, z (height; 1.5 is the top)",
        ),
    )
    observation_channels = (
        Channel("angle_sine", (), "1", "joint", "sine of the pole's angle"),
        Channel("angle_cosine", (), "1", "joint", "cosine of the pole's angle: 1 hangs down"),
        Channel("angular_velocity", (), "rad/s", "joint", "of the pole", scale=0.2),
    )
    # left out, these are the actuators of the MJCF with their control ranges
    action_channels = (
        Channel(
            "torque", (), "N·m", "joint", "of the hinge's motor", range=(-MAX_TORQUE, MAX_TORQUE)
        ),
    )
    model_file = "model.xml"  # beside this file
    num_observations = 3
    num_actions = 1  # as many as the MJCF's actuators have inputs
    max_episode_length = 500  # control steps
    control_dt = 0.02  # seconds, a multiple of the MJCF's timestep
    position_noise = 0.2  # episodes start this far around qpos0: rad or m, uniform
    velocity_noise = 0.1  # and with velocities of this standard deviation
    termination_causes = ("too_fast", "unstable_physics")

    def __init__(self, num_envs: int, device: torch.device | str = "cpu", seed: int = 0) -> None:
        super().__init__(num_envs, device, seed)
        # CHANGE: what is read in every step, looked up once by its name in the MJCF; a list of
        # names and patterns, such as self.joint([".*_knee"]), is a group
        self.hinge = self.joint("hinge")
        self.tip = self.site("tip")

    def compute_observations(self) -> None:
        """CHANGE: what the policy sees."""
        self.obs_buf[:, 0] = torch.sin(self.hinge.position)
        self.obs_buf[:, 1] = torch.cos(self.hinge.position)
        self.obs_buf[:, 2] = 0.2 * self.hinge.velocity

    def compute_variables(self) -> dict[str, Tensor]:
        """Every name in `variables`, and no other."""
        return {
            "angle": self.hinge.position,
            "angular_velocity": self.hinge.velocity,
            "upright": -torch.cos(self.hinge.position),
            "tip_position_w": self.tip.position_w,
        }

    def compute_failures(self) -> dict[str, Tensor]:
        """Rows whose episode ends here, by cause; unstable physics is found by the base class."""
        return {"too_fast": self.hinge.velocity.abs() > FASTEST}
