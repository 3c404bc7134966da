"""MetaWorld's Sawyer arm with ten objects, in the project's own MuJoCo simulation."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import mujoco
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from eureka_agent.errors import EnvironmentLoadError
from eureka_agent.simulation.mujoco_task import MujocoTask
from eureka_agent.task import Channel, Variable

from .assets import scene_file
from .scenes import LEAST_PUSH, SCENES

DEFAULT_TASK = "drawer_open"
STEP_LENGTH = 0.01
"""Distance by which an action of 1 moves the hand's target along an axis, m."""
HAND_LOW = (-0.5, 0.4)
HAND_HIGH = (0.5, 1.0, 0.5)
OPEN_WIDTH = 0.1
"""Distance of the claws that counts as fully open, m."""
SETTLING_STEPS = 250
"""Physics steps in which the hand gets to its start, once."""
HAND_DOWN = (0.5**0.5, 0.0, 0.5**0.5, 0.0)
"""Orientation at which the hand is held: its fingers point down."""
BLOCK = slice(9, 12)
"""The block's position in qpos; all other objects have one joint, at its first index."""
_CANDIDATES = 4
_MEMORY = 1 << 19
XYZ = ("x", "y", "z")


class MetaWorld(MujocoTask):
    """A Sawyer robot arm over a table whose hand, with two fingers that point down, moves an
    object: a drawer, a window, a button, a lock, a door, a block or a handle.

    x is to the right as seen by the robot's front, y is ahead (away from the robot's base at 0), z
    is up; the table's top is at z = 0. Actions 0 to 2 move the hand's target by up to 1 cm in a
    step (0.8 m/s), and the hand follows; action 3 closes the fingers (1) or opens them (-1). The
    object stands at another place in every episode, and the goal with it. An episode lasts 2.5 s at
    80 control steps a second; nothing ends it early.
    """

    variables = (
        Variable(
            "hand_position_w",
            (3,),
            "m",
            "world",
            "position of the hand (between the roots of the fingers): x, y, z; 0.2 high at first",
        ),
        Variable(
            "fingertips_position_w",
            (3,),
            "m",
            "world",
            "point midway between the two fingertips, 0.045 below the hand: x, y, z",
        ),
        Variable(
            "left_pad_position_w", (3,), "m", "world", "pad of the left finger (at +y): x, y, z"
        ),
        Variable(
            "right_pad_position_w", (3,), "m", "world", "pad of the right finger (at -y): x, y, z"
        ),
        Variable(
            "gripper_opening",
            (),
            "1",
            "-",
            "opening of the fingers: 1 is fully open (0.1 m), about 0.3 closed",
            (0.0, 1.0),
        ),
        Variable(
            "pads_touching",
            (2,),
            "1",
            "-",
            "1 for each finger's pad (left, right) that touches the object, else 0",
            (0.0, 1.0),
        ),
        Variable(
            "object_position_w",
            (3,),
            "m",
            "world",
            "position of the part to be moved (handle, button, tip of the lock, block): x, y, z",
        ),
        Variable(
            "goal_position_w",
            (3,),
            "m",
            "world",
            "position where object_position_w is to be, along the axes that goal_distance counts:"
            " x, y, z; fixed within an episode",
        ),
        Variable(
            "goal_distance",
            (),
            "m",
            "world",
            "distance from the object to the goal, along the axes that the task counts; success is"
            " decided by it",
        ),
        Variable(
            "reach_distance", (), "m", "world", "distance from the fingertips' middle to the object"
        ),
        Variable(
            "object_travel",
            (),
            "m",
            "world",
            "distance of the object from where it was at the episode's start",
        ),
        Variable(
            "object_progress",
            (),
            "1",
            "-",
            "share of the initial goal_distance that is done: 0 at the start, 1 with the object at"
            " the goal, negative farther away than at the start",
        ),
        Variable(
            "success",
            (),
            "1",
            "-",
            "1 while goal_distance is so small that the task counts as done, else 0",
            (0.0, 1.0),
        ),
        Variable(
            "start_fingertips_position_w",
            (3,),
            "m",
            "world",
            "fingertips_position_w at the episode's start: x, y, z",
        ),
        Variable(
            "start_object_position_w",
            (3,),
            "m",
            "world",
            "object_position_w at the episode's start: x, y, z",
        ),
        Variable("start_goal_distance", (), "m", "world", "goal_distance at the episode's start"),
    )
    observation_channels = (
        Channel("hand_position_w", XYZ, "m", "world", "position of the hand"),
        Channel("gripper_opening", (), "1", "-", "1 is fully open"),
        Channel("object_from_fingertips_w", XYZ, "m", "world", "vector to the object"),
        Channel("previous_hand_position_w", XYZ, "m", "world", "one control step before"),
        Channel("previous_gripper_opening", (), "1", "-", "one control step before"),
        Channel("previous_object_from_fingertips_w", XYZ, "m", "world", "one step before"),
        Channel("goal_from_fingertips_w", XYZ, "m", "world", "vector to the goal"),
    )
    action_channels = (
        Channel(
            "hand_motion",
            XYZ,
            "m",
            "world",
            "step of the hand's target",
            range=(-STEP_LENGTH, STEP_LENGTH),
        ),
        Channel(
            "gripper_effort",
            (),
            "1",
            "-",
            "1 closes the fingers, -1 opens them",
            range=(-1.0, 1.0),
        ),
    )
    device_types = ("cpu", "cuda")
    camera = "corner3"
    num_observations = 17
    num_actions = 4
    max_episode_length = 200
    control_dt = 0.0125
    termination_causes = ("unstable_physics",)
    termination_conditions: Mapping[str, str] = {}

    def __init__(
        self,
        num_envs: int,
        device: torch.device | str = "cpu",
        seed: int = 0,
        *,
        task: str = "drawer-open",
    ) -> None:
        """`task`: MetaWorld's name of the task, without its version."""
        if task not in SCENES:
            raise EnvironmentLoadError(
                f"MetaWorld's task {task!r} is not among those that are here",
                f"expected one of {', '.join(SCENES)}",
            )
        self.scene = scene = SCENES[task]
        self.model_file = str(scene_file(scene.file))
        super().__init__(num_envs, device, seed)
        self.masses_and_sizes = ("fingers of 0.03 m, 0.1 m apart when open", scene.told)
        self.hand = self.mocap("mocap")
        self.base = self.mocap(scene.placed) if scene.placed else None
        self.fingers = self.joint(["r_close", "l_close"])
        self.pads = self.contact(["leftpad", "rightpad"], scene.moving)
        # on the device here, since a copy in each reset would make a GPU wait
        self._settled = [
            torch.from_numpy(values).to(self.qpos)
            for values in _settle(self.model, scene.hand_start)
        ]
        low, high = (*HAND_LOW, scene.hand_lowest), HAND_HIGH
        self._bounds = torch.tensor([low, high], dtype=torch.float64, device=self.device)
        self._places = torch.tensor([scene.start_low, scene.start_high], device=self.device)
        self._goal = torch.tensor([scene.goal], device=self.device)
        self._offset = torch.tensor([scene.object_offset], device=self.device)
        self._axes = torch.tensor([scene.axes], device=self.device)
        self._hand_start = torch.tensor([scene.hand_start], device=self.device)
        self._held = torch.tensor([HAND_DOWN], device=self.device)
        (
            self.goal,
            self.object_position,
            self.start_object,
            self.fingertips,
            self.start_fingertips,
        ) = (torch.zeros(num_envs, 3, device=self.device) for _ in range(5))
        self.frame, self.previous_frame = torch.zeros(2, num_envs, 7, device=self.device)

    def change_mjcf(self, spec: mujoco.MjSpec) -> None:
        """Read positions by sensors, and let every row place the object by itself."""
        spec.memory = _MEMORY
        if self.scene.placed:
            spec.body(self.scene.placed).mocap = True
            _collide_with_parent(spec, self.scene.placed)
        # MetaWorld's own settings of the weld: no offset, torques weigh 5 times as much
        weld = spec.equalities[0]
        weld.data[:] = 0.0
        weld.data[6], weld.data[10] = -1.0, 5.0
        kinds = {
            "body": mujoco.mjtObj.mjOBJ_XBODY,
            "site": mujoco.mjtObj.mjOBJ_SITE,
            "geom": mujoco.mjtObj.mjOBJ_GEOM,
        }
        frames = {
            "hand": ("body", "hand"),
            "left_tip": ("site", "leftEndEffector"),
            "right_tip": ("site", "rightEndEffector"),
            "left_pad": ("body", "leftpad"),
            "right_pad": ("body", "rightpad"),
            "object": self.scene.object,
        }
        for name, (kind, target) in frames.items():
            sensor = mujoco.mjtSensor.mjSENS_FRAMEPOS
            spec.add_sensor(name=name, type=sensor, objtype=kinds[kind], objname=target)

    @property
    def opening(self) -> Tensor:
        """Distance of the claws by that of open ones. Shape: (num_envs,)."""
        right, left = self.fingers.position.unbind(dim=-1)
        return (1.0 - (right - left) / OPEN_WIDTH).clamp(0.0, 1.0)

    def distance_to_goal(self, position: Tensor) -> Tensor:
        """Shapes: (num_envs, 3) to (num_envs,)."""
        return (self._axes * (position - self.goal)).norm(dim=-1)

    def pre_physics_step(self, actions: Tensor) -> None:
        """Move the target to which the hand is welded, within bounds, and the two fingers."""
        self.previous_frame.copy_(self.frame)
        moved = self.hand.position_w + STEP_LENGTH * actions[:, 0:3]
        self.hand.position_w = torch.clamp(moved, self._bounds[0], self._bounds[1])
        self.ctrl[:, 0] = actions[:, 3]
        self.ctrl[:, 1] = -actions[:, 3]

    def simulate(self) -> None:
        """Step, and read the state for observations and rewards."""
        super().simulate()
        self.look()

    def look(self) -> None:
        """Fingertips, object and frame: hand, opening of the fingers, vector to the object."""
        torch.add(self.sensors["left_tip"], self.sensors["right_tip"], out=self.fingertips)
        self.fingertips *= 0.5
        torch.add(self.sensors["object"], self._offset, out=self.object_position)
        self.frame[:, 0:3] = self.sensors["hand"]
        self.frame[:, 3] = self.opening
        torch.sub(self.object_position, self.fingertips, out=self.frame[:, 4:7])

    def compute_observations(self) -> None:
        """This control step's frame, the one before, and the goal."""
        torch.cat(
            (self.frame, self.previous_frame, self.goal - self.fingertips),
            dim=1,
            out=self.obs_buf,
        )

    def compute_variables(self) -> dict[str, Tensor | Callable[[], Tensor]]:
        sensors, position, tips = self.sensors, self.object_position, self.fingertips
        scene = self.scene

        def distance() -> Tensor:
            return self.distance_to_goal(position)

        def start_distance() -> Tensor:
            return self.distance_to_goal(self.start_object)

        return {
            "hand_position_w": sensors["hand"],
            "fingertips_position_w": tips,
            "left_pad_position_w": sensors["left_pad"],
            "right_pad_position_w": sensors["right_pad"],
            "gripper_opening": self.frame[:, 3],
            "pads_touching": lambda: self.pads.is_touching.float(),
            "object_position_w": position,
            "goal_position_w": self.goal,
            "goal_distance": distance,
            "reach_distance": lambda: (position - tips).norm(dim=-1),
            "object_travel": lambda: (position - self.start_object).norm(dim=-1),
            "object_progress": lambda: 1.0 - distance() / start_distance(),
            "success": lambda: (distance() <= scene.success_distance).float(),
            "start_fingertips_position_w": self.start_fingertips,
            "start_object_position_w": self.start_object,
            "start_goal_distance": start_distance,
        }

    def place(self, env_ids: Tensor) -> None:
        """The settled hand; the object and its goal at a place of the row's own."""
        qpos, qvel = self._settled
        places = self._draw_places(env_ids)
        start = qpos.repeat(len(env_ids), 1)
        if self.scene.joint_start is not None:
            start[:, BLOCK.start] = self.scene.joint_start
        if self.base is None:
            start[:, BLOCK.start : BLOCK.stop - 1] = places[:, 0:2].to(start)
            self.goal[env_ids] = self._goal
        else:
            self.base.write(env_ids, position_w=places)
            self.goal[env_ids] = places + self._goal
        self.qpos.index_copy_(0, env_ids, start)
        self.qvel.index_copy_(0, env_ids, qvel.repeat(len(env_ids), 1))
        self.hand.write(env_ids, position_w=self._hand_start, orientation_w=self._held)

    def _draw_places(self, env_ids: Tensor) -> Tensor:
        """Places of the object, m. Shape: (len(env_ids), 3)."""
        low, high = self._places
        if self.base is not None:
            return low + (high - low) * self.random.uniform(env_ids, 3)
        # not within LEAST_PUSH of the goal: one draw in 28 is, four in a row are one in 600,000
        numbers = self.random.uniform(env_ids, 3 * _CANDIDATES).unflatten(1, (_CANDIDATES, 3))
        drawn = low + (high - low) * numbers
        far = (drawn[..., 0:2] - self._goal[:, None, 0:2]).norm(dim=-1) >= LEAST_PUSH
        first = far.int().argmax(dim=1)
        return drawn.gather(1, first.view(-1, 1, 1).expand(-1, 1, 3)).squeeze(1)

    def reset_idx(self, env_ids: Tensor) -> None:
        """Place the rows, and note the start state for rewards."""
        super().reset_idx(env_ids)
        self.look()
        self.start_object[env_ids] = self.object_position[env_ids]
        self.start_fingertips[env_ids] = self.fingertips[env_ids]
        self.previous_frame[env_ids] = self.frame[env_ids]


