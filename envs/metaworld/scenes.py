"""The ten scenes: MJCF, movable object, start states, goal and success, in MetaWorld's numbers (Yu
et al. 2020; version 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Vector = tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class Scene:
    """One task's scene. Positions in m, in the world."""

    file: str
    """MJCF of the package, without its suffix."""
    placed: str = ""
    """Body that stands at another place in every episode; empty: the free joint's block."""
    start_low: Vector
    """Lowest place of that body."""
    start_high: Vector
    moving: str
    """Body that the task moves."""
    object: tuple[Literal["body", "site", "geom"], str]
    """Frame whose position is `object_position_w`."""
    object_offset: Vector = (0.0, 0.0, 0.0)
    goal: Vector
    """Goal relative to the placed body, or in the world for the block."""
    axes: Vector = (1.0, 1.0, 1.0)
    """1 for axes of which the distance to the goal takes account, else 0."""
    success_distance: float
    """Distance to the goal within which the task is done."""
    joint_start: float | None = None
    """Start of the object's joint, rad or m; None: where it settles."""
    hand_start: Vector = (0.0, 0.6, 0.2)
    hand_lowest: float = 0.05
    told: str
    """Sizes in words."""


_DRAWER = "drawer that slides 0.16 m along y (pulled out towards -y), damping 2 N·s/m"
_WINDOW = "window that slides 0.2 m along x (open at +x), damping 2 N·s/m"
_PRESS = "handle that slides 0.1 m down, damping 30 N·s/m"

SCENES = {
    "drawer-open": Scene(
        file="sawyer_drawer",
        placed="drawer",
        start_low=(-0.1, 0.9, 0.0),
        start_high=(0.1, 0.9, 0.0),
        moving="drawer_link",
        object=("body", "drawer_link"),
        object_offset=(0.0, -0.16, 0.0),
        goal=(0.0, -0.36, 0.09),
        success_distance=0.03,
        told=_DRAWER,
    ),
    "drawer-close": Scene(
        file="sawyer_drawer",
        placed="drawer",
        start_low=(-0.1, 0.9, 0.0),
        start_high=(0.1, 0.9, 0.0),
        moving="drawer_link",
        object=("body", "drawer_link"),
        object_offset=(0.0, -0.16, 0.05),
        goal=(0.0, -0.16, 0.09),
        success_distance=0.065,
        joint_start=-0.15,
        told=_DRAWER,
    ),
    "window-open": Scene(
        file="sawyer_window_horizontal",
        placed="window",
        start_low=(-0.1, 0.7, 0.16),
        start_high=(0.1, 0.9, 0.16),
        moving="windowb_a",
        object=("site", "handleOpenStart"),
        goal=(0.2, 0.0, 0.0),
        axes=(1.0, 0.0, 0.0),
        success_distance=0.05,
        joint_start=0.0,
        hand_start=(0.0, 0.4, 0.2),
        told=_WINDOW,
    ),
    "window-close": Scene(
        file="sawyer_window_horizontal",
        placed="window",
        start_low=(0.0, 0.75, 0.2),
        start_high=(0.0, 0.9, 0.2),
        moving="windowb_a",
        object=("site", "handleCloseStart"),
        goal=(0.0, 0.0, 0.0),
        axes=(1.0, 0.0, 0.0),
        success_distance=0.05,
        joint_start=0.2,
        hand_start=(0.0, 0.4, 0.2),
        told=_WINDOW,
    ),
    "button-press": Scene(
        file="sawyer_button_press",
        placed="box",
        start_low=(-0.1, 0.85, 0.115),
        start_high=(0.1, 0.9, 0.115),
        moving="button",
        object=("body", "button"),
        object_offset=(0.0, -0.193, 0.0),
        goal=(0.0, -0.1, 0.0),
        axes=(0.0, 1.0, 0.0),
        success_distance=0.02,
        joint_start=0.0,
        hand_start=(0.0, 0.4, 0.2),
        told="button in the front of a box, pushed in along +y, on a spring of 0.5 N/m",
    ),
    "door-unlock": Scene(
        file="sawyer_door_lock",
        placed="door",
        start_low=(-0.1, 0.8, 0.15),
        start_high=(0.1, 0.85, 0.15),
        moving="lock_link",
        object=("site", "lockStartUnlock"),
        goal=(0.1, -0.158, 0.061),
        axes=(1.0, 0.0, 0.0),
        success_distance=0.02,
        joint_start=1.5708,
        hand_lowest=-0.15,
        told="lock of 0.1 m on a door, which turns by 90 degrees about y; it starts pointing down",
    ),
    "door-close": Scene(
        file="sawyer_door_pull",
        placed="door",
        start_low=(0.0, 0.85, 0.15),
        start_high=(0.1, 0.95, 0.15),
        moving="door_link",
        object=("geom", "handle"),
        goal=(0.2, -0.2, 0.0),
        success_distance=0.08,
        joint_start=-1.5708,
        hand_start=(-0.5, 0.6, 0.2),
        told="door of 0.37 m, which turns about z; it starts open by 90 degrees",
    ),
    "sweep-into": Scene(
        file="sawyer_table_with_hole",
        start_low=(-0.1, 0.6, 0.02),
        start_high=(0.1, 0.7, 0.02),
        moving="obj",
        object=("body", "obj"),
        goal=(0.0, 0.84, 0.02),
        axes=(1.0, 1.0, 0.0),
        success_distance=0.05,
        told="block with edges of 0.04 m and of 0.01 kg, which does not turn; hole of 0.16 m",
    ),
    "handle-press": Scene(
        file="sawyer_handle_press",
        placed="box",
        start_low=(-0.1, 0.8, -0.001),
        start_high=(0.1, 0.9, 0.001),
        moving="handle_link",
        object=("site", "handleStart"),
        goal=(0.0, -0.216, 0.075),
        axes=(0.0, 0.0, 1.0),
        success_distance=0.02,
        joint_start=-0.001,
        told=_PRESS,
    ),
    "handle-press-side": Scene(
        file="sawyer_handle_press_sideways",
        placed="box",
        start_low=(-0.35, 0.65, -0.001),
        start_high=(-0.25, 0.75, 0.001),
        moving="handle_link",
        object=("site", "handleStart"),
        # the box is turned by 1.57 rad about z
        goal=(0.2159999, -0.000172, 0.075),
        axes=(0.0, 0.0, 1.0),
        success_distance=0.02,
        joint_start=-0.001,
        told=_PRESS,
    ),
}
LEAST_PUSH = 0.15
"""Least distance of the block's start from its goal, m."""
