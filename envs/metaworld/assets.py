"""MetaWorld's MJCF files and meshes, read from the installed package without importing it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from eureka_agent.errors import EnvironmentLoadError

VERSION = "3.1.1"
INSTALL = f"pip install --no-deps metaworld=={VERSION} (in a checkout: ./setup.sh metaworld)"
"""Without its dependencies: it asks for an older MuJoCo, which only its own Python code needs."""


def scene_file(name: str) -> Path:
    """Path of one of its scenes. Raises EnvironmentLoadError where the package is not the one that
    these environments were compared with."""
    try:
        package = distribution("metaworld")
    except PackageNotFoundError:
        raise EnvironmentLoadError(
            "the models of MetaWorld's robot and objects come from the package metaworld, which is"
            " not installed",
            INSTALL,
        ) from None
    if package.version != VERSION:
        raise EnvironmentLoadError(
            f"metaworld {package.version} is installed, expected {VERSION}, whose models and"
            " rewards these environments have",
            INSTALL,
        )
    return Path(str(package.locate_file(f"metaworld/assets/sawyer_xyz/{name}.xml")))
