"""Checks of `eureka doctor`. Nothing heavy is imported here: versions come from metadata, the
simulator runs in a worker."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes.util
import importlib.metadata
import os
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from eureka_agent import __version__
from eureka_agent.errors import EurekaError, WallError, WallNotBuiltError
from eureka_agent.invocation import install_packages
from eureka_agent.llm.access import KEY_VARIABLES

if TYPE_CHECKING:
    from eureka_agent.protocol.messages import Opened
    from eureka_agent.sandbox.wall import Wall

REQUIRED_PACKAGES = (
    "torch",
    "mujoco",
    "mujoco-core",
    "mujoco-studio",
    "gymnasium",
    "numpy",
    "pydantic",
    "rich",
    "openai",
    "anthropic",
    "litellm",
    "docker",
    "packaging",
    "tenacity",
    "optuna",
    "jinja2",
    "safetensors",
    "tensorboard",
    "pyyaml",
)
PROBE_ENVIRONMENT = "cartpole"
LITTLE_DISK_BYTES = 2 << 30
RUN_BYTES = 100 << 20
"""Largest run folder of an ordinary search."""
LITTLE_MEMORY_BYTES = 2 << 30


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str
    status: Literal["ok", "warning", "error"]
    detail: str
    hint: str = ""


def all_checks(runs: Path, variables: Mapping[str, str]) -> Iterator[Check]:
    """Every check, cheapest first; the last one starts a worker and takes some seconds."""
    yield Check(
        "eureka_agent",
        "ok",
        f"{__version__}, Python {platform.python_version()}, {platform.system()}"
        f" {platform.machine()}",
    )
    yield from packages()
    yield processor()
    yield memory()
    yield gpu()
    yield disk(runs)
    yield keys(variables)
    yield from walls()
    yield rendering(variables)
    yield from worker()


def packages() -> Iterator[Check]:
    """The packages that this one depends on, in one line, and one error for each that is
    missing."""
    found = []
    for name in REQUIRED_PACKAGES:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            yield Check(f"package {name}", "error", "not installed", f"`{install_packages(name)}`")
    yield Check("packages", "ok", ", ".join(found))


def processor() -> Check:
    """Cores that this process may use."""
    from eureka_agent.sandbox.cores import available_cores, usable_cores

    cores, usable = available_cores(), usable_cores()
    numbers = ", ".join(map(str, sorted(cores)))
    detail = f"{len(cores)} core{'s' if len(cores) != 1 else ''} to train on (number {numbers})"
    if usable < len(cores):
        detail += f", of which a quota grants the time of {usable}"
    return Check("processor", "ok", detail)


def memory() -> Check:
    """Free and all memory of the machine."""
    try:
        page = os.sysconf("SC_PAGE_SIZE")
        total, free = page * os.sysconf("SC_PHYS_PAGES"), page * os.sysconf("SC_AVPHYS_PAGES")
    except (ValueError, OSError):
        return Check("memory", "warning", "unknown on this system")
    detail = f"{free / 2**30:.1f} GiB unused of {total / 2**30:.1f} GiB"
    if total < LITTLE_MEMORY_BYTES:
        return Check(
            "memory", "warning", detail, "a training worker takes about 0.5 GiB: use --workers 1"
        )
    return Check("memory", "ok", detail)


def gpu() -> Check:
    """The driver's view of the GPUs, where there is an nvidia-smi; what torch makes of them a
    worker says."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return Check("GPU", "ok", "no NVIDIA GPU found")
    command = [program, "--query-gpu=name,memory.total", "--format=csv,noheader"]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=20, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        return Check(
            "GPU",
            "warning",
            f"nvidia-smi does not answer: {type(error).__name__}",
            "see to the driver",
        )
    return Check("GPU", "ok", "; ".join(answer.strip().splitlines()))


def disk(runs: Path) -> Check:
    """Room and permission to write where runs go."""
    folder = runs.absolute()
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    detail = f"{free / 2**30:.1f} GiB free for {runs}"
    if not os.access(folder, os.W_OK):
        return Check(
            "runs folder",
            "error",
            f"{folder} cannot be written to",
            "change to a folder of yours, or set EUREKA_RUNS",
        )
    if free < LITTLE_DISK_BYTES:
        if free < RUN_BYTES:
            detail = (
                f"{free / 2**20:.1f} MiB free for {runs}, expected {RUN_BYTES >> 20} MiB or more"
            )
        return Check(
            "runs folder",
            "error" if free < RUN_BYTES else "warning",
            detail,
            "a search writes some 10 to 100 MiB: free some space, or set EUREKA_RUNS",
        )
    return Check("runs folder", "ok", detail)


def keys(variables: Mapping[str, str]) -> Check:
    """Keys that are set, by name alone."""
    names = [name for name in KEY_VARIABLES.values() if variables.get(name)]
    if not names:
        return Check(
            "keys",
            "ok",
            "none is set: --model offline designs without an LLM, --base-url names a server of"
            " your own",
        )
    return Check("keys", "ok", f"{', '.join(names)} set")


