"""An arm with a two-finger gripper before a cabinet with a drawer, in MuJoCo."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from eureka_agent.simulation.mujoco_task import MujocoTask
from eureka_agent.task import Channel, Variable

ARM = tuple(f"joint{number}" for number in range(1, 8))
FINGERS = ("left_finger", "right_finger")
DRIVES = (*ARM, *FINGERS)
XYZ = ("x", "y", "z")
JOINT_SPEED = 3.0
"""Speed at which an action of 1 moves the target of an arm's joint, rad/s."""
FINGER_SPEED = 0.3
"""Speed at which an action of 1 moves the target of a finger, m/s."""
START = (1.157, -1.066, -0.155, -2.239, -1.841, 1.003, 0.469, 0.035, 0.035)
"""Middle of the start positions, rad and m, as in IsaacGymEnvs."""
START_SPREAD = 0.125
"""Largest distance from it, rad; fingers end at their limits."""
DRAWER_TRAVEL = 0.45
DEFAULT_TASK = "open"


class Cabinet(MujocoTask):
    """A robot arm with seven joints and a gripper of two fingers, which has to open the drawer of a
    cabinet in front of it.

    The arm has the joints, lengths and limits of a Franka Emika Panda; its weight is compensated.
    x points ahead from the arm's base at 0 to the cabinet, y to the left, z up. The drawer's handle
    is a horizontal bar along y, 1.8 cm thick and 14 cm long, with room for fingers behind it. It is
    0.65 m ahead of the base and 0.8 m high while the drawer is closed, and comes nearer along -x as
    the drawer opens, by 0.45 m at most. An episode starts with the gripper some 0.4 m before the
    handle, turned to the right, its fingers above each other and anywhere between closed and open,
    mostly at one of these. They have round tips, so that even closed ones part where they are
    pushed onto the handle. The nine actions move the targets of the seven joints (by up to 0.06 rad
    in a step) and of the two fingers (by up to 6 mm); the arm follows with a delay of about 0.2 s.
    An episode lasts 6 s at 50 control steps a second; nothing ends it early.
    """

    variables = (
        Variable("joint_positions", (7,), "rad", "joint", "angles of joints 1 (base) to 7 (wrist)"),
        Variable("joint_velocities", (7,), "rad/s", "joint", "angular velocities of joints 1 to 7"),
        Variable(
            "finger_openings",
            (2,),
            "m",
            "joint",
            "distance of the left, right finger from the gripper's middle: 0 is closed, 0.04 open",
            (0.0, 0.04),
        ),
        Variable(
            "drive_targets",
            (9,),
            "rad or m",
            "joint",
            "positions to which the motors drive joints 1 to 7 (rad), left and right finger (m)",
        ),
        Variable(
            "grip_position_w",
            (3,),
            "m",
            "world",
            "point midway between the fingers' pads, where an object is gripped: x, y, z",
        ),
        Variable("grip_velocity_w", (3,), "m/s", "world", "velocity of that point: x, y, z"),
        Variable(
            "grip_forward_w",
            (3,),
            "1",
            "world",
            "direction in which the fingers point: (1, 0, 0) is straight at the drawer",
            (-1.0, 1.0),
        ),
        Variable(
            "grip_up_w",
            (3,),
            "1",
            "world",
            "direction from the right finger to the left one: (0, 0, 1) is the left one straight"
            " above, so that the fingers can close around the handle",
            (-1.0, 1.0),
        ),
        Variable(
            "left_finger_position_w",
            (3,),
            "m",
            "world",
            "root of the left finger, 0.04 m behind the grip point: x, y, z",
        ),
        Variable(
            "right_finger_position_w",
            (3,),
            "m",
            "world",
            "root of the right finger, 0.04 m behind the grip point: x, y, z",
        ),
        Variable(
            "handle_position_w",
            (3,),
            "m",
            "world",
            "middle of the drawer's handle: x, y, z; (0.65, 0, 0.8) with the drawer closed",
        ),
        Variable(
            "handle_error_w",
            (3,),
            "m",
            "world",
            "vector from the grip point to the handle: x, y, z",
        ),
        Variable("handle_distance", (), "m", "world", "distance of the grip point from the handle"),
        Variable(
            "fingers_around_handle",
            (),
            "1",
            "-",
            "1 while the left finger's root is higher than the handle and the right one's lower,"
            " however far away they are, else 0",
            (0.0, 1.0),
        ),
        Variable(
            "fingers_touching",
            (2,),
            "1",
            "-",
            "1 for each finger (left, right) that touches the handle, else 0",
            (0.0, 1.0),
        ),
        Variable(
            "drawer_opening",
            (),
            "m",
            "joint",
            f"distance by which the drawer is open: 0 is closed, {DRAWER_TRAVEL:g} fully open",
        ),
        Variable(
            "drawer_velocity", (), "m/s", "joint", "speed of the drawer; positive where it opens"
        ),
    )
    observation_channels = (
        Channel("drive_positions_scaled", DRIVES, "1", "joint", "-1 lower, 1 upper limit"),
        Channel("drive_velocities", DRIVES, "rad/s or m/s", "joint", "of joints and fingers", 0.1),
        Channel(
            "drive_errors_scaled",
            DRIVES,
            "1",
            "joint",
            "target less position, as a share of half the range",
        ),
        Channel("handle_error_w", XYZ, "m", "world", "vector from the grip point to the handle"),
        Channel(
            "handle_velocity_from_grip_w",
            XYZ,
            "m/s",
            "world",
            "velocity of the handle less that of the grip point",
        ),
        Channel("grip_position_w", XYZ, "m", "world", "with the handle's: how far it is open"),
    )
    action_channels = (
        Channel(
            "joint_target_speeds",
            ARM,
            "rad/s",
            "joint",
            "speeds of the joints' targets",
            range=(-JOINT_SPEED, JOINT_SPEED),
        ),
        Channel(
            "finger_target_speeds",
            FINGERS,
            "m/s",
            "joint",
            "speeds of the fingers' targets; positive opens",
            range=(-FINGER_SPEED, FINGER_SPEED),
        ),
    )
    device_types = ("cpu", "cuda")
    model_file = "cabinet.xml"
    num_observations = 36
    num_actions = 9
    max_episode_length = 300
    control_dt = 0.02
    termination_causes = ("unstable_physics",)
    termination_conditions: Mapping[str, str] = {}
    masses_and_sizes = ("the drawer resists by 2 N and by 10 N per m/s",)

    def __init__(self, num_envs: int, device: torch.device | str = "cpu", seed: int = 0) -> None:
        super().__init__(num_envs, device, seed)
        self.drives = self.joint(list(DRIVES))
        self.drawer = self.joint("drawer")
        self.touch = self.contact(list(FINGERS), "handle")
        self.targets = torch.zeros(num_envs, 9, device=self.device)
        self._half_range = (self.drives.upper - self.drives.lower) / 2.0
        speeds = [JOINT_SPEED] * 7 + [FINGER_SPEED] * 2
        self._step = self.control_dt * torch.tensor([speeds], device=self.device)
        self._start = torch.tensor([START], device=self.device)
        self._opens = torch.tensor([[-1.0, 0.0, 0.0]], device=self.device)

    def pre_physics_step(self, actions: Tensor) -> None:
        """Move the motors' targets within the joints' limits."""
        moved = self.targets + self._step * actions
        self.targets = torch.clamp(moved, self.drives.lower, self.drives.upper)
        self.ctrl[:] = self.targets

    @property
    def handle_error(self) -> Tensor:
        """Shape: (num_envs, 3)."""
        return self.sensors["handle"] - self.sensors["grip"]

    def compute_observations(self) -> None:
        """The drives, and where the handle is and moves, as seen from the grip point."""
        torch.cat(
            (
                self.drives.scaled_position,
                0.1 * self.drives.velocity,
                (self.targets - self.drives.position) / self._half_range,
                self.handle_error,
                self._opens * self.drawer.velocity.unsqueeze(-1) - self.sensors["grip_velocity"],
                self.sensors["grip"],
            ),
            dim=1,
            out=self.obs_buf,
        )

    def compute_variables(self) -> dict[str, Tensor | Callable[[], Tensor]]:
        sensors, drives = self.sensors, self.drives
        left, right, handle = (sensors[name] for name in (*FINGERS, "handle"))

        def around() -> Tensor:
            return ((left[:, 2] > handle[:, 2]) & (right[:, 2] < handle[:, 2])).float()

        return {
            "joint_positions": lambda: drives.position[:, 0:7],
            "joint_velocities": lambda: drives.velocity[:, 0:7],
            "finger_openings": lambda: drives.position[:, 7:9].clamp(0.0, 0.04),
            "drive_targets": self.targets,
            "grip_position_w": sensors["grip"],
            "grip_velocity_w": sensors["grip_velocity"],
            "grip_forward_w": sensors["grip_forward"],
            "grip_up_w": sensors["grip_up"],
            "left_finger_position_w": left,
            "right_finger_position_w": right,
            "handle_position_w": handle,
            "handle_error_w": lambda: self.handle_error,
            "handle_distance": lambda: self.handle_error.norm(dim=-1),
            "fingers_around_handle": around,
            "fingers_touching": lambda: self.touch.is_touching.float(),
            "drawer_opening": lambda: self.drawer.position,
            "drawer_velocity": lambda: self.drawer.velocity,
        }

    def place(self, env_ids: Tensor) -> None:
        """The arm near its start position, at rest there, and the drawer closed."""
        spread = START_SPREAD * (2.0 * self.random.uniform(env_ids, 9) - 1.0)
        start = torch.clamp(self._start + spread, self.drives.lower, self.drives.upper)
        self.drives.write(env_ids, position=start)
        self.targets.index_copy_(0, env_ids, start)
        self.ctrl.index_copy_(0, env_ids, start.to(self.ctrl))
