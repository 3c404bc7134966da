"""Robots of MuJoCo that move by motors at their joints, with what ant, humanoid, quadruped and
hopper have in common."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import ClassVar

import torch
from torch import Tensor

from eureka_agent.simulation.mujoco_task import MujocoTask
from eureka_agent.task import Channel, Variable

Values = dict[str, Tensor | Callable[[], Tensor]]

MOTOR_POWER = Variable(
    "motor_power",
    (),
    "W",
    "joint",
    "mechanical power of the motors: sum of |torque · angular velocity|",
)


class Robot(MujocoTask):
    """A robot with motors at its joints. `compute_variables` gives those of `own_values` and of its
    bases that the class declares, in their order."""

    device_types = ("cpu", "cuda")
    motors: ClassVar[tuple[str, ...]]
    """Joints with a motor, in the order of the actions."""
    torque: float | Tensor
    """Largest torque of the motors, N·m: of all, or shape (num_actions,)."""

    def __init__(self, num_envs: int, device: torch.device | str = "cpu", seed: int = 0) -> None:
        super().__init__(num_envs, device, seed)
        self.limbs = self.joint(self.motors)

    def torques(self) -> Tensor:
        """Torques that the motors apply in this step, N·m. Shape: (num_envs, num_actions)."""
        return self.torque * self.actions

    def own_values(self) -> Values:
        """Variables of this robot by name."""
        limbs = self.limbs
        return {
            "joint_positions": lambda: limbs.position,
            "joint_positions_scaled": lambda: limbs.scaled_position.clamp(-1.0, 1.0),
            "joint_velocities": lambda: limbs.velocity,
            "joint_limit_nearness": lambda: limbs.scaled_position.abs().clamp(max=1.0),
            "joint_torques": self.torques,
            "motor_power": lambda: (self.torques() * limbs.velocity).abs().sum(dim=-1),
        }

    def compute_variables(self) -> Values:
        values = self.own_values()
        return {each.name: values[each.name] for each in self.variables}


class FreeRobot(Robot):
    """A robot in three dimensions on feet. The MJCF has the free joint `root`, the sensors `up_w`,
    `torso_velocity_b` and perhaps `heading_w`, and a sensor of force for each foot."""

    foot_sensors: ClassVar[tuple[str, ...]]
    """Names of the sensors of the feet's forces on the ground, N."""
    lowest_torso: float
    """Height of the torso in m below which an episode ends."""
    least_upright: ClassVar[float | None] = None
    """Upright projection below which an episode ends by `tipped_over`; None: it does not."""

    def __init__(self, num_envs: int, device: torch.device | str = "cpu", seed: int = 0) -> None:
        super().__init__(num_envs, device, seed)
        self.root = self.free_joint("root")
        self.forces = self.sensor(self.foot_sensors)

    def own_values(self) -> Values:
        root, forces, sensors = self.root, self.forces, self.sensors

        def heading() -> Tensor:
            return sensors["heading_w"]

        return {
            **super().own_values(),
            "torso_position_w": lambda: root.position_w,
            "torso_orientation_w": lambda: root.orientation_w,
            "torso_velocity_w": lambda: root.linear_velocity_w,
            "torso_velocity_b": sensors["torso_velocity_b"],
            "torso_angular_velocity_b": lambda: root.angular_velocity_b,
            "torso_height": lambda: root.position_w[:, 2],
            "torso_upright": lambda: sensors["up_w"][:, 2],
            "heading_w": lambda: torch.nn.functional.normalize(heading()[:, 0:2], dim=-1),
            "heading_angle": lambda: torch.atan2(heading()[:, 1], heading()[:, 0]),
            "foot_contact_forces": lambda: forces.value,
            "feet_in_contact": lambda: (forces.value > 0.0).float(),
        }

    def compute_failures(self) -> dict[str, Tensor]:
        too_low = self.root.position_w[:, 2] < self.lowest_torso
        if self.least_upright is None:
            return {"torso_too_low": too_low}
        tipped_over = self.sensors["up_w"][:, 2] < self.least_upright
        return {"torso_too_low": too_low & ~tipped_over, "tipped_over": tipped_over}


# ── declarations ──────────────────────────────────────────────────────────────────────────────────


def ends(lowest_torso: float, least_upright: float | None = None) -> Mapping[str, str]:
    """`termination_conditions` of a `FreeRobot`."""
    conditions = {"torso_too_low": f"torso_height below {lowest_torso:g} m"}
    if least_upright is not None:
        conditions["tipped_over"] = f"torso_upright below {least_upright:g}"
    return conditions


