"""This program's command line: hints, reports and help name commands that can be pasted."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from pathlib import Path

PROGRAM = "EUREKA_PROGRAM"
"""Environment variable by which the checkout's launcher passes on its own path."""
INSTALL_GPU = "<install gpu>"
"""Placeholder for `install_extra("gpu")` in a worker's hints. A worker does not know the person's
folders, so the driver fills it in."""
FIRST_SEARCH = 'search "hover at the goal" --env quadcopter'
"""Example search in which the reward matters: the sparse reward teaches nothing there."""
_DISTRIBUTION = "eureka-agent"
_PACKAGE_PARENT = Path(__file__).resolve().parents[1]


def program() -> str:
    """The program for a shell: `eureka` where PATH leads here, else the path of its call."""
    called = os.environ.get(PROGRAM) or sys.argv[0]
    found = shutil.which("eureka")
    if os.sep not in called or Path(called).name != "eureka":
        return "eureka"
    if found is not None and Path(found).resolve() == Path(called).resolve():
        return "eureka"
    return shlex.quote(called)


def command(arguments: str) -> str:
    """Pasteable command: `command("show latest")` is `./eureka show latest` in a checkout."""
    return f"{program()} {arguments}"


def resume_command(run: Path) -> str:
    """Command that resumes a run."""
    return command(shlex.join(["resume", str(run)]))


def show_command(run: Path, *arguments: str) -> str:
    """Command that shows a run."""
    return command(shlex.join(["show", str(run), *arguments]))


def pasteable(text: str) -> str:
    """Text with every command `eureka …` made pasteable, for help and for workers' hints."""
    if INSTALL_GPU in text:
        text = text.replace(INSTALL_GPU, install_extra("gpu"))
    return re.sub(r"(?<![\w/.-])eureka(?= [a-z[])", lambda _: program(), text)


def checkout() -> Path | None:
    """Checkout whose `.venv` this Python is; None for any other installation."""
    return _PACKAGE_PARENT if Path(sys.prefix) == _PACKAGE_PARENT / ".venv" else None


def install_extra(extra: str) -> str:
    """Command that installs an extra: `./setup.sh gpu`, or pip or uv with the extra's packages."""
    folder = checkout()
    if folder is None:
        return install_packages(*_packages_of(extra))
    return f"{_typed(folder / 'setup.sh')} {extra}"


DRAWING_HINT = (
    "install EGL (Debian, Ubuntu: apt install libegl1 libegl-mesa0 libgl1-mesa-dri) or OSMesa"
    " (libosmesa6)"
)
"""Hint where nothing can draw MuJoCo's scenes."""


def install_packages(*requirements: str) -> str:
    """Command that installs packages beside this one, with the installer of this environment."""
    import importlib.util

    words = shlex.join(requirements)
    if (Path(sys.prefix) / "uv-receipt.toml").is_file():
        added = " ".join(f"--with {shlex.quote(requirement)}" for requirement in requirements)
        build = "--torch-backend cpu " if _has_torch_for_cpu() else ""
        return f"uv tool install {build}{added} {shlex.quote(_origin())}"
    if importlib.util.find_spec("pip") is None:
        return f"uv pip install --python {_typed(Path(sys.executable))} {words}"
    return f"{_typed(Path(sys.executable))} -m pip install {words}"


def executable(name: str) -> str:
    """Program of a package: its name where it is on PATH, else its path beside this Python."""
    beside = Path(sys.prefix) / "bin" / name
    found = shutil.which(name)
    if found is not None and (not beside.is_file() or Path(found).resolve() == beside.resolve()):
        return name
    return _typed(beside) if beside.is_file() else name


def _typed(path: Path) -> str:
    """Path for a shell, relative to the current folder where it lies below."""
    try:
        inside = path.relative_to(Path.cwd())
    except (ValueError, OSError):  # elsewhere, or the current folder has gone
        return shlex.quote(str(path))
    return shlex.quote(str(inside) if len(inside.parts) > 1 else f".{os.sep}{inside}")


def _packages_of(extra: str) -> list[str]:
    """Requirements of an extra, from this installation's metadata."""
    import importlib.metadata

    from packaging.requirements import Requirement

    try:
        required = [Requirement(text) for text in importlib.metadata.requires(_DISTRIBUTION) or ()]
    except importlib.metadata.PackageNotFoundError:  # run from its folder, not installed
        return [f"{_DISTRIBUTION}[{extra}]"]
    return [
        f"{each.name}{each.specifier}"
        for each in required
        if each.marker is not None
        and each.marker.evaluate({"extra": extra})
        and not each.marker.evaluate({"extra": ""})
    ]


def _has_torch_for_cpu() -> bool:
    """True for torch's CPU build, a tenth of the size, which uv would replace unless told."""
    import importlib.metadata

    try:
        return importlib.metadata.version("torch").endswith("+cpu")
    except importlib.metadata.PackageNotFoundError:
        return False


def _origin() -> str:
    """Folder or address that this was installed from, if recorded; else the name."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import unquote, urlsplit

    try:
        record = distribution(_DISTRIBUTION).read_text("direct_url.json")
        entry = json.loads(record or "{}")
        address, system = str(entry["url"]), entry.get("vcs_info", {}).get("vcs")
    except (PackageNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return _DISTRIBUTION
    parts = urlsplit(address)
    if parts.scheme == "file":
        return unquote(parts.path)
    return f"{system}+{address}" if system else address
