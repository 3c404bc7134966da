"""The term library: each term is a dataclass of variables, parameters and a weight that renders to
a line or two of torch code."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from eureka_agent.designer.offline.penalty_terms import Failure, Limit, Penalty, Smoothness
from eureka_agent.designer.offline.reward_terms import (
    Alive,
    Distance,
    Level,
    Progress,
    Stillness,
    Success,
    Tracking,
    Upright,
)

__all__ = [
    "Alive",
    "Distance",
    "Failure",
    "Level",
    "Limit",
    "Penalty",
    "Progress",
    "Smoothness",
    "Stillness",
    "Success",
    "Term",
    "Tracking",
    "Upright",
]

Term = Annotated[
    Progress
    | Level
    | Distance
    | Upright
    | Tracking
    | Stillness
    | Alive
    | Penalty
    | Smoothness
    | Limit
    | Failure
    | Success,
    Field(discriminator="kind"),
]
