"""The content of the workers' image, and the name that follows from it.

The image is a copy of this machine's own Python, of the installed packages that a worker imports,
and of the shared libraries that these load. So no registry is asked, and numbers come out as they
do here, bit for bit: a reward's fitness depends on the last bits of `sin` and `exp`, which are the
C library's. It has no shell, no tools, and nothing of `/etc` but the names of two users.
"""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import distribution, distributions
from importlib.util import cache_from_source
from pathlib import Path
from typing import TypeAlias

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from eureka_agent.errors import OTHER_WALL, WallError, system_reason
from eureka_agent.invocation import install_packages
from eureka_agent.sandbox.docker.cache import cache_errors, cache_folder
from eureka_agent.sandbox.docker.drawing import drawing_files, drawing_settings

IMAGE_NAME = "eureka-worker"
_ROOTS = (
    *("torch", "numpy", "mujoco", "mujoco-core", "mujoco-studio", "gymnasium[mujoco]"),
    *("pydantic", "pyyaml", "safetensors", "av", "pillow"),
)
"""Distributions that `worker`, `training`, `simulation`, the built-in environments and Gymnasium's
own import."""
_GPU_ROOTS = ("mujoco-warp", "warp-lang")
"""Physics on a GPU, half a gigabyte: in the image where the engine can give GPUs, too."""
_OPTIONAL_ROOTS = ("box2d", "pygame", "pygame-ce")
"""Physics and pictures of Gymnasium's own environments: in the image where they are here."""
_DATA_ROOTS = ("metaworld",)
"""Packages of which an environment reads files and imports nothing: where they are here, without
what they require."""

Member: TypeAlias = Path | bytes | None
"""A file of this machine, a file's content, or (None) a folder into which everybody may write."""

_KEPT = "requirements.txt"
_PREFIX = "opt/eureka"
"""A virtual environment in the image. Its `lib` has all libraries that belong to no package."""
_SITE = f"{_PREFIX}/lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
_DRIVERS = f"/usr/lib64:/usr/lib/{os.uname().machine}-linux-gnu"
"""Folders where the engine mounts a GPU's driver; the image has none of it."""
SETTINGS = (
    *(f"ENV PATH=/{_PREFIX}/bin", f"ENV LD_LIBRARY_PATH=/{_PREFIX}/lib:{_DRIVERS}"),
    drawing_settings(_PREFIX),
    "USER 65534:65534",
)
"""Dockerfile lines that the image gets."""
_LIBRARY = re.compile(r"^\t(?:(?!libcuda\.|libnvidia-)\S+ (=>) )?(/.*) \(0x", re.M)
"""A line of `ldd`; not those of a GPU's driver."""
_STANDARD_LIBRARY_WITHOUT = re.compile(
    r"(test|tests|idlelib|tkinter|turtledemo|lib2to3|ensurepip|site-packages|dist-packages"
    r"|config-[^/]*)/|.*(\.a$|/_tkinter\.)"  # windows on a screen load two dozen libraries
)
_PACKAGES_WITHOUT = re.compile(
    # torch does not import without torch/bin/torch_shm_manager and torchgen
    r"torch/(include/|share/|test/|bin/(test_|protoc))|(numpy|sympy|networkx|mpmath)/(.*/)?tests/"
)


@dataclass(frozen=True)
class Recipe:
    """All that goes into an image."""

    pins: tuple[str, ...]
    """`name==version` of every package."""
    digest: str
    """Hash of this file, the interpreter with its libraries, and the packages' lists of files."""

    @property
    def tag(self) -> str:
        """The image's name and tag: another one when anything that goes in is another."""
        content = json.dumps([self.digest, *self.pins]).encode()
        return f"{IMAGE_NAME}:{hashlib.sha256(content).hexdigest()[:16]}"


def current_recipe(gpus: bool, requirements: str | None = None) -> Recipe:
    """The recipe for what is installed here now, arguments as for `pinned`. None: the requirements
    that were kept. Raises WallError."""
    if requirements is None:
        with cache_errors():
            kept = cache_folder() / _KEPT
            requirements = kept.read_text(encoding="utf-8") if kept.exists() else ""
    executable, standard_library = _python()
    parts = [Path(__file__).read_text(encoding="utf-8"), sys.version, str(standard_library)]
    drawing = drawing_files().values()
    for path in (executable, *needed_libraries([executable, *drawing]).values(), *drawing):
        status = path.stat()
        parts.append(f"{path} {status.st_size} {status.st_mtime_ns}")
    pins = pinned(requirements, gpus)
    # a list of files holds a hash of each
    parts += [distribution(pin.partition("==")[0]).read_text("RECORD") or "" for pin in pins]
    return Recipe(pins, hashlib.sha256(json.dumps(parts).encode()).hexdigest())


def keep_requirements(requirements: str) -> None:
    """Have all searches of this person use the image with these packages. Raises WallError."""
    with cache_errors():
        cache_folder().mkdir(parents=True, exist_ok=True)
        (cache_folder() / _KEPT).write_text(requirements, encoding="utf-8")


def parse_requirements(text: str) -> list[Requirement]:
    """Packages that the lines of a requirements file name, for this system. Raises WallError for a
    line that is none."""
    found = []
    for line in filter(None, (line.partition("#")[0].strip() for line in text.splitlines())):
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            requirement = None
        if requirement is None or requirement.url is not None:
            raise WallError(
                f"the requirements have the line {line!r}",
                "expected names of packages, with versions if you like: 'scipy>=1.14'",
            )
        if requirement.marker is None or requirement.marker.evaluate():
            found.append(requirement)
    return found