def torso_variables(
    torso: str = "torso", rest: str = "level", axis: str = "its", pitch: str = "pitch"
) -> tuple[Variable, ...]:
    """Position, orientation and velocity in the world, velocity and turn rate in the body's frame.
    Words: the torso; how it rests; whose is the up axis; the pitch with its sign."""
    return (
        Variable(
            "torso_position_w",
            (3,),
            "m",
            "world",
            f"position of the {torso}'s centre: x (forward, 0 at the start), y (left), z (height)",
        ),
        orientation_variable(torso, rest),
        Variable(
            "torso_velocity_w",
            (3,),
            "m/s",
            "world",
            f"velocity of the {torso}: x (forward), y (left), z (up)",
        ),
        Variable(
            "torso_velocity_b",
            (3,),
            "m/s",
            "body",
            f"velocity of the {torso} in its own frame: ahead, to its left, along {axis} up axis",
        ),
        Variable(
            "torso_angular_velocity_b",
            (3,),
            "rad/s",
            "body",
            f"angular velocity of the {torso} in its own frame: roll, {pitch}, yaw rate",
        ),
    )


def orientation_variable(torso: str = "torso", rest: str = "level") -> Variable:
    """Orientation of the torso in the world."""
    return Variable(
        "torso_orientation_w",
        (4,),
        "1",
        "world",
        f"orientation of the {torso} as a quaternion w, x, y, z; (1, 0, 0, 0) is {rest} and"
        " faces +x",
        (-1.0, 1.0),
    )


def heading_variables(torso: str = "torso") -> tuple[Variable, ...]:
    """Direction in which the torso faces, as a vector and as an angle."""
    return (
        Variable(
            "heading_w",
            (2,),
            "1",
            "world",
            f"direction in which the {torso} faces, x and y of a unit vector; (1, 0) faces forward",
            (-1.0, 1.0),
        ),
        Variable(
            "heading_angle",
            (),
            "rad",
            "world",
            f"yaw angle between the {torso}'s heading and forward (+x); 0 faces forward, positive"
            " turned left",
            (-math.pi, math.pi),
        ),
    )


def joint_variables(joints: str, count: int, signs: str, torque: float) -> tuple[Variable, ...]:
    """Angles, velocities, torques and power of joints whose motors are alike. Words: the joints in
    their order; the angles' signs and limits."""
    return (
        Variable("joint_positions", (count,), "rad", "joint", f"joint angles of {joints}; {signs}"),
        Variable(
            "joint_positions_scaled",
            (count,),
            "1",
            "joint",
            f"joint angles of {joints} scaled to their limits: -1 at the lower limit, 1 at the"
            " upper",
            (-1.0, 1.0),
        ),
        velocity_variable(joints, count),
        Variable(
            "joint_limit_nearness",
            (count,),
            "1",
            "joint",
            f"how near {joints} are to a joint limit: 0 mid-range, 1 at the limit",
            (0.0, 1.0),
        ),
        Variable(
            "joint_torques",
            (count,),
            "N·m",
            "joint",
            f"torques that the motors of {joints} apply in this step",
            (-torque, torque),
        ),
        MOTOR_POWER,
    )


def velocity_variable(joints: str, count: int) -> Variable:
    """Angular velocities of the joints."""
    doc = f"angular velocities of {joints}"
    return Variable("joint_velocities", (count,), "rad/s", "joint", doc)


def torso_channels(torso: str, turn_scale: float = 1.0) -> tuple[Channel, ...]:
    """Channels of height, directions and velocities of the torso."""
    turning = ("roll", "pitch", "yaw")
    turn_rate = "torso_angular_velocity_b"
    return (
        Channel(
            "torso_height", (), "m", "world", f"height of the {torso}'s centre above the ground"
        ),
        Channel("torso_up_w", ("x", "y", "z"), "1", "world", f"direction of the {torso}'s up axis"),
        Channel(
            "torso_forward_w", ("x", "y"), "1", "world", f"direction of the {torso}'s forward axis"
        ),
        Channel(
            "torso_velocity_b", ("ahead", "left", "up"), "m/s", "body", f"velocity of the {torso}"
        ),
        Channel(turn_rate, turning, "rad/s", "body", f"of the {torso}", scale=turn_scale),
    )


def joint_channels(motors: tuple[str, ...]) -> tuple[Channel, ...]:
    """Channels of scaled angles and of velocities."""
    doc = "-1 at a joint's lower limit, 1 at its upper one"
    return (
        Channel("joint_positions_scaled", motors, "1", "joint", doc),
        Channel("joint_velocities", motors, "rad/s", "joint", "signs as the angles'", scale=0.1),
    )


def last_actions(motors: tuple[str, ...]) -> Channel:
    """Channel of the action before."""
    doc = "the action of the step before; 0 in an episode's first step"
    return Channel("last_actions", motors, "1", "joint", doc)


def torque_channel(motors: tuple[str, ...], torque: float) -> Channel:
    """Channel of actions that are torques."""
    doc = "of the motors, signs as the angles'"
    return Channel("joint_torques", motors, "N·m", "joint", doc, range=(-torque, torque))
