"""What the image contains: exactly the versions that are installed here of what a worker
imports."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable, Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from eureka_agent.errors import WallError
from eureka_agent.invocation import install_packages

ROOTS = (
    "torch",
    "numpy",
    "mujoco",
    "mujoco-core",
    "mujoco-studio",
    "gymnasium",
    "pydantic",
    "pyyaml",
    "safetensors",
)
"""What `worker`, `training`, `simulation` and the built-in environments import, by the names of the
distributions."""
OPTIONAL_ROOTS = ("imageio", "mujoco-warp", "warp-lang")
"""In the image where they are installed here: what Gymnasium's own MuJoCo environments import, and
physics on a GPU."""


def pinned(
    roots: Iterable[str] = ROOTS, optional: Iterable[str] = OPTIONAL_ROOTS
) -> tuple[str, ...]:
    """`name==version` of the roots and of all that they require, sorted. Raises WallError where one
    of the roots is not installed."""
    versions: dict[str, str] = {}
    wanted = [(root, "", True) for root in roots] + [(root, "", False) for root in optional]
    seen = set()
    while wanted:
        name, extra, required = wanted.pop()
        key = (canonicalize_name(name), extra)
        if key in seen:
            continue
        seen.add(key)
        try:
            found = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            if required:
                raise WallError(
                    f"the package {name!r}, which a worker needs, is not installed here",
                    install_packages(name),
                ) from None
            continue  # what a package does without here it does without there
        versions[key[0]] = found.version
        for text in found.requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                wanted += [
                    (requirement.name, part, False) for part in ("", *sorted(requirement.extras))
                ]
    return tuple(sorted(f"{name}=={version}" for name, version in versions.items()))


def shared_objects(pins: Iterable[str]) -> Iterator[Path]:
    """Compiled files of installed packages."""
    for pin in pins:
        for file in importlib.metadata.files(pin.partition("==")[0]) or ():
            if ".so" in file.suffixes:
                path = Path(str(file.locate()))
                if path.is_file():
                    yield path


def package_of(wheel: str) -> tuple[str, str]:
    """Canonical name and version in a wheel's file name. Raises ValueError for a name that is
    none."""
    name, version, *rest = wheel.removesuffix(".whl").split("-")
    if not rest or not wheel.endswith(".whl"):
        raise ValueError(wheel)
    return canonicalize_name(name), version.replace("_", "-")
