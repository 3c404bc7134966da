"""Humanoid of capsules and spheres in MuJoCo."""

from __future__ import annotations

import torch

from eureka_agent.task import Channel, Variable

from .locomotion import (
    MOTOR_POWER,
    FreeRobot,
    Values,
    ends,
    heading_variables,
    joint_channels,
    last_actions,
    torso_channels,
    torso_variables,
    velocity_variable,
)

LOWEST_TORSO = 0.8
SIDES = ("right", "left")
GEARS = {
    "abdomen_z": 67.5,
    "abdomen_y": 67.5,
    "abdomen_x": 67.5,
    **{
        f"{side}_{joint}": gear
        for side in SIDES
        for joint, gear in (
            ("hip_x", 45.0),
            ("hip_z", 45.0),
            ("hip_y", 135.0),
            ("knee", 90.0),
            ("ankle_y", 22.5),
            ("ankle_x", 22.5),
        )
    },
    **{
        f"{side}_{joint}": gear
        for side in SIDES
        for joint, gear in (("shoulder_y", 67.5), ("shoulder_x", 67.5), ("elbow", 45.0))
    },
}
"""Largest torque of each motor, N·m, as the MJCF has it."""
MOTORS = tuple(GEARS)
STRONGEST = max(GEARS.values())
JOINTS = (
    "abdomen (z twists, y bends, x leans); right hip (x, z, y), knee, ankle (y, x); the same of the"
    " left leg; right shoulder (y, x), elbow; the same of the left arm"
)


class Humanoid(FreeRobot):
    """A humanoid on flat ground: trunk, head, two legs and two arms with 21 motors.

    It is 1.56 m tall, weighs 42 kg, starts upright at x = 0 with hanging arms, facing +x, and moves
    in three dimensions; z is up. Left alone it falls within a second or two. Each action is a
    motor's torque as a part of its largest: hips bend with 135 N·m, knees 90, trunk and shoulders
    67.5, hips sideways and turning and elbows 45, ankles 22.5. An episode lasts 12.8 s at 62.5
    control steps a second and ends early when the torso drops.
    """

    variables = (
        *torso_variables("chest", "upright", "the trunk's", "pitch (positive falls forward)"),
        Variable(
            "torso_height",
            (),
            "m",
            "world",
            "height of the chest's centre above the ground; 1.28 when standing, below"
            f" {LOWEST_TORSO:g} the episode ends",
            (0.0, 3.0),
        ),
        Variable(
            "torso_upright",
            (),
            "1",
            "world",
            "upright projection of the chest: 1 is upright, 0 is lying",
            (-1.0, 1.0),
        ),
        *heading_variables("chest"),
        Variable(
            "joint_positions",
            (21,),
            "rad",
            "joint",
            f"joint angles of {JOINTS}; 0 when standing straight with hanging arms. Positive bends"
            " the trunk forward and to the left, swings limbs forward (y) and outward (x, z), bends"
            " knees and elbows, raises toes",
        ),
        Variable(
            "joint_positions_scaled",
            (21,),
            "1",
            "joint",
            f"joint angles of {JOINTS}, scaled to their limits: -1 at the lower limit, 1 at the"
            " upper; straight knees are at -0.94",
            (-1.0, 1.0),
        ),
        velocity_variable(JOINTS, 21),
        Variable(
            "joint_limit_nearness",
            (21,),
            "1",
            "joint",
            f"how near joints are to a limit: 0 mid-range, 1 at the limit; {JOINTS}",
            (0.0, 1.0),
        ),
        Variable(
            "joint_torques",
            (21,),
            "N·m",
            "joint",
            f"torques that the motors apply in this step: {JOINTS}",
            (-STRONGEST, STRONGEST),
        ),
        Variable(
            "motor_strengths",
            (21,),
            "1",
            "joint",
            "largest torque of each motor as a part of the strongest one's; constant: 1 for"
            f" bending hips, 0.17 for ankles; {JOINTS}",
            (0.0, 1.0),
        ),
        MOTOR_POWER,
        Variable(
            "foot_positions_w",
            (2, 3),
            "m",
            "world",
            "position of the middle of the right and of the left foot: x, y, z; z is 0.02 on the"
            " ground",
        ),
        Variable(
            "foot_contact_forces",
            (2,),
            "N",
            "world",
            "force with which the right and the left foot press on the ground; 0 in the air, 204"
            " each when standing",
        ),
        Variable(
            "feet_in_contact",
            (2,),
            "1",
            "world",
            "1 for each foot (right, left) that touches the ground, else 0",
            (0.0, 1.0),
        ),
    )
    observation_channels = (
        *torso_channels("chest", turn_scale=0.25),
        *joint_channels(MOTORS),
        Channel("feet_in_contact", SIDES, "1", "world", "1 for a foot that touches the ground"),
        last_actions(MOTORS),
    )
    action_channels = (
        Channel(
            "actions",
            MOTORS,
            "1",
            "joint",
            "parts of the motors' largest torques, signs as the angles'. In N·m these are 67.5 for"
            " the abdomen and the shoulders, 45 for hip x, hip z and elbow, 135 for hip y, 90 for"
            " the knee, 22.5 for the ankle",
            range=(-1.0, 1.0),
        ),
    )
    motors = MOTORS
    foot_sensors = tuple(f"{side}_foot_force" for side in SIDES)
    lowest_torso = LOWEST_TORSO
    model_file = "humanoid.xml"
    num_observations = 77
    num_actions = 21
    max_episode_length = 800
    control_dt = 0.016
    position_noise = 0.05
    velocity_noise = 0.05
    termination_causes = ("torso_too_low", "unstable_physics")
    termination_conditions = ends(LOWEST_TORSO)

    def __init__(self, num_envs: int, device: torch.device | str = "cpu", seed: int = 0) -> None:
        super().__init__(num_envs, device, seed)
        self.feet_w = self.sensor([f"{side}_foot_w" for side in SIDES])
        self.torque = torch.tensor(tuple(GEARS.values()), device=self.device)

    def compute_observations(self) -> None:
        """Height, up vector, heading, body-frame velocities, joints, feet and the last action."""
        torch.cat(
            (
                self.root.position_w[:, 2:3],
                self.sensors["up_w"],
                self.sensors["heading_w"][:, 0:2],
                self.sensors["torso_velocity_b"],
                0.25 * self.root.angular_velocity_b,
                self.limbs.scaled_position,
                0.1 * self.limbs.velocity,
                (self.forces.value > 0.0).float(),
                self.actions,
            ),
            dim=1,
            out=self.obs_buf,
        )

    def own_values(self) -> Values:
        return {
            **super().own_values(),
            "motor_strengths": lambda: (self.torque / STRONGEST).expand(self.num_envs, -1),
            "foot_positions_w": lambda: self.feet_w.value.unflatten(1, (2, 3)),
        }
