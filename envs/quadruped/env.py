"""Four-legged robot of the size of Unitree's Go1 in MuJoCo, which follows velocity commands."""

from __future__ import annotations

import torch
from torch import Tensor

from eureka_agent.simulation.mujoco_parameters import (
    action_delay,
    friction_of,
    mass_of,
    push_on,
    strength_of,
)
from eureka_agent.task import Channel, Variable

from .locomotion import (
    MOTOR_POWER,
    FreeRobot,
    Values,
    ends,
    last_actions,
    orientation_variable,
    velocity_variable,
)

DEFAULT_TASK = "follow"
LEGS = ("front_left", "front_right", "back_left", "back_right")
MOTORS = tuple(f"{leg}_{joint}" for leg in LEGS for joint in ("hip", "thigh", "calf"))
JOINTS = "hip, thigh, calf of the front left leg, then front right, back left, back right"
FEET = "front left, front right, back left, back right foot"

STANDING = (0.0, 0.9, -1.8)
"""Angles of hip, thigh and calf in the standing posture, rad."""
STANDING_HEIGHT = 0.28
TARGET_RANGE = 0.3
"""Largest distance of a joint's target from the standing posture, rad; as the MJCF has it."""
TORQUE = 35.55
LOWEST_TORSO = 0.16
LEAST_UPRIGHT = 0.5
FASTEST_COMMAND = (1.0, 0.5, 1.0)
"""Largest command: forward and sideways in m/s, turn in rad/s."""


