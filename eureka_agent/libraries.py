"""Robot packages that need another MuJoCo."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

BROKEN_BY_MUJOCO_4 = {
    "dm_control": ("1.0.50", "3.17"),
    "robosuite": ("1.5.2", "3.3.7"),
    "gymnasium_robotics": ("1.4.2", "3.3.7"),
}
"""Release of each robot package that fails under mujoco 4.0.0, and the mujoco that it works with.
Of gymnasium-robotics, Fetch, Hand and Kitchen fail; Adroit and the mazes work."""


def mujoco_mismatch(package: str) -> str:
    """`robosuite 1.5.2 fails under mujoco 4.0.0; it works with mujoco 3.3.7`; empty for a package,
    by its module's name, that is not installed, not known to fail, or newer."""
    broken, works_with = BROKEN_BY_MUJOCO_4.get(package, ("", ""))
    try:
        found, mujoco = version(package), version("mujoco")
    except PackageNotFoundError:
        return ""
    if found != broken or not mujoco.startswith("4."):
        return ""
    name = package.replace("gymnasium_r", "gymnasium-r")
    part = " in Fetch, Hand and Kitchen" if "gymnasium" in name else ""
    return f"{name} {found} fails under mujoco {mujoco}{part}; it works with mujoco {works_with}"
