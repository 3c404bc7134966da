"""The command as the person types it: hints, reports and help name commands that can be pasted."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from pathlib import Path

PROGRAM = "EUREKA_PROGRAM"
"""Environment variable in which the checkout's launcher hands on how it was called."""
INSTALL_GPU = "<install gpu>"
"""Stands for `install_extra("gpu")` in a hint that a worker may raise: it is told nothing of the
person's folders, so the driver puts the command there."""
FIRST_SEARCH = 'search "hover at the goal" --env quadcopter'
"""A search in which the reward decides: the sparse reward teaches nothing there."""
_DISTRIBUTION = "eureka-agent"
_PACKAGE_PARENT = Path(__file__).resolve().parents[1]


def program() -> str:
    """The program's name for a shell: `eureka` where PATH leads to this installation, else the path
    by which it was called."""
    called = os.environ.get(PROGRAM) or sys.argv[0]
    found = shutil.which("eureka")
    if os.sep not in called or Path(called).name != "eureka":
        return "eureka"
    if found is not None and Path(found).resolve() == Path(called).resolve():
        return "eureka"
    return shlex.quote(called)


def command(arguments: str) -> str:
    """A command of this program that can be pasted: `command("show latest")` is `./eureka show
    latest` in a checkout."""
    return f"{program()} {arguments}"


def pasteable(text: str) -> str:
    """`text` with every command `eureka …` in it as it can be pasted; for help, and for hints of
    workers, which do not know that."""
    if INSTALL_GPU in text:
        text = text.replace(INSTALL_GPU, install_extra("gpu"))
    return re.sub(r"(?<![\w/.-])eureka(?= [a-z[])", lambda _: program(), text)


def checkout() -> Path | None:
    """The checkout whose own `.venv` this Python is; None for any other installation."""
    return _PACKAGE_PARENT if Path(sys.prefix) == _PACKAGE_PARENT / ".venv" else None


def install_extra(extra: str) -> str:
    """The one command that installs an extra of this package into this installation: `./setup.sh
    gpu`, or pip or uv with the extra's packages."""
    folder = checkout()
    return (
        install_packages(*_packages_of(extra))
        if folder is None
        else f"{_typed(folder / 'setup.sh')} {extra}"
    )


def install_packages(*requirements: str) -> str:
    """The command that installs packages beside this one, whichever installer made the place."""
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
    """A package's program, by its name where PATH leads to the one beside this Python, else by its
    path."""
    beside = Path(sys.prefix) / "bin" / name
    found = shutil.which(name)
    if found is not None and (not beside.is_file() or Path(found).resolve() == beside.resolve()):
        return name
    return _typed(beside) if beside.is_file() else name


def _typed(path: Path) -> str:
    """A path for a shell, from the current folder where it lies below it."""
    try:
        inside = path.relative_to(Path.cwd())
    except (ValueError, OSError):  # elsewhere, or the current folder has gone
        return shlex.quote(str(path))
    return shlex.quote(str(inside) if len(inside.parts) > 1 else f".{os.sep}{inside}")


def _packages_of(extra: str) -> list[str]:
    """Requirements of an extra, by this installation's own metadata."""
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
    """True for the build that is a tenth of the size, which uv leaves for another one unless it is
    told."""
    import importlib.metadata

    try:
        return importlib.metadata.version("torch").endswith("+cpu")
    except importlib.metadata.PackageNotFoundError:
        return False


def _origin() -> str:
    """Origin of this installation: a folder or an address where the installer wrote one down, else
    its name."""
    import importlib.metadata
    import json
    from urllib.parse import unquote, urlsplit

    try:
        record = importlib.metadata.distribution(_DISTRIBUTION).read_text("direct_url.json")
        entry = json.loads(record or "{}")
        address, system = str(entry["url"]), entry.get("vcs_info", {}).get("vcs")
    except (
        importlib.metadata.PackageNotFoundError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
    ):
        return _DISTRIBUTION
    parts = urlsplit(address)
    if parts.scheme == "file":
        return unquote(parts.path)
    return f"{system}+{address}" if system else address
