"""PPO library that a reward is proved with."""

from __future__ import annotations

from typing import Literal, get_args

LibraryName = Literal["sb3"]
LIBRARIES: tuple[LibraryName, ...] = get_args(LibraryName)
PACKAGES = {"sb3": ("stable_baselines3", "stable-baselines3")}
"""Module and distribution of each."""
