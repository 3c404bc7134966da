"""Drawing of the quadcopter: seen from behind and a little from above."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from eureka_agent.simulation.drawing import Circle, Drawing, Line, Point, Shape

from . import rotation

_PITCH = math.radians(20.0)
"""Angle at which the picture looks down."""
_WIDTH = 5.0
"""Width of the picture, m."""
_ARM = 0.3
"""Distance of the rotors along the body's axes: twice the real one, to be seen."""
_ROTORS = ((1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0), (1.0, -1.0))
_FRONT, _BACK = "#ef4444", "#334155"


def projected(position: Sequence[float]) -> Point:
    """A point of the world (m) in the picture: y to the left, z upwards, x away."""
    x, y, z = position
    return -y, z * math.cos(_PITCH) + x * math.sin(_PITCH)


def draw(position: Tensor, orientation: Tensor, goal: Tensor, thrusts: Sequence[float]) -> Drawing:
    """The craft with the thrust of each rotor (share of the largest), its shadow and its goal.
    Shapes: (3,), (4,), (3,)."""
    centre, target = position.tolist(), goal.tolist()
    shapes: list[Shape] = [*_ground(), *_goal(target)]
    shadow = projected((centre[0], centre[1], 0.0))
    shapes += [
        Line((shadow, projected(centre)), 0.01, "#cbd5e1"),
        Circle(shadow, 0.08, "#94a3b8"),
    ]
    arms = torch.tensor([[_ARM * x, _ARM * y, 0.0] for x, y in _ROTORS], dtype=position.dtype)
    # the rotation from body to world is that of the inverse quaternion from world to body
    back = orientation.cpu() * torch.tensor([1.0, -1.0, -1.0, -1.0])
    tips = rotation.to_body(back.unsqueeze(-1).expand(4, 4), arms.T).T + position.cpu()
    up = rotation.up_axis(orientation.cpu().unsqueeze(-1))[:, 0]
    ends = [projected(tip) for tip in tips.tolist()]
    for number in (0, 1):
        shapes.append(Line((ends[number], ends[number + 2]), 0.05, _BACK))
    for number, (tip, thrust) in enumerate(zip(tips, thrusts, strict=True)):
        lifted = projected((tip + 0.35 * thrust * up).tolist())
        shapes.append(Line((ends[number], lifted), 0.03, "#f97316"))
        front = _ROTORS[number][0] > 0.0
        shapes.append(Circle(ends[number], 0.09, _FRONT if front else _BACK))
    middle = projected((0.0, 0.0, 1.8))
    return Drawing(shapes, centre=middle, width=_WIDTH)


def _ground() -> list[Shape]:
    """A grid of metres."""
    lines: list[Shape] = []
    for place in range(-3, 4):
        along = (projected((-3.0, place, 0.0)), projected((3.0, place, 0.0)))
        across = (projected((place, -3.0, 0.0)), projected((place, 3.0, 0.0)))
        lines += [Line(along, 0.01, "#e2e8f0"), Line(across, 0.01, "#e2e8f0")]
    return lines


def _goal(position: Sequence[float]) -> list[Shape]:
    """A ring, and its place on the ground."""
    point, below = projected(position), projected((position[0], position[1], 0.0))
    return [
        Line((below, point), 0.01, "#bbf7d0"),
        Circle(point, 0.13, "#22c55e"),
        Circle(point, 0.09, "#f8fafc"),
    ]
