"""The wheelhouse: a folder of wheels that the host's pip fills, and from which the image is built
without a network."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from packaging.tags import Tag, sys_tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from eureka_agent.errors import WallError
from eureka_agent.invocation import command, install_packages
from eureka_agent.sandbox.docker.cache import cache_errors, cache_folder
from eureka_agent.sandbox.docker.packages import OPTIONAL_ROOTS, package_of

_PIP_SECONDS = 3600.0
_TORCH_INDEX = "https://download.pytorch.org/whl/"
"""Where wheels with a local version such as `+cpu` come from, when what the person's pip is set to
has them not."""
_LAST_LINES = 5
_CAUSE = "The conflict is caused by:"
"""pip's heading over the requirements that exclude each other."""
REQUIREMENTS_HINT = (
    "the packages of --requirements must exist and go with the versions that are installed here:"
    " change the file; with no network, name it to --download-only too"
)
_PIPS = 2
"""At the same time: what one does is mostly to read indices in Python."""


def own_wheelhouse() -> Path:
    """The one in the cache."""
    return cache_folder() / "wheelhouse"


def fill(folder: Path, pins: Iterable[str], requirements: str) -> None:
    """Make the folder hold a wheel of every pin, of all that the requirements come to beside them,
    and of pip itself.

    `requirements`: the text of a requirements file, or none. What is there is not downloaded again;
    wheels of other versions are removed from the cache's own folder, and from no other. Raises
    WallError with pip's words.
    """
    pins = tuple(pins)
    with cache_errors():
        folder.mkdir(parents=True, exist_ok=True)
        if folder == own_wheelhouse() and not requirements:
            for wheel in _strangers(folder, pins):
                wheel.unlink(missing_ok=True)
    missing = [pin for pin in (*pins, _pip_pin()) if _wheel_of(folder, pin) is None]
    with cache_errors(), tempfile.TemporaryDirectory(prefix="eureka-wheels-") as scratch:
        if missing:
            # each pin names one version: nothing is left for pip to resolve
            with ThreadPoolExecutor(_PIPS) as pips:
                running = []
                for index in range(_PIPS):
                    part = missing[index::_PIPS]
                    listed = _write(Path(scratch) / f"pins-{index}.txt", part)
                    running += (
                        [pips.submit(_download, folder, ["--no-deps", "-r", listed], part)]
                        if part
                        else []
                    )
                for download in running:
                    download.result()
        if requirements:
            constraints = _write(Path(scratch) / "constraints.txt", pins)
            listed = _write(Path(scratch) / "requirements.txt", [requirements])
            _download(folder, ["-r", listed, "-c", constraints], (), REQUIREMENTS_HINT)


def choose(folder: Path, pins: Iterable[str], requirements: str) -> tuple[list[Path], Path]:
    """Wheels to install, and pip's own. Raises WallError naming what is not there.

    With further requirements all wheels of the folder are offered, and pip chooses.
    """
    if not folder.is_dir():
        raise WallError(
            f"there is no wheelhouse {str(folder)!r}",
            _make_one_hint(),
        )
    wheels, missing = [], []
    for pin in pins:
        wheel = _wheel_of(folder, pin)
        if wheel is None:
            missing.append(pin)
        else:
            wheels.append(wheel)
    if missing:
        named = ", ".join(missing[:4]) + (
            f" and {len(missing) - 4} more" if len(missing) > 4 else ""
        )
        raise WallError(
            f"the wheelhouse {str(folder)!r} has no wheel of {named} for Python {python_version()}"
            " and this system",
            _make_one_hint(),
        )
    pip = _newest(folder.glob("pip-*.whl")) or _newest(_bundled())
    if pip is None:
        raise WallError(
            f"the wheelhouse {str(folder)!r} has no wheel of pip",
            "add one: pip download --no-deps -d DIR pip",
        )
    if requirements:
        # a folder made on a machine with a GPU holds half a gigabyte more than others need
        others = set(folder.glob("*.whl")) - set(wheels) - {pip}
        wheels += sorted(
            wheel
            for wheel in others
            if _fits(wheel) and package_of(wheel.name)[0] not in OPTIONAL_ROOTS
        )
    return wheels, pip


def _make_one_hint() -> str:
    return (
        "make one on a machine with the same Python and packages:"
        f" {command('sandbox build --download-only DIR')}"
    )


