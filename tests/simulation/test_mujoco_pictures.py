"""Real pictures of a MuJoCo scene, drawn without a display."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from drawing_here import NEEDS_DRAWING
from torch import Tensor

from eureka_agent.simulation import mujoco_pictures
from eureka_agent.simulation.mujoco_pictures import MujocoPictures, back_end
from eureka_agent.simulation.mujoco_task import MujocoTask
from eureka_agent.simulation.pictures import Picture, RenderingError

SIZE = (120, 90)
FIELD_OF_VIEW = 60.0
DEPTH = 4.0
CAMERA = f'<camera name="front" pos="0 -{DEPTH} 0" xyaxes="1 0 0 0 0 1" fovy="{FIELD_OF_VIEW}"/>'
SCENE = f"""
<mujoco>
  <option gravity="0 0 0" timestep="0.01"/>
  <visual><headlight ambient="1 1 1" diffuse="0 0 0" specular="0 0 0"/></visual>
  <worldbody>
    {CAMERA}
    <camera name="behind" pos="0 {DEPTH} 0" xyaxes="-1 0 0 0 0 1" fovy="{FIELD_OF_VIEW}"/>
    <body>
      <joint name="x" type="slide" axis="1 0 0"/>
      <joint name="z" type="slide" axis="0 0 1"/>
      <geom type="sphere" size="0.3" rgba="1 0 0 1"/>
    </body>
  </worldbody>
  <actuator><motor joint="x"/></actuator>
</mujoco>
"""


class Ball(MujocoTask):
    """A red ball in front of a camera."""

    model_file = "ball.xml"
    num_observations = 2
    num_actions = 1
    max_episode_length = 10
    control_dt = 0.01
    termination_causes = ("unstable_physics",)

    def compute_observations(self) -> None:
        self.obs_buf.copy_(self.joint_positions)

    def compute_variables(self) -> dict[str, Tensor]:
        return {}


@pytest.fixture
def ball(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[Ball]:
    """The class, with its MJCF in place."""
    path = tmp_path / "ball.xml"
    path.write_text(SCENE)
    monkeypatch.setattr("eureka_agent.simulation.mujoco_task.model_path", lambda task: path)
    return type("Ball", (Ball,), {})


def centre(picture: Picture) -> tuple[float, float]:
    """Mean column and row of the red pixels."""
    rows, columns = np.nonzero((picture[..., 0] > 120) & (picture[..., 1] < 60))
    assert len(rows), "nothing red is in the picture"
    return float(columns.mean()), float(rows.mean())


def size_of(picture: Picture) -> float:
    """Red pixels."""
    return float(((picture[..., 0] > 120) & (picture[..., 1] < 60)).sum())


def place(environment: Ball, row: int, x: float, z: float) -> None:
    environment.qpos[row] = torch.tensor([x, z], dtype=environment.qpos.dtype)


@NEEDS_DRAWING
def test_each_row_is_drawn_where_its_state_says(ball: type[Ball]) -> None:
    environment = ball(2)
    environment.reset()
    pictures = MujocoPictures(environment, SIZE)
    place(environment, 0, 0.0, 0.0)
    place(environment, 1, 1.0, 0.5)
    first, second = (pictures.picture(row) for row in (0, 1))
    assert first.shape == (90, 120, 3)
    assert centre(first) == pytest.approx((59.5, 44.5), abs=0.7)
    # a pinhole camera: 45 pixels are tan(30°) × 4 m
    pixels_per_metre = 45.0 / (math.tan(math.radians(FIELD_OF_VIEW / 2.0)) * DEPTH)
    expected = 59.5 + 1.0 * pixels_per_metre, 44.5 - 0.5 * pixels_per_metre
    assert centre(second) == pytest.approx(expected, abs=1.2)
    pictures.close()


@NEEDS_DRAWING
@pytest.mark.parametrize("follows", [False, True])
def test_a_quarter_turn_shows_the_other_side(
    ball: type[Ball], tmp_path: Path, follows: bool
) -> None:
    if follows:  # a camera of the ball's own body, 4 m before it
        scene = SCENE.replace("<body>", f"<body>{CAMERA}").replace(f"    {CAMERA}\n", "", 1)
        (tmp_path / "ball.xml").write_text(scene)
        ball.camera = "front"
    environment = ball(2)
    environment.reset()
    pictures = MujocoPictures(environment, SIZE)
    place(environment, 0, 0.0, 0.5)
    place(environment, 1, 1.0, 0.5)
    pixels_per_metre = 45.0 / (math.tan(math.radians(FIELD_OF_VIEW / 2.0)) * DEPTH)
    high = 44.5 if follows else 44.5 - 0.5 * pixels_per_metre
    # from the side, 4 m along x from the middle of the scene
    assert centre(pictures.turned(0)) == pytest.approx((59.5, high), abs=1.0)
    assert centre(pictures.picture(0)) == pytest.approx((59.5, high), abs=1.0)
    nearer = size_of(pictures.turned(1)) / size_of(pictures.turned(0))
    # a camera that stays sees the ball come 1 m nearer: (4 / 3)² of the pixels, about
    assert nearer == pytest.approx(1.0 if follows else (4.0 / 3.0) ** 2, rel=0.12)
    assert size_of(pictures.picture(1)) == pytest.approx(size_of(pictures.picture(0)), rel=0.12)
    pictures.close()


@NEEDS_DRAWING
def test_a_camera_that_is_not_there_is_named_with_those_that_are(ball: type[Ball]) -> None:
    ball.camera = "above"
    environment = ball(1)
    environment.reset()
    with pytest.raises(RenderingError, match=r"'above'.*'front', 'behind'"):
        MujocoPictures(environment, SIZE)


@NEEDS_DRAWING
def test_drawing_changes_no_result(ball: type[Ball]) -> None:
    drawn, alone = ball(2), ball(2)
    pictures = None
    for environment in (drawn, alone):
        environment.reset()
        if environment is drawn:
            pictures = MujocoPictures(drawn, SIZE)
        for _ in range(5):
            environment.advance(torch.ones(2, 1))
            if environment is drawn and pictures is not None:
                pictures.picture(1)
    assert torch.equal(drawn.joint_positions, alone.joint_positions)
    assert drawn.joint_positions.abs().max() > 0.0


def test_without_a_library_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr(mujoco_pictures, "_BACK_ENDS", {"egl": ("libno_such_egl.so.1",)})
    with pytest.raises(RenderingError, match="no EGL, no OSMesa") as caught:
        back_end()
    assert "apt install libegl1" in caught.value.hint
