"""Four-legged ant in MuJoCo."""

from __future__ import annotations

import torch
from torch import Tensor

from eureka_agent.simulation.mujoco_parameters import (
    action_delay,
    friction_of,
    gravity,
    mass_of,
    push_on,
    strength_of,
)
from eureka_agent.task import Variable

from .locomotion import (
    FreeRobot,
    Values,
    ends,
    heading_variables,
    joint_channels,
    joint_variables,
    last_actions,
    torque_channel,
    torso_channels,
    torso_variables,
)

TORQUE = 60.0
LOWEST_TORSO = 0.3
LEAST_UPRIGHT = 0.0
RAISED, LOWERED = 0.28, 0.12
"""Heights in m of the front left foot between which it waves; 0.08 on the ground."""
OTHERS_UP = 0.14
"""Height in m above which another foot does not stand."""
LEVEL = 0.9
"""Upright projection from which the torso counts as level."""
LEGS = ("front_left", "back_left", "back_right", "front_right")
JOINTS = "hip and knee of the front left, back left, back right, front right leg"
FEET = "front left, back left, back right, front right foot"
DEFAULT_TASK = "run"
MOTORS = tuple(f"{leg}_{joint}" for leg in LEGS for joint in ("hip", "knee"))


class Ant(FreeRobot):
    """A quadruped on flat ground: a round torso and four legs, each with a hip (swings forward and
    back) and a knee motor.

    It weighs 9 kg, starts at x = 0 facing +x, and moves in three dimensions; z is up. Eight actions
    turn the joints. An episode lasts 8 s at 62.5 control steps a second and ends early when the
    torso drops to the ground or the robot tips over.
    """

    variables = (
        *torso_variables(),
        Variable(
            "torso_height",
            (),
            "m",
            "world",
            "height of the torso's centre above the ground; 0.56 when standing, 0.36 with all legs"
            f" stretched out flat; below {LOWEST_TORSO:g} the episode ends, unless the task lets it"
            " lie",
            (0.0, 2.0),
        ),
        Variable(
            "torso_upright",
            (),
            "1",
            "world",
            "upright projection of the torso: 1 is level, 0 is on its side (the episode ends), -1"
            " is upside down",
            (-1.0, 1.0),
        ),
        *heading_variables(),
        *joint_variables(
            JOINTS,
            8,
            "hips ±0.7 (positive: foot forward), knees 0.52 to 1.75 (larger: leg bent further"
            " down)",
            TORQUE,
        ),
        Variable(
            "foot_contact_forces",
            (4,),
            "N",
            "world",
            "force with which the front left, back left, back right, front right foot presses on"
            " the ground; 0 in the air, 22 each when standing",
        ),
        Variable(
            "feet_in_contact",
            (4,),
            "1",
            "world",
            "1 for each foot (front left, back left, back right, front right) that touches the"
            " ground, else 0",
            (0.0, 1.0),
        ),
        Variable(
            "foot_positions_w",
            (4, 3),
            "m",
            "world",
            f"position of the centre of each foot ({FEET}): x, y, z; z is 0.08 on the ground",
        ),
        Variable(
            "front_left_raised",
            (),
            "1",
            "-",
            f"1 from when the front left foot's centre rises above {RAISED:g} m until it is below"
            f" {LOWERED:g} m again, which completes a wave; else 0",
            (0.0, 1.0),
        ),
        Variable(
            "front_left_waves",
            (),
            "1",
            "-",
            f"waves of the front left foot since the start: up above {RAISED:g} m and down below"
            f" {LOWERED:g} m again, all the while with the centres of the other three feet below"
            f" {OTHERS_UP:g} m and torso_upright above {LEVEL:g}",
        ),
    )
    observation_channels = (*torso_channels("torso"), *joint_channels(MOTORS), last_actions(MOTORS))
    action_channels = (torque_channel(MOTORS, TORQUE),)
    parameters = (
        mass_of(
            "torso",
            low=0.7,
            high=1.6,
            doc="factor on the torso's mass and inertia, 4.8 kg: from a lighter one to a load of"
            " two thirds of it",
            name="torso_mass",
        ),
        friction_of(
            low=0.3,
            high=1.5,
            doc="factor on the friction of feet and ground, 1: from wet wood to rubber",
        ),
        strength_of(
            low=0.7,
            high=1.2,
            doc="factor on the motors' torques: a weak battery, or stronger motors",
        ),
        gravity(
            low=0.6,
            high=1.2,
            doc="factor on gravity, 9.81 m/s²: other ratios of weight to strength",
        ),
        action_delay(
            high=3.0, doc="control steps by which torques are late, rounded: a slow bus or computer"
        ),
        push_on(
            "torso",
            high=6.0,
            doc="push of the torso in a random horizontal direction every 2 s, N·s; the largest"
            " changes the robot's speed by 0.66 m/s",
        ),
    )
    motors = MOTORS
    torque = TORQUE
    foot_sensors = tuple(f"{leg}_force" for leg in LEGS)
    least_upright = LEAST_UPRIGHT
    model_file = "ant.xml"
    num_observations = 36
    num_actions = 8
    max_episode_length = 500
    control_dt = 0.016
    position_noise = 0.1
    velocity_noise = 0.1
    termination_causes = ("torso_too_low", "tipped_over", "unstable_physics")
    termination_conditions = ends(LOWEST_TORSO, LEAST_UPRIGHT)

    def __init__(
        self,
        num_envs: int,
        device: torch.device | str = "cpu",
        seed: int = 0,
        *,
        lowest_torso: float = LOWEST_TORSO,
    ) -> None:
        """`lowest_torso` is the height in m below which an episode ends."""
        super().__init__(num_envs, device, seed)
        self.lowest_torso = lowest_torso
        low = f"torso_height below {lowest_torso:g} m" if lowest_torso else "never in this task"
        self.termination_conditions = {**self.termination_conditions, "torso_too_low": low}
        self.feet_w = self.sensor([f"{leg}_foot_w" for leg in LEGS])
        self.is_raised = torch.zeros(num_envs, dtype=torch.bool, device=self.device)
        """The front left foot, in a wave that has not failed."""
        self.waves = torch.zeros(num_envs, device=self.device)

    def simulate(self) -> None:
        super().simulate()
        self.count_waves()

    def count_waves(self) -> None:
        """Count a foot that comes down, if the robot stood all the while it was up."""
        heights = self.feet_w.value[:, 2::3]
        others_stand = (heights[:, 1:] < OTHERS_UP).all(dim=1)
        stands = others_stand & (self.sensors["up_w"][:, 2] > LEVEL) & ~self.unstable
        foot = heights[:, 0]
        self.waves += self.is_raised & stands & (foot < LOWERED)
        self.is_raised = stands & ((foot > RAISED) | (self.is_raised & (foot >= LOWERED)))

    def compute_observations(self) -> None:
        """Height, up vector, heading, body-frame velocities, scaled joint angles, joint velocities
        and the last action."""
        torch.cat(
            (
                self.root.position_w[:, 2:3],
                self.sensors["up_w"],
                self.sensors["heading_w"][:, 0:2],
                self.sensors["torso_velocity_b"],
                self.root.angular_velocity_b,
                self.limbs.scaled_position,
                0.1 * self.limbs.velocity,
                self.actions,
            ),
            dim=1,
            out=self.obs_buf,
        )

    def own_values(self) -> Values:
        return {
            **super().own_values(),
            "foot_positions_w": lambda: self.feet_w.value.unflatten(1, (4, 3)),
            "front_left_raised": lambda: self.is_raised.float(),
            "front_left_waves": self.waves,
        }

    def place(self, env_ids: Tensor) -> None:
        super().place(env_ids)
        self.is_raised.index_fill_(0, env_ids, False)
        self.waves.index_fill_(0, env_ids, 0.0)