def _collide_with_parent(spec: mujoco.MjSpec, parent: str) -> None:
    """Let the parts that move on a mocap body touch it, as they touch it where it is fixed: MuJoCo
    leaves out contacts of a body with its parent, unless the parent is part of the world."""
    spec.option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_FILTERPARENT)
    members: dict[str, list[str]] = {}
    pairs = []
    roots: dict[str, str] = {spec.worldbody.name: spec.worldbody.name}
    for body in spec.bodies[1:]:
        moves = bool(body.joints) or body.mocap
        above = roots[body.parent.name]
        root = roots[body.name] = body.name if moves else above
        members.setdefault(root, []).append(body.name)
        if moves and above not in (spec.worldbody.name, parent):
            pairs.append((root, above))
    for child, above in pairs:
        for first in members[child]:
            for second in members[above]:
                spec.add_exclude(bodyname1=first, bodyname2=second)


def _settle(
    model: mujoco.MjModel, hand: tuple[float, float, float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """qpos and qvel after the hand, open, was held at its start for a while."""
    data = mujoco.MjData(model)
    target = int(model.body_mocapid[model.body("mocap").id])
    data.mocap_pos[target], data.mocap_quat[target] = hand, HAND_DOWN
    data.ctrl[:] = -1.0, 1.0
    mujoco.mj_step(model, data, SETTLING_STEPS)
    return data.qpos.copy(), data.qvel.copy()
