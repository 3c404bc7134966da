"""`eureka doctor`: checks of packages, walls and keys, and of a worker's start."""

from __future__ import annotations

import ctypes.util
import importlib.metadata
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Generator, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from eureka_agent import __version__
from eureka_agent.cli.command import Command
from eureka_agent.cli.output import FORMAT, print_json, wrapped
from eureka_agent.errors import EurekaError
from eureka_agent.invocation import DRAWING_HINT, install_packages

if TYPE_CHECKING:
    from eureka_agent.boundary.events import Opened
    from eureka_agent.sandbox.wall import Wall

PROBE_ENVIRONMENT = "cartpole"
RUN_BYTES = 100 << 20
Status = Literal["ok", "warning", "error"]
MARKS = {"ok": ("ok", "green"), "warning": ("note", "yellow"), "error": ("FAIL", "red")}


@dataclass(frozen=True)
class Check:
    """Result of one check."""

    name: str
    status: Status
    detail: str
    hint: str = ""


@click.command(cls=Command)
@FORMAT
def doctor(output_format: str) -> None:
    """Tell what is installed and what works here. Exit status 1 when something that a search needs
    does not work.

    \b
    eureka doctor
    """
    from eureka_agent.archive.run_folder import runs_folder

    checks = []
    for check in all_checks(runs_folder(), os.environ):
        checks.append(check)
        if output_format == "text":
            click.echo(check_lines(check))
    healthy = all(check.status != "error" for check in checks)
    if output_format == "json":
        print_json({"ok": healthy, "checks": [asdict(check) for check in checks]})
    else:
        fault = "a search cannot run here; see FAIL above"
        click.echo("everything that a search needs is here" if healthy else fault)
    if not healthy:
        raise click.exceptions.Exit(1)


def check_lines(check: Check) -> str:
    """A check in one line, wrapped on a terminal, with its hint below."""
    word, colour = MARKS[check.status]
    parts = [f"{check.name}: {check.detail}", check.hint]
    text = "\n      ".join(wrapped(part, 6) for part in parts if part)
    return f"{click.style(f'{word:>4}', fg=colour)}  {text}"


def all_checks(runs: Path, variables: Mapping[str, str]) -> Iterator[Check]:
    """Every check, cheapest first; the last one starts a worker and takes some seconds."""
    system = f"{platform.system()} {platform.machine()}"
    yield Check(
        "eureka_agent", "ok", f"{__version__}, Python {platform.python_version()}, {system}"
    )
    yield from packages(importlib.metadata.requires("eureka-agent") or [])
    yield disk(runs)
    yield keys(variables)
    wall = yield from walls()
    yield rendering(variables)
    if wall is not None:
        yield from worker(wall)


def packages(requirements: list[str]) -> Iterator[Check]:
    """Required packages in one line, and an error for each missing one."""
    from packaging.requirements import Requirement

    found = []
    for each in map(Requirement, requirements):
        if each.marker is not None and not each.marker.evaluate({"extra": ""}):
            continue
        try:
            found.append(f"{each.name} {importlib.metadata.version(each.name)}")
        except importlib.metadata.PackageNotFoundError:
            hint = f"`{install_packages(each.name)}`"
            yield Check(f"package {each.name}", "error", "not installed", hint)
    yield Check("packages", "ok", ", ".join(found))


def disk(runs: Path) -> Check:
    """Free space and permission to write in the folder of runs."""
    folder = next(each for each in (runs.absolute(), *runs.absolute().parents) if each.exists())
    if not os.access(folder, os.W_OK):
        hint = "change to a folder of yours, or set EUREKA_RUNS"
        return Check("runs folder", "error", f"{folder} cannot be written to", hint)
    free = shutil.disk_usage(folder).free
    detail = f"{free / 2**30:.1f} GiB free for {runs}"
    if free >= RUN_BYTES:
        return Check("runs folder", "ok", detail)
    hint = "a search writes some 10 to 100 MiB: free some space, or set EUREKA_RUNS"
    return Check("runs folder", "error", detail, hint)