class Quadruped(FreeRobot):
    """A four-legged robot on flat ground that is told how fast to go and to turn. Each leg has a
    hip, a thigh and a calf motor; all numbers are those of a Unitree Go1.

    It weighs 13 kg, stands 0.28 m tall and starts at rest in its standing posture, facing +x; z is
    up. Each of the twelve actions is a joint's target, up to 0.3 rad from the standing posture,
    which a PD controller (30 N·m/rad, 0.7 N·m·s/rad) drives the joint to. An episode lasts 10 s at
    50 control steps a second, with one command for all of it: forward up to ±1 m/s, sideways up to
    ±0.5 m/s and turn up to ±1 rad/s, each drawn evenly, in the torso's own frame. It ends early
    when the torso comes near the ground or tips over.
    """

    variables = (
        Variable(
            "commanded_velocity_b",
            (2,),
            "m/s",
            "body",
            "commanded velocity in the torso's own frame: ahead (±1), to its left (±0.5); constant"
            " in an episode",
            (-FASTEST_COMMAND[0], FASTEST_COMMAND[0]),
        ),
        Variable(
            "commanded_yaw_rate",
            (),
            "rad/s",
            "body",
            "commanded turn rate about the torso's up axis, positive to the left; constant in an"
            " episode",
            (-FASTEST_COMMAND[2], FASTEST_COMMAND[2]),
        ),
        Variable(
            "torso_velocity_b",
            (3,),
            "m/s",
            "body",
            "velocity of the torso's centre in its own frame: ahead, to its left, along its up"
            " axis; the command is compared with the first two",
        ),
        Variable(
            "torso_angular_velocity_b",
            (3,),
            "rad/s",
            "body",
            "angular velocity of the torso in its own frame: roll, pitch, yaw rate; the command is"
            " compared with the last",
        ),
        Variable(
            "torso_position_w",
            (3,),
            "m",
            "world",
            "position of the torso's centre: x and y (0 at the start), z (height)",
        ),
        orientation_variable(),
        Variable(
            "torso_height",
            (),
            "m",
            "world",
            f"height of the torso's centre above the ground; {STANDING_HEIGHT:g} when standing,"
            f" below {LOWEST_TORSO:g} the episode ends",
            (0.0, 1.0),
        ),
        Variable(
            "torso_upright",
            (),
            "1",
            "world",
            "upright projection of the torso: 1 is level, 0 is on its side; below"
            f" {LEAST_UPRIGHT:g} the episode ends",
            (-1.0, 1.0),
        ),
        Variable(
            "gravity_direction_b",
            (3,),
            "1",
            "body",
            "direction of gravity in the torso's own frame, a unit vector: ahead, left, up;"
            " (0, 0, -1) is level",
            (-1.0, 1.0),
        ),
        Variable(
            "joint_positions",
            (12,),
            "rad",
            "joint",
            f"joint angles of {JOINTS}; standing 0, 0.9, -1.8 each. Hips within ±0.86 (positive:"
            " leg to the left), thighs -0.69 to 4.5, calves -2.82 to -0.89 (positive: foot to the"
            " back)",
        ),
        Variable(
            "joint_offsets",
            (12,),
            "rad",
            "joint",
            f"joint angles less those of the standing posture, of {JOINTS}; 0 when standing",
        ),
        velocity_variable(JOINTS, 12),
        Variable(
            "joint_target_offsets",
            (12,),
            "rad",
            "joint",
            f"targets of this step less the standing posture, of {JOINTS}:"
            f" {TARGET_RANGE:g} times the action",
            (-TARGET_RANGE, TARGET_RANGE),
        ),
        Variable(
            "joint_torques",
            (12,),
            "N·m",
            "joint",
            f"torques of the motors of {JOINTS}; at most 23.7 for hips and thighs, 35.55 for"
            " calves; 5 at the calves when standing",
            (-TORQUE, TORQUE),
        ),
        MOTOR_POWER,
        Variable(
            "foot_contact_forces",
            (4,),
            "N",
            "world",
            f"force with which each foot ({FEET}) presses on the ground; 0 in the air, 32 each when"
            " standing",
        ),
        Variable(
            "feet_in_contact",
            (4,),
            "1",
            "world",
            f"1 for each foot ({FEET}) that touches the ground, else 0",
            (0.0, 1.0),
        ),
        Variable(
            "foot_heights",
            (4,),
            "m",
            "world",
            f"height of the centre of each foot ({FEET}) above the ground; 0.02 on it",
        ),
        Variable(
            "foot_velocities_w",
            (4, 3),
            "m/s",
            "world",
            f"velocity of each foot ({FEET}): x, y, z (up); 0 for a foot that stands",
        ),
        Variable(
            "foot_air_times",
            (4,),
            "s",
            "-",
            f"time since each foot ({FEET}) last touched the ground, or since the start; 0 while it"
            " touches. Right at a touchdown the swing's length is in previous_foot_air_times",
            (0.0, 10.0),
        ),
        Variable(
            "time_left",
            (),
            "s",
            "-",
            "time until the episode's full length of 10 s is reached; also at a fall",
            (0.0, 10.0),
        ),
    )
    observation_channels = (
        Channel(
            "torso_velocity_b", ("ahead", "left", "up"), "m/s", "body", "of the torso's centre"
        ),
        Channel(
            "torso_angular_velocity_b",
            ("roll", "pitch", "yaw"),
            "rad/s",
            "body",
            "of the torso",
            scale=0.25,
        ),
        Channel("gravity_direction_b", ("ahead", "left", "up"), "1", "body", "(0, 0, -1) is level"),
        Channel("commanded_velocity_b", ("ahead", "left"), "m/s", "body", "the episode's command"),
        Channel("commanded_yaw_rate", (), "rad/s", "body", "the episode's command"),
        Channel("joint_offsets", MOTORS, "rad", "joint", "angles less the standing posture's"),
        Channel("joint_velocities", MOTORS, "rad/s", "joint", "signs as the angles'", scale=0.05),
        last_actions(MOTORS),
    )
    action_channels = (
        Channel(
            "joint_target_offsets",
            MOTORS,
            "rad",
            "joint",
            "targets of the PD controllers less the standing posture (0, 0.9, -1.8 for each leg)",
            range=(-TARGET_RANGE, TARGET_RANGE),
        ),
    )
    parameters = (
        mass_of(
            "torso",
            low=0.8,
            high=1.6,
            doc="factor on the torso's mass and inertia, 5.2 kg: from no battery to a load of 3 kg",
            name="torso_mass",
        ),
        friction_of(
            low=0.4,
            high=1.6,
            doc="factor on the friction of feet and ground, 0.8: from wet tiles (0.3) to rubber on"
            " concrete (1.3)",
        ),
        strength_of(
            low=0.8,
            high=1.2,
            doc="factor on stiffness, damping and limits of the motors: warm or cold motors, a weak"
            " battery",
        ),
        action_delay(
            high=2.0,
            doc="control steps of 20 ms by which targets are late, rounded: that of a radio or"
            " a slow computer",
        ),
        push_on(
            "torso",
            high=8.0,
            doc="push of the torso in a random horizontal direction every 2 s, N·s; the largest"
            " changes the robot's speed by 0.6 m/s",
        ),
    )
    motors = MOTORS
    foot_sensors = tuple(f"{leg}_force" for leg in LEGS)
    lowest_torso = LOWEST_TORSO
    least_upright = LEAST_UPRIGHT
    model_file = "quadruped.xml"
    num_observations = 48
    num_actions = 12
    max_episode_length = 500
    control_dt = 0.02
    termination_causes = ("torso_too_low", "tipped_over", "unstable_physics")
    termination_conditions = ends(LOWEST_TORSO, LEAST_UPRIGHT)

    def __init__(self, num_envs: int, device: torch.device | str = "cpu", seed: int = 0) -> None:
        super().__init__(num_envs, device, seed)
        self.applied_torques = self.sensor([f"{motor}_torque" for motor in MOTORS])
        self.feet = self.site([f"{leg}_foot" for leg in LEGS])
        self.standing = torch.tensor(4 * STANDING, device=self.device)
        self.fastest = torch.tensor(FASTEST_COMMAND, device=self.device)
        self.commands = torch.zeros(num_envs, 3, device=self.device)
        """Ahead and left in m/s, turn in rad/s."""
        self.air_times = torch.zeros(num_envs, 4, device=self.device)

    def simulate(self) -> None:
        super().simulate()
        self.air_times = (self.air_times + self.control_dt) * (self.forces.value <= 0.0)

    def compute_observations(self) -> None:
        """Velocities, gravity's direction, command, joint angles and velocities, last action."""
        torch.cat(
            (
                self.sensors["torso_velocity_b"],
                0.25 * self.root.angular_velocity_b,
                self._gravity_direction_b(),
                self.commands,
                self.limbs.position - self.standing,
                0.05 * self.limbs.velocity,
                self.actions,
            ),
            dim=1,
            out=self.obs_buf,
        )

    def _gravity_direction_b(self) -> Tensor:
        """The last row of the torso's rotation matrix, turned round. Shape: (num_envs, 3)."""
        w, x, y, z = self.root.orientation_w.unbind(dim=-1)
        return torch.stack(
            (2.0 * (w * y - x * z), -2.0 * (w * x + y * z), 2.0 * (x * x + y * y) - 1.0), dim=-1
        )

    def torques(self) -> Tensor:
        return self.applied_torques.value

    def own_values(self) -> Values:
        limbs, feet = self.limbs, self.feet
        steps_left = self.max_episode_length - self.progress_buf
        return {
            **super().own_values(),
            "commanded_velocity_b": self.commands[:, 0:2],
            "commanded_yaw_rate": self.commands[:, 2],
            "gravity_direction_b": self._gravity_direction_b,
            "joint_offsets": lambda: limbs.position - self.standing,
            "joint_target_offsets": lambda: TARGET_RANGE * self.actions,
            "foot_heights": lambda: feet.position_w[:, :, 2],
            "foot_velocities_w": lambda: feet.linear_velocity_w,
            "foot_air_times": self.air_times,
            "time_left": lambda: self.control_dt * steps_left.float(),
        }

    def place(self, env_ids: Tensor) -> None:
        """Stand, each joint up to 0.1 rad off, and draw the episode's command."""
        numbers = self.random.uniform(env_ids, 15, -1.0, 1.0)
        self.limbs.write(env_ids, position=self.standing + 0.1 * numbers[:, 0:12])
        self.commands[env_ids] = self.fastest * numbers[:, 12:15]
        self.air_times.index_fill_(0, env_ids, 0.0)
