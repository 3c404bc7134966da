"""Planar one-legged hopper in MuJoCo."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from eureka_agent.simulation.mujoco_parameters import (
    action_delay,
    damping_of,
    friction_of,
    mass_of,
    push_on,
    strength_of,
)
from eureka_agent.task import Channel, Variable

from .locomotion import Robot, Values, joint_variables, torque_channel

TORQUE = 200.0
LOWEST_TORSO = 0.7
LARGEST_PITCH = 0.6
JOINTS = ("hip", "knee", "ankle")
TURN = 2.0 * math.pi
LEANING = 2.0 * LARGEST_PITCH
"""Part of a whole turn that a flip may lack, rad: one may take off and land leaning."""
HALF_TORSO, THIGH, RADIUS = 0.2, 0.45, 0.05
"""Half the torso's length, the thigh's, and the radius of both in m, as the MJCF has them."""
DEFAULT_TASK = "run"


class Hopper(Robot):
    """A one-legged robot in the vertical plane: torso, thigh, shank and foot, joined by hip, knee
    and ankle motors.

    It stands 1.4 m tall, weighs 16 kg and moves forward along +x by hopping; z is up. Three
    actions, hip, knee and ankle, turn the joints. An episode lasts 8 s at 62.5 control steps a
    second and ends early when the robot falls. Tasks of flips let it turn over, and end only when
    the torso drops to the ground.
    """

    variables = (
        Variable(
            "torso_position_w",
            (2,),
            "m",
            "world",
            "position of the torso's centre: x (forward, 0 at the start), z (height; 1.25 when"
            " standing)",
        ),
        Variable(
            "torso_velocity_w", (2,), "m/s", "world", "velocity of the torso: x (forward), z (up)"
        ),
        Variable(
            "torso_height",
            (),
            "m",
            "world",
            "height of the torso's centre above the ground; 1.25 when standing, below"
            f" {LOWEST_TORSO:g} the episode ends (or lower: see the task's ends)",
            (0.0, 3.0),
        ),
        Variable(
            "torso_pitch",
            (),
            "rad",
            "world",
            f"pitch of the torso, 0 is upright, positive leans forward; beyond ±{LARGEST_PITCH:g}"
            " the episode ends, unless the task lets the robot turn over; jumps between ±π when"
            " upside down",
            (-math.pi, math.pi),
        ),
        Variable(
            "torso_pitch_velocity",
            (),
            "rad/s",
            "world",
            "angular velocity of the torso's pitch; positive falls forward",
        ),
        Variable(
            "torso_upright",
            (),
            "1",
            "world",
            "cosine of the torso's pitch, its upright projection: 1 is upright",
            (-1.0, 1.0),
        ),
        *joint_variables(
            "hip, knee, ankle",
            3,
            "0 when standing straight; hip and knee bend to -2.6, the ankle to ±0.79",
            TORQUE,
        ),
        Variable(
            "foot_position_w",
            (2,),
            "m",
            "world",
            "position of the foot's middle: x (forward), z (height; 0.05 on the ground)",
        ),
        Variable(
            "foot_velocity_w",
            (2,),
            "m/s",
            "world",
            "velocity of the foot's middle: x (forward), z (up)",
        ),
        Variable(
            "foot_contact_force",
            (),
            "N",
            "world",
            "force with which the foot presses on the ground; 0 in the air, 155 when standing"
            " still",
        ),
        Variable(
            "foot_in_contact",
            (),
            "1",
            "world",
            "1 while the foot touches the ground, 0 in flight",
            (0.0, 1.0),
        ),
        Variable(
            "pitch_turned",
            (),
            "rad",
            "world",
            "pitch that the torso has turned since the episode's start, without jumps: 6.28 after"
            " one turn forward, -6.28 after one backward",
        ),
        Variable(
            "body_clearance",
            (),
            "m",
            "world",
            "height of the lowest point of torso and thigh above the ground, the knee with it; the"
            " foot and the shank's other end are left out. 0.55 when standing, 0 or less when the"
            " body touches the ground",
        ),
        Variable(
            "flip_turn",
            (),
            "rad",
            "world",
            "pitch turned since the robot last stood on its foot or touched the ground with its"
            " body: 0 on the ground, grows to 6.28 in a flip forward, to -6.28 in one backward",
        ),
        Variable(
            "front_flips",
            (),
            "1",
            "-",
            "flips forward landed since the episode's start: a turn of 5.08 rad and more without"
            " the body touching the ground, and then the foot on the ground, the torso within"
            f" ±{LARGEST_PITCH:g} rad of upright and above {LOWEST_TORSO:g} m",
        ),
        Variable(
            "back_flips", (), "1", "-", "flips backward landed since the episode's start, likewise"
        ),
    )
    observation_channels = (
        Channel(
            "torso_height", (), "m", "world", "height of the torso's centre; 1.25 when standing"
        ),
        Channel("torso_pitch", (), "rad", "world", "positive leans forward, within ±π"),
        Channel(
            "joint_positions",
            JOINTS,
            "rad",
            "joint",
            "0 when standing straight; positive swings the limb forward",
        ),
        Channel("torso_velocity_w", ("x", "z"), "m/s", "world", "forward and up, clipped to ±10"),
        Channel(
            "torso_pitch_velocity", (), "rad/s", "world", "positive falls forward; clipped to ±10"
        ),
        Channel("joint_velocities", JOINTS, "rad/s", "joint", "clipped to ±10"),
        Channel("foot_in_contact", (), "1", "world", "1 while the foot touches the ground, else 0"),
    )
    action_channels = (torque_channel(JOINTS, TORQUE),)
    parameters = (
        mass_of(
            "torso",
            low=0.5,
            high=2.0,
            doc="factor on the torso's mass and inertia, 3.7 kg: from half of it to a load of"
            " its own weight",
            name="torso_mass",
        ),
        friction_of(
            low=0.3,
            high=1.5,
            doc="factor on the friction of the foot, 2: from wet ground (0.6) to soft rubber (3)",
        ),
        strength_of(
            low=0.7,
            high=1.2,
            doc="factor on the motors' torques: a weak battery, or stronger motors",
        ),
        damping_of(
            ("hip", "knee", "ankle"),
            low=0.5,
            high=3.0,
            doc="factor on the joints' damping, 1 N·m·s/rad: worn or stiff bearings",
            name="joint_damping",
        ),
        action_delay(
            high=2.0,
            doc="control steps of 16 ms by which torques are late, rounded: a slow bus or computer",
        ),
        push_on(
            "torso",
            high=8.0,
            doc="push of the torso forward or backward every 2 s, N·s; the largest changes the"
            " robot's speed by 0.5 m/s",
            axes="x",
        ),
    )
    motors = JOINTS
    torque = TORQUE
    model_file = "hopper.xml"
    num_observations = 12
    num_actions = 3
    max_episode_length = 500
    control_dt = 0.016
    position_noise = 0.01
    velocity_noise = 0.01
    termination_causes = ("torso_too_low", "tipped_over", "unstable_physics")
    termination_conditions: Mapping[str, str] = {
        "torso_too_low": f"torso_height below {LOWEST_TORSO:g} m",
        "tipped_over": f"torso_pitch beyond ±{LARGEST_PITCH:g} rad",
    }

    def __init__(
        self,
        num_envs: int,
        device: torch.device | str = "cpu",
        seed: int = 0,
        *,
        lowest_torso: float = LOWEST_TORSO,
        ends_when_tipped: bool = True,
    ) -> None:
        """`lowest_torso` is the height in m below which an episode ends."""
        super().__init__(num_envs, device, seed)
        self.lowest_torso = lowest_torso
        self.ends_when_tipped = ends_when_tipped
        self.termination_conditions = {
            **self.termination_conditions,
            "torso_too_low": f"torso_height below {lowest_torso:g} m",
        }
        if not ends_when_tipped:
            self.termination_conditions["tipped_over"] = "never in this task"
        self.slides = self.joint(("slide_x", "slide_z"))
        self.height = self.joint("slide_z")
        self.pitch = self.joint("pitch")
        self.posture = self.joint(("slide_z", "pitch", *JOINTS))
        self.movement = self.joint(("slide_x", "slide_z", "pitch", *JOINTS))
        self.flip_start, self.front_flips, self.back_flips = torch.zeros(
            3, num_envs, device=self.device
        )
        """Pitch from which a flip counts, and flips landed."""

    def simulate(self) -> None:
        super().simulate()
        self.count_flips()

    def count_flips(self) -> None:
        """Count turns at a landing. A flip begins where the robot last stood, or lay."""
        turned = self.pitch.position - self.flip_start
        stands = (
            (self.sensors["foot_force"] > 0.0)
            & (self._leaning().abs() < LARGEST_PITCH)
            & (self.height.position > LOWEST_TORSO)
        )
        lies = (self._body_clearance() <= 0.0) | self.unstable
        landed = stands & ~lies
        self.front_flips += landed * ((turned + LEANING) / TURN).floor().clamp(min=0.0)
        self.back_flips += landed * ((LEANING - turned) / TURN).floor().clamp(min=0.0)
        self.flip_start = torch.where(stands | lies, self.pitch.position, self.flip_start)

    def _leaning(self) -> Tensor:
        """The pitch within ±π."""
        pitch = self.pitch.position
        within = torch.remainder(pitch + math.pi, TURN) - math.pi
        return torch.where(pitch.abs() <= math.pi, pitch, within)

    def _body_clearance(self) -> Tensor:
        """Height of the lowest of the torso's ends and the knee, less the limbs' radius."""
        pitch = self.pitch.position
        thigh = pitch - self.limbs.position[:, 0]
        middle = self.height.position
        end = HALF_TORSO * torch.cos(pitch)
        knee = middle - end - THIGH * torch.cos(thigh)
        return torch.minimum(middle - end.abs(), knee) - RADIUS

    def compute_observations(self) -> None:
        """Height, pitch, joint angles, velocities (up to ±10) and the foot's contact."""
        self.obs_buf[:, 0:5] = self.posture.position
        self.obs_buf[:, 1] = self._leaning()
        self.obs_buf[:, 5:11] = self.movement.velocity.clamp(-10.0, 10.0)
        self.obs_buf[:, 11] = self.sensors["foot_force"] > 0.0

    def own_values(self) -> Values:
        sensors = self.sensors
        return {
            **super().own_values(),
            "torso_position_w": lambda: self.slides.position,
            "torso_velocity_w": lambda: self.slides.velocity,
            "torso_height": lambda: self.height.position,
            "torso_pitch": self._leaning,
            "torso_pitch_velocity": lambda: self.pitch.velocity,
            "torso_upright": lambda: torch.cos(self.pitch.position),
            "foot_position_w": lambda: sensors["foot_position"][:, 0:3:2],
            "foot_velocity_w": lambda: sensors["foot_velocity"][:, 0:3:2],
            "foot_contact_force": sensors["foot_force"],
            "foot_in_contact": lambda: (sensors["foot_force"] > 0.0).float(),
            "pitch_turned": lambda: self.pitch.position,
            "body_clearance": self._body_clearance,
            "flip_turn": lambda: self.pitch.position - self.flip_start,
            "front_flips": self.front_flips,
            "back_flips": self.back_flips,
        }

    def compute_failures(self) -> dict[str, Tensor]:
        too_low = self.height.position < self.lowest_torso
        tipped_over = (self.pitch.position.abs() > LARGEST_PITCH) & self.ends_when_tipped
        return {"torso_too_low": too_low, "tipped_over": tipped_over & ~too_low}

    def place(self, env_ids: Tensor) -> None:
        super().place(env_ids)
        for count in (self.flip_start, self.front_flips, self.back_flips):
            count.index_fill_(0, env_ids, 0.0)