def _network_hint() -> str:
    download, use = (
        command("sandbox build --download-only DIR"),
        command("sandbox build --wheelhouse DIR"),
    )
    return (
        f"with no network here, make a wheelhouse where there is one ({download}) and use it: {use}"
    )


def python_version() -> str:
    """Major and minor version of this Python: wheels with compiled files are for one of them."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _download(folder: Path, what: list[str], pins: Iterable[str], hint: str = "") -> None:
    command = [
        *_pip(),
        "wheel",
        "--disable-pip-version-check",
        "--progress-bar",
        "off",
        "--no-input",
    ]
    command += ["--wheel-dir", str(folder), "--find-links", str(folder), *what]
    words = _run(command)
    if words is None:
        return
    # a version such as 2.13.0+cpu lies in an index of its own; asked only now, as a machine without
    # a network waits long for it
    local = {
        found[1] for pin in pins if (found := re.search(r"\+(cpu|cu\d+|rocm[\d.]+|xpu)$", pin))
    }
    for label in sorted(local):
        if _run([*command, "--extra-index-url", _TORCH_INDEX + label]) is None:
            return
    raise WallError(f"pip cannot get the wheels for the image: {words}", hint or _network_hint())


def _run(command: list[str]) -> str | None:
    """None when it went well, else its last words."""
    try:
        result = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PIP_SECONDS,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return f"it was not done within {_PIP_SECONDS:g} s"
    except OSError as error:
        return str(error)
    if result.returncode == 0:
        return None
    # it writes the causes of a conflict to its output, and the conflict itself to its errors
    lines = [
        line.strip() for line in (result.stdout + "\n" + result.stderr).splitlines() if line.strip()
    ]
    return last_words(lines) or f"exit status {result.returncode}"


def last_words(lines: list[str]) -> str:
    """Why pip failed, in one line, of all that it has written: its errors, and which requirements
    exclude each other."""
    errors = [
        line for line in lines if line.startswith("ERROR") and "ResolutionImpossible" not in line
    ] or lines
    causes: list[str] = []
    if _CAUSE in lines:
        after = lines[lines.index(_CAUSE) + 1 :]
        causes = [
            line for line in after[:_LAST_LINES] if "requested" in line or "depends on" in line
        ]
    return "; ".join([*errors[-_LAST_LINES:], *causes])


def _pip() -> list[str]:
    """How pip is started here. Raises WallError where there is none."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        importlib.metadata.version("pip")
        return [sys.executable, "-m", "pip"]
    bundled = _newest(_bundled())
    if bundled is not None:
        return [
            sys.executable,
            str(bundled / "pip"),
        ]  # a wheel is a zip file, and Python runs what lies in one
    raise WallError(
        "this Python has no pip to download the image's packages with",
        f"{install_packages('pip')}; or apt install python3-pip",
    )


def _pip_pin() -> str:
    """pip as it is here, else as it comes with Python."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return f"pip=={importlib.metadata.version('pip')}"
    bundled = _newest(_bundled())
    return "pip" if bundled is None else "==".join(package_of(bundled.name))


def _bundled() -> list[Path]:
    import ensurepip

    return list((Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl"))


def _newest(wheels: Iterable[Path]) -> Path | None:
    return max(wheels, key=lambda path: path.name, default=None)


def _wheel_of(folder: Path, pin: str) -> Path | None:
    """The wheel of a pin; None where there is none."""
    name, _, version = pin.partition("==")
    for wheel in sorted(folder.glob("*.whl")):
        with contextlib.suppress(ValueError):
            found_name, found_version = package_of(wheel.name)
            # an index may offer a version without the label that the installed one has, and that is
            # another build
            if (
                found_name == canonicalize_name(name)
                and version in ("", found_version)
                and _fits(wheel)
            ):
                return wheel
    return None


def _fits(wheel: Path) -> bool:
    """Whether it can be installed in this Python: a wheelhouse may hold wheels for several, or be
    older than this one."""
    try:
        return not parse_wheel_filename(wheel.name)[3].isdisjoint(_tags())
    except InvalidWheelFilename:
        return False


@cache
def _tags() -> frozenset[Tag]:
    return frozenset(sys_tags())


def _strangers(folder: Path, pins: Iterable[str]) -> list[Path]:
    kept = {_wheel_of(folder, pin) for pin in (*pins, _pip_pin())}
    return [wheel for wheel in folder.glob("*.whl") if wheel not in kept]


def _write(path: Path, lines: Iterable[str]) -> str:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return os.fspath(path)
