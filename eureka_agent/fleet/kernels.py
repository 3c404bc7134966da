"""Compiled kernels for workers on a GPU: compiled by a worker that loads no reward, and copied to
each one that does.

Warp keeps the kernels of `mujoco_warp`, which take a minute or more to compile, as machine code in
a cache folder. It finds them there by the hash of their *source* and loads what it finds: whoever
can write into that folder decides what the next worker executes. So no folder is shared. A worker's
cache is in its own scratch folder and goes with it; what it begins with is the driver's copy, which
is filled once for an environment by a worker that ran the person's code alone. A wall that keeps
workers from the user's files keeps them from that copy; the process wall does not keep them from
anything that the user may write.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import platform
import re
import shutil
import tempfile
from pathlib import Path

from eureka_agent.archive.baseline_cache import CACHE_FOLDER
from eureka_agent.archive.run_folder import versions
from eureka_agent.archive.storage_errors import storage_errors
from eureka_agent.errors import EurekaError, WorkerDiedError
from eureka_agent.fleet.devices import Device, Hardware
from eureka_agent.fleet.problem import Problem
from eureka_agent.protocol.bounds import KERNELS_FILE
from eureka_agent.protocol.commands import Prepare
from eureka_agent.protocol.events import Fault, Prepared
from eureka_agent.sandbox.client import START_SECONDS, WorkerClient
from eureka_agent.sandbox.inbox import WorkerFileError, check_state
from eureka_agent.sandbox.wall import Limits, Wall
from eureka_agent.settings import DAY_SECONDS, TrainingSettings

_PLAIN_PATH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")


async def kernels_for(
    hardware: Hardware,
    wall: Wall,
    problem: Problem,
    settings: TrainingSettings,
    fingerprint: str,
    runs: Path,
    scratch: Path,
) -> Path | None:
    """Folder of the environment's compiled kernels, which lies under `runs` and is made where it
    is missing; None on a CPU.

    `fingerprint`: the environment's. Raises EurekaError where the environment cannot be made on a
    GPU.
    """
    if hardware.kind == "cpu":
        return None
    # a home that several machines share: their GPUs need not be alike
    key = json.dumps([platform.node(), fingerprint, versions()], sort_keys=True)
    # a worker reads it from a folder of its own
    entry = runs.resolve() / CACHE_FOLDER / "kernels" / hashlib.sha256(key.encode()).hexdigest()
    if not entry.is_dir():
        device = hardware.devices(1)[0]
        await compile_kernels(entry, wall, problem, settings, device, scratch)
    return entry


async def compile_kernels(
    entry: Path,
    wall: Wall,
    problem: Problem,
    settings: TrainingSettings,
    device: Device,
    scratch: Path,
) -> None:
    """Have a worker prepare trainings and keep in the folder `entry` what it compiled for that; an
    entry that is there is whole.

    Kernels do not depend on the number of simulations, so a single slot is prepared. Raises
    EurekaError with the worker's words.
    """
    environment = problem.environment
    client = await WorkerClient.start(wall, scratch, device.limit(Limits()), environment)
    try:
        await client.open(environment, problem.task, device.name_within)
        await client.send(Prepare(settings=settings, slots=1, snapshot_s=DAY_SECONDS, kernels=True))
        try:
            event = await client.receive(START_SECONDS)
        except TimeoutError:
            raise WorkerDiedError(
                f"the kernels of {environment!r} were not compiled within {START_SECONDS:g} s",
                "try again on a less busy machine, or use --device cpu",
            ) from None
        if isinstance(event, Fault):
            raise EurekaError(event.message, event.hint)
        if not isinstance(event, Prepared):
            raise WorkerDiedError(
                f"the worker answered 'prepare' with {event.type!r}", "expected 'prepared'"
            )
        packed = await client.inbox.take(
            KERNELS_FILE, entry.with_suffix(".safetensors"), check_state
        )
        await asyncio.to_thread(_keep, packed, entry)
    finally:
        await client.close()


def _keep(packed: Path, entry: Path) -> None:
    """Unpack a worker's cache; an environment without kernels leaves an empty entry. Raises
    WorkerFileError for a path that leads elsewhere."""
    from safetensors.numpy import load_file  # numpy comes with it

    with storage_errors(entry.parent):
        draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=entry.parent))
        try:
            for name, content in load_file(packed).items():
                if not _PLAIN_PATH.fullmatch(name):
                    raise WorkerFileError(
                        f"a worker sent a kernel named {name[:100]!r}", "report this"
                    )
                path = draft / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content.tobytes())
            if not entry.is_dir():  # nor has another search put it there
                os.rename(draft, entry)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
            packed.unlink(missing_ok=True)