def pinned(requirements: str = "", gpus: bool = True) -> tuple[str, ...]:
    """`name==version` of all that a worker needs, sorted.

    `requirements`: text of a requirements file, packages beside the worker's own; `gpus`: the
    engine can give some. Raises WallError for a package that is not here, or in another version.
    """
    roots = [*map(Requirement, _ROOTS), *parse_requirements(requirements)]
    optional = map(Requirement, (*(_GPU_ROOTS if gpus else ()), *_OPTIONAL_ROOTS))
    wanted = [*((root, True) for root in roots), *((root, False) for root in optional)]
    versions: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()
    while wanted:
        requirement, is_root = wanted.pop()
        name = canonicalize_name(requirement.name)
        found = next(iter(distributions(name=name)), None)
        version = None if found is None else found.version
        if is_root and (version is None or not requirement.specifier.contains(version, True)):
            raise WallError(
                f"a worker needs the package {str(requirement)!r}, and the version that is"
                f" installed here is {version or 'none'}",
                f"install it: {install_packages(str(requirement))}",
            )
        if found is None or version is None:
            continue  # what a package does without here it does without there
        versions[name] = version
        for key in {(name, extra) for extra in ("", *requirement.extras)} - seen:
            seen.add(key)
            for part in map(Requirement, found.requires or ()):
                if part.marker is None or part.marker.evaluate({"extra": key[1]}):
                    wanted.append((part, False))
    for package in _DATA_ROOTS:
        if (data := next(iter(distributions(name=package)), None)) is not None:
            versions[package] = data.version
    return tuple(sorted(f"{name}=={version}" for name, version in versions.items()))


def image_members(recipe: Recipe) -> dict[str, Member]:
    """Members of the image's archive by their names in it, without a leading slash. Raises
    WallError where something cannot be copied."""
    executable, standard_library = _python()
    members: dict[str, Member] = {
        "etc/passwd": b"root:x:0:0::/nonexistent:\nnobody:x:65534:65534::/nonexistent:\n",
        "etc/group": b"root:x:0:\nnogroup:x:65534:\n",
        "tmp": None,
        f"{_PREFIX}/pyvenv.cfg": f"home = {executable.parent}\n".encode(),
        f"{_PREFIX}/bin/python": executable,
    }
    for path in sorted(standard_library.rglob("*")):
        inside = path.relative_to(standard_library).as_posix()
        if path.is_file() and not _STANDARD_LIBRARY_WITHOUT.match(inside):
            members[str(path)[1:]] = path
    for pin in recipe.pins:
        members |= _package_members(pin)
    drawing = {f"{_PREFIX}/{name}": path for name, path in drawing_files().items()}
    files = [path for path in (members | drawing).values() if isinstance(path, Path)]
    compiled = [path for path in files if path == executable or ".so" in path.suffixes]
    own = {path.resolve() for path in compiled}
    found = needed_libraries(compiled)
    # of a package's library none is needed twice; those for drawing are found by their names
    needed = {name: path for name, path in found.items() if path.resolve() not in own}
    return members | needed | drawing


def needed_libraries(files: Iterable[Path]) -> dict[str, Path]:
    """Shared libraries that the loader finds for programs and libraries, and the loader itself, by
    their names in the image. Raises WallError without `ldd`."""
    variables = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    command = ["ldd", *map(str, files)]
    try:
        result = subprocess.run(command, capture_output=True, text=True, env=variables, check=False)
    except OSError as error:
        raise WallError(
            f"cannot list the libraries of this Python: 'ldd': {system_reason(error)}",
            "install it (Debian: libc-bin)" + OTHER_WALL,
        ) from None
    found: dict[str, Path] = {}
    for arrow, place in _LIBRARY.findall(result.stdout):
        path = Path(os.path.normpath(place))
        # every program names the loader by its whole path
        found[f"{_PREFIX}/lib/{path.name}" if arrow else str(path)[1:]] = path
    return found


def _package_members(pin: str) -> dict[str, Path]:
    """Files of an installed package. Raises WallError where they are not known."""
    package = distribution(pin.partition("==")[0])
    origin = json.loads(package.read_text("direct_url.json") or "{}")
    if package.files is None or origin.get("dir_info", {}).get("editable"):
        raise WallError(
            f"the package {pin!r} goes into the sandbox's image, and its files are not known: it is"
            " installed as editable, or by another program than pip or uv",
            f"install a copy: {install_packages('--force-reinstall', pin)}",
        )
    members = {}
    for file in package.files:
        inside = posixpath.normpath(f"{_SITE}/{file.as_posix()}")
        if inside.startswith(f"{_PREFIX}/lib/") and not _PACKAGES_WITHOUT.match(file.as_posix()):
            source = str(package.locate_file(file))
            members[inside] = Path(source)
            if file.suffix == ".py":  # not every installer compiles: then an import has done it
                compiled = Path(cache_from_source(source))
                members[f"{posixpath.dirname(inside)}/__pycache__/{compiled.name}"] = compiled
    return {name: path for name, path in members.items() if path.is_file()}


def _python() -> tuple[Path, Path]:
    """The interpreter and the folder of its standard library, behind all links. Raises WallError
    where they are of no use in an image."""
    if not sys.platform.startswith("linux"):
        raise WallError(
            f"the Docker wall makes its image of this machine's files, which are {sys.platform!r}",
            "use it on Linux" + OTHER_WALL,
        )
    executable = getattr(sys, "_base_executable", None) or sys.executable
    return Path(executable).resolve(), Path(sysconfig.get_path("stdlib")).resolve()
