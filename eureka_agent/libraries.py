"""Names of the PPO libraries that a reward can be proved with."""

from __future__ import annotations

from typing import Literal, get_args

LibraryName = Literal["sb3", "rsl-rl"]
LIBRARIES: tuple[LibraryName, ...] = get_args(LibraryName)
PACKAGES = {"sb3": ("stable_baselines3", "stable-baselines3"), "rsl-rl": ("rsl_rl", "rsl-rl-lib")}
"""Module and distribution of each."""
