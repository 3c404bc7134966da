"""Two fingers, a cube and an arm in MuJoCo, with all that can be looked up by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from eureka_agent.simulation.mujoco_task import MujocoTask

# two fingers press a cube between them, which turns freely; beside it an arm on a ball joint, whose
# elbow stands between the fingers' slides in the MJCF
MJCF = """
<mujoco>
  <option timestep="0.004" integrator="implicitfast"/>
  <size memory="512K"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1"/>
    <body name="left_finger" pos="-0.16 0 0.1">
      <joint name="left_slide" type="slide" axis="1 0 0" range="-0.2 0.1" limited="true"/>
      <geom name="left_pad" size="0.05" mass="0.3"/>
    </body>
    <body name="arm" pos="0 1 1">
      <joint name="shoulder" type="ball"/>
      <geom name="upper" type="capsule" fromto="0 0 0 0.3 0 0" size="0.03" mass="0.5"/>
      <body name="forearm" pos="0.3 0 0" euler="0 0 40">
        <joint name="elbow" type="hinge" axis="0 1 0" damping="0.1"/>
        <geom name="lower" type="capsule" fromto="0 0 0 0.3 0 0" size="0.02" mass="0.3"/>
        <site name="tip" pos="0.3 0 0" euler="20 0 30"/>
      </body>
    </body>
    <body name="right_finger" pos="0.16 0 0.1">
      <joint name="right_slide" type="slide" axis="-1 0 0" range="-0.2 0.1" limited="true"/>
      <geom name="right_pad" size="0.05" mass="0.3"/>
    </body>
    <body name="cube" pos="0 0 0.08" euler="0 0 10">
      <freejoint name="cube_root"/>
      <geom name="cube_box" type="box" size="0.08 0.08 0.08" mass="0.4"/>
      <geom name="cube_knob" type="sphere" size="0.03" pos="0 0 0.1" mass="0.1"/>
    </body>
    <body name="ghost" pos="0 -1 1">
      <geom name="ghost" size="0.1" contype="0" conaffinity="0"/>
    </body>
    <body name="cup" pos="0 -2 1">
      <geom name="cup" size="0.1"/><geom name="handle" size="0.05" pos="0.1 0 0"/>
    </body>
  </worldbody>
  <contact><exclude body1="cube" body2="cup"/></contact>
  <actuator>
    <motor name="right_push" joint="right_slide" ctrlrange="0 8" ctrllimited="true"/>
    <motor name="elbow_turn" joint="elbow"/>
    <motor name="left_push" joint="left_slide" ctrlrange="0 8" ctrllimited="true"/>
  </actuator>
  <sensor>
    <jointpos name="elbow_angle" joint="elbow"/>
    <framepos name="tip_place" objtype="site" objname="tip"/>
    <jointvel name="elbow_speed" joint="elbow"/>
  </sensor>
</mujoco>
"""


class Gripper(MujocoTask):
    """Two fingers, a cube and an arm."""

    num_observations = 1
    num_actions = 3
    max_episode_length = 1000
    control_dt = 0.016
    position_noise = 0.01
    velocity_noise = 0.1
    termination_causes = ("unstable_physics",)

    def look_up(self) -> None:
        self.fingers = self.joint(["left_slide", "right_slide"])
        self.cube_root = self.free_joint("cube_root")
        self.cube = self.body("cube")
        self.links = self.body(["forearm", ".*_finger"])
        self.tip = self.site("tip")
        self.pads = self.contact([".*_pad"], "cube")
        self.grip = self.contact("left_finger", "cube_box")
        self.ground = self.contact("cube", "floor")
        self.any = self.contact("cube")

    def __init__(self, num_envs: int, device: torch.device | str = "cpu", seed: int = 0) -> None:
        super().__init__(num_envs, device, seed)
        self.look_up()

    def compute_observations(self) -> None:
        self.obs_buf[:, 0] = self.cube_root.position_w[:, 2]

    def compute_variables(self) -> dict[str, Tensor | Callable[[], Tensor]]:
        return {}


def random_actions(environment: Any, steps: int, seed: int = 0) -> Tensor:
    """The fingers press the harder the longer, and the arm is moved at random."""
    generator = torch.Generator().manual_seed(seed)
    shape = steps, environment.num_envs, 3
    return 2.0 * torch.rand(shape, generator=generator) - 1.0


def read(environment: Any) -> dict[str, Tensor]:
    return {
        "position": environment.links.position_w,
        "orientation": environment.tip.orientation_w,
        "velocity": environment.cube.linear_velocity_b,
        "force": environment.pads.force_w,
        "touching": environment.ground.is_touching,
    }


def goes_on_among_others(first: Any, second: Any) -> None:
    taken, place = torch.tensor([1, 3]), torch.tensor([6, 2])
    for actions in random_actions(first, 25):
        first.advance(actions)
    second.load_row_state(place, first.row_state(taken))
    for actions in random_actions(first, 25, seed=4):
        for name, value in read(second).items():
            assert torch.equal(value[place], read(first)[name][taken]), name
        others = random_actions(second, 1, seed=9)[0]
        others[place] = actions[taken]
        first.advance(actions)
        second.advance(others)
        # another row's start copies nothing of what a loaded row's simulator has not calculated yet
        second.reset_rows(torch.tensor([0]))