def walls() -> Iterator[Check]:
    """The walls that can stand around generated code: which of them work here, and why another does
    not."""
    from eureka_agent.sandbox.choose import WALL_VARIABLE, WALLS, open_wall

    there: list[str] = []
    for name in WALLS:
        try:
            wall = open_wall(name, build=False)
        except WallNotBuiltError as error:
            there.append(name)
            yield Check(f"sandbox {name}", "ok", f"can be had: {error.message}", error.hint)
            continue
        except EurekaError as error:
            yield Check(
                f"sandbox {name}",
                "warning" if not there else "ok",
                f"cannot be had: {error.message}",
                error.hint,
            )
            continue
        there.append(name)
        yield Check(
            f"sandbox {name}", "ok", f"works; does not cover {'; '.join(wall.does_not_cover)}"
        )
    asked = os.environ.get(WALL_VARIABLE)
    if asked and asked not in there:
        yield Check(
            "sandbox",
            "warning",
            f"--sandbox auto takes {asked}, as {WALL_VARIABLE} says, which cannot be had",
            f"set {WALL_VARIABLE} to one of {', '.join(there)}, or to nothing",
        )
        return
    taken = f"{asked}, as {WALL_VARIABLE} says" if asked else there[0]
    yield Check("sandbox", "ok", f"--sandbox auto takes {taken}")


def rendering(variables: Mapping[str, str]) -> Check:
    """Back ends that MuJoCo could draw with. A search needs none."""
    chosen = variables.get("MUJOCO_GL")
    backends = [
        name
        for name, library in (("egl", "EGL"), ("osmesa", "OSMesa"))
        if ctypes.util.find_library(library)
    ]
    there = (
        f"libraries found for {' and '.join(backends)}"
        if backends
        else "no library for drawing without a display found"
    )
    setting = f"MUJOCO_GL={chosen}" if chosen else "MUJOCO_GL is not set"
    return Check("rendering", "ok", f"{setting}; {there}; a search draws nothing")


def worker() -> Iterator[Check]:
    """Start a worker behind the wall that a search would take, or the next one where that has not
    been built; open an environment and dry-run a reward in it; ask it for the GPUs."""
    started = time.monotonic()
    try:
        wall = _wall_to_try()
        seconds, opened, findings = asyncio.run(_probe(wall))
    except WallNotBuiltError as error:
        yield Check("worker", "warning", f"was not tried: {error.message}", error.hint)
        return
    except EurekaError as error:
        yield Check("worker", "error", error.message, error.hint)
        return
    yield devices(opened)
    if findings:
        yield Check(
            "worker",
            "error",
            f"the dry run of a good reward failed: {findings[0]}",
            "this is a fault of ours: please report it",
        )
        return
    yield Check(
        "worker",
        "ok",
        f"starts and opens {PROBE_ENVIRONMENT} behind {wall.name} in {seconds:.1f} s, dry run after"
        f" {time.monotonic() - started:.1f} s",
    )


def devices(opened: Opened) -> Check:
    """Devices that torch finds in a worker, and those that `--device auto` takes."""
    from eureka_agent.fleet.devices import choose_hardware

    hardware = choose_hardware("auto", opened)
    names = ", ".join(["cpu", *(f"cuda:{number}" for number in range(opened.gpus.count))])
    missing = f" ({opened.gpus.missing})" if opened.gpus.missing else ""
    chosen = hardware.sentence(hardware.places)
    return Check(
        "devices", "ok", f"{names}{missing}; with --device auto on {PROBE_ENVIRONMENT} {chosen}"
    )


def _wall_to_try() -> Wall:
    """The one that was asked for, else the strongest that can be had at once. Raises WallError."""
    from eureka_agent.sandbox.choose import WALL_VARIABLE, WALLS, open_wall

    *others, last = (os.environ[WALL_VARIABLE],) if os.environ.get(WALL_VARIABLE) else WALLS
    for name in others:
        with contextlib.suppress(WallError):
            return open_wall(name, build=False)
    return open_wall(last, build=False)


async def _probe(wall: Wall) -> tuple[float, Opened, list[str]]:
    """Seconds until the environment was open, what the worker said then, and the errors of a dry
    run of its human reward."""
    from eureka_agent.fleet.dry_runner import DryRunner
    from eureka_agent.fleet.problem import Problem
    from eureka_agent.rewards import baseline

    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="eureka-doctor-") as scratch:
        runner = DryRunner(wall, Problem(PROBE_ENVIRONMENT), Path(scratch))
        try:
            description = await runner.start()
            seconds = time.monotonic() - started
            findings = await runner.dry_run(description.human_reward or baseline(""))
        finally:
            await runner.close()
    return (
        seconds,
        runner.opened,
        [
            f"{finding.code} {finding.message}"
            for finding in findings
            if finding.severity == "error"
        ],
    )