def keys(variables: Mapping[str, str]) -> Check:
    """Names of the keys that are set."""
    from eureka_agent.llm.access import KEY_VARIABLES

    names = ", ".join(name for name in KEY_VARIABLES.values() if variables.get(name))
    none = "none is set: --model offline designs without an LLM, --base-url names your own server"
    return Check("keys", "ok", f"{names} set" if names else none)


def walls() -> Generator[Check, None, Wall | None]:
    """Walls around generated code: those that work here, and faults of the others. Returns the one
    of `--sandbox auto`; None where that one cannot be had."""
    from eureka_agent.sandbox.choose import AUTO, WALL_VARIABLE, WALLS, open_wall

    there: dict[str, Wall] = {}
    for name in WALLS:
        try:
            wall = there[name] = open_wall(name)
        except EurekaError as error:
            status: Status = "ok" if there else "warning"
            fault = f"cannot be had: {error.message}"
            yield Check(f"sandbox {name}", status, fault, error.hint)
            continue
        limits = f"works; does not cover {'; '.join(wall.does_not_cover)}"
        yield Check(f"sandbox {name}", "ok", limits)
    asked = os.environ.get(WALL_VARIABLE) or AUTO
    chosen = next(iter(there)) if asked == AUTO else asked
    detail = f"--sandbox auto takes {chosen}"
    if asked != AUTO:
        detail += f", as {WALL_VARIABLE} says"
    if chosen in there:
        yield Check("sandbox", "ok", detail)
    else:
        hint = f"set {WALL_VARIABLE} to one of {', '.join(there)}, or to nothing"
        yield Check("sandbox", "error", f"{detail}, which cannot be had", hint)
    return there.get(chosen)


def rendering(variables: Mapping[str, str]) -> Check:
    """MuJoCo's back ends for drawing without a display, for videos."""
    chosen = variables.get("MUJOCO_GL")
    found = [name for name in ("EGL", "OSMesa") if ctypes.util.find_library(name)]
    setting = f"MUJOCO_GL={chosen}" if chosen else "MUJOCO_GL is not set"
    if not found:
        detail = f"{setting}; no EGL and no OSMesa: no videos of MuJoCo's scenes"
        return Check("rendering", "warning", detail, DRAWING_HINT)
    return Check("rendering", "ok", f"{setting}; libraries found for {' and '.join(found)}")


def worker(wall: Wall) -> Iterator[Check]:
    """Start a worker behind this wall, open an environment, dry-run a reward."""
    import asyncio

    started = time.monotonic()
    try:
        opened, findings = asyncio.run(_probe(wall))
    except EurekaError as error:
        yield Check("worker", "error", error.message, error.hint)
        return
    yield devices(opened)
    if findings:
        fault = f"the dry run of a good reward failed: {findings[0]}"
        yield Check("worker", "error", fault, "this is a fault of ours: please report it")
        return
    total = time.monotonic() - started
    detail = f"starts, opens {PROBE_ENVIRONMENT} and does a dry run behind {wall.name}"
    yield Check("worker", "ok", f"{detail} in {total:.1f} s")


def devices(opened: Opened) -> Check:
    """Torch's devices in a worker, and the choice of `--device auto`."""
    from eureka_agent.fleet.devices import choose_hardware

    hardware = choose_hardware("auto", opened)
    names = ", ".join(["cpu", *(f"cuda:{number}" for number in range(opened.gpus.count))])
    missing = f" ({opened.gpus.missing})" if opened.gpus.missing else ""
    chosen = f"with --device auto on {PROBE_ENVIRONMENT} {hardware.sentence(hardware.places)}"
    return Check("devices", "ok", f"{names}{missing}; {chosen}")


async def _probe(wall: Wall) -> tuple[Opened, list[str]]:
    from eureka_agent.fleet.dry_runner import DryRunner
    from eureka_agent.fleet.jobs import Problem
    from eureka_agent.rewards import baseline

    with tempfile.TemporaryDirectory(prefix="eureka-doctor-") as scratch:
        runner = DryRunner(wall, Problem(PROBE_ENVIRONMENT), Path(scratch))
        try:
            description = await runner.start()
            findings = await runner.dry_run(description.human_reward or baseline(""))
        finally:
            await runner.close()
    errors = [f"{each.code} {each.message}" for each in findings if each.severity == "error"]
    return runner.opened, errors
